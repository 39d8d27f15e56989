#include "engine/oracle/mask/mask.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum mask_source mask_source(const struct oracle_case *c)
{
    const enum asc_channel ch = values_mask_later(c) ? asc_p : asc_s;
    for (int kv = 0; kv < c->kv_tiles; kv++)
        if (c->captured[kv * ASC_CHANNELS + (int)ch].data)
            return ch == asc_s ? MASK_FROM_S : MASK_FROM_P;
    return MASK_NOT_KNOWN;
}

void mask_add(struct mask_counts *to, const struct mask_counts *from)
{
    to->both += from->both;
    to->neither += from->neither;
    to->only_wanted += from->only_wanted;
    to->only_applied += from->only_applied;
    to->unknown += from->unknown;
}

int mask_tile_new(const struct oracle_case *c, struct mask_tile *out)
{
    const size_t words = ((size_t)c->bc + 63) / 64, n = (size_t)c->in_q.rows * words;
    uint64_t *bits = calloc(3 * n + 1, sizeof *bits);
    *out = (struct mask_tile){.rows = c->in_q.rows, .cols = c->bc, .words = (int)words};
    if (!bits)
        return -1;
    out->wanted = bits;
    out->applied = bits + n;
    out->known = bits + 2 * n;
    return 0;
}

void mask_tile_free(struct mask_tile *m)
{
    if (!m)
        return;
    free(m->wanted);
    m->wanted = m->applied = m->known = NULL;
}

static void set(const struct mask_tile *m, uint64_t *bits, int row, int col)
{
    bits[(size_t)row * (size_t)m->words + (size_t)(col / 64)] |= UINT64_C(1) << col % 64;
}

/* Sets columns first .. last - 1 of a row. */
static void set_range(const struct mask_tile *m, uint64_t *bits, int row, int first, int last)
{
    uint64_t *words = bits + (size_t)row * (size_t)m->words;
    for (int w = first / 64; w * 64 < last; w++) {
        const int from = first - 64 * w, to = last - 64 * w;
        const uint64_t low = from > 0 ? ~UINT64_C(0) << from : ~UINT64_C(0);
        words[w] |= to < 64 ? low & ((UINT64_C(1) << to) - 1) : low;
    }
}

static size_t bits_bytes(const struct mask_tile *m)
{
    return (size_t)m->rows * (size_t)m->words * sizeof(uint64_t);
}

/* A bias of -inf hides a key as a mask does. */
static bool hidden_by_bias(const struct oracle_case *c, int row, int key)
{
    return c->bias.data && key < c->bias.cols &&
           dtype_load(c->bias.dtype, c->bias.data, (size_t)(row * c->bias.row_stride + key)) == -INFINITY;
}

static void want(const struct oracle_case *c, int kv, struct mask_tile *m)
{
    const bool range = !c->mask.data && !c->bias.data;
    memset(m->wanted, 0, bits_bytes(m));
    for (int r = 0; r < m->rows; r++) {
        const int hidden = schedule_hidden(c, r, kv), visible = schedule_visible(c, r, kv);
        if (range && hidden < visible)
            set_range(m, m->wanted, r, hidden, visible);
        for (int col = hidden; !range && col < visible; col++)
            if (schedule_shows(c, r, kv * c->bc + col) && !hidden_by_bias(c, r, kv * c->bc + col))
                set(m, m->wanted, r, col);
    }
}

/* Captured elements of a channel at a tile, and those behind kv_len. */
struct source {
    const struct matrix *m, *padding; /* padding: NULL, or data NULL: there is none */
};

static struct source source_of(const struct oracle_case *c, enum asc_channel ch, int kv)
{
    const struct matrix *padding = ch == asc_s ? c->s_padding : c->p_padding;
    return (struct source){&c->captured[kv * ASC_CHANNELS + (int)ch], padding ? &padding[kv] : NULL};
}

/* false: there is no such element, or it was never written. */
static bool load(const struct source *from, int row, int col, double *x)
{
    const struct matrix *m = from->m;
    if (col >= m->cols) {
        col -= m->cols;
        m = from->padding;
    }
    if (!m || !m->data || row >= m->rows || col >= m->cols)
        return false;
    const size_t at = (size_t)(row * m->row_stride + col);
    *x = dtype_load(m->dtype, m->data, at);
    return values_element_written(m, at);
}

