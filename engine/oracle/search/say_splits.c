/* Rules of splits in words. */
#include "engine/oracle/search/rule.h"

#include "engine/base/dtype.h"
#include "engine/oracle/search/constant.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct merge_formula merge_formulas[MERGE_FORMULAS] = {{M_LN2, 0, "by powers of 2, of a natural LSE"},
                                                             {M_LOG2E, 0, "by powers of e, of an LSE to base 2"},
                                                             {0, 0, "all alike"},
                                                             {0, 1, "by their maximum alone: their sums are left out"},
                                                             {1, -1, "by their sums alone: their maxima are left out"},
                                                             {2, 0, "by the square of what they should"},
                                                             {-1, 0, "by the reciprocal of what they should"}};

/* Of which split what is said of all holds; "": of all. */
static void say_stays(const struct sample *s, const struct rule *rule, char *but, size_t bytes)
{
    static const char *const which[] = {"", "split c / %d in column c", "split r / %d in row r", "the first split",
                                        "the last split"};
    const bool others = rule->stays >= STAYS_OTHERS;
    const int at = (int)rule->stays - (others ? STAYS_LAST : 0);
    const int shared = (at == STAYS_OF_ROW ? s->tiles[0].c->br : s->tiles[0].cols) / s->tiles[0].c->kv_splits;
    const int n = rule->stay_together;
    char split[64];
    but[0] = '\0';
    if (n > 1 && at < STAYS_FIRST)
        snprintf(split, sizeof split, "the splits i with i / %d = %c / %d in %s %c", n, at == STAYS_OF_ROW ? 'r' : 'c',
                 n * shared, at == STAYS_OF_ROW ? "row" : "column", at == STAYS_OF_ROW ? 'r' : 'c');
    else if (n > 1)
        snprintf(split, sizeof split, "the %s %d splits", at == STAYS_FIRST ? "first" : "last", n);
    else
        snprintf(split, sizeof split, which[at], shared);
    if (at)
        snprintf(but, bytes, others ? ", of %s alone," : ", but for %s,", split);
}

/* Whether a map of splits exchanges two, and leaves the others where they are. */
static bool exchanges_two(const struct map *map, int splits, int *a, int *b)
{
    int moved = 0;
    *a = *b = -1;
    for (int i = 0; i < splits; i++) {
        const int to = map_at(map, i);
        moved += to != i;
        if (to != i && *a < 0) {
            *a = i;
            *b = to;
        }
    }
    return moved == 2;
}

/* Splits of a q tile that are taken for others of it. Which of two that meet is out of place nothing tells. */
static void say_other_split(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const taken[TAKENS] = {"weight", "m", "l"}, *const rest[TAKENS] = {"", "the l", "the m"};
    static const char *const where[TOTALS] = {"", ", though not in the sum of weights",
                                              ", in the sum of weights alone"};
    const bool weights = rule->map.kind != MAP_SAME, outputs = rule->col_map.kind != MAP_SAME;
    const struct map *map = weights ? &rule->map : &rule->col_map;
    const bool of_sum = s->channel == asc_lse || rule->total == TOTAL_ALONE, of_l = rule->total != TOTAL_OWN;
    char other[96], but[112], met[64];
    say_stays(s, rule, but, sizeof but);
    int a, b;
    if (!but[0] && !(weights && outputs) && map->kind == MAP_BITS &&
        exchanges_two(map, s->tiles[0].c->kv_splits, &a, &b)) {
        snprintf(out, bytes, "%s of splits %d and %d are exchanged where splits are merged%s",
                 outputs                    ? "outputs"
                 : rule->taken == TAKEN_LSE ? "weights"
                                            : taken[rule->taken],
                 a, b, where[rule->total]);
        return;
    }
    if (map->kind == MAP_ONE) {
        snprintf(out, bytes, "where splits are merged, split %d has the %s of split %d", map->a,
                 weights && outputs ? "weight and the output"
                 : outputs          ? "output"
                                    : "weight",
                 map->b);
        return;
    }
    if (map->kind == MAP_FIXED)
        snprintf(other, sizeof other, "the %s split", map->a < 0 ? "last" : "first");
    else if (map->kind == MAP_ROTATED || map->kind == MAP_CLAMPED)
        snprintf(other, sizeof other, "the %s split, %s,", map->a > 0 ? "next" : "previous",
                 map->kind == MAP_CLAMPED ? "where there is one" : "counted round");
    else
        map_words(map, "i", other, sizeof other);
    if (rule->taken == TAKEN_LSE || !(of_l || of_sum))
        snprintf(met, sizeof met, "the %s", outputs ? "weight" : of_sum ? "place" : "output");
    else
        snprintf(met, sizeof met, "%s%s", rest[rule->taken], of_sum ? "" : " and the output");
    snprintf(out, bytes, "the %s of %s%s %s %s of split i%s where splits are merged%s",
             weights && outputs ? "weight and output"
             : outputs          ? "output"
                                : taken[rule->taken],
             map->kind == MAP_BITS ? "split " : "", other, weights && outputs ? "take" : "meets",
             weights && outputs ? "the place" : met, but, where[rule->total]);
}

