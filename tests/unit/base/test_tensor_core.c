/* The tensor-core emulator: against integer arithmetic written another way, against its own bound, and against what a
   GPU gave (every file of tests/vectors, recorded by tests/gpu/numerics.sh). */
#include "engine/base/format.h"
#include "engine/base/tensor_core.h"
#include "engine/oracle/bound.h"
#include "tests/gpu/tensor_core_inputs.h"
#include "tests/gpu/vector_judge.h"
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAX_ROWS = 16, MAX_K = 128, MAX_CODES = MAX_ROWS * MAX_K };

/* L, F, rho of each model, written down a second time. */
struct shape {
    int products, fraction, result;
};
static const struct shape shapes[TENSOR_CORE_COUNT] = {
    [TENSOR_CORE_V100] = {4, 23, 23},
    [TENSOR_CORE_A100] = {8, 24, 23},
    [TENSOR_CORE_H100] = {16, 25, 23},
    [TENSOR_CORE_ADA_E4M3] = {16, 13, 13},
    [TENSOR_CORE_WGMMA_E4M3] = {32, 13, 13},
    [TENSOR_CORE_MMA_E4M3] = {16, 25, 23},
    [TENSOR_CORE_WGMMA_E4M3_PROMOTED] = {32, 13, 13},
};

/* A finite number as integer * 2^exponent, the exponent that of the format's last place. */
struct scaled {
    int64_t integer;
    int exponent;
};

static struct scaled take_apart(struct vector_format f, uint32_t code)
{
    const uint32_t sign_bit = f.special == 16 ? 0x80u : (uint32_t)(f.special + 1) << f.mantissa;
    const int field = (int)((code & (sign_bit - 1)) >> f.mantissa);
    const int64_t mantissa = code & ((1u << f.mantissa) - 1);
    const int64_t magnitude = field ? mantissa + (1 << f.mantissa) : mantissa;
    return (struct scaled){code & sign_bit ? -magnitude : magnitude, (field ? field : 1) - f.bias - f.mantissa};
}

/* integer * 2^exponent cut toward zero to multiples of 2^unit, as such a multiple. */
static int64_t align(struct scaled x, int unit)
{
    const int up = x.exponent - unit;
    if (!x.integer)
        return 0;
    const int64_t magnitude = x.integer < 0 ? -x.integer : x.integer;
    const int64_t shifted = up >= 0 ? magnitude << up : up < -62 ? 0 : magnitude >> -up;
    return x.integer < 0 ? -shifted : shifted;
}

/* One chunk: accumulator and result are f32 bits. Finite operands. */
static uint32_t reference_chunk(struct shape m, struct vector_format f, const uint32_t *a, const uint32_t *b,
                                uint32_t c)
{
    const struct vector_format f32 = {23, 127, 255, 0};
    struct scaled term[33] = {{0}};
    int top[33];
    int largest = -100000;
    for (int i = 0; i <= m.products; i++) {
        struct scaled x = take_apart(f32, c);
        top[i] = x.exponent + 23;
        if (i < m.products) {
            const struct scaled left = take_apart(f, a[i]), right = take_apart(f, b[i]);
            x = (struct scaled){left.integer * right.integer, left.exponent + right.exponent};
            top[i] = x.exponent + 2 * f.mantissa;
        }
        term[i] = x;
        if (x.integer && top[i] > largest)
            largest = top[i];
    }
    if (largest == -100000)
        return 0;
    const int unit = largest - m.fraction;
    int64_t sum = 0;
    for (int i = 0; i <= m.products; i++)
        sum += align(term[i], unit);
    const uint32_t sign = sum < 0 ? 0x80000000u : 0;
    uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    if (!magnitude)
        return 0;
    int bits = 0;
    while (magnitude >> bits)
        bits++;
    /* Its leading bit weighs 2^(unit + bits - 1); places below `result` and below 2^-149 go. */
    int drop = bits - 1 - m.result;
    if (-149 - unit > drop)
        drop = -149 - unit;
    if (drop > 0)
        magnitude = drop > 62 ? 0 : magnitude >> drop << drop;
    const float value = (float)ldexp((double)magnitude, unit); /* exact: at most 24 bits are left */
    return sign | format_f32_bits(value);
}

