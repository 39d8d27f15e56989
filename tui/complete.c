/* What Tab offers in a `:` line: words of the tables, and files. */
#include "engine/base/path.h"
#include "tui/commands.h"
#include "tui/keys/actions.h"
#include "tui/loop_state.h"

#include "engine/scenario/keys.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A word that a list may begin with, kept apart from the text behind the cursor. */
struct word {
    char text[PROMPT_BYTES];
};

static struct word word_from(const char *line, size_t from, size_t at)
{
    struct word w;
    snprintf(w.text, sizeof w.text, "%.*s", (int)(at - from), line + from);
    return w;
}

static void add_names(const char *word, struct candidates *out)
{
    const struct command_text *command;
    for (int i = 0; (command = command_text(i)); i++)
        candidates_add(out, word, command->name, command->help);
    for (int a = 0; a < ACTION_COUNT; a++) {
        int known = 0;
        for (int i = 0; (command = command_text(i)); i++)
            known |= strcmp(command->name, action_text(a)->name) == 0;
        if (!known)
            candidates_add(out, word, action_text(a)->name, action_text(a)->help);
    }
}

static void add_channels(const struct session *s, const char *word, struct candidates *out)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (!s->run.trace || trace_has(s->run.trace, (enum asc_channel)ch))
            candidates_add(out, word, channel_name(ch), channel_meaning(ch));
    for (int i = 0; s->run.trace && i < plan_values(&s->run.trace->plan); i++)
        candidates_add(out, word, s->run.trace->plan.value[i].name, "a value of the kernel's own");
}

static void add_views(const char *word, struct candidates *out)
{
    for (int v = 0; v < VIEW_COUNT; v++)
        candidates_add(out, word, view_name(v), strcmp(view_name(v), view_title(v)) == 0 ? "" : view_title(v));
}

/* Terms of one word: what is completed ends at a blank. */
static void add_terms(const char *word, struct candidates *out)
{
    const struct word_text *term;
    for (int i = 0; (term = word_text(i)); i++)
        if (!strchr(term->term, ' '))
            candidates_add(out, word, term->term, term->meaning);
}

static void add_stops(const char *word, struct candidates *out)
{
    for (int i = 0; i < STOP_KINDS; i++)
        if (stop_word(i)[0])
            candidates_add(out, word, stop_word(i), stop_meaning(i));
}

/* Cuts "none, top-left or bottom-right" into its words: the length of the next one, *rest behind it and what separates;
   0: the end, -1: it is not one word. */
static int next_choice(const char **rest)
{
    const char *comma = strstr(*rest, ", "), * or = strstr(*rest, " or ");
    const char *end = or &&(!comma || or < comma) ? or : comma;
    const int length = (int)(end ? (size_t)(end - *rest) : strlen(*rest));
    for (int i = 0; i < length; i++)
        if ((*rest)[i] == ' ')
            return -1;
    *rest += length;
    *rest += !end ? 0 : end == or ? 4 : 2;
    return length;
}

/* The values of a key that is a choice of words; numbers and sentences offer nothing. */
static void add_values(const char *expected, const char *word, size_t key, struct candidates *out)
{
    char text[PROMPT_BYTES];
    int length;
    const char *rest = expected;
    while ((length = next_choice(&rest)) > 0)
        ;
    if (length < 0)
        return;
    for (const char *at = rest = expected; (length = next_choice(&rest)) > 0; at = rest) {
        snprintf(text, sizeof text, "%.*s%.*s", (int)key, word, length, at);
        candidates_add(out, word, text, "");
    }
}

static void add_keys(const char *word, struct candidates *out)
{
    const size_t key = strcspn(word, "=");
    for (int i = 0; i < KEY_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s=", section_names[scenario_keys[i].section], scenario_keys[i].name);
        if (word[key] != '=')
            candidates_add(out, word, name, scenario_keys[i].meaning);
        else if (strlen(name) == key + 1 && strncmp(name, word, key) == 0)
            add_values(scenario_keys[i].expected, word, key + 1, out);
    }
}

/* Folders, and files that a trace could be saved as. */
static void add_files(const char *word, struct candidates *out)
{
    const int folder = path_folder(word);
    char path[PROMPT_BYTES + 512];
    snprintf(path, sizeof path, "%.*s", folder, word);
    DIR *dir = opendir(folder ? path : ".");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat status;
        const char *dot = strrchr(entry->d_name, '.');
        snprintf(path, sizeof path, "%.*s%s", folder, word, entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode))
            strncat(path, "/", sizeof path - strlen(path) - 1);
        else if (!dot || strcmp(dot, ".safetensors") != 0)
            continue;
        candidates_add(out, word, path, "");
    }
    if (dir)
        closedir(dir);
}

static void add_arguments(const struct session *s, enum completion kind, const char *word, struct candidates *out)
{
    switch (kind) {
    case COMPLETE_NOTHING:
        break;
    case COMPLETE_PLACE:
        add_channels(s, word, out);
        break;
    case COMPLETE_VIEW:
        add_views(word, out);
        break;
    case COMPLETE_STOP:
        add_stops(word, out);
        add_channels(s, word, out);
        candidates_add(out, word, "any", "any stage");
        candidates_add(out, word, "global", "verdicts by the original inputs, not by what came in");
        break;
    case COMPLETE_KEY:
        add_keys(word, out);
        break;
    case COMPLETE_FILE:
        add_files(word, out);
        break;
    case COMPLETE_WORD:
        add_names(word, out);
        add_terms(word, out);
        add_stops(word, out);
        add_keys(word, out);
        break;
    }
}

void command_line_complete(void *ctx, const char *line, size_t at, struct candidates *out)
{
    const struct loop *l = ctx;
    const size_t begin = strspn(line, " 0123456789"), name = strcspn(line + begin, " ");
    out->n = 0;
    if (at <= begin + name) {
        out->from = begin < at ? begin : at;
        add_names(word_from(line, out->from, at).text, out);
        return;
    }
    out->from = at;
    while (out->from > begin + name && line[out->from - 1] != ' ')
        out->from--;
    const struct command_text *command;
    for (int i = 0; (command = command_text(i)); i++)
        if (strlen(command->name) == name && strncmp(command->name, line + begin, name) == 0)
            add_arguments(l->s, command->completion, word_from(line, out->from, at).text, out);
}
