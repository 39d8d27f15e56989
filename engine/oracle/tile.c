#include "engine/oracle/tile.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include <math.h>

const enum asc_channel tile_stages[TILE_STAGES] = {asc_s, asc_m, asc_alpha, asc_p, asc_l, asc_u};

int tile_left(const struct oracle_case *c, const struct judge_scratch *s)
{
    if (!s->masked)
        return 0;
    for (int i = 0; i < TILE_STAGES; i++) {
        const struct matrix *m = scratch_captured(s, c, tile_stages[i]);
        if (m->data && values_written(m))
            return 0;
    }
    return 1;
}

void tile_adopt(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *m = scratch_captured(s, c, ch);
    const int none = ch == asc_alpha && local_alpha_none(c, &s->at);
    if (m->data && !none && (!s->masked || values_written(m)))
        scratch_take(s, c, ch);
    else
        scratch_expect(s, ch);
}

void tile_padding(const struct oracle_case *c, struct judge_scratch *s)
{
    const struct matrix *padding = c->s_padding ? &c->s_padding[s->at.kv] : NULL;
    const struct matrix *fed = padding && scratch_fed(s, c, asc_s) ? &c->fed_s_padding[s->at.kv] : NULL;
    double *pad = s->prepared.pad;
    s->at.pad_cols = 0;
    s->pad_captured = 0;
    if (values_mask_later(c) || !s->stage[asc_s].recorded || !padding || !padding->data)
        return;
    values_load(padding, pad);
    for (int r = 0; r < padding->rows; r++) {
        for (int col = 0; col < padding->cols; col++) {
            double *x = &pad[(size_t)r * (size_t)padding->cols + (size_t)col];
            if (dtype_is_unwritten(padding->dtype, padding->data, (size_t)(r * padding->row_stride + col)))
                *x = -INFINITY;
            s->pad_captured |= *x != -INFINITY;
        }
    }
    if (fed)
        values_overlay(fed, pad, pad);
    for (int i = 0; i < padding->rows * padding->cols; i++)
        if (pad[i] != -INFINITY)
            s->at.pad_cols = padding->cols;
}

static void formula(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct expected out = scratch_local(s, ch);
    switch (ch) {
    case asc_s:
        local_s(c, &s->at, &s->room, out);
        break;
    case asc_m:
        local_m(c, &s->at, out);
        break;
    case asc_alpha:
        local_alpha(c, &s->at, out);
        break;
    case asc_p:
        local_p(c, &s->at, out);
        break;
    case asc_l:
        local_l(c, &s->at, out);
        break;
    default:
        local_u(c, &s->at, &s->room, out);
        /* Else subnormal factors count as more. */
        s->weighed_p = product_size(c->conventions.acc_u, BOUND_TINY) <= BOUND_TINY;
    }
}

void tile_local(const struct oracle_case *c, struct judge_scratch *s)
{
    for (int i = 0; i < TILE_STAGES; i++) {
        formula(c, s, tile_stages[i]);
        tile_adopt(c, s, tile_stages[i]);
        if (tile_stages[i] == asc_s) {
            tile_padding(c, s);
            local_use_scores(c, &s->at, (struct expected){s->prepared.scores, s->prepared.scores_loose});
        }
        if (tile_stages[i] == asc_m)
            local_tile_top(c, s);
        if (tile_stages[i] == asc_alpha)
            local_rescale_u(c, s);
        if (tile_stages[i] == asc_p)
            local_use_weights(c, s);
    }
}
