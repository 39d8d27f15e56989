#include "engine/scenario/keys.h"

#include "engine/base/text.h"
#include "engine/scenario/keys_set.h"
#include "engine/scenario/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_LENGTH "a whole number from 1 to 16777216"
#define EXPECT_LENGTHS "none, or whole numbers from 0 to 16777216 with commas between"
#define EXPECT_SIGMA "a finite number, 0 or more"
#define EXPECT_SEED "a whole number from 0 to 18446744073709551615"
#define EXPECT_PLACES "all, or ascending numbers and ranges such as 0,3,5-7"
#define EXPECT_BUDGET "a whole number from 0 to 2147483647"
#define EXPECT_DTYPE "f16, bf16, f32, e4m3, e5m2, e2m1, u8 or s8"
#define EXPECT_DEFINE                                                                                                  \
    "NAME=VALUE or NAME, up to 8 with blanks between and 255 bytes in all (values of letters, digits and + - . _; no " \
    "name that begins with ASC_, SIMT_, __ or _ and a capital)"
#define EXPECT_INCLUDE "folders with blanks between, 1023 bytes in all (a backslash makes a blank part of a name)"
#define EXPECT_FLAGS                                                                                                   \
    "flags of g++ or nvcc with blanks between, 1023 bytes in all (none that attnscope sets: -c, -E, -S, -M, -o, -x)"
#define EXPECT_INPUTS "the path of a trace, or of an .npz or .safetensors file whose arrays are named as these keys are"
#define EXPECT_INPUT "FILE, or FILE:ARRAY for an array of an .npz or .safetensors file"
#define EXPECT_CUT "all, or FIRST:END with FIRST below END, such as 0:128"
#define EXPECT_FILL expect_fill
#define EXPECT_EVENTS expect_events
#define EXPECT_EVENTS_OR_NONE expect_events_or_none
#define EXPECT_CHANNELS_OR_NONE expect_channels_or_none
#define EXPECT_CULPRITS expect_culprits
#define EXPECT_CHANNELS_OR_ALL expect_channels_or_all

_Static_assert(VALUE_LENGTH_MAX == 16777216, "EXPECT_LENGTH names it");
_Static_assert(KEY_COUNT <= SCENARIO_KEYS_MAX, "struct scenario keeps a text of each");
_Static_assert(ASC_CHANNELS < 32, "struct scenario keeps 32-bit sets of them");

static const char expect_fill[] = "one of"
#define FILL(id, name, meaning) " " name
#include "engine/scenario/fills.def"
#undef FILL
    ;
static const char expect_channels_or_none[] = "none, or channels separated by commas, out of"
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) " " #id
#include "probes/channels.def"
    ;
static const char expect_culprits[] = "none, or channels separated by commas, out of"
#include "probes/channels.def"
                                      ", and loop";
static const char expect_channels_or_all[] = "all, or channels separated by commas, out of"
#include "probes/channels.def"
#undef CHANNEL
    ;

static const char expect_events_or_none[] = "none, or kinds of events separated by commas, out of"
#define EVENT(id, name, mistake, meaning) " " name
#include "engine/trace/events.def"
    ;
static const char expect_events[] = "kinds of events separated by commas, out of"
#include "engine/trace/events.def"
#undef EVENT
    ;

const char *const section_names[SECTION_COUNT] = {
#define SECTION(id, name, about) name,
#include "engine/scenario/sections.def"
#undef SECTION
};

const struct scenario_key scenario_keys[KEY_COUNT] = {
#define KEY(id, section, key, setter, expected, by_default, meaning)                                                   \
    [id] = {section, key, expected, by_default, meaning, setter},
#include "engine/scenario/keys.def"
#undef KEY
};

int scenario_section(const char *name)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        if (strcmp(section_names[i], name) == 0)
            return i;
    return -1;
}

