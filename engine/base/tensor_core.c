#include "engine/base/tensor_core.h"

#include "engine/base/format.h"
#include <math.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { PANEL = 8, K_STEP_16 = 16, K_STEP_8 = 32 }; /* products of the longest instruction, by bits of an operand */
static const ptrdiff_t STEP = PANEL;               /* from k to k */
#define EXPONENT_ZERO (-8192) /* of a zero: a product of one lies below half of it, all others above */

#define F16_RESULT 10
#define CANONICAL_NAN 0x7FFFFFFFu

struct model {
    const char *name;
    uint32_t types;
    int products, fraction, result, pair, parts;
};

static const struct model models[TENSOR_CORE_COUNT] = {
#define TENSOR_CORE(id, name, types, products, fraction, result, pair, parts)                                          \
    [id] = {name, types, products, fraction, result, pair, parts},
#include "engine/base/tensor_core.def"
#undef TENSOR_CORE
};

const char *tensor_core_name(enum tensor_core model)
{
    return models[model].name;
}

int tensor_core_from_name(const char *name)
{
    for (int i = 0; name && i < TENSOR_CORE_COUNT; i++)
        if (strcmp(models[i].name, name) == 0)
            return i;
    return -1;
}

uint32_t tensor_cores_from_names(const char *names)
{
    uint32_t set = 0;
    for (const char *at = names; *at; at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' '))
        for (int i = 0; i < TENSOR_CORE_COUNT; i++)
            if (strncmp(models[i].name, at, strcspn(at, " ")) == 0 && !models[i].name[strcspn(at, " ")])
                set |= 1u << i;
    return set;
}

bool tensor_core_takes(enum tensor_core model, enum dtype t)
{
    return (models[model].types >> t & 1) != 0;
}

void tensor_core_shape(enum tensor_core model, int *products, int *fraction, int *result)
{
    *products = models[model].products;
    *fraction = models[model].fraction;
    *result = models[model].result;
}

double tensor_core_bound(enum tensor_core model, int n)
{
    const struct model *m = &models[model];
    if (model == TENSOR_CORE_F32)
        return n * 0x1p-24;
    const int chunks = (n + m->products - 1) / m->products;
    const double roundings =
        m->parts ? (chunks + m->parts - 1) / m->parts : 0; /* NOLINT(bugprone-integer-division): whole instructions */
    const double chunk = ldexp(m->products + 1, -m->fraction) + ldexp(1, -m->result);
    return chunks * chunk + roundings * 0x1p-24;
}

static int padded_k(int k, int step)
{
    return (k + step - 1) / step * step;
}

static size_t panels_of(int rows)
{
    return (size_t)(rows + PANEL - 1) / PANEL;
}

size_t tensor_core_room(int rows, int k)
{
    const size_t panels = panels_of(rows), values = panels * (size_t)padded_k(k, K_STEP_8) * PANEL;
    return (values * (sizeof(float) + sizeof(int16_t)) + panels * 2 * sizeof(int16_t) + 31) / 32 * 32;
}

/* The smallest exponent of a normal number. */
static int least_exponent(enum dtype t)
{
    return t == DTYPE_BF16 ? -126 : t == DTYPE_E4M3 ? -6 : -14;
}

/* GNU vectors of a panel's width. */
typedef float vector_f32 __attribute__((vector_size(32)));
typedef int32_t vector_i32 __attribute__((vector_size(32)));
typedef uint32_t vector_u32 __attribute__((vector_size(32))); /* wraps in lanes that are reported */
typedef int16_t vector_i16 __attribute__((vector_size(16)));

#define SELECT(mask, yes, no) (((yes) & (mask)) | ((no) & ~(mask)))

/* Compilers do not see a maximum in SELECT. */
static inline __attribute__((always_inline)) vector_i16 larger(vector_i16 a, vector_i16 b)
{
#ifdef __SSE2__
    return (vector_i16)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    return SELECT(a > b, a, b);
#endif
}

/* What is known of one operand while it is taken apart. */
struct taking {
    enum dtype t;
    int wide; /* 1: codes of 16 bits */
    const void *data;
    int rows, k;
    ptrdiff_t row_stride, k_stride;
};

