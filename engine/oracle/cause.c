/* Causes: a formula of a known mistake, evaluated in float64 on the operands this run captured, set against what it
   captured of the result. It is named only where it explains (almost) everything, where enough elements tell it from
   plain rounding, and where that can not be chance. */
#include "engine/oracle/oracle.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/element.h"
#include "engine/oracle/local.h"
#include "engine/oracle/operand.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/truth.h"
#include "engine/oracle/values.h"
#include <math.h>
#include <string.h>

struct cause_facts {
    const char *name, *sentence, *formula;
    enum asc_channel channel;
};

static const struct cause_facts facts[CAUSE_COUNT] = {
    [CAUSE_NONE] = {"none", "no known cause", "", ASC_CHANNELS},
#define CAUSE(id, name, channel, sentence, formula) [id] = {name, sentence, formula, channel},
#include "engine/oracle/causes.def"
#undef CAUSE
};

const char *cause_name(enum cause c)
{
    return facts[c].name;
}

const char *cause_sentence(enum cause c)
{
    return facts[c].sentence;
}

const char *cause_formula(enum cause c)
{
    return facts[c].formula;
}

enum asc_channel cause_channel(enum cause c)
{
    return facts[c].channel;
}

int cause_from_name(const char *name)
{
    for (int c = 0; c < CAUSE_COUNT; c++)
        if (strcmp(facts[c].name, name) == 0)
            return c;
    return -1;
}

/* What a score would be under a mistake: factor times q.k, or factor times q[r,:] k[:,c] with K as it lies in memory.
 */
struct score_mistake {
    int applicable;
    int transposed; /* 1: K has been left untransposed */
    double factor;
};

static struct score_mistake score_mistake(const struct oracle_case *c, enum cause cause)
{
    const double right = values_factor(c->conventions.s_unit, c->scale);
    const double natural = values_natural(c->conventions.s_unit, c->scale);
    switch (cause) {
    case CAUSE_SCALED_TWICE:
        /* The formulas name natural scores: a raw one has been scaled twice where it carries the scale's square. */
        return (struct score_mistake){1, 0,
                                      c->conventions.s_unit == ASC_UNIT_RAW ? c->scale * c->scale : right * c->scale};
    case CAUSE_NOT_SCALED:
        return (struct score_mistake){c->conventions.s_unit != ASC_UNIT_RAW, 0, 1 / natural};
    case CAUSE_K_NOT_TRANSPOSED:
        /* Key c as row and d as column trade places: that stays inside the tile where it is square. */
        return (struct score_mistake){c->bc == c->head_dim, 1, right};
    default:
        return (struct score_mistake){0};
    }
}

/* Candidate scores and their bounds into s->weight and s->weight_error. The mistake may cost two roundings more than
   the right formula: a constant rounded and applied once more. */
static void score_candidate(const struct oracle_case *c, struct judge_scratch *s, const struct score_mistake *mistake)
{
    const int rows = c->in_q.rows, cols = s->kv_cols, head_dim = c->head_dim;
    const double *q = s->stage[asc_q].value, *k = s->stage[asc_k].value;
    const double relative = bound_gamma(head_dim + 5), tiny = bound_score_tiny(head_dim);
    double *want = s->weight, *bound = s->weight_error;
    if (!mistake->transposed) {
        local_score(c, s,
                    &(struct score_product){.q = q,
                                            .k = k,
                                            .size_q = s->use_q,
                                            .size_k = s->use_k,
                                            .factor = mistake->factor,
                                            .relative = relative,
                                            .want = want,
                                            .bound = bound});
        return;
    }
    /* Keys beyond kv_len are zero rows of the tile: the sum ends with the keys there are. */
    matrix_multiply(rows, cols, cols, mistake->factor, q, head_dim, k, head_dim, want, 0);
    matrix_multiply(rows, cols, cols, fabs(mistake->factor) * relative, s->use_q, head_dim, s->use_k, head_dim, bound,
                    0);
    for (int r = 0; r < rows; r++) {
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            const int masked = col >= s->visible[r];
            want[i] = masked ? -INFINITY : isfinite(want[i]) ? want[i] : NAN;
            bound[i] = masked ? 0 : bound[i] + tiny;
        }
    }
}

/* Fills s->order with the visible elements of the score tile; returns how many. */
static int list_visible(struct judge_scratch *s, int rows)
{
    int n = 0;
    for (int r = 0; r < rows; r++)
        for (int col = 0; col < s->visible[r] && col < s->kv_cols; col++)
            s->order[n++] = r * s->kv_cols + col;
    return n;
}

