/* Another scale: what Q, K or V would have to be multiplied by, looked up among all that the launch has. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/search/solve.h"
#include "engine/oracle/values.h"
#include <stdio.h>
#include <stdlib.h>

enum { GATHERED = 4096 };

/* Where one scale of an operand comes in: a row of Q, K, V and, for Q, of S; for K a column of S; else all of a tile.
 */
struct lines {
    bool by_col;
    int n, across;
};

static struct lines lines_of(const struct sample_tile *t, enum asc_channel stage, enum asc_channel operand)
{
    const bool by_col = stage == asc_s && operand == asc_k;
    const int n = stage > asc_s ? 1 : by_col ? t->cols : t->rows;
    return (struct lines){by_col, n, (int)sample_cells(t) / n};
}

/* By what the scale of a line is wrong, NaN if it is not known: the median of what its wrong elements say, behind what
   they would be under a scale of 0; of exponentials, in the exponent. */
static double ratio_of_line(struct search *search, const struct sample_tile *t, struct lines lines, int line,
                            double *room)
{
    const bool exponent = search->sample->channel == asc_alpha || search->sample->channel == asc_p;
    const size_t step = 1 + (size_t)lines.across / GATHERED;
    size_t n = 0;
    for (size_t k = 0; k < (size_t)lines.across; k += step) {
        const size_t i = lines.by_col ? k * (size_t)t->cols + (size_t)line : (size_t)line * (size_t)lines.across + k;
        const double none = search->want[i], got = t->got[i], want = t->want[i], bound = t->bound[i];
        const double told = exponent ? want * log(want / none) : want - none;
        if (is_wrong_number(t, i) && fabs(told) > 64 * bound && !(exponent && got < 256 * bound))
            room[n++] = exponent ? log(got / none) / log(want / none) : (got - none) / (want - none);
    }
    return median(room, n);
}

/* The scale nearest to x, where the next other one is 8 times as far off. */
static const struct source *find_scale(const struct search *search, double x, int *group)
{
    const struct source *found = NULL;
    double best = INFINITY, next = INFINITY, value = NAN;
    for (int i = 0; i < search->n_sources; i++) {
        const struct source *source = &search->sources[i];
        for (int g = 0; is_coded(source) && g < source->coding.groups; g++) {
            const double scale = (double)source->coding.scale[g], off = fabs(scale - x);
            if (off < best) {
                next = scale == value ? next : best;
                best = off;
                value = scale;
                found = source;
                *group = g;
            } else if (scale != value && off < next) {
                next = off;
            }
        }
    }
    return best * 8 < next && best < 1e-3 * fabs(x) ? found : NULL;
}

/* Scales that are left out, or that come in twice. */
static void propose_powers(struct search *search, enum asc_channel operand)
{
    for (int power = 0; power <= 2; power += 2) {
        struct rule rule = rule_new(RULE_SCALE);
        rule.rows.operand = rule.rows.tensor = operand;
        rule.power = power;
        rule.cost = 4;
        rule_try(search, &rule);
    }
}

/* Whether the scale of an operand comes in at a stage. */
static bool comes_in(const struct oracle_case *c, enum asc_channel operand, enum asc_channel stage)
{
    const struct asc_conventions *declared = &c->conventions;
    switch (stage) {
    case asc_q:
    case asc_k:
    case asc_v:
        return stage == operand && codes_use(c, operand) != CODES_NONE;
    case asc_s:
        return operand != asc_v && codes_use(c, operand) != CODES_NONE;
    case asc_u:
        return operand == asc_v &&
               (codes_use(c, asc_v) == CODES_RAW ? declared->v_descale == ASC_V_PRODUCT : c->v_codes.parts > 1);
    case asc_o:
        return operand == asc_v && (codes_use(c, asc_v) == CODES_RAW ? declared->v_descale == ASC_V_OUTPUT
                                                                     : codes_use(c, asc_v) == CODES_DESCALED);
    case asc_alpha:
    case asc_p:
    case asc_lse:
        return operand != asc_v && codes_use(c, operand) == CODES_RAW && declared->qk_descale == ASC_QK_FOLDED;
    default:
        return false;
    }
}

