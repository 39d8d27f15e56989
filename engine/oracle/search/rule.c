/* Whether a rule explains what was captured, where, and by how much more than chance. */
#include "engine/oracle/search/search.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/causes/causes.h"
#include "engine/oracle/element.h"
#include "engine/oracle/search/constant.h"
#include <float.h>
#include <string.h>

/* nan: where the rule gives no number it says just that. */
static bool gives(const struct sample_tile *t, size_t i, double want, double bound, bool nan)
{
    return t->got[i] == want || (nan && isnan(want) && isnan(t->got[i])) ||
           (isfinite(want) && bound < INFINITY && element_within(t->type, t->got[i], want, bound));
}

/* The rule and the right formula cannot both hold: neither end of what the rule allows would have passed. */
static bool tells(const struct sample_tile *t, size_t i, double want, double bound, bool nan)
{
    const double right = t->want[i];
    if (nan && isnan(want))
        return !isnan(right);
    if (isnan(want) || isnan(right))
        return false;
    if (!isfinite(want) || !isfinite(right))
        return want != right;
    const double least = want - bound, most = want + bound;
    const double low = t->unlimited ? bound_round_unlimited(t->type, least) : bound_round(t->type, least);
    const double high = t->unlimited ? bound_round_unlimited(t->type, most) : bound_round(t->type, most);
    return (low > right) == (high > right) && !sample_is_right(t, i, low) && !sample_is_right(t, i, high);
}

enum { DRAWS_MOST = 8192, UNITS_LEAST = 8, PAIRS_LEAST = 16, PAIRS_OF_HALVES = 4, PAIRS_OF_NUMBER = 64 };

struct weighing {
    size_t wrong, in, told, out;
    /* The rule's number against what was captured of other elements; [1]: numbers that come about in many ways. */
    size_t tried[2], hit[2], units[2];
    bool nan;                        /* as of gives() */
    size_t masked;                   /* of `in`: where -inf was wanted */
    double following;                /* bits that `in` is worth to a rule that follows */
    double most;                     /* of what an element tells */
    int first[3];                    /* tile, row and column of it */
    uint64_t pairs[PAIRS_OF_NUMBER]; /* different ones of captured and wanted values */
    int n_pairs;
};

/* Inputs that repeat themselves make one number look like a rule of many elements. */
static void note_pair(struct weighing *w, double got, double want)
{
    const uint64_t pair = evidence_pair(got, want);
    for (int i = 0; i < w->n_pairs; i++)
        if (w->pairs[i] == pair)
            return;
    w->pairs[w->n_pairs++] = pair;
}

static bool is_usual(double x)
{
    return x == 0 || x == 1 || isinf(x);
}

/* Chance is tried on the captured value of another element of the tile: it knows nothing of this one. */
static void draw(struct weighing *w, const struct sample_tile *t, size_t i, double want, double bound)
{
    const bool usual = is_usual(t->got[i]);
    const uint64_t drawn = w->tried[0] + w->tried[1];
    const size_t n = sample_cells(t);
    const size_t other = n > 0 ? (size_t)(evidence_mix(drawn * UINT64_C(0x9E3779B97F4A7C15) + i) % n) : i;
    if (drawn >= DRAWS_MOST || other == i || t->cell[other] >= CELL_EXPLAINED)
        return;
    w->tried[usual]++;
    w->hit[usual] += gives(t, other, want, bound, w->nan) || t->got[other] == t->got[i];
}

/* A row behind all rows is zeros, and so is much that was stored for another reason. */
static bool is_zero_by_chance(const struct rule *rule, double got)
{
    return rule->kind == RULE_ROWS && rule->channel <= asc_v && got == 0;
}

/* By chance a wrong number lies anywhere as far off as it does: log2 of how many places of the rule's width that is. */
static double bits_of_element(const struct sample_tile *t, size_t i, double bound)
{
    double unit = 0, half_tiny = 0;
    bound_narrow(t->type, &unit, &half_tiny);
    const double width = bound + fmax(unit, BOUND_U) * fabs(t->got[i]) + half_tiny, off = fabs(t->got[i] - t->want[i]);
    return isfinite(off) && off > width ? log2(off / width) : 0;
}

