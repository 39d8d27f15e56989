/* Rules of edited operands and scores, and of lanes: numbers that are solved for, and ways that there are few of, each
   tried. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/values.h"
#include <stdlib.h>

/* Solves for a number in which the result is linear: from what the rule gives with 0 and with 1. */
static bool solve_linear(struct search *search, struct rule *rule, double *field, double right, bool of_tile, int tile)
{
    enum { GATHERED = 2048 };
    const struct sample *s = search->sample;
    double *room = search_room(search, GATHERED * sizeof *room), *zero = search->sizes[1]; /* no such rule has one */
    size_t n = 0;
    for (int k = of_tile ? tile : 0; room && k < (of_tile ? tile + 1 : s->n); k++) {
        const struct sample_tile *t = &s->tiles[k];
        const size_t cells = sample_cells(t), step = 1 + cells * (size_t)(of_tile ? 1 : s->n) / GATHERED;
        *field = 0;
        const bool gives = rule_forward(search, rule, t, zero, search->bound);
        *field = 1;
        if (!gives || !rule_forward(search, rule, t, search->want, search->bound))
            continue;
        for (size_t i = 0; i < cells && n < GATHERED; i += step) {
            const double slope = search->want[i] - zero[i];
            if (is_wrong_number(t, i) && fabs(slope) > 64 * t->bound[i])
                room[n++] = (t->got[i] - zero[i]) / slope;
        }
    }
    *field = median(room, room ? n : 0);
    return n >= 8 && isfinite(*field) && fabs(*field - right) > 1e-6;
}

/* field: a number of the rule, which gets it back as it was. */
static void try_linear(struct search *search, struct rule *rule, double *field, double right)
{
    const double cost = rule->cost;
    if (solve_linear(search, rule, field, right, false, 0)) {
        take_known(search, field, right, &rule->cost);
        rule_try(search, rule);
    }
    *field = right;
    rule->cost = cost;
}

/* An operand that is moved: codes by a whole or a half one, if it is as near as rounding leaves it. */
static void propose_moved(struct search *search, enum asc_channel operand)
{
    struct rule rule = rule_new(RULE_OPERAND);
    const bool coded = operand < asc_s && codes_use(search->sample->tiles[0].c, operand) != CODES_NONE;
    rule.rows.operand = operand;
    rule.cost = 5;
    if (coded && search->sample->channel == operand &&
        codes_input(search->sample->tiles[0].c, operand)->dtype == DTYPE_U8) {
        struct rule behind = rule;
        behind.plus = ASC_U8_MIDPOINT;
        behind.behind_scale = true;
        rule_try(search, &behind);
    }
    if (!solve_linear(search, &rule, &rule.plus, 0, false, 0))
        return;
    const double whole = rint(2 * rule.plus) / 2;
    if (coded && whole != 0 && fabs(rule.plus - whole) < 0.1) {
        rule.plus = whole;
        rule.cost += log2(2 + 2 * fabs(whole));
    } else {
        take_known(search, &rule.plus, 0, &rule.cost);
    }
    rule_try(search, &rule);
}

/* Q and K that are both read as another type, or codes of both that are moved: a zero point that is left out, or off by
   one. */
static void propose_both(struct search *search)
{
    static const double zero_points[] = {ASC_U8_MIDPOINT, -ASC_U8_MIDPOINT, 1, -1};
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    const struct oracle_case *c = search->sample->tiles[0].c;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct rule rule = rule_new(RULE_OPERAND);
        rule.rows.operand = asc_s;
        rule.reads = true;
        rule.type = types[i];
        rule.cost = 7;
        if ((int)types[i] != operand_type(c, asc_q))
            rule_try(search, &rule);
    }
    if (codes_use(c, asc_q) != CODES_RAW || codes_use(c, asc_k) != CODES_RAW)
        return;
    for (size_t i = 0; i < sizeof zero_points / sizeof zero_points[0]; i++) {
        struct rule rule = rule_new(RULE_OPERAND);
        rule.rows.operand = asc_s;
        rule.plus = zero_points[i];
        rule.cost = 7;
        rule_try(search, &rule);
    }
}

