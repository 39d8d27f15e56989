/* Keys about what must be found: [expect]. */
#include "engine/scenario/keys_set.h"

#include "engine/scenario/scenario.h"
#include "engine/scenario/value.h"
#include "engine/trace/event.h"
#include "engine/trace/layout.h"

#include <string.h>

static const char *const verdict_names[] = {
    [EXPECT_NOTHING] = "", [EXPECT_CLEAN] = "clean", [EXPECT_FAIL] = "fail", NULL};

static const char loop_name[] = "loop";

const char *culprit_name(int culprit)
{
    return culprit == CULPRIT_LOOP ? loop_name : channel_name((enum asc_channel)culprit);
}

int culprit_from_name(const char *name)
{
    return strcmp(name, loop_name) == 0 ? CULPRIT_LOOP : channel_from_name(name);
}

int key_set_verdict(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    const int v = value_name(value, verdict_names);
    if (v <= EXPECT_NOTHING)
        return -1;
    s->expect.verdict = (enum expect_verdict)v;
    return 0;
}

int key_set_first(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    static const char letters[] = "bhqk";
    int channel = -1, place[4] = {-1, -1, -1, -1};
    do {
        char word[16];
        if (!value_word(&value, " \t", word, sizeof word))
            return -1;
        /* "q" is the channel, "q0" a q tile. */
        const int ch = culprit_from_name(word);
        const char *letter = strchr(letters, word[0]);
        if (ch >= 0 && channel < 0)
            channel = ch;
        else if (ch >= 0 || !letter || place[letter - letters] >= 0 ||
                 value_integer(word + 1, 0, VALUE_LENGTH_MAX - 1, &place[letter - letters]) != 0)
            return -1;
    } while (*value != '\0');
    s->expect.first_channel = channel;
    memcpy(s->expect.first, place, sizeof place);
    return 0;
}

int key_set_culprits(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    unsigned set = 0;
    const bool none = strcmp(value, "none") == 0;
    if (!none && key_read_names(value, culprit_from_name, &set) != 0)
        return -1;
    s->expect.culprits = set;
    s->expect.no_culprits = none;
    return 0;
}

int key_set_expected_bias(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    unsigned set = 0;
    const bool none = strcmp(value, "none") == 0;
    if (!none && key_read_channels(value, &set) != 0)
        return -1;
    s->expect.bias = set;
    s->expect.no_bias = none;
    return 0;
}

/* "a, b" as "a,b"; -1: not such a list, or out has no room for it. */
static int read_names(const char *value, char *out, size_t n_bytes)
{
    char names[256] = "";
    for (size_t used = 0;; value++) {
        char name[64];
        if (!value_word(&value, ",", name, sizeof name))
            return -1;
        const size_t n = strlen(name);
        if (used + n + 2 > n_bytes || used + n + 2 > sizeof names ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != n)
            return -1;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? "," : "", name);
        if (*value == '\0')
            break;
    }
    snprintf(out, n_bytes, "%s", names);
    return 0;
}

int key_set_cause(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return read_names(value, s->expect.cause, sizeof s->expect.cause);
}

static int read_events(const char *value, event_set *out)
{
    char names[EVENT_SET_BYTES], name[64];
    event_set set = 0;
    if (read_names(value, names, sizeof names) != 0)
        return -1;
    for (int i = 0; scenario_listed(names, i, name); i++) {
        const enum event_kind kind = event_from_name(name);
        if (kind == EVENT_NONE)
            return -1;
        set |= EVENT_BIT(kind);
    }
    *out = set;
    return 0;
}

int key_set_event(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    event_set set = 0;
    const bool none = strcmp(value, "none") == 0;
    if (!none && read_events(value, &set) != 0)
        return -1;
    s->expect.events = set;
    s->expect.no_event = none;
    return 0;
}

int key_set_stopped(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return read_events(value, &s->expect.stopped);
}

int key_set_event_at(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    const size_t n = strlen(value);
    if (n == 0 || n >= sizeof s->expect.event_at)
        return -1;
    memcpy(s->expect.event_at, value, n + 1);
    return 0;
}

int scenario_listed(const char *list, int i, char name[64])
{
    for (; *list && i > 0; i--)
        list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',');
    return value_word(&list, ",", name, 64);
}
