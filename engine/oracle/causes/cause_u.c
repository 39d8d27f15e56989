/* Causes of a wrong unnormalized output. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <string.h>

/* U as it was recorded: where the next tile has rescaled it, by the power of its alpha. */
static int evaluate_as(const struct candidate *k, const struct oracle_case *c, struct operands *s, double power)
{
    const struct walk_tile *tile = k->tile;
    const int rows = tile->c->in_q.rows;
    double *alpha = tile->s->mistake.alpha, *loose = alpha + rows;
    local_u(c, s, &tile->s->room, cause_out(k));
    if (!tile->next_alpha)
        return 1;
    for (int r = 0; r < rows; r++) {
        const double x = tile->next_alpha[r];
        alpha[r] = x != 0 ? pow(x, power) : power == 0;
        loose[r] = tile->next_alpha_loose[r] > 0 ? fabs(power * pow(x, power - 1)) * tile->next_alpha_loose[r] : 0;
    }
    local_rescale(tile->c, alpha, loose, k->want, k->bound);
    return 1;
}

static int evaluate(const struct candidate *k, struct operands *s, double power)
{
    return evaluate_as(k, k->tile->c, s, power);
}

int cause_u_of(const struct candidate *k, const struct oracle_case *c, struct operands *s)
{
    return evaluate_as(k, c, s, 1);
}

static int with_alpha(const struct candidate *k, double power)
{
    struct operands s = cause_altered(k);
    if (k->tile->c->conventions.u_phase != ASC_U_RESCALED)
        cause_power_of_alpha(k, power, &s);
    evaluate(k, &s, power);
    cause_loosen(k, 4);
    return 1;
}

int cause_u_not_rescaled(struct candidate *k)
{
    return with_alpha(k, 0);
}

/* A fragment holds two rows, a warp some: the factor is applied to a part of them. */
int cause_u_rows_not_rescaled(struct candidate *k)
{
    const struct operand *alpha = &k->tile->s->at.of[asc_alpha];
    struct operands s = cause_altered(k);
    double *power = k->tile->s->mistake.alpha, *loose = power + k->tile->c->in_q.rows;
    if (k->tile->c->conventions.u_phase == ASC_U_RESCALED)
        return 0; /* recorded once the next tile has rescaled it: rows that were not carry on from there */
    cause_power_of_alpha(k, 0, &s);
    for (int r = 0; r < k->tile->c->in_q.rows; r++) {
        if (cause_in_rows(k->tile, k->parameter, r))
            continue;
        power[r] = alpha->value[r];
        loose[r] = alpha->loose[r];
    }
    local_u(k->tile->c, &s, &k->tile->s->room, cause_out(k));
    cause_loosen(k, 4);
    return 1;
}

int cause_u_rescaled_twice(struct candidate *k)
{
    return with_alpha(k, 2);
}

int cause_u_rescaled_inverse(struct candidate *k)
{
    return with_alpha(k, -1);
}

/* alpha times the sum, this tile's product included. */
int cause_u_rescaled_late(struct candidate *k)
{
    const struct oracle_case *c = k->tile->c;
    const struct operand *alpha = &k->tile->s->at.of[asc_alpha];
    struct operands s = cause_altered(k);
    if (c->conventions.u_phase == ASC_U_RESCALED)
        return 0; /* recorded once the next tile has rescaled it, it says nothing of when this one did */
    cause_power_of_alpha(k, 0, &s);
    local_u(c, &s, &k->tile->s->room, cause_out(k));
    local_rescale(c, alpha->value, alpha->loose, k->want, k->bound);
    cause_loosen(k, 2);
    return 1;
}

int cause_u_previous_dropped(struct candidate *k)
{
    struct operands s = cause_altered(k);
    s.u_prev.value = k->tile->s->mistake.operand;
    s.u_prev.loose = k->tile->s->mistake.operand;
    memset(k->tile->s->mistake.operand, 0,
           (size_t)k->tile->c->in_q.rows * (size_t)k->tile->c->head_dim * sizeof(double));
    return evaluate(k, &s, 1);
}

