/* What formulas have a choice of. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include "engine/trace/conventions.h"
#include <stdio.h>
#include <stdlib.h>

static double below(int i, int n)
{
    return i < n ? i : NAN;
}

const struct cause_parameter parameter_none = {NULL, NULL};

enum { CHOICE_BYTES = 32 };

/* A choice as conventions.def spells it. */
static const char *choice_name(int convention, int value, char text[CHOICE_BYTES])
{
    convention_choice(convention, value, text, CHOICE_BYTES);
    return text;
}

/* "NAME declared X, looks Y". */
static void describe_choice(int convention, const struct oracle_case *c, double value, char *text, size_t bytes)
{
    char declared[CHOICE_BYTES], looks[CHOICE_BYTES];
    snprintf(text, bytes, "%s declared %s, looks %s", conventions[convention].name,
             choice_name(convention, (int)convention_get(&c->conventions, convention), declared),
             choice_name(convention, (int)value, looks));
}

static double unit_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, 3);
}

static void s_unit_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    describe_choice(CONVENTION_OF_s_unit, c, value, text, bytes);
}

static void m_unit_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    describe_choice(CONVENTION_OF_m_unit, c, value, text, bytes);
}

const struct cause_parameter parameter_s_unit = {unit_value, s_unit_describe};
const struct cause_parameter parameter_m_unit = {unit_value, m_unit_describe};

/* Unit of s, unit of m: 3 times the first plus the second. */
static double unit_pair_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, 9);
}

static void unit_pair_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const int s_unit = CONVENTION_OF_s_unit, m_unit = CONVENTION_OF_m_unit;
    char name[4][CHOICE_BYTES];
    snprintf(text, bytes, "s_unit, m_unit declared %s, %s, look %s, %s",
             choice_name(s_unit, c->conventions.s_unit, name[0]), choice_name(m_unit, c->conventions.m_unit, name[1]),
             choice_name(s_unit, (int)value / 3, name[2]), choice_name(m_unit, (int)value % 3, name[3]));
}

const struct cause_parameter parameter_unit_pair = {unit_pair_value, unit_pair_describe};

/* A maximum of scores tells of their units only how they differ. */
static void m_unit_pair_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    if ((int)value / 3 == (int)value % 3)
        snprintf(text, bytes, "m_unit looks the same as s_unit");
    else
        unit_pair_describe(c, value, text, bytes);
}

const struct cause_parameter parameter_m_unit_pair = {unit_pair_value, m_unit_pair_describe};

static void fold_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    describe_choice(CONVENTION_OF_q_fold, c, value, text, bytes);
}

const struct cause_parameter parameter_fold = {unit_value, fold_describe};

static double alpha_first_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, ASC_ALPHA_ONE_FIRST + 1);
}

static void alpha_first_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    describe_choice(CONVENTION_OF_alpha_first, c, value, text, bytes);
}

const struct cause_parameter parameter_alpha_first = {alpha_first_value, alpha_first_describe};

static void s_at_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    describe_choice(CONVENTION_OF_s_at, c, value, text, bytes);
}

static double s_at_value(const struct walk_tile *tile, int i)
{
    const int no_bias = !bias_terms(tile->c);   /* "biased" and "capped" are then the same */
    const int no_cap = !(tile->c->softcap > 0); /* and "capped" and "dot" */
    const int at = i + (no_bias && i >= ASC_S_BIASED);
    return below(at + (no_cap && at >= ASC_S_CAPPED), ASC_S_DOT + 1);
}

const struct cause_parameter parameter_s_at = {s_at_value, s_at_describe};

static double narrow_type_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, 4);
}

static void narrow_type_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    (void)c;
    snprintf(text, bytes, "to %s", dtype_name(cause_type(value)));
}

const struct cause_parameter parameter_narrow_type = {narrow_type_value, narrow_type_describe};

/* 0: one rounding per step (FMA), 1: product and sum rounded each, 2: by a tensor core. */
static double f16_sum_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return below(i, 3);
}

static void f16_sum_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    (void)c;
    snprintf(text, bytes, "%s", value > 0 ? "products rounded as well" : "fused multiply-adds");
}

const struct cause_parameter parameter_f16_sum = {f16_sum_value, f16_sum_describe};

/* A row's columns in n parts, n = 2, 4 .. Bc: as n pieces, or every n-th column, for each of the n; or every n-th
   beginning with the row's own number. */
struct part {
    int kind, n, which;
};

enum { PIECE, EVERY_NTH, OWN_NTH };

/* A score of 0 is no mask: the product with a row of zeros beyond kv_len gives it, and it weighs as much as any. */
static double finite_in_place_of(double masked, double got)
{
    return isfinite(got) && got < 0 && got != masked ? got : NAN;
}

