/* Tensor cores and the oracle: kernels made of the emulator are recognized and asked for every bit, single wrong bits
   are found, and what nobody recognizes is left to bounds. */
#include "tests/unit/lib/product_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct setup setups[] = {
    {.core = TENSOR_CORE_V100, .type = DTYPE_F16, .acc = ASC_ACC_MMA_F16},
    {.core = TENSOR_CORE_A100, .type = DTYPE_F16, .acc = ASC_ACC_MMA_F16},
    {.core = TENSOR_CORE_H100, .type = DTYPE_F16, .acc = ASC_ACC_MMA_F16},
    {.core = TENSOR_CORE_F32, .type = DTYPE_F16, .acc = ASC_ACC_MMA_F16},
    {.core = TENSOR_CORE_A100, .type = DTYPE_BF16, .acc = ASC_ACC_MMA_BF16},
    {.core = TENSOR_CORE_H100, .type = DTYPE_BF16, .acc = ASC_ACC_MMA_BF16},
    {.core = TENSOR_CORE_MMA_E4M3, .type = DTYPE_E4M3, .acc = ASC_ACC_MMA_E4M3},
    {.core = TENSOR_CORE_ADA_E4M3, .type = DTYPE_E4M3, .acc = ASC_ACC_MMA_E4M3},
    {.core = TENSOR_CORE_ADA_E4M3, .type = DTYPE_E4M3, .acc = ASC_ACC_ADA_E4M3},
    {.core = TENSOR_CORE_WGMMA_E4M3, .type = DTYPE_E4M3, .acc = ASC_ACC_WGMMA_E4M3},
    {.core = TENSOR_CORE_WGMMA_E4M3_PROMOTED, .type = DTYPE_E4M3, .acc = ASC_ACC_WGMMA_E4M3},
    {.core = TENSOR_CORE_H100_F16, .type = DTYPE_F16, .acc = ASC_ACC_MMA_F16_F16},
    {.core = TENSOR_CORE_WGMMA_E4M3_F16, .type = DTYPE_E4M3, .acc = ASC_ACC_WGMMA_E4M3_F16},
};
enum { SETUPS = sizeof setups / sizeof setups[0] };

/* All f16, halves and quarters between two of them and their neighbors: codes are dtype_store()'s, and what may not be
   rounded is told from what need not be. */
static void halves(void **state)
{
    static const double between[] = {0, 0.25, 0.5, 0.75, 0x1p-30, 0.5 - 0x1p-30, 0.5 + 0x1p-30};
    (void)state;
    for (unsigned code = 0; code <= UINT16_MAX; code++) {
        const uint16_t here = (uint16_t)code, next = (uint16_t)(code + 1);
        const double low = dtype_load(DTYPE_F16, &here, 0), high = dtype_load(DTYPE_F16, &next, 0);
        for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
            const double x = isfinite(high) ? low + between[i] * (high - low) : low + between[i] * 32;
            uint16_t wanted, got;
            dtype_store(DTYPE_F16, &wanted, 0, x);
            const bool is_number = fabs(x) < 65520;
            assert_int_equal(product_halves(&x, 1, true, &got), is_number);
            if (is_number)
                assert_int_equal(got, wanted);
            assert_int_equal(product_halves(&x, 1, false, &got), is_number && dtype_load(DTYPE_F16, &wanted, 0) == x);
        }
    }
}

/* Every model, in every unit, masked and not, with P recorded before and after rounding: recognized, and all equal.
   Positive values of few bits have exact sums: those of bf16 tell nothing, and bounds decide. */
static void recognized(void **state)
{
    (void)state;
    for (int i = 0; i < SETUPS; i++) {
        for (int variant = 0; variant < 6; variant++) {
            struct setup s = setups[i];
            s.seed = (unsigned)(i * 10 + variant + 1);
            s.unit = variant % 3;
            s.join = variant % 3;
            s.causal = variant % 2 ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE;
            s.f32_p = variant > 2;
            s.positive = variant == 4;
            expect_exact(&s, s.positive && s.type == DTYPE_BF16 ? -1 : (int)s.core, (int)s.core);
        }
        struct setup folded = setups[i];
        folded.unit = ASC_UNIT_LOG2;
        folded.fold = ASC_FOLD_LOG2;
        folded.seed = 7;
        struct fingerprint f;
        struct run *run = run_new(&folded);
        run->c.conventions.q_fold = ASC_FOLD_NONE;
        run->c.conventions.s_unit = run->c.conventions.m_unit = ASC_UNIT_RAW;
        judge(run, &f);
        assert_int_equal(exact(run, asc_s), (int)folded.core);
        free(run);
    }
}