/* Eight codes in memory, `step` apart. */
#define CODES(x, step)                                                                                                 \
    {                                                                                                                  \
        (x)[0], (x)[step], (x)[2 * (step)], (x)[3 * (step)], (x)[4 * (step)], (x)[5 * (step)], (x)[6 * (step)],        \
            (x)[7 * (step)]                                                                                            \
    }

static uint32_t code_at(const struct taking *from, ptrdiff_t i)
{
    return from->wide ? ((const uint16_t *)from->data)[i] : ((const uint8_t *)from->data)[i];
}

/* Codes of elements (row, i) to (row + 7, i); what lies beyond the operand is 0. */
static inline __attribute__((always_inline)) void take_codes(const struct taking *from, int row, int i, vector_u32 *out)
{
    const ptrdiff_t step = from->row_stride, first = row * step + i * from->k_stride;
    if (i < from->k && row + PANEL <= from->rows && from->wide) {
        const uint16_t *x = (const uint16_t *)from->data + first;
        *out = (vector_u32)CODES(x, step);
        return;
    }
    *out = (vector_u32){0};
    for (int lane = 0; i < from->k && row + lane < from->rows && lane < PANEL; lane++)
        (*out)[lane] = code_at(from, first + lane * step);
}

static inline __attribute__((always_inline)) void code_values(enum dtype t, const vector_u32 *codes, vector_f32 *out)
{
    if (t == DTYPE_BF16) {
        *out = (vector_f32)(*codes << 16);
    } else if (t == DTYPE_F16) {
        /* The exponent moved to its place in f32 is short by 112; a subnormal f16 comes out normal. */
        const vector_u32 magnitude = (*codes & 0x7FFFu) << 13, special = (vector_u32)(magnitude >= 0x7C00u << 13);
        const vector_u32 scaled = (vector_u32)((vector_f32)magnitude * 0x1p112F);
        *out = (vector_f32)((*codes & 0x8000u) << 16 | scaled | (special & 0x7F800000u));
    } else {
        for (int lane = 0; lane < PANEL; lane++)
            (*out)[lane] =
                t == DTYPE_E4M3 ? e4m3_to_f32((uint8_t)(*codes)[lane]) : e5m2_to_f32((uint8_t)(*codes)[lane]);
    }
}

static inline __attribute__((always_inline)) void take_any(const struct taking *from,
                                                           const struct tensor_core_operand *o, int panel)
{
    const vector_i32 none = {0}, least = none + least_exponent(from->t);
    vector_f32 *value = (vector_f32 *)o->value + (ptrdiff_t)panel * o->k;
    vector_i16 *exponent = (vector_i16 *)o->exponent + (ptrdiff_t)panel * o->k;
    vector_i32 low = {0};
    vector_i32 high = {0};
    vector_i32 special = {0};
    for (int i = 0; i < o->k; i++) {
        vector_u32 codes;
        take_codes(from, panel * PANEL, i, &codes);
        code_values(from->t, &codes, &value[i]);
        /* A subnormal bf16 is a subnormal f32: its true exponent is below what the shift says, and low makes
           tensor_core_product() take the careful path. */
        const vector_i32 magnitude = (vector_i32)value[i] & 0x7FFFFFFF, zero = magnitude == 0;
        const vector_i32 true_exponent = (magnitude >> 23) - 127;
        const vector_i32 aligned = SELECT(true_exponent < least, least, true_exponent);
        exponent[i] = __builtin_convertvector(SELECT(zero, none + EXPONENT_ZERO, aligned), vector_i16);
        special |= true_exponent == 128;
        low = SELECT(~zero & (true_exponent < low), true_exponent, low);
        high = SELECT(~zero & (aligned > high), aligned, high);
    }
    int16_t *range = o->range + 2 * (ptrdiff_t)panel;
    range[0] = range[1] = 0;
    for (int lane = 0; lane < PANEL; lane++) {
        range[0] = (int16_t)(special[lane] ? INT16_MIN : low[lane] < range[0] ? low[lane] : range[0]);
        range[1] = (int16_t)(high[lane] > range[1] ? high[lane] : range[1]);
    }
}

