#include "engine/oracle/fingerprint.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "engine/oracle/local.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/values.h"
#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { BLOCK = FINGERPRINT_SIDE * FINGERPRINT_SIDE };

/* As captured: rounded to the channel's own type. */
static double as_captured(enum dtype t, float x)
{
    return t == DTYPE_F32 ? (double)x : bound_round(t, (double)x);
}

static bool is_masked(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch, int row, int col)
{
    return ch == asc_s && !values_mask_later(c) && !operands_see(&s->at, row, col);
}

/* Whether an element of S or U is the product and nothing else: finite, and not masked. */
static bool is_product(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch, int row,
                       int col)
{
    const struct stage *stage = &s->stage[ch];
    return isfinite(stage->want[LOCAL][(size_t)row * (size_t)stage->cols + (size_t)col]) &&
           !is_masked(c, s, ch, row, col);
}

/* A score that a bias hides is -inf, and rightly. */
static bool is_odd(double got, double want)
{
    return !(isfinite(got) && isfinite(want)) && !(got == -INFINITY && want == -INFINITY);
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

/* Seeds of which the first that gives what tells is taken: where few rows see keys, most blocks hold no product. */
enum { ATTEMPTS = 16, ATTEMPT = 4 };

static int products_in(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch,
                       const struct block *b)
{
    int n = 0;
    for (int row = b->row; row < b->row + b->rows; row++)
        for (int col = b->col; col < b->col + b->cols; col++)
            n += s->at.hidden[row] < s->at.visible[row] && is_product(c, s, ch, row, col);
    return n;
}

static struct block telling_block(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch,
                                  uint64_t seed)
{
    const struct block first = block_of(&s->stage[ch], seed);
    for (int i = 0; i < ATTEMPTS; i++) {
        const struct block b = block_of(&s->stage[ch], seed + (uint64_t)(i * ATTEMPT));
        if (products_in(c, s, ch, &b) >= FINGERPRINT_SIDE)
            return b;
    }
    return first;
}

/* One element of a block under every way. */
struct comparison_of_ways {
    const struct fingerprint_stage *stage;
    double value[PRODUCT_WAYS][BLOCK];
    int told[PRODUCT_WAYS], differs[PRODUCT_WAYS];
    bool finite, odd;
};

/* An element tells way w from the others where it is not simply the exact value rounded, or where another tensor core
   gives something else. */
static void compare_element(struct comparison_of_ways *x, int at, double got, double exact)
{
    const struct fingerprint_stage *stage = x->stage;
    x->finite |= isfinite(got) && isfinite(exact);
    for (int w = 0; w < stage->n && isfinite(exact); w++) {
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
    void *sums = s->core.sums, *out = s->core.out;
    if (last < 0 || !product_shares(&f->way[last], &f->way[w]))
        product_sum(s, product, &f->way[w], sums);
    product_finish(s, product, &f->way[w], sums, out);
    return out;
}

static void add_block(struct fingerprint_stage *f, const struct oracle_case *c, struct judge_scratch *s,
                      enum asc_channel ch, uint64_t seed)
{
    const struct stage *stage = &s->stage[ch];
    const struct block b = telling_block(c, s, ch, seed);
    const enum dtype t = scratch_captured(s, c, ch)->dtype;
    struct comparison_of_ways x = {.stage = f};
    struct product product;
    if (product_take(c, s, ch, &product) != 0)
        return;
    f->blocks++;
    product = product_block(&product, b.row, b.col, b.rows, b.cols);
    for (int w = 0; w < f->n; w++) {
        const float *out = way_values(s, &product, f, w, w - 1);
        for (int i = 0; i < b.rows * b.cols; i++)
            x.value[w][i] = as_captured(t, out[(b.row + i / b.cols) * stage->cols + b.col + i % b.cols]);
    }
    for (int i = 0; i < b.rows * b.cols; i++) {
        const int row = b.row + i / b.cols, col = b.col + i % b.cols;
        const size_t at = (size_t)row * (size_t)stage->cols + (size_t)col;
        x.odd |= !is_masked(c, s, ch, row, col) && is_odd(stage->got[at], stage->want[LOCAL][at]);
        if (is_product(c, s, ch, row, col))
            compare_element(&x, i, stage->got[at], as_captured(t, (float)stage->want[LOCAL][at]));
    }
    f->finite += x.finite;
    f->odd += x.odd;
    bool told = false;
    for (int w = 0; w < f->n; w++)
        told |= x.told[w] >= FINGERPRINT_SIDE;
    for (int w = 0; w < f->n; w++) {
        f->match[w] += told && x.differs[w] == 0;
        if (x.told[w] < FINGERPRINT_SIDE)
            continue;
        f->told[w]++;
        f->equal[w] += x.differs[w] == 0;
    }
}

static uint64_t block_seed(int sample, int block)
{
    return (uint64_t)sample << 32 | (uint64_t)block << 8;
}

/* Which of the visited tiles block number `block` lies in. */
static int block_tile(const struct oracle_case *c, int sample, int block)
{
    const uint64_t seed = block_seed(sample, block) | 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        const int visit = scatter(seed + (uint64_t)(i * ATTEMPT), c->n_visited);
        if (schedule_sees(c, c->order[visit]))
            return visit;
    }
    return scatter(seed, c->n_visited);
}

static void add_tile(struct fingerprint *f, const struct oracle_case *c, struct judge_scratch *s, int visit, int sample,
                     int blocks)
{
    for (int block = 0; block < blocks; block++) {
        const uint64_t seed = block_seed(sample, block);
        if (block_tile(c, sample, block) != visit)
            continue;
        if (s->stage[asc_s].recorded)
            add_block(&f->s, c, s, asc_s, seed + 2);
        if (s->stage[asc_u].recorded)
            add_block(&f->u, c, s, asc_u, seed + 3);
    }
}

int fingerprint_add(struct fingerprint *f, const struct oracle_case *c, struct judge_scratch *scratch, int sample,
                    int blocks)
{
    f->s.cores = f->u.cores = c->cores;
    f->s.n = product_ways(c, asc_s, f->s.way);
    f->u.n = product_ways(c, asc_u, f->u.way);
    int last = -1;
    for (int block = 0; block < blocks && c->n_visited > 0 && f->s.n + f->u.n > 0; block++)
        last = block_tile(c, sample, block) > last ? block_tile(c, sample, block) : last;
    if (last < 0)
        return 0;
    if (scratch_prepare(scratch, c) != 0)
        return -1;
    reference_inputs(c, scratch);
    scratch_tile(scratch, c, 0);
    operand_take(c, scratch, asc_q);
    const struct schedule_lists *lists = &scratch->lists;
    for (int split = 0; split < lists->splits; split++) {
        local_begin(c, scratch, split);
        for (int visit = lists->first_visit[split]; visit >= 0 && visit <= last; visit = lists->next_visit[visit]) {
            const int kv = c->order[visit];
            scratch->seen[kv] = 1;
            scratch_tile(scratch, c, kv);
            operand_take(c, scratch, asc_k);
            operand_take(c, scratch, asc_v);
            if (tile_left(c, scratch))
                continue;
            tile_local(c, scratch);
            add_tile(f, c, scratch, visit, sample, blocks);
            local_advance(c, scratch);
        }
    }
    return 0;
}

static void join_stage(struct fingerprint_stage *f, const struct fingerprint_stage *other)
{
    struct fingerprint_stage sum = other->n ? *other : *f;
    sum.blocks = f->blocks + other->blocks;
    sum.finite = f->finite + other->finite;
    sum.odd = f->odd + other->odd;
    for (int w = 0; w < sum.n; w++) {
        sum.told[w] = f->told[w] + other->told[w];
        sum.equal[w] = f->equal[w] + other->equal[w];
        sum.match[w] = f->match[w] + other->match[w];
    }
    *f = sum;
}

void fingerprint_join(struct fingerprint *f, const struct fingerprint *other)
{
    join_stage(&f->s, &other->s);
    join_stage(&f->u, &other->u);
}

uint32_t fingerprint_fits(const struct fingerprint_stage *stage)
{
    uint32_t best = 0;
    bool shown = false;
    int most = 0;
    for (int w = 0; w < stage->n; w++)
        most = stage->match[w] > most ? stage->match[w] : most;
    for (int w = 0; w < stage->n; w++) {
        if (stage->match[w] < most)
            continue;
        best |= 1u << w;
        shown |= stage->told[w] >= 2 && 2 * stage->equal[w] > stage->told[w];
    }
    for (int w = 0; w < stage->n && stage->cores; w++)
        if (!(stage->cores >> stage->way[w].model & 1))
            best &= ~(1u << w);
    return shown ? best : 0;
}

uint32_t fingerprint_models(const struct fingerprint_stage *stage)
{
    const uint32_t fits = fingerprint_fits(stage);
    uint32_t models = 0;
    for (int w = 0; w < stage->n; w++)
        if (fits >> w & 1)
            models |= 1u << stage->way[w].model;
    return models;
}

/* A block's elements that tell arithmetic apart: what was captured, what the tensor core gives and the exact sum are
   not all the same. */
struct equality {
    uint32_t tells;
    uint32_t unequal; /* of these: not what the tensor core gives */
    uint32_t far;     /* of those: by more than one step of the captured type */
    uint32_t outside; /* of those: beyond the bound of f32 */
};

/* More than a rounding apart. Of a type narrower than f32 one step is as much as two ways of summing can differ by. */
static bool is_far(enum dtype t, double a, double b)
{
    return t != DTYPE_F32 || fabs(a - b) > 0x1p-23 * fmax(fabs(a), fabs(b));
}

/* What f32 in any order may err by, relative to the declared accumulator's bound. */
static double share_of_f32(const struct oracle_case *c, enum asc_channel ch)
{
    if (ch == asc_s)
        return fmin(1, bound_score(c->head_dim, c->conventions.s_unit) / product_score(c));
    return fmin(1, bound_accumulate(c->bc) / product_accumulate(c));
}

static struct equality compare_block(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch,
                                     const struct block *b)
{
    const struct stage *stage = &s->stage[ch];
    const enum dtype t = scratch_captured(s, c, ch)->dtype;
    const double share = share_of_f32(c, ch), tiny = product_tiny(ASC_ACC_F32, (ch == asc_s ? c->head_dim : c->bc) + 2);
    struct equality e = {0};
    for (int row = b->row; row < b->row + b->rows; row++) {
        for (int col = b->col; col < b->col + b->cols; col++) {
            const size_t i = (size_t)row * (size_t)stage->cols + (size_t)col;
            const double model = s->core.model[i], got = stage->got[i], want = stage->want[LOCAL][i];
            if (isnan(model))
                continue;
            if (got == model) {
                e.tells += model != as_captured(t, (float)want);
                continue;
            }
            e.tells++;
            e.unequal++;
            e.far += is_far(t, got, model);
            e.outside += !element_within(t, got, want, stage->bound[LOCAL][i] * share + tiny);
        }
    }
    return e;
}

/* Another order of summing leaves fewer elements equal than a mistake in the last bits: one tensor core's values equal
   another's in 63 % of all elements at most (measured), f32's in fewer; `part` has room for data whose sums
   are nearly exact. And some of them are several steps away, since roundings add up and cancel; a result that was cut
   or nudged after the sum is one step away at most. */
static bool another_way(const struct equality *e, int part)
{
    return e->unequal > 0 && part * (uint64_t)e->unequal >= e->tells && 32 * (uint64_t)e->far >= e->unequal;
}

static void expect_bits(struct judge_scratch *s, enum asc_channel ch, const struct block *b)
{
    struct stage *stage = &s->stage[ch];
    for (int row = b->row; row < b->row + b->rows; row++) {
        for (int col = b->col; col < b->col + b->cols; col++) {
            const size_t i = (size_t)row * (size_t)stage->cols + (size_t)col;
            if (isnan(s->core.model[i]))
                continue;
            stage->want[LOCAL][i] = s->core.model[i];
            stage->bound[LOCAL][i] = 0;
        }
    }
}

/* Asks every fragment for the tensor core's bits but those that were computed in another way, as a kernel may do with a
   tail: of these, wholly within the bound of f32 in any order, that bound is all that can be asked.
   Returns how many elements differ there. */
static uint32_t expect_fragments(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    enum { ROWS = 16, COLS = 8, ENOUGH = 16 }; /* what one mma.sync writes; elements that decide for their fragment */
    const struct stage *stage = &s->stage[ch];
    const struct block all = {0, 0, stage->rows, stage->cols};
    const struct equality tile = compare_block(c, s, ch, &all);
    uint32_t unequal = 0;
    if (tile.unequal == 0) {
        expect_bits(s, ch, &all);
        return 0;
    }
    for (int row = 0; row < stage->rows; row += ROWS) {
        for (int col = 0; col < stage->cols; col += COLS) {
            const struct block b = {row, col, stage->rows - row < ROWS ? stage->rows - row : ROWS,
                                    stage->cols - col < COLS ? stage->cols - col : COLS};
            const struct equality e = compare_block(c, s, ch, &b);
            const bool told = another_way(&tile, 8) || (e.tells >= ENOUGH && another_way(&e, 4));
            if (told && e.outside == 0 && e.unequal > 0)
                unequal += e.unequal;
            else
                expect_bits(s, ch, &b);
        }
    }
    return unequal;
}

/* Where the way's value or the wanted one is not finite, nothing is known. */
VECTOR_UNITS static void set_model(const float *value, const double *want, int n, double *model)
{
    for (int i = 0; i < n; i++)
        model[i] = fabsf(value[i]) <= FLT_MAX && fabs(want[i]) <= DBL_MAX ? (double)value[i] : NAN;
}

/* What a way gives for a row of the model: the first one what it can be set against, the others what was captured. */
static void take_row(const struct oracle_case *c, const struct judge_scratch *s, enum asc_channel ch, int row,
                     enum dtype t, const float *out, bool first)
{
    const struct stage *stage = &s->stage[ch];
    const bool masks = ch == asc_s && !values_mask_later(c);
    const size_t begin = (size_t)row * (size_t)stage->cols;
    const double *want = stage->want[LOCAL] + begin, *got = stage->got + begin;
    double *model = s->core.model + begin;
    out += begin;
    if (first)
        set_model(out, want, stage->cols, model);
    for (int col = 0; col < stage->cols && (!first || t != DTYPE_F32); col++) {
        const double value = as_captured(t, out[col]);
        if (first && !isfinite(value))
            model[col] = NAN;
        else if (!isnan(model[col]) && (first || value == got[col]))
            model[col] = value;
    }
    for (int col = 0; col < stage->cols && first && masks; col++)
        if (!operands_see(&s->at, row, col))
            model[col] = NAN;
}

int fingerprint_expect(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch, uint32_t *unequal)
{
    const struct fingerprint_stage *f = !c->fingerprint ? NULL : ch == asc_s ? &c->fingerprint->s : &c->fingerprint->u;
    const struct stage *stage = &s->stage[ch];
    const uint32_t fits = f && stage->recorded ? fingerprint_fits(f) : 0;
    const enum dtype t = scratch_captured(s, c, ch)->dtype;
    struct product product;
    int model = -1;
    *unequal = 0;
    if (!fits || product_take(c, s, ch, &product) != 0)
        return -1;
    for (int w = 0, last = -1; w < f->n; w++) {
        if (!(fits >> w & 1))
            continue;
        const float *out = way_values(s, &product, f, w, last);
        last = w;
        for (int row = 0; row < stage->rows; row++)
            take_row(c, s, ch, row, t, out, model < 0);
        if (model < 0)
            model = (int)f->way[w].model;
    }
    *unequal = expect_fragments(c, s, ch);
    return model;
}
