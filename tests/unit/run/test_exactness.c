/* A kernel on tensor cores, run, recognized and asked for every bit; the same kernel with mistakes in it, each named at
   its stage; and with a tail that is summed in another way, which is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/oracle/fingerprint.h"
#include "engine/session/session.h"
#include "engine/verdict/exactness.h"
#include "tests/unit/lib/open_scenario.h"
#include <stdio.h>
#include <string.h>

static struct session *run_as(const char *name, const char *tensor_core)
{
    struct session *s = open_scenario("tests/session/%s.ini", name);
    struct err err = {0};
    if (tensor_core && scenario_set(&s->subject.scenario, "scenario.tensor_core", tensor_core, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    if (s->job.phase != PHASE_READY)
        fail_msg("%s: %s: %s", name, s->job.err.where, s->job.err.message);
    return s;
}

static struct session *run(const char *name)
{
    return run_as(name, NULL);
}

static void expect_words(const struct session *s, enum asc_channel ch, const char *words)
{
    char got[256];
    exactness_words(s->run.judgement, s->run.trace, ch, got, sizeof got);
    assert_string_equal(got, words);
}

static void right(void **state)
{
    (void)state;
    struct session *s = run("wmma");
    struct exactness x;
    assert_string_equal(session_verdict_word(s), "CLEAN");
    expect_words(s, asc_s, "bit-equal to h100");
    expect_words(s, asc_u, "bit-equal to h100");
    expect_words(s, asc_p, "");
    assert_int_equal(exactness_of(s->run.judgement, s->run.trace, asc_m, &x), 0);
    assert_int_equal(exactness_of(s->run.judgement, s->run.trace, asc_u, &x), 1);
    assert_string_equal(x.declared, "mma-f16");
    assert_int_equal(x.models, 1u << TENSOR_CORE_H100);
    assert_int_equal(x.tiles.judged, 4 * 4 * 4);
    assert_int_equal(x.tiles.n, 4 * 4 * 4);
    assert_int_equal(x.tiles.off + x.tiles.unequal + x.tiles.unequal_tiles, 0);
    assert_int_equal(x.tiles.first_unequal.slot, -1);
    session_free(s);
    s = run("small");
    assert_int_equal(exactness_of(s->run.judgement, s->run.trace, asc_s, &x), 0);
    session_free(s);
}

/* Every architecture that the executor can stand for is recognized by its bits, and said. */
static void architectures(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"v100", "v100"}, {"a100", "a100"}, {"ada", "a100"},
                                           {"h100", "h100"}, {"b200", "h100"}, {"f32", "f32"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct session *s = run_as("wmma", names[i][0]);
        char words[64];
        snprintf(words, sizeof words, "bit-equal to %s", names[i][1]);
        assert_string_equal(session_verdict_word(s), "CLEAN");
        assert_string_equal(s->run.trace->info.tensor_core, names[i][1]);
        expect_words(s, asc_s, words);
        expect_words(s, asc_u, words);
        session_free(s);
    }
}

/* Mistakes leave the stages that do not have them bit-equal. */
static void mistakes(void **state)
{
    (void)state;
    static const char bounds[] = "no tensor-core model fits: judged by bounds", bits[] = "bit-equal to h100";
    static const struct {
        const char *name;
        enum asc_channel culprit;
        const char *s, *u;
    } cases[] = {
        {"wmma-scale-in-f16", asc_s, bounds, bits},
        {"wmma-last-chunk-dropped", asc_s, bounds, bits},
        {"wmma-accumulator-kept", asc_s, bounds, bits},
        {"wmma-keys-dropped", asc_u, bits, bounds},
        {"wmma-one-bit", asc_s, "h100; 4 elements differ bitwise", bits},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session *s = run(cases[i].name);
        if (s->run.judgement->summary.culprits != 1u << cases[i].culprit)
            fail_msg("%s: culprits %x", cases[i].name, s->run.judgement->summary.culprits);
        expect_words(s, asc_s, cases[i].s);
        expect_words(s, asc_u, cases[i].u);
        session_free(s);
    }
}

/* What no bound would show: one bit of one element in each head. */
static void one_bit(void **state)
{
    (void)state;
    struct session *s = run("wmma-one-bit");
    const struct summary *sum = &s->run.judgement->summary;
    assert_int_equal(sum->stage[asc_s].bad_local, 4);
    assert_int_equal(sum->stage[asc_s].bad_global, 0);
    assert_int_equal(sum->first.kv, 1);
    assert_int_equal(s->at.cursor.row, 5);
    assert_int_equal(s->at.cursor.col, 70 - 64);
    session_free(s);
}

