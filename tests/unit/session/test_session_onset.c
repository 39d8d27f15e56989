/* Where NaN begins in runs of real kernels, the way from root to root, and the softmax state of the cursor's rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/session/session.h"
#include "engine/verdict/onset.h"
#include "tests/unit/lib/open_scenario.h"
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct session *run(const char *path)
{
    struct session *s = open_scenario("%s.ini", path);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    return s;
}

/* Row 5 of kv tile 1 of head 1 is NaN: one row of S, all of that row of O. */
static void from_root_to_root(void **state)
{
    (void)state;
    struct session *s = run("tests/session/nan-row");
    const struct run_onset *o = s->run.judgement->onset;
    assert_non_null(o);
    const struct run_root *first = run_onset_first(o);
    assert_int_equal(o->of_stage[asc_s], o->roots);
    assert_int_equal(first->root.channel, asc_s);
    assert_int_equal(first->root.kv, 1);
    assert_int_equal(first->root.row, 5);
    assert_int_equal(first->root.members, 36);
    assert_int_equal(first->root.reached, 64);
    assert_int_equal(first->root.n_products, ONSET_PRODUCTS);
    assert_int_equal(o->outputs, 64);
    assert_int_equal(o->of_heads[ASC_CHANNELS + asc_s], 36);
    /* What nothing explains has finite operands where they are known to be. */
    struct onset_root root = first->root;
    char words[ONSET_WORDS_BYTES];
    root.origin = ORIGIN_UNKNOWN;
    s->run.judgement->n_findings = 0;
    onset_reason_words(s->run.judgement, s->run.trace, &root, words);
    assert_string_equal(words, origin_sentence(ORIGIN_UNKNOWN));
    root.product[0].a = NAN;
    onset_reason_words(s->run.judgement, s->run.trace, &root, words);
    assert_string_equal(words, "unknown: nothing known gives this of its operands");
    root.known = 0;
    root.n_products = 0;
    onset_reason_words(s->run.judgement, s->run.trace, &root, words);
    assert_string_equal(words, "unknown: nothing known gives this of its operands");
    s->at.cursor.head = 0;
    assert_int_equal(session_go_root(s, 0), 1);
    assert_int_equal(session_root(s), 0);
    assert_int_equal(s->at.cursor.head, 1);
    assert_int_equal(s->at.cursor.channel, asc_s);
    assert_int_equal(s->at.cursor.row, 5);
    assert_int_equal(session_go_root(s, 1), 0);
    assert_non_null(strstr(s->message, "last root"));
    session_free(s);
}

/* The finding of S, and where its NaN begins, in one run with these events. */
static void told(struct session *s, const struct trace_event *event, struct finding *finding,
                 char begins[ONSET_WORDS_BYTES])
{
    struct trace *t = (struct trace *)(uintptr_t)s->run.trace;
    struct trace_event *events = t->info.events, one = *event;
    const size_t n_events = t->info.n_events;
    struct finding findings[MAX_FINDINGS];
    struct cause_evidence *evidence = calloc(CAUSE_COUNT, sizeof *evidence);
    struct judge_scratch *scratch = judge_scratch_new();
    struct cause_plan *plan = calloc(1, sizeof *plan);
    struct judgement *j = s->run.judgement;
    assert_non_null(evidence);
    assert_non_null(plan);
    t->info.events = &one;
    t->info.n_events = 1;
    const int n = judgement_find(j, t, &j->summary, plan, evidence, &scratch, NULL, findings);
    assert_int_equal(n, 1);
    onset_tell(j, t, j->onset, findings, n);
    *finding = findings[0];
    memcpy(j->findings, findings, sizeof findings);
    onset_words(j, t, run_onset_first(j->onset), begins);
    t->info.events = events;
    t->info.n_events = n_events;
    free(evidence);
    free(plan);
    judge_scratch_free(scratch);
}

/* An event in what S is made by is the cause of what is wrong there, of the finding and of the onset alike; one that
   stands elsewhere, or was in another block, is not. */
