/* What is kept of K and V from slot to slot changes no verdict: each is that of a scratch that has kept nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "engine/oracle/scratch.h"
#include "tests/unit/lib/oracle_kernel.h"
#include "tests/unit/lib/scratch.h"
#include <cmocka.h>

static const struct asc_conventions scaled = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0; /* NOLINT(bugprone-suspicious-memory-comparison): that is meant */
}

static void expect_same(const struct verdict *a, const struct verdict *b)
{
    assert_memory_equal(a->count, b->count, sizeof a->count);
    assert_int_equal(a->unjudged, b->unjudged);
    assert_int_equal(a->judged, b->judged);
    assert_int_equal(a->visited, b->visited);
    assert_int_equal(a->worst_row, b->worst_row);
    assert_int_equal(a->worst_col, b->worst_col);
    assert_true(same_bits(a->worst_ratio, b->worst_ratio) && same_bits(a->mean_error, b->mean_error));
    assert_true(same_bits(a->ratio_median, b->ratio_median) && same_bits(a->ratio_spread, b->ratio_spread));
}

/* Judges with what earlier runs have left, and without. */
static void judge_both(struct kernel_run *run)
{
    const size_t n = (size_t)run->c.kv_tiles * ASC_CHANNELS;
    struct judge_scratch *fresh = judge_scratch_new();
    struct tile_verdicts *want = calloc(n, sizeof *want);
    assert_true(fresh && want);
    assert_int_equal(judge_case(&run->c, fresh, want, NULL), 0);
    assert_int_equal(judge_case(&run->c, scratch, run->out, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        expect_same(&run->out[i].local, &want[i].local);
        expect_same(&run->out[i].global, &want[i].global);
    }
    free(want);
    judge_scratch_free(fresh);
}

static const struct spec base = {
    .q_len = 40, .kv_len = 90, .head_dim = 24, .br = 16, .bc = 32, .q_tile = 1, .fill = FILL_NORMAL};

static struct kernel_run *run_of(enum dtype t, unsigned seed)
{
    struct spec s = base;
    s.conventions = scaled;
    s.p_dtype = DTYPE_F32;
    s.dtype = t;
    s.seed = seed;
    return kernel_run(&s);
}

static int kept_tiles(void)
{
    int n = 0;
    for (int i = 0; i < 2 * KEPT_TILES; i++)
        n += scratch->kept && scratch->kept[i].rows > 0;
    return n;
}

static void another_slot(void **state)
{
    const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32};
    (void)state;
    for (int t = 0; t < 3; t++) {
        struct kernel_run *run = run_of(types[t], 5);
        judge_both(run);
        assert_int_equal(kept_tiles(), 2 * run->c.kv_tiles);
        const struct kept_tile before = scratch->kept[0];
        judge_both(run); /* all of it is taken from what is kept now */
        assert_ptr_equal(scratch->kept[0].block, before.block);
        kernel_run_free(run);
    }
}

/* One bit of a key or value: of the input and of what was captured, at the same place in memory as before; or of what
   was captured alone, which is then wrong. */
static void other_bits(void **state)
{
    (void)state;
    for (int ch = asc_k; ch <= asc_v; ch++) {
        for (int captured_alone = 0; captured_alone < 2; captured_alone++) {
            struct kernel_run *run = run_of(DTYPE_F16, 6);
            uint16_t *input = ch == asc_k ? run->k : run->v;
            judge_both(run);
            input[32 * 24 + 7] ^= captured_alone ? 0 : 0x200;
            ((uint16_t *)run_array(run, ch, 1))[7] ^= 0x200;
            judge_both(run);
            assert_int_equal(verdict_bad(&run->out[ASC_CHANNELS + ch].local), captured_alone);
            kernel_run_free(run);
        }
    }
}

static void no_number(void **state)
{
    (void)state;
    struct kernel_run *run = run_of(DTYPE_F16, 7);
    judge_both(run);
    ((uint16_t *)run->v)[3] = ((uint16_t *)run_array(run, asc_v, 0))[3] = 0x7E00;
    judge_both(run);
    assert_true(verdict_bad(&run->out[asc_v].local) > 0);
    judge_both(run);
    kernel_run_free(run);
}

/* More kv tiles than are kept, and more memory than may be: the rest is made anew. */
static void limits(void **state)
{
    (void)state;
    struct spec s = base;
    s.conventions = scaled;
    s.p_dtype = DTYPE_F32;
    s.bc = 1;
    s.kv_len = KEPT_TILES + 1;
    struct kernel_run *many = kernel_run(&s);
    judge_both(many);
    judge_both(many);
    assert_int_equal(kept_tiles(), 2 * KEPT_TILES);
    kernel_run_free(many);
    s = (struct spec){
        .q_len = 1, .kv_len = 1280, .head_dim = 512, .br = 1, .bc = 256, .p_dtype = DTYPE_F32, .conventions = scaled};
    struct kernel_run *large = kernel_run(&s);
    judge_both(large);
    judge_both(large);
    const struct kept_tile *first = &scratch->kept[0], *last = &scratch->kept[8];
    assert_int_equal(first->rows, 256);
    assert_true(scratch->kept_bytes <= KEPT_BYTES && scratch->kept_bytes + first->bytes > KEPT_BYTES);
    assert_int_equal(last->rows, 0);
    kernel_run_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_slot),
        cmocka_unit_test(other_bits),
        cmocka_unit_test(no_number),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests_name("oracle: kept tiles", tests, scratch_begin, scratch_end);
}
