/* Fills: known bits, right distributions, and values that depend on nothing but the element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/dtype.h"
#include "engine/base/pool.h"
#include "engine/scenario/normal.h"
#include "engine/scenario/scenario.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct asc_problem shape(const char *text, enum dtype dtype)
{
    struct scenario s;
    scenario_init(&s);
    assert_int_equal(scenario_parse_shape(text, &s.problem, NULL), 0);
    s.problem.dtype = s.problem.k_dtype = s.problem.v_dtype = dtype;
    return s.problem;
}

static void *filled(const struct asc_problem *p, int tensor, struct fill fill)
{
    void *out = malloc(fill_tensor_bytes(p, tensor));
    assert_non_null(out);
    memset(out, 0xff, fill_tensor_bytes(p, tensor)); /* a NaN in every type */
    fill_tensor(p, tensor, &fill, NULL, out);
    return out;
}

/* The bits are part of the contract: verdicts, goldens and recorded hardware runs all stand on them. A mismatch here is
   a change of every input there is, on this machine or by this change. */
static void test_known_bits(void **state)
{
    (void)state;
    static const struct {
        enum fill_kind kind;
        uint64_t f16, bf16, f32;
    } known[] = {
        {FILL_NORMAL, 0xfd8e62263de7a921, 0x1d16c44e5e3876aa, 0x4f7efe36344f1a1d},
        {FILL_UNIFORM, 0x400a816a79290366, 0xe32b5d6390fef741, 0xa5c6ece752ebe6cc},
        {FILL_ARANGE, 0x5b1ac7a67eb2c638, 0x678bbf93b71947de, 0x43097d6c9cb018b4},
        {FILL_ONE_HOT, 0x72e815bfbf490e86, 0xb8d69dc4e7eab84f, 0x3b7886d66b5e4bb0},
        {FILL_ZEROS, 0x5b362a3f27264e51, 0x5b362a3f27264e51, 0x405826b85940fa87},
        {FILL_OUTLIERS, 0xbd36f2b876402777, 0x6ec602b6ad779d30, 0x0adae611d11f979a},
        {FILL_LARGE_LOGITS, 0xb918ac5f04310761, 0x42ac7e93c392c5b0, 0xfe2973c80ad8e05b},
        /* fewer rows than to the first large one */
        {FILL_LARGE_ROWS, 0xfd8e62263de7a921, 0x1d16c44e5e3876aa, 0x4f7efe36344f1a1d},
        {FILL_ZERO_HEAD, 0x00920a316c913f4d, 0xcfb24cec29ceb83c, 0x96de7808b97dfe40},
    };
    int wrong = 0;
    assert_int_equal(sizeof known / sizeof known[0], FILL_COUNT);
    for (size_t i = 0; i < FILL_COUNT; i++) {
        static const enum dtype types[3] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32};
        const uint64_t want[3] = {known[i].f16, known[i].bf16, known[i].f32};
        for (int t = 0; t < 3; t++) {
            const struct asc_problem p = shape("2,3,100,70,48", types[t]);
            uint64_t got = 0;
            for (int tensor = 0; tensor < 3; tensor++) {
                void *x = filled(&p, tensor, (struct fill){known[i].kind, 1.25, UINT64_C(0x123456789abcdef)});
                got ^= XXH3_64bits_withSeed(x, fill_tensor_bytes(&p, tensor), (XXH64_hash_t)tensor);
                free(x);
            }
            if (got != want[t])
                print_error("fill %zu as %s: 0x%016llx\n", i, dtype_name(types[t]), (unsigned long long)got);
            wrong += got != want[t];
        }
    }
    assert_int_equal(wrong, 0);
}

struct moments {
    double n, mean, deviation, skew, kurtosis, largest;
};

static struct moments moments_of(const struct asc_problem *p, struct fill fill)
{
    struct moments m = {.n = (double)fill_tensor_bytes(p, 0) / sizeof(float)};
    float *x = filled(p, 0, fill);
    for (size_t i = 0; i < (size_t)m.n; i++) {
        assert_true(isfinite(x[i]));
        m.mean += x[i] / m.n;
        m.largest = fmax(m.largest, fabs((double)x[i]));
    }
    double sum2 = 0, sum3 = 0, sum4 = 0;
    for (size_t i = 0; i < (size_t)m.n; i++) {
        const double e = x[i] - m.mean;
        sum2 += e * e;
        sum3 += e * e * e;
        sum4 += e * e * e * e;
    }
    m.deviation = sqrt(sum2 / m.n);
    m.skew = sum3 / m.n / pow(m.deviation, 3);
    m.kurtosis = sum4 / m.n / pow(m.deviation, 4);
    free(x);
    return m;
}