/* "the weights and the sum of them so far are rounded to f16" */
static void say_narrow_merge(const struct rule *rule, char *out, size_t bytes)
{
    const struct narrow_merge *narrow = &rule->narrow;
    const char *what[4], *on = narrow->divided ? ", weights being divided by their sum before"
                               : narrow->on_m  ? ", weights standing on the largest m"
                                               : "";
    char list[160], rounded[64];
    int n = 0;
    if (rule->narrow_output)
        what[n++] = "each split's output";
    if (narrow->weights)
        what[n++] = "its weight";
    if (narrow->output)
        what[n++] = "the output so far";
    if (narrow->total)
        what[n++] = "the sum of weights so far";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i == 0       ? ""
                                 : i == n - 1 ? " and "
                                              : ", ",
                                 i == 0 && what[i][0] == 'i' ? "each split's weight" : what[i]);
    rule_rounding(rule, rounded, sizeof rounded);
    snprintf(out, bytes, "where splits are merged %s %s %s%s%s", list, n > 1 ? "are" : "is", rounded,
             narrow->output || narrow->total ? " at every step" : "", on);
}

static void say_swapped(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char but[112];
    say_stays(s, rule, but, sizeof but);
    const size_t n = strlen(but);
    if (n && but[n - 1] == ',')
        but[n - 1] = '\0';
    snprintf(out, bytes, "m and l of a split are exchanged, each taken for the other, where splits are merged%s", but);
}

static void say_mixed(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const whose[TOTALS] = {
        "the splits' weights%s are%s those of row %s where row r is merged",
        "the splits' weights%s, divided by the sum of row r, are%s those of row %s where row r is merged",
        "the splits' weights%s are%s divided by the sum of row %s where row r is merged"};
    char row[96], but[112];
    map_words(&rule->map, "r", row, sizeof row);
    say_stays(s, rule, but, sizeof but);
    snprintf(out, bytes, whose[rule->total], rule->by_m ? " exp(m) / Σ exp(m) l" : "", but, row);
}

static bool is_one_of_few(const struct map *map)
{
    return map->kind == MAP_BITS || map->kind == MAP_FIXED || map->kind == MAP_ONE;
}

