/* The narrow formats against their definitions: values by ldexp, rounding by a search over all values of the format. */
#include "engine/base/format.h"
#include "engine/base/philox.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define CODES_MAX 32768 /* magnitude codes of the 16-bit formats */

struct format {
    const char *name;
    int bits, mant, bias;
    uint32_t largest;   /* magnitude code of the largest number */
    uint32_t too_large; /* magnitude code of what does not fit: infinity, or NaN in e4m3 */
    uint32_t quiet;     /* magnitude code of the NaN with empty payload */
    int saturates;      /* has a saturating mode */
    double (*to_f64)(uint32_t code);
    float (*to_f32)(uint32_t code);
    uint32_t (*from_f64)(double x, int saturate);
    uint32_t (*from_f32)(float x, int saturate);
};

static double f16_to_64(uint32_t code)
{
    return f16_to_f64((uint16_t)code);
}
static float f16_to_32(uint32_t code)
{
    return f16_to_f32((uint16_t)code);
}
static uint32_t f16_from_64(double x, int saturate)
{
    (void)saturate;
    return f16_from_f64(x);
}
static uint32_t f16_from_32(float x, int saturate)
{
    (void)saturate;
    return f16_from_f32(x);
}
static float f16_to_32_soft(uint32_t code)
{
    return f16_to_f32_soft((uint16_t)code);
}
static uint32_t f16_from_32_soft(float x, int saturate)
{
    (void)saturate;
    return f16_from_f32_soft(x);
}
static double bf16_to_64(uint32_t code)
{
    return bf16_to_f64((uint16_t)code);
}
static float bf16_to_32(uint32_t code)
{
    return bf16_to_f32((uint16_t)code);
}
static uint32_t bf16_from_64(double x, int saturate)
{
    (void)saturate;
    return bf16_from_f64(x);
}
static uint32_t bf16_from_32(float x, int saturate)
{
    (void)saturate;
    return bf16_from_f32(x);
}
static double e4m3_to_64(uint32_t code)
{
    return (double)e4m3_to_f32((uint8_t)code);
}
static float e4m3_to_32(uint32_t code)
{
    return e4m3_to_f32((uint8_t)code);
}
static uint32_t e4m3_from_64(double x, int saturate)
{
    return e4m3_from_f64(x, saturate);
}
static uint32_t e4m3_from_32(float x, int saturate)
{
    return e4m3_from_f32(x, saturate);
}
static double e5m2_to_64(uint32_t code)
{
    return (double)e5m2_to_f32((uint8_t)code);
}
static float e5m2_to_32(uint32_t code)
{
    return e5m2_to_f32((uint8_t)code);
}
static uint32_t e5m2_from_64(double x, int saturate)
{
    return e5m2_from_f64(x, saturate);
}
static uint32_t e5m2_from_32(float x, int saturate)
{
    return e5m2_from_f32(x, saturate);
}

static const struct format formats[] = {
    {"f16", 16, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0, f16_to_64, f16_to_32, f16_from_64, f16_from_32},
    {"f16 in software", 16, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0, f16_to_64, f16_to_32_soft, f16_from_64,
     f16_from_32_soft},
    {"bf16", 16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, 0, bf16_to_64, bf16_to_32, bf16_from_64, bf16_from_32},
    {"e4m3", 8, 3, 7, 0x7E, 0x7F, 0x7F, 1, e4m3_to_64, e4m3_to_32, e4m3_from_64, e4m3_from_32},
    {"e5m2", 8, 2, 15, 0x7B, 0x7C, 0x7E, 1, e5m2_to_64, e5m2_to_32, e5m2_from_64, e5m2_from_32},
};

#define FORMATS_END (formats + sizeof formats / sizeof *formats)

static uint32_t sign_of(const struct format *f)
{
    return 1u << (f->bits - 1);
}

/* IEEE 754-2019, 3.4, and OFP8, table 1, read literally. */
static double definition(const struct format *f, uint32_t magnitude)
{
    const uint32_t field = magnitude >> f->mant, mantissa = magnitude & ((1u << f->mant) - 1);
    return field ? ldexp(1.0 + ldexp(mantissa, -f->mant), (int)field - f->bias)
                 : ldexp(mantissa, 1 - f->bias - f->mant);
}

/* Values of all magnitude codes up to the largest, and behind it the one that would follow: overflow is decided by the
   rounding to an unlimited exponent (IEEE 754, 7.4). value[code] in f64, exact. */
static double value[CODES_MAX + 1];
static void fill_values(const struct format *f)
{
    for (uint32_t code = 0; code <= f->largest + 1; code++)
        value[code] = definition(f, code);
}