/* A wrong element that the rule does not give is OUT: another mistake, or none of this one. No number within any bound:
   the rule does not know. `given` and `told` are gives() and tells(); not wrong: right, or as another rule says. */
static uint8_t label_of(uint8_t cell, int unknown, int given, int told)
{
    const int wrong = cell == CELL_WRONG, silent = (cell >= CELL_SILENT) | unknown;
    return (uint8_t)(silent                      ? LABEL_SILENT
                     : (wrong & !given)          ? LABEL_OUT
                     : ((wrong == given) & told) ? (wrong ? LABEL_IN : LABEL_OUT)
                                                 : LABEL_SILENT);
}

/* Of captured f32, which is the type of arithmetic, and of rules that give numbers: gives() and tells() without their
   calls. false: where numbers beyond f32 pass, there may be some. */
VECTOR_UNITS static bool label_f32(const struct sample_tile *t, const double *want, const double *bound,
                                   uint8_t *labels)
{
    const double *got = t->got, *right = t->want, *open = t->bound;
    const uint8_t *cell = t->cell;
    const int n = t->rows * t->cols;
    int beyond = 0;
    for (int i = 0; i < n; i++) {
        const double low = (double)(float)(want[i] - bound[i]), high = (double)(float)(want[i] + bound[i]);
        const int finite = fabs(want[i]) <= DBL_MAX,
                  given = (got[i] == want[i]) | (finite & (bound[i] < INFINITY) & (fabs(got[i] - want[i]) <= bound[i])),
                  apart = ((low > right[i]) == (high > right[i])) & !(fabs(low - right[i]) <= open[i]) &
                          !(fabs(high - right[i]) <= open[i]),
                  other = (want[i] < right[i]) | (want[i] > right[i]),
                  told = (finite & (fabs(right[i]) <= DBL_MAX)) ? apart : other;
        labels[i] = label_of(cell[i], (want[i] != want[i]) & (bound[i] == INFINITY), given, told);
        beyond |= (fabs(want[i]) + bound[i] > FLT_MAX / 2) & (bound[i] < INFINITY);
    }
    return !t->unlimited || !beyond;
}

/* The same of a captured narrow type; ends: of what the rule gives, and of what is right, both as they are rounded.
   false: some are beyond its largest number. */
VECTOR_UNITS static bool label_narrow(const struct sample_tile *t, const double *want, const double *bound,
                                      double *const ends[4], double largest, uint8_t *labels)
{
    const double *got = t->got, *right = t->want, *open = t->bound;
    const double *low = ends[0], *high = ends[1], *least = ends[2], *most = ends[3];
    const uint8_t *cell = t->cell;
    const int n = t->rows * t->cols;
    int beyond = 0;
    for (int i = 0; i < n; i++) {
        const int finite = fabs(want[i]) <= DBL_MAX,
                  near = (fabs(got[i] - want[i]) <= bound[i]) |
                         ((got[i] >= low[i]) & (got[i] <= high[i]) & (fabs(got[i]) <= DBL_MAX)),
                  given = (got[i] == want[i]) | (finite & (bound[i] < INFINITY) & near),
                  low_right = (fabs(low[i] - right[i]) <= open[i]) | ((low[i] >= least[i]) & (low[i] <= most[i])),
                  high_right = (fabs(high[i] - right[i]) <= open[i]) | ((high[i] >= least[i]) & (high[i] <= most[i])),
                  apart = ((low[i] > right[i]) == (high[i] > right[i])) & !low_right & !high_right,
                  other = (want[i] < right[i]) | (want[i] > right[i]),
                  told = (finite & (fabs(right[i]) <= DBL_MAX)) ? apart : other;
        labels[i] = label_of(cell[i], (want[i] != want[i]) & (bound[i] == INFINITY), given, told);
        beyond |= (!(fabs(want[i]) + bound[i] <= largest) & (want[i] == want[i])) |
                  (!(fabs(right[i]) + open[i] <= largest) & (right[i] == right[i]));
    }
    return !beyond;
}

