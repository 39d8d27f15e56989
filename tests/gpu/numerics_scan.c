/* Functions over all arguments against float64, conversions over all codes against engine/base/format.h. */
#include "engine/base/format.h"
#include "engine/base/pool.h"
#include "tests/gpu/numerics.h"

#include <stdatomic.h>
#include <stdlib.h>

static const struct {
    const char *name, *formula;
    int first_sm;
} functions[NUMERICS_FUNCTIONS] = {
#define NUMERICS_FUNCTION(id, name, type, first_sm, formula) [id] = {name, formula, first_sm},
#include "tests/gpu/numerics_functions.def"
#undef NUMERICS_FUNCTION
};

static const struct {
    int function;
    uint32_t first, last;
    const char *words;
    int assumed;
} ranges[] = {
#define NUMERICS_RANGE(function, first, last, words, assumed) {function, first, last, words, assumed},
#include "tests/gpu/numerics_ranges.def"
#undef NUMERICS_RANGE
};

static const struct {
    const char *name;
    enum dtype from, to;
    int first_sm;
} conversions[NUMERICS_CONVERSIONS] = {
#define NUMERICS_CONVERSION(id, name, from, to, first_sm) [id] = {name, from, to, first_sm},
#include "tests/gpu/numerics_conversions.def"
#undef NUMERICS_CONVERSION
};

static struct numerics_row row_start(const char *section, const char *what, const char *setting)
{
    struct numerics_row r = {.section = section, .what = what, .setting = setting};
    r.equal = -1;
    r.error = r.ratio = -1;
    r.error_unit = "";
    return r;
}

/* A part that could not be measured: 0 if the device lacks it, -1 if it failed. */
static int not_measured(struct numerics_table *t, struct numerics_row *r, int done, const char *why)
{
    r->status = done ? NUMERICS_FAIL : NUMERICS_SKIP;
    snprintf(r->note, sizeof r->note, "%s", why);
    numerics_table_row(t, r);
    return done;
}

/* The arguments that an index stands for. */
static void argument_text(int f, uint32_t index, char *text, size_t size)
{
    float x;
    float y;
    switch (numerics_type(f)) {
    case DTYPE_F64:
        numerics_pair(index, &x, &y);
        snprintf(text, size, "%a / %a", (double)x, (double)y);
        return;
    case DTYPE_F16:
        x = f16_to_f32((uint16_t)index);
        break;
    case DTYPE_BF16:
        x = bf16_to_f32((uint16_t)index);
        break;
    default:
        x = format_f32_of(index);
        break;
    }
    snprintf(text, size, "%.9g (%08x)", (double)x, index);
}

/* As d->function, the last argument among them whatever the step: infinities stand at the ends of ranges. */
static int scan_range(struct numerics_device *d, int f, uint32_t first, uint32_t last, uint32_t step,
                      struct numerics_worst *w, const char **why)
{
    const int done = d->function(d, f, first, last, step, w, why);
    return done == 1 && (last - first) % step ? d->function(d, f, last, last, 1, w, why) : done;
}