int scenario_key_find(const char *section, const char *name)
{
    const int of = scenario_section(section);
    for (int i = 0; i < KEY_COUNT; i++)
        if ((int)scenario_keys[i].section == of && strcmp(scenario_keys[i].name, name) == 0)
            return i;
    return -1;
}

int scenario_unknown(const char *section, const char *name, const char *where, struct err *err)
{
    const int of = scenario_section(section);
    const bool known = of >= 0;
    char names[512] = "", found[80];
    size_t used = 0;
    for (int i = 0; i < (known ? (int)KEY_COUNT : (int)SECTION_COUNT); i++) {
        if (known && (int)scenario_keys[i].section != of)
            continue;
        const int n = snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                               known ? scenario_keys[i].name : section_names[i]);
        used += n > 0 && (size_t)n < sizeof names - used ? (size_t)n : 0;
    }
    text_name(known ? name : section, strlen(known ? name : section), found, sizeof found);
    return err_set(err, ERR_INPUT, where, "expected a %s out of %s; found `%s`", known ? "key" : "section", names,
                   found);
}

void scenario_where(const struct scenario *s, const int *line, enum scenario_key_id id, char *out, size_t n_bytes)
{
    char number[16] = "";
    if (line && line[id] > 0)
        snprintf(number, sizeof number, ":%d", line[id]);
    snprintf(out, n_bytes, "%s%s%s%s.%s", s->path, number, s->path[0] ? ": " : "",
             section_names[scenario_keys[id].section], scenario_keys[id].name);
}

int scenario_key_set(struct scenario *s, enum scenario_key_id id, const char *value, const char *where, struct err *err)
{
    const bool stated = s->stated[id];
    char *said = strdup(value);
    s->stated[id] = true; /* before the call: a setter may take it back */
    const int status = said ? scenario_keys[id].set(s, id, value) : -2;
    if (status == 0) {
        free(s->said[id]);
        s->said[id] = said;
        return 0;
    }
    free(said);
    s->stated[id] = stated;
    if (status == -2)
        return err_no_memory(err, where, "its value");
    char found[128];
    text_name(value, strlen(value), found, sizeof found);
    return err_set(err, ERR_INPUT, where, "expected %s, found %s%s%s", scenario_keys[id].expected, value[0] ? "`" : "",
                   value[0] ? found : "nothing", value[0] ? "`" : "");
}

const char *scenario_said(const struct scenario *s, enum scenario_key_id id)
{
    const char *now = id == KEY_KERNEL    ? s->kernel
                      : id == KEY_PATCH   ? s->patch
                      : id == KEY_DEFINE  ? s->define /* -D adds to it */
                      : id == KEY_INCLUDE ? s->include
                      : id == KEY_FLAGS   ? s->flags
                                          : s->said[id];
    return now && now[0] ? now : NULL;
}

int scenario_define(struct scenario *s, const char *macro, struct err *err)
{
    char found[128];
    if (value_add_macro(s->define, macro, strlen(macro)) == 0) {
        s->stated[KEY_DEFINE] = true;
        return 0;
    }
    text_name(macro, strlen(macro), found, sizeof found);
    return err_set(err, ERR_INPUT, "-D", "expected %s, found `%s`", scenario_keys[KEY_DEFINE].expected, found);
}

int scenario_add_word(struct scenario *s, enum scenario_key_id id, const char *word, const char *where, struct err *err)
{
    const bool first = id == KEY_INCLUDE;
    const char *there = first ? s->include : s->flags;
    char added[sizeof s->include] = "", all[2 * sizeof s->include] = "", found[128];
    if (value_join(added, sizeof added, word) == 0)
        snprintf(all, sizeof all, "%s%s%s", first ? added : there, *there ? " " : "", first ? there : added);
    if (scenario_key_set(s, id, all, where, NULL) == 0)
        return 0;
    text_name(word, strlen(word), found, sizeof found);
    return err_set(err, ERR_INPUT, where, "expected %s, found `%s`", scenario_keys[id].expected, found);
}