static bool label_rounded(const struct search *search, const struct sample_tile *t, uint8_t *labels)
{
    double *const ends[4] = {search->operand, search->loose, search->sizes[0], search->sizes[1]};
    const size_t n = sample_cells(t);
    const double largest = bound_largest(t->type);
    if (largest == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        ends[0][i] = search->want[i] - search->bound[i];
        ends[1][i] = search->want[i] + search->bound[i];
        ends[2][i] = t->want[i] - t->bound[i];
        ends[3][i] = t->want[i] + t->bound[i];
    }
    for (int i = 0; i < 4; i++)
        bound_round_row(t->type, ends[i], (int)n, ends[i]);
    return label_narrow(t, search->want, search->bound, ends, largest, labels);
}

static void label_tile(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                       uint8_t *labels, struct weighing *w)
{
    const double *want = search->want, *bound = search->bound;
    const size_t n = sample_cells(t);
    const bool labeled =
        !w->nan && (t->type == DTYPE_F32 ? label_f32(t, want, bound, labels) : label_rounded(search, t, labels));
    for (size_t i = 0; i < n && !labeled; i++) {
        const bool given = gives(t, i, want[i], bound[i], w->nan), wrong = t->cell[i] == CELL_WRONG;
        labels[i] = label_of(t->cell[i], isnan(want[i]) && bound[i] == INFINITY, given,
                             wrong == given && tells(t, i, want[i], bound[i], w->nan));
    }
    for (uint8_t *at = labels; (at = memchr(at, LABEL_IN, n - (size_t)(at - labels))); at++) {
        const size_t i = (size_t)(at - labels);
        if (is_zero_by_chance(rule, t->got[i])) {
            *at = LABEL_SILENT;
            continue;
        }
        draw(w, t, i, want[i], bound[i]);
        if (rule->follows)
            w->following += bits_of_element(t, i, bound[i]);
    }
}

static void label_nothing(const struct sample_tile *t, uint8_t *labels)
{
    for (size_t i = 0; i < sample_cells(t); i++)
        labels[i] = t->cell[i] == CELL_WRONG ? LABEL_OUT : LABEL_SILENT;
}

/* A K row of scores is right or wrong as a whole column is; all else goes by rows. */
static bool goes_by_columns(const struct rule *rule)
{
    return (rule->kind == RULE_ROWS || rule->kind == RULE_TURNED) && rule->rows.operand == asc_k &&
           rule->channel == asc_s;
}

/* What of a tile lies in the rule's region. */
static void weigh_tile(const struct search *search, const struct rule *rule, int tile, struct weighing *w)
{
    const struct sample_tile *t = &search->sample->tiles[tile];
    const uint8_t *labels = search->labels[tile];
    const bool by_col = goes_by_columns(rule);
    const int lines = by_col ? t->cols : t->rows, across = by_col ? t->rows : t->cols;
    for (int line = 0; line < lines; line++) {
        bool any = false, unusual = false;
        for (int k = 0; k < across; k++) {
            const int r = by_col ? k : line, col = by_col ? line : k;
            const size_t i = (size_t)r * (size_t)t->cols + (size_t)col;
            /* A zero elsewhere than the rule holds is not what it gives. */
            w->wrong += t->cell[i] == CELL_WRONG &&
                        (labels[i] != LABEL_SILENT ||
                         (is_zero_by_chance(rule, t->got[i]) && !region_holds(&rule->region, t, r, col)));
            if (labels[i] == LABEL_SILENT || !region_holds(&rule->region, t, r, col))
                continue;
            w->told++;
            w->out += labels[i] == LABEL_OUT;
            if (labels[i] != LABEL_IN)
                continue;
            w->in++;
            any = true;
            unusual = unusual || !is_usual(t->got[i]);
            w->masked += t->want[i] == -INFINITY;
            if (w->n_pairs < PAIRS_OF_NUMBER)
                note_pair(w, t->got[i], t->want[i]);
            const double off = fabs(t->got[i] - t->want[i]) / fmax(t->bound[i], DBL_MIN);
            if (off > w->most) {
                w->most = off;
                memcpy(w->first, (int[3]){tile, r, col}, sizeof w->first);
            }
        }
        w->units[!unusual] += any;
    }
}