static float reference(enum tensor_core model, struct vector_format f, const uint32_t *a, const uint32_t *b, int k,
                       float c)
{
    const struct shape m = shapes[model];
    if (model == TENSOR_CORE_MMA_E4M3) {
        for (int base = 0; base < k; base += 32) {
            uint32_t x[2][16] = {0};
            uint32_t y[2][16] = {0};
            int n[2] = {0, 0};
            for (int i = 0; i < 32; i++) {
                const int half = i % 4 > 1;
                x[half][n[half]] = a[base + i];
                y[half][n[half]++] = b[base + i];
            }
            const uint32_t first = reference_chunk(m, f, x[0], y[0], 0);
            c += format_f32_of(reference_chunk(m, f, x[1], y[1], first));
        }
        return c;
    }
    for (int base = 0; base < k && model == TENSOR_CORE_WGMMA_E4M3_PROMOTED; base += m.products)
        c += format_f32_of(reference_chunk(m, f, a + base, b + base, 0));
    if (model == TENSOR_CORE_WGMMA_E4M3_PROMOTED)
        return c;
    uint32_t bits = format_f32_bits(c);
    for (int base = 0; base < k && (bits & 0x7F800000u) != 0x7F800000u; base += m.products) /* infinity stays */
        bits = reference_chunk(m, f, a + base, b + base, bits);
    return format_f32_of(bits);
}

static enum dtype type_of(uint32_t instruction)
{
    return vector_product(instruction).operand;
}

struct tile {
    enum dtype t;
    int rows, cols, k;
    uint32_t a[MAX_CODES], b[MAX_CODES], c[MAX_ROWS * MAX_ROWS]; /* codes */
    uint16_t packed_a[MAX_CODES], packed_b[MAX_CODES];
    float start[MAX_ROWS * MAX_ROWS], got[MAX_ROWS * MAX_ROWS];
};

static void tile_fill(struct tile *x, const struct vector_row *row, int number)
{
    x->t = type_of(row->instruction);
    vector_fill_operand(row, number, 0, x->a, x->rows * x->k);
    vector_fill_operand(row, number, 1, x->b, x->cols * x->k);
    vector_fill_operand(row, number, 2, x->c, x->rows * x->cols);
    vector_pack(x->t, x->a, (size_t)x->rows * (size_t)x->k, x->packed_a);
    vector_pack(x->t, x->b, (size_t)x->cols * (size_t)x->k, x->packed_b);
    memcpy(x->start, x->c, sizeof x->start);
}

static void tile_product(enum tensor_core model, struct tile *x)
{
    void *room = aligned_alloc(32, tensor_core_room(x->rows, x->k));
    void *other = aligned_alloc(32, tensor_core_room(x->cols, x->k));
    struct tensor_core_operand a;
    struct tensor_core_operand b;
    assert_true(room && other);
    tensor_core_take(&a, room, x->t, x->packed_a, x->rows, x->k, x->k, 1);
    tensor_core_take(&b, other, x->t, x->packed_b, x->cols, x->k, x->k, 1);
    tensor_core_product(model, &a, &b, x->start, x->cols, x->got, x->cols);
    free(room);
    free(other);
}

static void same_bits(float got, float want, enum tensor_core model, uint32_t fill, int i)
{
    if (format_f32_bits(got) != format_f32_bits(want))
        fail_msg("%s fill %u element %d: %a (%08x), expected %a (%08x)", tensor_core_name(model), fill, i, (double)got,
                 format_f32_bits(got), (double)want, format_f32_bits(want));
}

/* All finite fills, types and models; shapes with tails. */
static void integer_arithmetic(void **state)
{
    (void)state;
    static struct tile x;
    const int sizes[][3] = {{16, 16, 64}, {16, 8, 128}, {5, 11, 32}, {1, 1, 128}, {9, 3, 96}};
    int checked = 0;
    for (int model = TENSOR_CORE_V100; model < TENSOR_CORE_COUNT; model++) {
        if (!shapes[model].products)
            continue;
        for (uint32_t instruction = VECTOR_MMA_F16; instruction <= VECTOR_MMA_E4M3; instruction++) {
            if (!tensor_core_takes((enum tensor_core)model, type_of(instruction)))
                continue;
            for (uint32_t fill = VECTOR_NORMAL; fill < VECTOR_SPECIAL; fill++) {
                for (int number = 0; number < 30; number++) {
                    const struct vector_row row = {instruction, fill, 1, (uint32_t)number % 2, 0};
                    const int *size = sizes[number % 5];
                    x.rows = size[0];
                    x.cols = size[1];
                    x.k = size[2];
                    tile_fill(&x, &row, number);
                    tile_product((enum tensor_core)model, &x);
                    for (int i = 0; i < x.rows * x.cols; i++) {
                        const float want = reference((enum tensor_core)model, vector_format(instruction, 0),
                                                     x.a + (ptrdiff_t)(i / x.cols) * x.k,
                                                     x.b + (ptrdiff_t)(i % x.cols) * x.k, x.k, x.start[i]);
                        same_bits(x.got[i], want, (enum tensor_core)model, fill, i);
                        checked++;
                    }
                }
            }
        }
    }
    print_message("# %d elements\n", checked);
}

