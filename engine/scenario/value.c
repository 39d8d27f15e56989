#include "engine/scenario/value.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool only(const char *text, const char *allowed)
{
    return *text != '\0' && text[strspn(text, allowed)] == '\0';
}

int value_seed(const char *text, uint64_t *out)
{
    if (!only(text, "0123456789"))
        return -1;
    errno = 0;
    const unsigned long long v = strtoull(text, NULL, 10);
    if (errno != 0 || v > UINT64_MAX)
        return -1;
    *out = v;
    return 0;
}

int value_integer(const char *text, int low, int high, int *out)
{
    uint64_t v;
    if (value_seed(text, &v) != 0 || v < (uint64_t)low || v > (uint64_t)high)
        return -1;
    *out = (int)v;
    return 0;
}

int value_real(const char *text, double *out)
{
    /* strtod alone would take "inf", "nan" and hexadecimal, and the decimal comma of the user's locale. */
    if (!only(text, "0123456789+-.eE"))
        return -1;
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return -1;
    char *end;
    errno = 0;
    const double v = strtod_l(text, &end, c);
    freelocale(c);
    if (end == text || *end != '\0' || !isfinite(v) || errno == ERANGE)
        return -1;
    *out = v;
    return 0;
}

int value_bytes(const char *text, uint64_t *out)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", NULL};
    char digits[24] = "";
    const size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof digits)
        return -1;
    memcpy(digits, text, n);
    const char *unit = text + n;
    unit += strspn(unit, " \t");
    const int power = value_name(unit, units);
    uint64_t v;
    if (power < 0 || value_seed(digits, &v) != 0)
        return -1;
    if (__builtin_mul_overflow(v, UINT64_C(1) << 10 * power, &v) || v == 0 || v > INT64_MAX)
        return -1;
    *out = v;
    return 0;
}

/* One piece of a list, "5" or "5-7", that lies wholly above `above`. */
static int read_range(const char *piece, size_t n, int above, int *first, int *last)
{
    char text[32];
    if (n >= sizeof text)
        return -1;
    memcpy(text, piece, n);
    text[n] = '\0';
    char *dash = strchr(text, '-');
    if (dash)
        *dash = '\0';
    if (value_integer(text, 0, VALUE_LENGTH_MAX - 1, first) != 0)
        return -1;
    *last = *first;
    if (dash && value_integer(dash + 1, 0, VALUE_LENGTH_MAX - 1, last) != 0)
        return -1;
    return *first > above && *last >= *first ? 0 : -1;
}

/* Walks the list; places may be NULL, to count only. Returns how many, or -1: not a list. */
static int walk_places(const char *text, int *places)
{
    int n = 0, above = -1;
    for (;;) {
        text += strspn(text, " \t");
        const size_t piece = strcspn(text, ", \t");
        int first, last;
        if (read_range(text, piece, above, &first, &last) != 0)
            return -1;
        if (places) {
            for (int i = first; i <= last; i++)
                places[n + i - first] = i;
        }
        n += last - first + 1;
        above = last;
        text += piece + strspn(text + piece, " \t");
        if (*text == '\0')
            return n;
        if (*text++ != ',')
            return -1;
    }
}

int value_places(const char *text, int **places, int *n_places)
{
    if (strcmp(text, "all") == 0) {
        *places = NULL;
        *n_places = 0;
        return 0;
    }
    const int n = walk_places(text, NULL);
    if (n <= 0)
        return -1;
    int *list = malloc((size_t)n * sizeof *list);
    if (!list)
        return -2;
    walk_places(text, list);
    *places = list;
    *n_places = n;
    return 0;
}

int value_name(const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
    }
    return -1;
}

int value_choice(int *out, const char *const *names, const char *value)
{
    const int v = value_name(value, names);
    if (v < 0)
        return -1;
    *out = v;
    return 0;
}

const char *const value_no_yes[] = {"no", "yes", NULL};

bool value_next(const char **list, char *word, size_t n_bytes)
{
    const char *at = *list + strspn(*list, " \t");
    size_t n = 0;
    for (; *at && *at != ' ' && *at != '\t' && n + 1 < n_bytes; at++) {
        at += *at == '\\' && (at[1] == ' ' || at[1] == '\\');
        word[n++] = *at;
    }
    word[n] = '\0';
    *list = at;
    return n > 0 && (!*at || *at == ' ' || *at == '\t');
}

int value_join(char *all, size_t n_bytes, const char *word)
{
    const size_t before = strlen(all);
    size_t n = before;
    if (n && n + 1 < n_bytes)
        all[n++] = ' ';
    for (const char *c = word; *c; c++) {
        const bool escaped = *c == ' ' || *c == '\\';
        if (n + 1 + escaped >= n_bytes)
            break;
        if (escaped)
            all[n++] = '\\';
        all[n++] = *c;
        if (!c[1]) {
            all[n] = '\0';
            return 0;
        }
    }
    all[before] = '\0';
    return -1;
}

bool value_word(const char **text, const char *ends, char *out, size_t n_bytes)
{
    const char *at = *text + strspn(*text, " \t");
    const size_t n = strcspn(at, ends);
    *text = at + n + strspn(at + n, " \t");
    size_t kept = n;
    while (kept > 0 && (at[kept - 1] == ' ' || at[kept - 1] == '\t'))
        kept--;
    if (kept == 0 || kept >= n_bytes)
        return false;
    memcpy(out, at, kept);
    out[kept] = '\0';
    return true;
}

/* NAME or NAME=VALUE of n bytes; returns the length of the name, 0 where it is none of ours to set. */
static size_t macro_name(const char *macro, size_t n)
{
    static const char *const ours[] = {"ASC_", "SIMT_", "__"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", more[] = "+-.";
    size_t name = 0, i;
    while (name < n && memchr(letters, macro[name], sizeof letters - 1))
        name++;
    for (i = name + 1; i < n; i++)
        if (!memchr(letters, macro[i], sizeof letters - 1) && !memchr(more, macro[i], sizeof more - 1))
            return 0;
    if (name == 0 || (macro[0] >= '0' && macro[0] <= '9') || (name < n && (macro[name] != '=' || name + 1 == n)))
        return 0;
    if (name > 1 && macro[0] == '_' && macro[1] >= 'A' && macro[1] <= 'Z')
        return 0;
    for (i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(macro, ours[i], strlen(ours[i])) == 0)
            return 0;
    return name;
}

int value_add_macro(char all[VALUE_MACROS_BYTES], const char *macro, size_t n)
{
    char made[VALUE_MACROS_BYTES] = "";
    const size_t name = macro_name(macro, n);
    size_t used = 0;
    int count = 0;
    for (const char *at = all; name && *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (macro_name(at, length) != name || memcmp(at, macro, name) != 0) {
            used += (size_t)snprintf(made + used, sizeof made - used, "%s%.*s", used ? " " : "", (int)length, at);
            count++;
        }
        at += length;
    }
    if (!name || count == VALUE_MACROS_MAX || used + (used > 0) + n + 1 > sizeof made)
        return -1;
    snprintf(made + used, sizeof made - used, "%s%.*s", used ? " " : "", (int)n, macro);
    memcpy(all, made, sizeof made);
    return 0;
}