typedef void take_function(const struct taking *from, const struct tensor_core_operand *o, int panel);

static void take_baseline(const struct taking *from, const struct tensor_core_operand *o, int panel)
{
    take_any(from, o, panel);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void take_avx2(const struct taking *from, const struct tensor_core_operand *o,
                                                      int panel)
{
    take_any(from, o, panel);
}

static take_function *choose_take(void)
{
    return __builtin_cpu_supports("avx2") ? take_avx2 : take_baseline;
}
#else
static take_function *choose_take(void)
{
    return take_baseline;
}
#endif

void tensor_core_take(struct tensor_core_operand *o, void *room, enum dtype t, const void *data, int rows, int k,
                      ptrdiff_t row_stride, ptrdiff_t k_stride)
{
    const size_t panels = panels_of(rows);
    const bool wide = t == DTYPE_F16 || t == DTYPE_BF16;
    const struct taking from = {t, wide, data, rows, k, row_stride, k_stride};
    o->rows = rows;
    o->k = padded_k(k, wide ? K_STEP_16 : K_STEP_8);
    o->value = room;
    void *after = o->value + panels * (size_t)o->k * PANEL;
    o->exponent = after;
    o->range = o->exponent + panels * (size_t)o->k * PANEL;
    take_function *const take = choose_take();
    for (int panel = 0; panel < (int)panels; panel++)
        take(&from, o, panel);
}

struct tensor_core_operand tensor_core_rows(const struct tensor_core_operand *o, int first, int n)
{
    const ptrdiff_t panel = first / PANEL, values = panel * PANEL * o->k;
    return (struct tensor_core_operand){n, o->k, o->value + values, o->exponent + values, o->range + 2 * panel};
}

/* Where two rows of A and one panel of B lie; a steps by PANEL from k to k. */
struct strip {
    const float *a, *b;
    const int16_t *a_exponent, *b_exponent;
    int k;
};

/* The sum of a chunk as f32: cut toward zero, below the smallest normal number to multiples of 2^-149.
   What becomes zero is +0. */
static float cut(double sum, int result)
{
    if (result == F16_RESULT)
        return f16_to_f32(f16_from_f64(sum)) + 0.0f; /* -0 + 0 is +0 */
    if (fabs(sum) >= 0x1p128)
        return sum > 0 ? INFINITY : -INFINITY;
    if (fabs(sum) < 0x1p-126)
        return (float)(trunc(sum * 0x1p149) * 0x1p-149) + 0.0f;
    return (float)format_f64_of(format_f64_bits(sum) & ~((UINT64_C(1) << (52 - result)) - 1));
}

/* One chunk of one element, any operands. All steps are exact in float64: products have 22 bits, and an aligned term
   stays below 2^(fraction + 2). */
static float chunk_careful(const struct model *m, const struct strip *s, int first, int row, int lane, float c)
{
    int largest = EXPONENT_ZERO;
    double infinite = isinf(c) ? c : 0;
    int undefined = isnan(c);
    for (int t = 0; t < m->products; t++) {
        const int at = (first + t / 2 * m->pair + t % 2) * STEP;
        const double product = (double)s->a[at + row] * s->b[at + lane];
        const int exponent = s->a_exponent[at + row] + s->b_exponent[at + lane];
        largest = exponent > largest ? exponent : largest;
        undefined |= isnan(product);
        if (isinf(product)) {
            undefined |= infinite == -product;
            infinite = product;
        }
    }
    if (undefined)
        return format_f32_of(CANONICAL_NAN);
    if (infinite != 0)
        return (float)infinite;
    if (c != 0) {
        const int exponent = (int)(format_f32_bits(c) >> 23 & 0xFF) - 127;
        largest = exponent > largest ? exponent : largest;
        largest = largest < -126 ? -126 : largest;
    }
    if (largest < EXPONENT_ZERO / 2)
        return 0;
    const double up = ldexp(1, m->fraction - largest), down = ldexp(1, largest - m->fraction);
    double sum = trunc(c * up);
    for (int t = 0; t < m->products; t++) {
        const ptrdiff_t at = (first + t / 2 * m->pair + t % 2) * STEP;
        sum += trunc((double)s->a[at + row] * s->b[at + lane] * up);
    }
    return cut(sum * down, m->result);
}

static float add_f32(float a, float b)
{
    const float sum = a + b;
    return isnan(sum) ? format_f32_of(CANONICAL_NAN) : sum;
}

static float element_careful(const struct model *m, const struct strip *s, int row, int lane, float c)
{
    const int step = m->products * m->pair / 2;
    for (int base = 0; base < s->k; base += step) {
        float sum = m->parts ? 0 : c;
        for (int part = 0; part < m->pair; part += 2)
            sum = chunk_careful(m, s, base + part, row, lane, sum);
        c = m->parts ? add_f32(c, sum) : sum;
    }
    return c;
}

/* The same for eight elements at a time, GNU vectors in place of int64. Lanes it cannot vouch for are reported: then
   the careful path does them over. */

/* Outside of these exponents scaling by a power of two would leave the normal numbers. */
enum { FAST_LOW = -100, FAST_HIGH = 120 };

/* Rounds to nearest even into f16: added to 1.5 2^(e + 13), a number of exponent e keeps places down to 2^(e - 10).
   Zero is +0. Infinite results are reported. */
static inline __attribute__((always_inline)) void round_f16(vector_f32 *x, vector_i32 *bad)
{
    const vector_i32 field = (vector_i32)*x >> 23 & 0xFF, least = {0};
    const vector_i32 from = SELECT(field > 113, field, least + 113); /* 2^-14, the smallest normal number */
    const vector_f32 magic = (vector_f32)((vector_u32)(from + 13) << 23 | 0x400000u);
    *x = *x + magic - magic;
    *bad |= (field > 142) | (*x > 65504.0f) | (*x < -65504.0f);
}

/* GCC keeps what a loop indexes in memory, unless it is told to unroll it. */
#define EACH_ROW(r)                                                                                                    \
    _Pragma("GCC unroll 2") for (int r = 0; r < 2; r++) /* NOLINT(bugprone-macro-parentheses): a name                  \
                                                         */

/* Two rows of A at a time, since each waits for its own last chunk. */
static inline __attribute__((always_inline)) int strip_fast(const struct model *m, const struct strip *s,
                                                            float c[2][PANEL])
{
    const int products = m->products, pair = m->pair, parts = m->parts, fraction = m->fraction;
    const int step = products * pair / 2;
    const bool to_f16 = m->result == F16_RESULT;
    const uint32_t result_mask = to_f16 ? ~0u : ~((1u << (23 - m->result)) - 1);
    const float *a = s->a;
    const int16_t *a_exponent = s->a_exponent;
    const vector_f32 *b = (const vector_f32 *)s->b;
    const vector_i16 *b_exponent = (const vector_i16 *)s->b_exponent;
    vector_f32 acc[2], before[2], up[2], down[2];
    vector_i32 bad = {0};
    EACH_ROW (r)
        memcpy(&acc[r], c[r], sizeof acc[r]);
    for (int base = 0; base < s->k; base += step) {
        EACH_ROW (r) {
            before[r] = acc[r];
            if (parts)
                acc[r] = (vector_f32){0};
        }
        for (int part = 0; part < pair; part += 2) {
            const int first = base + part;
            vector_i16 top[2] = {{0}};
            EACH_ROW (r)
                top[r] += EXPONENT_ZERO;
            for (int t = 0, at = first; t < products; t += 2, at += pair)
                EACH_ROW (r) {
                    top[r] = larger(b_exponent[at] + a_exponent[at * STEP + r], top[r]);
                    top[r] = larger(b_exponent[at + 1] + a_exponent[(at + 1) * STEP + r], top[r]);
                }
            vector_u32 even[2], odd[2] = {{0}}; /* two sums: each stays below 2^31 */
            EACH_ROW (r) {
                vector_i32 largest = __builtin_convertvector(top[r], vector_i32);
                const vector_i32 bits = (vector_i32)acc[r], field = bits >> 23 & 0xFF;
                const vector_i32 none = (bits & 0x7FFFFFFF) == 0;
                const vector_i32 acc_exponent = SELECT(none, (vector_i32){0} + EXPONENT_ZERO, field - 127);
                largest = SELECT(acc_exponent > largest, acc_exponent, largest);
                const vector_i32 zero = largest < EXPONENT_ZERO / 2;
                bad |= ~zero & ((largest > FAST_HIGH) | (largest < FAST_LOW));
                largest &= ~zero;
                up[r] = (vector_f32)((vector_u32)(127 + fraction - largest) << 23);
                down[r] = (vector_f32)((vector_u32)(127 - fraction + largest) << 23);
                even[r] = (vector_u32) __builtin_convertvector(acc[r] * up[r], vector_i32);
            }
            for (int t = 0, at = first; t < products; t += 2, at += pair) {
                EACH_ROW (r) {
                    even[r] += (vector_u32) __builtin_convertvector(b[at] * a[at * STEP + r] * up[r], vector_i32);
                    odd[r] +=
                        (vector_u32) __builtin_convertvector(b[at + 1] * a[(at + 1) * STEP + r] * up[r], vector_i32);
                }
            }
            EACH_ROW (r) {
                const vector_u32 sum = even[r] + odd[r];
                bad |= (vector_i32)((even[r] ^ sum) & (odd[r] ^ sum)) < 0;
                const vector_u32 minus = (vector_u32)((vector_i32)sum < 0);
                const vector_i32 magnitude = (vector_i32)((sum ^ minus) - minus);
                /* To f32 toward zero: the conversion rounds to nearest, so step back where it went up. */
                const vector_f32 nearest = __builtin_convertvector(magnitude, vector_f32);
                bad |= nearest >= 0x1p31f;
                const vector_i32 above = __builtin_convertvector(nearest, vector_i32) > magnitude;
                vector_u32 cut_bits = (vector_u32)((vector_i32)nearest + above) & result_mask;
                if (to_f16) /* what was cut away stays in the last bit, so that rounding to fewer bits is right */
                    cut_bits |=
                        (vector_u32)(__builtin_convertvector((vector_f32)cut_bits, vector_i32) != magnitude) & 1;
                acc[r] = (vector_f32)(cut_bits | (minus & 0x80000000u)) * down[r];
                if (to_f16)
                    round_f16(&acc[r], &bad);
            }
        }
        if (parts)
            EACH_ROW (r) {
                /* A NaN takes the careful path to the one NaN there is. */
                bad |= ((vector_i32)before[r] >> 23 & 0xFF) == 0xFF;
                acc[r] = before[r] + acc[r];
            }
    }
    EACH_ROW (r)
        memcpy(c[r], &acc[r], sizeof acc[r]);
    for (int lane = 0; lane < PANEL; lane++)
        if (bad[lane])
            return -1;
    return 0;
}

static inline __attribute__((always_inline)) void strip_fma(const struct strip *s, float c[2][PANEL])
{
    for (int r = 0; r < 2; r++) {
        float acc[PANEL];
        memcpy(acc, c[r], sizeof acc);
        for (ptrdiff_t at = 0; at < s->k * STEP; at += STEP)
            for (int lane = 0; lane < PANEL; lane++)
                acc[lane] = __builtin_fmaf(s->a[at + r], s->b[at + lane], acc[lane]);
        for (int lane = 0; lane < PANEL; lane++)
            c[r][lane] = isnan(acc[lane]) ? format_f32_of(CANONICAL_NAN) : acc[lane];
    }
}

/* A strip as fast as the processor can: 0, or -1 where the careful path has to do it. */
static inline __attribute__((always_inline)) int strip_any(const struct model *m, const struct strip *s,
                                                           float c[2][PANEL])
{
    if (m == &models[TENSOR_CORE_F32]) {
        strip_fma(s, c);
        return 0;
    }
    return strip_fast(m, s, c);
}

typedef int strip_function(const struct model *m, const struct strip *s, float c[2][PANEL]);

static int strip_baseline(const struct model *m, const struct strip *s, float c[2][PANEL])
{
    return strip_any(m, s, c);
}

#if defined __x86_64__ && defined __GNUC__
__attribute__((target("avx2,fma"))) static int strip_avx2(const struct model *m, const struct strip *s,
                                                          float c[2][PANEL])
{
    return strip_any(m, s, c);
}

static strip_function *choose_strip(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? strip_avx2 : strip_baseline;
}
#else
static strip_function *choose_strip(void)
{
    return strip_baseline;
}
#endif

/* 1 if every product of two panels is zero or a normal f32 well inside the range. */
static bool moderate(const int16_t *a, const int16_t *b)
{
    return a[0] + b[0] >= FAST_LOW && a[1] + b[1] <= FAST_HIGH;
}

int tensor_core_step(enum tensor_core model)
{
    const struct model *m = &models[model];
    return m->parts ? m->products * m->pair / 2 : 0;
}

void tensor_core_product(enum tensor_core model, const struct tensor_core_operand *a,
                         const struct tensor_core_operand *b, const float *c, ptrdiff_t ldc, float *d, ptrdiff_t ldd)
{
    tensor_core_product_part(model, a, b, 0, a->k < b->k ? a->k : b->k, c, ldc, d, ldd);
}

void tensor_core_product_part(enum tensor_core model, const struct tensor_core_operand *a,
                              const struct tensor_core_operand *b, int first, int n, const float *c, ptrdiff_t ldc,
                              float *d, ptrdiff_t ldd)
{
    const struct model *m = &models[model];
    strip_function *const fast = choose_strip();
    const bool any_value = model == TENSOR_CORE_F32;
    const ptrdiff_t panel_values = (ptrdiff_t)PANEL * (a->k < b->k ? a->k : b->k), skipped = (ptrdiff_t)PANEL * first;
    for (int panel = 0; panel * PANEL < b->rows; panel++) {
        const int left = b->rows - panel * PANEL, cols = left < PANEL ? left : PANEL;
        for (int row = 0; row < a->rows; row += 2) {
            const ptrdiff_t at = row / PANEL * panel_values + skipped + row % PANEL;
            const ptrdiff_t b_at = panel * panel_values + skipped;
            const struct strip s = {a->value + at, b->value + b_at, a->exponent + at, b->exponent + b_at, n};
            const bool in_range =
                any_value || moderate(a->range + row / PANEL * (ptrdiff_t)2, b->range + panel * (ptrdiff_t)2);
            float start[2][PANEL] = {{0}}, sum[2][PANEL];
            const int rows = row + 1 < a->rows ? 2 : 1; /* behind the last one are zeros */
            for (int r = 0; r < rows && c; r++)
                memcpy(start[r], c + (row + r) * ldc + panel * STEP, (size_t)cols * sizeof *start[r]);
            memcpy(sum, start, sizeof sum);
            if (!in_range || fast(m, &s, sum) != 0)
                for (int r = 0; r < rows; r++)
                    for (int lane = 0; lane < cols; lane++)
                        sum[r][lane] = element_careful(m, &s, r, lane, start[r][lane]);
            for (int r = 0; r < rows; r++)
                memcpy(d + (row + r) * ldd + panel * STEP, sum[r], (size_t)cols * sizeof *sum[r]);
        }
    }
}

void tensor_core_mma(enum tensor_core model, enum dtype t, int m, int n, int k, const void *a, const void *b,
                     const float *c, float *d)
{
    enum { ROWS = 16, K = 32 };
    _Alignas(32) unsigned char room[2][(size_t)ROWS * K * (sizeof(float) + sizeof(int16_t)) + 32] = {0};
    struct tensor_core_operand left;
    struct tensor_core_operand right;
    tensor_core_take(&left, room[0], t, a, m, k, k, 1);
    tensor_core_take(&right, room[1], t, b, n, k, k, 1);
    tensor_core_product(model, &left, &right, c, n, d, n);
}