/* Scales of e4m3 and e8m0 that are taken for others. */
static void propose_reading_of(struct search *search, enum asc_channel operand)
{
    const struct coding *coding = codes_of(search->sample->tiles[0].c, operand);
    const bool is_e8m0 = coding->scale_type == ASC_SCALE_E8M0;
    struct rule rule = rule_new(RULE_SCALE);
    rule.rows.operand = rule.rows.tensor = operand;
    rule.cost = 4;
    const bool is_f32 = coding->scale_type == ASC_SCALE_F32;
    for (int i = is_f32 ? SCALE_IN_F16 : SCALE_AS_IT_IS + 1; i < (is_f32 ? SCALE_READINGS : SCALE_IN_F16); i++) {
        rule.scale_reading = (enum scale_reading)i;
        if (is_f32) {
            if (!rule_is_hopeless(search, &rule))
                rule_try(search, &rule);
        } else if (i != (is_e8m0 ? SCALE_AS_E8M0 : SCALE_AS_E4M3) &&
                   (is_e8m0 ? i < SCALE_OF_BLOCK : i < SCALE_BIAS_126 || i >= SCALE_OF_BLOCK))
            rule_try(search, &rule);
    }
}

void propose_readings(struct search *search)
{
    const struct sample *s = search->sample;
    for (int ch = asc_q; ch <= asc_v; ch++)
        if (comes_in(s->tiles[0].c, (enum asc_channel)ch, s->channel))
            propose_reading_of(search, (enum asc_channel)ch);
}

/* ---- scales that are many: which one a place has is voted for ---- */

enum { TOLD = 512, NEAR = 4096, PAIRS_SURE = 4 };

/* A scale's place: head through the batches, group of rows, part of a row; and what was taken there, within `off`. */
struct told {
    int place[SCALE_AXES], query; /* the head of the query */
    double scale, off;
};

/* By what the scale of columns from .. to - 1 of a row of Q, K or V is wrong, as ratio_of_line(). 1 where nothing is.
 */
static double ratio_of_part(const struct sample_tile *t, int row, int from, int to, double *room)
{
    size_t n = 0;
    bool wrong = false;
    for (int col = from; col < to; col++) {
        const size_t i = (size_t)row * (size_t)t->cols + (size_t)col;
        const double size = fabs(t->want[i]);
        wrong |= is_wrong_number(t, i);
        if (!(size > 64 * t->bound[i]) || !isfinite(t->got[i]) || n == GATHERED)
            continue;
        room[n++] = t->got[i] / t->want[i];
    }
    return n == 0 ? NAN : wrong ? median(room, n) : 1;
}

/* Places spread over the sample, those that are right too: they tell of the map as well. */
static size_t tell_places(struct search *search, enum asc_channel operand, struct told *told, double *room)
{
    const struct sample *s = search->sample;
    size_t n = 0, all = 0;
    /* A ratio is as far off as values are rounded; those of few codes all lie on one side. */
    double unit = 0, tiny;
    const int type = values_type(s->tiles[0].c, operand);
    if (type >= 0)
        bound_narrow((enum dtype)type, &unit, &tiny);
    const double off = unit + 8 * BOUND_U;
    for (int k = 0; k < s->n; k++) {
        const struct source *own = source_of(search, operand, head_of(search, &s->tiles[k], operand));
        all += is_coded(own) ? (size_t)s->tiles[k].rows * (size_t)own->coding.parts : 0;
    }
    size_t step = 1 + all / TOLD, i = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const struct source *own = source_of(search, operand, head_of(search, t, operand));
        if (!is_coded(own))
            continue;
        const int parts = own->coding.parts, dims = own->coding.dims > 0 ? own->coding.dims : t->cols;
        while (parts > 1 && step > 1 && (int)step % parts == 0) /* each part has its turn */
            step++;
        for (; i < (size_t)t->rows * (size_t)parts && n < TOLD; i += step) {
            const int row = (int)i / parts, part = (int)i % parts,
                      group = group_of(&own->coding, row_of_head(t, operand, row)),
                      to = (part + 1) * dims < t->cols ? (part + 1) * dims : t->cols;
            struct told *it = &told[n];
            *it = (struct told){.place = {own->head, group, part}, .query = head_of(search, t, asc_q)};
            const double scale = (double)own->coding.scale[group * parts + part],
                         ratio = ratio_of_part(t, row, part * dims, to, room);
            it->scale = ratio * scale;
            it->off = off * fabs(it->scale);
            n += isfinite(ratio);
        }
        i = i >= (size_t)t->rows * (size_t)parts ? i - (size_t)t->rows * (size_t)parts : 0;
    }
    return n;
}