static float dot_f16(enum tensor_core model, int k, const float *a, const float *b, float c)
{
    uint16_t x[32] = {0};
    uint16_t y[32] = {0};
    float d = 0;
    for (int i = 0; i < k; i++) {
        x[i] = f16_from_f32(a[i]);
        y[i] = f16_from_f32(b[i]);
    }
    tensor_core_mma(model, DTYPE_F16, 1, 1, k, x, y, &c, &d);
    return d;
}

/* What sets the generations apart, as published: how many places below the largest term survive, how many products
   share one alignment, and that nothing is rounded up. */
static void generations(void **state)
{
    (void)state;
    float a[16] = {0};
    float b[16] = {0};
    for (int i = 0; i < 16; i++)
        a[i] = 0x1p-12f;
    /* 1 + 16 * 2^-24 */
    for (int i = 0; i < 16; i++)
        b[i] = 0x1p-12f;
    assert_true(dot_f16(TENSOR_CORE_V100, 16, a, b, 1) == 1);                 /* 2^-24 is below 23 places */
    assert_true(dot_f16(TENSOR_CORE_A100, 16, a, b, 1) == 1 + 16 * 0x1p-24f); /* 24 places hold them */
    assert_true(dot_f16(TENSOR_CORE_H100, 16, a, b, 1) == 1 + 16 * 0x1p-24f);
    assert_true(dot_f16(TENSOR_CORE_F32, 16, a, b, 1) == 1); /* each is half an ulp: ties to even */
    for (int i = 0; i < 16; i++)
        b[i] = 0x1p-13f;
    assert_true(dot_f16(TENSOR_CORE_A100, 16, a, b, 1) == 1);
    assert_true(dot_f16(TENSOR_CORE_H100, 16, a, b, 1) == 1 + 16 * 0x1p-25f);
    for (int i = 0; i < 16; i++)
        b[i] = 0x1p-14f;
    assert_true(dot_f16(TENSOR_CORE_H100, 16, a, b, 1) == 1);
    /* Toward zero on both sides. */
    for (int i = 0; i < 16; i++)
        b[i] = i < 7 ? 0x1p-13f : 0;
    assert_true(dot_f16(TENSOR_CORE_H100, 16, a, b, 1) == 1 + 0x1p-23f);
    assert_true(dot_f16(TENSOR_CORE_H100, 16, a, b, -1) == -1 + 8 * 0x1p-25f);
    /* Cancellation gives +0, and zero products do not align anything. */
    const float one[16] = {1, 1}, minus[16] = {1, -1};
    assert_int_equal(format_f32_bits(dot_f16(TENSOR_CORE_H100, 16, one, minus, 0)), 0);
    /* So does what rounds to zero: f16 ends at 2^-24. */
    const float last[32] = {[31] = -0x1p-14f}, factor[32] = {[31] = 0x1p-14f};
    assert_int_equal(format_f32_bits(dot_f16(TENSOR_CORE_H100_F16, 32, last, factor, 0)), 0);
    const float large[16] = {0, 0x1p15f}, small[16] = {0x1p-14f, 0}, tiny[16] = {0x1p-14f, 0x1p15f};
    (void)large;
    assert_true(dot_f16(TENSOR_CORE_H100, 16, small, tiny, 0x1p-60f) == 0x1p-28f);
    assert_true(dot_f16(TENSOR_CORE_H100, 16, small, large, 0x1p-60f) == 0x1p-60f);
}

