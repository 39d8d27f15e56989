/* The test kernel: how its splits and its sink become O and LSE. */
#include "tests/unit/lib/oracle_parts.h"

/* What a split ends with in one row: its lanes added up, m in natural units. */
struct ending {
    float m, l;
    const float *u; /* [D] */
    int divided;    /* 1: u is divided by l already */
};

static float truncate_f16(float x)
{
    const float nearest = round_to(DTYPE_F16, x);
    return fabsf(nearest) > fabsf(x) ? round_to(DTYPE_F16, nearest * (1 - 0x1p-11f)) : nearest;
}

/* What o or u of a split is, its own or by l. */
static float ending_o(const struct ending *end, int d)
{
    return end->divided ? end->u[d] : end->u[d] / end->l;
}

static float ending_u(const struct ending *end, int d)
{
    return end->divided ? end->u[d] * end->l : end->u[d];
}

static struct ending run_ending(const struct kernel_run *run, const struct state *at, int r)
{
    const struct spec *s = &run->spec;
    const float natural = run_natural(s->conventions.m_unit, run_top(run));
    struct ending end = {.m = at->m[r] * natural,
                         .u = at->u + (ptrdiff_t)r * s->head_dim,
                         .divided = s->conventions.u_norm == ASC_U_NORM_TILE};
    for (int lane = 0; lane < at->lanes; lane++)
        end.l += at->l[(ptrdiff_t)r * at->lanes + lane];
    return end;
}

static int run_sink_last(const struct spec *s)
{
    const int l_sink = s->conventions.l_sink;
    return s->has_sink && s->wrong_term != SINK_FORGOTTEN && (l_sink == ASC_SINK_END || l_sink == ASC_SINK_M_START);
}

float run_sink(const struct kernel_run *run)
{
    return run->spec.sink * (run->spec.wrong_term == SINK_UNSCALED ? run->scale : 1);
}

/* One row's m, l and u out of those of its splits, as such. */
static void run_merge(const struct kernel_run *run, const struct state *splits, int n, int r, float *m, float *l,
                      float *u)
{
    const int D = run->spec.head_dim;
    *m = -INFINITY;
    *l = 0;
    for (int d = 0; d < D; d++)
        u[d] = 0;
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        *m = end.l > 0 || run->spec.wrong_term == SPLIT_UNGUARDED || n == 1 ? fmaxf(*m, end.m) : *m;
    }
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        float weight = n == 1 ? 1 : expf(end.m - *m);
        if (run->spec.wrong_term == SPLIT_EQUAL_WEIGHTS)
            weight = 1;
        if (end.l == 0 && run->spec.wrong_term != SPLIT_UNGUARDED)
            continue;
        *l += weight * end.l;
        for (int d = 0; d < D; d++)
            u[d] += weight * ending_u(&end, d);
    }
}

/* The same by way of each split's own output and lse: leaves the merged lse in *m, 1 in *l and the output in u. */
static void run_merge_lse(const struct kernel_run *run, const struct state *splits, int n, int r, float *m, float *l,
                          float *u)
{
    const struct spec *s = &run->spec;
    const int D = s->head_dim;
    const float offset = logf(run_p_factor(s));
    float lse[64];
    float top = -INFINITY;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        lse[i] = end.l > 0 ? end.m + logf(end.l) - offset : -INFINITY;
        top = fmaxf(top, lse[i]);
    }
    const float base = top == -INFINITY && s->wrong_term != SPLIT_UNGUARDED ? 0 : top;
    for (int i = 0; i < n; i++)
        sum += s->wrong_term == SPLIT_EQUAL_WEIGHTS ? 1 : expf(lse[i] - base);
    if (run_sink_last(s) && sum > 0)
        sum += expf(run_sink(run) - base);
    *m = sum == 0 ? -INFINITY : base + logf(sum);
    *l = sum == 0 ? 0 : sum > 0 ? 1 : NAN;
    for (int d = 0; d < D; d++) {
        u[d] = 0;
        for (int i = 0; i < n; i++) {
            const struct ending end = run_ending(run, &splits[i], r);
            const float weight = s->wrong_term == SPLIT_EQUAL_WEIGHTS ? 1 / (float)n : expf(lse[i] - *m);
            u[d] += end.l > 0 ? weight * ending_o(&end, d) : 0;
        }
    }
}