/* The nearest of all values, ties to the even code. x is not NaN; value[] is of this format. */
static uint32_t nearest(const struct format *f, double x, int saturate)
{
    const double a = fabs(x);
    uint32_t low = 0, high = f->largest + 1, code; /* value[low] <= a < value[high], or beyond all */
    if (a >= value[high]) {
        code = high;
    } else {
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            if (value[middle] <= a)
                low = middle;
            else
                high = middle;
        }
        const double midpoint = (value[low] + value[high]) / 2; /* exact: one more bit than the format has */
        code = a < midpoint || (a == midpoint && low % 2 == 0) ? low : high;
    }
    if (code > f->largest)
        code = f->saturates && saturate ? f->largest : f->too_large;
    return code | (signbit(x) ? sign_of(f) : 0);
}

static void check_f64(const struct format *f, double x)
{
    for (int saturate = 0; saturate <= f->saturates; saturate++) {
        const uint32_t got = f->from_f64(x, saturate), want = nearest(f, x, saturate);
        if (got != want)
            fail_msg("%s from f64 %a (saturate %d): got %#x, want %#x", f->name, x, saturate, got, want);
    }
}

static void check_f32(const struct format *f, float x)
{
    for (int saturate = 0; saturate <= f->saturates; saturate++) {
        const uint32_t got = f->from_f32(x, saturate), want = nearest(f, (double)x, saturate);
        if (got != want)
            fail_msg("%s from f32 %a (saturate %d): got %#x, want %#x", f->name, (double)x, saturate, got, want);
    }
}

/* Code by code: the value, sign of zero included, and back to the same code from f32 and f64. */
static void every_number_has_its_value_and_returns(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < FORMATS_END; f++) {
        for (uint32_t magnitude = 0; magnitude <= f->largest; magnitude++) {
            for (int negative = 0; negative <= 1; negative++) {
                const uint32_t code = magnitude | (negative ? sign_of(f) : 0);
                const double want = negative ? -definition(f, magnitude) : definition(f, magnitude);
                if (format_f64_bits(f->to_f64(code)) != format_f64_bits(want))
                    fail_msg("%s %#x to f64: got %a, want %a", f->name, code, f->to_f64(code), want);
                if (format_f32_bits(f->to_f32(code)) != format_f32_bits((float)want))
                    fail_msg("%s %#x to f32: got %a, want %a", f->name, code, (double)f->to_f32(code), want);
                for (int saturate = 0; saturate <= 1; saturate++)
                    if (f->from_f64(want, saturate) != code || f->from_f32((float)want, saturate) != code)
                        fail_msg("%s %#x does not return", f->name, code);
            }
        }
    }
}

static void landmarks(void **state)
{
    (void)state;
    assert_true(f16_to_f64(0x7BFF) == 65504.0 && f16_to_f64(0x0400) == 0x1p-14 && f16_to_f64(0x0001) == 0x1p-24);
    assert_true(bf16_to_f64(0x7F7F) == 0x1.FEp127 && bf16_to_f64(0x0080) == 0x1p-126 &&
                bf16_to_f64(0x0001) == 0x1p-133);
    assert_true(e4m3_to_f32(0x7E) == E4M3_MAX && e4m3_to_f32(0x08) == 0x1p-6f && e4m3_to_f32(0x01) == 0x1p-9f);
    assert_true(e5m2_to_f32(0x7B) == E5M2_MAX && e5m2_to_f32(0x04) == 0x1p-14f && e5m2_to_f32(0x01) == 0x1p-16f);
    /* One step: by way of f32 this would be a tie and go down. */
    assert_int_equal(f16_from_f64(1 + 0x1p-11 + 0x1p-40), 0x3C01);
    assert_int_equal(f16_from_f32((float)(1 + 0x1p-11 + 0x1p-40)), 0x3C00);
    assert_int_equal(bf16_from_f64(1 + 0x1p-8 + 0x1p-40), 0x3F81);
    /* The tie above the largest number is even in e4m3 and odd in the others. */
    assert_int_equal(e4m3_from_f32(464.0f, 0), 0x7E);
    assert_int_equal(e4m3_from_f32(464.001f, 0), 0x7F);
    assert_int_equal(e4m3_from_f32(-464.001f, 1), 0xFE);
    assert_int_equal(e5m2_from_f32(61439.0f, 0), 0x7B);
    assert_int_equal(e5m2_from_f32(61440.0f, 0), 0x7C);
    assert_int_equal(e5m2_from_f32(-61440.0f, 1), 0xFB);
    assert_int_equal(f16_from_f32(65519.0f), 0x7BFF);
    assert_int_equal(f16_from_f32(65520.0f), 0x7C00);
    assert_int_equal(bf16_from_f32(0x1.FFp127f), 0x7F80);
}