/* A number that stands wherever the rule puts it whatever the inputs are is evidence by its places alone: how many
   sets of so many there are. log2 C(n, k) >= k log2(n / k). */
static double bits_of_places(size_t in, size_t all)
{
    const double k = (double)(in < all - in ? in : all - in);
    return k > 0 ? k * log2((double)all / k) : 0;
}

static bool is_constant(const struct rule *rule)
{
    return rule->kind == RULE_CONSTANT || rule->kind == RULE_SEEN || (rule->kind == RULE_ROUNDED && rule->limit != 0);
}

/* Where a mask ends, and what a masked score is, are matters of places. A number that nobody knows stands for many
   others. */
static int pairs_least(const struct rule *rule, const struct weighing *w)
{
    const bool is_floor =
        rule->kind == RULE_ROUNDED && rule->limit < 0; /* of masked keys, all of which weigh the same */
    if (rule->kind == RULE_SEEN || rule->kind == RULE_UNGUARDED || is_floor ||
        (rule->kind == RULE_CONSTANT && w->masked == w->in))
        return 0;
    /* Of 16 codes a reading may concern two, under few scales of e8m0. */
    if (rule->kind == RULE_HALF || rule->scale_reading == SCALE_SIGN || rule->scale_reading == SCALE_SIGNED)
        return PAIRS_OF_HALVES;
    /* It has nothing that could be fitted; of m, a maximum, it shows in the rows alone whose old one is the larger. */
    if (rule->kind == RULE_CARRIED)
        return UNITS_LEAST;
    return rule->kind == RULE_CONSTANT && rule->cost >= CONSTANT_UNKNOWN_BITS ? PAIRS_OF_NUMBER : PAIRS_LEAST;
}

double rule_price(const struct rule *rule)
{
    if (rule->follows)
        return RULE_BITS_FOLLOWING;
    return rule->cost + rule->region.bits + log2((double)rule->evidence.tried) + RULE_BITS_MORE;
}

/* A number wherever the state moves is what comes of a mistake, as where an exponential underflows. */
static bool is_effect(const struct rule *rule)
{
    bool is = false;
    for (int i = 0; i < rule->region.n; i++)
        is = is || rule->region.term[i].axis == AXIS_RISE || rule->region.term[i].axis >= AXIS_RISE_BESIDE;
    return is && rule->kind == RULE_CONSTANT;
}

bool search_is_settled(const struct search *search)
{
    const struct rule *best = &search->best;
    return best->kind != RULE_NONE && best->evidence.share >= 0.9999 && !is_effect(best) &&
           best->cost + best->region.bits < CONSTANT_UNKNOWN_BITS;
}

/* Of rules that explain a part, one that explains as much counts by what it costs. */
static bool is_better(const struct rule *rule, const struct rule *than)
{
    const bool all = rule->evidence.share >= 0.9999, than_all = than->evidence.share >= 0.9999;
    const bool cheaper = rule->cost + rule->region.bits < than->cost + than->region.bits;
    const bool as_much = rule->evidence.in * 20 >= than->evidence.in * 19;
    const bool more = rule->evidence.in * 19 > than->evidence.in * 20;
    return than->kind == RULE_NONE || (all && !than_all) ||
           (all == than_all && (all ? cheaper : more || (as_much && cheaper)));
}

