/* Kernels built without probes, and set beside the same ones with probes: where both compute the same, and where the
   probes change the output, the end of the run, or nothing that the kernel would not change by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/session.h"
#include "engine/study/probe_effect.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* kernels/v2b_scalar.cu at (1,2,100,64) with a patch of tests/session/ ("": none). */
static struct session *run(const char *patch, const char *probes)
{
    struct scenario scenario;
    struct runner_paths paths;
    struct session *s = NULL;
    struct err err = {0};
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    scenario_init(&scenario);
    snprintf(scenario.kernel, sizeof scenario.kernel, "%s/kernels/v2b_scalar.cu", paths.root);
    if (*patch)
        snprintf(scenario.patch, sizeof scenario.patch, "%s/tests/session/%s.patch", paths.root, patch);
    if (scenario_parse_shape("1,2,100,64", &scenario.problem, &err) != 0 ||
        scenario_set(&scenario, "scenario.probes", probes, &err) != 0 || session_open_adhoc(&scenario, &s, &err) != 0 ||
        !s) {
        fail_msg("%s: %s", err.where, err.message);
        abort(); /* what fail_msg() does not say: it never returns */
    }
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    assert_non_null(s->run.trace);
    return s;
}

static void expect_effect(const char *patch, enum probe_effect_verdict verdict, struct probe_effect *effect)
{
    struct err err = {0};
    struct session *s = run(patch, "on");
    assert_int_equal(s->run.trace->info.probes_off, 0);
    if (probe_effect_find(&s->subject.paths, &s->subject.scenario, s->run.trace, NULL, effect, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(effect->verdict, verdict);
    session_free(s);
}

static void nothing_is_recorded_and_the_output_judged(void **state)
{
    (void)state;
    struct session *s = run("", "off");
    assert_int_equal(s->job.phase, PHASE_READY);
    assert_string_equal(session_verdict_word(s), "CLEAN");
    assert_int_equal(s->run.trace->info.probes_off, 1);
    assert_true(s->run.trace->info.probes_off);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const int output = ch == asc_o || ch == asc_lse;
        const struct stage_summary *stage = &s->run.judgement->summary.stage[ch];
        assert_int_equal(stage->local, output ? STAGE_OK : STAGE_UNRECORDED);
        assert_int_equal(stage->elements, !output ? 0 : ch == asc_o ? 2 * 100 * 64 : 2 * 100);
        assert_true(s->run.trace->layout.channel[ch].dtype < 0);
    }
    session_free(s);
}

static void a_mistake_shows_in_the_output(void **state)
{
    (void)state;
    struct session *s = run("o-wrong-column", "off");
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->run.judgement->summary.culprits, 1u << asc_o);
    session_free(s);
    s = run("probes-change-o", "off");
    assert_string_equal(session_verdict_word(s), "FAIL");
    assert_int_equal(s->run.judgement->summary.stage[asc_o].bad_local, 64); /* a column of each lane, in two heads */
    session_free(s);
    s = run("probes-change-o", "on");
    assert_string_equal(session_verdict_word(s), "CLEAN");
    session_free(s);
}

static void the_same_bits(void **state)
{
    (void)state;
    struct probe_effect effect;
    char text[PROBE_EFFECT_WORDS];
    expect_effect("", PROBES_CHANGE_NOTHING, &effect);
    assert_int_equal(effect.difference.channel[asc_o].compared, 2 * 100 * 64);
    assert_int_equal(effect.difference.channel[asc_lse].compared, 2 * 100);
    probe_effect_channel(&effect, asc_o, text);
    assert_string_equal(text, "");
    expect_effect("o-wrong-column", PROBES_CHANGE_NOTHING, &effect); /* wrong, and the same */
}

static void other_bits(void **state)
{
    (void)state;
    struct probe_effect effect;
    char text[PROBE_EFFECT_WORDS];
    expect_effect("probes-change-o", PROBES_CHANGE_OUTPUT, &effect);
    const struct channel_difference *d = &effect.difference.channel[asc_o];
    assert_int_equal(d->compared - d->same, 64);
    assert_int_equal(probe_effect_beyond(&effect, asc_o), 64);
    assert_int_equal(d->first.place[1], 0);
    assert_int_equal(d->first.place[2], 1);
    assert_int_equal(d->first.row, 3);
    assert_int_equal(d->first.col, 0);
    assert_true(d->first.got[1] == 1);
    probe_effect_channel(&effect, asc_o, text);
    assert_non_null(
        strstr(text, "64 of 12800 elements differ bitwise, 64 of them out of bounds; first o[b0,h0,q1] row 3"));
    probe_effect_channel(&effect, asc_lse, text);
    assert_string_equal(text, "");
}

static void not_the_probes_doing(void **state)
{
    (void)state;
    struct probe_effect effect;
    expect_effect("differs-each-run", PROBES_NO_MATTER, &effect);
    assert_true(effect.difference.channel[asc_o].same < effect.difference.channel[asc_o].compared);
}

static void another_end(void **state)
{
    (void)state;
    struct probe_effect effect;
    expect_effect("crashes-without-probes", PROBES_CHANGE_STATUS, &effect);
    assert_int_equal(effect.status[0], RUN_COMPLETE);
    assert_int_equal(effect.status[1], RUN_CRASHED);
    assert_true(effect.status_text[0]);
}

static void neither_ends(void **state)
{
    (void)state;
    struct probe_effect effect;
    struct err err = {0};
    struct session *s = run("o-nan", "on");
    s->run.trace->info.status = RUN_CRASHED;
    snprintf(s->subject.scenario.patch, sizeof s->subject.scenario.patch,
             "%s/tests/session/crashes-without-probes.patch", s->subject.paths.root);
    assert_int_equal(probe_effect_find(&s->subject.paths, &s->subject.scenario, s->run.trace, NULL, &effect, &err), -1);
    assert_int_equal(err.code, ERR_RUN);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_recorded_and_the_output_judged),
        cmocka_unit_test(a_mistake_shows_in_the_output),
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(other_bits),
        cmocka_unit_test(not_the_probes_doing),
        cmocka_unit_test(another_end),
        cmocka_unit_test(neither_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