static bool gives(const struct search *search, const struct rule *rule, const struct told *told)
{
    const int query = map_at(&rule->rows.head, rule->rows.by_query ? told->query : told->place[0]);
    return fabs(scale_by(search, rule, told->place, query) - told->scale) <= told->off;
}

static size_t count_given(const struct search *search, const struct rule *rule, const struct told *told, size_t n)
{
    size_t given = 0;
    for (size_t i = 0; i < n; i++)
        given += gives(search, rule, &told[i]);
    return given;
}

static struct map *map_of_axis(struct rule *rule, int axis)
{
    return axis == 0 ? &rule->rows.head : axis == 1 ? &rule->map : &rule->col_map;
}

/* Along one axis the scale is another place's. Which place each has, the places that share its number say: most of them
   have to agree, and the nearest counts, scales being equal by chance. Returns the cost of the map, or INFINITY. */
static double vote(struct search *search, struct rule *rule, int axis, const struct told *told, size_t n)
{
    const struct source *own = source_of(search, rule->rows.operand, told[0].place[0]);
    const int limit = axis == 0   ? count_sources(search, rule->rows.operand)
                      : axis == 1 ? own->coding.groups
                                  : own->coding.parts;
    struct pair pairs[TOLD];
    size_t same[TOLD], n_pairs = 0;
    for (size_t i = 0; i < n; i++) {
        const int from = told[i].place[axis];
        size_t seen = 0, most = 0, all = 0;
        while (seen < n_pairs && pairs[seen].from != from)
            seen++;
        if (seen < n_pairs)
            continue;
        for (size_t k = i; k < n; k++)
            if (told[k].place[axis] == from)
                same[all++] = k;
        int best = from;
        for (int away = 0; away < limit && away < NEAR && most < all; away++)
            for (int sign = 1; sign >= (away ? -1 : 1); sign -= 2) {
                const int to = from + sign * away;
                size_t met = 0;
                *map_of_axis(rule, axis) = (struct map){.kind = MAP_FIXED, .a = to};
                for (size_t k = 0; k < all && to >= 0 && to < limit; k++)
                    met += gives(search, rule, &told[same[k]]);
                if (met > most) {
                    most = met;
                    best = to;
                }
            }
        if (4 * most >= 3 * all)
            pairs[n_pairs++] = (struct pair){from, best};
    }
    /* Few pairs are sure, as each stands for many places. */
    for (size_t i = 0; n_pairs > 0 && n_pairs < PAIRS_SURE; i++)
        pairs[n_pairs++] = pairs[i];
    return map_fit(pairs, n_pairs, limit, map_of_axis(rule, axis));
}

