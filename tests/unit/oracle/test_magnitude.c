/* Sums of magnitudes: never below the true sum, and hardly above it, whatever the range of the numbers. */
#include "engine/oracle/magnitude.h"
#include "engine/oracle/multiply.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { R = 13, C = 20, D = 24 };

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Either sign, exponents spread around `exponent`, some zeros. */
static void fill(uint32_t *state, double *x, int n, int exponent, int spread)
{
    for (int i = 0; i < n; i++) {
        const double size = 1 + random_bits(state) * 0x1p-24;
        const int power = exponent + (spread ? (int)(random_bits(state) % (uint32_t)spread) : 0);
        x[i] = random_bits(state) % 8 == 0 ? 0 : ldexp(random_bits(state) % 2 ? size : -size, power);
    }
}

static long double true_sum(const double *a, const double *b, int i, int j, int m, int k, int transposed)
{
    long double sum = 0;
    for (int t = 0; t < k; t++)
        sum += fabsl((long double)a[i * k + t] * (long double)b[transposed ? j * k + t : t * m + j]);
    return sum;
}

static struct judge_scratch *scratch(void)
{
    const struct oracle_case c = {
        .in_q = {.rows = R}, .bc = C, .head_dim = D, .head_dim_v = D, .kv_len = C, .kv_tiles = 1};
    struct judge_scratch *s = judge_scratch_new();
    assert_non_null(s);
    assert_int_equal(scratch_prepare(s, &c), 0);
    return s;
}

/* Rows of their own scale; b's largest and smallest 100 binades apart. */
static void test_bounds(void **state)
{
    static const struct {
        int a, b, spread;
    } ranges[] = {{0, 0, 1},       {-3, 5, 40},    {-140, 0, 100}, {100, 100, 20},
                  {-500, 700, 30}, {-1060, 10, 4}, {1000, 3, 8}};
    struct judge_scratch *s = scratch();
    double a[R * D], b[C * D], c[R * D];
    uint32_t seed = 1;
    (void)state;
    for (size_t range = 0; range < sizeof ranges / sizeof ranges[0]; range++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            const int m = transposed ? C : D, k = transposed ? D : C;
            for (int r = 0; r < R; r++)
                fill(&seed, &a[(size_t)r * (size_t)k], k, ranges[range].a - r, ranges[range].spread);
            fill(&seed, b, C * D, ranges[range].b, ranges[range].spread);
            if (transposed)
                magnitude_multiply_transposed(&s->room, R, m, k, 1, a, b, c);
            else
                magnitude_multiply(&s->room, R, m, k, 1, a, b, c, 0);
            for (int i = 0; i < R * m; i++) {
                const long double want = true_sum(a, b, i / m, i % m, m, k, transposed);
                double row = 0;
                double top = 0;
                for (int t = 0; t < k; t++)
                    row = fmax(row, fabs(a[i / m * k + t]));
                for (int t = 0; t < C * D; t++)
                    top = fmax(top, fabs(b[t]));
                assert_true(c[i] >= want);
                assert_true(c[i] <=
                            want * (1 + 2.1L * (k + 2) * 0x1p-24L) + 8 * k * 0x1p-126L * row * top + 0x1p-1074L);
            }
        }
    }
    judge_scratch_free(s);
}

static void test_factor_and_add(void **state)
{
    struct judge_scratch *s = scratch();
    double a[R * C], b[C * D], c[R * D];
    (void)state;
    for (int i = 0; i < R * C; i++)
        a[i] = i % 2 ? -1 : 1;
    for (int i = 0; i < C * D; i++)
        b[i] = i % 3 ? -2 : 2;
    for (int i = 0; i < R * D; i++)
        c[i] = 7;
    magnitude_multiply(&s->room, R, D, C, 0.5, a, b, c, 1);
    for (int i = 0; i < R * D; i++)
        assert_true(c[i] >= 7 + C && c[i] < (7 + C) * (1 + 1e-5));
    judge_scratch_free(s);
}

/* Made ready once, sums are the same bits; another array's are not taken for them. */
static void test_shared(void **state)
{
    struct judge_scratch *s = scratch();
    double q[R * D], p[R * C], b[C * D], other[C * D], want[R * D], got[R * D];
    uint32_t seed = 11;
    (void)state;
    fill(&seed, q, R * D, 0, 20);
    fill(&seed, p, R * C, -3, 20);
    fill(&seed, b, C * D, 2, 20);
    fill(&seed, other, C * D, 2, 20);
    for (int transposed = 0; transposed < 2; transposed++) {
        _Alignas(64) double panels[2 * R * C];
        struct packed_operand packed = {.size_panels = panels};
        assert_true(matrix_packed(transposed ? C : D, transposed ? D : C) * sizeof(float) <= sizeof panels);
        for (int round = 0; round < 3; round++) {
            double *to = round == 1 ? got : want;
            const double *of = round == 2 ? other : b;
            if (round == 1 && transposed) {
                magnitude_share_q(&s->room, R, D, q);
                magnitude_pack(&s->room, C, D, b, 1, &packed);
                s->room.shared.k = packed;
            } else if (round == 1) {
                magnitude_pack(&s->room, D, C, b, 0, &packed);
                s->room.shared.v = packed;
            }
            if (transposed)
                magnitude_multiply_transposed(&s->room, R, C, D, 1, q, of, to);
            else
                magnitude_multiply(&s->room, R, D, C, 1, p, of, to, 0);
            if (round == 1)
                assert_memory_equal(got, want, (size_t)R * (size_t)(transposed ? C : D) * sizeof *got);
        }
        assert_true(memcmp(got, want, (size_t)R * (size_t)(transposed ? C : D) * sizeof *got) != 0);
    }
    judge_scratch_free(s);
}

/* What is no number or infinite stays in its row, or its column. */
static void test_unreal(void **state)
{
    struct judge_scratch *s = scratch();
    double a[R * C], b[C * D], c[R * D];
    (void)state;
    for (int i = 0; i < R * C; i++)
        a[i] = 1;
    for (int i = 0; i < C * D; i++)
        b[i] = 1;
    a[2 * C + 5] = NAN;
    a[4 * C + 6] = -INFINITY;
    b[3 * D + 7] = INFINITY;
    b[1 * D + 9] = NAN;
    magnitude_multiply(&s->room, R, D, C, 1, a, b, c, 0);
    for (int r = 0; r < R; r++) {
        for (int d = 0; d < D; d++) {
            const double got = c[r * D + d];
            if (r == 2 || d == 9)
                assert_true(isnan(got));
            else if (r == 4 || d == 7)
                assert_true(got == INFINITY);
            else
                assert_true(got >= C && got < C * (1 + 1e-5));
        }
    }
    judge_scratch_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_factor_and_add),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_unreal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