static int with_v(const struct candidate *k, const double *v)
{
    struct operands s = cause_altered(k);
    s.of[asc_v].value = v;
    s.size[asc_v] = cause_sizes(k, v);
    return evaluate(k, &s, 1);
}

static int with_p(const struct candidate *k, const double *p)
{
    struct operands s = cause_altered(k);
    s.pv_p.value = p;
    return evaluate(k, &s, 1);
}

int cause_u_tile_dropped(struct candidate *k)
{
    struct operands s = cause_altered(k);
    s.pv_p.value = k->tile->s->room.zero;
    s.pv_p.exact = 1;
    return evaluate(k, &s, 1);
}

int cause_u_v_previous_tile(struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    const int kv = k->tile->visited[(int)k->parameter];
    cause_right(k); /* before the first tile there was nothing */
    return kv < 0 || (cause_operand_of_tile(k, asc_v, kv, other) && with_v(k, other));
}

int cause_u_v_next_tile(struct candidate *k)
{
    return cause_with_next(k, asc_v, with_v);
}

int cause_u_holds_k(struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    return cause_operand_of_tile(k, asc_k, k->tile->s->at.kv, other) && with_v(k, other);
}

int cause_u_v_wrong_head(struct candidate *k)
{
    double *other = k->tile->s->mistake.operand;
    return cause_operand_of_head(k, asc_v, k->parameter, other) && with_v(k, other);
}

/* Stays inside the tile where it is square. */
int cause_u_v_not_transposed(struct candidate *k)
{
    const int n = k->tile->c->head_dim, rows = k->tile->s->at.cols;
    const double *from = k->tile->s->at.of[asc_v].value;
    double *to = k->tile->s->mistake.operand;
    if (k->tile->c->bc != n)
        return 0;
    for (int key = 0; key < n; key++)
        for (int d = 0; d < n; d++)
            to[key * n + d] = d < rows ? from[d * n + key] : 0;
    return with_v(k, to);
}

int cause_u_v_blocks_transposed(struct candidate *k)
{
    return cause_transpose_blocks(k, asc_v) && with_v(k, k->tile->s->mistake.operand);
}

/* What rounding V, of these sizes, to the operands of a tensor core may cost one element of U. */
static double rounded_v(const struct candidate *k, int r, const double *size, int d)
{
    const struct walk_tile *tile = k->tile;
    const int cols = tile->s->at.cols, head_dim = tile->c->head_dim;
    enum dtype t;
    double unit = 0;
    double half_tiny = 0;
    double sum = 0;
    if (!product_type(tile->c->conventions.acc_u, &t))
        return 0;
    bound_narrow(t, &unit, &half_tiny);
    for (int col = 0; col < cols; col++)
        sum += fabs(tile->s->at.pv_p.value[r * cols + col]) * (unit * size[col * head_dim + d] + half_tiny);
    return sum * (tile->next_alpha ? fabs(tile->next_alpha[r]) : 1);
}

static int is_constant(const double *v, int n)
{
    for (int i = 1; i < n; i++)
        if (v[i] != v[0])
            return 0;
    return 1;
}

/* U moved by one constant everywhere: where all rows have the same sum of weights that explains as much. */
static const double *moved_alike(const struct candidate *k, double *room)
{
    const struct stage *u = &k->tile->s->stage[asc_u];
    const int n = u->rows * u->cols;
    int counted = 0;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double by = k->want[i] - u->want[LOCAL][i];
        sum += isfinite(by) ? by : 0;
        counted += isfinite(by);
    }
    for (int i = 0; i < n; i++)
        room[i] = u->want[LOCAL][i] + (counted ? sum / counted : 0);
    return room;
}

/* Half of the elements have voted for the constant, each within its own bound: it is off by no more than one. */
int cause_u_v_zero_point(struct candidate *k)
{
    const struct stage *u = &k->tile->s->stage[asc_u], *stage = &k->tile->s->stage[asc_v];
    if (is_constant(k->tile->s->at.of[asc_v].value, stage->rows * stage->cols))
        return 0; /* it could as well be multiplied */
    double *v = cause_copy(k, k->tile->s->at.of[asc_v].value, asc_v);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        v[i] += k->parameter;
    with_v(k, v);
    for (int i = 0; i < u->rows * u->cols; i++)
        k->bound[i] += u->bound[LOCAL][i] + rounded_v(k, i / u->cols, k->tile->s->mistake.size, i % u->cols);
    k->rival = moved_alike(k, v);
    return 1;
}