/* Sample moments lie within 5 of their own standard errors: 1/sqrt(n), 1/sqrt(2n), sqrt(6/n), sqrt(24/n). */
static void test_normal_moments(void **state)
{
    (void)state;
    const struct asc_problem p = shape("1,8,512,64", DTYPE_F32);
    const struct moments m = moments_of(&p, (struct fill){FILL_NORMAL, 2.0, 7});
    assert_true(fabs(m.mean) < 2.0 * 5.0 / sqrt(m.n));
    assert_true(fabs(m.deviation - 2.0) < 2.0 * 5.0 / sqrt(2 * m.n));
    assert_true(fabs(m.skew) < 5.0 * sqrt(6.0 / m.n));
    assert_true(fabs(m.kurtosis - 3.0) < 5.0 * sqrt(24.0 / m.n));
    /* The largest of 262144: below 4 or above 6.5 deviations has a probability under 1e-4. */
    assert_true(m.largest > 2.0 * 4.0 && m.largest < 2.0 * 6.5);
    const struct moments large = moments_of(&p, (struct fill){FILL_LARGE_LOGITS, 2.0, 7});
    assert_true(fabs(large.deviation / m.deviation - sqrt(30.0)) < 1e-6);
}

/* Shares of a normal sample beyond 1, 2, 3 and 4 deviations. */
static void test_normal_tails(void **state)
{
    (void)state;
    const struct asc_problem p = shape("1,8,512,64", DTYPE_F32);
    const size_t n = fill_tensor_bytes(&p, 1) / sizeof(float);
    float *x = filled(&p, 1, (struct fill){FILL_NORMAL, 1.0, 1});
    for (int k = 1; k <= 4; k++) {
        const double share = erfc(k / sqrt(2.0));
        double beyond = 0, above = 0;
        for (size_t i = 0; i < n; i++) {
            beyond += fabsf(x[i]) > (float)k;
            above += x[i] > (float)k;
        }
        assert_true(fabs(beyond - share * (double)n) < 5.0 * sqrt(share * (double)n));
        assert_true(fabs(above - share / 2 * (double)n) < 5.0 * sqrt(share / 2 * (double)n));
    }
    free(x);
}

static void test_uniform(void **state)
{
    (void)state;
    const struct asc_problem p = shape("1,8,512,64", DTYPE_F32);
    const struct moments m = moments_of(&p, (struct fill){FILL_UNIFORM, 3.0, 7});
    assert_true(fabs(m.mean) < 5.0 * sqrt(3.0) / sqrt(m.n));
    assert_true(fabs(m.deviation - sqrt(3.0)) < 5.0 * sqrt(3.0) / sqrt(2 * m.n));
    assert_true(m.largest <= 3.0 && m.largest > 2.999);
}

static void test_outliers(void **state)
{
    (void)state;
    const struct asc_problem p = shape("1,8,512,64", DTYPE_F32);
    const size_t n = fill_tensor_bytes(&p, 0) / sizeof(float);
    float *plain = filled(&p, 0, (struct fill){FILL_NORMAL, 1.0, 3});
    float *x = filled(&p, 0, (struct fill){FILL_OUTLIERS, 1.0, 3});
    double larger = 0;
    for (size_t i = 0; i < n; i++) {
        if (x[i] == plain[i])
            continue;
        assert_true(fabsf(x[i] / plain[i] - 30.0F) < 1e-4F);
        larger++;
    }
    assert_true(fabs(larger - (double)n / 1024) < 5.0 * sqrt((double)n / 1024));
    free(plain);
    free(x);
}

/* A normal one but for the first head. */
static void test_zero_head(void **state)
{
    (void)state;
    const struct asc_problem p = shape("2,3,5,64", DTYPE_F32);
    float *x = filled(&p, 1, (struct fill){FILL_ZERO_HEAD, 2, 9});
    float *normal = filled(&p, 1, (struct fill){FILL_NORMAL, 2, 9});
    for (size_t i = 0; i < fill_tensor_bytes(&p, 1) / sizeof *x; i++)
        assert_true(x[i] == (i / 320 % 3 == 0 ? 0 : normal[i]));
    free(x);
    free(normal);
}

/* A normal one but for one row in 256 of the first head. */
static void test_large_rows(void **state)
{
    (void)state;
    const struct asc_problem p = shape("2,2,300,64", DTYPE_F32);
    float *x = filled(&p, 2, (struct fill){FILL_LARGE_ROWS, 0.25, 9});
    float *normal = filled(&p, 2, (struct fill){FILL_NORMAL, 0.25, 9});
    for (size_t i = 0; i < fill_tensor_bytes(&p, 2) / sizeof *x; i++)
        assert_true(x[i] == normal[i] * (i / 64 % 600 == 255 ? 32768.0F : 1.0F));
    free(x);
    free(normal);
}

