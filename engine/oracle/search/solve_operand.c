/* An operand that scores, or U, were made of, by least squares. */
#include "engine/oracle/search/propose.h"
#include "engine/oracle/search/solve.h"

#include "engine/oracle/values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* V' of u - alpha u_prev = P V', over all q tiles and heads that meet this kv tile. */
static bool solve_v(struct search *search, const struct sample_tile *t, double *b, unsigned char *known)
{
    const struct sample *s = search->sample;
    const int C = t->x.cols, D = t->cols;
    double *a = search_room(search, (size_t)C * (size_t)C * sizeof *a);
    int rows = 0;
    for (int k = 0; k < s->n && a; k++) {
        const struct sample_tile *o = &s->tiles[k];
        if (o->kv != t->kv || o->at[0] != t->at[0] || o->kv_head != t->kv_head || o->x.cols != C || o->next_alpha)
            continue;
        for (int r = 0; r < o->rows; r++) {
            const double *p = o->x.pv_p.value + (size_t)r * (size_t)C;
            const double *got = o->got + (size_t)r * (size_t)D, *before = o->x.u_prev.value + (size_t)r * (size_t)D;
            bool numbers = isfinite(o->x.of[asc_alpha].value[r]);
            for (int d = 0; d < D; d++)
                numbers = numbers && isfinite(got[d]) && isfinite(before[d]);
            for (int i = 0; i < C; i++)
                numbers = numbers && isfinite(p[i]);
            if (!numbers)
                continue;
            rows++;
            for (int i = 0; i < C; i++) {
                if (p[i] == 0)
                    continue;
                for (int j = 0; j <= i; j++)
                    a[i * C + j] += p[i] * p[j];
                for (int d = 0; d < D; d++)
                    b[i * D + d] += p[i] * (got[d] - o->x.of[asc_alpha].value[r] * before[d]) / o->x.times_v;
            }
        }
    }
    if (rows >= C && a)
        solve_symmetric(a, b, C, D, known);
    return rows >= C && a;
}

/* K' (or Q') of scores: columns (rows) of S against the rows of Q (K) that they were multiplied with. Only full tiles:
   what is masked tells nothing. */
static bool solve_score_operand(struct search *search, const struct sample_tile *t, bool is_k, double *x,
                                unsigned char *known)
{
    const struct sample *s = search->sample;
    const int D = t->c->head_dim, n = is_k ? t->cols : t->rows;
    double *a = search_room(search, (size_t)D * (size_t)D * sizeof *a);
    double *b = search_room(search, (size_t)D * (size_t)n * sizeof *b);
    unsigned char *solved = search_room(search, (size_t)D);
    int rows = 0;
    for (int k = 0; k < s->n && a && b && solved; k++) {
        const struct sample_tile *o = &s->tiles[k];
        const double factor = values_factor(o->c->conventions.s_unit, o->c->scale) / values_fold(o->c);
        const bool joins = is_k ? o->kv == t->kv && o->at[0] == t->at[0] && o->kv_head == t->kv_head
                                : memcmp(o->at, t->at, sizeof o->at) == 0;
        const int m = is_k ? o->rows : o->cols;
        if (!joins || (is_k ? o->cols : o->rows) != n || o->x.scales_s || o->c->softcap > 0)
            continue;
        for (int i = 0; i < m; i++) {
            const double *y = (is_k ? o->x.of[asc_q].value : o->x.of[asc_k].value) + (size_t)i * (size_t)D;
            const double *other = is_k ? o->x.of[asc_k].value : o->x.of[asc_q].value;
            bool numbers = true;
            for (int j = 0; j < n; j++) {
                const size_t at = is_k ? (size_t)i * (size_t)n + (size_t)j : (size_t)j * (size_t)m + (size_t)i;
                numbers = numbers && isfinite(o->got[at]) && isfinite(o->want[at]);
            }
            if (!numbers)
                continue;
            rows++;
            for (int d = 0; d < D; d++)
                for (int e = 0; e <= d; e++)
                    a[d * D + e] += y[d] * y[e];
            for (int j = 0; j < n; j++) {
                const size_t at = is_k ? (size_t)i * (size_t)n + (size_t)j : (size_t)j * (size_t)m + (size_t)i;
                double right = 0;
                for (int d = 0; d < D; d++)
                    right += y[d] * other[(size_t)j * (size_t)D + (size_t)d];
                const double dot = (o->got[at] - o->want[at]) / factor + right;
                for (int d = 0; d < D; d++)
                    b[d * n + j] += y[d] * dot;
            }
        }
    }
    bool whole = rows >= D && a && b && solved;
    if (whole)
        solve_symmetric(a, b, D, n, solved);
    for (int d = 0; d < D && whole; d++)
        whole = solved[d];
    for (int j = 0; j < n && whole; j++)
        for (int d = 0; d < D; d++)
            x[j * D + d] = b[d * n + j];
    memset(known, whole, (size_t)n);
    return whole;
}

bool solve_operand(struct search *search, enum asc_channel operand, int tile, double *x, unsigned char *known)
{
    const struct sample_tile *t = &search->sample->tiles[tile];
    return operand == asc_v ? solve_v(search, t, x, known) : solve_score_operand(search, t, operand == asc_k, x, known);
}

bool row_gives_scores(const struct sample_tile *t, enum asc_channel operand, int line, const double *row)
{
    enum { SCORES = 6, LEAST = 3 };
    const bool is_k = operand == asc_k;
    const double factor = values_factor(t->c->conventions.s_unit, t->c->scale) / values_fold(t->c);
    const int D = t->c->head_dim;
    const double *own = t->x.of[operand].value + (size_t)line * (size_t)D;
    int told = 0;
    for (int k = 0; k < (is_k ? t->rows : t->cols) && told < SCORES; k++) {
        const size_t at =
            is_k ? (size_t)k * (size_t)t->cols + (size_t)line : (size_t)line * (size_t)t->cols + (size_t)k;
        const double *y = t->x.of[is_k ? asc_q : asc_k].value + (size_t)k * (size_t)D;
        double moved = 0;
        if (!is_wrong_number(t, at))
            continue;
        for (int d = 0; d < D; d++)
            moved += y[d] * (row[d] - own[d]);
        if (fabs(t->got[at] - t->want[at] - factor * moved) > 4 * t->bound[at] + 1e-6 * fabs(t->got[at]))
            return false;
        told++;
    }
    return told >= LEAST;
}
