#include "engine/oracle/fingerprint.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/operand.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/truth.h"
#include "engine/oracle/values.h"

enum { BLOCK = FINGERPRINT_SIDE * FINGERPRINT_SIDE };

/* As captured: rounded to the channel's own type. */
static double as_captured(enum dtype t, float x)
{
    return t == DTYPE_F32 ? (double)x : bound_round(t, (double)x);
}

/* 1 where an element of S or U is the product and nothing else: finite, and not masked. */
static int is_product(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch, int row, int col)
{
    const struct stage *stage = &s->stage[ch];
    if (!isfinite(stage->want[LOCAL][(size_t)row * (size_t)stage->cols + (size_t)col]))
        return 0;
    return ch != asc_s || values_mask_later(c) || (col >= s->hidden[row] && col < s->visible[row]);
}

struct block {
    int row, col, rows, cols;
};

/* A number below n that looks random, the same on every machine (SplitMix64's mixing). */
static int scatter(uint64_t seed, int n)
{
    uint64_t z = seed * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

static struct block block_of(const struct stage *stage, uint64_t seed)
{
    struct block b;
    b.row = scatter(2 * seed, (stage->rows + FINGERPRINT_SIDE - 1) / FINGERPRINT_SIDE) * FINGERPRINT_SIDE;
    b.col = scatter(2 * seed + 1, (stage->cols + FINGERPRINT_SIDE - 1) / FINGERPRINT_SIDE) * FINGERPRINT_SIDE;
    b.rows = stage->rows - b.row < FINGERPRINT_SIDE ? stage->rows - b.row : FINGERPRINT_SIDE;
    b.cols = stage->cols - b.col < FINGERPRINT_SIDE ? stage->cols - b.col : FINGERPRINT_SIDE;
    return b;
}

/* One element of a block under every way. */
struct comparison_of_ways {
    const struct fingerprint_stage *stage;
    double value[PRODUCT_WAYS][BLOCK];
    int told[PRODUCT_WAYS], differs[PRODUCT_WAYS];
};

/* An element tells way w from the others where it is not simply the exact value rounded, or where another tensor core
   gives something else. */
static void compare_element(struct comparison_of_ways *x, int at, double got, double exact)
{
    const struct fingerprint_stage *stage = x->stage;
    for (int w = 0; w < stage->n; w++) {
        const double value = x->value[w][at];
        int tells = value != exact;
        for (int other = 0; other < stage->n && !tells; other++)
            tells = stage->way[other].model != stage->way[w].model && x->value[other][at] != value;
        x->told[w] += tells;
        x->differs[w] += value != got;
    }
}

/* S or U as way w gives it; `last` was computed just before, -1: none was. */
static const float *way_values(struct judge_scratch *s, const struct product *product,
                               const struct fingerprint_stage *f, int w, int last)
{
    void *sums = s->product_sums, *out = s->product_out;
    if (last < 0 || !product_shares(&f->way[last], &f->way[w]))
        product_sum(s, product, &f->way[w], sums);
    product_finish(s, product, &f->way[w], sums, out);
    return out;
}

static void add_block(struct fingerprint_stage *f, const struct oracle_case *c, struct judge_scratch *s,
                      enum asc_channel ch, uint64_t seed)
{
    const struct stage *stage = &s->stage[ch];
    const struct block b = block_of(stage, seed);
    const enum dtype t = scratch_captured(s, c, ch)->dtype;
    struct comparison_of_ways x = {.stage = f};
    struct product product;
    if (product_take(c, s, ch, &product) != 0)
        return;
    for (int w = 0; w < f->n; w++) {
        const float *out = way_values(s, &product, f, w, w - 1);
        for (int i = 0; i < b.rows * b.cols; i++)
            x.value[w][i] = as_captured(t, out[(b.row + i / b.cols) * stage->cols + b.col + i % b.cols]);
    }
    for (int i = 0; i < b.rows * b.cols; i++) {
        const int row = b.row + i / b.cols, col = b.col + i % b.cols;
        const size_t at = (size_t)row * (size_t)stage->cols + (size_t)col;
        if (is_product(c, s, ch, row, col))
            compare_element(&x, i, stage->got[at], as_captured(t, (float)stage->want[LOCAL][at]));
    }
    for (int w = 0; w < f->n; w++) {
        if (x.told[w] < FINGERPRINT_SIDE)
            continue;
        f->told[w]++;
        f->equal[w] += x.differs[w] == 0;
    }
}

/* Which of the visited tiles block number `block` lies in. */
static int block_tile(const struct oracle_case *c, int block)
{
    return scatter((uint64_t)c->q_tile << 32 | (uint64_t)block << 8 | 1, c->n_visited);
}

static void add_tile(struct fingerprint *f, const struct oracle_case *c, struct judge_scratch *s, int visit, int blocks)
{
    for (int block = 0; block < blocks; block++) {
        const uint64_t seed = (uint64_t)c->q_tile << 32 | (uint64_t)block << 8;
        if (block_tile(c, block) != visit)
            continue;
        if (s->stage[asc_s].recorded)
            add_block(&f->s, c, s, asc_s, seed + 2);
        if (s->stage[asc_u].recorded)
            add_block(&f->u, c, s, asc_u, seed + 3);
    }
}

int fingerprint_add(struct fingerprint *f, const struct oracle_case *c, struct judge_scratch *scratch, int blocks)
{
    f->s.n = product_ways(c, asc_s, f->s.way);
    f->u.n = product_ways(c, asc_u, f->u.way);
    int last = -1;
    for (int block = 0; block < blocks && c->n_visited > 0 && f->s.n + f->u.n > 0; block++)
        last = block_tile(c, block) > last ? block_tile(c, block) : last;
    if (last < 0)
        return 0;
    if (scratch_prepare(scratch, c) != 0)
        return -1;
    truth_inputs(c, scratch);
    scratch_tile(scratch, c, 0);
    operand_take(c, scratch, asc_q);
    local_begin(c, scratch);
    for (int visit = 0; visit <= last; visit++) {
        const int kv = c->order[visit];
        if (kv < 0 || kv >= c->kv_tiles || scratch->seen[kv])
            continue;
        scratch->seen[kv] = 1;
        scratch_tile(scratch, c, kv);
        operand_take(c, scratch, asc_k);
        operand_take(c, scratch, asc_v);
        if (tile_left(c, scratch))
            continue;
        tile_local(c, scratch);
        add_tile(f, c, scratch, visit, blocks);
        local_advance(c, scratch);
    }
    return 0;
}

uint32_t fingerprint_fits(const struct fingerprint_stage *stage)
{
    uint32_t fits = 0;
    int most = 0;
    for (int w = 0; w < stage->n; w++) {
        if (stage->told[w] < 2 || 2 * stage->equal[w] <= stage->told[w] || stage->equal[w] < most)
            continue;
        fits = stage->equal[w] > most ? 0 : fits;
        most = stage->equal[w];
        fits |= 1u << w;
    }
    return fits;
}

int fingerprint_expect(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct fingerprint_stage *f = !c->fingerprint ? NULL : ch == asc_s ? &c->fingerprint->s : &c->fingerprint->u;
    struct stage *stage = &s->stage[ch];
    const uint32_t fits = f && stage->recorded ? fingerprint_fits(f) : 0;
    const enum dtype t = scratch_captured(s, c, ch)->dtype;
    struct product product;
    int model = -1;
    if (!fits || product_take(c, s, ch, &product) != 0)
        return -1;
    for (int w = 0, last = -1; w < f->n; w++) {
        if (!(fits >> w & 1))
            continue;
        const float *out = way_values(s, &product, f, w, last);
        last = w;
        for (int i = 0; i < stage->rows * stage->cols; i++) {
            const double value = as_captured(t, out[i]);
            if (!is_product(c, s, ch, i / stage->cols, i % stage->cols) || !isfinite(value) ||
                (model >= 0 && value != stage->got[i]))
                continue;
            stage->want[LOCAL][i] = value;
            stage->bound[LOCAL][i] = 0;
        }
        if (model < 0)
            model = (int)f->way[w].model;
    }
    return model;
}