/* Instructions that the compiler makes of products from zero and an addition, which it fused with the rescaling. One
   bit beside that is found. */
static void fused_rescaling(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; i < SETUPS; i++) {
        struct setup s = setups[i];
        if (!tensor_core_step(s.core))
            continue;
        s.join = PRODUCT_FUSES;
        s.seed = 71 + (unsigned)i;
        expect_exact(&s, (int)s.core, (int)s.core);
        s.fault = U_ONE_BIT;
        struct fingerprint f;
        struct run *run = run_new(&s);
        judge(run, &f);
        assert_int_equal(bad(run, asc_u, 0), 1);
        free(run);
        n++;
    }
    assert_true(n > 0);
}

/* f16 accumulators with f32 or half arithmetic around them, U recorded as f32 or as the f16 it is: recognized, and one
   f16 step in one element of U is found, which no bound shows. */
static void f16_accumulators(void **state)
{
    (void)state;
    for (int i = 0; i < SETUPS * 18; i++) {
        struct setup s = setups[i / 18];
        if (!sums_in_f16(&s))
            continue;
        s.rounds = i % 3;
        s.join = i / 3 % 3;
        s.f16_u = i / 9 % 2;
        s.unit = (i + i / 3) % 3;
        s.seed = (unsigned)i;
        /* An f32 U that is recorded as f16 is not what the next tile goes on with: bounds decide. */
        const int lost = s.f16_u && !s.rounds && s.join != PRODUCT_CARRIES;
        expect_exact(&s, (int)s.core, lost ? -1 : (int)s.core);
        if (!s.f16_u || lost)
            continue;
        struct fingerprint f;
        struct run *run = run_new(&s);
        run->u16[TILES - 1][5 * D + 63] ^= 1;
        judge(run, &f);
        assert_int_equal(bad(run, asc_u, 0), 1);
        run->c.fingerprint = NULL;
        assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
        assert_int_equal(bad(run, asc_u, 0), 0);
        free(run);
    }
}

/* A fault of one bit, or in one tile of the run: found wherever it changes a value, and nothing else is blamed. */
static void last_bits(void **state)
{
    (void)state;
    for (int i = 0; i < SETUPS; i++) {
        const enum fault faults[] = {S_ONE_BIT, U_ONE_BIT, S_LAST_PRODUCT, S_QUARTER_ULP, S_TRUNCATED_SCALE};
        for (size_t j = 0; j < sizeof faults / sizeof faults[0]; j++) {
            struct setup s = setups[i];
            s.unit = ASC_UNIT_SCALED;
            s.seed = (unsigned)(i + 20);
            struct fingerprint f;
            struct run *right = run_new(&s);
            s.fault = faults[j];
            struct run *run = run_new(&s);
            uint32_t changed = 0;
            for (int e = 0; e < TILES * BR * BC; e++)
                changed += faults[j] == U_ONE_BIT
                               ? run->u[e / (BR * D)][e % (BR * D)] != right->u[e / (BR * D)][e % (BR * D)]
                               : run->s[e / (BR * BC)][e % (BR * BC)] != right->s[e / (BR * BC)][e % (BR * BC)];
            judge(run, &f);
            const enum asc_channel ch = faults[j] == U_ONE_BIT ? asc_u : asc_s;
            if (bad(run, ch, 0) != changed || !changed)
                fail_msg("%s, fault %d: %u elements found of %u", tensor_core_name(s.core), (int)faults[j],
                         bad(run, ch, 0), changed);
            assert_int_equal(bad(run, ch == asc_s ? asc_u : asc_s, 0), 0);
            /* What bounds alone would have found. */
            run->c.fingerprint = NULL;
            assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
            if (i == 2)
                print_message("# fault %d: %u elements changed, bounds alone find %u\n", (int)faults[j], changed,
                              bad(run, ch, 0));
            if (faults[j] != S_LAST_PRODUCT)
                assert_int_equal(bad(run, ch, 0), 0);
            free(run);
            free(right);
        }
    }
}

/* A correct kernel that computes its last tile, or the last columns of it, in another way: nothing is off, and where it
   is not bit-equal is said. A mistake there shows as under any bound, and what is wrong elsewhere to the bit. */
