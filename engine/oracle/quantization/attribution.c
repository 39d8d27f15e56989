#include "engine/oracle/quantization/attribution.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/quantization/flow.h"
#include "engine/oracle/quantization/formats.h"
#include <string.h>

static const struct {
    const char *name, *meaning;
} players[PLAYERS] = {
    [PLAYER_Q] = {"Q", "Q as the kernel used it"},
    [PLAYER_K] = {"K", "K as the kernel used it"},
    [PLAYER_P] = {"P", "exponential, rounding, saturation and flushing of P"},
    [PLAYER_V] = {"V", "V as the kernel used it"},
    [PLAYER_REST] = {"rest", "accumulators, division, rounding of O, and any mistake"},
};

const char *player_name(enum player player)
{
    return players[player].name;
}

const char *player_meaning(enum player player)
{
    return players[player].meaning;
}

const char *fate_words(enum fate fate)
{
    static const char *const words[] = {
        [FATE_ROUNDED] = "rounded",       [FATE_SATURATED] = "saturated", [FATE_FLUSHED] = "flushed to zero",
        [FATE_OVERFLOWED] = "overflowed", [FATE_CHANGED] = "changed",     [FATE_EXACT] = "exact"};
    return words[fate];
}

static double *room(size_t n)
{
    return calloc(n ? n : 1, sizeof(double));
}

static int allocate(const struct oracle_case *c, struct attribution *a)
{
    const struct flow_shape n = flow_shape(c);
    const size_t outputs = (size_t)n.rows * (size_t)n.dim_v, weights = (size_t)n.rows * (size_t)n.keys;
    *a = (struct attribution){.rows = n.rows, .dim = n.dim_v, .terms = n.keys + n.dim, .keys = n.keys};
    int made = 1;
    for (int i = 0; i < PLAYERS; i++)
        made &= (a->part[i] = room(outputs)) != NULL;
    for (int i = 0; i < 5; i++)
        made &= (a->w[i] = room(weights)) != NULL;
    for (int i = 0; i < 2; i++)
        made &= (a->v[i] = room((size_t)n.keys * (size_t)n.dim_v)) != NULL;
    a->o_given = room(outputs);
    a->o_run = room(outputs);
    a->o3 = room(outputs);
    a->p = room(weights);
    a->code = room(weights);
    a->v_scale = room((size_t)n.keys * (size_t)n.dim_v);
    return made && a->o_given && a->o_run && a->o3 && a->p && a->code && a->v_scale ? 0 : -1;
}

void attribution_free(struct attribution *a)
{
    if (!a)
        return;
    for (int i = 0; i < PLAYERS; i++)
        free(a->part[i]);
    for (int i = 0; i < 5; i++)
        free(a->w[i]);
    free(a->v[0]);
    free(a->v[1]);
    free(a->o_given);
    free(a->o_run);
    free(a->o3);
    free(a->p);
    free(a->code);
    free(a->v_scale);
    memset(a, 0, sizeof *a);
}

/* What the evaluations need besides. */
struct exchangeable {
    double *q[2], *k[2]; /* owned: given, used */
    double *s;           /* owned, [rows][keys] */
    double *o[2];        /* owned, [rows][dim_v]: before and after an exchange */
};

static int operands_new(const struct oracle_case *given, const struct oracle_case *run, struct exchangeable *x)
{
    const struct flow_shape n = flow_shape(run);
    for (int i = 0; i < 2; i++) {
        x->q[i] = room((size_t)n.rows * (size_t)n.dim);
        x->k[i] = room((size_t)n.keys * (size_t)n.dim);
        x->o[i] = room((size_t)n.rows * (size_t)n.dim_v);
        if (!x->q[i] || !x->k[i] || !x->o[i])
            return -1;
        flow_load(i ? run : given, asc_q, i ? FLOW_USED : FLOW_INPUT, x->q[i]);
        flow_load(i ? run : given, asc_k, i ? FLOW_USED : FLOW_INPUT, x->k[i]);
    }
    x->s = room((size_t)n.rows * (size_t)n.keys);
    return x->s ? 0 : -1;
}

static void operands_free(struct exchangeable *x)
{
    for (int i = 0; i < 2; i++) {
        free(x->q[i]);
        free(x->k[i]);
        free(x->o[i]);
    }
    free(x->s);
}