static void test_arange_and_one_hot(void **state)
{
    (void)state;
    const struct asc_problem p = shape("2,2,70,33,24", DTYPE_F16);
    void *arange = filled(&p, 1, (struct fill){FILL_ARANGE, 1.0, 0});
    void *one_hot = filled(&p, 1, (struct fill){FILL_ONE_HOT, 2.0, 0});
    void *zeros = filled(&p, 1, (struct fill){FILL_ZEROS, 1.0, 0});
    size_t i = 0;
    for (int bh = 0; bh < 4; bh++) {
        for (int row = 0; row < 33; row++) {
            for (int d = 0; d < 24; d++, i++) {
                assert_true(dtype_load(DTYPE_F16, arange, i) == ((row * 24 + d) % 251 - 125) / 128.0);
                assert_true(dtype_load(DTYPE_F16, one_hot, i) == (row % 24 == d ? 2.0 : 0.0));
                assert_true(dtype_load(DTYPE_F16, zeros, i) == 0.0);
            }
        }
    }
    free(arange);
    free(one_hot);
    free(zeros);
}

/* BHLD and BLHD hold the same values at the same coordinates, and with other dimensions cut short an element stays. */
static void test_element_alone_decides(void **state)
{
    (void)state;
    struct asc_problem p = shape("2,3,20,12,16", DTYPE_F32), other = shape("3,5,31,29,18", DTYPE_F32);
    p.kv_heads = other.kv_heads = 1;
    other.layout = ASC_BLHD;
    for (int kind = 0; kind < FILL_COUNT; kind++) {
        if (kind == FILL_ARANGE || kind == FILL_ONE_HOT)
            other.head_dim = other.head_dim_v = p.head_dim; /* part of their formula */
        for (int tensor = 0; tensor < 3; tensor++) {
            const struct fill fill = {(enum fill_kind)kind, 0.5, 99};
            float *x = filled(&p, tensor, fill), *y = filled(&other, tensor, fill);
            const int heads = tensor == 0 ? 3 : 1, rows = tensor == 0 ? 20 : 12;
            const struct asc_strides sx = asc_strides_of(&p, heads, rows);
            const struct asc_strides sy = asc_strides_of(&other, tensor == 0 ? 5 : 1, tensor == 0 ? 31 : 29);
            for (int i = 0; i < 2 * heads * rows * 16; i++) {
                const int d = i % 16, row = i / 16 % rows, h = i / 16 / rows % heads, b = i / 16 / rows / heads;
                assert_true(x[b * sx.batch + h * sx.head + row * sx.row + d] ==
                            y[b * sy.batch + h * sy.head + row * sy.row + d]);
            }
            free(x);
            free(y);
        }
        other.head_dim = other.head_dim_v = 18;
    }
}

/* Another seed, tensor, batch, head or row: other values. */
static void test_streams_differ(void **state)
{
    (void)state;
    const struct asc_problem p = shape("2,2,4,64", DTYPE_F32);
    const struct fill fill = {FILL_NORMAL, 1.0, 5};
    float *q = filled(&p, 0, fill), *k = filled(&p, 1, fill), *v = filled(&p, 2, fill);
    float *low = filled(&p, 0, (struct fill){FILL_NORMAL, 1.0, 6});
    float *high = filled(&p, 0, (struct fill){FILL_NORMAL, 1.0, 5 + (UINT64_C(1) << 32)});
    const int rows = 2 * 2 * 4;
    int same = 0;
    for (int i = 0; i < rows * 64; i++) {
        same += (q[i] == k[i]) + (q[i] == v[i]) + (k[i] == v[i]) + (q[i] == low[i]) + (q[i] == high[i]);
        for (int row = i / 64 + 1; row < rows; row++)
            same += q[i] == q[row * 64 + i % 64];
        same += i % 64 ? q[i] == q[i - 1] : 0;
    }
    assert_true(same < 4); /* of some 30000 pairs of floats */
    free(q);
    free(k);
    free(v);
    free(low);
    free(high);
}

