#include "engine/oracle/quantization/flow.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

struct flow_shape flow_shape(const struct oracle_case *c)
{
    return (struct flow_shape){c->in_q.rows, c->kv_len, c->head_dim, c->head_dim_v};
}

int flow_tile(const struct oracle_case *c, int kv, int *first)
{
    *first = kv * c->bc;
    return schedule_cols(c, kv);
}

bool flow_visited(const struct oracle_case *c, int kv)
{
    for (int i = 0; i < c->n_visited; i++)
        if (c->order[i] == kv)
            return true;
    return c->n_visited == 0;
}

static const struct matrix *captured(const struct oracle_case *c, enum asc_channel ch, int kv)
{
    return &c->captured[kv * ASC_CHANNELS + (int)ch];
}

/* What a captured element of q, k or v of row r is to be multiplied by. */
static double captured_unit(const struct oracle_case *c, enum asc_channel ch, int r)
{
    const double code = codes_use(c, ch) == CODES_RAW ? codes_scale(codes_of(c, ch), r, 0) : 1;
    return ch == asc_q ? code / values_fold(c) : code;
}

static void overlay(const struct oracle_case *c, enum asc_channel ch, const struct matrix *m, int first, double *out)
{
    for (int r = 0; r < m->rows; r++) {
        const double unit = captured_unit(c, ch, first + r);
        for (int d = 0; d < m->cols; d++) {
            const size_t i = (size_t)(r * m->row_stride + d);
            if (values_element_written(m, i))
                out[(size_t)(first + r) * (size_t)oracle_dim(c, ch) + (size_t)d] = values_element(m, i) * unit;
        }
    }
}

void flow_load(const struct oracle_case *c, enum asc_channel ch, enum flow_source source, double *out)
{
    const struct matrix *input = codes_input(c, ch);
    const struct coding *coding = codes_of(c, ch);
    const struct coded_rows part = {ch, input, coding, 0, input->rows};
    codes_load(c, &part, out, NULL);
    for (int r = 0; codes_use(c, ch) == CODES_RAW && r < input->rows; r++)
        for (int d = 0; d < oracle_dim(c, ch); d++)
            out[(size_t)r * (size_t)oracle_dim(c, ch) + (size_t)d] *= codes_scale(coding, r, d);
    if (source == FLOW_INPUT)
        return;
    for (int kv = 0; kv < (ch == asc_q ? 1 : c->kv_tiles); kv++)
        if (captured(c, ch, kv)->data && (ch == asc_q || flow_visited(c, kv)))
            overlay(c, ch, captured(c, ch, kv), kv * c->bc, out);
}

static double capped(const struct oracle_case *c, double x)
{
    return c->softcap > 0 ? c->softcap * tanh(x / c->softcap) : x;
}

void flow_scores(const struct oracle_case *c, const double *q, const double *k, double *s)
{
    const struct flow_shape n = flow_shape(c);
    const bool biased = bias_changes(c);
    matrix_multiply_transposed(n.rows, n.keys, n.dim, codes_plain_scale(c), q, n.dim, k, n.dim, s, 0);
    for (int r = 0; r < n.rows; r++) {
        double *row = s + (size_t)r * (size_t)n.keys;
        for (int j = 0; j < n.keys; j++) {
            if (!schedule_shows(c, r, j))
                row[j] = -INFINITY;
            else if (c->softcap > 0 || biased)
                row[j] = bias_modified(c, r, j, capped(c, row[j]));
        }
    }
}

/* A captured score as the exponential gets it: what the kernel does to it after the probe is done here. */
static double seen_score(const struct oracle_case *c, int r, int key, double x)
{
    if (values_mask_later(c) && !schedule_shows(c, r, key))
        return -INFINITY;
    x *= values_natural_s(c);
    if (values_capped_later(c))
        x = capped(c, x);
    return values_biased_later(c) ? bias_modified(c, r, key, x) : x;
}