/* x->o[1] is what o became by an exchange: the player's part grows by the difference, and that is where the next one
   begins. */
static void exchange(struct attribution *a, struct exchangeable *x, enum player player)
{
    for (int i = 0; i < a->rows * a->dim; i++)
        a->part[player][i] += x->o[1][i] - x->o[0][i];
    double *before = x->o[0];
    x->o[0] = x->o[1];
    x->o[1] = before;
}

static void walk(const struct oracle_case *given, const struct oracle_case *run, struct attribution *a,
                 struct exchangeable *x)
{
    const size_t outputs = (size_t)a->rows * (size_t)a->dim, weights = (size_t)a->rows * (size_t)a->keys;
    flow_scores(given, x->q[0], x->k[0], x->s);
    flow_weights(given, x->s, a->w[0]);
    flow_output(given, a->w[0], a->v[0], x->o[0]);
    memcpy(a->o_given, x->o[0], outputs * sizeof(double));

    flow_scores(given, x->q[1], x->k[0], x->s);
    flow_weights(given, x->s, a->w[1]);
    flow_output(given, a->w[1], a->v[0], x->o[1]);
    exchange(a, x, PLAYER_Q);

    flow_scores(given, x->q[1], x->k[1], x->s);
    flow_weights(given, x->s, a->w[2]);
    flow_output(given, a->w[2], a->v[0], x->o[1]);
    exchange(a, x, PLAYER_K);

    memcpy(a->w[4], x->s, weights * sizeof(double));
    a->s_recorded = flow_run_scores(run, a->w[4], x->s);
    flow_weights(run, x->s, a->w[3]);
    flow_output(run, a->w[3], a->v[0], x->o[1]);
    exchange(a, x, PLAYER_REST);
    memcpy(a->o3, x->o[0], outputs * sizeof(double));

    a->p_recorded = flow_run_weights(run, x->s, &(struct flow_weights){a->w[4], a->p, a->code});
    flow_output(run, a->w[4], a->v[0], x->o[1]);
    exchange(a, x, PLAYER_P);

    flow_output(run, a->w[4], a->v[1], x->o[1]);
    exchange(a, x, PLAYER_V);
    memcpy(x->o[1], a->o_run, outputs * sizeof(double));
    exchange(a, x, PLAYER_REST);
}

static void take_types(const struct oracle_case *run, struct attribution *a)
{
    const struct flow_rounding rounding = flow_rounding(run);
    const struct coding *v = &run->v_codes;
    a->p_type = rounding.type >= 0 && dtype_is_code((enum dtype)rounding.type) ? rounding.type : -1;
    a->v_type = !v->scale ? -1 : v->quantized ? (int)codes_type(v->quantized) : (int)run->in_v.dtype;
    a->centered = rounding.sums == ASC_L_ROUNDED && !run->has_sink;
    for (int j = 0; j < a->keys; j++)
        for (int d = 0; d < a->dim; d++)
            a->v_scale[(size_t)j * (size_t)a->dim + (size_t)d] = codes_scale(v, j, d);
}

int attribution_make(const struct oracle_case *given, const struct oracle_case *run, struct attribution *out)
{
    struct exchangeable x = {0};
    int failed = allocate(run, out) != 0 || operands_new(given, run, &x) != 0 || !flow_run_output(run, out->o_run);
    if (!failed) {
        take_types(run, out);
        flow_load(given, asc_v, FLOW_INPUT, out->v[0]);
        flow_load(run, asc_v, FLOW_USED, out->v[1]);
        walk(given, run, out, &x);
    } else {
        attribution_free(out);
    }
    operands_free(&x);
    return failed ? -1 : 0;
}

double attribution_rounding(const struct attribution *a)
{
    return 10 * (a->terms + 32) * 0x1p-53;
}

void attribution_shares(const struct attribution *a, int r0, int r1, double share[PLAYERS])
{
    double square = 0;
    for (int p = 0; p < PLAYERS; p++)
        share[p] = 0;
    for (int i = r0 * a->dim; i < r1 * a->dim; i++) {
        const double error = a->o_run[i] - a->o_given[i];
        square += error * error;
        for (int p = 0; p < PLAYERS; p++)
            share[p] += a->part[p][i] * error;
    }
    for (int p = 0; p < PLAYERS; p++)
        share[p] = square > 0 ? share[p] / square : NAN;
}