/* SplitMix64 (Steele, Lea, Flood 2014): a fixed stream, so that evidence is the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* How often would the candidate agree with values that have nothing to do with it? Tried on the captured values of the
   same tile in another order, one in which no value keeps its place (Sattolo's cycle). */
static void collect_chance(const struct judge_scratch *s, enum dtype t, const int *shuffled, const int *places, int n,
                           const double *right, const double *right_bound, struct cause_evidence *e)
{
    const double *got = s->stage[asc_s].got, *want = s->weight, *bound = s->weight_error;
    for (int j = 0; j < n; j++) {
        const int i = places[j];
        if (!(fabs(want[i] - right[i]) > bound[i] + right_bound[i]))
            continue;
        e->chance_tried++;
        e->chance_hit += (uint64_t)element_within(t, got[shuffled[j]], want[i], bound[i]);
    }
}

static void collect(const struct oracle_case *c, struct judge_scratch *s, const struct matrix *captured,
                    struct cause_evidence *e)
{
    const struct stage *stage = &s->stage[asc_s];
    const double *right = stage->want[LOCAL], *right_bound = stage->bound[LOCAL];
    const struct comparison to_right = {captured, stage->got, right, right_bound, stage->rows, stage->cols, 0};
    const struct comparison to_candidate = {captured,    stage->got,  s->weight, s->weight_error,
                                            stage->rows, stage->cols, 0};
    for (int r = 0; r < stage->rows; r++) {
        for (int col = 0; col < stage->cols; col++) {
            const size_t i = (size_t)r * (size_t)stage->cols + (size_t)col;
            e->elements++;
            e->rounding += element_classify(&to_right, r, col) == CLASS_OK;
            if (element_classify(&to_candidate, r, col) != CLASS_OK)
                continue;
            e->explained++;
            e->discriminating += fabs(s->weight[i] - right[i]) > s->weight_error[i] + right_bound[i];
        }
    }
    const int n = list_visible(s, stage->rows);
    int *places = s->order, *shuffled = s->shuffled;
    uint64_t state = (uint64_t)s->kv << 32 | (uint32_t)c->q_tile;
    memcpy(shuffled, places, (size_t)n * sizeof *shuffled);
    for (int j = n - 1; j > 0; j--) {
        const int other = (int)(next_random(&state) % (uint64_t)j), kept = shuffled[j];
        shuffled[j] = shuffled[other];
        shuffled[other] = kept;
    }
    collect_chance(s, captured->dtype, shuffled, places, n, right, right_bound, e);
}

int cause_collect(const struct oracle_case *c, enum asc_channel ch, int kv, struct judge_scratch *scratch,
                  struct cause_evidence evidence[CAUSE_COUNT])
{
    /* All known causes are mistakes of scores. */
    if (ch != asc_s || kv < 0 || kv >= c->kv_tiles)
        return 0;
    const struct matrix *captured = &c->captured[kv * ASC_CHANNELS + (int)asc_s];
    if (!captured->data)
        return 0;
    if (scratch_prepare(scratch, c) != 0)
        return -1;
    scratch_tile(scratch, c, kv);
    truth_tile_inputs(c, scratch);
    operand_take(c, scratch, asc_q);
    operand_take(c, scratch, asc_k);
    local_s(c, scratch);
    scratch_take(scratch, c, asc_s);
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        const struct score_mistake mistake = score_mistake(c, cause);
        if (!mistake.applicable)
            continue;
        evidence[cause].applicable = 1;
        score_candidate(c, scratch, &mistake);
        collect(c, scratch, captured, &evidence[cause]);
    }
    return 0;
}

/* Three conditions, from the study of numerics (0 wrong names and 0 of 127 unlisted mistakes named): it explains 99.99
   % of all elements of tiles with a fault; 16 elements at least lie beyond both bounds from what the right formula
   wants; and n such agreements by chance, each of probability pi, have ln(pi^n) <= -30. pi is estimated on shuffled
   values, never below 1 / (tried + 1): what was not seen in `tried` attempts may still happen. */
int cause_named(const struct cause_evidence *e)
{
    if (!e->applicable || e->elements == 0 || e->discriminating < 16)
        return 0;
    const double chance = (double)(e->chance_hit + 1) / (double)(e->chance_tried + 1);
    return (double)e->explained >= 0.9999 * (double)e->elements && (double)e->discriminating * -log(chance) >= 30;
}