static void another_way(void **state)
{
    (void)state;
    struct fingerprint f;
    for (int i = 0; i < SETUPS; i++) {
        for (int fault = SCALAR_TAIL; fault <= SCALAR_TAIL_ONE_FAR; fault++) {
            struct setup s = setups[i];
            s.unit = ASC_UNIT_SCALED;
            s.join = i % 3;
            s.seed = (unsigned)(i + 70);
            s.fault = (enum fault)fault;
            struct run *run = run_new(&s);
            judge(run, &f);
            assert_int_equal(exact(run, asc_s), (int)s.core);
            assert_int_equal(exact(run, asc_u), (int)s.core);
            if (bad(run, asc_u, 0))
                fail_msg("%s, fault %d: %u elements of U off, %u not bit-equal", tensor_core_name(s.core), fault,
                         bad(run, asc_u, 0), run->out[(TILES - 1) * ASC_CHANNELS + (int)asc_u].local.unequal);
            for (int tile = 0; tile < TILES - 1; tile++)
                assert_int_equal(run->out[tile * ASC_CHANNELS + asc_s].local.unequal +
                                     run->out[tile * ASC_CHANNELS + asc_u].local.unequal,
                                 0);
            const struct verdict *last = &run->out[(TILES - 1) * ASC_CHANNELS + (int)asc_s].local;
            const uint32_t off = bad(run, asc_s, 0);
            /* Sums of e4m3 products that are not cut to 13 bits are exact in f32, whatever adds them. */
            const int tells = s.core != TENSOR_CORE_MMA_E4M3;
            if (fault == SCALAR_TAIL && (off || (tells && last->unequal < BR * BC / 4)))
                fail_msg("%s: %u elements off, %u not bit-equal", tensor_core_name(s.core), off, last->unequal);
            if (fault == SCALAR_COLUMNS && (off || (tells && last->unequal < BR * 2) || last->unequal > BR * 8))
                fail_msg("%s: %u elements off, %u not bit-equal in columns", tensor_core_name(s.core), off,
                         last->unequal);
            if (fault == SCALAR_TAIL_LAST_PRODUCT)
                assert_true(off > BR * BC * 9 / 10);
            if (fault == SCALAR_TAIL_ONE_FAR) /* with its fragment */
                assert_true(off >= 1 && off <= 16 * 8 && last->count[CLASS_OFF] == off);
            const struct verdict *u = &run->out[(TILES - 1) * ASC_CHANNELS + (int)asc_u].local;
            assert_int_equal(u->unequal > 0, fault != SCALAR_COLUMNS);
            free(run);
        }
    }
}

/* A mistake that no bound can show and that leaves nothing of a tile's bits: not blamed, for it could be another way of
   summing, but counted, every element of it. */
static void counted(void **state)
{
    (void)state;
    struct fingerprint f;
    for (int i = 0; i < SETUPS; i++) {
        struct setup s = setups[i];
        s.seed = (unsigned)(i + 90);
        struct run *right = run_new(&s);
        s.fault = S_CUT;
        struct run *run = run_new(&s);
        uint32_t changed = 0;
        for (int e = 0; e < BR * BC; e++)
            changed += run->s[1][e] != right->s[1][e];
        judge(run, &f);
        const uint32_t unequal = run->out[ASC_CHANNELS + (int)asc_s].local.unequal;
        if (s.type != DTYPE_E4M3 && !sums_in_f16(&s) && !changed) /* those sums have no such bits */
            fail_msg("%s: nothing changed", tensor_core_name(s.core));
        if (exact(run, asc_s) != (int)s.core || bad(run, asc_s, 0) + unequal != changed)
            fail_msg("%s: %u elements changed, %u off, %u counted", tensor_core_name(s.core), changed,
                     bad(run, asc_s, 0), unequal);
        free(run);
        free(right);
    }
}

/* Bounds decide where no model fits: an order nobody knows, a bias in every element, sums that any arithmetic gets
   exact, products that are no tensor core's at all. */
static void not_recognized(void **state)
{
    (void)state;
    struct fingerprint f;
    for (int i = 0; i < SETUPS; i++) {
        struct setup s = setups[i];
        s.seed = (unsigned)i + 40;
        s.unit = ASC_UNIT_SCALED;
        s.permuted = 1;
        struct run *run = run_new(&s);
        judge(run, &f);
        assert_int_equal(bad(run, asc_s, 0) + bad(run, asc_u, 0) + bad(run, asc_s, 1) + bad(run, asc_u, 1), 0);
        if (s.acc != ASC_ACC_WGMMA_E4M3 && s.core != TENSOR_CORE_MMA_E4M3)
            assert_int_equal(exact(run, asc_u), -1);
        free(run);
        s.permuted = 0;
        s.fault = S_ALL_QUARTER_ULP;
        run = run_new(&s);
        judge(run, &f);
        assert_int_equal(exact(run, asc_s), -1);
        assert_int_equal(exact(run, asc_u), (int)s.core);
        assert_int_equal(bad(run, asc_s, 0), 0);
        free(run);
    }
    struct setup s = {.core = TENSOR_CORE_H100, .type = DTYPE_F16, .acc = ASC_ACC_F32, .seed = 60};
    struct run *run = run_new(&s);
    judge(run, &f);
    assert_int_equal(exact(run, asc_s), -1);
    free(run);
    s.acc = ASC_ACC_MMA_F16;
    s.dyadic = 1;
    run = run_new(&s);
    judge(run, &f);
    assert_int_equal(exact(run, asc_s), -1);
    assert_int_equal(bad(run, asc_s, 0), 0);
    free(run);
}

