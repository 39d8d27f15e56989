#include "tests/gpu/numerics_models.h"

#include <limits.h>
#include <stdio.h>

#define NO_EXPONENT (-10000)

/* value 2^place cut to multiples of 2^unit, in such multiples. */
static int64_t align(int64_t value, int place, int unit, int floor)
{
    const int up = place - unit;
    if (up >= 0)
        return value * (INT64_C(1) << up);
    if (up < -62)
        return floor && value < 0 ? -1 : 0;
    const uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
    const uint64_t below = magnitude & ((UINT64_C(1) << -up) - 1);
    const int64_t cut = (int64_t)(magnitude >> -up) + (floor && value < 0 && below);
    return value < 0 ? -cut : cut;
}

/* sum 2^unit with `places` bits after the leading one and none below 2^-149, as f32. */
static float cut_sum(int64_t sum, int unit, int places)
{
    uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    if (!magnitude)
        return 0;
    int drop = 63 - __builtin_clzll(magnitude) - places;
    if (-149 - unit > drop)
        drop = -149 - unit;
    if (drop > 63)
        return 0;
    if (drop > 0)
        magnitude = magnitude >> drop << drop;
    const double value = ldexp((double)magnitude, unit);
    const float result = value >= 0x1p128 ? INFINITY : (float)value;
    return sum < 0 && result != 0 ? -result : result;
}

/* The same sum rounded into f16 in one step. */
static float half_sum(int64_t sum, int unit, int nearest)
{
    const double value = ldexp((double)sum, unit); /* exact: sums stay below 2^53 */
    if (nearest)
        return f16_to_f32(f16_from_f64(value)) + 0.0f; /* zero is +0 */
    uint16_t code = f16_from_f64(value);
    if (fabs((double)f16_to_f32(code)) > fabs(value))
        code--; /* magnitudes are ordered as their codes */
    return f16_to_f32(code) + 0.0f;
}

static float cut_half(float x)
{
    uint16_t code = f16_from_f32(x);
    if (isfinite(x) && fabsf(f16_to_f32(code)) > fabsf(x))
        code--;
    return f16_to_f32(code) + 0.0f;
}

/* a + b toward zero: the sum rounded to nearest, one step back where it went too far. */
static float add_cut(float a, float b)
{
    const float sum = a + b;
    if (!isfinite(sum) || sum == 0)
        return sum;
    const float back = sum - a; /* Knuth's two-sum: what the addition lost, exactly */
    const float lost = (a - (sum - back)) + (b - back);
    return lost != 0 && (lost < 0) == (sum > 0) ? nextafterf(sum, 0) : sum;
}

static float add_narrow(float a, float b, int places)
{
    const float sum = add_cut(a, b);
    return isfinite(sum) ? format_f32_of(format_f32_bits(sum) & ~((1u << (23 - places)) - 1)) : sum;
}

static int exponent_of(const struct candidate *c, const struct candidate_element *e, int at)
{
    if (!c->normalized)
        return e->exponent[at];
    const int32_t product = e->product[at];
    return e->place[at] + 31 - __builtin_clz((uint32_t)(product < 0 ? -product : product));
}

/* One chunk, the accumulator among its terms. `half`: the result is rounded into f16 here. */
static float chunk(const struct candidate *c, const struct candidate_element *e, int first, float acc, int half)
{
    int largest = NO_EXPONENT;
    int64_t significand = 0;
    int place = 0;
    if (acc != 0) {
        int exponent = 0;
        significand = (int64_t)(frexp((double)acc, &exponent) * 0x1p24);
        place = exponent - 24;
        largest = exponent - 1 < -126 ? -126 : exponent - 1;
    }
    for (int i = 0; i < c->products; i++) {
        const int at = first + i / 2 * c->pair + i % 2;
        if (!e->product[at])
            continue;
        const int exponent = exponent_of(c, e, at);
        largest = exponent > largest ? exponent : largest;
    }
    if (largest == NO_EXPONENT)
        return 0;
    const int unit = largest - c->fraction;
    int64_t sum = acc != 0 ? align(significand, place, unit, c->floor) : 0;
    for (int i = 0; i < c->products; i++) {
        const int at = first + i / 2 * c->pair + i % 2;
        sum += e->product[at] ? align(e->product[at], e->place[at], unit, c->floor) : 0;
    }
    return half ? half_sum(sum, unit, c->half == HALF_CHUNK_NEAREST) : cut_sum(sum, unit, c->result);
}

static float add(const struct candidate *c, float acc, float sum)
{
    switch (c->carry) {
    case CARRY_ADDED:
        return acc + sum;
    case CARRY_ADDED_CUT:
        return add_cut(acc, sum);
    default:
        return add_narrow(acc, sum, c->result);
    }
}