/* Around each number and each midpoint between two neighbors, the overflow threshold among them. */
static void rounding_is_to_nearest_even(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < FORMATS_END; f++) {
        fill_values(f);
        for (uint32_t code = 0; code <= f->largest; code++) {
            const double middle = (value[code] + value[code + 1]) / 2;
            const double anchors[] = {value[code], middle, value[code + 1]};
            for (int i = 0; i < 3; i++) {
                for (int sign = -1; sign <= 1; sign += 2) {
                    const double x = sign * anchors[i];
                    check_f64(f, x);
                    check_f64(f, nextafter(x, INFINITY));
                    check_f64(f, nextafter(x, -INFINITY));
                    const float y = (float)x; /* exact but beyond bf16's overflow threshold, where it is inf */
                    check_f32(f, y);
                    check_f32(f, nextafterf(y, INFINITY));
                    check_f32(f, nextafterf(y, -INFINITY));
                }
            }
        }
    }
}

/* The f32 or f64 of random bits, half of them with an exponent near the format's own. */
static void random_values_round_right(void **state)
{
    (void)state;
    const uint32_t key[2] = {2, 0};
    for (const struct format *f = formats; f < FORMATS_END; f++) {
        fill_values(f);
        for (uint32_t i = 0; i < 100000; i++) {
            const uint32_t counter[4] = {i, (uint32_t)(f - formats), 0, 0};
            uint32_t r[4];
            philox4x32(counter, key, r);
            double x = format_f64_of((uint64_t)r[0] << 32 | r[1]);
            float y = format_f32_of(r[2]);
            if (i % 2) {
                const int exponent = (int)(r[3] % (unsigned)(2 * f->bias + f->mant + 4)) - f->bias - f->mant;
                x = copysign(ldexp(1 + ldexp(r[1], -32), exponent), r[0] & 1 ? -1.0 : 1.0);
                y = (float)x;
            }
            if (!isnan(x))
                check_f64(f, x);
            if (!isnan(y))
                check_f32(f, y);
        }
    }
}

static void infinity_and_subnormals_of_the_source(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < FORMATS_END; f++) {
        fill_values(f);
        static const double wide[] = {INFINITY, 0x1.FFFFFFFFFFFFFp1023, 0x1p-1074, 0x1p-1022, 0x0.FFFFFFFFFFFFFp-1022};
        static const float narrow[] = {INFINITY, 0x1.FFFFFEp127f, 0x1p-149f, 0x1p-126f, 0x0.FFFFFEp-126f};
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
            check_f64(f, wide[i]);
            check_f64(f, -wide[i]);
            check_f32(f, narrow[i]);
            check_f32(f, -narrow[i]);
        }
        if (f->too_large != f->quiet) {
            const uint32_t minus = f->too_large | sign_of(f);
            assert_true(f->to_f64(f->too_large) == INFINITY && f->to_f32(f->too_large) == INFINITY);
            assert_true(f->to_f64(minus) == -INFINITY && f->to_f32(minus) == -INFINITY);
        }
    }
}

/* NaN in every direction: whatever its sign and payload, narrowed it is the one NaN of a GPU, saturating or not. */
static void nan_stays_nan(void **state)
{
    (void)state;
    for (const struct format *f = formats; f < FORMATS_END; f++) {
        const uint32_t end = sign_of(f);
        for (uint32_t m = f->too_large == f->quiet ? f->quiet : f->too_large + 1; m < end; m++) {
            for (int negative = 0; negative <= 1; negative++) {
                const uint32_t code = m | (negative ? end : 0);
                assert_true(isnan(f->to_f32(code)) && isnan(f->to_f64(code)));
                for (int saturate = 0; saturate <= 1; saturate++) {
                    assert_int_equal(f->from_f32(f->to_f32(code), saturate), end - 1);
                    assert_int_equal(f->from_f64(f->to_f64(code), saturate), end - 1);
                }
            }
        }
        /* A payload in the lowest bit alone, signalling: cut off it would leave infinity. */
        for (int saturate = 0; saturate <= 1; saturate++) {
            assert_int_equal(f->from_f32(format_f32_of(0x7F800001u), saturate), end - 1);
            assert_int_equal(f->from_f32(format_f32_of(0xFF800001u), saturate), end - 1);
            assert_int_equal(f->from_f64(format_f64_of(UINT64_C(0x7FF0000000000001)), saturate), end - 1);
            assert_int_equal(f->from_f64(format_f64_of(UINT64_C(0xFFF0000000000001)), saturate), end - 1);
        }
    }
}

/* Sources that round, overflow, underflow and signal, as bits. Volatile, or a compiler that sees no floating-point
   arithmetic converts them once for all environments. */
#define SOURCES 4096
static volatile uint64_t source64[SOURCES];
static volatile uint32_t source32[SOURCES];

