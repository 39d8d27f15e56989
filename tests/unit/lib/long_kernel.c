#include "tests/unit/lib/long_kernel.h"

#include "engine/base/format.h"
#include "tests/unit/lib/kernel_data.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint16_t half_of(double x)
{
    return f16_from_f64(x);
}

static double fill_value(const struct long_spec *s, bool of_v, uint64_t *state)
{
    const double x = test_normal(state);
    return of_v && s->fill == LONG_POSITIVE ? fabs(x) / 4 : x;
}

static void fill_rows(const struct long_spec *s, bool of_v, uint16_t *out)
{
    uint64_t state = 7919u * (of_v + 2u) + s->seed;
    const int D = s->dim, period = s->fill == LONG_REPEATED ? LONG_BC : s->fill == LONG_CONSTANT ? 1 : s->keys;
    for (int key = 0; key < s->keys; key++)
        for (int d = 0; d < D; d++)
            out[(size_t)key * (size_t)D + (size_t)d] =
                key < period ? half_of(fill_value(s, of_v, &state)) : out[(size_t)(key % period * D + d)];
    for (int i = 1; i <= 100 && s->fill == LONG_ALIKE && !of_v; i++)
        for (int d = 0; d < D; d++)
            out[(size_t)i * (size_t)(s->keys / 101) * (size_t)D + (size_t)d] = half_of(d % 2 ? 1.7 : -1.3);
}

bool long_data_make(struct long_data *data, const struct long_spec *s)
{
    const size_t n = (size_t)s->keys * (size_t)s->dim;
    data->k = calloc(n, sizeof *data->k);
    data->v = calloc(n, sizeof *data->v);
    if (!data->k || !data->v) {
        long_data_free(data);
        return false;
    }
    fill_rows(s, false, data->k);
    fill_rows(s, true, data->v);
    return true;
}

void long_data_free(struct long_data *data)
{
    free(data->k);
    free(data->v);
    *data = (struct long_data){0};
}

static void fill_q(const struct long_spec *s, uint16_t *q)
{
    uint64_t state = 104729u + 31u * s->seed;
    for (int r = 0; r < s->rows; r++)
        for (int d = 0; d < s->dim; d++) {
            double x = test_normal(&state);
            if (s->fill == LONG_ONE_HOT)
                x = d == r % s->dim ? 8 : 0;
            else if (s->fill == LONG_ALIKE)
                x = (d % 2 ? 0.6 : -0.5) + x / 8;
            else if (s->fill == LONG_PEAKED)
                x *= 4;
            q[r * s->dim + d] = half_of(x);
        }
}

/* One run. */
struct kernel {
    const struct long_spec *s;
    const uint16_t *q, *k, *v;
    int lost; /* key whose weight row 0 loses, or -1 */
    float *m, *l, *u, *scores, *alpha;
    uint16_t *p;
    void *room_q, *room_k, *room_p, *room_v; /* for operands */
};

static float exponential(const struct long_spec *s, float x)
{
    const float y = exp2f(x);
    return s->exp_low ? (float)((double)y * (1 - 0x1.2p-23)) : y;
}

static void weigh(struct kernel *x, int tile)
{
    const struct long_spec *s = x->s;
    const float scale = 1 / sqrtf((float)s->dim), c = scale * (float)M_LOG2E;
    for (int r = 0; r < s->rows; r++) {
        float *row = x->scores + (ptrdiff_t)r * LONG_BC, *l = x->l + 4 * (ptrdiff_t)r;
        const float before = x->m[r];
        for (int i = 0; i < LONG_BC; i++)
            x->m[r] = fmaxf(x->m[r], row[i]);
        const float m = x->m[r], shift = m * c;
        x->alpha[r] = exponential(s, s->folds_alpha ? fmaf(before, c, -shift) : (before - m) * c);
        for (int i = 0; i < LONG_BC; i++) {
            row[i] = r == 0 && tile * LONG_BC + i == x->lost ? 0 : exponential(s, fmaf(row[i], c, -shift));
            x->p[r * LONG_BC + i] = f16_from_f32(row[i]);
        }
        for (int lane = 0; lane < 4; lane++) {
            l[lane] *= x->alpha[r];
            for (int i = 2 * lane; i < LONG_BC; i += 8)
                l[lane] += row[i] + row[i + 1];
        }
        for (int d = 0; d < s->dim; d++)
            x->u[r * s->dim + d] *= x->alpha[r];
    }
}