/* Scales are read at another number within the head: some numbers away, in lines of another length, or turned. */
static void propose_numbers(struct search *search, struct rule rule, const struct told *told, size_t n)
{
    const struct source *own = source_of(search, rule.rows.operand, told[0].place[0]);
    const int parts = own->coding.parts, groups = own->coding.groups;
    struct map best = {.kind = MAP_SAME};
    size_t most = n * 9 / 10;
    rule.rows.flat = rule.rows.whole = true;
    for (int i = -NEAR; i <= NEAR + 2 * parts + 1; i++) {
        const int line = i - NEAR - 1;
        rule.map = i <= NEAR   ? (struct map){.kind = MAP_PLUS, .a = i}
                   : line == 0 ? (struct map){.kind = MAP_TURNED, .a = parts, .b = groups}
                               : (struct map){.kind = MAP_PITCH, .a = parts, .b = line};
        if (i == 0 || line == parts || abs(i) > groups * parts + 2 * parts + NEAR)
            continue;
        const size_t given = count_given(search, &rule, told, n);
        if (given > most) {
            most = given;
            best = rule.map;
        }
    }
    rule.map = best;
    rule.cost = 14;
    if (best.kind != MAP_SAME)
        rule_try(search, &rule);
}

/* Scales are read through all heads as if a group had another number of parts, or a head of scales. */
static void propose_lines(struct search *search, struct rule rule, const struct told *told, size_t n)
{
    const struct source *own = source_of(search, rule.rows.operand, told[0].place[0]);
    const int parts = own->coding.parts, lines[] = {parts, own->coding.groups * parts};
    rule.rows.flat = true;
    for (int i = 0; i < 2; i++)
        for (int line = 1; line <= 2 * lines[i] && lines[i] > 1; line++) {
            rule.map = (struct map){.kind = MAP_PITCH, .a = lines[i], .b = line};
            rule.cost = 6 + log2(4.0 * lines[i]);
            if (line != lines[i] && count_given(search, &rule, told, n) * 10 > n * 9)
                rule_try(search, &rule);
        }
}

/* Scales lie row by row, and are read as tensor cores have them. */
static void propose_tiled(struct search *search, struct rule rule)
{
    const struct source *own =
        source_of(search, rule.rows.operand, head_of(search, &search->sample->tiles[0], rule.rows.operand));
    if (own->coding.parts == 1 || own->coding.groups == 1)
        return;
    rule.rows.flat = rule.rows.whole = true;
    rule.map = (struct map){.kind = MAP_TILED, .a = own->coding.parts};
    rule.cost = 5;
    rule_try(search, &rule);
}

/* Scales are looked up as if each stood for another number of rows and elements, or for rows further on. */
static void propose_blocks(struct search *search, enum asc_channel operand)
{
    const struct coding *own = codes_of(search->sample->tiles[0].c, operand);
    const int D = oracle_dim(search->sample->tiles[0].c, operand), dims = own->parts > 1 ? own->dims : D;
    const int rows[] = {own->rows, 2 * own->rows, 4 * own->rows, own->rows / 2, own->rows / 4, own->dims};
    const int cols[] = {dims, 2 * dims, 4 * dims, dims / 2, dims / 4, own->rows};
    enum { SIZES = sizeof rows / sizeof rows[0] };
    struct rule rule = rule_new(RULE_SCALE);
    rule.rows.operand = rule.rows.tensor = operand;
    rule.cost = 11;
    for (int i = 1; i < SIZES * SIZES && own->rows > 0; i++) {
        rule.blocks = (struct blocks){.rows = rows[i % SIZES], .dims = cols[i / SIZES]};
        if (rule.blocks.rows > 0 && rule.blocks.dims > 0 && (own->parts > 1 || i < SIZES) &&
            (rule.blocks.rows != own->rows || rule.blocks.dims != dims))
            rule_try(search, &rule);
    }
    const int plus[] = {1, -1, own->rows - 1};
    for (int i = 0; i < 5 && own->rows > 0; i++) {
        rule.blocks = (struct blocks){own->rows, dims, i < 3 ? plus[i] : 0, i < 3 ? 0 : plus[i - 3]};
        if (i < 3 || own->parts > 1)
            rule_try(search, &rule);
    }
}