static void fill_sources(void)
{
    const uint32_t key[2] = {3, 0};
    for (uint32_t i = 0; i < SOURCES; i++) {
        const uint32_t counter[4] = {i, 0, 0, 0};
        uint32_t r[4];
        philox4x32(counter, key, r);
        source64[i] = (uint64_t)r[0] << 32 | r[1];
        source32[i] = r[2];
        if (i % 4 == 0) { /* infinity, NaN of both kinds and subnormals are rare among random bits */
            source64[i] = (source64[i] & UINT64_C(0x800FFFFFFFFFFFFF)) | (i % 8 ? UINT64_C(0x7FF0000000000000) : 0);
            source32[i] = (source32[i] & 0x807FFFFFu) | (i % 8 ? 0x7F800000u : 0);
        }
    }
}

/* Every software conversion of every source and code, folded into one number (FNV-1a). */
static uint64_t fold(uint64_t hash, uint64_t bits)
{
    return (hash ^ bits) * UINT64_C(0x100000001B3);
}

static uint64_t convert_everything(void)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (int i = 0; i < SOURCES; i++) {
        const double x = format_f64_of(source64[i]);
        const float y = format_f32_of(source32[i]);
        hash = fold(fold(hash, f16_from_f64(x)), f16_from_f32_soft(y));
        hash = fold(fold(hash, bf16_from_f64(x)), bf16_from_f32(y));
        for (int saturate = 0; saturate <= 1; saturate++) {
            hash = fold(fold(hash, e4m3_from_f64(x, saturate)), e4m3_from_f32(y, saturate));
            hash = fold(fold(hash, e5m2_from_f64(x, saturate)), e5m2_from_f32(y, saturate));
        }
    }
    for (uint32_t code = 0; code < 65536; code++) {
        const uint16_t c = (uint16_t)code;
        hash = fold(fold(hash, format_f32_bits(f16_to_f32_soft(c))), format_f64_bits(f16_to_f64(c)));
        hash = fold(fold(hash, format_f32_bits(bf16_to_f32(c))), format_f64_bits(bf16_to_f64(c)));
    }
    for (uint32_t code = 0; code < 256; code++)
        hash =
            fold(fold(hash, format_f32_bits(e4m3_to_f32((uint8_t)code))), format_f32_bits(e5m2_to_f32((uint8_t)code)));
    return hash;
}

static void environment_does_not_matter(void **state)
{
    (void)state;
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    fill_sources();
    feclearexcept(FE_ALL_EXCEPT);
    const uint64_t plain = convert_everything();
    assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        fesetround(modes[i]);
        const uint64_t rounded = convert_everything();
        fesetround(FE_TONEAREST);
        assert_true(rounded == plain);
    }
#ifdef __x86_64__
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040u); /* flush to zero, denormals are zero */
    const uint64_t flushed = convert_everything();
    _mm_setcsr(before);
    assert_true(flushed == plain);
#endif
}

#ifdef __x86_64__
__attribute__((target("f16c"))) static uint16_t hard_from_f32(float x)
{
    return (uint16_t)_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT));
}

__attribute__((target("f16c"))) static float hard_to_f32(uint16_t code)
{
    return _cvtsh_ss(code);
}

/* Every code; and of the 2^32 floats all upper halves with lower halves that decide the rounding. */
static void software_equals_f16c(void **state)
{
    (void)state;
    if (!__builtin_cpu_supports("avx2")) /* older compilers cannot ask for F16C; every processor with AVX2 has it */
        skip();
    static const uint32_t low[] = {0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000,
                                   0x5000, 0x7FFF, 0x8000, 0x8001, 0x9000, 0xB000, 0xFFFE, 0xFFFF};
    for (uint32_t high = 0; high < 65536; high++) {
        const uint32_t want = format_f32_bits(hard_to_f32((uint16_t)high));
        if (format_f32_bits(f16_to_f32_soft((uint16_t)high)) != want)
            fail_msg("f16 %#x: F16C says %#x", high, want);
        for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
            const float x = format_f32_of(high << 16 | low[i]);
            const uint16_t want_code = isnan(x) ? 0x7FFF : hard_from_f32(x); /* F16C keeps a NaN's payload */
            if (f16_from_f32_soft(x) != want_code || f16_from_f32(x) != want_code)
                fail_msg("f32 bits %#x: F16C says %#x, software %#x", format_f32_bits(x), hard_from_f32(x),
                         f16_from_f32_soft(x));
        }
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_its_value_and_returns),
        cmocka_unit_test(landmarks),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(random_values_round_right),
        cmocka_unit_test(infinity_and_subnormals_of_the_source),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(environment_does_not_matter),
#ifdef __x86_64__
        cmocka_unit_test(software_equals_f16c),
#endif
    };
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
