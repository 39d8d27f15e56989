/* Scales and codes that a launch makes otherwise itself: of other rows, by other limits, in a narrow type. */
#include "engine/oracle/search/propose.h"

#include "engine/base/quantize.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/element.h"

static double limit_of(const struct source *source)
{
    return 1 / (double)quantizer_of(codes_type(source->coding.quantized), 1, QUANTISE_DIVISION).scale;
}

/* Scales of some rows: of a warp's. */
static void propose_parts(struct search *search, struct rule rule, int rows)
{
    for (int n = 1; n <= PART_BITS; n++)
        for (int first = 0; 1 << (first + n) <= rows && first < 8; first++)
            for (int low = 0; low <= STANDS_FOR_HEAD; low++) {
                const int cols = search->sample->tiles[0].cols, of_lane = (cols << first) / 32;
                rule.lanes = (struct lane_bits){.first = first, .n = n, .low = low};
                rule.cost = 10 + n;
                if (rule_is_hopeless(search, &rule))
                    continue;
                rule_try(search, &rule);
                rule.lanes.down = low == STANDS_FOR_HEAD && of_lane > 0 && of_lane <= cols;
                if (rule.lanes.down)
                    rule_try(search, &rule);
            }
}

bool gives_wrong_ones(struct search *search, const struct rule *rule)
{
    const struct sample *s = search->sample;
    size_t wrong = 0, given = 0;
    for (int k = 0; k < s->n && !wrong; k++) {
        const struct sample_tile *t = &s->tiles[k];
        if (!wrong_cells(t) || !rule_forward(search, rule, t, search->want, search->bound))
            continue;
        for (size_t i = 0; i < sample_cells(t); i++) {
            wrong += t->cell[i] == CELL_WRONG;
            given += t->cell[i] == CELL_WRONG && element_within(t->type, t->got[i], search->want[i], search->bound[i]);
        }
    }
    return given * 4 > wrong * 3;
}

/* Codes that are made in a narrow type: the scale, its reciprocal, what is rounded to a code. */
static void propose_narrow_quotients(struct search *search, struct rule rule)
{
    enum { QUOTIENTS = 3, WAYS = 2 * QUOTIENTS * NARROW_SCALES };
    for (int i = 0; i < WAYS; i++) {
        const int way = i / 2 % QUOTIENTS;
        rule.type = i % 2 ? DTYPE_BF16 : DTYPE_F16;
        rule.rounds_result = way == 1;
        rule.wide_quotient = way == 2;
        rule.narrow_scale = (enum narrow_scale)(i / 2 / QUOTIENTS);
        if ((!rule.wide_quotient || rule.narrow_scale != NARROW_NONE) && gives_wrong_ones(search, &rule))
            rule_try(search, &rule);
    }
}

/* Codes that are cut off, and rounded down. */
static void propose_cut_codes(struct search *search, struct rule rule, bool steps)
{
    rule.cuts = true;
    for (int half = 0; half < (steps ? 2 : 1); half++) {
        rule.plus = half / 2.0;
        rule_try(search, &rule);
    }
    rule.plus = 0;
    rule.cuts = false;
    rule.down = steps;
    if (rule.down)
        rule_try(search, &rule);
}

/* Scales by another largest code. */
static void propose_largest_codes(struct search *search, struct rule rule, double own, bool steps)
{
    static const double limits[] = {126, 127, 127.5, 128, 254, 255, 256, 240, 224, 447, 448, 464, 480, 57344, 61440, 1};
    enum { LIMITS = sizeof limits / sizeof limits[0] };
    for (int half = 0; half < 2; half++) {
        if (!search_part(search))
            continue;
        for (int i = half * LIMITS / 2; i < (half + 1) * LIMITS / 2; i++) {
            rule.factor = own / limits[i];
            for (int wraps = 0; wraps < (steps ? 2 : 1); wraps++) {
                rule.wraps = wraps;
                rule.cost = 9 + wraps;
                if (wraps || fabs(rule.factor - 1) > 1e-6)
                    rule_try(search, &rule);
            }
        }
    }
}

static void propose_shares(struct search *search, struct rule rule, const struct source *source)
{
    static const int shares[] = {0, 1, 2, 4, 8, 16, 32, 64, 128};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        rule.share = shares[i];
        rule.cost = 8;
        if (rule.share != source->coding.rows && rule.share < source->rows.rows)
            rule_try(search, &rule);
    }
}

void propose_quantized(struct search *search)
{
    const struct sample *s = search->sample;
    const struct source *source = source_of(search, s->channel, head_of(search, &s->tiles[0], s->channel));
    struct rule rule = rule_new(RULE_QUANTIZED);
    if (s->channel > asc_v || !source || source->coding.quantized == ASC_QUANTIZED_GIVEN)
        return;
    const bool steps = dtype_is_step_code(codes_type(source->coding.quantized));
    rule.share = source->coding.rows;
    rule.cost = 5;
    if (search_part(search))
        propose_cut_codes(search, rule, steps);
    if (search_part(search))
        propose_narrow_quotients(search, rule);
    propose_largest_codes(search, rule, limit_of(source), steps);
    struct rule other = rule;
    other.is_signed = true;
    other.wraps = steps;
    other.cost = 6;
    if (search_part(search))
        rule_try(search, &other);
    if (search_part(search))
        propose_shares(search, rule, source);
    const bool parts = search_part(search) && rule.share == 0;
    if (parts && search->best.kind == RULE_NONE) {
        rule.cost = 8;
        propose_parts(search, rule, source->rows.rows);
        rule.rows.partly = true;
        rule.wraps = steps;
        rule.cost = 16;
        rule_try(search, &rule);
    }
}
