/* The oracle's products: every element is one fma chain in ascending k, whatever the shape and the vector unit. */
#include "engine/oracle/multiply.c" // NOLINT(bugprone-suspicious-include): its static functions

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LONGEST = 300 }; /* of every side: beyond a panel's depth and a block's rows */

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Of either sign, over 40 binades, so that another order of a sum, and a product that was rounded, show. */
static double random_number(uint32_t *state)
{
    const double size = 1 + random_bits(state) * 0x1p-24;
    return ldexp(random_bits(state) % 2 ? size : -size, (int)(random_bits(state) % 40) - 20);
}

static double *numbers(uint32_t *state, size_t n)
{
    double *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = random_number(state);
    return x;
}

static double chain(const struct shape *s, const double *a, const double *b, int i, int j)
{
    double sum = 0;
    for (int t = 0; t < s->k; t++)
        sum = fma(a[i * s->lda + t], b[s->transposed ? j * s->ldb + t : t * s->ldb + j], sum);
    return sum;
}

static float chain_f32(const struct shape *s, const float *a, const float *b, int i, int j)
{
    float sum = 0;
    for (int t = 0; t < s->k; t++)
        sum = fmaf(a[i * s->lda + t], b[s->transposed ? j * s->ldb + t : t * s->ldb + j], sum);
    return sum;
}

/* Sides around what lines, row blocks and panels hold. */
static const int shapes[][3] = {{1, 1, 1},     {5, 7, 3},     {6, 8, 16}, {7, 9, 17},   {16, 16, 64}, {95, 3, 255},
                                {96, 17, 256}, {64, 24, 128}, {4, 16, 9}, {97, 5, 257}, {3, 33, 300}, {100, 15, 258}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void check_f64(const struct shape *s, multiply_steps_f64 *steps)
{
    const double factor = 0.3;
    uint32_t state = 7;
    double *a = numbers(&state, (size_t)s->n * (size_t)s->lda), *b = numbers(&state, (size_t)LONGEST * LONGEST * 2),
           *c = numbers(&state, (size_t)s->n * (size_t)s->m), *before = malloc((size_t)s->n * (size_t)s->m * sizeof *c);
    assert_non_null(before);
    memcpy(before, c, (size_t)s->n * (size_t)s->m * sizeof *c);
    multiply_f64(s, steps, factor, a, b, c);
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->m; j++) {
            const double once = factor * chain(s, a, b, i, j), want = s->add ? before[i * s->m + j] + once : once;
            assert_memory_equal(&c[i * s->m + j], &want, sizeof want);
        }
    }
    /* And with B in panels. */
    double *panels = NULL, *packed = malloc((size_t)s->n * (size_t)s->m * sizeof *c);
    struct shape of_panels = *s;
    of_panels.packed = 1;
    assert_int_equal(posix_memalign((void **)&panels, LINE, matrix_packed(s->m, s->k) * sizeof *panels), 0);
    assert_non_null(packed);
    memcpy(packed, before, (size_t)s->n * (size_t)s->m * sizeof *c);
    pack_all_f64(s, b, panels);
    multiply_f64(&of_panels, steps, factor, a, panels, packed);
    assert_memory_equal(packed, c, (size_t)s->n * (size_t)s->m * sizeof *c);
    free(panels);
    free(packed);
    free(a);
    free(b);
    free(c);
    free(before);
}

static void check_f32(const struct shape *s, multiply_steps_f32 *steps)
{
    uint32_t state = 9;
    float *a = malloc((size_t)s->n * (size_t)s->lda * sizeof *a), *b = malloc(sizeof *b * LONGEST * LONGEST * 2),
          *c = malloc((size_t)s->n * (size_t)s->m * sizeof *c);
    assert_true(a && b && c);
    for (int i = 0; i < s->n * s->lda; i++)
        a[i] = (float)random_number(&state);
    for (int i = 0; i < LONGEST * LONGEST * 2; i++)
        b[i] = (float)random_number(&state);
    multiply_f32(s, steps, 1, a, b, c);
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->m; j++) {
            const float want = chain_f32(s, a, b, i, j);
            assert_memory_equal(&c[i * s->m + j], &want, sizeof want);
        }
    }
    float *panels = NULL, *packed = malloc((size_t)s->n * (size_t)s->m * sizeof *c);
    struct shape of_panels = *s;
    of_panels.packed = 1;
    assert_int_equal(posix_memalign((void **)&panels, LINE, matrix_packed(s->m, s->k) * sizeof *panels), 0);
    assert_non_null(packed);
    pack_all_f32(s, b, panels);
    multiply_f32(&of_panels, steps, 1, a, panels, packed);
    assert_memory_equal(packed, c, (size_t)s->n * (size_t)s->m * sizeof *c);
    free(panels);
    free(packed);
    free(a);
    free(b);
    free(c);
}

static void check_shapes(multiply_steps_f64 *steps, multiply_steps_f32 *steps_f32)
{
    for (int i = 0; i < SHAPES; i++) {
        const int n = shapes[i][0], m = shapes[i][1], k = shapes[i][2];
        for (int transposed = 0; transposed < 2; transposed++) {
            for (int add = 0; add < 2; add++)
                check_f64(&(struct shape){n, m, k, k + 3, (transposed ? k : m) + 5, transposed, add, 0}, steps);
            check_f32(&(struct shape){n, m, k, k, transposed ? k : m, transposed, 0, 0}, steps_f32);
        }
    }
}

static void test_portable(void **state)
{
    (void)state;
    check_shapes(multiply_steps_any_f64, multiply_steps_any_f32);
}

static void test_avx2(void **state)
{
    (void)state;
#ifdef HAS_VECTORS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        check_shapes(multiply_steps_256_f64, multiply_steps_256_f32);
        return;
    }
#endif
    print_message("# this processor has no AVX2\n");
    skip();
}

static void test_avx512(void **state)
{
    (void)state;
#ifdef HAS_VECTORS
    if (__builtin_cpu_supports("avx512f")) {
        check_shapes(multiply_steps_512_f64, multiply_steps_512_f32);
        return;
    }
#endif
    print_message("# this processor has no AVX-512\n");
    skip();
}

/* What is no number stays in its row, or its column: rows and columns that fill up a block are left alone. */
static void test_unreal(void **state)
{
    enum { N = 7, M = 9, K = 5 };
    double a[N * K], b[K * M], c[N * M];
    (void)state;
    for (int i = 0; i < N * K; i++)
        a[i] = 1;
    for (int i = 0; i < K * M; i++)
        b[i] = 1;
    a[6 * K + 2] = NAN;
    b[3 * M + 8] = INFINITY;
    matrix_multiply(N, M, K, 1, a, K, b, M, c, 0);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            assert_true(i == 6 ? isnan(c[i * M + j]) : j == 8 ? c[i * M + j] == INFINITY : c[i * M + j] == K);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_portable),
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
        cmocka_unit_test(test_unreal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
