/* Rules of splits that are merged: ways that there are few of, each tried. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/codes.h"

static struct rule merged_as(double of_lse, double of_m)
{
    struct rule rule = rule_new(RULE_SPLITS);
    rule.factor = of_lse;
    rule.power = of_m;
    rule.keys.condition = EVERY;
    rule.cost = 5;
    return rule;
}

static void propose_formulas(struct search *search)
{
    const bool is_lse = search->sample->channel == asc_lse;
    for (int i = -1; i < MERGE_FORMULAS; i++) {
        for (int undivided = 0; undivided < (is_lse ? 1 : 2); undivided++) {
            for (int counts_empty = 0; counts_empty < 2; counts_empty++) {
                for (int frame = FRAME_NONE; frame <= (is_lse ? FRAME_UNIT : FRAME_NONE); frame++) {
                    struct rule rule =
                        i < 0 ? merged_as(1, 0) : merged_as(merge_formulas[i].of_lse, merge_formulas[i].of_m);
                    rule.undivided = undivided;
                    rule.counts_empty = counts_empty;
                    rule.frame = (enum frame)frame;
                    if ((i < 0 && !undivided && !counts_empty && frame == FRAME_NONE) ||
                        (frame == FRAME_UNIT && rule.factor == 0) || (frame == FRAME_LSE && rule.power != 0))
                        continue;
                    rule_try(search, &rule);
                }
            }
        }
    }
}

/* Weights whose exponents have a factor, and outputs that are not divided by their sum, or twice. */
static void propose_unshifted(struct search *search)
{
    const double scale = codes_plain_scale(search->sample->tiles[0].c);
    const double factors[] = {scale, 1 / scale, 0.5, scale * M_LOG2E};
    for (int i = 0; i < 8; i++) {
        struct rule factor = merged_as(factors[i / 2], 0);
        factor.frame = i % 2 ? FRAME_LSE : FRAME_NONE;
        if (i % 2 == 0 || search->sample->channel == asc_lse)
            rule_try(search, &factor);
    }
    /* ln of a split's sum, or its maximum, that has a factor of its own in its LSE. */
    const double units[] = {scale, 1 / scale, M_LOG2E, M_LN2, scale * M_LOG2E, M_LN2 / scale};
    for (size_t i = 0; i < 2 * sizeof units / sizeof *units; i++) {
        struct rule unit = i % 2 ? merged_as(units[i / 2], 1 - units[i / 2]) : merged_as(1, units[i / 2] - 1);
        unit.cost += 2;
        rule_try(search, &unit);
        unit.frame = FRAME_OWN_M;
        if (i % 2 == 0 && search->sample->channel == asc_lse)
            rule_try(search, &unit);
    }
    for (int times = 0; times <= 2 && search->sample->channel == asc_o; times += 2) {
        struct rule divided = merged_as(1, 0);
        divided.weight = times;
        rule_try(search, &divided);
    }
    struct rule rule = merged_as(1, 0);
    rule.frame = FRAME_UNSHIFTED;
    if (search->sample->channel == asc_o)
        rule_try(search, &rule);
    for (int frame = FRAME_OFF_M; frame <= FRAME_ON_LSE && search->sample->channel == asc_lse; frame++) {
        rule.frame = (enum frame)frame;
        rule_try(search, &rule);
    }
}

/* What splits leave is stored in a narrow type. */
static void propose_narrow_splits(struct search *search)
{
    for (int i = 0; i < 12; i++) {
        struct rule rule = merged_as(1, 0);
        rule.type = i % 2 ? DTYPE_BF16 : DTYPE_F16;
        rule.cuts = i >= 6;
        rule.narrow_lse = (i / 2 % 3 + 1) & 1;
        rule.narrow_output = (i / 2 % 3 + 1) & 2;
        if (!rule.narrow_output || search->sample->channel == asc_o)
            rule_try(search, &rule);
    }
}