/* What is multiplied was a code and is recorded nowhere: a few places that people take. */
static void propose_unseen(struct search *search, struct rule rule)
{
    const struct source *own =
        source_of(search, rule.rows.operand, head_of(search, &search->sample->tiles[0], rule.rows.operand));
    const int parts = own->coding.parts, groups = own->coding.groups;
    const struct map maps[] = {{.kind = MAP_PLUS, .a = 1},
                               {.kind = MAP_PLUS, .a = -1},
                               {.kind = MAP_ROTATED, .a = 1, .b = parts},
                               {.kind = MAP_ROTATED, .a = parts - 1, .b = parts},
                               {.kind = MAP_FIXED},
                               {.kind = MAP_CLAMPED, .b = parts - 2}};
    rule.guess = true;
    rule.cost = 8;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        for (int axis = 1; axis < SCALE_AXES; axis++) {
            struct rule moved = rule;
            *map_of_axis(&moved, axis) = maps[i];
            if (axis == 1 && i >= 2)
                *map_of_axis(&moved, axis) =
                    (struct map){.kind = MAP_MODULO, .a = i + 1 < (size_t)groups ? 1 << (i - 1) : groups};
            if (!rule_is_hopeless(search, &moved))
                rule_try(search, &moved);
        }
    propose_tiled(search, rule);
    rule.rows.flat = rule.rows.whole = true;
    rule.map = (struct map){.kind = MAP_TURNED, .a = parts, .b = groups};
    if (!rule_is_hopeless(search, &rule))
        rule_try(search, &rule);
}

static bool is_found(const struct search *search)
{
    return search->best.kind == RULE_SCALE && search->best.evidence.share >= 0.9999;
}

/* Groups are counted within a page: where many groups have the same scale no vote tells. */
static void propose_within_page(struct search *search, struct rule rule, const struct told *told, size_t n)
{
    const struct coding *own = &source_of(search, rule.rows.operand, told[0].place[0])->coding;
    rule.map = (struct map){.kind = MAP_MODULO, .a = own->rows > 0 ? search->page_size / own->rows : 0};
    rule.cost = 9;
    if (rule.map.a > 0 && rule.map.a < own->groups && 4 * count_given(search, &rule, told, n) >= 3 * n)
        rule_try(search, &rule);
}

static void propose_places(struct search *search, enum asc_channel operand, double *room)
{
    struct told *told = search_room(search, TOLD * sizeof *told);
    struct rule rule = rule_new(RULE_SCALE);
    rule.rows.operand = rule.rows.tensor = operand;
    const size_t n = told && search->sample->channel == operand ? tell_places(search, operand, told, room) : 0;
    if (n == 0 && told && search->sample->channel > asc_v)
        propose_unseen(search, rule);
    if (n > 0)
        propose_tiled(search, rule);
    for (int axis = SCALE_AXES - 1; axis >= 0 && n > 0; axis--) {
        struct rule moved = rule;
        moved.cost = 5 + vote(search, &moved, axis, told, n);
        if (moved.cost < INFINITY && map_of_axis(&moved, axis)->kind != MAP_SAME)
            rule_try(search, &moved);
    }
    if (n > 0 && search->page_table) {
        struct rule paged = rule;
        paged.rows.paged = true;
        paged.cost = 10;
        if (4 * count_given(search, &paged, told, n) >= 3 * n)
            rule_try(search, &paged);
        propose_within_page(search, rule, told, n);
    }
    if (n > 0 && !is_found(search))
        propose_lines(search, rule, told, n);
    if (n > 0 && !is_found(search))
        propose_numbers(search, rule, told, n);
    if (n > 0 && !is_found(search))
        propose_blocks(search, operand);
}

/* The groups whose scales are taken most often: beside the own one, the first, or counted from the other end. Where a
   tile has one scale, few tiles do not tell which it is. */
static void propose_usual_groups(struct search *search, enum asc_channel operand)
{
    const int groups = codes_of(search->sample->tiles[0].c, operand)->groups;
    const struct map usual[] = {{.kind = MAP_PLUS, .a = -1},
                                {.kind = MAP_PLUS, .a = 1},
                                {.kind = MAP_FIXED, .a = 0},
                                {.kind = MAP_MIRRORED, .a = groups - 1}};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && groups > 1; i++) {
        struct rule rule = rule_new(RULE_SCALE);
        rule.rows.operand = rule.rows.tensor = operand;
        rule.map = usual[i];
        rule.guess = true;
        rule.cost = 7;
        rule_try(search, &rule);
    }
}