void splits_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const frames[] = {
        [FRAME_NONE] = "",
        [FRAME_FIRST] = "; m of the first split is added",
        [FRAME_LAST] = "; m of the last split is added",
        [FRAME_LARGEST] = "; the largest m is added once more",
        [FRAME_LSE] = "",
        [FRAME_TAKEN] = "; the largest LSE is taken off, and not added again",
        [FRAME_UNIT] = "",
        [FRAME_OWN_M] = "; the largest m is taken off with that factor, and added without it",
        [FRAME_OFF_M] = "; m of the first split is taken off, the largest is added",
        [FRAME_ON_M] = "; the largest m is taken off, that of the first split is added",
        [FRAME_OFF_LSE] = "; the LSE of the first split is taken off, the largest is added",
        [FRAME_ON_LSE] = "; the largest LSE is taken off, that of the first split is added"};
    const char *by = NULL;
    char row[96], number[160], other[224];
    if (rule->taken == TAKEN_SWAPPED) {
        say_swapped(s, rule, out, bytes);
        return;
    }
    if (rule->narrow.output || rule->narrow.weights || rule->narrow.total) {
        say_narrow_merge(rule, out, bytes);
        return;
    }
    constant_say(s->tiles[0].c, rule->factor, number, sizeof number);
    if (rule->piece.moves) {
        const int shift = rule->piece.shift;
        snprintf(row, sizeof row, shift ? "%d columns %s" : "the same columns", shift < 0 ? -shift : shift,
                 shift < 0 ? "before" : "further");
        snprintf(out, bytes, "where splits are merged, the output of split %d is that of split %d, %s", rule->piece.of,
                 rule->piece.from, row);
        return;
    }
    if (rule->power != 0 && rule->factor == 1)
        constant_say(s->tiles[0].c, 1 + rule->power, number, sizeof number);
    if (rule->power != 0 || rule->factor != 1) {
        snprintf(other, sizeof other,
                 rule->power == 0    ? "by exp(%s LSE)"
                 : rule->factor == 1 ? "by exp(%s m + ln l)"
                                     : "by exp(m + %s ln l)",
                 number);
        by = other;
    }
    for (int i = 0; i < MERGE_FORMULAS; i++)
        if (rule->factor == merge_formulas[i].of_lse && rule->power == merge_formulas[i].of_m)
            by = merge_formulas[i].words;
    if (s->channel == asc_lse && rule->factor == 0 && rule->power == 0 && rule->frame == FRAME_LSE)
        by = "all as the one with the largest LSE";
    if (rule->keeps_sum || rule->keeps_output) {
        snprintf(out, bytes, "%s of the splits so far %s not rescaled where a later split has a larger LSE",
                 !rule->keeps_output ? "the sum of weights"
                 : rule->keeps_sum   ? "output and sum of weights"
                                     : "the output",
                 rule->keeps_sum && rule->keeps_output ? "are" : "is");
    } else if (rule->weight != 1) {
        snprintf(out, bytes, "what is merged is %s by the sum of weights",
                 rule->weight == 0 ? "not divided" : "divided twice");
    } else if (rule->runs_on) {
        snprintf(out, bytes, "of every %d rows each takes in %s those before it, as where it is not cleared",
                 rule->runs_on, rule->sum_alone ? "the sum of weights of" : "what was merged for");
    } else if (rule->largest >= 0) {
        snprintf(out, bytes, "split %d is weighed as if its LSE were the largest: its weight is not rescaled",
                 rule->largest);
    } else if (rule->frame == FRAME_UNSHIFTED) {
        snprintf(out, bytes, "splits are weighed by powers of their LSE as it is, which leave the range of f32");
    } else if (rule->of_items && rule->keys.condition == BELOW) {
        snprintf(out, bytes, "the merge takes %d splits at most: those behind them are left out", rule->keys.a);
    } else if (rule->of_items && rule->keys.condition != EVERY) {
        snprintf(out, bytes,
                 rule->keys.condition == NOT ? "the last split of each q tile is left out of the merge"
                                             : "it is that of the last split of each q tile alone");
    } else if (rule->keys.condition == EQUAL) {
        snprintf(out, bytes, "it is that of split %d alone", rule->keys.a);
    } else if (rule->keys.condition == NOT) {
        snprintf(out, bytes, "split %d is left out of the merge", rule->keys.a);
    } else if (rule->narrow_lse || rule->narrow_output) {
        rule_rounding(rule, row, sizeof row);
        snprintf(out, bytes, "the %s of the splits %s %s before the merge",
                 !rule->narrow_lse     ? "outputs"
                 : rule->narrow_output ? "outputs and LSE"
                                       : "LSE",
                 rule->narrow_lse && !rule->narrow_output ? "is" : "are", row);
    } else if (rule->by_block) {
        snprintf(out, bytes,
                 "the splits' %s are stored at the number of the block, blockIdx.x, where those of the work item are "
                 "merged: there stands the last item that this block took",
                 rule->map.kind == MAP_SAME       ? "outputs"
                 : rule->col_map.kind == MAP_SAME ? "weights"
                                                  : "weights and outputs");
    } else if (rule->of_items &&
               (rule->taken || splits_are_mixed(rule) || is_one_of_few(&rule->map) || is_one_of_few(&rule->col_map))) {
        say_other_split(s, rule, out, bytes);
    } else if (splits_are_mixed(rule)) {
        say_mixed(s, rule, out, bytes);
    } else if (rule->map.kind != MAP_SAME || rule->col_map.kind != MAP_SAME) {
        const bool weights = rule->map.kind != MAP_SAME;
        const struct map *map = weights ? &rule->map : &rule->col_map;
        const char *what = weights && rule->col_map.kind != MAP_SAME ? "weights and outputs"
                           : weights                                 ? "weights"
                                                                     : "outputs";
        const bool by_row = map->a == s->tiles[0].c->kv_splits;
        const char *beside = map->a > 0 ? "next" : "previous";
        map_words(map, rule->rows.flat ? "i" : "r", row, sizeof row);
        if (map->kind == MAP_TURNED)
            snprintf(out, bytes, "the splits' %s lie as %s and are read as %s", what,
                     by_row ? "[row][split]" : "[split][row]", by_row ? "[split][row]" : "[row][split]");
        else if (rule->rows.flat && map->kind == MAP_PITCH)
            snprintf(out, bytes, "the splits' %s lie %d to a row and are read as if there were %d", what, map->a,
                     map->b);
        else if (rule->of_items && map->kind == MAP_PLUS)
            snprintf(out, bytes, "the splits' %s are those of the %s work item, counted q tile by q tile", what,
                     beside);
        else if (rule->of_items)
            snprintf(out, bytes, "the splits' %s are those of the %s split of the q tile, %s", what, beside,
                     map->kind == MAP_CLAMPED ? "where there is one" : "counted round");
        else if (rule->rows.flat)
            snprintf(out, bytes, "the splits' %s are number %s where number i is merged, counted as [row][split]", what,
                     row);
        else
            snprintf(out, bytes, "the splits' %s are those of row %s where row r is merged", what, row);
    } else if (by) {
        snprintf(out, bytes, "splits are weighed %s%s%s%s", by, frames[rule->frame],
                 rule->undivided ? ", and merged before they are divided by their sums" : "",
                 rule->counts_empty ? ", and one without a key counts" : "");
    } else if (rule->undivided) {
        snprintf(out, bytes, "the outputs of the splits are merged before they are divided by their sums%s",
                 rule->counts_empty ? ", and one without a key counts" : "");
    } else if (rule->counts_empty) {
        snprintf(out, bytes, "a split without any key counts, as if its LSE were 0%s", frames[rule->frame]);
    } else {
        snprintf(out, bytes, "the splits' LSE are merged%s", frames[rule->frame]);
    }
}