static void test_normal_quantile(void **state)
{
    (void)state;
    assert_true(normal_quantile(0.5) == 0.0);
    /* AS 241's own check values, and the far tail this project reaches. */
    assert_true(fabs(normal_quantile(0.25) + 0.6744897501960817) < 1e-15);
    assert_true(fabs(normal_quantile(0.001) + 3.090232306167814) < 1e-14);
    assert_true(fabs(normal_quantile(1e-20) + 9.262340089798408) < 1e-13);
    double before = -INFINITY;
    for (int i = 1; i < 20000; i++) {
        const double p = i / 20000.0, x = normal_quantile(p);
        assert_true(x > before);
        before = x;
        /* Back through the library's own distribution function; d p = p's relative rounding times the density. */
        assert_true(fabs(0.5 * erfc(-x / sqrt(2.0)) - p) < 4e-16 * (1.0 + fabs(x)));
    }
    for (int e = 2; e <= 53; e++) {
        const double p = ldexp(1.0, -e), x = normal_quantile(p);
        assert_true(fabs(0.5 * erfc(-x / sqrt(2.0)) / p - 1.0) < 1e-13);
        assert_true(normal_quantile(1.0 - p) == -x);
    }
}

static void test_normal_quantiles(void **state)
{
    (void)state;
    enum { N = 4003 };
    static double p[N], x[N];
    for (int i = 0; i < N; i++)
        p[i] = (i + 0.5) / N;
    p[0] = 0x1p-53;
    p[1] = 0.075;
    p[2] = 0.925;
    for (int n = 0; n <= N; n = n < 9 ? n + 1 : n + 499) {
        normal_quantiles(p, n, x);
        for (int i = 0; i < n; i++)
            assert_true(x[i] == normal_quantile(p[i]));
    }
}

static void test_normal_log(void **state)
{
    (void)state;
    assert_true(normal_log(1.0) == 0.0);
    for (int i = 1; i < 40000; i++) {
        const double x = i / 16384.0;
        assert_true(fabs(normal_log(x) - log(x)) <= 4.5e-16 * fabs(log(x)));
        const double tiny = ldexp(x, -53);
        assert_true(fabs(normal_log(tiny) - log(tiny)) <= 4.5e-16 * fabs(log(tiny)));
    }
}

/* 7 heads of 333 rows: no whole number of portions. */
static void test_threads_fill_the_same(void **state)
{
    (void)state;
    struct pool *pool = NULL;
    assert_int_equal(pool_new(3, &pool, NULL), 0);
    struct asc_problem p = shape("1,7,333,333,24", DTYPE_BF16);
    const struct fill fill = {FILL_NORMAL, 1.0, 5};
    for (int layout = 0; layout < 2; layout++) {
        p.layout = layout;
        for (int tensor = 0; tensor < 3; tensor++) {
            const size_t n = fill_tensor_bytes(&p, tensor);
            void *want = filled(&p, tensor, fill), *got = calloc(1, n);
            assert_non_null(got);
            assert_int_equal(fill_tensor(&p, tensor, &fill, pool, got), 0);
            assert_memory_equal(got, want, n);
            free(want);
            free(got);
        }
    }
    pool_free(pool);
}

/* The largest value of f16 is 65504; of 65520 on it rounds to infinity. */
static void test_misfits(void **state)
{
    (void)state;
    const struct asc_problem p = shape("1,1,200,16", DTYPE_F16);
    void *out = malloc(fill_tensor_bytes(&p, 0));
    assert_non_null(out);
    for (int sigma = 65519; sigma <= 65520; sigma++) {
        const struct fill fill = {FILL_ONE_HOT, sigma, 0};
        assert_int_equal(fill_tensor(&p, 0, &fill, NULL, out), sigma == 65520 ? -1 : 0);
    }
    free(out);
}

static void test_bytes(void **state)
{
    (void)state;
    struct asc_problem p = shape("2,6,10,7,16", DTYPE_BF16);
    p.kv_heads = 3;
    assert_int_equal(fill_tensor_bytes(&p, 0), 2 * 6 * 10 * 16 * 2);
    assert_int_equal(fill_tensor_bytes(&p, 1), 2 * 3 * 7 * 16 * 2);
    assert_int_equal(fill_tensor_bytes(&p, 2), 2 * 3 * 7 * 16 * 2);
    p.dtype = DTYPE_F32;
    p.batch = 1 << 10;
    p.heads = 1 << 10;
    p.q_len = 1 << 12;
    assert_true(fill_tensor_bytes(&p, 0) == UINT64_C(1) << 38);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_bits),
        cmocka_unit_test(test_normal_moments),
        cmocka_unit_test(test_normal_tails),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_large_rows),
        cmocka_unit_test(test_zero_head),
        cmocka_unit_test(test_arange_and_one_hot),
        cmocka_unit_test(test_element_alone_decides),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_normal_quantile),
        cmocka_unit_test(test_normal_quantiles),
        cmocka_unit_test(test_normal_log),
        cmocka_unit_test(test_threads_fill_the_same),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests_name("fill", tests, NULL, NULL);
}