static void not_finite(void **state)
{
    (void)state;
    const float inf = INFINITY;
    for (int model = TENSOR_CORE_F32; model <= TENSOR_CORE_H100; model++) {
        const enum tensor_core m = (enum tensor_core)model;
        const float plain[16] = {1, 1}, up[16] = {inf, 1}, both[16] = {inf, -inf}, none[16] = {0, 1}, bad[16] = {NAN};
        assert_true(dot_f16(m, 16, up, plain, 0) == inf);
        assert_true(dot_f16(m, 16, plain, plain, -inf) == -inf);
        assert_int_equal(format_f32_bits(dot_f16(m, 16, both, plain, 0)), 0x7FFFFFFF);
        assert_int_equal(format_f32_bits(dot_f16(m, 16, up, none, 0)), 0x7FFFFFFF);
        assert_int_equal(format_f32_bits(dot_f16(m, 16, up, plain, -inf)), 0x7FFFFFFF);
        assert_int_equal(format_f32_bits(dot_f16(m, 16, bad, plain, 0)), 0x7FFFFFFF);
        assert_int_equal(format_f32_bits(dot_f16(m, 16, plain, plain, NAN)), 0x7FFFFFFF);
    }
    const uint8_t ones[32] = {0x38, 0x38}; /* e4m3 */
    const enum tensor_core eight_bits[] = {TENSOR_CORE_ADA_E4M3, TENSOR_CORE_WGMMA_E4M3, TENSOR_CORE_MMA_E4M3,
                                           TENSOR_CORE_WGMMA_E4M3_F16, TENSOR_CORE_WGMMA_E4M3_PROMOTED};
    for (size_t i = 0; i < sizeof eight_bits / sizeof *eight_bits; i++) {
        const float starts[] = {NAN, -NAN, inf, -inf, 1};
        const uint32_t ends[] = {0x7FFFFFFF, 0x7FFFFFFF, 0x7F800000, 0xFF800000, 0x40400000};
        for (int j = 0; j < 5; j++) {
            float d = 0;
            tensor_core_mma(eight_bits[i], DTYPE_E4M3, 1, 1, 32, ones, ones, &starts[j], &d);
            assert_int_equal(format_f32_bits(d), ends[j]);
        }
    }
}

/* Any strides, and a tile computed in pieces is the tile. */
static void strides_and_pieces(void **state)
{
    (void)state;
    static struct tile x;
    const struct vector_row row = {VECTOR_MMA_F16, VECTOR_WIDE, 1, 1, 0};
    x.rows = 13;
    x.cols = 16;
    x.k = 64;
    tile_fill(&x, &row, 1);
    tile_product(TENSOR_CORE_H100, &x);
    uint16_t turned[MAX_CODES];
    for (int i = 0; i < x.rows * x.k; i++)
        turned[i % x.k * x.rows + i / x.k] = x.packed_a[i];
    struct tensor_core_operand a;
    struct tensor_core_operand b;
    _Alignas(32) static unsigned char room[2][16384];
    assert_true(tensor_core_room(16, 64) <= sizeof room[0]);
    float sum[16 * 24];
    for (int i = 0; i < 16 * 24; i++)
        sum[i] = i / 24 < x.rows && i % 24 < x.cols ? x.start[i / 24 * x.cols + i % 24] : -7;
    for (int first = 0; first < x.k; first += 32) { /* in place, an instruction at a time */
        tensor_core_take(&a, room[0], DTYPE_F16, turned + (ptrdiff_t)first * x.rows, x.rows, 32, 1, x.rows);
        tensor_core_take(&b, room[1], DTYPE_F16, x.packed_b + first, x.cols, 32, x.k, 1);
        tensor_core_product(TENSOR_CORE_H100, &a, &b, sum, 24, sum, 24);
    }
    for (int i = 0; i < 16 * 24; i++)
        same_bits(sum[i], i / 24 < x.rows && i % 24 < x.cols ? x.got[i / 24 * x.cols + i % 24] : -7, TENSOR_CORE_H100,
                  row.fill, i);
}

static void names(void **state)
{
    (void)state;
    for (int i = 0; i < TENSOR_CORE_COUNT; i++)
        assert_int_equal(tensor_core_from_name(tensor_core_name((enum tensor_core)i)), i);
    assert_int_equal(tensor_core_from_name("h10"), -1);
    assert_int_equal(tensor_core_from_name(NULL), -1);
    assert_false(tensor_core_takes(TENSOR_CORE_V100, DTYPE_BF16));
    assert_true(tensor_core_takes(TENSOR_CORE_F32, DTYPE_E4M3));
}