uint32_t candidate_result(const struct candidate *c, const struct candidate_element *e, enum dtype sum)
{
    const int step = c->products * c->pair / 2;
    const int half_chunk = c->half == HALF_CHUNK_NEAREST || c->half == HALF_CHUNK_CUT;
    float acc = e->start;
    for (int instruction = 0; instruction < e->chain; instruction++) {
        float part = 0;
        for (int base = 0; base < e->k; base += step) {
            for (int lane = 0; lane < c->pair; lane += 2) {
                const int first = instruction * e->k + base + lane;
                if (isinf(acc))
                    continue; /* stays */
                if (c->carry == CARRY_JOINED)
                    acc = chunk(c, e, first, acc, half_chunk);
                else if (c->whole)
                    part = chunk(c, e, first, part, 0);
                else {
                    acc = add(c, acc, chunk(c, e, first, 0, 0));
                    acc = c->half == HALF_CHUNK_NEAREST ? f16_to_f32(f16_from_f32(acc)) + 0.0f
                          : c->half == HALF_CHUNK_CUT   ? cut_half(acc)
                                                        : acc;
                }
            }
        }
        if (c->carry != CARRY_JOINED && c->whole && !isinf(acc))
            acc = add(c, acc, part);
        if (c->half == HALF_END_NEAREST || (c->whole && c->half == HALF_CHUNK_NEAREST))
            acc = f16_to_f32(f16_from_f32(acc)) + 0.0f;
        if (c->half == HALF_END_CUT || (c->whole && c->half == HALF_CHUNK_CUT))
            acc = cut_half(acc);
    }
    return vector_result(sum, acc);
}

void candidate_text(const struct candidate *c, char *text, size_t size)
{
    static const char *const carry[CARRIES] = {"carried as a term", "added in f32 to nearest", "added in f32 toward 0",
                                               "added toward 0 to as many places"};
    static const char *const half[HALVES] = {"", ", f16 to nearest per chunk", ", f16 toward 0 per chunk",
                                             ", f16 to nearest per instruction", ", f16 toward 0 per instruction"};
    snprintf(text, size, "(%d,%d,%d) %s%s%s%s%s%s", c->products, c->fraction, c->result, carry[c->carry],
             c->whole ? " per instruction" : "", c->pair == 4 ? ", k pairs interleaved" : "",
             c->floor ? ", terms cut toward -inf" : "", c->normalized ? ", aligned by the products" : "",
             half[c->half]);
}

struct candidate candidate_of_model(enum tensor_core model)
{
    static const struct {
        int products, fraction, result, pair, parts;
    } models[TENSOR_CORE_COUNT] = {
#define TENSOR_CORE(id, name, types, products, fraction, result, pair, parts)                                          \
    [id] = {products, fraction, result, pair, parts},
#include "engine/base/tensor_core.def"
#undef TENSOR_CORE
    };
    struct candidate c = {.products = models[model].products, .fraction = models[model].fraction};
    c.result = models[model].result;
    c.pair = models[model].pair;
    c.whole = models[model].parts > 1;
    c.carry = models[model].parts ? CARRY_ADDED : CARRY_JOINED;
    if (c.result == 10) {
        c.result = 23;
        c.half = HALF_CHUNK_NEAREST;
    }
    return c;
}

/* |x| = significand 2^place exactly; *exponent: what the format's field says. */
static int32_t take_apart(enum dtype t, float x, int *place, int *exponent)
{
    const int mantissa = t == DTYPE_F16 ? 10 : t == DTYPE_BF16 ? 7 : t == DTYPE_E4M3 ? 3 : 2;
    const int least = t == DTYPE_BF16 ? -126 : t == DTYPE_E4M3 ? -6 : -14;
    int e = least;
    if (x != 0) {
        frexp((double)x, &e);
        e = e - 1 < least ? least : e - 1;
    }
    *exponent = e;
    *place = e - mantissa;
    return (int32_t)ldexp((double)x, mantissa - e);
}

int candidate_take(const struct vector_inputs *in, const struct vector_row *row, int at, uint32_t got,
                   struct candidate_element *e)
{
    const struct vector_product p = in->product;
    const int tile = p.rows * p.columns, i = at % tile / p.columns, j = at % p.columns;
    const uint32_t *a = in->a + ((ptrdiff_t)(at / tile) * p.rows + i) * in->k;
    const uint32_t *b = in->b + ((ptrdiff_t)(at / tile) * p.columns + j) * in->k;
    *e = (struct candidate_element){.k = p.k, .chain = (int)row->chain, .got = got};
    e->start = vector_value(p.sum, in->c[at]);
    if (in->k > (int)(sizeof e->product / sizeof *e->product) || !isfinite(e->start) ||
        !isfinite(vector_value(p.sum, got)))
        return 0;
    for (int k = 0; k < in->k; k++) {
        int places[2] = {0};
        int exponents[2] = {0};
        const float x = vector_value(p.operand, a[k]), y = vector_value(p.operand, b[k]);
        if (!isfinite(x) || !isfinite(y))
            return 0;
        e->product[k] =
            take_apart(p.operand, x, &places[0], &exponents[0]) * take_apart(p.operand, y, &places[1], &exponents[1]);
        e->place[k] = (int16_t)(places[0] + places[1]);
        e->exponent[k] = (int16_t)(exponents[0] + exponents[1]);
    }
    return 1;
}

