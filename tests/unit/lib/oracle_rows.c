/* The test kernel: online softmax and P V, tile by tile, recorded the way probes record. */
#include "tests/unit/lib/oracle_parts.h"

static float run_max(const struct spec *s, float a, float b)
{
    if (s->conventions.max_nan == ASC_MAX_PROPAGATES && (isnan(a) || isnan(b)))
        return NAN;
    return fmaxf(a, b);
}

/* What m becomes, `top` being the maximum of the scores so far. */
static float run_policy(const struct kernel_run *run, float before, float top)
{
    const struct spec *s = &run->spec;
    const float natural = run_natural(s->conventions.m_unit, run_top(run));
    if (s->conventions.m_policy == ASC_M_FIXED)
        return 5 / natural;
    if (s->conventions.m_policy == ASC_M_LAGGING && isfinite(before) &&
        (top - before) * natural * (float)M_LOG2E <= s->conventions.m_lag)
        return before;
    return top;
}

static float run_alpha(const struct kernel_run *run, float before, float top)
{
    const struct spec *s = &run->spec;
    const struct asc_conventions *c = &s->conventions;
    const float start = c->m_empty == ASC_EMPTY_FINITE ? c->m_start : -INFINITY;
    if ((c->alpha_first == ASC_ALPHA_ONE && before == start) ||
        ((c->alpha_first == ASC_ALPHA_ONE_FIRST || c->alpha_first == ASC_ALPHA_NONE_FIRST) && run->last_kv < 0))
        return 1;
    if (before == -INFINITY && s->wrong_number != EXP_UNGUARDED)
        return 0;
    const float alpha = run_exp(run, before, c->m_unit, top);
    return s->mistake == ALPHA_INVERTED ? 1 / alpha : alpha;
}

float run_p_factor(const struct spec *s)
{
    return ldexpf(s->conventions.p_factor > 0 ? s->conventions.p_factor : 1, s->conventions.p_offset);
}

static enum dtype run_p_type(const struct spec *s)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    return s->conventions.p_rounded ? types[s->conventions.p_rounded] : s->p_dtype;
}