/* Two proposals may be one rule: it says the same. */
static bool says_as(const struct search *search, const struct rule *rule, const struct rule *other)
{
    char words[2][SENTENCE_BYTES];
    rule_say(search->sample, rule, words[0], sizeof words[0]);
    rule_say(search->sample, other, words[1], sizeof words[1]);
    return strcmp(words[0], words[1]) == 0;
}

static void keep_rule(struct search *search, const struct rule *rule)
{
    struct rule *best = &search->best, *second = &search->second;
    const bool again = says_as(search, rule, best);
    if (is_better(rule, best)) {
        if (!again)
            *second = *best;
        *best = *rule;
    } else if (!again && is_better(rule, second)) {
        *second = *rule;
    } else {
        return;
    }
    search->kept = true;
}

static bool explains_its_price(struct search *search, const struct rule *rule)
{
    const double over = rule->evidence.bits - rule_price(rule);
    if (over >= 0)
        search->over = fmin(search->over, over);
    return over >= 0;
}

/* Rows that are right, where the rule would have them otherwise, are none of its own. */
static void silence_row(const struct sample_tile *t, uint8_t *labels, int r, int seen[2])
{
    const size_t first = (size_t)r * (size_t)t->cols, end = first + (size_t)t->cols;
    bool in = false, wrong = false, out = false;
    for (size_t i = first; i < end; i++) {
        in = in || labels[i] == LABEL_IN;
        out = out || labels[i] == LABEL_OUT;
        wrong = wrong || (labels[i] == LABEL_OUT && t->cell[i] == CELL_WRONG);
    }
    seen[0] += in;
    seen[1] += out && !in;
    for (size_t i = first; i < end && !in && !wrong; i++)
        labels[i] = LABEL_SILENT;
}

/* What a rule says of elements: gives of wrong ones, and does not; would have right ones otherwise. */
struct count {
    size_t in, lost, against;
};

VECTOR_UNITS static void count_labels(const uint8_t *labels, const uint8_t *cell, size_t cells, struct count *n)
{
    uint32_t in = 0, lost = 0, out = 0;
    for (size_t k = 0; k < cells; k++) {
        in += labels[k] == LABEL_IN;
        lost += (labels[k] == LABEL_OUT) & (cell[k] == CELL_WRONG);
        out += labels[k] == LABEL_OUT;
    }
    n->in += in;
    n->lost += lost;
    n->against += out - lost;
}

/* Labels all tiles by what the rule gives, those that hold nothing wrong last: of a rule that gives next to nothing of
   what is wrong they are left out. */
static struct count label_all(struct search *search, const struct rule *rule, struct weighing *w, size_t least)
{
    struct sample *s = search->sample;
    struct count n = {0};
    w->nan = rule->reads || rule->kind == RULE_UNGUARDED || rule->kind == RULE_SUMMED || rule->frame == FRAME_UNSHIFTED;
    for (int right = 0; right < 2 && (!right || n.in >= least); right++)
        for (int i = 0; i < s->n; i++) {
            const struct sample_tile *t = &s->tiles[i];
            if (t->any_wrong == right)
                continue;
            if (rule_forward(search, rule, t, search->want, search->bound))
                label_tile(search, rule, t, search->labels[i], w);
            else
                label_nothing(t, search->labels[i]);
            for (int r = 0; r < t->rows && rule->region.some_rows; r++)
                silence_row(t, search->labels[i], r, (int[2]){0});
            count_labels(search->labels[i], t->cell, sample_cells(t), &n);
        }
    return n;
}

/* Whether a rule that explains so much may be better than this one: by is_better(), whatever its region costs. */
static bool may_be_better(const struct rule *rule, const struct count *n, const struct rule *than)
{
    struct rule best = *rule;
    best.region = (struct region){0};
    best.evidence.in = n->in;
    best.evidence.share = (double)n->in / (double)(n->in + n->lost);
    return is_better(&best, than);
}

