/* The test kernel: its inputs, and a run from the first tile to the last. */
#include "tests/unit/lib/oracle_parts.h"

int has_codes(const struct spec *s)
{
    return s->conventions.quantized != ASC_QUANTIZED_GIVEN || s->coded;
}

/* Values, codes without a scale among them. */
static void *test_fill_as(const struct spec *s, enum dtype dtype, int rows, uint64_t seed)
{
    const size_t n = (size_t)rows * (size_t)s->head_dim;
    uint64_t state = seed * 7919 + s->seed;
    void *data = calloc(n, 8);
    for (size_t i = 0; i < n; i++) {
        const double x = test_value(s->fill, i, s->head_dim, &state);
        dtype_store(dtype, data, i, (int)(i / (size_t)s->head_dim) < s->zero_rows ? 0 : x);
    }
    return data;
}

/* Given codes, or values; the scales of both kinds of codes go to `scales`, made-up ones of another head behind them.
 */
static void *test_fill(const struct spec *s, int rows, uint64_t seed, float **scales)
{
    const int quantized = s->conventions.quantized, D = s->head_dim;
    const int share = quantized ? s->conventions.quantized_rows : s->scale_rows;
    const enum dtype type = quantized ? codes_type(quantized) : s->dtype;
    void *values = test_fill_as(s, has_codes(s) && !quantized ? DTYPE_F16 : s->dtype, rows, seed);
    uint8_t *codes = has_codes(s) && !quantized ? calloc((size_t)rows * (size_t)D, 1) : NULL;
    const int groups = has_codes(s) ? codes_groups(rows, share) : 0;
    for (int i = 0; i < 2 && groups; i++)
        scales[i] = calloc((size_t)groups, sizeof **scales);
    for (int group = 0; group < groups; group++) {
        const int from = group * share, to = share && from + share < rows ? from + share : rows;
        float amax = 0;
        for (int i = from * D; i < to * D; i++)
            amax = quantize_amax(amax, (float)dtype_load(quantized ? s->dtype : DTYPE_F16, values, (size_t)i));
        const struct quantizer q = quantizer_of(type, amax, QUANTISE_DIVISION);
        scales[0][group] = q.scale;
        scales[1][group] = q.scale * (0.7f + 0.17f * (float)(2 * group % 5));
        for (int i = from * D; i < to * D && codes; i++)
            codes[i] = quantize_code(&q, (float)dtype_load(DTYPE_F16, values, (size_t)i));
    }
    if (!codes)
        return values;
    free(values);
    return codes;
}

static void run_arrays(struct kernel_run *run)
{
    const struct spec *s = &run->spec;
    const struct asc_plan plan = {.br = s->br, .bc = s->bc, .l_lanes = s->conventions.l_lanes};
    const struct asc_problem problem = {
        .head_dim = s->head_dim, .head_dim_v = s->head_dim, .q_len = s->q_len, .kv_len = s->kv_len};
    const int tiles = run->c.kv_tiles;
    run->captured = calloc((size_t)tiles * ASC_CHANNELS, sizeof *run->captured);
    run->padding = calloc((size_t)tiles * 3, sizeof *run->padding);
    run->arrays = calloc((size_t)tiles * ASC_CHANNELS, sizeof *run->arrays);
    run->order = calloc((size_t)tiles, sizeof *run->order);
    run->out = calloc((size_t)tiles * ASC_CHANNELS, sizeof *run->out);
    for (int i = 0; i < tiles * ASC_CHANNELS; i++) {
        const enum asc_channel ch = (enum asc_channel)(i % ASC_CHANNELS);
        const int kv = i / ASC_CHANNELS;
        if ((kv > 0 && !channel_per_kv(ch)) || s->unrecorded & 1u << ch)
            continue;
        const int rows = s->q_len - s->q_tile * s->br < s->br ? s->q_len - s->q_tile * s->br : s->br;
        run->arrays[i] = test_tile(&plan, &problem, ch, run_dtype(s, ch), kv, rows, &run->captured[i],
                                   test_padding(run->padding, tiles, ch, kv));
    }
}

/* Bias of any row and key, as natural scores. */
static float *test_bias(const struct spec *s)
{
    uint64_t state = 4 * 7919 + s->seed;
    const size_t n = 2 * (size_t)s->q_len * (size_t)s->kv_len;
    float *bias = s->bias_sigma > 0 ? calloc(n, sizeof *bias) : NULL;
    for (size_t i = 0; bias && i < n; i++)
        bias[i] = (float)(s->bias_sigma * test_normal(&state));
    return bias;
}