static void scalar_tail(void **state)
{
    (void)state;
    struct session *s = run("wmma-scalar-tail");
    struct exactness x;
    char words[256];
    assert_string_equal(session_verdict_word(s), "CLEAN");
    assert_int_equal(exactness_of(s->run.judgement, s->run.trace, asc_s, &x), 1);
    assert_int_equal(x.tiles.unequal_tiles, 4 * 4);
    assert_true(x.tiles.unequal > 4 * 200 * 8 / 4);
    assert_int_equal(x.tiles.first_unequal.kv, 3);
    assert_int_equal(x.tiles.off, 0);
    exactness_words(s->run.judgement, s->run.trace, asc_s, words, sizeof words);
    assert_non_null(strstr(words, "in 16 of 64 tiles, first b0 h0 q0 k3, are summed differently"));
    expect_words(s, asc_u, "bit-equal to h100");
    session_free(s);
}

/* Why bounds decide, in the order in which it is found out. */
static void reasons(void **state)
{
    (void)state;
    struct session *s = run("wmma");
    struct fingerprint_stage *f = &s->run.judgement->fingerprint->s;
    memset(f->equal, 0, sizeof f->equal);
    expect_words(s, asc_s, "no tensor-core model fits: judged by bounds");
    memset(f->told, 0, sizeof f->told);
    expect_words(s, asc_s, "the sums are the same in any order: judged by bounds");
    f->odd = 1;
    expect_words(s, asc_s, "too few of the sampled sums are numbers: judged by bounds");
    f->finite = 0;
    expect_words(s, asc_s, "all sampled sums are NaN or infinite: judged by bounds");
    f->odd = 0;
    expect_words(s, asc_s, "all sampled sums are masked: judged by bounds");
    f->blocks = 0;
    expect_words(s, asc_s, "its operands are not recorded as the tensor core took them: judged by bounds");
    f->n = 0;
    expect_words(s, asc_s, "the arithmetic after the product is not declared to the bit: judged by bounds");
    char models[64];
    exactness_models(1u << TENSOR_CORE_A100 | 1u << TENSOR_CORE_H100, models, sizeof models);
    assert_string_equal(models, "a100 or h100");
    session_free(s);
}

/* The bound that is shown is the one that is used. */
static void formulas(void **state)
{
    (void)state;
    struct asc_conventions c = {0};
    char text[256];
    bound_formula(asc_s, &c, 0, 64, 32, text, sizeof text);
    assert_string_equal(text, "γ(65) c Σ|q k|, γ(n) = n u/(1 - n u), u = 2⁻²⁴");
    bound_formula(asc_u, &c, 0, 64, 32, text, sizeof text);
    assert_string_equal(text, "γ(34) (|α u_prev| + Σ|p v|)");
    c.acc_s = ASC_ACC_MMA_F16; /* the loosest it may have been: a V100, 4 products to a chunk, 23 bits */
    c.acc_u = ASC_ACC_WGMMA_E4M3;
    bound_formula(asc_s, &c, 0, 64, 32, text, sizeof text);
    assert_non_null(strstr(text, "(16 (5 2^-23 + 2^-23) + 1 u) c Σ|q k|"));
    bound_formula(asc_s, &c, 1u << TENSOR_CORE_H100, 64, 32, text, sizeof text);
    assert_non_null(strstr(text, "γ(65) c Σ|q k|")); /* a kernel may leave them aside, and f32 may err by more */
    bound_formula(asc_u, &c, 0, 64, 128, text, sizeof text);
    assert_string_equal(text, "(4 (33 2^-13 + 2^-13) + 2 u) (|α u_prev| + Σ|p v|)");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        bound_formula((enum asc_channel)ch, &c, 0, 64, 64, text, sizeof text);
        assert_true(text[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right),    cmocka_unit_test(architectures), cmocka_unit_test(mistakes),
        cmocka_unit_test(one_bit),  cmocka_unit_test(scalar_tail),   cmocka_unit_test(reasons),
        cmocka_unit_test(formulas),
    };
    return cmocka_run_group_tests_name("exactness", tests, NULL, NULL);
}