/* Q, K or V whose codes are read as another type. */
static void propose_read(struct search *search, enum asc_channel operand)
{
    static const enum dtype types[] = {DTYPE_U8, DTYPE_S8, DTYPE_I32, DTYPE_E4M3, DTYPE_E5M2};
    const struct oracle_case *c = search->sample->tiles[0].c;
    if (codes_use(c, operand) != CODES_DESCALED)
        return;
    const enum dtype own = codes_input(c, operand)->dtype;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct rule rule = rule_new(RULE_OPERAND);
        rule.rows.operand = operand;
        rule.reads = true;
        rule.type = types[i];
        rule.cost = 5;
        /* A code of u8 without its midpoint is one that is moved by 128, which propose_moved says. */
        if (types[i] != own && !(types[i] == DTYPE_I32 && own == DTYPE_U8))
            rule_try(search, &rule);
    }
}

void propose_halves(struct search *search, enum asc_channel operand)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    struct rule rule = rule_new(RULE_HALF);
    if (codes_use(c, operand) != CODES_DESCALED || codes_input(c, operand)->dtype != DTYPE_E2M1)
        return;
    rule.rows.operand = operand;
    rule.guess = search->sample->channel != operand;
    rule.cost = 5;
    for (int i = 0; i < HALF_READINGS; i++) {
        rule.half = (enum half_reading)i;
        rule_try(search, &rule);
    }
    if (rule.guess)
        return;
    enum { BITS_OF_CODE = 4, BITS_OF_READING = 7 };
    const int other = half_table(search->sample, rule.table);
    rule.half = HALF_TABLE;
    rule.cost += other * (BITS_OF_CODE + BITS_OF_READING);
    if (other > 0)
        rule_try(search, &rule);
}

/* Some registers of a fragment are packed as another type, or unpacked as one: what they hold is half of each so many
   of the terms that are summed. */
static void propose_read_parts(struct search *search, struct rule rule)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int terms = search->sample->channel == asc_s ? c->head_dim : c->bc;
    rule.of_terms = true;
    rule.reads = true;
    rule.cost += 2;
    for (int of = 2; of <= terms; of *= 2)
        for (int way = 0; way < 4; way++) {
            rule.cuts = way & 1;
            rule.keys = (struct term){.condition = way & 2 ? UPPER : LOWER, .a = of};
            if (gives_wrong_ones(search, &rule))
                rule_try(search, &rule);
        }
}

static void propose_operand(struct search *search, enum asc_channel operand)
{
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    static const double limits[] = {448, 57344, 65504, 127, 1};
    const int own = operand_type(search->sample->tiles[0].c, operand);
    struct rule rule = rule_new(RULE_OPERAND);
    rule.rows.operand = operand;
    rule.cost = 5;
    /* Where the type is narrow as it is, to round to it again is to cut off at its largest number. */
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        rule.limit = limits[i];
        rule_try(search, &rule);
    }
    rule.limit = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        rule.type = types[i];
        rule.cuts = true;
        rule_try(search, &rule);
        rule.cuts = false;
        if ((int)types[i] == own)
            continue;
        rule_try(search, &rule);
        rule.reads = true;
        rule_try(search, &rule);
        rule.cuts = true;
        rule_try(search, &rule);
        rule.reads = rule.cuts = false;
        if (own >= 0 && dtype_bytes((enum dtype)own) == dtype_bytes(types[i]) &&
            (search->sample->channel == asc_s || search->sample->channel == asc_u))
            propose_read_parts(search, rule);
    }
    propose_moved(search, operand);
}