/* The state before the first tile of a split; before: what the split before it ended with, or NULL. */
static void run_begin(struct kernel_run *run, struct state *at, const struct state *before)
{
    const struct spec *s = &run->spec;
    const struct asc_conventions *c = &s->conventions;
    const ptrdiff_t D = s->head_dim;
    const int rows = s->q_len - s->q_tile * s->br < s->br ? s->q_len - s->q_tile * s->br : s->br;
    const int first = !before || s->wrong_term == SINK_IN_EVERY_SPLIT;
    const int at_sink = s->has_sink && first && s->wrong_term != SINK_FORGOTTEN &&
                        (c->l_sink == ASC_SINK_START || c->l_sink == ASC_SINK_M_START);
    at->lanes = c->l_lanes > 1 ? c->l_lanes : 1;
    at->q = calloc((size_t)(s->br * D), sizeof *at->q);
    at->u = calloc((size_t)(s->br * D), sizeof *at->u);
    at->m = calloc((size_t)s->br, sizeof *at->m);
    at->l = calloc((size_t)s->br * (size_t)at->lanes, sizeof *at->l);
    run->last_kv = -1;
    for (int r = 0; r < s->br; r++) {
        at->m[r] = c->m_empty == ASC_EMPTY_FINITE ? c->m_start : -INFINITY;
        if (at_sink)
            at->m[r] = run_in_unit(run, run_sink(run), c->m_unit);
        if (at_sink && c->l_sink == ASC_SINK_START && s->wrong_term != SINK_WITHOUT_WEIGHT)
            at->l[(ptrdiff_t)r * at->lanes] = run_p_factor(s);
        if (s->wrong_number == L_NEVER_ZEROED && r == s->unreal_row) {
            const uint32_t poison = POISON_16 << 16 | POISON_16;
            memcpy(&at->l[(ptrdiff_t)r * at->lanes], &poison, sizeof poison);
        }
        for (int d = 0; d < D; d++) {
            const size_t from = (size_t)((s->q_tile * s->br + r) * D + d);
            at->q[r * D + d] = r < rows ? run_input(run, asc_q, from) : 0;
            if (c->q_fold)
                at->q[r * D + d] = round_to(run_dtype(s, asc_q), at->q[r * D + d] * run_fold(run));
            run_record(run, asc_q, 0, (size_t)(r * D + d), at->q[r * D + d]);
        }
    }
    if (before && s->wrong_term == SPLIT_STATE_KEPT) {
        memcpy(at->m, before->m, (size_t)s->br * sizeof *at->m);
        memcpy(at->l, before->l, (size_t)s->br * (size_t)at->lanes * sizeof *at->l);
        memcpy(at->u, before->u, (size_t)(s->br * D) * sizeof *at->u);
    }
}

/* Values, no codes. */
static void test_negate(enum dtype t, void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dtype_store(t, data, i, -dtype_load(t, data, i));
}