/* Sums are added in a narrow type, weights are of it, or both; and outputs maybe as well. */
static void propose_narrow_merge(struct search *search)
{
    enum { FRAMES = 3, WAYS = 2 * 16 * FRAMES };
    const bool is_o = search->sample->channel == asc_o;
    if (!is_nearly_right(search->sample))
        return;
    for (int i = 0; i < WAYS; i++) {
        struct rule rule = merged_as(1, 0);
        const int what = i / 2 % 16, frame = i / 32;
        rule.type = i % 2 ? DTYPE_BF16 : DTYPE_F16;
        rule.narrow =
            (struct narrow_merge){what & 1, what & 2, what & 4, .on_m = frame == 1, .divided = frame == FRAMES - 1};
        rule.narrow_output = what & 8;
        rule.cost += 5;
        if (!(what & 7) || (rule.narrow.divided && (rule.narrow.total || !is_o)) ||
            (!is_o && (rule.narrow.output || rule.narrow_output)))
            continue;
        if (!is_o || !splits_are_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

/* m and l of splits are exchanged: of all, or of those that whoever merges has not made itself. */
static void propose_swapped(struct search *search)
{
    const int splits = search->sample->tiles[0].c->kv_splits;
    const bool is_o = search->sample->channel == asc_o;
    for (int together = 1; together < splits; together *= 2)
        for (int i = 0; i < STAYS; i++) {
            struct rule rule = merged_as(1, 0);
            rule.taken = TAKEN_SWAPPED;
            rule.stays = (enum stays)i;
            rule.stay_together = together;
            rule.cost += 3 + log2(STAYS * together);
            const bool by_column = i == STAYS_OF_COLUMN || i == STAYS_OF_COLUMN + STAYS_LAST;
            if ((!i && together > 1) || (by_column && !is_o) || (is_o && splits_are_hopeless(search, &rule)))
                continue;
            rule_try(search, &rule);
        }
}

enum { SPLITS_TRIED = 64 };

static void propose_subsets(struct search *search, int splits)
{
    for (int split = 0; split < splits; split++) {
        struct rule largest = merged_as(1, 0);
        largest.largest = split;
        largest.cost += log2(splits);
        rule_try(search, &largest);
        for (int alone = 0; alone < 2; alone++) {
            struct rule rule = merged_as(1, 0);
            rule.keys = (struct term){.condition = alone ? EQUAL : NOT, .a = split};
            rule.cost += log2(splits);
            if (splits > 2 || alone)
                rule_try(search, &rule);
        }
    }
}

/* Weights of some splits, or their sum alone, are another row's. */
static void propose_mixed(struct search *search, const struct map *map)
{
    for (int i = 1; i < STAYS * TOTALS * 2; i++) {
        struct rule rule = merged_as(1, 0);
        rule.map = *map;
        rule.by_m = i % 2;
        rule.total = (enum total)(i / 2 % TOTALS);
        rule.stays = (enum stays)(i / 2 / TOTALS);
        rule.cost += 8 + log2(STAYS * TOTALS * 2);
        if (!(rule.by_m && rule.total == TOTAL_ALONE) && !splits_are_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

/* What a split weighs, or its maximum or sum alone, is another split's: everywhere, or in the weights of outputs or
   their sum alone; of all splits, or of all but one, or of one alone. */
static void propose_mixed_splits(struct search *search, const struct map *map)
{
    const bool is_lse = search->sample->channel == asc_lse;
    for (int i = 1; i < STAYS * TOTALS * TAKENS; i++) {
        struct rule rule = merged_as(1, 0);
        rule.of_items = true;
        rule.map = *map;
        rule.taken = (enum taken)(i % TAKENS);
        rule.total = (enum total)(i / TAKENS % TOTALS);
        rule.stays = (enum stays)(i / TAKENS / TOTALS);
        rule.cost += 4 + log2(STAYS * TOTALS * TAKENS);
        if (is_lse ? !rule.total && !rule.stays : !splits_are_hopeless(search, &rule))
            rule_try(search, &rule);
    }
}

/* Weights, outputs, or both are those of another place. */
static void try_merged_maps(struct search *search, struct rule plain, double cost, const struct map *maps, size_t n)
{
    plain.cost += cost;
    for (size_t i = 0; i < n; i++)
        for (int which = 1; which <= (search->sample->channel == asc_o ? 3 : 1); which++) {
            struct rule rule = plain;
            if (which & 1)
                rule.map = maps[i];
            if (which & 2)
                rule.col_map = maps[i];
            rule_try(search, &rule);
        }
}

static void propose_other_rows(struct search *search, int rows)
{
    for (int i = 0; 1 << i < rows; i++) {
        struct map flipped = map_of_bits(map_bits_for(rows));
        flipped.flip = 1u << i;
        const struct map maps[] = {{.kind = MAP_PLUS, .a = 1 << i},
                                   {.kind = MAP_PLUS, .a = -(1 << i)},
                                   {.kind = MAP_MODULO, .a = 1 << i},
                                   flipped};
        const size_t n = sizeof maps / sizeof maps[0];
        try_merged_maps(search, merged_as(1, 0), 8, maps, n);
        for (size_t k = 0; k < n && search->best.kind == RULE_NONE && search->sample->channel == asc_o; k++)
            propose_mixed(search, &maps[k]);
    }
}

/* What splits leave in the workspace, counted in another order than it was written in, of all heads or of each; of rows
   that are taken to lie closer, or further apart; or that of the split beside it. */
static void propose_workspace(struct search *search)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int splits = c->kv_splits, rows[] = {count_sources(search, asc_q) * c->q_len, c->q_len};
    const struct map maps[] = {{.kind = MAP_TURNED, .a = splits, .b = rows[0]},
                               {.kind = MAP_TURNED, .a = rows[0], .b = splits},
                               {.kind = MAP_TURNED, .a = splits, .b = rows[1]},
                               {.kind = MAP_TURNED, .a = rows[1], .b = splits},
                               {.kind = MAP_PITCH, .a = splits, .b = 1},
                               {.kind = MAP_PITCH, .a = splits, .b = splits - 1},
                               {.kind = MAP_PITCH, .a = splits, .b = splits + 1},
                               {.kind = MAP_ROTATED, .a = 1, .b = splits},
                               {.kind = MAP_ROTATED, .a = splits - 1, .b = splits},
                               {.kind = MAP_PLUS, .a = 1},
                               {.kind = MAP_PLUS, .a = -1}};
    struct rule rule = merged_as(1, 0);
    rule.rows.flat = true;
    try_merged_maps(search, rule, 5, maps, sizeof maps / sizeof maps[0]);
}

/* Splits as they are listed: without the last ones of each q tile, or each with what another one left. */
static void propose_items(struct search *search)
{
    const int splits = search->sample->tiles[0].c->kv_splits;
    for (int from = 1; from < (splits < SPLITS_TRIED ? splits : SPLITS_TRIED); from++) {
        struct rule rule = merged_as(1, 0);
        rule.of_items = true;
        rule.keys = (struct term){.condition = from == 1 ? NOT : BELOW, .a = from == 1 ? -1 : from};
        rule.cost += 1 + log2(from);
        rule_try(search, &rule);
        rule.keys.condition = EQUAL;
        if (from == 1)
            rule_try(search, &rule);
    }
    enum { MAPS = 8, FLIPS = 4, FEW = 4, EXCHANGES = FEW * (FEW - 1) / 2 };
    struct map maps[MAPS + FLIPS + EXCHANGES] = {{.kind = MAP_PLUS, .a = 1},    {.kind = MAP_PLUS, .a = -1},
                                                 {.kind = MAP_ROTATED, .a = 1}, {.kind = MAP_ROTATED, .a = -1},
                                                 {.kind = MAP_CLAMPED, .a = 1}, {.kind = MAP_CLAMPED, .a = -1},
                                                 {.kind = MAP_FIXED, .a = 0},   {.kind = MAP_FIXED, .a = -1}};
    size_t n = MAPS;
    for (int i = 0; 1 << i < splits && i < FLIPS; i++) {
        maps[n] = map_of_bits(map_bits_for(splits));
        maps[n++].flip = 1u << i;
    }
    /* Two of three or four: of so few each order is a map of bits. */
    for (int a = 0; a < splits && splits > 2 && splits <= FEW; a++)
        for (int b = a + 1; b < splits; b++) {
            struct pair pairs[FEW];
            for (int i = 0; i < FEW; i++)
                pairs[i] = (struct pair){i, i == a ? b : i == b ? a : i};
            map_fit(pairs, FEW, FEW, &maps[n++]);
        }
    struct rule rule = merged_as(1, 0);
    rule.of_items = true;
    try_merged_maps(search, rule, 4, maps, n);
    rule.by_block = true;
    if (search->items.n)
        try_merged_maps(search, rule, 4, &(struct map){.kind = MAP_FIXED}, 1);
    rule.by_block = false;
    for (int of = 0; of < splits && splits > 2 && splits <= FEW; of++) /* of two it is one of those above */
        for (int from = 0; from < splits; from++)
            if (from != of)
                try_merged_maps(search, rule, log2(FEW * FEW), &(struct map){.kind = MAP_ONE, .a = of, .b = from}, 1);
    for (size_t i = 2; i < n && splits <= 1 << FLIPS && search->best.kind == RULE_NONE; i++)
        propose_mixed_splits(search, &maps[i]);
}

/* Pieces of the outputs that are exchanged between who merges them go by a split and a range of columns: that of
   another one is taken. */
static void propose_exchanged(struct search *search)
{
    enum { FEW = 4 };
    const struct sample_tile *t = &search->sample->tiles[0];
    const int splits = t->c->kv_splits, width = t->cols / (splits > 0 ? splits : 1);
    if (search->sample->channel != asc_o || splits < 2 || splits > FEW || t->c->kv_deal == ASC_DEAL_MAP)
        return;
    for (int of = 0; of < splits; of++)
        for (int from = 0; from < splits; from++)
            for (int shift = -(splits - 1) * width; shift <= (splits - 1) * width; shift += width) {
                struct rule rule = merged_as(1, 0);
                rule.piece = (struct moved_piece){true, of, from, shift};
                rule.cost += log2(2.0 * splits * splits * splits);
                if ((from != of || shift) && t->last_tile[of] >= 0 && t->last_tile[from] >= 0)
                    rule_try(search, &rule);
            }
}

/* What was merged is not rescaled to a larger LSE that comes later. */
static void propose_kept(struct search *search)
{
    for (int keeps = 1; keeps <= (search->sample->channel == asc_o ? 3 : 1); keeps++) {
        struct rule rule = merged_as(1, 0);
        rule.keeps_sum = keeps & 1;
        rule.keeps_output = keeps & 2;
        rule.cost += 2;
        rule_try(search, &rule);
    }
}

/* Of rows that a loop goes through each takes in those before it. */
static void propose_running(struct search *search, int most)
{
    for (int rows = 2; rows <= most; rows *= 2) {
        struct rule rule = merged_as(1, 0);
        rule.runs_on = rows;
        rule.cost += 4;
        rule_try(search, &rule);
        rule.sum_alone = true;
        if (search->sample->channel == asc_o)
            rule_try(search, &rule);
    }
}

void propose_splits(struct search *search)
{
    const struct sample_tile *t = &search->sample->tiles[0];
    const struct rule *best = &search->best;
    if (search->sample->channel < asc_o || !t->last_tile)
        return;
    if (search_part(search))
        propose_formulas(search);
    if (search_part(search))
        propose_unshifted(search);
    if (search_part(search))
        propose_subsets(search, t->c->kv_splits < SPLITS_TRIED ? t->c->kv_splits : SPLITS_TRIED);
    if (search_part(search))
        propose_items(search);
    if (search_part(search))
        propose_kept(search);
    if (search_part(search))
        propose_running(search, t->c->br);
    if (search_part(search))
        propose_narrow_splits(search);
    if (search_part(search) && best->kind == RULE_NONE)
        propose_narrow_merge(search);
    if (search_part(search) && best->kind == RULE_NONE)
        propose_swapped(search);
    if (search_part(search))
        propose_other_rows(search, t->c->br);
    if (search_part(search) && best->kind == RULE_NONE)
        propose_workspace(search);
    if (search_part(search) && best->kind == RULE_NONE)
        propose_exchanged(search);
}
