/* Causes of wrong scores. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <stdio.h>
#include <string.h>

void cause_zero_padding(struct candidate *k)
{
    k->row_padding = k->tile->s->room.zero;
    k->row_padding_bound = k->tile->s->room.zero;
}

static double masked_score(const struct oracle_case *c)
{
    return c->conventions.s_masked == ASC_MASKED_VALUE ? (double)c->conventions.s_masked_value : -INFINITY;
}

static bool is_seen(const struct matrix *m, int r, int col, double masked)
{
    return dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride + col)) != masked;
}

/* Whether every row sees the same first ones of the keys beyond kv_len, and not all: the mask is there, and ends late.
 */
static bool tail_ends_late(const struct walk_tile *tile)
{
    const struct oracle_case *c = tile->c;
    const struct matrix *padding = c->s_padding ? &c->s_padding[tile->s->at.kv] : NULL;
    int end = -1;
    for (int r = 0; padding && padding->data && r < padding->rows; r++) {
        int seen = 0, n = 0;
        for (int col = 0; col < padding->cols; col++)
            if (is_seen(padding, r, col, masked_score(c))) {
                seen = col + 1;
                n++;
            }
        if (n != seen || (end >= 0 && seen != end))
            return false;
        end = seen;
    }
    return end > 0 && end < padding->cols;
}

int cause_s_tail_not_masked(struct candidate *k)
{
    if (k->tile->c->kv_len % k->tile->c->bc == 0 || tail_ends_late(k->tile))
        return 0;
    cause_right(k);
    cause_zero_padding(k);
    return 1;
}

/* Masked scores are the parameter. */
static int masked_by(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct operands s = cause_altered(k);
    if (values_mask_later(&c))
        return 0;
    c.conventions.s_masked = ASC_MASKED_VALUE;
    c.conventions.s_masked_value = (float)k->parameter;
    local_s(&c, &s, &k->tile->s->room, cause_out(k));
    for (int r = 0; r < c.in_q.rows; r++)
        k->tile->s->mistake.alpha[r] = k->parameter;
    k->row_padding = k->tile->s->mistake.alpha;
    k->row_padding_bound = k->tile->s->room.zero;
    return 1;
}

int cause_s_masked_value(struct candidate *k)
{
    return masked_by(k);
}

int cause_s_mask_too_weak(struct candidate *k)
{
    return masked_by(k);
}

/* A score of 0 is no mask: the product with a row of zeros beyond kv_len gives it, and it weighs as much as any. */
static double finite_in_place_of(double masked, double got)
{
    return isfinite(got) && got < 0 && got != masked ? got : NAN;
}

/* What stands where the first masked score should. */
static double masked_value(const struct walk_tile *tile, enum cause cause, int i)
{
    (void)cause;
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

static void masked_value_describe(const struct oracle_case *c, enum cause cause, double value, char *text, size_t bytes)
{
    (void)cause;
    if (c->conventions.s_masked == ASC_MASKED_VALUE)
        snprintf(text, bytes, "s_masked declared %g, looks %g", (double)c->conventions.s_masked_value, value);
    else
        snprintf(text, bytes, "s_masked declared -inf, looks like the finite value %g", value);
}

const struct cause_parameter parameter_masked_value = {masked_value, masked_value_describe};

/* The same, where exp(masked - m) of a row does not vanish in f32: half of its smallest number, 2^-149, is
   exp(-103.97). */
static double weak_mask_value(const struct walk_tile *tile, enum cause cause, int i)
{
    (void)cause;
    const struct stage *stage = &tile->s->stage[asc_s];
    const double value = masked_value(tile, cause, i), natural = values_natural_s(tile->c);
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

static void weak_mask_describe(const struct oracle_case *c, enum cause cause, double value, char *text, size_t bytes)
{
    (void)cause;
    (void)c;
    snprintf(text, bytes, "%g", value);
}

const struct cause_parameter parameter_weak_mask = {weak_mask_value, weak_mask_describe};

/* Columns that any row sees of a tile's padding. */
static int columns_seen(const struct matrix *padding, double masked)
{
    int n = 0;
    for (int col = 0; padding->data && col < padding->cols; col++) {
        bool seen = false;
        for (int r = 0; r < padding->rows && !seen; r++)
            seen = is_seen(padding, r, col, masked);
        n += seen;
    }
    return n;
}

/* Whether a row sees fewer of them than another, as something else hides them. */
static bool rows_differ(const struct matrix *padding, double masked)
{
    bool differ = false;
    for (int col = 0; padding->data && col < padding->cols; col++)
        for (int r = 1; r < padding->rows && !differ; r++)
            differ = is_seen(padding, r, col, masked) != is_seen(padding, 0, col, masked);
    return differ;
}

/* Where half of each so many rows see some of them, all the same, and the other half none: " in rows with r mod 16 >=
   8". */
static bool halves_of_rows(const struct matrix *padding, double masked, char *out, size_t bytes)
{
    const int rows = padding->rows;
    for (int n = 4; 2 * n <= rows; n *= 2) /* one edge alone may be a diagonal's */
        for (int upper = 0; upper < 2; upper++) {
            const int first = upper ? n / 2 : 0;
            bool holds = true, any = false;
            for (int at = 0; at < rows * padding->cols && holds; at++) {
                const int r = at / padding->cols, col = at % padding->cols;
                const bool shows = (r % n >= n / 2) == (bool)upper, seen = is_seen(padding, r, col, masked);
                holds = seen == (shows && is_seen(padding, first, col, masked));
                any = any || seen;
            }
            if (holds && any && first < rows) {
                snprintf(out, bytes, " in rows with r mod %d %s %d", n, upper ? ">=" : "<", n / 2);
                return true;
            }
        }
    return false;
}

/* No choice, but worth saying: how many keys it is about. */
static void padding_describe(const struct oracle_case *c, enum cause cause, double value, char *text, size_t bytes)
{
    const int keys = c->bc - c->kv_len % c->bc, last = c->kv_len / c->bc;
    const bool of_p = cause_channel(cause) == asc_p;
    const struct matrix *padding = of_p ? c->p_padding : cause_channel(cause) == asc_s ? c->s_padding : NULL;
    const double masked = of_p ? 0 : masked_score(c);
    const bool known = padding && padding[last].data;
    const int seen = known ? columns_seen(&padding[last], masked) : keys;
    const bool differ = known && rows_differ(&padding[last], masked);
    char rows[48] = "";
    const bool by_halves = differ && halves_of_rows(&padding[last], masked, rows, sizeof rows);
    const char *most = differ && !by_halves ? "up to " : "";
    (void)value;
    if (seen > 0 && seen < keys) /* rows of another q tile may see more */
        snprintf(text, bytes, "%s%d of %d keys%s in q tile %d, kv_len %d", most, seen, keys, rows, c->q_tile,
                 c->kv_len);
    else
        snprintf(text, bytes, "%s%d key%s%s, kv_len %d", most, keys, keys == 1 ? "" : "s", rows, c->kv_len);
    if (differ && !by_halves)
        snprintf(text + strlen(text), bytes - strlen(text), "; the mask hides some from other rows");
}

const struct cause_parameter parameter_padding = {NULL, padding_describe};