/* Sums that are NaN or infinite tell no order, and are counted; masked scores are neither. */
static void sums_that_tell_nothing(void **state)
{
    (void)state;
    struct fingerprint f;
    struct setup s = {.core = TENSOR_CORE_H100, .type = DTYPE_F16, .acc = ASC_ACC_MMA_F16, .seed = 60, .dyadic = 1};
    for (int causal = 0; causal < 2; causal++) {
        s.causal = causal ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_NONE;
        struct run *run = run_new(&s);
        f = (struct fingerprint){0};
        assert_int_equal(fingerprint_add(&f, &run->c, scratch, 0, FINGERPRINT_BLOCKS), 0);
        assert_true(f.s.finite > 0 && f.s.odd == 0);
        for (int kv = 0; kv < TILES; kv++)
            for (int i = 0; i < BR * BC; i += 2)
                run->s[kv][i] = kv % 2 ? INFINITY : NAN;
        f = (struct fingerprint){0};
        assert_int_equal(fingerprint_add(&f, &run->c, scratch, 0, FINGERPRINT_BLOCKS), 0);
        assert_true(f.s.finite > 0 && f.s.odd > f.s.blocks / 2);
        assert_int_equal(f.u.odd, 0); /* its operand is the recorded P */
        free(run);
    }
}

/* Non-finite values take the same way as under a bound. */
static void not_finite(void **state)
{
    (void)state;
    struct fingerprint f;
    struct setup s = setups[2];
    s.fault = S_NAN;
    struct run *run = run_new(&s);
    judge(run, &f);
    assert_int_equal(exact(run, asc_s), TENSOR_CORE_H100);
    assert_int_equal(run->out[2 * ASC_CHANNELS + (int)asc_s].local.count[CLASS_NAN], 1);
    assert_int_equal(bad(run, asc_s, 0), 1);
    free(run);
    s.fault = P_TRUNCATED;
    run = run_new(&s);
    judge(run, &f);
    /* U is right on the P it was given; P is not what rounding gives. */
    assert_int_equal(exact(run, asc_u), TENSOR_CORE_H100);
    assert_int_equal(bad(run, asc_u, 0), 0);
    assert_true(bad(run, asc_p, 0) > TILES * BR * BC / 4);
    free(run);
}

/* The sample may hold the fault: half of the blocks and no more may differ. */
static void majority(void **state)
{
    (void)state;
    struct fingerprint_stage f = {.n = 3, .told = {16, 16, 16}, .equal = {9, 8, 0}, .match = {9, 8, 0}};
    assert_int_equal(fingerprint_fits(&f), 1);
    f.equal[1] = f.match[1] = 9;
    assert_int_equal(fingerprint_fits(&f), 3);
    f.equal[1] = f.match[1] = 16;
    assert_int_equal(fingerprint_fits(&f), 2);
    f.equal[1] = f.match[1] = 8;
    f.equal[0] = f.match[0] = 8;
    assert_int_equal(fingerprint_fits(&f), 0);
    f = (struct fingerprint_stage){.n = 1, .told = {1}, .equal = {1}, .match = {1}};
    assert_int_equal(fingerprint_fits(&f), 0);
    f.told[0] = f.equal[0] = f.match[0] = 2;
    assert_int_equal(fingerprint_fits(&f), 1);
}

/* Nearly exact sums: the right way has a block to tell it by, a wrong one three, and both equal all three. */
static void nearly_exact(void **state)
{
    (void)state;
    struct fingerprint_stage f = {.n = 2, .told = {1, 3}, .equal = {1, 3}, .match = {3, 3}};
    assert_int_equal(fingerprint_fits(&f), 3);
    f.equal[1] = f.match[1] = 2;
    assert_int_equal(fingerprint_fits(&f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),          cmocka_unit_test(nearly_exact),     cmocka_unit_test(recognized),
        cmocka_unit_test(fused_rescaling), cmocka_unit_test(last_bits),        cmocka_unit_test(another_way),
        cmocka_unit_test(counted),         cmocka_unit_test(not_recognized),   cmocka_unit_test(not_finite),
        cmocka_unit_test(majority),        cmocka_unit_test(f16_accumulators), cmocka_unit_test(sums_that_tell_nothing),
    };
    return cmocka_run_group_tests_name("oracle: tensor-core products", tests, scratch_begin, scratch_end);
}
