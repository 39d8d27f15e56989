/* The bound of a true U stands on sums of magnitudes that may be taken from the captured P: whatever P was captured, it
   is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/lib/oracle_kernel.h"
#include <cmocka.h>

enum { Q_LEN = 64, KEYS = 150, HEAD_DIM = 64, BC = 64, KV_TILES = 3, VALUES = Q_LEN * HEAD_DIM };

struct bounds {
    double u[KV_TILES][VALUES];
};

static struct bounds bounds_of(struct kernel_run *run)
{
    static double numbers[5][VALUES];
    static uint8_t classes[2][VALUES];
    struct bounds b = {0};
    struct judge_scratch *scratch = judge_scratch_new();
    assert_non_null(scratch);
    for (int kv = 0; kv < KV_TILES; kv++) {
        struct tile_detail d = {.channel = asc_u,
                                .kv = kv,
                                .got = numbers[0],
                                .want_local = numbers[1],
                                .bound_local = numbers[2],
                                .want_global = numbers[3],
                                .bound_global = numbers[4],
                                .class_local = classes[0],
                                .class_global = classes[1]};
        assert_int_equal(judge_case(&run->c, scratch, run->out, &d), 0);
        memcpy(b.u[kv], d.bound_global, sizeof b.u[kv]);
    }
    judge_scratch_free(scratch);
    return b;
}

/* Every tenth p of every tile. */
static void disturb(const struct kernel_run *run, float factor)
{
    for (int kv = 0; kv < KV_TILES; kv++) {
        const struct matrix *p = &run->c.captured[kv * ASC_CHANNELS + asc_p];
        float *x = (float *)p->data;
        for (int r = 0; r < p->rows; r++)
            for (int col = r % 10; col < p->cols; col += 10)
                x[r * p->row_stride + col] *= factor;
    }
}

static void test_same_bound(void **state)
{
    static const float factors[] = {0, 0.5F, 1 - 0x1p-15F, 1 - 0x1p-17F, 1, 1 + 0x1p-17F, 1 + 0x1p-15F, 2, INFINITY};
    const int units[] = {ASC_UNIT_SCALED, ASC_UNIT_RAW, ASC_UNIT_LOG2};
    (void)state;
    for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++) {
        struct spec s = {
            .q_len = Q_LEN, .kv_len = KEYS, .head_dim = HEAD_DIM, .br = 64, .bc = BC, .p_dtype = DTYPE_F32};
        s.conventions.s_unit = s.conventions.m_unit = units[unit];
        struct kernel_run *run = kernel_run(&s);
        disturb(run, 0);
        const struct bounds alone = bounds_of(run); /* nothing of P can be used */
        kernel_run_free(run);
        for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
            run = kernel_run(&s);
            disturb(run, factors[f]);
            const struct bounds b = bounds_of(run);
            for (int kv = 0; kv < KV_TILES; kv++)
                for (int i = 0; i < VALUES; i++) {
                    assert_true(b.u[kv][i] >= alone.u[kv][i] * (1 - 0x1p-22));
                    assert_true(b.u[kv][i] <= alone.u[kv][i] * (1 + 0x1p-14));
                }
            kernel_run_free(run);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