static void weigh(const struct search *search, struct rule *rule, struct weighing *w)
{
    for (int i = 0; i < search->sample->n; i++)
        weigh_tile(search, rule, i, w);
    rule->evidence = (struct evidence){.wrong = w->wrong,
                                       .in = w->in,
                                       .told = w->told,
                                       .out = w->out,
                                       .units = w->units[0] + w->units[1],
                                       .by_col = goes_by_columns(rule),
                                       .tried = search->tried,
                                       .share = w->wrong ? (double)w->in / (double)w->wrong : 0};
}

/* A rule of all that is wrong that holds in some rows of a state alone, as one that asks for a condition there: which
   rows takes a bit for each, or a threshold. */
static bool fit_rows(const struct search *search, struct rule *rule)
{
    double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY}; /* α of its rows, and of the others */
    int n[2] = {0};
    if (rule->kind != RULE_TERMS && rule->kind != RULE_VECTOR && rule->kind != RULE_IS)
        return false;
    for (int i = 0; i < search->sample->n; i++) {
        const struct sample_tile *t = &search->sample->tiles[i];
        const double *alpha = search->sample->channel > asc_alpha && !t->next_alpha ? t->x.of[asc_alpha].value : NULL;
        for (size_t k = 0; k < sample_cells(t); k++)
            if (t->cell[k] == CELL_WRONG && search->labels[i][k] == LABEL_OUT)
                return false;
        for (int r = 0; r < t->rows; r++) {
            int seen[2] = {0};
            silence_row(t, search->labels[i], r, seen);
            for (int k = 0; k < 2; k++) {
                n[k] += seen[k];
                least[k] = seen[k] && alpha ? fmin(least[k], alpha[r]) : least[k];
                most[k] = seen[k] && alpha ? fmax(most[k], alpha[r]) : most[k];
            }
        }
    }
    const double all = n[0] + n[1];
    rule->region = (struct region){.some_rows = true, .bits = all + 1};
    rule->region.by_alpha = least[0] > most[1] && isfinite(most[1])    ? 1
                            : most[0] < least[1] && isfinite(least[1]) ? -1
                                                                       : 0;
    rule->region.alpha = rule->region.by_alpha > 0 ? least[0] : most[0];
    if (rule->region.by_alpha)
        rule->region.bits = 3 + log2(all);
    return n[0] > 0;
}

static void tell(struct search *search, struct rule *rule, const struct weighing *w)
{
    const struct sample_tile *t = &search->sample->tiles[w->first[0]];
    const int row = w->first[1], col = w->first[2];
    const size_t i = (size_t)row * (size_t)t->cols + (size_t)col;
    rule_forward(search, rule, t, search->want, search->bound);
    rule->evidence.telling = (struct telling){.at = {t->at[0], t->at[1], t->at[2]},
                                              .kv = t->kv,
                                              .row = row,
                                              .col = col,
                                              .got = t->got[i],
                                              .want = t->want[i],
                                              .given = search->want[i]};
}

void rule_label(struct search *search, struct rule *rule)
{
    struct weighing w = {0};
    label_all(search, rule, &w, 0);
    weigh(search, rule, &w);
}

bool rule_is_hopeless(struct search *search, const struct rule *rule)
{
    enum { FEW_ROWS = 4 };
    for (int k = 0; k < search->sample->n; k++) {
        struct sample_tile few = search->sample->tiles[k];
        struct oracle_case c = *few.c;
        size_t wrong = 0, given = 0, judged = 0;
        c.in_q.rows = few.rows = few.rows < FEW_ROWS ? few.rows : FEW_ROWS;
        few.c = &c;
        for (size_t i = 0; i < sample_cells(&few); i++)
            wrong += few.cell[i] == CELL_WRONG;
        if (!wrong)
            continue;
        if (!rule_forward(search, rule, &few, search->want, search->bound))
            return true;
        for (size_t i = 0; i < sample_cells(&few); i++) {
            judged += few.cell[i] < CELL_SILENT;
            given += gives(&few, i, search->want[i], search->bound[i], true);
        }
        return given * 2 < judged;
    }
    return false;
}