/* An operand is rounded to a type as some times it: as it is multiplied before it is stored, and back again or not. */
static void propose_scaled(struct search *search, enum asc_channel operand, const double *units, int n,
                           const enum dtype *types, int n_types)
{
    for (int i = 0; i < n * n_types; i++) {
        int exponent = 0;
        struct rule rule = rule_new(RULE_OPERAND);
        rule.rows.operand = operand;
        rule.type = types[i % n_types];
        rule.weight = units[i / n_types];
        rule.cost = 8;
        const bool plain = rule.weight != 1 && fabs(frexp(rule.weight, &exponent)) == 0.5;
        if (!(plain && (rule.type == DTYPE_F16 || rule.type == DTYPE_BF16)) && !rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
        rule.factor = rule.weight;
        rule.weight = 1;
        if (rule.factor != 1 && operand <= asc_k && !rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

static void propose_scaled_operands(struct search *search)
{
    static const enum dtype halves[] = {DTYPE_F16, DTYPE_BF16}, codes[] = {DTYPE_I32, DTYPE_E4M3, DTYPE_E5M2};
    static const double limits[] = {127, 128, 255, 256, 448, 240};
    const struct sample_tile *t = &search->sample->tiles[0];
    const double scale = codes_plain_scale(t->c), s = t->x.s_natural;
    const double of_q[] = {scale, scale * M_LOG2E, M_LOG2E, sqrt(scale)}, of_s[] = {1, s, s * M_LOG2E};
    switch (search->sample->channel) {
    case asc_s:
        propose_scaled(search, asc_q, of_q, 4, halves, 2);
        propose_scaled(search, asc_k, of_q, 4, halves, 2);
        break;
    case asc_m:
    case asc_p:
        propose_scaled(search, asc_s, of_s, 3, halves, 2);
        break;
    case asc_l:
    case asc_u:
        propose_scaled(search, asc_p, limits, 6, codes, 3);
        break;
    case asc_o:
        propose_scaled(search, asc_u, of_s, 1, halves, 2);
        break;
    default:
        break;
    }
}

/* The cap by which an element became what it is: cap tanh(want / cap) rises with the cap. 0: none makes it. */
static double cap_of(double want, double got)
{
    double low = fabs(got), high = 1e6;
    if (!(want * got > 0) || !(fabs(got) < fabs(want)) || high * tanh(fabs(want) / high) < fabs(got))
        return 0;
    for (int i = 0; i < 100; i++)
        *((low + high) / 2 * tanh(2 * fabs(want) / (low + high)) < fabs(got) ? &low : &high) = (low + high) / 2;
    return (low + high) / 2;
}

/* A soft cap where there should be none, by the element that it moves most; a number of few digits, if one does it. */
static void propose_new_cap(struct search *search)
{
    const struct sample *s = search->sample;
    double cap = 0, most = 0;
    for (int i = 0; i < s->n; i++) {
        const struct sample_tile *t = &s->tiles[i];
        const double unit = values_natural_s(t->c);
        for (size_t k = 0; k < sample_cells(t); k++) {
            const double want = t->want[k] * unit, got = t->got[k] * unit, far = fabs(want) - fabs(got);
            if (t->cell[k] == CELL_WRONG && isfinite(want) && isfinite(got) && far > most) {
                most = far;
                cap = cap_of(want, got);
            }
        }
    }
    const double units[] = {1, fabs(values_natural_s(s->tiles[0].c))};
    for (int digits = 1; digits <= 7 && cap > 0; digits++)
        for (int i = 0; i < (units[1] == 1 ? 1 : 2); i++) {
            const double x = cap / units[i], step = pow(10, floor(log10(x)) + 1 - digits);
            struct rule rule = rule_new(RULE_SCORE);
            rule.limit = -units[i] * (digits == 7 ? x : round(x / step) * step);
            rule.cost = 6 + digits * log2(10);
            rule_try(search, &rule);
        }
}

static void propose_cap(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const double scale = codes_plain_scale(c);
    const double factors[] = {1, scale, 1 / scale, M_LOG2E, M_LN2, 2, 0.5},
                 caps[] = {0, 1, scale, 1 / scale, M_LOG2E, M_LN2, 2, 0.5, 1 / (c->softcap * c->softcap)};
    if (!(c->softcap > 0)) {
        propose_new_cap(search);
        return;
    }
    struct rule cut = rule_new(RULE_SCORE);
    cut.old_factor = 0;
    cut.limit = 1;
    cut.cost = 6;
    rule_try(search, &cut);
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
            struct rule rule = rule_new(RULE_SCORE);
            rule.old_factor = caps[i];
            rule.factor = factors[k];
            rule.cost = 6;
            if (caps[i] != 1 || factors[k] != 1)
                rule_try(search, &rule);
        }
    }
}

/* The slopes that tiles would need, looked up among those of all heads. */
static void propose_slopes(struct search *search)
{
    enum { PAIRS = 128 };
    const struct sample *s = search->sample;
    struct pair heads[PAIRS];
    size_t n = 0;
    for (int k = 0; k < s->n && n < PAIRS && search->slopes; k++) {
        struct rule rule = rule_new(RULE_SCORE);
        double best = INFINITY;
        int found = -1;
        if (!solve_linear(search, &rule, &rule.power, 1, true, k))
            continue;
        const double slope = rule.power * s->tiles[k].c->alibi_slope;
        for (int head = 0; head < search->heads; head++) {
            const double off = fabs((double)search->slopes[head] - slope);
            if (off < best && off < 1e-3 * fabs(slope)) {
                best = off;
                found = head;
            }
        }
        if (found >= 0)
            heads[n++] = (struct pair){s->tiles[k].at[AXIS_HEAD], found};
    }
    struct rule rule = rule_new(RULE_SCORE);
    rule.cost = n >= 4 ? 4 + map_fit(heads, n, search->heads, &rule.rows.head) : INFINITY;
    if (rule.cost < INFINITY && rule.rows.head.kind != MAP_SAME)
        rule_try(search, &rule);
}

/* The sink's weight: in another unit, without the maximum, without what P is multiplied by; or another head's. */
static void propose_sink(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const double scale = codes_plain_scale(c), off = bound_ln_factor(c);
    const double of_sink[] = {1, scale, 1 / scale, M_LOG2E, M_LN2, -1}, of_m[] = {1, 0, scale, M_LOG2E, M_LN2, -1};
    const double plus[] = {0, -INFINITY, -off};
    const int group = search->heads / search->kv_heads;
    const bool begins = search->sample->channel < asc_o;
    const struct map heads[] = {{.kind = MAP_QUOTIENT, .a = group},
                                {.kind = MAP_QUOTIENT, .a = group, .b = group},
                                {.kind = MAP_MODULO, .a = search->kv_heads},
                                {.kind = MAP_PLUS, .a = 1},
                                {.kind = MAP_PLUS, .a = -1},
                                {.kind = MAP_FIXED, .a = 0}};
    if (begins ? !local_begins_at_sink(c, 0) : !c->has_sink || c->conventions.l_sink == ASC_SINK_START)
        return;
    for (int i = 0; i < (begins ? 1 : off != 0 ? 3 : 2); i++)
        for (int k = 0; k < (plus[i] == -INFINITY ? 1 : 36); k += begins ? 6 : 1) {
            struct rule rule = rule_new(RULE_SINK);
            rule.factor = of_sink[k / 6];
            rule.power = of_m[k % 6];
            rule.plus = plus[i];
            rule.cost = plus[i] == -INFINITY ? 4 : 7;
            rule.guess = true;
            if (i || k)
                rule_try(search, &rule);
        }
    for (size_t i = 0; i < sizeof heads / sizeof heads[0] && search->sinks; i++) {
        struct rule rule = rule_new(RULE_SINK);
        rule.rows.head = heads[i];
        rule.cost = 7;
        rule.guess = true;
        rule_try(search, &rule);
    }
}

static void propose_biases(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    struct rule rule = rule_new(RULE_SCORE);
    rule.cost = 5;
    if (c->bias.data) {
        try_linear(search, &rule, &rule.weight, 1);
        for (int other = 0; other < OTHER_BIASES; other++) {
            rule.bias_of = other;
            rule.weight = 1;
            rule_try(search, &rule);
        }
    }
    rule.bias_of = BIAS_OWN;
    rule.weight = 1;
    for (int type = 0; type < 2 && c->bias.data; type++) {
        rule.type = type ? DTYPE_BF16 : DTYPE_F16;
        if (rule.type != c->bias.dtype)
            rule_try(search, &rule);
    }
    rule.type = DTYPE_COUNT;
    if (c->bias.data) {
        propose_bias_places(search);
    }
    if (c->alibi_slope != 0) {
        try_linear(search, &rule, &rule.power, 1);
        propose_slopes(search);
        propose_distances(search);
    }
}

/* The operand of a loop that is unrolled or runs in a pipeline may be another turn's. */
static void propose_turn(struct search *search, enum asc_channel operand)
{
    for (int turns = -1; turns <= 1; turns += 2) {
        struct rule rule = rule_new(RULE_OPERAND);
        rule.rows.operand = operand;
        rule.turns = turns;
        rule.cost = 4;
        rule_try(search, &rule);
    }
}

/* Scores of another unit on their way to the maximum: what rows say whose maximum they have become. */
static void propose_unit(struct search *search)
{
    enum { GATHERED = 512 };
    const struct sample *s = search->sample;
    double ratios[GATHERED];
    size_t n = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        if (!entry_value(s, t, ENTRY_TILE_TOP, search->rows[0]))
            continue;
        for (int r = 0; r < t->rows && n < GATHERED; r++)
            if (is_wrong_number(t, (size_t)r) && t->got[r] > t->x.m_prev.value[r] && search->rows[0][r] != 0)
                ratios[n++] = t->got[r] / search->rows[0][r];
    }
    struct rule rule = rule_new(RULE_OPERAND);
    rule.rows.operand = asc_s;
    rule.factor = median(ratios, n);
    rule.cost = 5;
    take_known(search, &rule.factor, 1, &rule.cost);
    if (n >= 8 && rule.factor > 0 && rule.factor != 1)
        rule_try(search, &rule);
}

void propose_edits(struct search *search)
{
    switch (search->sample->channel) {
    case asc_q:
    case asc_k:
    case asc_v:
        if (search_part(search))
            propose_read(search, search->sample->channel);
        if (search_part(search))
            propose_halves(search, search->sample->channel);
        if (search_part(search))
            propose_moved(search, search->sample->channel);
        break;
    case asc_m:
        if (search_part(search))
            propose_unit(search);
        if (search_part(search))
            propose_turn(search, asc_s);
        if (search_part(search))
            propose_sink(search);
        break;
    case asc_alpha:
        if (search_part(search))
            propose_sink(search);
        break;
    case asc_p:
        if (search_part(search))
            propose_turn(search, asc_s);
        break;
    case asc_s:
        if (search_part(search))
            propose_cap(search);
        if (search_part(search))
            propose_biases(search);
        if (search_part(search))
            propose_places_of_score(search, try_linear);
        if (search_part(search))
            propose_both(search);
        if (search_part(search))
            propose_operand(search, asc_q);
        if (search_part(search))
            propose_operand(search, asc_k);
        break;
    case asc_l:
        if (search_part(search))
            propose_turn(search, asc_p);
        if (search_part(search))
            propose_operand(search, asc_p);
        break;
    case asc_u:
        if (search_part(search))
            propose_turn(search, asc_p);
        if (search_part(search))
            propose_operand(search, asc_p);
        if (search_part(search))
            propose_operand(search, asc_v);
        break;
    case asc_o:
    case asc_lse:
        if (search_part(search))
            propose_sink(search);
        break;
    default:
        break;
    }
    if (search_part(search) && !search_is_settled(search))
        propose_scaled_operands(search);
}

bool is_nearly_right(const struct sample *s)
{
    size_t near = 0, wrong = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        for (size_t i = 0; i < sample_cells(t); i++) {
            wrong += t->cell[i] == CELL_WRONG;
            near += t->cell[i] == CELL_WRONG &&
                    (!isfinite(t->got[i]) || fabs(t->got[i] - t->want[i]) <= 0x1p-4 * fabs(t->want[i]));
        }
    }
    return near * 2 >= wrong;
}

