/* Isolated runs from start to end: what is fed heals, what is broken stays wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/session.h"
#include "tests/unit/lib/open_scenario.h"
#include "tests/unit/lib/temporary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIT(ch) (1u << asc_##ch)

static char saved[TEMPORARY];

static void set(struct session *s, const char *key, const char *value)
{
    struct err err = {0};
    if (scenario_set(&s->subject.scenario, key, value, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
}

/* A session on a scenario below the root, at a small shape, run to the end. */
static struct session *run(const char *path)
{
    struct session *s = open_scenario("%s", path);
    set(s, "shape.heads", "2");
    set(s, "shape.q_len", "100");
    set(s, "shape.kv_len", "100");
    assert_int_equal(session_start(s), 0);
    if (session_finish(s, 0) != 0)
        fail_msg("%s: %s", s->job.err.where, s->job.err.message);
    return s;
}

/* 0, or the code of the error. */
static int isolate(struct session *s, const char *stage, const char *feed)
{
    struct isolation_request request;
    struct err err = {0};
    if (isolation_parse(stage, feed, &request, &err) != 0)
        return (int)err.code;
    if (session_isolate(s, &request) != 0)
        fail_msg("%s", s->message);
    return session_finish(s, 0) == 0 ? 0 : (int)s->job.err.code;
}

/* Checks the set of stages with an effect. */
static void expect_effect(const struct session *s, enum effect effect, unsigned stages)
{
    struct isolation_result r;
    unsigned found = 0;
    assert_int_equal(session_isolated(s, &r), 1);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (isolation_effect(r.before, r.after, (enum asc_channel)ch) == effect)
            found |= 1u << ch;
    if (found != stages) {
        char text[2][128];
        isolation_labels(found, text[0], sizeof text[0]);
        isolation_labels(stages, text[1], sizeof text[1]);
        fail_msg("%s isolated: %s %s, expected %s", r.asked->name, text[0], effect_word(effect), text[1]);
    }
}

static void expect_says(const struct session *s, const char *line, const char *sentence)
{
    struct isolation_result r;
    char text[256], sentences[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES];
    assert_int_equal(session_isolated(s, &r), 1);
    isolation_line(&r, text, sizeof text);
    assert_string_equal(text, line);
    const int n = isolation_sentences(&r, sentences);
    for (int i = 0; i < n; i++)
        if (strcmp(sentences[i], sentence) == 0)
            return;
    for (int i = 0; i < n; i++)
        print_message("%s\n", sentences[i]);
    fail_msg("does not say: %s", sentence);
}

static void a_culprit_stays_wrong_and_the_rest_heals(void **state)
{
    (void)state;
    struct session *s = run("scenarios/bugs/double-scale.ini");
    const unsigned after = BIT(m) | BIT(alpha) | BIT(p) | BIT(l) | BIT(u) | BIT(o) | BIT(lse);
    assert_int_equal(isolate(s, "s", NULL), 0);
    expect_effect(s, EFFECT_STILL_WRONG, BIT(s));
    expect_effect(s, EFFECT_HEALED, after);
    expect_effect(s, EFFECT_AS_BEFORE, BIT(q) | BIT(k) | BIT(v));
    assert_int_equal(s->run.judgement->summary.culprits, BIT(s));
    expect_says(s, "S still wrong on exact Q, K; m..LSE heal", "S is wrong on exact inputs: the culprit");
    expect_says(s, "S still wrong on exact Q, K; m..LSE heal", "O heals when S is fed: everything after S is clean");
    assert_non_null(strstr(s->title, "S isolated"));

    /* The stage behind the culprit: it is clean, and the culprit shows all the same. */
    assert_int_equal(isolate(s, "m", "reference"), 0);
    expect_effect(s, EFFECT_STILL_WRONG, BIT(s));
    expect_effect(s, EFFECT_HEALED, after);
    /* O is right because of what was fed: S has its cause, and is no declaration. */
    assert_string_equal(cause_name(s->run.judgement->findings[0].cause), "scaled-twice");
    /* Only Q, K and V are fed: nothing heals. */
    assert_int_equal(isolate(s, "v", NULL), 0);
    expect_effect(s, EFFECT_STILL_WRONG, BIT(s) | after);
    expect_effect(s, EFFECT_HEALED, 0);
    assert_int_equal(s->run.trace->fed_channels, BIT(q) | BIT(k) | BIT(v));

    /* r goes back to the run as it is. */
    struct isolation_result r;
    assert_int_equal(session_start(s), 0);
    assert_int_equal(session_finish(s, 0), 0);
    assert_int_equal(session_isolated(s, &r), 0);
    assert_null(s->run.trace->fed);
    assert_null(strstr(s->title, "isolated"));
    assert_int_equal(s->run.judgement->summary.stage[asc_m].global, STAGE_BAD);
    session_free(s);
}