static void take_tile(struct kernel *x, int tile)
{
    const struct long_spec *s = x->s;
    const int D = s->dim;
    const size_t first = (size_t)tile * LONG_BC * (size_t)D;
    struct tensor_core_operand q, k, p, v;
    tensor_core_take(&q, x->room_q, DTYPE_F16, x->q, s->rows, D, D, 1);
    tensor_core_take(&k, x->room_k, DTYPE_F16, x->k + first, LONG_BC, D, D, 1);
    tensor_core_product(s->core, &q, &k, NULL, 0, x->scores, LONG_BC);
    weigh(x, tile);
    tensor_core_take(&p, x->room_p, DTYPE_F16, x->p, s->rows, LONG_BC, LONG_BC, 1);
    tensor_core_take(&v, x->room_v, DTYPE_F16, x->v + first, D, LONG_BC, 1, D);
    tensor_core_product(s->core, &p, &v, x->u, D, x->u, D);
}

static void end(const struct kernel *x, uint16_t *o, float *lse)
{
    const struct long_spec *s = x->s;
    for (int r = 0; r < s->rows; r++) {
        const float *l = x->l + 4 * (ptrdiff_t)r, sum = (l[0] + l[1]) + (l[2] + l[3]), inverse = 1 / sum;
        lse[r] = x->m[r] / sqrtf((float)s->dim) + logf(sum);
        for (int d = 0; d < s->dim; d++) {
            const float value = x->u[r * s->dim + d] * inverse;
            o[r * s->dim + d] = f16_from_f32(s->mistake == LONG_O_SCALED ? value * (1 + 0x1p-10F) : value);
        }
    }
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

struct weight {
    double share;
    int key;
};

static int heaviest(const void *a, const void *b)
{
    return descending(&((const struct weight *)a)->share, &((const struct weight *)b)->share);
}

/* The key of row 0 with the rank-th largest weight, and its share. */
static struct weight find_weight(const struct long_spec *s, const uint16_t *q, const uint16_t *k)
{
    struct weight *weights = calloc((size_t)s->keys, sizeof *weights);
    double sum = 0;
    for (int key = 0; key < s->keys; key++) {
        double score = 0;
        for (int d = 0; d < s->dim; d++)
            score += (double)f16_to_f32(q[d]) * (double)f16_to_f32(k[(size_t)key * (size_t)s->dim + (size_t)d]);
        weights[key] = (struct weight){exp(score / sqrt(s->dim)), key};
        sum += weights[key].share;
    }
    qsort(weights, (size_t)s->keys, sizeof *weights, heaviest);
    const struct weight found = {weights[s->rank].share / sum, weights[s->rank].key};
    free(weights);
    return found;
}

static void exchange(const struct long_spec *s, uint16_t *v)
{
    uint16_t *a = v + (size_t)(s->keys / 3) * (size_t)s->dim, *b = v + (size_t)(s->keys / 3 * 2) * (size_t)s->dim;
    for (int d = 0; d < s->dim; d++) {
        const uint16_t kept = a[d];
        a[d] = b[d];
        b[d] = kept;
    }
}

static void compute(const struct long_spec *s, const struct long_data *data, const uint16_t *q, uint16_t *o, float *lse,
                    double *share)
{
    const size_t rows = (size_t)s->rows, D = (size_t)s->dim;
    struct kernel x = {.s = s, .q = q, .k = data->k, .v = data->v, .lost = -1};
    const int tiles = s->keys / LONG_BC;
    x.m = calloc(rows, sizeof *x.m);
    x.l = calloc(4 * rows, sizeof *x.l);
    x.alpha = calloc(rows, sizeof *x.alpha);
    x.u = calloc(rows * D, sizeof *x.u);
    x.scores = calloc(rows * LONG_BC, sizeof *x.scores);
    x.p = calloc(rows * LONG_BC, sizeof *x.p);
    const size_t room = tensor_core_room((int)(rows > D ? rows : D) + LONG_BC, (int)D + LONG_BC) / 32 * 32 + 32;
    x.room_q = aligned_alloc(32, room);
    x.room_k = aligned_alloc(32, room);
    x.room_p = aligned_alloc(32, room);
    x.room_v = aligned_alloc(32, room);
    for (size_t r = 0; r < rows; r++)
        x.m[r] = -INFINITY;
    if (s->mistake == LONG_WEIGHT_LOST) {
        const struct weight lost = find_weight(s, q, data->k);
        x.lost = lost.key;
        *share = lost.share;
    }
    if (s->mistake == LONG_V_EXCHANGED)
        exchange(s, data->v);
    for (int i = 0; i < tiles; i++)
        if (s->mistake != LONG_TILE_LEFT_OUT || i != tiles / 2)
            take_tile(&x, s->reversed ? tiles - 1 - i : i);
    if (s->mistake == LONG_V_EXCHANGED)
        exchange(s, data->v);
    end(&x, o, lse);
    void *const owned[] = {x.m, x.l, x.alpha, x.u, x.scores, x.p, x.room_q, x.room_k, x.room_p, x.room_v};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
}

static void measure(const struct tile_detail *d, struct long_result *out)
{
    const int n = d->rows * d->cols;
    double *bounds = calloc((size_t)n, sizeof *bounds), squares = 0;
    for (int i = 0; i < n; i++) {
        bounds[i] = d->bound_global[i];
        squares += d->want_global[i] * d->want_global[i];
    }
    qsort(bounds, (size_t)n, sizeof *bounds, descending);
    out->bound = bounds[n / 2];
    out->size = sqrt(squares / n);
    free(bounds);
}

int long_judge(const struct long_spec *s, const struct long_data *data, struct judge_scratch *scratch,
               struct long_result *out)
{
    const int D = s->dim, tiles = s->keys / LONG_BC;
    const size_t values = (size_t)s->rows * (size_t)D;
    uint16_t *q = calloc(values, sizeof *q), *o = calloc(values, sizeof *o);
    float *lse = calloc((size_t)s->rows, sizeof *lse);
    struct matrix *captured = calloc((size_t)tiles * ASC_CHANNELS, sizeof *captured);
    struct tile_verdicts *verdicts = calloc((size_t)tiles * ASC_CHANNELS, sizeof *verdicts);
    struct tile_detail detail = {.channel = asc_o}, of_lse = {.channel = asc_lse};
    *out = (struct long_result){0};
    fill_q(s, q);
    compute(s, data, q, o, lse, &out->share);
    captured[asc_o] = (struct matrix){o, DTYPE_F16, D, s->rows, D};
    captured[asc_lse] = (struct matrix){lse, DTYPE_F32, 1, s->rows, 1};
    const struct oracle_case c = {
        .scale = (double)(1 / sqrtf((float)D)),
        .window_left = -1,
        .window_right = -1,
        .q_len = s->rows,
        .kv_len = s->keys,
        .head_dim = D,
        .head_dim_v = D,
        .br = s->rows,
        .bc = LONG_BC,
        .o_dtype = DTYPE_F16,
        .conventions = {.s_unit = ASC_UNIT_RAW,
                        .m_unit = ASC_UNIT_RAW,
                        .acc_s = ASC_ACC_MMA_F16,
                        .acc_u = ASC_ACC_MMA_F16,
                        .p_rounded = ASC_P_F16,
                        .l_lanes = 4},
        .known_cores = s->known ? 1u << s->core | 1u << TENSOR_CORE_F32 : 0,
        .in_q = {q, DTYPE_F16, D, s->rows, D},
        .in_k = {data->k, DTYPE_F16, D, s->keys, D},
        .in_v = {data->v, DTYPE_F16, D, s->keys, D},
        .kv_tiles = tiles,
        .captured = captured,
    };
    int failed = tile_detail_make(&detail, values) != 0;
    failed = tile_detail_make(&of_lse, (size_t)s->rows) != 0 || failed;
    failed = failed || judge_case(&c, scratch, verdicts, &detail) != 0;
    if (!failed && s->at_bounds != 0) {
        failed = judge_case(&c, scratch, verdicts, &of_lse) != 0;
        o[0] = half_of(detail.want_global[0] + s->at_bounds * detail.bound_global[0]);
        lse[0] = (float)(of_lse.want_global[0] + s->at_bounds * of_lse.bound_global[0]);
        failed = failed || judge_case(&c, scratch, verdicts, &detail) != 0;
    }
    if (!failed) {
        out->likely_o = verdicts[asc_o].global.likely;
        out->likely_lse = verdicts[asc_lse].global.likely;
        out->bad_o = verdict_bad(&verdicts[asc_o].global);
        out->bad_lse = verdict_bad(&verdicts[asc_lse].global);
        out->worst = fmax((double)verdicts[asc_o].global.worst_ratio, (double)verdicts[asc_lse].global.worst_ratio);
        out->noise = *judge_noise(scratch);
        measure(&detail, out);
    }
    tile_detail_free(&detail);
    tile_detail_free(&of_lse);
    free(q);
    free(o);
    free(lse);
    free(captured);
    free(verdicts);
    return failed ? -1 : 0;
}