/* Every model stays within its own bound, and takes a fair part of it. */
static void bounds(void **state)
{
    (void)state;
    static struct tile x;
    for (int model = TENSOR_CORE_F32; model < TENSOR_CORE_COUNT; model++) {
        double most = 0;
        int products = 0;
        int fraction = 0;
        int result = 0;
        tensor_core_shape((enum tensor_core)model, &products, &fraction, &result);
        const int narrow = result == 10;
        for (uint32_t instruction = VECTOR_MMA_F16; instruction < VECTOR_INSTRUCTIONS; instruction++) {
            const struct vector_product product = vector_product(instruction);
            const int first = instruction <= VECTOR_WMMA_F16_F16 || instruction == VECTOR_WGMMA_E4M3_F16;
            if (!first || !tensor_core_takes((enum tensor_core)model, product.operand) ||
                narrow != (product.sum == DTYPE_F16))
                continue;
            const struct vector_format f = vector_format(instruction, 0), f32 = vector_format(VECTOR_MMA_F16, 1);
            for (uint32_t fill = VECTOR_NORMAL; fill <= VECTOR_ZEROS; fill++) {
                for (int number = 0; number < 40; number++) {
                    const struct vector_row row = {instruction, fill, 1, (uint32_t)number % 2, 0};
                    x.rows = x.cols = 16;
                    x.k = 64;
                    tile_fill(&x, &row, number);
                    for (int i = 0; narrow && i < 256; i++)
                        x.start[i] = f16_to_f32((uint16_t)x.c[i]);
                    tile_product((enum tensor_core)model, &x);
                    for (int i = 0; i < 256; i++) {
                        if (narrow && isinf(x.got[i]))
                            continue;
                        const struct scaled c = take_apart(f32, format_f32_bits(x.start[i]));
                        double exact = ldexp((double)c.integer, c.exponent), size = fabs(exact);
                        for (int k = 0; k < x.k; k++) {
                            const struct scaled p = take_apart(f, x.a[i / 16 * x.k + k]);
                            const struct scaled q = take_apart(f, x.b[i % 16 * x.k + k]);
                            const double product = ldexp((double)(p.integer * q.integer), p.exponent + q.exponent);
                            const double least = ldexp(1, p.exponent + q.exponent + 2 * f.mantissa);
                            exact += product;
                            size += product != 0 ? fmax(fabs(product), least) : 0;
                        }
                        const double error = fabs((double)x.got[i] - exact);
                        const double bound =
                            tensor_core_bound((enum tensor_core)model, x.k) * size + 64 * (narrow ? 0x1p-25 : 0x1p-149);
                        assert_true(error <= bound);
                        if (bound > 0 && error / bound > most)
                            most = error / bound;
                    }
                }
            }
        }
        print_message("# %-10s largest error/bound %.3f\n", tensor_core_name((enum tensor_core)model), most);
        assert_true(most > 0.02);
    }
}

/* A model that is said to give every bit gives every bit; one whose bound is said to hold keeps it. */
static void check_product(const char *path, const struct vector_row *row, int number, int sm, const uint32_t *out)
{
    const struct vector_product p = vector_product(row->instruction);
    enum vector_claim claim;
    const int model = vector_row_model(row, sm, &claim);
    struct vector_judgement j;
    if (model == VECTOR_NO_MODEL || claim == VECTOR_OPEN)
        return;
    assert_int_equal(vector_judge(row, number, (enum tensor_core)model, out, &j), 0);
    assert_int_equal(j.n, row->count);
    if (!(j.worst <= 1))
        fail_msg("%s row %d, %s, fill %u: %.3g times its bound", path, number, p.text, row->fill, j.worst);
    if (claim == VECTOR_EQUAL && j.equal != j.n)
        fail_msg("%s row %d, %s, fill %u, chain %u: %ld of %ld elements differ, first %d: %08x", path, number, p.text,
                 row->fill, row->chain, j.n - j.equal, j.n, j.first_unequal, out[j.first_unequal]);
}

