/* Causes of a wrong output and of a wrong LSE. Running state is that after the last tile. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"

static int divided_by(const struct candidate *k, const double *l, const double *loose)
{
    struct operands s = cause_altered(k);
    s.l_prev.value = l;
    s.l_prev.loose = loose;
    local_o(k->tile->c, &s, cause_out(k));
    cause_loosen(k, 4);
    return 1;
}

/* l to this power, with its uncertainty: |x^n| changes by n |x|^(n-1) dx. */
static int divided_by_power(const struct candidate *k, int power)
{
    const struct judge_scratch *s = k->tile->s;
    const int rows = s->stage[asc_o].rows;
    double *l = s->mistake.operand, *loose = l + rows;
    for (int r = 0; r < rows; r++) {
        const double x = s->at.l_prev.value[r];
        l[r] = x == 0 ? 0 : power ? x * x : 1;
        loose[r] = power * fabs(x) * s->at.l_prev.loose[r];
    }
    return divided_by(k, l, loose);
}

int cause_o_not_divided(struct candidate *k)
{
    return divided_by_power(k, 0);
}

int cause_o_divided_twice(struct candidate *k)
{
    return divided_by_power(k, 2);
}

int cause_o_previous_l(struct candidate *k)
{
    return k->tile->visited[0] >= 0 && divided_by(k, k->tile->s->mistake.l, k->tile->s->mistake.l_loose);
}

static void rescale_l(const struct candidate *k, struct operands *s)
{
    const struct operand *alpha = &k->tile->s->at.of[asc_alpha];
    const struct mistake_room *before = &k->tile->s->mistake;
    const int rows = k->tile->c->in_q.rows;
    double *l = before->operand, *loose = l + rows;
    for (int r = 0; r < rows; r++) {
        l[r] = alpha->value[r] * before->l[r];
        loose[r] = alpha->loose[r] * fabs(before->l[r]) + fabs(alpha->value[r]) * before->l_loose[r];
    }
    s->l_prev.value = l;
    s->l_prev.loose = loose;
}

int cause_o_last_tile_dropped(struct candidate *k)
{
    struct operands s = cause_altered(k);
    if (k->tile->visited[0] < 0)
        return 0;
    s.l_prev.value = k->tile->s->mistake.l;
    s.l_prev.loose = k->tile->s->mistake.l_loose;
    if (k->tile->c->conventions.u_phase == ASC_U_RESCALED)
        rescale_l(k, &s); /* as U was, by the last tile */
    s.u_prev.value = k->tile->s->mistake.u;
    s.u_prev.loose = k->tile->s->mistake.u_loose;
    local_o(k->tile->c, &s, cause_out(k));
    return 1;
}

int cause_o_unguarded(struct candidate *k)
{
    const struct stage *o = &k->tile->s->stage[asc_o];
    if (k->tile->c->kv_splits > 1)
        return 0; /* of a row that no split has a key for: merge_unguarded */
    cause_right(k);
    k->makes_nan = 1;
    for (int i = 0; i < o->rows * o->cols; i++)
        if (k->tile->s->at.l_prev.value[i / o->cols] == 0)
            k->want[i] = NAN;
    return 1;
}

int cause_o_truncated(struct candidate *k)
{
    double unit = 0;
    double half_tiny = 0;
    cause_right(k);
    k->truncates = 1;
    return bound_narrow(scratch_captured(k->tile->s, k->tile->c, asc_o)->dtype, &unit, &half_tiny);
}

int cause_o_saturated(struct candidate *k)
{
    const struct stage *o = &k->tile->s->stage[asc_o];
    cause_right(k);
    for (int i = 0; i < o->rows * o->cols; i++)
        k->want[i] = fmax(fmin(k->want[i], E4M3_MAX), -E4M3_MAX);
    return 1;
}