/* Sums that are rounded, or cut off, to a type after every so many terms: 1, 2, 4, .. all. */
static void propose_narrow_sums(struct search *search)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_F16};
    const bool is_s = search->sample->channel == asc_s;
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int all = is_s ? c->head_dim : c->bc;
    struct rule rule = rule_new(RULE_SUMMED);
    rule.cost = 9;
    for (int i = 0; i < 4; i++)
        for (rule.keys.a = 0; rule.keys.a < BEFORES; rule.keys.a++)
            for (rule.share = rule.keys.a >= BEFORE_ALONE ? all : 1; rule.share < 2 * all; rule.share *= 2) {
                if (is_s && rule.keys.a != BEFORE_ROUNDED && rule.keys.a != BEFORE_PRODUCTS)
                    break;
                rule.type = types[i / 2];
                rule.cuts = i % 2;
                if (!rule_is_hopeless(search, &rule))
                    rule_try(search, &rule);
            }
}

void propose_sums(struct search *search)
{
    const int most = search->sample->channel == asc_s ? 3 : search->sample->channel == asc_u ? PRODUCT_WAYS : 0;
    if (!most || !is_nearly_right(search->sample))
        return;
    for (int i = 0; i < most; i++) {
        struct rule rule = rule_new(RULE_SUMMED);
        rule.keys.a = i;
        rule.cost = 5;
        if (!rule_is_hopeless(search, &rule))
            rule_try(search, &rule);
    }
    if (!search_is_settled(search))
        propose_narrow_sums(search);
}