/* Row r of one tile: scores, their maximum, weights, sums. */
static void run_row(const struct kernel_run *run, int kv, int r, const float *k, const float *v, struct state *at)
{
    const struct spec *s = &run->spec;
    const struct asc_conventions *conventions = &s->conventions;
    const ptrdiff_t D = s->head_dim;
    const int bc = s->bc, first = kv * bc, valid = s->kv_len - first < bc ? s->kv_len - first : bc;
    const int real_row = s->q_tile * s->br + r < s->q_len, to_m = conventions->m_unit;
    const int later = conventions->s_at != ASC_S_MASKED || conventions->s_masked == ASC_MASKED_UNTOUCHED;
    const float out = conventions->s_masked == ASC_MASKED_VALUE && !later ? conventions->s_masked_value : -INFINITY;
    const float convert = to_m == conventions->s_unit
                              ? 1
                              : run_natural(conventions->s_unit, run_top(run)) / run_natural(to_m, run_top(run));
    float *m = &at->m[r], *l = &at->l[(ptrdiff_t)r * at->lanes], *u = &at->u[r * D];
    float *score = calloc((size_t)bc, sizeof *score), *p = calloc((size_t)bc, sizeof *p);
    float top = *m;
    const enum tensor_core core = s->core ? (enum tensor_core)(s->core - 1) : TENSOR_CORE_F32;
    float *dots = s->core ? calloc((size_t)bc, sizeof *dots) : NULL;
    float *added = calloc((size_t)D * 2, sizeof *added), *rescaled = added + D;
    if (s->core) {
        float last = at->q[(r + 1) * D - 1];
        if (s->mistake == S_LAST_PRODUCT)
            at->q[(r + 1) * D - 1] = 0;
        run_product(s->mistake == S_F16_ACCUMULATOR ? TENSOR_CORE_H100_F16 : core, core_dtype(s, asc_q), at->q + r * D,
                    D, &at->k, NULL, dots);
        at->q[(r + 1) * D - 1] = last;
    }
    for (int c = 0; c < bc; c++) {
        const int masked = c >= valid ? s->mistake != S_TAIL_COUNTED : !run_sees(s, r, first + c);
        const float dot = run_score(run, at->q, k, dots, r, c, kv), capped = run_cap(run, dot);
        const float biased = run_biased(run, capped, r, first + c);
        const float recorded = !later                              ? masked ? out : biased
                               : conventions->s_at == ASC_S_DOT    ? dot
                               : conventions->s_at == ASC_S_CAPPED ? capped
                                                                   : biased;
        if (real_row)
            run_record(run, asc_s, kv, (size_t)r * (size_t)bc + (size_t)c, recorded);
        score[c] = (masked ? out : biased) * convert;
        if (!(s->mistake == M_PARTIAL && c < bc / 4))
            top = run_max(s, top, score[c]);
    }
    const int low = s->mistake == M_TOO_LOW && run->last_kv < 0;
    const float frame = run_policy(run, *m, top) - (low ? 100 : 0), alpha = run_alpha(run, *m, frame);
    const int is_tile = conventions->p_max == ASC_P_MAX_TILE;
    float tile_top = conventions->m_empty == ASC_EMPTY_FINITE ? conventions->m_start : -INFINITY;
    for (int c = 0; c < bc; c++)
        tile_top = run_max(s, tile_top, score[c]);
    const float beta = !is_tile ? 1 : tile_top == -INFINITY ? 0 : run_exp(run, tile_top, to_m, frame);
    const float stand = s->mistake == M_LEFT_BEHIND ? top : is_tile && s->mistake != P_RUNNING_MAX ? tile_top : frame;
    for (int c = 0; c < bc; c++) {
        p[c] = stand == -INFINITY || score[c] == -INFINITY ? 0 : run_exp(run, score[c], to_m, stand);
        if (stand == -INFINITY && s->wrong_number == EXP_UNGUARDED)
            p[c] = run_exp(run, score[c], to_m, stand);
        if (s->mistake == P_BASE_2 && score[c] != -INFINITY)
            p[c] = exp2f(score[c] - stand);
        p[c] *= run_p_factor(s);
        if (s->mistake == P_TAIL_COUNTED && c >= valid)
            p[c] = 0.5f;
        if (real_row)
            run_record(run, asc_p, kv, (size_t)r * (size_t)bc + (size_t)c, p[c]);
    }
    const float l_alpha = s->mistake == L_ALPHA_FORGOTTEN ? 1 : s->mistake == L_ALPHA_TWICE ? alpha * alpha : alpha;
    const float u_alpha = s->mistake == U_ALPHA_FORGOTTEN ? 1 : s->mistake == U_ALPHA_TWICE ? alpha * alpha : alpha;
    const int kept = s->mistake == L_PREVIOUS_KEPT && l[0] != 0;
    float sums[64] = {0};
    for (int c = 0; c < bc; c++)
        sums[c % at->lanes] += conventions->l_from == ASC_L_ROUNDED ? round_to(run_p_type(s), p[c]) : p[c];
    float l_before = 0, l_after = 0;
    for (int lane = 0; lane < at->lanes; lane++) {
        l_before += l[lane];
        l[lane] = l[lane] * l_alpha + (kept ? 0 : sums[lane] * (s->mistake == L_BETA_FORGOTTEN ? 1 : beta));
        l_after += l[lane];
    }
    const int divides = conventions->u_norm == ASC_U_NORM_TILE;
    const float u_beta = s->mistake == U_BETA_FORGOTTEN ? 1 : beta;
    const float divisor = s->mistake == U_PREVIOUS_L ? l_before : l_after;
    const float u_factor = divides && s->mistake != U_L_PREV_LEFT ? u_alpha * l_before : u_alpha;
    if (s->mistake == U_KEY_MISSING)
        p[valid / 2] = 0;
    for (int c = 0; c < bc; c++)
        p[c] = round_to(run_p_type(s), p[c]);
    for (int d = 0; d < D; d++)
        rescaled[d] = core == TENSOR_CORE_H100_F16 ? round_to(DTYPE_F16, u[d] * u_factor) : u[d] * u_factor;
    const int carries = s->join == PRODUCT_CARRIES && !is_tile && !divides &&
                        !(has_codes(s) && conventions->v_descale == ASC_V_PRODUCT);
    if (s->core)
        run_product(core, run_p_type(s), p, bc, &at->v, carries ? rescaled : NULL, added);
    for (int d = 0; d < D; d++) {
        const float before = rescaled[d];
        if (real_row && conventions->u_phase == ASC_U_RESCALED && run->last_kv >= 0)
            run_record(run, asc_u, run->last_kv, (size_t)(r * D + d), before);
        const float times = run_scale_of_tile(run, kv);
        if (is_tile || divides) {
            const float sum = s->core ? added[d] : sum_products(s, p, v + d, s->skips_padding ? valid : bc, D, 0);
            const float scaled = sum * (has_codes(s) && conventions->v_descale == ASC_V_PRODUCT ? times : 1);
            const float inverse = 1 / divisor;
            /* Divided as a whole, or term by term. */
            if (divides && divisor == 0 && s->mistake != U_UNGUARDED)
                u[d] = 0;
            else if (divides && s->summing == SUM_BACKWARD)
                u[d] = before * inverse + scaled * (u_beta * inverse);
            else
                u[d] = (before + u_beta * scaled) / (divides ? divisor : 1);
        } else if (has_codes(s) && conventions->v_descale == ASC_V_PRODUCT)
            u[d] = before + (s->core ? added[d] : sum_products(s, p, v + d, bc, D, 0)) * times;
        else if (!s->core)
            u[d] = sum_products(s, p, v + d, s->skips_padding ? valid : bc, D, before);
        else if (s->join == PRODUCT_CARRIES)
            u[d] = added[d];
        else
            u[d] = s->join == PRODUCT_ADDS ? before + added[d] : fmaf(u_alpha, u[d], added[d]);
        if (real_row)
            run_record(run, asc_u, kv, (size_t)(r * D + d), u[d]);
    }
    *m = frame;
    if (real_row) {
        run_record(run, asc_m, kv, (size_t)r, frame);
        if (conventions->alpha_first != ASC_ALPHA_NONE_FIRST || run->last_kv >= 0)
            run_record(run, asc_alpha, kv, (size_t)r, alpha);
        for (int lane = 0; lane < at->lanes; lane++)
            run_record(run, asc_l, kv, (size_t)r * (size_t)at->lanes + (size_t)lane, l[lane]);
    }
    free(dots);
    free(added);
    free(score);
    free(p);
}

