/* Where a rule holds, in words. */
#include "engine/oracle/search/say.h"
#include "engine/oracle/search/search.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void say_add(char *out, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    if (used < bytes)
        vsnprintf(out + used, bytes - used, format, args);
    va_end(args);
}

static const struct noun axis_nouns[AXES] = {{"batch", "batches", "b"},
                                             {"head", "heads", "h"},
                                             {"q tile", "q tiles", "q"},
                                             {"kv tile", "kv tiles", "k"},
                                             {"tile visited as number", "tiles visited as number", "n"},
                                             {"row", "rows", "r"},
                                             {"column", "columns", "c"},
                                             {"row of the head", "rows of the head", "r"},
                                             {"", "", ""},
                                             {"key", "keys", "k"},
                                             {"", "", ""},
                                             {"", "", ""},
                                             {"", "", ""},
                                             {"", "", ""},
                                             {"", "", ""},
                                             {"", "", ""},
                                             {"", "", ""},
                                             {"", "", ""}};

void say_condition(const struct term *t, const struct noun *noun, char *out, size_t bytes)
{
    switch (t->condition) {
    case EQUAL:
        say_add(out, bytes, "%s %d", noun->one, t->a);
        break;
    case NOT:
        say_add(out, bytes, "all %s but %d", noun->many, t->a);
        break;
    case FROM:
        say_add(out, bytes, "%s from %d on", noun->many, t->a);
        break;
    case BELOW:
        say_add(out, bytes, "%s below %d", noun->many, t->a);
        break;
    case WITHIN:
        say_add(out, bytes, "%s %d to %d", noun->many, t->a, t->b);
        break;
    case RESIDUE:
        if (t->a == 2)
            say_add(out, bytes, "%s %s", t->b ? "odd" : "even", noun->many);
        else
            say_add(out, bytes, "%s with %s mod %d = %d", noun->many, noun->letter, t->a, t->b);
        break;
    case NO_RESIDUE:
        say_add(out, bytes, "all %s but those with %s mod %d = %d", noun->many, noun->letter, t->a, t->b);
        break;
    case UPPER:
    case LOWER:
        if (t->a == 2)
            say_add(out, bytes, "%s %s", t->condition == UPPER ? "odd" : "even", noun->many);
        else
            say_add(out, bytes, "%s with %s mod %d %s %d", noun->many, noun->letter, t->a,
                    t->condition == UPPER ? ">=" : "<", t->a / 2);
        break;
    case EVERY:
        say_add(out, bytes, "all %s", noun->many);
    }
}

/* Which rows, by what they see of a tile: the values of AXIS_VIEW that the condition holds for. */
static void say_view(const struct term *t, char *out, size_t bytes)
{
    static const char *const views[] = {"all of a tile that others see whole too", "all of a tile that others do not",
                                        "a part of the tile", "nothing of the tile"};
    const bool all = term_holds(t, 0) && term_holds(t, 1);
    const bool cut = !term_holds(t, 0) && term_holds(t, 1) && term_holds(t, 2);
    say_add(out, bytes, cut ? "tiles of which some row does not see all" : "rows that see ");
    for (int i = 0, n = 0; i < 4 && !cut; i++)
        if (term_holds(t, i) && !(all && i == 1))
            say_add(out, bytes, "%s%s", n++ ? " or " : "", all && i == 0 ? "all of the tile" : views[i]);
}

static bool is_of_keys(enum asc_channel ch)
{
    return ch == asc_k || ch == asc_v;
}

/* The few values of an axis where something is wrong, of those that the condition holds for: it holds for others too
   where the rule says nothing, as of a head before the first. false: there are no such others, or too many to list. */
static bool say_wrong_alone(const struct sample *s, const struct term *t, char *out, size_t bytes)
{
    enum { VALUES = 32, LISTED = 4 };
    uint32_t held = 0, wrong = 0;
    int n = 0;
    if (t->axis > AXIS_Q_TILE || s->full)
        return false;
    for (int i = 0; i < s->n; i++) {
        const int x = s->tiles[i].at[t->axis];
        if (x >= VALUES)
            return false;
        held |= term_holds(t, x) ? UINT32_C(1) << x : 0;
        wrong |= term_holds(t, x) && s->tiles[i].any_wrong ? UINT32_C(1) << x : 0;
    }
    for (int x = 0; x < VALUES; x++)
        n += wrong >> x & 1;
    if (held == wrong || n == 0 || n > LISTED)
        return false;
    say_add(out, bytes, "%s ", n == 1 ? axis_nouns[t->axis].one : axis_nouns[t->axis].many);
    for (int x = 0, said = 0; x < VALUES; x++)
        if (wrong >> x & 1) {
            say_add(out, bytes, "%s%d", said == 0 ? "" : said + 1 < n ? ", " : " and ", x);
            said++;
        }
    return true;
}

bool say_several_tiles(const struct sample *s, bool of_keys)
{
    bool several = false;
    for (int i = 0; i < s->n && !several; i++) {
        const struct oracle_case *c = s->tiles[i].c;
        several = of_keys ? c->kv_len > c->bc : c->q_len > c->br;
    }
    return several;
}