/* ex2.approx and __expf lie within the bound that the oracle gives an exponential; what underflows is flushed. */
static void check_exponential(const struct vector_row *row, int number, const uint32_t *out)
{
    double most = 0;
    for (int i = 0; i < (int)row->count; i++) {
        const float x = vector_argument(number, i);
        const double argument = (double)x * (row->instruction == VECTOR_EX2 ? M_LN2 : 1), want = exp(argument);
        const double got = (double)format_f32_of(out[i]);
        if (!isfinite(argument)) {
            assert_true(isnan(want) ? isnan(got) : got == want);
            continue;
        }
        const double bound = want * bound_exp(row->instruction == VECTOR_EX2 ? 0 : argument, 0) + BOUND_TINY;
        if (!(fabs(got - want) <= bound))
            fail_msg("argument %a: %a, expected %a within %a", (double)x, got, want, bound);
        if (want > 0 && fabs(got - want) / bound > most)
            most = fabs(got - want) / bound;
    }
    print_message("# %s: largest error/bound %.3f\n", row->instruction == VECTOR_EX2 ? "ex2.approx" : "__expf", most);
}

static int check_file(const char *path)
{
    enum { MOST = 1 << 20 };
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint32_t *words = calloc(MOST, sizeof *words);
    assert_non_null(words);
    const size_t n_words = fread(words, sizeof *words, MOST, file);
    assert_true(feof(file));
    fclose(file);
    int sm = 0;
    int n_rows = 0;
    const uint32_t *at = vector_file(words, n_words, &sm, &n_rows);
    if (!at || n_rows < 1)
        fail_msg("%s: no vectors", path);
    for (int i = 0; i < n_rows; i++) {
        struct vector_row row = {0};
        const uint32_t *out = NULL;
        at = vector_file_row(at, words + n_words, &row, &out);
        if (!at || !out) {
            fail_msg("%s: ends in row %d of %d", path, i, n_rows);
            return 0;
        }
        if (row.instruction == VECTOR_EX2 || row.instruction == VECTOR_EXPF)
            check_exponential(&row, i, out);
        else if (vector_product(row.instruction).text)
            check_product(path, &row, i, sm, out);
        else
            fail_msg("%s row %d: instruction %u is not known", path, i, row.instruction);
    }
    assert_int_equal(at - words, n_words);
    print_message("# %s: sm_%d, %d rows\n", path, sm, n_rows);
    free(words);
    return 1;
}

/* Every file there is. */
static void hardware(void **state)
{
    (void)state;
    DIR *folder = opendir("tests/vectors");
    assert_non_null(folder);
    int files = 0;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[512];
        const size_t n = strlen(entry->d_name);
        if (n < 4 || strcmp(entry->d_name + n - 4, ".bin") != 0)
            continue;
        assert_true(snprintf(path, sizeof path, "tests/vectors/%s", entry->d_name) < (int)sizeof path);
        files += check_file(path);
    }
    closedir(folder);
    assert_true(files > 0);
}

/* One bit of a recorded product turned is seen, and so is one that leaves the bound. */
static void judged(void **state)
{
    (void)state;
    const struct vector_row row = {VECTOR_WGMMA_E4M3, VECTOR_POSITIVE, 2, 1, 700};
    static uint32_t out[1024];
    struct vector_inputs in;
    struct vector_judgement j;
    assert_int_equal(vector_inputs_new(&row, 5, &in), 0);
    for (int tile = 0; tile < 2; tile++)
        assert_int_equal(vector_emulate(&in, &row, TENSOR_CORE_WGMMA_E4M3, tile, out + (ptrdiff_t)512 * tile), 0);
    free(in.code);
    assert_int_equal(vector_judge(&row, 5, TENSOR_CORE_WGMMA_E4M3, out, &j), 0);
    assert_true(j.n == 700 && j.equal == 700 && j.first_unequal == -1 && j.worst > 0.02 && j.worst <= 1);
    out[600] ^= 1u << 10;
    assert_int_equal(vector_judge(&row, 5, TENSOR_CORE_WGMMA_E4M3, out, &j), 0);
    assert_true(j.equal == 699 && j.first_unequal == 600 && j.worst <= 1);
    out[600] ^= 1u << 31;
    assert_int_equal(vector_judge(&row, 5, TENSOR_CORE_WGMMA_E4M3, out, &j), 0);
    assert_true(j.worst > 1);
    out[600] = 0x7FFFFFFF;
    assert_int_equal(vector_judge(&row, 5, TENSOR_CORE_WGMMA_E4M3, out, &j), 0);
    assert_true(j.worst > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_arithmetic), cmocka_unit_test(generations), cmocka_unit_test(not_finite),
        cmocka_unit_test(strides_and_pieces), cmocka_unit_test(names),       cmocka_unit_test(bounds),
        cmocka_unit_test(hardware),           cmocka_unit_test(judged),
    };
    return cmocka_run_group_tests_name("tensor core", tests, NULL, NULL);
}
