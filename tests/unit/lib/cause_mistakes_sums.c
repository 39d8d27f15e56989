/* The arithmetic of the test kernel of causes from the rescale factor on, with its mistakes. */
#include "tests/unit/lib/cause_parts.h"

#include <string.h>

static float truncated_f16(float x)
{
    uint16_t code = 0;
    dtype_store(DTYPE_F16, &code, 0, (double)x);
    if (fabs(dtype_load(DTYPE_F16, &code, 0)) > fabs((double)x))
        code--;
    return (float)dtype_load(DTYPE_F16, &code, 0);
}

float mistaken_alpha(const struct run *run, float m_prev, float m)
{
    const struct spec *s = &run->spec;
    if (m_prev == -INFINITY && s->mistake == ALPHA_INVERTED_UNGUARDED)
        return exponential(run, m, m_prev);
    if (m == -INFINITY && s->mistake == ALPHA_UNGUARDED)
        return NAN;
    if (m_prev == -INFINITY)
        return (float)s->alpha_one;
    const float alpha = exponential(run, m_prev, m);
    switch (s->mistake) {
    case ALPHA_INVERTED:
    case ALPHA_INVERTED_UNGUARDED:
        return exponential(run, m, m_prev);
    case ALPHA_BASE_2:
        return exp2f((m_prev - m) * (s->unit == ASC_UNIT_RAW ? raw_unit(run) : 1));
    case ALPHA_BASE_E:
    case ALPHA_NOT_SCALED:
        return expf(m_prev - m);
    case ALPHA_NOT_SCALED_2:
        return exp2f(m_prev - m);
    case ALPHA_SCALED_AGAIN:
        return exponential(run, m_prev * run->scale, m * run->scale);
    case ALPHA_TIMES_0_9:
        return alpha * 0.9f;
    case ALPHA_ROOT:
        return sqrtf(alpha) * 0.999f;
    case ALPHA_ONE_MINUS:
        return 1 - alpha;
    case ALPHA_HALF:
        return 0.5f;
    case ALPHA_SQUARED:
        return alpha * alpha;
    default:
        return alpha;
    }
}

static float tile_maximum(const struct run *run, const struct tile *t)
{
    float top = -INFINITY;
    for (int c = 0; c < run->spec.bc; c++)
        top = fmaxf(top, t->score[c]);
    return top;
}

/* Over the columns that the lanes of column c have. */
static float lane_maximum(const struct run *run, const struct tile *t, int c, float m_prev)
{
    float top = m_prev;
    for (int i = 0; i < run->spec.bc; i++)
        if ((i & 6) == (c & 6))
            top = fmaxf(top, t->score[i]);
    return top;
}

float mistaken_weight(struct run *run, const struct state *st, const struct tile *t, int r, int c, float m)
{
    const struct spec *s = &run->spec;
    const float x = t->score[c];
    const int row = st->row0 + r, key = t->first + c;
    if (s->mistake == P_NOT_MASKED && key < s->kv_len && m != -INFINITY)
        return exponential(run, capped(run, dot_product(run, st, t, r, c) * unit_factor(run)), m);
    if (s->mistake == P_TAIL_COUNTED && key >= s->kv_len && m != -INFINITY)
        return exponential(run, 0, m);
    if (s->mistake == P_UNGUARDED && m == -INFINITY)
        return NAN;
    if (x == -INFINITY || (s->mistake == P_MASKED_LATE && is_masked(run, row, key, RIGHT)))
        return 0;
    const float p = ldexpf(exponential(run, x, m), s->p_offset);
    switch (s->mistake) {
    case P_NOT_SHIFTED:
        return exponential(run, x, 0);
    case P_BASE_2:
        return exp2f((x - m) * (s->unit == ASC_UNIT_RAW ? raw_unit(run) : 1));
    case P_BASE_E:
        return expf(x - m);
    case P_SCALED_AGAIN:
        return exponential(run, x * run->scale, m * run->scale);
    case P_M_NOT_SCALED:
        return expf(run->scale * x - m);
    case P_NOT_SCALED:
        return expf(x - m);
    case P_NOT_SCALED_2:
        return exp2f(x - m);
    case P_FROM_PREVIOUS_M:
        return exponential(run, x, st->m[r]);
    case P_FROM_TILE_M:
        return exponential(run, x, tile_maximum(run, t));
    case P_FROM_NEW_M:
        return exponential(run, x, fmaxf(st->m[r], tile_maximum(run, t)));
    case P_LANE_MAXIMUM:
        return ldexpf(exponential(run, x, lane_maximum(run, t, c, st->m[r])), s->p_offset);
    case P_SATURATED:
        return fminf(p, 448);
    case P_TRUNCATED:
        return truncated_f16(p);
    case P_EXPONENT_IN_F16:
        return exponential(run, m + round_to(DTYPE_F16, x - m), m);
    case P_TIMES_1_01:
        return p * 1.01f;
    case P_SQUARED:
        return p * p;
    case P_LINEAR:
        return fmaxf(0, 1 + (x - m));
    case P_PLUS_MILLI:
        return p + 1e-3f;
    case P_NOISE:
        return p * (1 + 1e-2f * noise(run));
    case P_SIGMOID:
        return 1 / (1 + expf(m - x));
    case P_CLIPPED_AT_HALF:
        return fminf(p, 0.5f);
    case P_HALVED:
        return p * 0.5f;
    case P_RANDOM_ZEROS:
        return one_in(run, 100) ? 0 : p;
    default:
        return p;
    }
}