static void an_event_explains(void **state)
{
    (void)state;
    struct session *s = run("tests/session/nan-row");
    const struct trace *t = s->run.trace;
    const struct trace_site *s_probe = trace_site(t, asc_s), *v_probe = trace_site(t, asc_v);
    struct trace_event e;
    struct finding f;
    char words[ONSET_WORDS_BYTES], where[300];
    assert_true(s_probe->line - v_probe->line > 2);
    trace_event_init(&e);
    static const char between[] = "between its operands and its probe, ", race[] = "a race at ",
                      unwritten[] = "it reads uninitialized memory at ",
                      waited[] = "a cp.async of it is not waited for, ";
    const struct {
        enum event_kind kind;
        const char *text, *words;
        int line, head, times, explains;
        const struct trace_site *recorder;
    } cases[] = {{EVENT_RACE, "", race, s_probe->line, 1, 1, 1, NULL},
                 {EVENT_RACE, "", race, s_probe->line, 1, 1, 1, trace_site(t, asc_k)},
                 {EVENT_RACE, "", race, s_probe->line, 1, 1, 0, v_probe},
                 {EVENT_RACE, "", race, v_probe->line + 1, 1, 1, 1, NULL},
                 {EVENT_RACE, "", race, v_probe->line, 1, 1, 0, NULL},
                 {EVENT_RACE, "", race, s_probe->line + 1, 1, 1, 0, NULL},
                 {EVENT_RACE, "", race, s_probe->line, 0, 1, 0, NULL},
                 {EVENT_RACE, "", race, s_probe->line, 0, 9, 1, NULL},
                 {EVENT_UNINITIALIZED, "", unwritten, s_probe->line, 1, 1, 1, NULL},
                 {EVENT_FP_INVALID, "", between, s_probe->line, 0, 1, 1, NULL},
                 {EVENT_NAN_STORE, "", between, s_probe->line, 1, 1, 0, NULL},
                 {EVENT_LIMIT, "", between, s_probe->line, 1, 1, 0, NULL},
                 {EVENT_NEVER_WAITED, "its copy from K in block", waited, 1, 1, 1, 1, NULL},
                 {EVENT_NEVER_WAITED, "its copy from V in block", waited, 1, 1, 1, 0, NULL},
                 {EVENT_NEVER_WAITED, "its copy from K in block", waited, 1, 0, 1, 0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *name = strrchr(s_probe->file, '/');
        e.kind = cases[i].kind;
        snprintf(e.text, sizeof e.text, "%s", cases[i].text);
        snprintf(e.file, sizeof e.file, "%s", s_probe->file);
        snprintf(where, sizeof where, "%s%s:%d", cases[i].words, name ? name + 1 : s_probe->file, cases[i].line);
        e.line = cases[i].line;
        e.batch = 0;
        e.head = cases[i].head;
        e.q_tile = 1;
        e.kv_tile = 1;
        e.times = cases[i].times;
        snprintf(e.recorder_file, sizeof e.recorder_file, "%s", cases[i].recorder ? cases[i].recorder->file : "");
        e.recorder_line = cases[i].recorder ? cases[i].recorder->line : 0;
        told(s, &e, &f, words);
        assert_int_equal(f.event, cases[i].explains);
        assert_int_equal(strstr(f.text, "no known cause") == NULL, cases[i].explains);
        assert_int_equal(strstr(f.text, where) != NULL, cases[i].explains);
        assert_int_equal(strstr(words, where) != NULL, cases[i].explains);
        assert_int_equal(strstr(words, "nothing known gives this") == NULL, cases[i].explains);
    }
    /* So is a named cause of that stage. */
    s->run.judgement->findings[0].cause = CAUSE_s_scaled_twice;
    onset_words(s->run.judgement, s->run.trace, run_onset_first(s->run.judgement->onset), words);
    assert_non_null(strstr(words, cause_sentence(CAUSE_s_scaled_twice)));
    session_free(s);
}

static void nothing_begins_in_a_clean_run(void **state)
{
    (void)state;
    struct session *s = run("tests/session/small");
    assert_null(s->run.judgement->onset);
    assert_int_equal(s->run.judgement->state_break.slot, -1);
    assert_int_equal(session_go_root(s, 0), 0);
    assert_int_equal(session_root(s), -1);
    /* The state belongs to the cursor's slot, as long as a view wants it. */
    assert_null(s->tile.states.steps);
    session_want_states(s, 1);
    assert_int_equal(s->tile.states.n_steps, s->run.trace->layout.kv_tiles);
    assert_int_equal(s->tile.states_slot, session_slot(s));
    assert_int_equal(s->tile.states.first_step, -1);
    session_step_head(s, 1);
    assert_int_equal(s->tile.states_slot, session_slot(s));
    session_want_states(s, 0);
    assert_null(s->tile.states.steps);
    session_free(s);
}

static void state_breaks_at_its_step(void **state)
{
    (void)state;
    struct session *s = run("scenarios/bugs/m-not-carried");
    const struct state_break *b = &s->run.judgement->state_break;
    assert_int_equal(b->slot, 0);
    assert_int_equal(b->kv, 1);
    assert_int_equal(b->broken, 1u << INVARIANT_M_RISES | 1u << INVARIANT_ALPHA_ONE);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_root_to_root),
        cmocka_unit_test(an_event_explains),
        cmocka_unit_test(nothing_begins_in_a_clean_run),
        cmocka_unit_test(state_breaks_at_its_step),
    };
    return cmocka_run_group_tests_name("session: onset and softmax state", tests, NULL, NULL);
}