/* A rule that another stage has: nothing here speaks against it, neither what is wrong nor what is right, and it gives
   at least half of what is wrong. */
static void try_following(struct search *search, struct rule *rule)
{
    const struct sample *s = search->sample;
    struct weighing w = {0};
    rule->channel = s->channel;
    rule->region = (struct region){0};
    search->tried++;
    const struct count n = label_all(search, rule, &w, 1);
    if (!n.in || n.lost || n.against || n.in * 2 < s->wrong) /* of some it may know nothing */
        return;
    weigh(search, rule, &w);
    rule->evidence.bits = w.following;
    if (rule->evidence.bits < rule_price(rule))
        return;
    tell(search, rule, &w);
    keep_rule(search, rule);
}

void rule_try(struct search *search, struct rule *rule)
{
    if (rule->follows) {
        try_following(search, rule);
        return;
    }
    struct sample *s = search->sample;
    struct weighing w = {0};
    if (search_is_stopped(search))
        return;
    rule->channel = s->channel;
    rule->region = (struct region){0};
    search->tried++;
    const struct count n = label_all(search, rule, &w, UNITS_LEAST);
    const size_t out = n.lost + n.against;
    rule->evidence = (struct evidence){.in = n.in, .out = out};
    if (n.in < UNITS_LEAST || !(may_be_better(rule, &n, &search->best) || may_be_better(rule, &n, &search->second)) ||
        (out * 10000 > n.in && !region_fit(s, search->labels, n.in * 4 > n.lost, &rule->region) &&
         !fit_rows(search, rule)))
        return;
    weigh(search, rule, &w); /* labels are as fit_rows() has left them */
    if (!w.in || !evidence_nearly_all(w.in, w.told))
        return;
    const double places = bits_of_places(w.in, s->wrong + s->right);
    double values = 0;
    for (int i = 0; i < 2; i++)
        values += (double)w.units[i] * -log2((double)(w.hit[i] + 1) / (double)(w.tried[i] + 1));
    rule->evidence.bits = is_constant(rule) ? places : w.nan ? fmax(places, values) : values;
    if (rule->evidence.units < UNITS_LEAST || !explains_its_price(search, rule) || w.n_pairs < pairs_least(rule, &w))
        return;
    /* Which lane a row takes follows from its number: rows of some lanes alone would be another rule. */
    for (int i = 0; i < rule->region.n && rule->kind == RULE_LANES; i++)
        if (rule->region.term[i].axis == AXIS_ROW)
            return;
    /* A descriptor is that of an operand, not of some of its rows. */
    for (int i = 0; i < rule->region.n && rule->map.kind == MAP_DESCRIBED; i++)
        if (rule->region.term[i].axis == AXIS_ROW || rule->region.term[i].axis == AXIS_COL)
            return;
    /* Bits are read as another type's in whole rows, if at all; or in some registers, and nothing else is wrong. */
    for (int i = 0; i < rule->region.n && rule->kind == RULE_OPERAND && rule->reads; i++)
        if (rule->region.term[i].axis == AXIS_COL && rule->evidence.share < 0.9999)
            return;
    /* A number that nobody knows was fitted to all that is wrong: it is no rule of a small part of it. */
    if (!is_constant(rule) && rule->cost >= CONSTANT_UNKNOWN_BITS && rule->evidence.share < 0.25)
        return;
    if (rule->guess && rule->evidence.share < 0.5)
        return;
    /* What a tile adds to U may lie where other tiles' V would put it, as inputs repeat themselves. */
    if (rule->kind == RULE_PLACE && rule->channel == asc_u && rule->evidence.share < 0.9999)
        return;
    /* All rows of a group have one scale: that one of them is another group's proves little. */
    if (rule->kind == RULE_QUANTIZED && rule->evidence.share < 0.9)
        return;
    /* What other items left is known of those that the sample shows, and of rows that exist. */
    if (rule->by_block && 4 * rule->evidence.in < search->sample->wrong)
        return;
    tell(search, rule, &w);
    keep_rule(search, rule);
}