/* What stands where the first masked score should. */
static double masked_value(const struct walk_tile *tile, int i)
{
    const struct oracle_case *c = tile->c;
    const struct stage *stage = &tile->s->stage[asc_s];
    const struct matrix *padding = c->s_padding ? &c->s_padding[tile->s->at.kv] : NULL;
    const double masked =
        c->conventions.s_masked == ASC_MASKED_VALUE ? (double)c->conventions.s_masked_value : -INFINITY;
    if (i > 0)
        return NAN;
    for (int at = 0; at < stage->rows * stage->cols; at++)
        if (!cause_sees(tile, at / stage->cols, at % stage->cols))
            return finite_in_place_of(masked, stage->got[at]);
    if (!padding || !padding->data || padding->rows == 0 || !values_element_written(padding, 0))
        return NAN;
    return finite_in_place_of(masked, dtype_load(padding->dtype, padding->data, 0));
}

static void masked_value_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    if (c->conventions.s_masked == ASC_MASKED_VALUE)
        snprintf(text, bytes, "s_masked declared %g, looks %g", (double)c->conventions.s_masked_value, value);
    else
        snprintf(text, bytes, "s_masked declared -inf, looks like the finite value %g", value);
}

const struct cause_parameter parameter_masked_value = {masked_value, masked_value_describe};

/* The same, where exp(masked - m) of a row does not vanish in f32: half of its smallest number, 2^-149, is
 * exp(-103.97).
 */
static double weak_mask_value(const struct walk_tile *tile, int i)
{
    const struct stage *stage = &tile->s->stage[asc_s];
    const double value = masked_value(tile, i), natural = values_natural_s(tile->c);
    for (int r = 0; r < stage->rows; r++) {
        double top = -INFINITY;
        for (int col = 0; col < stage->cols; col++)
            if (cause_sees(tile, r, col))
                top = fmax(top, stage->got[(size_t)r * (size_t)stage->cols + (size_t)col]);
        if (isfinite(top) && (value - top) * natural > -104)
            return value;
    }
    return NAN;
}

static void weak_mask_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    (void)c;
    snprintf(text, bytes, "%g", value);
}

const struct cause_parameter parameter_weak_mask = {weak_mask_value, weak_mask_describe};

/* No choice, but worth saying. */
static void padding_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const int keys = c->bc - c->kv_len % c->bc;
    (void)value;
    snprintf(text, bytes, "%d key%s, kv_len %d", keys, keys == 1 ? "" : "s", c->kv_len);
}

const struct cause_parameter parameter_padding = {NULL, padding_describe};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of (got - want) / weight over the elements that choose a parameter; weight: one per row. */
static double median_shift(const struct walk_tile *tile, enum asc_channel ch, const double *weight)
{
    const struct stage *stage = &tile->s->stage[ch];
    double *shift = tile->s->mistake.operand;
    size_t n = 0;
    for (int r = 0; r < stage->rows; r++) {
        for (int col = 0; col < stage->cols; col++) {
            const size_t i = (size_t)r * (size_t)stage->cols + (size_t)col;
            const double x = (stage->got[i] - stage->want[LOCAL][i]) / weight[r];
            if (cause_half(r, col) == 0 && isfinite(x))
                shift[n++] = x;
        }
    }
    qsort(shift, n, sizeof *shift, compare);
    return n && shift[n / 2] != 0 ? shift[n / 2] : NAN;
}

/* In codes where there are any, and then a whole or a half one if it is as near as rounding to f16 leaves it. */
static double zero_point_of_operand(const struct walk_tile *tile, enum asc_channel ch)
{
    const struct oracle_case *c = tile->c;
    const int first = ch == asc_q ? 0 : tile->s->at.kv * c->bc;
    double *step = tile->s->mistake.size;
    for (int r = 0; r < tile->s->stage[ch].rows; r++)
        step[r] = codes_step(c, ch, first + r);
    const double z = median_shift(tile, ch, step), whole = rint(2 * z) / 2;
    return codes_use(c, ch) == CODES_DESCALED && whole != 0 && fabs(z - whole) < 0.1 ? whole : z;
}

static double zero_point_of_q_value(const struct walk_tile *tile, int i)
{
    return i == 0 ? zero_point_of_operand(tile, asc_q) : NAN;
}

static double zero_point_of_k_value(const struct walk_tile *tile, int i)
{
    return i == 0 ? zero_point_of_operand(tile, asc_k) : NAN;
}

static double zero_point_of_v_value(const struct walk_tile *tile, int i)
{
    return i == 0 ? zero_point_of_operand(tile, asc_v) : NAN;
}

static void zero_point_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    (void)c;
    snprintf(text, bytes, "z = %.4g", value);
}

const struct cause_parameter parameter_zero_point_of_q = {zero_point_of_q_value, zero_point_describe};
const struct cause_parameter parameter_zero_point_of_k = {zero_point_of_k_value, zero_point_describe};
const struct cause_parameter parameter_zero_point_of_v = {zero_point_of_v_value, zero_point_describe};

/* In which of the ways that an f16 accumulator leaves open. */
static double f16_core_value(const struct walk_tile *tile, int i)
{
    struct product_way ways[PRODUCT_WAYS];
    struct oracle_case c = *tile->c;
    c.conventions.acc_u = ASC_ACC_MMA_F16_F16;
    return below(i, product_ways(&c, asc_u, ways));
}

const struct cause_parameter parameter_f16_core = {f16_core_value, NULL};