/* The same of heads: that of the first sequence, of the head beside, the first one. */
static void propose_usual_heads(struct search *search, enum asc_channel operand)
{
    const int heads = heads_of(search, operand), all = count_sources(search, operand);
    const struct map usual[] = {{.kind = MAP_MODULO, .a = heads},
                                {.kind = MAP_PLUS, .a = -1},
                                {.kind = MAP_PLUS, .a = 1},
                                {.kind = MAP_FIXED, .a = 0}};
    for (size_t i = heads < all ? 0 : 1; i < sizeof usual / sizeof usual[0] && all > 1; i++) {
        struct rule rule = rule_new(RULE_SCALE);
        rule.rows.operand = rule.rows.tensor = operand;
        rule.rows.head = usual[i];
        rule.rows.of_first = i == 0;
        rule.guess = true;
        rule.cost = i == 0 ? 6 : 7;
        rule_try(search, &rule);
    }
}

/* Behind the n pairs of heads that are wrong one for each in which all is right: it has its own scale. Returns how many
   there are then. */
static size_t add_right_heads(const struct search *search, enum asc_channel operand, struct pair *heads,
                              struct pair *queries, size_t n, size_t most)
{
    const struct sample *s = search->sample;
    for (int k = 0; k < s->n && n < most; k++) {
        const int query = head_of(search, &s->tiles[k], asc_q), own = head_of(search, &s->tiles[k], operand);
        bool is_right = true;
        for (int i = 0; i < s->n && is_right; i++)
            is_right = head_of(search, &s->tiles[i], asc_q) != query || (i >= k && !wrong_cells(&s->tiles[i]));
        if (!is_right)
            continue;
        heads[n] = (struct pair){own, own};
        queries[n++] = (struct pair){query, own};
    }
    return n;
}

/* A map that was fitted to what is wrong may lead from a head in which all is right to none at all; a difference does
   so at an end, whatever it is of. */
static bool leads_nowhere(const struct search *search, const struct rule *rule)
{
    const struct sample *s = search->sample;
    for (int k = 0; k < s->n && rule->rows.head.kind != MAP_PLUS; k++)
        if (!wrong_cells(&s->tiles[k]) &&
            !is_coded(source_of(search, rule->rows.tensor, head_from(search, rule, &s->tiles[k], rule->rows.operand))))
            return true;
    return false;
}

static void try_heads(struct search *search, struct rule rule, const struct pair *pairs, size_t n)
{
    const int kv_heads = search->kv_heads, group = kv_heads > 0 ? search->heads / kv_heads : 1;
    double cost = INFINITY;
    if (rule.rows.by_query && group > 1)
        cost = map_fit_shared(pairs, n, group, kv_heads, &rule.rows.head);
    if (!(cost < INFINITY))
        cost = map_fit(pairs, n, search->n_sources, &rule.rows.head);
    rule.cost += rule.rows.by_query + cost;
    if (rule.cost < INFINITY && !leads_nowhere(search, &rule))
        rule_try(search, &rule);
}