/* The total of lane `at` of so many, a power of 2, that give each other their sums in a narrow type; or add in it. */
static float lanes_in_type(const float *sums, int n, int at, enum dtype type, int adds)
{
    float of[MAX_LANES], next[MAX_LANES];
    memcpy(of, sums, (size_t)n * sizeof *of);
    for (int bit = 1; bit < n; bit *= 2) {
        for (int i = 0; i < n; i++) {
            const float own = adds ? round_to(type, of[i]) : of[i], sum = own + round_to(type, of[i ^ bit]);
            next[i] = adds ? round_to(type, sum) : sum;
        }
        memcpy(of, next, (size_t)n * sizeof *of);
    }
    return of[at];
}

void mistaken_sum(const struct run *run, const struct tile *t, int r, float m, float sum[MAX_LANES])
{
    const struct spec *s = &run->spec;
    float largest = 0;
    for (int c = 0; c < s->bc; c++) {
        float p = s->sums_rounded ? t->pv_p[c] : t->p[c];
        if (s->mistake == L_FROM_F16)
            p = round_to(DTYPE_F16, p);
        if (s->mistake == L_FROM_E4M3)
            p = round_to(DTYPE_E4M3, p);
        if (s->mistake == L_P_SATURATED)
            p = fminf(p, 448);
        if (s->mistake == L_SQUARES)
            p = p * p;
        if (s->mistake == L_KEY_TWICE && c == 5)
            p *= 2;
        if (s->mistake == L_TWO_KEYS_LESS && (c == 2 || c == 7))
            p = 0;
        if (s->mistake == L_PADDING_COUNTED && c >= t->valid)
            p = exponential(run, 0, m);
        largest = fmaxf(largest, p);
        if (!in_part(s, asc_l, r, c))
            continue;
        sum[c % lanes_of(s)] += p;
    }
    if (s->mistake == L_WITHOUT_LARGEST)
        sum[0] -= largest;
    if (s->mistake == L_LANES_IN_F16 && !s->lanes) {
        enum { LANES = 4 };
        float of[LANES] = {0};
        for (int c = 0; c < s->bc; c++)
            of[c / 2 % LANES] += s->sums_rounded ? t->pv_p[c] : t->p[c];
        sum[0] = lanes_in_type(of, LANES, 0, DTYPE_F16, 0);
    }
}

static float mistaken_factor(const struct spec *s, float alpha, float m_prev)
{
    if (m_prev == -INFINITY)
        return 0;
    switch (s->mistake) {
    case L_NOT_RESCALED:
    case L_RESCALED_LATE:
    case U_NOT_RESCALED:
    case U_RESCALED_LATE:
        return 1;
    case L_RESCALED_TWICE:
    case U_RESCALED_TWICE:
        return alpha * alpha;
    case L_RESCALED_INVERSE:
    case U_RESCALED_INVERSE:
        return 1 / alpha;
    case L_CUBED:
    case U_CUBED:
        return alpha * alpha * alpha;
    case L_ROOT:
    case U_ROOT:
        return sqrtf(alpha);
    default:
        return alpha;
    }
}