int numerics_functions(struct numerics_device *d, struct numerics_table *t)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const int f = ranges[i].function;
        struct numerics_row r = row_start("function", functions[f].name, ranges[i].words);
        struct numerics_worst w = numerics_worst_none;
        const int narrow = numerics_type(f) == DTYPE_F16 || numerics_type(f) == DTYPE_BF16;
        const uint32_t step = narrow ? 1 : d->function_step;
        const char *why = "";
        char where[3][80];
        const int done =
            d->sm < functions[f].first_sm ? 0 : scan_range(d, f, ranges[i].first, ranges[i].last, step, &w, &why);
        if (d->sm < functions[f].first_sm)
            why = "not on this architecture";
        if (done != 1) {
            if (not_measured(t, &r, done, why) != 0)
                return -1;
            continue;
        }
        r.n = (long long)((ranges[i].last - ranges[i].first + step - 1) / step) + 1;
        r.error = (double)numerics_unpack(w.error);
        r.ratio = (double)numerics_unpack(w.ratio);
        r.error_unit = numerics_absolute(f) ? "absolute" : "relative";
        r.status = !ranges[i].assumed ? NUMERICS_INFO : w.violations || !(r.ratio <= 1) ? NUMERICS_FAIL : NUMERICS_OK;
        argument_text(f, (uint32_t)w.error, where[0], sizeof where[0]);
        argument_text(f, (uint32_t)w.ratio, where[1], sizeof where[1]);
        argument_text(f, (uint32_t)w.first, where[2], sizeof where[2]);
        int used = snprintf(r.note, sizeof r.note, "bound %s", functions[f].formula);
        if (w.error >> 32)
            used += snprintf(r.note + used, sizeof r.note - (size_t)used, "; largest error at %s", where[0]);
        if (w.ratio >> 32)
            used += snprintf(r.note + used, sizeof r.note - (size_t)used, "; nearest to the bound at %s", where[1]);
        if (w.violations)
            snprintf(r.note + used, sizeof r.note - (size_t)used, "; %llu beyond it, first %s", w.violations, where[2]);
        numerics_table_row(t, &r);
    }
    return 0;
}

static uint32_t expected_code(int conversion, uint32_t code)
{
    const float x = format_f32_of(code);
    switch (conversion) {
    case NUMERICS_F32_F16:
    case NUMERICS_F32_F16X2:
        return f16_from_f32(x);
    case NUMERICS_F32_BF16:
    case NUMERICS_F32_BF16X2:
        return bf16_from_f32(x);
    case NUMERICS_F32_E4M3:
        return e4m3_from_f32(x, 1);
    case NUMERICS_F32_E5M2:
        return e5m2_from_f32(x, 1);
    case NUMERICS_F32_E4M3_OPEN:
        return e4m3_from_f32(x, 0);
    case NUMERICS_F32_E5M2_OPEN:
        return e5m2_from_f32(x, 0);
    case NUMERICS_F16_E4M3:
        return e4m3_from_f32(f16_to_f32((uint16_t)code), 1);
    case NUMERICS_F16_E5M2:
        return e5m2_from_f32(f16_to_f32((uint16_t)code), 1);
    case NUMERICS_BF16_E4M3:
        return e4m3_from_f32(bf16_to_f32((uint16_t)code), 1);
    case NUMERICS_F16_F32:
        return format_f32_bits(f16_to_f32((uint16_t)code));
    case NUMERICS_BF16_F32:
        return format_f32_bits(bf16_to_f32((uint16_t)code));
    case NUMERICS_E4M3_F16:
        return f16_from_f32(e4m3_to_f32((uint8_t)code));
    default:
        return f16_from_f32(e5m2_to_f32((uint8_t)code));
    }
}

static int is_nan_code(enum dtype t, uint32_t code)
{
    switch (t) {
    case DTYPE_F16:
        return (code & 0x7FFFu) > 0x7C00u;
    case DTYPE_BF16:
        return (code & 0x7FFFu) > 0x7F80u;
    case DTYPE_E4M3:
        return (code & 0x7Fu) == 0x7Fu;
    case DTYPE_E5M2:
        return (code & 0x7Fu) > 0x7Cu;
    default:
        return (code & 0x7FFFFFFFu) > 0x7F800000u;
    }
}

/* A piece of the arguments, compared by the pool's workers slice by slice. */
struct comparison {
    int conversion;
    uint32_t first, step, n;
    const unsigned char *got; /* borrowed, [n] codes in the result's width */
    atomic_uint next;
    atomic_llong numbers, equal, nans, nans_equal;
    atomic_ullong first_wrong; /* argument; all ones: none */
};