/* What the weights of a mistaken merge are powers of e of. */
static float run_wrong_exponent(const struct spec *s, const struct ending *end)
{
    const float lse = end->l > 0 ? end->m + logf(end->l) - logf(run_p_factor(s)) : -INFINITY;
    switch (s->wrong_term) {
    case MERGE_BASE_2:
        return lse * (float)M_LN2;
    case MERGE_BASE_E:
        return lse * (float)M_LOG2E;
    case MERGE_WITHOUT_L:
        return end->l > 0 ? end->m : -INFINITY;
    case MERGE_EMPTY_COUNTS:
        return end->l > 0 ? lse : 0;
    case MERGE_UNWEIGHTED:
        return end->l > 0 ? 0 : -INFINITY;
    default:
        return lse;
    }
}

/* The output of a mistaken merge; the merged lse stays right. */
static void run_merge_wrongly(const struct kernel_run *run, const struct state *splits, int n, int r, float *u)
{
    const struct spec *s = &run->spec;
    const int D = s->head_dim;
    float top = -INFINITY;
    float sum = 0;
    for (int d = 0; d < D; d++)
        u[d] = 0;
    for (int i = 0; i < n; i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        top = fmaxf(top, run_wrong_exponent(s, &end));
    }
    if (s->wrong_term == MERGE_NOT_SHIFTED)
        top = 0;
    for (int i = 0; i < (s->wrong_term == MERGE_FIRST ? 1 : n); i++) {
        const struct ending end = run_ending(run, &splits[i], r);
        const float weight = expf(run_wrong_exponent(s, &end) - top);
        sum += weight;
        for (int d = 0; d < D; d++)
            u[d] += end.l > 0 ? weight * (s->wrong_term == MERGE_NOT_DIVIDED ? end.u[d] : end.u[d] / end.l) : 0;
    }
    for (int d = 0; d < D; d++)
        u[d] = sum == 0 && s->wrong_term != MERGE_NOT_SHIFTED ? 0 : u[d] / sum;
}

void run_end(const struct kernel_run *run, const struct state *splits, int n)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    float u[512];
    for (int r = 0; r < s->br && s->q_tile * s->br + r < s->q_len; r++) {
        const int by_lse = s->merges_lse && n > 1;
        float l = 0;
        float m_natural = 0;
        if (by_lse)
            run_merge_lse(run, splits, n, r, &m_natural, &l, u);
        else
            run_merge(run, splits, n, r, &m_natural, &l, u);
        if (by_lse && s->wrong_term >= MERGE_BASE_2 && s->wrong_term <= MERGE_NOT_SHIFTED)
            run_merge_wrongly(run, splits, n, r, u);
        if (run_sink_last(s) && !by_lse && l > 0)
            l += expf(run_sink(run) - m_natural) * run_p_factor(s);
        /* Divided after every tile, merged with nothing: the output is there. */
        const int leaves = s->conventions.u_norm == ASC_U_NORM_TILE && s->kv_splits < 2 && !run_sink_last(s);
        for (int d = 0; d < D && leaves; d++)
            u[d] = splits[0].u[r * D + d];
        const float inverse = leaves ? 1 : l > 0 || s->wrong_number == O_UNGUARDED ? 1 / l : l == 0 ? 0 : l;
        float lse = m_natural + (by_lse ? 0 : logf(fmaxf(l, FLT_TRUE_MIN)) - logf(run_p_factor(s)));
        if (s->wrong_term == SINK_NOT_IN_LSE)
            lse = logf(expf(lse) - expf(s->sink));
        if (s->conventions.lse_base2)
            lse *= (float)M_LOG2E;
        if (s->mistake == LSE_BASE_2)
            lse = m_natural + log2f(l);
        if (s->wrong_number == LOG_UNGUARDED)
            lse = m_natural + logf(l);
        else if (l == 0)
            lse = run_sink_last(s)                    ? run_sink(run) * (s->conventions.lse_base2 ? (float)M_LOG2E : 1)
                  : s->conventions.empty_lse_negative ? -INFINITY
                                                      : INFINITY;
        run_record(run, asc_lse, 0, (size_t)r, lse);
        for (int d = 0; d < D; d++) {
            float o = u[d] * (s->mistake == O_UNNORMALIZED ? 1 : inverse) * run_scale_of_o(run);
            if (s->mistake == O_TRUNCATED)
                o = truncate_f16(o);
            run_record(run, asc_o, 0, (size_t)(r * D + d), o);
        }
    }
}