float mistaken_l(const struct run *run, const struct state *st, const struct tile *t, int r, int lane, float alpha,
                 float sum)
{
    const struct spec *s = &run->spec;
    const int of_l = s->mistake < U_NOT_RESCALED || (s->mistake > LISTED_END && s->mistake < U_TIMES_1_01);
    const float before = st->l[r * lanes_of(s) + lane] * (of_l ? mistaken_factor(s, alpha, st->m[r]) : alpha);
    switch (s->mistake) {
    case L_RESCALED_LATE:
        return (before + sum) * alpha;
    case L_PREVIOUS_DROPPED:
        return sum;
    case L_TILE_DROPPED:
        return t->before < 0 ? sum : before;
    case L_TIMES_1_001:
        return (before + sum) * 1.001f;
    case L_PLUS_ONE:
        return before + sum + (float)(lane == 0);
    default:
        return before + sum;
    }
}

float mistaken_u_factor(const struct spec *s, float alpha, float m_prev, int r)
{
    if (s->mistake == U_ROWS_NOT_RESCALED && r / 2 % 2 && m_prev != -INFINITY)
        return 1;
    const int of_u = (s->mistake >= U_NOT_RESCALED && s->mistake < LISTED_END) || s->mistake >= U_TIMES_1_01;
    return of_u ? mistaken_factor(s, alpha, m_prev) : alpha;
}

static const float *other_v(const struct run *run, const struct tile *t)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim, n = s->bc * D;
    memcpy(t->other_v, t->v, (size_t)n * sizeof(float));
    if (s->mistake == U_V_PREVIOUS_TILE && t->before >= 0)
        load_tile(run, run->v, OWN_HEAD, t->before * s->bc, t->other_v);
    if (s->mistake == U_V_NEXT_TILE)
        load_next(run, run->v, t, t->other_v);
    if (s->mistake == U_OF_K)
        memcpy(t->other_v, t->k, (size_t)n * sizeof(float));
    if (s->mistake == U_V_BLOCKS_TRANSPOSED)
        transpose_blocks(run, t->v, t->other_v);
    if (s->mistake == U_V_WRONG_HEAD)
        load_tile(run, run->v, OWN_HEAD + 1, t->first, t->other_v);
    for (int i = 0; i < n; i++) {
        float *x = &t->other_v[i];
        if (s->mistake == U_V_TRANSPOSED)
            *x = t->v[i % D * D + i / D];
        if (s->mistake == U_V_ZERO_POINT)
            *x = t->v[i] + ZERO_POINT;
        if (s->mistake == U_V_SWIZZLED)
            *x = t->v[i / D * D + swizzled(i / D, i % D)];
        if (s->mistake == U_NEXT_KEY)
            *x = t->v[(i / D + 1) % s->bc * D + i % D];
        if (s->mistake == U_V_SATURATED)
            *x = fmaxf(fminf(*x, 448), -448);
        if (s->mistake == U_V_ROUNDED_E4M3)
            *x = round_to(DTYPE_E4M3, *x);
        if (s->mistake == U_SIGN_OF_ODD_D && odd(i))
            *x = -*x;
        if (s->mistake == U_D_REVERSED)
            *x = t->v[i / D * D + D - 1 - i % D];
        if (s->mistake == U_V_PAIRS_TRANSPOSED) {
            const int odd_one = odd(i / (int)D) != odd(i % (int)D);
            *x = t->v[(i / D ^ odd_one) * D + (i % D ^ odd_one)];
        }
        if (s->mistake == U_V_SCALED)
            *x *= 1.25f;
    }
    return t->other_v;
}

