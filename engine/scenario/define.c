/* Macros of a kernel's build: scenario.define, -D. */
#include "engine/base/text.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"

#include <string.h>

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

int define_add(char all[256], const char *macro, size_t n)
{
    char made[256] = "";
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
    if (!name || count == SCENARIO_DEFINES_MAX || used + (used > 0) + n + 1 > sizeof made)
        return -1;
    snprintf(made + used, sizeof made - used, "%s%.*s", used ? " " : "", (int)n, macro);
    memcpy(all, made, sizeof made);
    return 0;
}

int scenario_define(struct scenario *s, const char *macro, struct err *err)
{
    char found[128];
    if (define_add(s->define, macro, strlen(macro)) == 0) {
        s->stated |= UINT64_C(1) << KEY_DEFINE;
        return 0;
    }
    text_name(macro, strlen(macro), found, sizeof found);
    return err_set(err, ERR_INPUT, "-D", "expected %s, found `%s`", scenario_keys[KEY_DEFINE].expected, found);
}