/* No probe stands where a state begins: what is wrong by it is not said to be a culprit of its own. */
static void what_a_state_begins_at_is_not_fed(void **state)
{
    (void)state;
    struct session *s = run("tests/session/m-begins-at-0.ini");
    struct isolation_result r;
    char sentences[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES];
    assert_int_equal(isolate(s, "m", NULL), 0);
    assert_true(s->run.judgement->summary.stage[asc_alpha].bad_local > 0);
    assert_int_equal(session_isolated(s, &r), 1);
    const int n = isolation_sentences(&r, sentences);
    int said = 0;
    for (int i = 0; i < n; i++) {
        assert_null(strstr(sentences[i], "culprit of its own"));
        said |= strcmp(sentences[i], "α stays wrong when m is fed, only in the first kv tile: the initial value of m "
                                     "is not fed") == 0;
    }
    assert_true(said);
    session_free(s);
}

static void a_later_culprit(void **state)
{
    (void)state;
    struct session *s = run("tests/session/alpha-forgotten.ini");
    assert_int_equal(isolate(s, "softmax", NULL), 0);
    expect_effect(s, EFFECT_STILL_WRONG, BIT(u) | BIT(o));
    expect_effect(s, EFFECT_HEALED, 0);
    expect_says(s, "m..l right on exact S; U, O still wrong",
                "U stays wrong when softmax is fed: a culprit of its own");
    assert_int_equal(isolate(s, "pv", NULL), 0);
    expect_effect(s, EFFECT_STILL_WRONG, BIT(u));
    expect_effect(s, EFFECT_HEALED, BIT(o));
    expect_says(s, "U still wrong on exact V, α, P; O heals", "U is wrong on exact inputs: the culprit");
    session_free(s);
}

static void two_mistakes_are_told_apart(void **state)
{
    (void)state;
    struct session *s = run("tests/session/two-mistakes.ini");
    const unsigned softmax = BIT(m) | BIT(alpha) | BIT(p) | BIT(l);
    assert_int_equal(s->run.judgement->summary.culprits, BIT(s) | BIT(u));
    assert_int_equal(isolate(s, "softmax", NULL), 0);
    assert_int_equal(s->run.judgement->summary.culprits, BIT(s) | BIT(u));
    expect_effect(s, EFFECT_HEALED, softmax | BIT(lse));
    expect_effect(s, EFFECT_STILL_WRONG, BIT(s) | BIT(u) | BIT(o));
    assert_int_equal(isolate(s, "scores", NULL), 0);
    expect_effect(s, EFFECT_HEALED, softmax | BIT(lse));
    expect_effect(s, EFFECT_STILL_WRONG, BIT(s) | BIT(u) | BIT(o));
    assert_int_equal(isolate(s, "u", NULL), 0);
    expect_effect(s, EFFECT_HEALED, softmax | BIT(lse) | BIT(o));
    expect_effect(s, EFFECT_STILL_WRONG, BIT(s) | BIT(u));
    session_free(s);
}

static void a_clean_kernel_stays_clean(void **state)
{
    (void)state;
    static const struct {
        const char *scenario, *stages[12];
    } runs[] = {{"tests/session/small.ini", {"q", "v", "s", "m", "alpha", "p", "l", "u", "o", "lse"}},
                {"docs/examples/my_attention.cu", {"scores", "softmax", "pv", "epilogue"}}};
    for (int i = 0; i < 2; i++) {
        struct session *s = run(runs[i].scenario);
        assert_string_equal(session_verdict_word(s), "CLEAN");
        for (const char *const *stage = runs[i].stages; *stage; stage++) {
            assert_int_equal(isolate(s, *stage, NULL), 0);
            expect_effect(s, EFFECT_STILL_WRONG, 0);
            expect_effect(s, EFFECT_WRONG_NOW, 0);
            expect_effect(s, EFFECT_HEALED, 0);
            assert_string_equal(session_verdict_word(s), "CLEAN");
            for (int ch = 0; ch < ASC_CHANNELS; ch++)
                assert_int_equal(trace_unfed(s->run.trace, (enum asc_channel)ch), 0);
        }
        session_free(s);
    }
}

