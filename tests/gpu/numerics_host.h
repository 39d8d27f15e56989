/* A device that is none: products from candidates or the emulator, functions from libm in float64, rounded, conversions
   from engine/base. Any of them can be made to err, so that a test sees it found. */
#ifndef TEST_GPU_NUMERICS_HOST_H
#define TEST_GPU_NUMERICS_HOST_H

#include "tests/gpu/numerics.h"
#include "tests/gpu/numerics_models.h"

struct numerics_host {
    const struct candidate *product; /* borrowed; NULL: the emulator's model of the instruction */
    uint32_t only;                   /* instruction it has; VECTOR_INSTRUCTIONS: all */
    double relative;                 /* error put on every function's result */
    uint32_t wrong_code;             /* argument whose conversion goes wrong, and whose function gives NaN */
    int wrong;                       /* 1: there is one */
};

static inline int host_product(struct numerics_device *d, const struct vector_row *row, int tiles, const void *a,
                               const void *b, const void *c, uint32_t *out, const char **why)
{
    const struct numerics_host *h = d->state;
    const struct vector_product p = vector_product(row->instruction);
    const int n = p.rows * p.columns, model = vector_model(row->instruction, d->sm);
    const size_t k = (size_t)p.k * row->chain, n_a = (size_t)tiles * (size_t)p.rows * k;
    const size_t n_b = (size_t)tiles * (size_t)p.columns * k, n_c = (size_t)tiles * (size_t)n;
    if ((h->only != VECTOR_INSTRUCTIONS && h->only != row->instruction) || (!h->product && model == VECTOR_NO_MODEL)) {
        *why = "not on this architecture";
        return 0;
    }
    struct vector_inputs in = {.product = p, .tiles = tiles, .k = (int)k};
    in.code = calloc(n_a + n_b + n_c + 1, sizeof *in.code);
    if (!in.code)
        return -1;
    in.a = in.code;
    in.b = in.a + n_a;
    in.c = in.b + n_b;
    const size_t bytes = dtype_bytes(p.operand), c_bytes = dtype_bytes(p.sum);
    for (size_t i = 0; i < n_a; i++)
        memcpy(&in.a[i], (const char *)a + i * bytes, bytes);
    for (size_t i = 0; i < n_b; i++)
        memcpy(&in.b[i], (const char *)b + i * bytes, bytes);
    for (size_t i = 0; i < n_c; i++)
        memcpy(&in.c[i], (const char *)c + i * c_bytes, c_bytes);
    for (int tile = 0; model != VECTOR_NO_MODEL && tile < tiles; tile++)
        vector_emulate(&in, row, (enum tensor_core)model, tile, out + (ptrdiff_t)tile * n);
    for (int i = 0; h->product && i < tiles * n; i++) {
        struct candidate_element e;
        out[i] = candidate_take(&in, row, i, 0, &e) ? candidate_result(h->product, &e, p.sum)
                                                    : (p.sum == DTYPE_F16 ? 0x7FFF : 0x7FFFFFFF);
    }
    free(in.code);
    return 1;
}

/* float64 rounded to f32 or a 16-bit type; results below the normal numbers are flushed to zero. */
static inline double host_round(enum dtype t, double x)
{
    if (t == DTYPE_F16)
        return f16_to_f64(f16_from_f64(x));
    if (fabs(x) < 0x1p-126)
        return 0;
    return t == DTYPE_BF16 ? bf16_to_f64(bf16_from_f64(x)) : (double)(float)x;
}

static inline void host_argument(const struct numerics_host *h, int f, uint32_t index, struct numerics_worst *w)
{
    const enum dtype t = numerics_type(f);
    float x = format_f32_of(index);
    float y = 1;
    if (t == DTYPE_F64)
        numerics_pair(index, &x, &y);
    if (t == DTYPE_F16 || t == DTYPE_BF16)
        x = vector_value(t, index);
    double got = host_round(t, numerics_reference(f, (double)x, (double)y) * (1 + h->relative));
    if (h->wrong && index == h->wrong_code)
        got = NAN;
    numerics_weigh(f, (double)x, (double)y, got, index, w);
}

static inline int host_function(struct numerics_device *d, int f, uint32_t first, uint32_t last, uint32_t step,
                                struct numerics_worst *w, const char **why)
{
    for (uint64_t i = first; i <= last; i += step)
        host_argument(d->state, f, (uint32_t)i, w);
    *why = "";
    return 1;
}

static inline int host_convert(struct numerics_device *d, int conversion, uint32_t first, uint32_t step, uint32_t n,
                               void *out, const char **why)
{
    static const enum dtype types[][2] = {
#define NUMERICS_CONVERSION(id, name, from, to, first_sm) {from, to},
#include "tests/gpu/numerics_conversions.def"
#undef NUMERICS_CONVERSION
    };
    const struct numerics_host *h = d->state;
    const enum dtype from = types[conversion][0], to = types[conversion][1];
    const int open = conversion == NUMERICS_F32_E4M3_OPEN || conversion == NUMERICS_F32_E5M2_OPEN;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t argument = first + i * step;
        dtype_store(to, out, i, (double)vector_value(from, argument));
        if (open)
            ((uint8_t *)out)[i] = to == DTYPE_E4M3 ? e4m3_from_f64((double)vector_value(from, argument), 0)
                                                   : e5m2_from_f64((double)vector_value(from, argument), 0);
        if (h->wrong && argument == h->wrong_code)
            ((uint8_t *)out)[i * dtype_bytes(to)] ^= 1;
    }
    *why = "";
    return 1;
}

static inline struct numerics_device host_device(struct numerics_host *h, int sm)
{
    struct numerics_device d = {.name = "host", .sm = sm, .function_step = 65521, .conversion_step = 65521};
    d.state = h;
    d.product = host_product;
    d.function = host_function;
    d.convert = host_convert;
    return d;
}

#endif