int cause_u_keys_permuted(struct candidate *k)
{
    cause_permute_operand(k, asc_v);
    return with_v(k, k->tile->s->mistake.operand);
}

int cause_u_v_swizzled(struct candidate *k)
{
    double *v = k->tile->s->mistake.operand;
    cause_swizzle_operand(k, asc_v, cause_swizzle(k->parameter).mask, v);
    return with_v(k, v);
}

/* The bits of what the tensor core gives are known. That is no constant: its bound is not 0. */
static int summed_in_f16(const struct candidate *k)
{
    struct oracle_case c = *k->tile->c;
    struct judge_scratch *s = k->tile->s;
    const struct stage *u = &s->stage[asc_u];
    struct product_way ways[PRODUCT_WAYS];
    struct product product;
    c.conventions.acc_u = ASC_ACC_MMA_F16_F16;
    if ((int)k->parameter >= product_ways(&c, asc_u, ways) || product_take(&c, s, asc_u, &product) != 0)
        return 0;
    const struct product_way *way = &ways[(int)k->parameter];
    void *sums = s->core.sums, *out = s->core.out;
    product_sum(s, &product, way, sums);
    product_finish(s, way, sums, out);
    const float *given = out;
    for (int i = 0; i < u->rows * u->cols; i++) {
        k->want[i] = (double)given[i];
        k->bound[i] = DBL_MIN;
    }
    return 1;
}

int cause_u_summed_in_f16(struct candidate *k)
{
    return k->tile->c->conventions.acc_u != ASC_ACC_MMA_F16_F16 && summed_in_f16(k);
}

/* The same of a declared one: what tells is what leaves its range, sums of a part of the keys on the way among it. */
int cause_u_f16_overflow(struct candidate *k)
{
    k->makes_nan = 1;
    return k->tile->c->conventions.acc_u == ASC_ACC_MMA_F16_F16 && summed_in_f16(k);
}

int cause_u_key_dropped(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    const int key = (int)k->parameter;
    double *p = cause_copy(k, k->tile->s->at.pv_p.value, asc_p);
    for (int r = 0; r < stage->rows && key < stage->cols; r++)
        p[(size_t)r * (size_t)stage->cols + (size_t)key] = 0;
    return with_p(k, p);
}

int cause_u_p_masked_late(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.pv_p.value, asc_p);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        if (!cause_sees(k->tile, i / stage->cols, i % stage->cols))
            p[i] = 0;
    return with_p(k, p);
}

int cause_u_p_saturated(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p = cause_copy(k, k->tile->s->at.pv_p.value, asc_p);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        p[i] = fmin(p[i], E4M3_MAX);
    return with_p(k, p);
}

int cause_u_v_saturated(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_v];
    double *v = cause_copy(k, k->tile->s->at.of[asc_v].value, asc_v);
    for (int i = 0; i < stage->rows * stage->cols; i++)
        v[i] = fmax(fmin(v[i], E4M3_MAX), -E4M3_MAX);
    return with_v(k, v);
}

int cause_u_p_unrounded(struct candidate *k)
{
    const struct stage *p = &k->tile->s->stage[asc_p];
    struct operands s = cause_altered(k);
    enum dtype t;
    if (!values_p_type(k->tile->c, &t) || !p->recorded || scratch_captured(k->tile->s, k->tile->c, asc_p)->dtype == t)
        return 0;
    s.pv_p = s.of[asc_p];
    return evaluate(k, &s, 1);
}

int cause_u_p_rounded(struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[asc_p];
    double *p =
        cause_copy(k, k->tile->s->at.of[asc_p].value, asc_p); /* as recorded: another type than the declared one */
    enum dtype t;
    if (values_p_type(k->tile->c, &t) && t == cause_type(k->parameter))
        return 0;
    for (int i = 0; i < stage->rows * stage->cols; i++)
        p[i] = bound_round(cause_type(k->parameter), p[i]);
    return with_p(k, p);
}