/* All candidates for instructions of k products, the plain ones first. Returns how many; list NULL: only counts. */
static int enumerate(int k, enum dtype sum, struct candidate *list)
{
    static const int products[] = {32, 16, 8, 4}, results[] = {23, 22, 14, 13, 12};
    static const int fractions[] = {13, 14, 12, 11, 15, 16, 25, 24, 26, 23, 22, 27};
    int n = 0;
    for (int floor = 0; floor < 2; floor++)
        for (int normalized = 0; normalized < 2; normalized++)
            for (int pair = 2; pair <= 4; pair += 2)
                for (int carry = 0; carry < CARRIES; carry++)
                    for (int whole = 0; whole < (carry == CARRY_JOINED ? 1 : 2); whole++)
                        for (size_t i = 0; i < sizeof products / sizeof *products; i++)
                            for (size_t j = 0; j < sizeof fractions / sizeof *fractions; j++)
                                for (size_t r = 0; r < sizeof results / sizeof *results; r++)
                                    for (int half = 0; half < HALVES; half++) {
                                        const int step = products[i] * pair / 2, chunks = k / products[i];
                                        const int wide = sum != DTYPE_F16;
                                        const int rounded_to_half =
                                            carry == CARRY_JOINED &&
                                            (half == HALF_CHUNK_NEAREST || half == HALF_CHUNK_CUT);
                                        if (step > k || (whole && chunks < 2) || wide != (half == HALF_NONE) ||
                                            (rounded_to_half && r > 0))
                                            continue;
                                        if (list)
                                            list[n] = (struct candidate){.products = products[i],
                                                                         .fraction = fractions[j],
                                                                         .result = results[r],
                                                                         .pair = pair,
                                                                         .whole = whole,
                                                                         .floor = floor,
                                                                         .normalized = normalized,
                                                                         .carry = (enum candidate_carry)carry,
                                                                         .half = (enum candidate_half)half};
                                        n++;
                                    }
    return n;
}

/* Rank is the plainness: the position in the list. */
struct ranked {
    struct candidate_fit fit;
    int rank;
};

static int by_share(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->fit.equal != b->fit.equal)
        return a->fit.equal < b->fit.equal ? 1 : -1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Every stride-th element. */
static void weigh(struct ranked *r, const struct candidate_element *elements, int n, int stride, enum dtype sum)
{
    r->fit.equal = r->fit.n = 0;
    r->fit.first_unequal = -1;
    for (int i = 0; i < n; i += stride) {
        const int equal = candidate_result(&r->fit.candidate, &elements[i], sum) == elements[i].got;
        r->fit.n++;
        r->fit.equal += equal;
        if (!equal && r->fit.first_unequal < 0)
            r->fit.first_unequal = i;
    }
}

/* Heats: a few elements for all, more for those that agree with the most of them, all for the last. */
int candidates_fit(const struct candidate_element *elements, int n, enum dtype sum,
                   struct candidate_fit best[CANDIDATES_BEST], int *all_equal)
{
    static const struct {
        int elements, keep;
    } heats[] = {{30, 1000}, {300, 100}, {3000, 12}, {INT_MAX, CANDIDATES_BEST}};
    *all_equal = 0;
    if (n < 1)
        return 0;
    int left = enumerate(elements->k, sum, NULL);
    struct candidate *list = malloc((size_t)left * sizeof *list);
    struct ranked *field = malloc((size_t)left * sizeof *field);
    if (!list || !field) {
        free(list);
        free(field);
        return -1;
    }
    enumerate(elements->k, sum, list);
    for (int i = 0; i < left; i++)
        field[i] = (struct ranked){.fit = {.candidate = list[i]}, .rank = i};
    free(list);
    for (size_t heat = 0; heat < sizeof heats / sizeof *heats; heat++) {
        const int stride = n > heats[heat].elements ? n / heats[heat].elements : 1;
        for (int i = 0; i < left; i++)
            weigh(&field[i], elements, n, stride, sum);
        qsort(field, (size_t)left, sizeof *field, by_share);
        if (heat == sizeof heats / sizeof *heats - 1)
            for (int i = 0; i < left; i++)
                *all_equal += field[i].fit.equal == field[i].fit.n;
        left = left < heats[heat].keep ? left : heats[heat].keep;
    }
    for (int i = 0; i < left; i++)
        best[i] = field[i].fit;
    free(field);
    return left;
}