static void propose_scale(struct search *search, enum asc_channel operand, double *room)
{
    enum { PAIRS = 512, LEAST = 3, FEW = 4 };
    const struct sample *s = search->sample;
    struct pair heads[PAIRS], queries[PAIRS], groups[PAIRS], flat[PAIRS];
    enum asc_channel tensor = operand;
    size_t n = 0;
    struct rule none = rule_new(RULE_SCALE);
    none.rows.operand = none.rows.tensor = operand;
    none.factor = 0;
    propose_powers(search, operand);
    /* Of many groups a line may not tell which it has. */
    for (int other = asc_q; other <= asc_v; other++) {
        struct rule rule = none;
        rule.rows.tensor = (enum asc_channel)other;
        rule.factor = 1;
        rule.cost = 5;
        if (other != (int)operand)
            rule_try(search, &rule);
    }
    const struct coding *coding = codes_of(s->tiles[0].c, operand);
    if (coding->parts > 1 || (coding->groups > 1 && s->channel == operand))
        propose_places(search, operand, room);
    if (coding->parts > 1 || is_found(search))
        return;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const struct lines lines = lines_of(t, s->channel, operand);
        const struct source *own = source_of(search, operand, head_of(search, t, operand));
        if (!is_coded(own) || !rule_forward(search, &none, t, search->want, search->bound))
            continue;
        for (int line = 0; line < lines.n && n < PAIRS; line++) {
            const int at = group_of(&own->coding, row_of_head(t, operand, line));
            const double ratio = ratio_of_line(search, t, lines, line, room);
            int group = 0;
            const struct source *from =
                isfinite(ratio) ? find_scale(search, ratio * (double)own->coding.scale[at], &group) : NULL;
            if (!from)
                continue;
            tensor = from->of;
            heads[n] = (struct pair){own->head, from->head};
            queries[n] = (struct pair){head_of(search, t, asc_q), from->head};
            flat[n] = (struct pair){own->head * own->coding.groups + at, from->head * own->coding.groups + group};
            groups[n++] = (struct pair){at, group};
        }
    }
    if (s->channel > asc_s) {
        propose_usual_groups(search, operand);
        propose_usual_heads(search, operand);
    }
    if (n < LEAST)
        return;
    /* Few heads are wrong: what is right tells of the map as well. */
    for (int k = 0; k < s->n && n < FEW; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const int own = head_of(search, t, operand), group = row_of_head(t, operand, 0);
        if (wrong_cells(t) || !is_coded(source_of(search, operand, own)))
            continue;
        const int at = group_of(&source_of(search, operand, own)->coding, group);
        heads[n] = (struct pair){own, own};
        queries[n] = (struct pair){head_of(search, t, asc_q), own};
        flat[n] = (struct pair){own, own};
        groups[n++] = (struct pair){at, at};
    }
    struct rule rule = rule_new(RULE_SCALE);
    rule.rows.operand = operand;
    rule.rows.tensor = tensor;
    rule.cost = 5 + map_fit(groups, n, 1 + s->tiles[0].c->kv_len, &rule.map);
    const size_t all = tensor == operand ? add_right_heads(search, operand, heads, queries, n, PAIRS) : n;
    for (int i = 0; i < (operand != asc_q ? 4 : 2) && !(i > 1 && is_found(search)); i++) {
        rule.rows.by_query = operand != asc_q && i % 2;
        try_heads(search, rule, rule.rows.by_query ? queries : heads, i < (operand != asc_q ? 2 : 1) ? all : n);
    }
    if (is_found(search))
        return;
    struct rule counted = rule_new(RULE_SCALE);
    counted.rows.operand = counted.rows.tensor = operand;
    counted.rows.flat = true;
    counted.cost = 10 + map_fit(flat, n, 1 + s->tiles[0].c->kv_len, &counted.map);
    if (tensor == operand && counted.cost < INFINITY && counted.map.kind != MAP_SAME)
        rule_try(search, &counted);
}

void propose_scales(struct search *search)
{
    const struct sample *s = search->sample;
    const struct oracle_case *c = s->tiles[0].c;
    double *room = search_room(search, (GATHERED + 1) * sizeof *room);
    if (!room)
        return;
    for (int ch = asc_q; ch <= asc_v; ch++)
        if (comes_in(c, (enum asc_channel)ch, s->channel)) {
            if (search_part(search))
                propose_scale(search, (enum asc_channel)ch, room);
            if (search_part(search) && s->channel > asc_v)
                propose_halves(search, (enum asc_channel)ch);
        }
    if (search_part(search) && comes_in(c, asc_q, s->channel) && comes_in(c, asc_k, s->channel))
        propose_powers(search, asc_s);
}