void attribution_keys(const struct attribution *a, enum player player, int row, int col, double *out)
{
    const size_t at = (size_t)row * (size_t)a->keys, dim = (size_t)a->dim;
    const double o = a->o3[(size_t)row * dim + (size_t)col];
    for (int j = 0; j < a->keys; j++) {
        const size_t i = at + (size_t)j, e = (size_t)j * dim + (size_t)col;
        const double v = a->v[0][e];
        switch (player) {
        case PLAYER_Q:
            out[j] = (a->w[1][i] - a->w[0][i]) * v;
            break;
        case PLAYER_K:
            out[j] = (a->w[2][i] - a->w[1][i]) * v;
            break;
        case PLAYER_P:
            out[j] = (a->w[4][i] - a->w[3][i]) * (a->centered ? v - o : v);
            break;
        case PLAYER_V:
            out[j] = a->w[4][i] * (a->v[1][e] - v);
            break;
        default:
            out[j] = (a->w[3][i] - a->w[2][i]) * v;
            break;
        }
    }
}

/* Of a value that a format (-1: none of codes) has made another one of. */
/* At most this far from y is the next code of a type, or, of what is none, the next number of bf16, whose steps are
   larger than f16's, or of f16 below its normal ones. */
static double step_at(int type, double y)
{
    if (type >= 0 && dtype_is_step_code((enum dtype)type))
        return 1;
    return type == DTYPE_E4M3   ? fmax(0x1p-9, 0x1p-3 * fabs(y))
           : type == DTYPE_E5M2 ? fmax(0x1p-16, 0x1p-2 * fabs(y))
           : type == DTYPE_E2M1 ? fmax(0x1p-1, 0x1p-1 * fabs(y))
                                : fmax(0x1p-24, 0x1p-7 * fabs(y));
}

enum fate attribution_fate(double was, double is, int type, double scale)
{
    /* A kernel may round twice: into a code, and its value into f16, whose step is 2^-10 of it. Rounding in any
       direction stays below one step. */
    const double y = was / scale, near = (step_at(type, y) + 0x1p-10 * fabs(y)) * scale;
    const bool beyond = type >= 0 && formats_beyond((enum dtype)type, y);
    if (was == is)
        return FATE_EXACT;
    if (!isfinite(is))
        return isfinite(was) && (isinf(is) || beyond) ? FATE_OVERFLOWED : FATE_CHANGED;
    if (beyond) {
        const double most = formats_limit((enum dtype)type) * scale;
        return fabs(is - copysign(most, was)) <= step_at(type, most / scale) * scale ? FATE_SATURATED : FATE_CHANGED;
    }
    if (!(fabs(is - was) <= near))
        return FATE_CHANGED;
    return is == 0 ? FATE_FLUSHED : FATE_ROUNDED;
}

static void tell_fate(const struct attribution *a, enum player player, int row, int col, struct attribution_step *out)
{
    const size_t i = (size_t)row * (size_t)a->keys + (size_t)out->key,
                 e = (size_t)out->key * (size_t)a->dim + (size_t)col;
    if (player == PLAYER_P) {
        out->was = a->p[i];
        out->is = a->code[i];
        out->fate = attribution_fate(out->was, out->is, a->p_type, 1);
    } else if (player == PLAYER_V) {
        out->was = a->v[0][e];
        out->is = a->v[1][e];
        out->fate = attribution_fate(out->was, out->is, a->v_type, a->v_scale[e]);
    }
}

void attribution_largest(const struct attribution *a, enum player player, int row, int col, const double *by_key,
                         struct attribution_step *out)
{
    const double part = a->part[player][(size_t)row * (size_t)a->dim + (size_t)col];
    *out = (struct attribution_step){.key = -1, .fate = FATE_ROUNDED, .was = NAN, .is = NAN};
    for (int j = 0; j < a->keys; j++) {
        const double size = part < 0 ? -by_key[j] : by_key[j];
        if (size > 0 && (out->key < 0 || size > fabs(out->of_key))) {
            out->key = j;
            out->of_key = by_key[j];
        }
    }
    if (out->key >= 0)
        tell_fate(a, player, row, col, out);
}