bool flow_run_scores(const struct oracle_case *c, const double *model, double *s)
{
    const struct flow_shape n = flow_shape(c);
    int recorded = 0;
    if (s != model)
        memcpy(s, model, (size_t)n.rows * (size_t)n.keys * sizeof *s);
    for (int kv = 0; kv < c->kv_tiles; kv++)
        recorded |= captured(c, asc_s, kv)->data != NULL;
    for (int kv = 0; recorded && kv < c->kv_tiles; kv++) {
        const struct matrix *m = captured(c, asc_s, kv);
        int first;
        const int cols = flow_tile(c, kv, &first), visited = m->data && flow_visited(c, kv);
        for (int r = 0; r < n.rows; r++)
            for (int col = 0; col < cols; col++) {
                const size_t i = (size_t)(r * m->row_stride + col);
                s[(size_t)r * (size_t)n.keys + (size_t)(first + col)] =
                    visited ? seen_score(c, r, first + col, values_element(m, i)) : -INFINITY;
            }
    }
    return recorded;
}

static double top_of(const double *x, int n, double least)
{
    double top = least;
    for (int i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

void flow_weights(const struct oracle_case *c, const double *s, double *w)
{
    const struct flow_shape n = flow_shape(c);
    for (int r = 0; r < n.rows; r++) {
        const double *x = s + (size_t)r * (size_t)n.keys;
        double *out = w + (size_t)r * (size_t)n.keys;
        const double top = top_of(x, n.keys, c->has_sink ? c->sink : -INFINITY);
        double sum = c->has_sink ? exp(c->sink - top) : 0;
        for (int j = 0; j < n.keys; j++)
            sum += out[j] = x[j] == -INFINITY ? 0 : exp(x[j] - top);
        for (int j = 0; sum > 0 && j < n.keys; j++)
            out[j] /= sum;
    }
}

void flow_output(const struct oracle_case *c, const double *w, const double *v, double *o)
{
    const struct flow_shape n = flow_shape(c);
    matrix_multiply(n.rows, n.dim_v, n.keys, 1, w, n.keys, v, n.dim_v, o, 0);
}

bool flow_run_output(const struct oracle_case *c, double *o)
{
    const struct matrix *m = captured(c, asc_o, 0);
    if (!m->data)
        return false;
    values_load(m, o);
    return true;
}

/* P as a kernel has it: running maxima, rounding, and the sum that O is divided by. */

struct flow_rounding flow_rounding(const struct oracle_case *c)
{
    enum dtype type;
    const int rounds = values_p_type(c, &type);
    return (struct flow_rounding){rounds ? (int)type : -1, bound_p_factor(c), c->conventions.l_from};
}

/* Saturating where the type has no infinity to spare, as every conversion to FP8 in use does. */
static double rounded(int type, double x)
{
    return type < 0 ? x : dtype_is_code((enum dtype)type) ? codes_round((enum dtype)type, x) : bound_round(type, x);
}

/* One tile of one row. */
struct piece {
    int row, kv, first, cols;
    const double *s; /* [cols] */
    double m;        /* what P stands on, natural; -inf: nothing seen */
};

/* Captured m of a row after a tile, natural; NaN: not recorded. */
static double captured_m(const struct oracle_case *c, int kv, int r)
{
    const struct matrix *m = &c->captured[kv * ASC_CHANNELS + asc_m];
    return m->data && flow_visited(c, kv) ? values_element(m, (size_t)(r * m->row_stride)) * values_natural_m(c) : NAN;
}

/* Where the row's m begins in a split: at a sink, where that takes part from the start. */
static double m_begin(const struct oracle_case *c, int split)
{
    const bool starts = c->conventions.l_sink == ASC_SINK_START || c->conventions.l_sink == ASC_SINK_M_START;
    return c->has_sink && starts && split == 0 ? c->sink : -INFINITY;
}

/* The next tile of the row, in the order of visits; captured maxima are taken where `own`. 0: there is none. */
static int next_piece(const struct oracle_case *c, const double *s, int own, int *i, struct piece *piece)
{
    const int visits = c->n_visited > 0 ? c->n_visited : c->kv_tiles;
    if (*i >= visits)
        return 0;
    const int before = *i > 0 ? schedule_nth(c, *i - 1) : -1;
    piece->kv = schedule_nth(c, *i);
    piece->cols = flow_tile(c, piece->kv, &piece->first);
    piece->s = s + (size_t)piece->row * (size_t)c->kv_len + (size_t)piece->first;
    const bool is_tile = c->conventions.p_max == ASC_P_MAX_TILE;
    if (before < 0 || schedule_split(c, before) != schedule_split(c, piece->kv))
        piece->m = m_begin(c, schedule_split(c, piece->kv));
    if (is_tile)
        piece->m = -INFINITY;
    for (int j = 0; j < piece->cols; j++)
        piece->m = piece->s[j] > piece->m ? piece->s[j] : piece->m;
    const double captured = own && !is_tile ? captured_m(c, piece->kv, piece->row) : NAN;
    if (isfinite(captured) || captured == -INFINITY)
        piece->m = captured;
    (*i)++;
    return 1;
}

/* P of a key: before and after rounding. */
struct weight {
    double p, code;
};

static struct weight model_weight(const struct flow_rounding *rounding, const struct piece *piece, int j)
{
    const bool none = piece->s[j] == -INFINITY || piece->m == -INFINITY;
    const double p = none ? 0 : rounding->factor * exp(piece->s[j] - piece->m);
    return (struct weight){p, rounded(rounding->type, p)};
}

static struct weight run_weight(const struct oracle_case *c, const struct flow_rounding *rounding,
                                const struct piece *piece, int j)
{
    const struct matrix *m = &c->captured[piece->kv * ASC_CHANNELS + asc_p];
    const size_t at = (size_t)(piece->row * m->row_stride + j);
    const double p = piece->s[j] == -INFINITY && !values_element_written(m, at) ? 0 : values_element(m, at);
    /* Recorded as it was rounded: what it was before follows from the score. */
    if (rounding->type >= 0 && m->dtype != DTYPE_F32 && m->dtype != DTYPE_F64)
        return (struct weight){model_weight(rounding, piece, j).p, p};
    return (struct weight){p, rounded(rounding->type, p)};
}

static void fill_row(const struct oracle_case *c, const double *s, int r, int own, const struct flow_rounding *rounding,
                     const struct flow_weights *out)
{
    const size_t row = (size_t)r * (size_t)c->kv_len;
    double top = c->has_sink ? c->sink : -INFINITY, sum = 0;
    struct piece piece = {.row = r, .m = -INFINITY};
    for (int i = 0; next_piece(c, s, own, &i, &piece);)
        top = piece.m > top ? piece.m : top;
    for (int j = 0; j < c->kv_len; j++) {
        out->w[row + (size_t)j] = 0;
        if (out->p)
            out->p[row + (size_t)j] = out->code[row + (size_t)j] = 0;
    }
    if (c->has_sink)
        sum = exp(c->sink - top);
    piece.m = -INFINITY;
    for (int i = 0; next_piece(c, s, own, &i, &piece);) {
        const double to_top = piece.m == -INFINITY ? 0 : exp(piece.m - top) / rounding->factor;
        for (int j = 0; j < piece.cols; j++) {
            const size_t at = row + (size_t)(piece.first + j);
            const struct weight weight = own ? run_weight(c, rounding, &piece, j) : model_weight(rounding, &piece, j);
            out->w[at] = to_top == 0 ? 0 : weight.code * to_top;
            sum += to_top == 0 ? 0 : (rounding->sums == ASC_L_ROUNDED ? weight.code : weight.p) * to_top;
            if (out->p) {
                out->p[at] = weight.p;
                out->code[at] = weight.code;
            }
        }
    }
    for (int j = 0; sum != 0 && j < c->kv_len; j++)
        out->w[row + (size_t)j] /= sum;
}

void flow_round_weights(const struct oracle_case *c, const double *s, const struct flow_rounding *rounding,
                        const struct flow_weights *out)
{
    for (int r = 0; r < c->in_q.rows; r++)
        fill_row(c, s, r, 0, rounding, out);
}

bool flow_run_weights(const struct oracle_case *c, const double *s, const struct flow_weights *out)
{
    const struct flow_rounding rounding = flow_rounding(c);
    int recorded = 0;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        recorded |= c->captured[kv * ASC_CHANNELS + asc_p].data != NULL;
    for (int r = 0; r < c->in_q.rows; r++)
        fill_row(c, s, r, recorded, &rounding, out);
    return recorded;
}
