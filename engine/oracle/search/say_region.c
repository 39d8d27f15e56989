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

void say_term(const struct term *t, char *out, size_t bytes)
{
    if (t->axis == AXIS_TURN && t->condition == EQUAL && t->a == 0)
        say_add(out, bytes, "the first tile visited");
    else if (t->axis == AXIS_TURN && ((t->condition == FROM && t->a == 1) || (t->condition == NOT && t->a == 0)))
        say_add(out, bytes, "every tile after the first one visited");
    else if (t->axis == AXIS_ROW_OF_HEAD && t->condition == EQUAL)
        say_add(out, bytes, "row %d of the head", t->a);
    else if (t->axis == AXIS_RISE)
        say_add(out, bytes, "rows whose maximum %s", term_holds(t, 1) ? "rises at this tile" : "stays as it was");
    else if (t->axis == AXIS_NEW)
        say_add(out, bytes, term_holds(t, 1) ? "new keys" : "keys that were in the cache");
    else if (t->axis == AXIS_VIEW)
        say_view(t, out, bytes);
    else
        say_condition(t, &axis_nouns[t->axis], out, bytes);
}

void region_say(const struct region *region, char *out, size_t bytes)
{
    out[0] = '\0';
    if (region->some_rows && region->by_alpha)
        say_add(out, bytes, " in rows whose α is %.4g or %s", region->alpha, region->by_alpha > 0 ? "more" : "less");
    else if (region->some_rows)
        say_add(out, bytes, " in some rows alone, which no region tells");
    for (int i = region->n - 1; i >= 0; i--) {
        say_add(out, bytes, i == region->n - 1 ? " in " : " of ");
        say_term(&region->term[i], out, bytes);
    }
}