/* The bits that a number below `size` has; 0 where that is no power of 2. */
static int bits_below(int size)
{
    return size > 0 && !(size & (size - 1)) ? __builtin_ctz((unsigned)size) : 0;
}

/* Neighboring bits of a number that has `all`. */
static void propose_bits(struct search *search, int all, int least, int most, struct rule rule)
{
    for (int n = least; n <= most && n <= all; n++)
        for (int first = 0; first + n <= all; first++) {
            rule.lanes.first = first;
            rule.lanes.n = n;
            rule.weight = 1;
            rule_try(search, &rule);
            /* A shuffle that is done over one bit twice counts the same lanes twice. */
            rule.weight = 1 << n;
            if (search->sample->channel >= asc_o)
                rule_try(search, &rule);
        }
}

/* A shuffle asks another row's lane, which has the same columns. */
static void propose_partners(struct search *search, int all, struct rule rule)
{
    enum { MOST_BITS = 2 };
    const int rows = search->sample->tiles[0].c->in_q.rows;
    rule.cost += 3;
    for (rule.lanes.partner = 1; rule.lanes.partner < rows; rule.lanes.partner *= 2)
        for (int n = 1; n <= MOST_BITS; n++)
            for (rule.lanes.always = 0; rule.lanes.always < 1 << n; rule.lanes.always++)
                propose_bits(search, all, n, n, rule);
}