const char *say_of_tile(const struct sample *s, enum asc_channel ch, const struct map *map)
{
    const bool shifts = map->kind == MAP_SAME || map->kind == MAP_PLUS || map->kind == MAP_BITS;
    return !shifts && say_several_tiles(s, is_of_keys(ch)) ? " of the tile" : "";
}

/* Rows and columns count from the tile's first one. Where they could be taken for those of the head that is said: not
   of remainders by a divisor of the tile. */
static bool is_of_tile(const struct sample *s, enum asc_channel ch, const struct term *t)
{
    const bool keys = t->axis == AXIS_ROW ? is_of_keys(ch) : ch == asc_s || ch == asc_p;
    const int size = s->n ? (keys ? s->tiles[0].c->bc : s->tiles[0].c->br) : 0;
    if ((t->axis != AXIS_ROW && t->axis != AXIS_COL) || (t->axis == AXIS_COL && !keys))
        return false;
    return say_several_tiles(s, keys) && (t->condition < UPPER || (t->condition < EVERY && size % t->a != 0));
}

/* of_tile: it is to be said. */
static void add_term(const struct term *t, bool of_tile, char *out, size_t bytes)
{
    static const struct noun in_tile[] = {{"row", "rows of the tile", "r"}, {"column", "columns of the tile", "c"}};
    const bool is_span = t->condition == EQUAL || t->condition == WITHIN;
    if (of_tile) {
        const struct noun *noun = is_span ? &axis_nouns[t->axis] : &in_tile[t->axis == AXIS_COL];
        say_condition(t, noun, out, bytes);
        say_add(out, bytes, is_span ? " of the tile" : "");
    } else if (t->axis == AXIS_TURN && t->condition == EQUAL && t->a == 0) {
        say_add(out, bytes, "the first tile visited");
    } else if (t->axis == AXIS_TURN && ((t->condition == FROM && t->a == 1) || (t->condition == NOT && t->a == 0))) {
        say_add(out, bytes, "every tile after the first one visited");
    } else if (t->axis == AXIS_ROW_OF_HEAD && t->condition == EQUAL) {
        say_add(out, bytes, "row %d of the head", t->a);
    } else if (t->axis == AXIS_ROW_OF_HEAD && t->condition == WITHIN) {
        say_add(out, bytes, "rows %d to %d of the head", t->a, t->b);
    } else if (t->axis == AXIS_RISE) {
        say_add(out, bytes, "rows whose maximum %s", term_holds(t, 1) ? "rises at this tile" : "stays as it was");
    } else if (t->axis == AXIS_NEW) {
        say_add(out, bytes, term_holds(t, 1) ? "new keys" : "keys that were in the cache");
    } else if (t->axis == AXIS_VIEW) {
        say_view(t, out, bytes);
    } else if (t->axis >= AXIS_RISE_BESIDE) {
        static const char *const of[][2] = {
            [0] = {"rows of pairs r and r + 8 of which the first one's maximum stays as it was",
                   "rows of pairs r and r + 8 of which the first one's maximum rises at this tile"},
            [AXIS_RISE_FIRST_OF_16 -
                AXIS_RISE_BESIDE] = {"every 16 rows of which the first one's maximum stays as it was",
                                     "every 16 rows of which the first one's maximum rises at this tile"},
            [AXIS_RISE_ANY_OF_16 - AXIS_RISE_BESIDE] = {"every 16 rows of which no maximum rises at this tile",
                                                        "every 16 rows of which any maximum rises at this tile"},
            [AXIS_RISE_ALL_OF_16 - AXIS_RISE_BESIDE] = {"every 16 rows of which any maximum stays as it was",
                                                        "every 16 rows whose maxima all rise at this tile"}};
        say_add(out, bytes, "%s", of[t->axis - AXIS_RISE_BESIDE][term_holds(t, 1)]);
    } else if (t->axis >= AXIS_LAST_OF_16) {
        say_add(out, bytes, "%s of which the last %s the whole kv tile",
                t->axis == AXIS_LAST_OF_16 ? "every 16 rows" : "the rows of q tiles",
                term_holds(t, 1) ? "sees" : "does not see");
    } else {
        say_condition(t, &axis_nouns[t->axis], out, bytes);
    }
}

void say_term(const struct sample *s, enum asc_channel ch, const struct term *t, char *out, size_t bytes)
{
    add_term(t, is_of_tile(s, ch, t), out, bytes);
}

static bool names_tiles(const struct region *region)
{
    bool names = false;
    for (int i = 0; i < region->n; i++)
        names |= region->term[i].axis >= AXIS_Q_TILE && region->term[i].axis <= AXIS_TURN;
    return names;
}

void region_say(const struct sample *s, const struct region *region, char *out, size_t bytes)
{
    out[0] = '\0';
    if (region->some_rows && region->by_alpha)
        say_add(out, bytes, " in rows whose α is %.4g or %s", region->alpha, region->by_alpha > 0 ? "more" : "less");
    else if (region->some_rows)
        say_add(out, bytes, " in some rows alone, which no region tells");
    for (int i = region->n - 1; i >= 0; i--) {
        say_add(out, bytes, i == region->n - 1 ? " in " : " of ");
        const struct term *t = &region->term[i];
        if (!say_wrong_alone(s, t, out, bytes))
            add_term(t, !names_tiles(region) && is_of_tile(s, s->channel, t), out, bytes);
    }
}