void mistaken_u(struct run *run, const struct state *st, const struct tile *t, int r, float alpha)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const float *v = r == 0 ? other_v(run, t) : t->other_v; /* of a tile, not of a row */
    for (int c = 0; c < s->bc; c++) {
        float *p = &t->pv_p[c];
        const int hit = (s->mistake == U_LAST_KEY_DROPPED && c == s->bc - 1) ||
                        (s->mistake == U_KEY_DROPPED && c == 5) ||
                        (s->mistake == U_TWO_KEYS_DROPPED && (c == 2 || c == 7)) ||
                        (s->mistake == U_P_MASKED_LATE && is_masked(run, st->row0 + r, t->first + c, RIGHT)) ||
                        (s->mistake == U_KEY_DROPPED_IN_ODD_ROWS && odd(r) && c == 5) ||
                        (s->mistake == U_KEYS_OF_OTHER_ROW && is_masked(run, st->row0 + (r ^ 4), t->first + c, RIGHT));
        if (hit)
            *p = 0;
        if (s->mistake == U_KEY_TWICE && c == 5)
            *p *= 2;
        if (s->mistake == U_P_SATURATED)
            *p = fminf(*p, 448);
        if (s->mistake == U_P_IN_255)
            *p = rintf(*p * 255) / 255;
        if (s->mistake == U_P_ROUNDED)
            *p = round_to(DTYPE_F16, *p);
        if (s->mistake == U_RANDOM_KEYS && one_in(run, 10))
            *p = 0;
    }
    for (int d = 0; d < D; d++) {
        float *u = &st->u[r * D + d];
        const float before = s->mistake == U_PREVIOUS_DROPPED ? 0 : *u;
        *u = before;
        if (s->mistake != U_TILE_DROPPED || t->before < 0)
            *u = s->mistake == U_SUMMED_IN_F16
                     ? tensor_product(TENSOR_CORE_H100_F16, t->pv_p, v + d, D, s->bc, round_to(DTYPE_F16, before))
                 : s->mistake == U_SUMMED_IN_BF16 ? sum_in_bf16(t->pv_p, v + d, D, s->bc, 4, before)
                                                  : product(run, t->pv_p, v + d, D, s->bc, before);
        if (s->mistake == U_RESCALED_LATE)
            *u *= alpha;
        if (s->mistake == U_TIMES_1_01)
            *u *= 1.01f;
        if (s->mistake == U_NOISE)
            *u += 1e-2f * noise(run);
        if (s->mistake == U_PLUS_CENTI)
            *u += 1e-2f;
    }
    /* the scores of the next rows read K by the mistake of this stage */
    if (r == 0)
        other_k(run, t);
}

/* l of a row, its lanes added up. */
static float whole_l(const struct spec *s, const float *l, int r)
{
    float sum = 0;
    for (ptrdiff_t lane = 0; lane < lanes_of(s); lane++)
        sum += l[(ptrdiff_t)r * lanes_of(s) + lane];
    return sum;
}

/* The sum of the lanes that agree with this one in some bits. */
static float part_of_l(const struct spec *s, const float *l, int r, int lane, int bits)
{
    float sum = 0;
    for (int i = 0; i < lanes_of(s); i++)
        if ((i & bits) == (lane & bits))
            sum += l[(ptrdiff_t)r * lanes_of(s) + i];
    return sum;
}