/* Values of a good run heal a bad one as the reference does; other traces are refused. */
static void another_trace_feeds(void **state)
{
    (void)state;
    struct err err = {0};
    struct session *good = run("tests/session/small.ini"), *bad = run("tests/session/nan-row.ini");
    assert_int_equal(session_save(good, saved, &err), 0);
    assert_int_equal(isolate(bad, "s", saved), 0);
    expect_effect(bad, EFFECT_STILL_WRONG, BIT(s));
    assert_true(bad->run.judgement->summary.stage[asc_u].local == STAGE_OK);
    assert_true(bad->run.judgement->summary.stage[asc_o].global == STAGE_OK);
    expect_says(bad, "S still wrong on fed Q, K; m..LSE heal", "S is wrong on fed inputs: the culprit");
    assert_int_equal(session_save(bad, saved, &err), -1); /* an isolated run is no run of the kernel */
    assert_int_equal(err.code, ERR_INPUT);

    static const struct {
        const char *key, *value, *why;
    } others[] = {{"shape.q_len", "80", "different problem"},
                  {"fill.seed", "7", "not this run's inputs"},
                  {"capture.channels", "q,k,v", "does not contain s"},
                  {"capture.heads", "1", "does not contain batch 0, head 0"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct session *other = run("tests/session/small.ini");
        set(other, others[i].key, others[i].value);
        assert_int_equal(session_start(other), 0);
        assert_int_equal(session_finish(other, 0), 0);
        assert_int_equal(session_save(other, saved, &err), 0);
        assert_int_equal(isolate(bad, "m", saved), ERR_INPUT);
        if (!strstr(bad->job.err.message, others[i].why))
            fail_msg("`%s` lacks `%s`", bad->job.err.message, others[i].why);
        session_free(other);
    }
    /* What was shown is still there. */
    expect_effect(bad, EFFECT_STILL_WRONG, BIT(s));
    assert_int_equal(isolate(bad, "m", "/nonexistent"), ERR_INPUT);
    session_free(bad);
    session_free(good);
}

static void what_can_not_be_isolated_says_so(void **state)
{
    (void)state;
    struct isolation_request request;
    struct err err = {0};
    struct session *s = run("tests/session/small.ini"), *opened;
    assert_int_equal(isolation_parse("sofmax", NULL, &request, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "scores, softmax, pv, epilogue"));
    assert_int_equal(session_save(s, saved, &err), 0);
    isolation_of_stage(asc_s, &request);
    assert_int_equal(session_open(saved, &opened, &err), 0);
    assert_int_equal(session_start(opened), 0);
    assert_int_equal(session_finish(opened, 0), 0);
    assert_int_equal(session_isolate(opened, &request), -1);
    assert_true(opened->message[0] != '\0');
    session_free(opened);

    set(s, "capture.channels", "u,o");
    assert_int_equal(session_start(s), 0);
    assert_int_equal(session_isolate(s, &request), -1); /* busy */
    assert_int_equal(session_finish(s, 0), 0);
    assert_int_equal(session_isolate(s, &request), -1); /* nothing up to S is recorded */
    assert_non_null(strstr(s->message, "nothing to feed"));
    session_free(s);
}

static int set_up(void **state)
{
    (void)state;
    const int fd = mkstemp(temporary(saved, "fed"));
    if (fd < 0)
        return -1;
    close(fd);
    unlink(saved);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(saved);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_culprit_stays_wrong_and_the_rest_heals),
        cmocka_unit_test(what_a_state_begins_at_is_not_fed),
        cmocka_unit_test(a_later_culprit),
        cmocka_unit_test(two_mistakes_are_told_apart),
        cmocka_unit_test(a_clean_kernel_stays_clean),
        cmocka_unit_test(another_trace_feeds),
        cmocka_unit_test(what_can_not_be_isolated_says_so),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