/* Which of `all` bits of l's lanes meet in an output. */
static void propose_lanes_of_l(struct search *search, int all, struct rule rule)
{
    enum { SHIFTS = 8 };
    for (int lane = 0; lane < 1 << all && all; lane++) {
        rule.lanes.always = lane;
        propose_bits(search, all, 1, all, rule);
    }
    rule.lanes.always = -1;
    for (int shift = 0; shift < SHIFTS; shift++)
        for (int low = 1; low <= all; low++) {
            rule.lanes.shift = shift;
            rule.lanes.low = low;
            propose_bits(search, all, 1, all, rule);
        }
}

/* Lanes give each other their sums in a narrow type: of l over any bits of the column, of O and LSE over all of l's. */
static void propose_exchanged_sums(struct search *search, int all, struct rule rule)
{
    enum { SHIFTS = 8, MOST_BITS = 5 };
    const bool is_l = search->sample->channel == asc_l;
    rule.cost += 4;
    for (int way = 0; way < 12; way++) {
        rule.type = way & 1 ? DTYPE_BF16 : DTYPE_F16;
        rule.lanes.down = way & 2;
        rule.cuts = way / 4 == 1;
        rule.rounds_result = way / 4 == 2; /* then all lanes have the same */
        for (rule.lanes.n = is_l ? 1 : all; rule.lanes.n <= all && rule.lanes.n <= MOST_BITS; rule.lanes.n++)
            for (rule.lanes.first = 0; rule.lanes.first + rule.lanes.n <= all; rule.lanes.first++) {
                for (int lane = 0; lane < (rule.rounds_result || is_l ? 1 : 1 << all); lane++) {
                    rule.lanes.always = lane;
                    if (gives_wrong_ones(search, &rule))
                        rule_try(search, &rule);
                }
                rule.lanes.always = -1;
                for (int i = 0; i < SHIFTS * all && !is_l && !rule.rounds_result; i++) {
                    rule.lanes.shift = i % SHIFTS;
                    rule.lanes.low = 1 + i / SHIFTS;
                    if (gives_wrong_ones(search, &rule))
                        rule_try(search, &rule);
                }
            }
    }
}