static float mistaken_natural_lse(struct run *run, const struct state *st, int r)
{
    const struct spec *s = &run->spec;
    const float l = whole_l(s, st->l, r), to_natural = s->unit == ASC_UNIT_RAW ? raw_unit(run) : 1;
    const float m = st->m[r] * (s->unit == ASC_UNIT_LOG2 ? (float)M_LN2 : to_natural);
    if (!(l > 0))
        return INFINITY;
    switch (s->mistake) {
    case LSE_BASE_2:
        return (m + logf(l)) * 1.44269504f;
    case LSE_TIMES_LN2:
        return (m + logf(l)) * 0.693147181f;
    case LSE_LOG2_OF_L:
        return m + log2f(l);
    case LSE_M_AS_IT_IS:
        return st->m[r] + logf(l);
    case LSE_WITHOUT_M:
        return logf(l);
    case LSE_OF_LANE:
        return m + logf(part_of_l(s, st->l, r, r, lanes_of(s) - 1));
    case LSE_WITHOUT_L:
        return m;
    case LSE_L_SUBTRACTED:
        return m - logf(l);
    case LSE_NEGATED:
        return -(m + logf(l));
    case LSE_PLUS_MILLI:
        return m + logf(l) + 1e-3f;
    case LSE_TIMES_1_01:
        return (m + logf(l)) * 1.01f;
    case LSE_L_ITSELF:
        return m + l;
    case LSE_LANES_IN_BF16:
        return m + logf(lanes_in_type(st->l + (ptrdiff_t)r * lanes_of(s), lanes_of(s), 0, DTYPE_BF16, 1));
    case LSE_HALF_LN:
        return m + logf(l) / 2;
    case LSE_LOG10:
        return m + log10f(l);
    case LSE_NOISE:
        return m + logf(l) + 1e-2f * noise(run);
    default:
        return m + logf(l) - (float)s->p_offset * (float)M_LN2;
    }
}

float mistaken_lse(struct run *run, const struct state *st, int r)
{
    const float lse = mistaken_natural_lse(run, st, r);
    return run->spec.lse_base2 ? lse * 1.44269504f : lse;
}

/* Row r ^ flip of the q tile, r itself where there is no such row. */
static ptrdiff_t other_row(const struct spec *s, const struct state *st, int r, int flip)
{
    return st->row0 + (r ^ flip) < s->q_len ? r ^ flip : r;
}

float mistaken_o(struct run *run, const struct state *st, int r, int d)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const float l = whole_l(s, st->l, r), inverse = l > 0 ? 1 / l : 0, u = st->u[r * D + d], o = u * inverse;
    if (!(l > 0))
        return s->mistake == O_UNGUARDED ? NAN : 0;
    switch (s->mistake) {
    case O_NOT_DIVIDED:
        return u;
    case O_DIVIDED_TWICE:
        return o * inverse;
    case O_PREVIOUS_L:
        return u / whole_l(s, st->l_last, r);
    case O_OF_LANE:
        return u / part_of_l(s, st->l, r, d / 2, lanes_of(s) - 1);
    case O_OF_HALF:
        return u / part_of_l(s, st->l, r, d, 2);
    case O_LAST_TILE_DROPPED:
        return st->u_last[r * D + d] / whole_l(s, st->l_last, r);
    case O_TRUNCATED:
        return truncated_f16(o);
    case O_U_OF_OTHER_ROW:
        return st->u[other_row(s, st, r, 3) * D + d] * inverse;
    case O_U_AND_L_OF_OTHER_ROWS:
        return st->u[other_row(s, st, r, 3) * D + d] / whole_l(s, st->l, (int)other_row(s, st, r, 4));
    case O_LANES_IN_F16:
        return u / lanes_in_type(st->l + (ptrdiff_t)r * lanes_of(s), lanes_of(s), d / 2 % lanes_of(s), DTYPE_F16, 0);
    case O_U_IN_BF16:
        return round_to(DTYPE_BF16, u) * inverse;
    case O_RECIPROCAL_IN_F16:
        return u * round_to(DTYPE_F16, inverse);
    case O_SATURATED:
        return fmaxf(fminf(o, 448), -448);
    case O_TIMES_1_01:
        return o * 1.01f;
    case O_L_PLUS_ONE:
        return u / (l + 1);
    case O_ROOT_OF_L:
        return u / sqrtf(l);
    case O_PLUS_MILLI:
        return o + 1e-2f;
    case O_ROWS_SCATTERED:
        return st->u[(r * 7 + 3) % s->br * D + d] / whole_l(s, st->l, (r * 7 + 3) % s->br);
    case O_COLUMNS_ROTATED:
        return st->u[r * D + (d + 1) % D] * inverse;
    case O_NOISE:
        return o * (1 + 1e-1f * noise(run));
    case O_DIVIDED_BY_KEYS:
        return u / (float)s->kv_len;
    case O_ABSOLUTE:
        return fabsf(o) + 0.01f;
    case O_BF16_FIRST:
        return round_to(DTYPE_BF16, o);
    default:
        return o;
    }
}