void run_tile(struct kernel_run *run, int kv, struct state *at)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const int bc = s->bc, first = kv * bc;
    const int valid = s->kv_len - first < bc ? s->kv_len - first : bc;
    float *k = calloc((size_t)bc * (size_t)D, sizeof *k), *v = calloc((size_t)bc * (size_t)D, sizeof *v);
    for (int i = 0; i < bc * D; i++) {
        const int from = s->mistake == K_ROW_SWAPPED && i / D < 2 ? first * D + i % D + (1 - i / D) * D : first * D + i;
        k[i] = i / D < valid ? run_input(run, asc_k, (size_t)from) : 0;
        v[i] = i / D < valid ? run_input(run, asc_v, (size_t)(first * D + i)) : s->v_padding_nan ? NAN : 0;
        if (s->mistake == V_ELEMENT_LOST && i == 1)
            v[i] = 0;
        run_record(run, asc_k, kv, (size_t)i, k[i]);
        run_record(run, asc_v, kv, (size_t)i, v[i]);
    }
    void *k_room = s->core ? run_operand(core_dtype(s, asc_k), k, bc, (int)D, D, 1, &at->k) : NULL;
    void *v_room = s->core ? run_operand(core_dtype(s, asc_v), v, (int)D, bc, 1, D, &at->v) : NULL;
    for (int r = 0; r < s->br; r++)
        run_row(run, kv, r, k, v, at);
    run->last_kv = kv;
    free(k_room);
    free(v_room);
    free(k);
    free(v);
}