/* The natural logarithm of the smallest weight that f32 has: below it a key counts nothing. */
#define NO_WEIGHT (-150 * M_LN2)

/* m of each row in natural units; NaN: not known. */
static double natural_m(const struct oracle_case *c, int kv, int row)
{
    const struct source from = {&c->captured[kv * ASC_CHANNELS + asc_m], NULL};
    double m;
    return from.m->data && load(&from, row, 0, &m) ? m * values_natural_m(c) : NAN;
}

static bool is_visited(const struct oracle_case *c, int kv)
{
    for (int i = 0; i < c->n_visited; i++)
        if (c->order[i] == kv)
            return true;
    return false;
}

/* Unwritten padding hides nothing from anybody: no key stands there. A masked element that the kernel left out is as
   good as hidden. */
static void take_unwritten(const struct oracle_case *c, int kv, int row, int col, struct mask_tile *m)
{
    if (col >= schedule_cols(c, kv) || !mask_bit(m, m->wanted, row, col))
        set(m, m->known, row, col);
}

/* Whether all are numbers that a mask does not leave; `masked` is what it may leave, or NaN. */
VECTOR_UNITS static bool all_shown(const float *x, int n, float masked)
{
    int32_t hidden = 0;
    for (int i = 0; i < n; i++)
        hidden |= !(fabsf(x[i]) <= FLT_MAX) | (x[i] == masked);
    return !hidden;
}

/* Columns of a row that need no look at each: their number, from the first on. */
static int plain_scores(const struct oracle_case *c, const struct matrix *s, const struct mask_tile *m, int row, int kv,
                        float masked)
{
    if (s->dtype != DTYPE_F32 || row >= s->rows || schedule_hidden(c, row, kv) > 0 || c->mask.data || c->bias.data)
        return 0;
    const int visible = schedule_visible(c, row, kv), n = visible < s->cols ? visible : s->cols;
    return n <= m->cols && all_shown((const float *)s->data + row * s->row_stride, n, masked) ? n : 0;
}

static void read_scores(const struct oracle_case *c, int kv, struct mask_tile *m)
{
    const struct source s = source_of(c, asc_s, kv);
    const double natural = values_natural_s(c);
    const bool has_value = c->conventions.s_masked == ASC_MASKED_VALUE;
    const double value = (double)c->conventions.s_masked_value;
    const double masked = has_value && dtype_bytes(s.m->dtype) < 4 ? bound_round(s.m->dtype, value) : value;
    for (int r = 0; r < m->rows; r++) {
        const double top = natural_m(c, kv, r);
        const int plain = plain_scores(c, s.m, m, r, kv, has_value ? (float)masked : NAN);
        if (plain > 0) {
            set_range(m, m->known, r, 0, plain);
            set_range(m, m->applied, r, 0, plain);
        }
        for (int col = plain; col < m->cols; col++) {
            double x;
            if (!load(&s, r, col, &x)) {
                take_unwritten(c, kv, r, col, m);
                continue;
            }
            /* A number far below the maximum hides a key as well as -inf does: taken so where that is wanted. */
            const bool weightless = !mask_bit(m, m->wanted, r, col) && x * natural - top < NO_WEIGHT;
            set(m, m->known, r, col);
            if (x != -INFINITY && !(has_value && x == masked) && !weightless)
                set(m, m->applied, r, col);
        }
    }
}

/* The smallest weight that cannot have become 0 by rounding; relative to it an exponential is off by far less than 2.
 */
static double least_weight(const struct oracle_case *c)
{
    double least = BOUND_TINY;
    double unit = 0;
    double half_tiny = 0;
    enum dtype t;
    const int recorded = values_type(c, asc_p);
    if (values_p_type(c, &t) && bound_narrow(t, &unit, &half_tiny))
        least = fmax(least, half_tiny);
    if (recorded >= 0 && bound_narrow((enum dtype)recorded, &unit, &half_tiny))
        least = fmax(least, half_tiny);
    return 2 * least;
}