/* Sums that are merged as maxima are. */
static void propose_largest_sums(struct search *search, int all, struct rule rule)
{
    enum { MOST_BITS = 5 };
    rule.lanes.largest = true;
    rule.lanes.always = 0;
    for (rule.lanes.n = search->sample->channel == asc_l ? 1 : all; rule.lanes.n <= all && rule.lanes.n <= MOST_BITS;
         rule.lanes.n++)
        for (rule.lanes.first = 0; rule.lanes.first + rule.lanes.n <= all; rule.lanes.first++)
            if (rule.lanes.n > 0)
                rule_try(search, &rule);
}

void propose_lanes(struct search *search)
{
    enum { MOST_BITS = 5 };
    const struct oracle_case *c = search->sample->tiles[0].c;
    const enum asc_channel ch = search->sample->channel;
    struct rule rule = rule_new(RULE_LANES);
    rule.cost = 6;
    rule.lanes.always = -1;
    if (ch == asc_m || ch == asc_p || ch == asc_l) {
        /* Of two lanes alone, one is a half of the keys: a rule of keys. */
        propose_bits(search, bits_below(c->bc), ch == asc_p ? 1 : 2, MOST_BITS, rule);
        if (ch != asc_p)
            propose_partners(search, bits_below(c->bc), rule);
        if (ch == asc_l && c->conventions.l_lanes <= 1)
            propose_largest_sums(search, bits_below(c->bc), rule);
        if (ch == asc_l && c->conventions.l_lanes <= 1 && is_nearly_right(search->sample))
            propose_exchanged_sums(search, bits_below(c->bc), rule);
        rule.lanes.down = true;
        if (ch == asc_p)
            propose_bits(search, bits_below(c->bc), 2, MOST_BITS, rule);
        return;
    }
    const int all =
        (ch == asc_o || ch == asc_lse) && c->conventions.l_lanes > 1 ? bits_below(c->conventions.l_lanes) : 0;
    rule.cost = 8;
    propose_lanes_of_l(search, all, rule);
    propose_largest_sums(search, all, rule);
    if (all && is_nearly_right(search->sample))
        propose_exchanged_sums(search, all, rule);
    rule.cost += 3;
    for (rule.lanes.partner = 1; rule.lanes.partner < c->in_q.rows && all; rule.lanes.partner *= 2)
        propose_lanes_of_l(search, all, rule);
}
