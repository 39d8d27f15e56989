/* Causes that lie in what joins the scores: biases, and the sink. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <stdio.h>

/* Scores with ALiBi as `c` has it, and `times` the bias tensor. */
static int biased(const struct candidate *k, const struct oracle_case *c, double times)
{
    struct operands s = cause_altered(k);
    struct oracle_case slopes = *c;
    if (values_biased_later(k->tile->c))
        return 0;
    slopes.bias.data = NULL;
    double *bias = k->tile->s->mistake.operand, *size = k->tile->s->mistake.size;
    s.bias = bias;
    s.bias_size = size;
    for (int r = 0; r < c->in_q.rows; r++) {
        for (int col = 0; col < s.cols; col++) {
            const size_t i = (size_t)r * (size_t)s.cols + (size_t)col;
            const int key = s.kv * c->bc + col;
            bias[i] = bias_at(&slopes, r, key, &size[i]);
            if (!c->bias.data || times == 0)
                continue;
            const double x = times * dtype_load(c->bias.dtype, c->bias.data, (size_t)(r * c->bias.row_stride + key));
            bias[i] += x;
            size[i] += fabs(x);
        }
    }
    local_s(k->tile->c, &s, &k->tile->s->room, cause_out(k));
    cause_loosen(k, 2);
    return 1;
}

int cause_s_bias_missing(struct candidate *k)
{
    return k->tile->c->bias.data && biased(k, k->tile->c, 0);
}

int cause_s_bias_scaled(struct candidate *k)
{
    return k->tile->c->bias.data && biased(k, k->tile->c, k->tile->c->scale);
}

int cause_s_bias_unscaled(struct candidate *k)
{
    return k->tile->c->bias.data && biased(k, k->tile->c, 1 / k->tile->c->scale);
}

int cause_s_bias_wrong_head(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    c.bias = c.other_bias[(int)k->parameter];
    return k->tile->c->bias.data && c.bias.data && biased(k, &c, 1);
}

static double other_bias_value(const struct walk_tile *tile, int i)
{
    (void)tile;
    return i < OTHER_BIASES ? i : NAN;
}

static void other_bias_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    static const char *const names[OTHER_BIASES] = {[OTHER_BIAS_PREVIOUS_HEAD] = "the head before",
                                                    [OTHER_BIAS_NEXT_HEAD] = "the head behind",
                                                    [OTHER_BIAS_FIRST_HEAD] = "head 0",
                                                    [OTHER_BIAS_FIRST_BATCH] = "the same head of sequence 0",
                                                    [OTHER_BIAS_PREVIOUS_BATCH] =
                                                        "the same head of the sequence before",
                                                    [OTHER_BIAS_NEXT_BATCH] = "the same head of the sequence behind"};
    (void)c;
    snprintf(text, bytes, "%s", names[(int)value]);
}

const struct cause_parameter parameter_other_bias = {other_bias_value, other_bias_describe};

static int with_slope(const struct candidate *k, double times)
{
    struct oracle_case c = *k->tile->c;
    c.alibi_slope *= times;
    return k->tile->c->alibi_slope != 0 && biased(k, &c, 1);
}

int cause_s_alibi_missing(struct candidate *k)
{
    return with_slope(k, 0);
}

int cause_s_alibi_negated(struct candidate *k)
{
    return with_slope(k, -1);
}

int cause_s_alibi_slope(struct candidate *k)
{
    return with_slope(k, k->parameter);
}

int cause_s_alibi_corner(struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    c.causal = c.causal == ASC_CAUSAL_TOP_LEFT ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_TOP_LEFT;
    return c.alibi_slope != 0 && c.q_len != c.kv_len && biased(k, &c, 1);
}

/* Slopes are powers of 2^(-8 / heads): a neighbor's is that factor apart. Besides, the softmax scale, and log2 e. */
static double slope_value(const struct walk_tile *tile, int i)
{
    enum { HEADS_LOG2 = 8 };
    const double others[] = {tile->c->scale, 1 / tile->c->scale, M_LOG2E, M_LN2};
    if (tile->c->alibi_slope == 0)
        return NAN;
    if (i < 2 * HEADS_LOG2)
        return exp2((i % 2 ? -8.0 : 8.0) / (double)(1 << i / 2));
    i -= 2 * HEADS_LOG2;
    return i < (int)(sizeof others / sizeof others[0]) ? others[i] : NAN;
}

static void slope_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.6g instead of %.6g", value * c->alibi_slope, c->alibi_slope);
}

const struct cause_parameter parameter_slope = {slope_value, slope_describe};

/* What the sink has added to l after the last tile, in a row whose m is finite; 0: nothing follows. */
static double sink_share(const struct oracle_case *c, const struct operands *s, int r)
{
    const double share = bound_p_factor(c) * exp(c->sink - s->m_prev.value[r] * values_natural_m(c));
    return isfinite(share) ? share : 0;
}

/* Takes it out of l and its bound with it: what remains of the sum keeps the roundings of the whole one. */
static void without_sink(const struct candidate *k, struct operands *s)
{
    const struct oracle_case *c = k->tile->c;
    double *l = k->tile->s->mistake.operand, *loose = l + c->in_q.rows;
    for (int r = 0; r < c->in_q.rows; r++) {
        const double share = sink_share(c, s, r), whole = s->l_prev.value[r];
        const double error =
            bound_exp_declared(c, c->sink, fabs(s->m_prev.value[r] * values_natural_m(c)) + fabs(c->sink)) +
            bound_convert(c->sink);
        l[r] = whole - share;
        loose[r] = s->l_prev.loose[r] + share * bound_expm1(error) + 4 * BOUND_U * fabs(whole);
        if (!(l[r] > loose[r]))
            l[r] = loose[r] = NAN; /* all but nothing is left: no statement */
    }
    s->l_prev.value = l;
    s->l_prev.loose = loose;
}

int cause_o_sink_missing(struct candidate *k)
{
    struct operands s = cause_altered(k);
    const int l_sink = k->tile->c->conventions.l_sink;
    if (!k->tile->c->has_sink || l_sink == ASC_SINK_START)
        return 0; /* l, which holds it from the start on, is recorded: O follows from that */
    without_sink(k, &s);
    local_o(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_lse_without_sink(struct candidate *k)
{
    struct operands s = cause_altered(k);
    if (!k->tile->c->has_sink)
        return 0;
    without_sink(k, &s);
    local_lse(k->tile->c, &s, cause_out(k));
    return 1;
}

/* Before the first tile l is the sink's weight: only that tile tells. */
int cause_l_sink_missing(struct candidate *k)
{
    struct operands s = cause_altered(k);
    if (!k->tile->c->has_sink || k->tile->c->conventions.l_sink != ASC_SINK_START)
        return 0;
    cause_right(k);
    if (k->tile->visited[0] >= 0)
        return 1;
    s.l_prev.value = s.l_prev.loose = k->tile->s->room.zero;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}