/* Scores as P reads them, none of them masked, in natural units; [rows][columns of the tile]. NULL: not recorded. */
static const double *unmasked(const struct oracle_case *c, struct judge_scratch *s, int kv)
{
    if (!c->captured[kv * ASC_CHANNELS + asc_s].data)
        return NULL;
    scratch_tile(s, c, kv);
    for (int r = 0; r < c->in_q.rows; r++) {
        s->hidden[r] = 0;
        s->visible[r] = s->at.cols;
    }
    s->at.mask = NULL;
    scratch_take(s, c, asc_s);
    const struct stage *stage = &s->stage[asc_s];
    const struct operand *captured = &s->at.of[asc_s];
    local_see_scores(
        c, &s->at,
        &(struct score_view){captured->value, captured->loose, s->prepared.scores, s->prepared.scores_loose});
    if (!values_natural_later(c))
        for (int i = 0; i < stage->rows * stage->cols; i++)
            s->prepared.scores[i] *= values_natural_s(c);
    return s->prepared.scores;
}

static void read_weights(const struct oracle_case *c, struct judge_scratch *s, int kv, struct mask_tile *m)
{
    const struct source p = source_of(c, asc_p, kv);
    const double *score = unmasked(c, s, kv), least = least_weight(c) * (1 / bound_p_factor(c));
    const int cols = schedule_cols(c, kv);
    for (int r = 0; r < m->rows; r++) {
        const double top = natural_m(c, kv, r);
        for (int col = 0; col < m->cols; col++) {
            double x;
            if (!load(&p, r, col, &x)) {
                take_unwritten(c, kv, r, col, m);
                continue;
            }
            if (x != 0)
                set(m, m->applied, r, col);
            if (x != 0 || col >= cols || (score && exp(score[r * cols + col] - top) > least))
                set(m, m->known, r, col);
        }
    }
}

static void count(struct mask_tile *m)
{
    m->counts = (struct mask_counts){0};
    for (int r = 0; r < m->rows; r++) {
        for (int w = 0; w < m->words; w++) {
            const size_t at = (size_t)r * (size_t)m->words + (size_t)w;
            const int left = m->cols - 64 * w;
            const uint64_t here = left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
            const uint64_t wanted = m->wanted[at], applied = m->applied[at], known = m->known[at] & here;
            m->counts.both += (uint64_t)__builtin_popcountll(wanted & applied & known);
            m->counts.neither += (uint64_t)__builtin_popcountll(~wanted & ~applied & known);
            m->counts.only_wanted += (uint64_t)__builtin_popcountll(wanted & ~applied & known);
            m->counts.only_applied += (uint64_t)__builtin_popcountll(~wanted & applied & known);
            m->counts.unknown += (uint64_t)__builtin_popcountll(here & ~known);
        }
    }
}

static int read_tile(const struct oracle_case *c, enum mask_source source, bool visited, struct judge_scratch *scratch,
                     int kv, struct mask_tile *m)
{
    const enum asc_channel ch = source == MASK_FROM_P ? asc_p : asc_s;
    if (source == MASK_FROM_P && scratch_prepare(scratch, c) != 0)
        return -1;
    want(c, kv, m);
    memset(m->applied, 0, bits_bytes(m));
    memset(m->known, 0, bits_bytes(m));
    if (source != MASK_NOT_KNOWN && (!visited || !values_written(&c->captured[kv * ASC_CHANNELS + (int)ch])))
        memset(m->known, 0xff, bits_bytes(m));
    else if (source == MASK_FROM_S)
        read_scores(c, kv, m);
    else if (source == MASK_FROM_P)
        read_weights(c, scratch, kv, m);
    count(m);
    return 0;
}

int mask_read(const struct oracle_case *c, struct judge_scratch *scratch, int kv, struct mask_tile *m)
{
    return read_tile(c, mask_source(c), is_visited(c, kv), scratch, kv, m);
}

int mask_read_all(const struct oracle_case *c, struct judge_scratch *scratch, struct mask_tile *tiles)
{
    const enum mask_source source = mask_source(c);
    bool *visited = calloc((size_t)c->kv_tiles + 1, sizeof *visited);
    int failed = !visited;
    for (int i = 0; i < c->n_visited && !failed; i++)
        if (c->order[i] >= 0 && c->order[i] < c->kv_tiles)
            visited[c->order[i]] = true;
    for (int kv = 0; kv < c->kv_tiles && !failed; kv++)
        failed = mask_tile_new(c, &tiles[kv]) != 0 || read_tile(c, source, visited[kv], scratch, kv, &tiles[kv]) != 0;
    free(visited);
    return failed ? -1 : 0;
}