struct kernel_run *kernel_run(const struct spec *s)
{
    struct kernel_run *run = calloc(1, sizeof *run);
    run->spec = *s;
    run->scale = s->scale != 0 ? s->scale : 1 / sqrtf((float)s->head_dim);
    run->last_kv = -1;
    run->q = test_fill(s, s->q_len, 1, run->scales[0]);
    run->k = test_fill(s, s->kv_len, 2, run->scales[1]);
    run->v = test_fill(s, s->kv_len, 3, run->scales[2]);
    run->bias = test_bias(s);
    const ptrdiff_t D = s->head_dim;
    if (s->negated & 1)
        test_negate(s->dtype, run->q, (size_t)(s->q_len * D));
    if (s->negated & 2)
        test_negate(s->dtype, run->v, (size_t)(s->kv_len * D));
    if (s->wrong_number == INPUT_UNREAL) {
        void *input = s->unreal_of == asc_q ? run->q : s->unreal_of == asc_k ? run->k : run->v;
        memcpy((char *)input + (size_t)(s->unreal_row * D + s->unreal_col) * dtype_bytes(s->dtype), &s->unreal_bits,
               dtype_bytes(s->dtype));
    }
    const int tiles = (s->kv_len + s->bc - 1) / s->bc;
    const size_t size = dtype_bytes(s->dtype);
    const int rows = s->q_len - s->q_tile * s->br < s->br ? s->q_len - s->q_tile * s->br : s->br;
    run->c = (struct oracle_case){.scale = run->scale,
                                  .causal = (int)s->causal,
                                  .softcap = (double)s->softcap,
                                  .window_left = s->has_window ? s->window_left : -1,
                                  .window_right = s->has_window ? s->window_right : -1,
                                  .q_len = s->q_len,
                                  .kv_len = s->kv_len,
                                  .head_dim = D,
                                  .head_dim_v = D,
                                  .br = s->br,
                                  .bc = s->bc,
                                  .q_tile = s->q_tile,
                                  .o_dtype = (int)s->o_dtype,
                                  .conventions = s->conventions,
                                  .kv_tiles = tiles};
    run_arrays(run);
    run->c.in_q =
        (struct matrix){(char *)run->q + (size_t)s->q_tile * (size_t)s->br * (size_t)D * size, s->dtype, D, rows, D};
    run->c.in_k = (struct matrix){run->k, s->dtype, D, s->kv_len, D};
    run->c.in_v = (struct matrix){run->v, s->dtype, D, s->kv_len, D};
    run->c.q_codes = run_coding(run, asc_q);
    run->c.k_codes = run_coding(run, asc_k);
    run->c.v_codes = run_coding(run, asc_v);
    codes_fold(&run->c);
    run->c.captured = run->captured;
    run->c.s_padding = run->padding;
    run->c.p_padding = run->padding + tiles;
    run->c.v_padding = run->padding + (ptrdiff_t)2 * tiles;
    run->c.order = run->order;
    if (s->alibi_slope != 0)
        run->c.alibi_slope = (double)s->alibi_slope;
    if (s->has_sink) {
        run->c.has_sink = 1;
        run->c.sink = (double)s->sink;
    }
    if (run->bias) {
        const float *first = run->bias + (ptrdiff_t)s->q_tile * s->br * s->kv_len;
        const ptrdiff_t head = (ptrdiff_t)s->q_len * s->kv_len;
        run->c.bias = (struct matrix){first, DTYPE_F32, s->kv_len, rows, s->kv_len};
        run->c.other_bias[OTHER_BIAS_NEXT_HEAD] = (struct matrix){first + head, DTYPE_F32, s->kv_len, rows, s->kv_len};
    }
    run->c.kv_splits = s->kv_splits;
    run->c.kv_deal = s->kv_deal;
    const int splits = s->kv_splits > 1 ? s->kv_splits : 1, per_split = (tiles + splits - 1) / splits;
    struct state *ends = calloc((size_t)splits, sizeof *ends);
    for (int split = 0; split < splits; split++) {
        run_begin(run, &ends[split], split > 0 ? &ends[split - 1] : NULL);
        const int dealt = s->kv_deal == ASC_DEAL_ROUND_ROBIN && splits > 1, step = dealt ? splits : 1;
        const int from = dealt ? split : split * per_split, left = (tiles - from + step - 1) / step;
        const int n = !dealt && left > per_split ? per_split : left;
        for (int i = 0; i < n - s->skip; i++) {
            const int kv = from + (s->reversed ? n - 1 - i : i) * step;
            if (!s->visits_masked && run_tile_masked(s, kv, rows))
                continue;
            run->order[run->c.n_visited++] = kv;
            run_tile(run, kv, &ends[split]);
        }
    }
    run_end(run, ends, s->wrong_term == SPLIT_LAST_LOST ? splits - 1 : splits);
    for (int split = 0; split < splits; split++) {
        free(ends[split].q);
        free(ends[split].u);
        free(ends[split].m);
        free(ends[split].l);
    }
    free(ends);
    return run;
}

void kernel_run_free(struct kernel_run *run)
{
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++)
        free(run->arrays[i]);
    free(run->arrays);
    free(run->captured);
    free(run->padding);
    free(run->order);
    free(run->out);
    free(run->q);
    free(run->k);
    free(run->v);
    free(run->bias);
    for (int i = 0; i < 6; i++)
        free(run->scales[i / 2][i % 2]);
    free(run);
}

unsigned bad_stages(const struct kernel_run *run, int global)
{
    unsigned bad = 0;
    for (int i = 0; i < run->c.kv_tiles * ASC_CHANNELS; i++) {
        const struct verdict *v = global ? &run->out[i].global : &run->out[i].local;
        if (v->judged && !verdict_ok(v))
            bad |= 1u << i % ASC_CHANNELS;
    }
    return bad;
}