static int compare_slice(void *ctx, int worker)
{
    enum { SLICE = 1 << 16 };
    struct comparison *c = ctx;
    const uint32_t begin = atomic_fetch_add(&c->next, SLICE);
    if (begin >= c->n)
        return 0;
    const uint32_t end = c->n - begin < SLICE ? c->n : begin + SLICE;
    const enum dtype to = conversions[c->conversion].to;
    const size_t bytes = dtype_bytes(to);
    long long numbers = 0;
    long long equal = 0;
    long long nans = 0;
    long long nans_equal = 0;
    unsigned long long wrong = ~0ull;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t argument = c->first + i * c->step, want = expected_code(c->conversion, argument);
        uint32_t got = 0;
        memcpy(&got, c->got + i * bytes, bytes);
        if (is_nan_code(to, want)) {
            nans += is_nan_code(to, got);
            nans_equal += got == want;
            if (is_nan_code(to, got))
                continue;
        } else {
            numbers++;
            equal += got == want;
            if (got == want)
                continue;
        }
        wrong = argument < wrong ? argument : wrong;
    }
    atomic_fetch_add(&c->numbers, numbers);
    atomic_fetch_add(&c->equal, equal);
    atomic_fetch_add(&c->nans, nans);
    atomic_fetch_add(&c->nans_equal, nans_equal);
    unsigned long long before = atomic_load(&c->first_wrong);
    while (wrong < before && !atomic_compare_exchange_weak(&c->first_wrong, &before, wrong)) {
    }
    (void)worker;
    return 1;
}

static int convert_all(struct numerics_device *d, struct numerics_table *t, struct pool *pool, int conversion,
                       void *room, uint32_t most)
{
    const enum dtype from = conversions[conversion].from, to = conversions[conversion].to;
    struct numerics_row r = row_start("conversion", conversions[conversion].name, "all codes");
    struct comparison c = {.conversion = conversion};
    const char *why = "not on this architecture";
    const uint64_t codes = UINT64_C(1) << 8 * dtype_bytes(from);
    const uint32_t step = codes > 0x10000 ? d->conversion_step : 1;
    const uint64_t arguments = (codes - 1) / step + 1;
    atomic_init(&c.first_wrong, ~0ull);
    c.step = step;
    c.got = room;
    for (uint64_t done = 0; done < arguments; done += c.n) {
        c.first = (uint32_t)(done * step);
        c.n = arguments - done < most ? (uint32_t)(arguments - done) : most;
        const int ran =
            d->sm < conversions[conversion].first_sm ? 0 : d->convert(d, conversion, c.first, step, c.n, room, &why);
        if (ran != 1)
            return not_measured(t, &r, ran, why);
        atomic_store(&c.next, 0);
        pool_start(pool, compare_slice, &c);
        pool_wait(pool);
    }
    r.n = (long long)arguments;
    r.equal = c.equal + c.nans;
    r.status = r.equal == r.n ? NUMERICS_OK : NUMERICS_FAIL;
    int used =
        snprintf(r.note, sizeof r.note, "numbers %lld, of them equal %lld; NaN as NaN %lld, with the same bits %lld",
                 (long long)c.numbers, (long long)c.equal, (long long)c.nans, (long long)c.nans_equal);
    if (c.first_wrong != ~0ull)
        snprintf(r.note + used, sizeof r.note - (size_t)used, "; first wrong argument %08llx, %s %08x expected",
                 (unsigned long long)c.first_wrong, dtype_name(to), expected_code(conversion, (uint32_t)c.first_wrong));
    numerics_table_row(t, &r);
    return 0;
}

int numerics_conversions(struct numerics_device *d, struct numerics_table *t, int threads)
{
    enum { MOST = 1 << 26 };
    struct pool *pool = NULL;
    void *room = malloc((size_t)MOST * sizeof(uint32_t) / 2); /* the widest exhaustive results have 16 bits */
    int status = room && pool_new(threads, &pool, NULL) == 0 ? 0 : -1;
    if (status != 0) {
        struct numerics_row r = row_start("conversion", "", "");
        not_measured(t, &r, -1, "out of memory or threads");
    }
    for (int i = 0; status == 0 && i < NUMERICS_CONVERSIONS; i++)
        status = convert_all(d, t, pool, i, room, MOST);
    pool_free(pool);
    free(room);
    return status;
}
