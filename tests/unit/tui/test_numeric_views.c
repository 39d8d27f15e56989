/* Onset, softmax state, mask, bias and findings of runs that were judged, as text against tests/screens/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/session/look.h"
#include "engine/session/session.h"
#include "tests/unit/lib/golden.h"
#include "tests/unit/lib/open_scenario.h"
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* settings: NULL-terminated keys and values on top of the scenario's. */
static struct session *run(const char *scenario, const char *const *settings)
{
    struct session *s = open_scenario("%s.ini", scenario);
    struct err err = {0};
    for (; settings && *settings; settings += 2)
        if (scenario_set(&s->subject.scenario, settings[0], settings[1], &err) != 0)
            fail_msg("%s: %s", settings[0], err.message);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    /* What a run takes is not the same each time. */
    s->run.trace->info.seconds = 0.041;
    s->run.trace->info.workers = 2;
    return s;
}

static void where_nan_begins(void **state)
{
    (void)state;
    static const struct {
        const char *scenario, *screen;
    } cases[] = {{"scenarios/bugs/m-unguarded", "onset-no-key"},
                 {"tests/session/nan-row", "onset-score"},
                 {"scenarios/bugs/flash-attention-1745", "onset-padding"},
                 {"scenarios/bugs/fp8-exponent-overflow", "onset-overflow"},
                 {"scenarios/bugs/cutlass-2336", "onset-masked"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct session *s = run(cases[i].scenario, NULL);
        assert_int_equal(session_go_root(s, 0), 1);
        golden_view(s, VIEW_ONSET, NULL, cases[i].screen);
        session_free(s);
    }
}

static void masks_that_were_applied(void **state)
{
    (void)state;
    static const char *const unrecorded[] = {"capture.channels", "q, k, v, o", NULL};
    static const struct {
        const char *scenario, *screen;
        const char *const *settings;
    } cases[] = {{"scenarios/bugs/causal-off-by-one", "mask-diagonal", NULL},
                 {"scenarios/bugs/cutlass-2336", "mask-corner", NULL},
                 {"scenarios/bugs/kv-tail-not-masked", "mask-tail", NULL},
                 {"scenarios/bugs/causal-off-by-one", "mask-unknown", unrecorded}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct session *s = run(cases[i].scenario, cases[i].settings);
        golden_view(s, VIEW_MASK, NULL, cases[i].screen);
        session_free(s);
    }
}

/* m falls; the frame of P is another than that of l and U; NaN in one row; and one that holds throughout. */
static void softmax_states(void **state)
{
    (void)state;
    static const struct {
        const char *scenario, *screen;
    } cases[] = {{"scenarios/bugs/m-not-carried", "state-m-falls"},
                 {"scenarios/bugs/mslk-242", "state-two-frames"},
                 {"tests/session/nan-row", "state-nan"},
                 {"tests/session/small", "state-holds"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct session *s = run(cases[i].scenario, NULL);
        session_want_states(s, 1);
        golden_view(s, VIEW_STATE, NULL, cases[i].screen);
        session_free(s);
    }
}

static void biased_rounding(void **state)
{
    (void)state;
    static const char *const small[] = {"shape.heads", "2", "shape.q_len", "128", "shape.kv_len", "256", NULL};
    static const struct {
        const char *scenario, *screen;
        enum asc_channel channel;
    } cases[] = {{"scenarios/bugs/s-quarter-ulp", "bias-quarter-ulp", asc_s},
                 {"scenarios/bugs/p-rounded-down", "bias-conversion", asc_u},
                 {"scenarios/bugs/o-rounded-down", "bias-output", asc_o}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct session *s = run(cases[i].scenario, small);
        session_want_rounding(s);
        session_finish_rounding(s);
        s->at.cursor.channel = cases[i].channel;
        golden_view(s, VIEW_BIAS, NULL, cases[i].screen);
        session_free(s);
    }
}

static void findings(void **state)
{
    (void)state;
    struct session *s = run("scenarios/bugs/two-mistakes", NULL);
    for (int i = 0; i < s->run.judgement->n_findings; i++) { /* a sample, which goes with the threads */
        s->run.judgement->findings[i].evidence.chance_tried = 16384;
        s->run.judgement->findings[i].evidence.chance_hit = 0;
    }
    golden_view(s, VIEW_FINDINGS, NULL, "findings-two");
    session_free(s);
}

/* What a search for a rule has found, and what it has tried where it has found none; how many follows the grammar. */
static void expect_rule(const char *scenario, const char *golden)
{
    struct session *s = run(scenario, NULL);
    struct finding *f = &s->run.judgement->findings[0];
    assert_true(f->tried > 10);
    f->tried = 32;
    if (f->n_rules) {
        assert_true(fabs(f->rule[0].price - f->rule[0].cost - log2((double)f->rule[0].tried) - 30) < 1e-6);
        f->rule[0].tried = 32;
        f->rule[0].price = f->rule[0].cost + 35;
    }
    golden_view(s, VIEW_FINDINGS, NULL, golden);
    session_free(s);
}

static void rules(void **state)
{
    (void)state;
    expect_rule("scenarios/blind-60/lower-rows-borrow-alpha", "findings-rule");
    expect_rule("scenarios/blind-20af/turners-step-by-four", "findings-pattern");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nan_begins), cmocka_unit_test(masks_that_were_applied),
        cmocka_unit_test(softmax_states),   cmocka_unit_test(biased_rounding),
        cmocka_unit_test(findings),         cmocka_unit_test(rules),
    };
    return cmocka_run_group_tests_name("views of numbers", tests, NULL, NULL);
}
