#include "tui/commands.h"

#include "engine/base/path.h"
#include "engine/scenario/keys.h"
#include "engine/session/look.h"
#include "tui/loop_state.h"
#include "tui/views/panels.h"
#include "tui/views/sign.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void notes_add(struct notes *notes, const char *format, ...)
{
    va_list args;
    if (notes->n == NOTES_MAX)
        return;
    va_start(args, format);
    vsnprintf(notes->line[notes->n++], sizeof notes->line[0], format, args);
    va_end(args);
}

/* ---- the commands: each gets what stands behind its name, "" for nothing ---- */

static int parse_place(struct loop *l, const char *argument, struct cursor *to)
{
    struct err err;
    *to = l->s->at.cursor;
    if (!l->s->run.trace) {
        session_say(l->s, "there is no run yet");
        return -1;
    }
    if (cursor_parse(argument, l->s->run.trace, to, &err) != 0) {
        session_say(l->s, "%.250s", err.message);
        return -1;
    }
    return 0;
}

static void run_go(struct loop *l, const char *argument)
{
    struct cursor to;
    if (parse_place(l, argument, &to) == 0)
        session_jump_to(l->s, &to);
}

static void run_view(struct loop *l, const char *argument)
{
    const int view = view_from_name(argument);
    if (!argument[0])
        session_say(l->s, "expected the name of a view: Tab lists them");
    else if (view < 0)
        session_say(l->s, "no view '%.60s': Tab lists them", argument);
    else
        loop_open_view(l, (enum view_id)view);
}

static void run_stop(struct loop *l, const char *argument)
{
    if (!argument[0] || session_add_stop(l->s, argument))
        session_seek(l->s, 1);
}

static void run_stops(struct loop *l, const char *argument)
{
    (void)argument;
    for (int i = 0; i < l->s->search.n; i++)
        notes_add(&l->notes, "%d  %s", i + 1, l->s->search.stops[i].text);
    if (l->s->search.n == 0)
        session_say(l->s, "no stop condition yet: `:stop nan`, `:stop s off > 8`, `:stop m falls`");
}

/* 1 to n as 0 to n - 1; -1: it is none of these. */
static int number_from(const char *text, int n)
{
    char *end;
    const long value = strtol(text, &end, 10);
    return end != text && *end == '\0' && value >= 1 && value <= n ? (int)value - 1 : -1;
}

static void run_unstop(struct loop *l, const char *argument)
{
    const int all = strcmp(argument, "all") == 0, i = number_from(argument, l->s->search.n);
    if (!all && i < 0)
        session_say(l->s, "expected a number from `:stops`, or all");
    for (int k = l->s->search.n; k-- > 0;)
        if (all || k == i)
            session_remove_stop(l->s, k);
}

static void run_mark(struct loop *l, const char *argument)
{
    if (argument[0])
        session_set_mark(l->s, argument[1] ? 0 : (unsigned char)argument[0]);
    else
        loop_act(l, ACTION_MARK);
}

static void run_marks(struct loop *l, const char *argument)
{
    (void)argument;
    const struct jumps *j = &l->s->at.jumps;
    for (int i = 0; i < MARKS_MAX; i++) {
        char words[CURSOR_WORDS_BYTES];
        cursor_words(l->s->run.trace, &j->mark[i], words);
        if (j->marked >> i & 1)
            notes_add(&l->notes, "%c  %s", jumps_letter(i), words);
    }
    if (!j->marked)
        session_say(l->s, "no marks yet: m and a letter mark a place");
}

static void run_pin(struct loop *l, const char *argument)
{
    struct cursor at = l->s->at.cursor;
    if (!argument[0] || parse_place(l, argument, &at) == 0)
        session_toggle_pin(l->s, &at);
}

static void run_unpin(struct loop *l, const char *argument)
{
    const int i = number_from(argument, l->s->at.pins.n);
    if (!argument[0])
        session_unpin(l->s, -1);
    else if (i >= 0)
        session_unpin(l->s, i);
    else
        session_say(l->s, l->s->at.pins.n ? "expected a number from 1 to %d" : "nothing is pinned", l->s->at.pins.n);
}

static void run_whatif(struct loop *l, const char *argument)
{
    if (argument[0] && session_try(l->s, argument) != 0)
        return;
    loop_open_view(l, VIEW_WHATIF);
}

static void list_settings(struct loop *l)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct session_setting *setting = &l->s->subject.settings[i];
        const struct scenario_key *key = &scenario_keys[i];
        if (setting->value)
            notes_add(&l->notes, "%s.%s=%s  (the file %s%s)", section_names[key->section], key->name, setting->value,
                      setting->file ? "says " : "has no such key", setting->file ? setting->file : "");
    }
    if (l->notes.n == 0)
        session_say(l->s, "nothing is set: KEY=VALUE sets a key, such as shape.causal=top-left");
}

static void run_set(struct loop *l, const char *argument)
{
    char key[64], value[PROMPT_BYTES];
    struct err err;
    const size_t length = strcspn(argument, "="), blank = strcspn(argument, " =");
    if (!l->s->subject.has_scenario) {
        session_say(l->s, SESSION_NO_KERNEL);
        return;
    }
    if (!argument[0]) {
        list_settings(l);
        return;
    }
    if (argument[length] != '=' || blank >= sizeof key) {
        session_say(l->s, "expected KEY=VALUE, such as shape.causal=top-left");
        return;
    }
    snprintf(key, sizeof key, "%.*s", (int)blank, argument);
    snprintf(value, sizeof value, "%s", argument + length + 1 + strspn(argument + length + 1, " "));
    if (session_set(l->s, key, value, &err) != 0)
        session_say(l->s, "%.60s%s%.180s", err.where, err.where[0] ? ": " : "", err.message);
    else if (scenario_check(&l->s->subject.scenario, &err) != 0)
        session_say(l->s, "%.60s=%.60s is set, but %.120s", key, value, err.message);
    else
        session_say(l->s, "%.60s=%.100s: r runs it", key, value);
}

static void run_replay(struct loop *l, const char *argument)
{
    struct err err = {0};
    if (!argument[0])
        session_say(l->s, "expected a kernel (.cu) or a scenario, such as :replay kernels/v2b_scalar.cu");
    else if (session_replay(l->s, argument, &err) != 0)
        session_say(l->s, "%.120s%s%.180s", err.where, err.where[0] ? ": " : "", err.message);
}

static void run_sweep(struct loop *l, const char *argument)
{
    struct err err = {0};
    if (argument[0] && session_load_sweep(l->s, argument, &err) != 0)
        session_say(l->s, "%.120s%s%.180s", err.where, err.where[0] ? ": " : "", err.message);
    else
        loop_open_view(l, VIEW_SWEEP);
}

static void run_save(struct loop *l, const char *argument)
{
    loop_save(l, argument[0] ? argument : NULL);
}

/* As a scenario: what decided the run on the screen; of a trace, what it says of that. */
static int write_problem(struct session *s, const char *path, struct err *err)
{
    const struct scenario *made = session_made_by(s);
    struct scenario read;
    if (!path_ends_in(path, ".ini"))
        return err_set(err, ERR_INPUT, "", "expected a name that ends in .ini, found '%.100s'", path);
    if (access(path, F_OK) == 0)
        return err_set(err, ERR_INPUT, "", "%.180s already exists", path);
    if (made)
        return scenario_write(made, path, err);
    if (!s->runs.n)
        return err_set(err, ERR_INPUT, "", "there is no run yet");
    if (session_read(s->subject.path, s->subject.paths.root, &read, err) != 0)
        return -1;
    const int failed = scenario_write(&read, path, err);
    scenario_free(&read);
    return failed;
}

static void run_write(struct loop *l, const char *argument)
{
    struct err err = {0};
    char settings[200];
    const struct scenario *made = session_made_by(l->s);
    if (!argument[0]) {
        session_say(l->s, "expected the name of a scenario, such as :write mine.ini");
    } else if (write_problem(l->s, argument, &err) != 0) {
        session_say(l->s, "%.100s%s%.150s", err.where, err.where[0] ? ": " : "", err.message);
    } else {
        scenario_difference(made ? made : &l->s->subject.scenario, &l->s->subject.scenario, settings, sizeof settings);
        session_say(l->s, "wrote %.100s%s%.120s", argument, made && settings[0] ? "; not run yet, and not in it: " : "",
                    made ? settings : "");
    }
}

static void run_quit(struct loop *l, const char *argument)
{
    if (argument[0])
        session_say(l->s, "quit takes no argument, found '%.60s'", argument);
    else
        loop_leave(l);
}

static void run_help(struct loop *l, const char *argument);

static void (*const functions[])(struct loop *l, const char *argument) = {
#define COMMAND(name, arguments, completion, help, function) function,
#include "tui/keys/commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof functions / sizeof *functions };

static void help_on_key(struct loop *l, const char *word)
{
    const int key = key_from_name(word);
    const enum action a = key == KEY_ID_NONE ? ACTION_NONE : action_of_key(key);
    if (a != ACTION_NONE)
        notes_add(&l->notes, "%s  %s: %s", word, action_text(a)->name, action_text(a)->help);
}

/* A word finds the names that it is part of, one or two letters, as of a key, only their own. */
static bool is_in(const char *name, const char *word)
{
    return strlen(word) > 2 ? strstr(name, word) != NULL : strcmp(name, word) == 0;
}

/* "verdict" is a word of "local verdict". */
static bool is_word_of(const char *term, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = term; (at = strcasestr(at, word)); at++)
        if ((at == term || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
            return n > 0;
    return false;
}

/* What stands on the screens: terms, stages, views, marks, kinds of events. */
static void help_on_term(struct loop *l, const char *word)
{
    const struct word_text *term;
    for (int i = 0; (term = word_text(i)); i++)
        if (is_word_of(term->term, word))
            notes_add(&l->notes, "%s: %s", term->term, term->meaning);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (strcasecmp(channel_name(ch), word) == 0 || strcmp(channel_label(ch), word) == 0)
            notes_add(&l->notes, "%s: %s: %s", channel_label(ch), channel_meaning(ch), channel_formula(ch));
    for (enum view_id view = 0; view < VIEW_COUNT; view++) {
        const char *title, *about = view_about(view, &title);
        if (strcasecmp(view_name(view), word) == 0)
            notes_add(&l->notes, "%s (view): %s", title, about);
    }
    for (int sign = 0; sign < STATUS_COUNT; sign++)
        if (strcasecmp(sign_word(sign), word) == 0 || strcmp(sign_glyph(sign), word) == 0)
            notes_add(&l->notes, "%s %s: %s", sign_glyph(sign), sign_word(sign), sign_meaning(sign));
    for (int kind = 1; kind < EVENT_KINDS; kind++)
        if (strcmp(event_name(kind), word) == 0)
            notes_add(&l->notes, "%s: %s", word, event_meaning(kind));
}

static void help_on(struct loop *l, const char *word)
{
    help_on_key(l, word);
    for (int i = 0; i < COMMANDS; i++)
        if (is_in(command_text(i)->name, word))
            notes_add(&l->notes, ":%s %s  %s", command_text(i)->name, command_text(i)->arguments,
                      command_text(i)->help);
    for (int a = 0; a < ACTION_COUNT; a++)
        if (is_in(action_text(a)->name, word))
            notes_add(&l->notes, "%s  %s: %s", action_text(a)->keys, action_text(a)->name, action_text(a)->help);
    help_on_term(l, word);
    for (int i = 0; i < STOP_KINDS; i++)
        if (stop_word(i)[0] && strcmp(stop_word(i), word) == 0)
            notes_add(&l->notes, ":stop %s  %s", word, stop_meaning(i));
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct scenario_key *key = &scenario_keys[i];
        char name[64];
        snprintf(name, sizeof name, "%s.%s", section_names[key->section], key->name);
        if (strcmp(key->name, word) == 0 || strcmp(name, word) == 0)
            notes_add(&l->notes, "%s: %s  (%s)", name, key->meaning, key->expected);
    }
}

/* "shares" is explained as "share". */
static void run_help(struct loop *l, const char *word)
{
    char one[64];
    const size_t n = strlen(word);
    if (n == 0) {
        loop_open_view(l, VIEW_HELP);
        return;
    }
    help_on(l, word);
    if (l->notes.n == 0 && n > 2 && n < sizeof one && word[n - 1] == 's') {
        snprintf(one, sizeof one, "%.*s", (int)(n - 1), word);
        help_on(l, one);
    }
    if (l->notes.n == 0)
        session_say(l->s, "'%.60s' is not explained: ? explains this view, Tab lists what is", word);
}

/* ---- a line ---- */

/* The command of that name, or the only one that begins so; -1: none, -2: several. A single letter is
   one of vi's, :h and :q. */
static int find_command(const char *name)
{
    int found = -1;
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(command_text(i)->name, name) == 0)
            return i;
    for (int i = 0; i < COMMANDS; i++)
        if (strncmp(command_text(i)->name, name, strlen(name)) == 0)
            found = found == -1 ? i : -2;
    return found >= 0 && strlen(name) == 1 && !strchr("hq", name[0]) ? -2 : found;
}

static enum action find_action(const char *name)
{
    for (int a = 0; a < ACTION_COUNT; a++)
        if (strcmp(action_text(a)->name, name) == 0)
            return (enum action)a;
    return ACTION_NONE;
}

static void say_unknown(struct loop *l, const char *name)
{
    const char *nearest = "";
    int least = 1000;
    for (int i = 0; i < COMMANDS + ACTION_COUNT; i++) {
        const char *other = i < COMMANDS ? command_text(i)->name : action_text(i - COMMANDS)->name;
        const int distance = word_distance(name, other);
        if (distance < least) {
            least = distance;
            nearest = other;
        }
    }
    if (2 * least < (int)strlen(name)) /* what shares less is a word by itself */
        session_say(l->s, "no command '%.60s': the nearest is '%s'", name, nearest);
    else
        session_say(l->s, "no command '%.60s': Tab lists what there is", name);
}

void command_line_run(struct loop *l, const char *line)
{
    char text[PROMPT_BYTES];
    line += strspn(line, " ");
    const long count = strtol(line, NULL, 10);
    line += strspn(line, "0123456789 ");
    snprintf(text, sizeof text, "%s", line);
    for (size_t n = strlen(text); n > 0 && text[n - 1] == ' ';)
        text[--n] = '\0';
    char *argument = text + strcspn(text, " ");
    if (*argument)
        *argument++ = '\0';
    argument += strspn(argument, " ");
    session_hush(l->s);
    if (!text[0])
        return;
    const enum action a = find_action(text);
    const int exact = find_command(text);
    if (exact >= 0 && (a == ACTION_NONE || strcmp(command_text(exact)->name, text) == 0))
        functions[exact](l, argument);
    else if (a != ACTION_NONE && *argument)
        session_say(l->s, "'%s' does not take an argument", text);
    else if (a != ACTION_NONE)
        loop_act_times(l, a, count);
    else if (exact == -2)
        session_say(l->s, "'%.60s' is short for more than one: Tab lists them", text);
    else
        say_unknown(l, text);
}

int commands_write_docs(FILE *out)
{
    fputs("# Commands after `:`\n\nGenerated from `tui/keys/commands.def` by `make docs`. `:` opens a line at the "
          "bottom of the screen. Tab completes commands, views, channels, conditions, scenario keys and files, and "
          "cycles through the list it shows; Up and Down recall earlier lines; Esc, C-c or C-g leave. Editing: Home, "
          "End, C-a, C-e, C-w, C-u, C-k. The name of every action in [keys.md](keys.md) is a command as well, with a "
          "count before it: `:10 next-bad`. A command may be abbreviated while the abbreviation is unique.\n\n| "
          "command | what it does |\n| --- | --- |\n",
          out);
    for (int i = 0; i < COMMANDS; i++) {
        const struct command_text *text = command_text(i);
        fprintf(out, "| `:%s%s%s` | %s |\n", text->name, text->arguments[0] ? " " : "", text->arguments, text->help);
    }
    fputs(
        "\n## Stop conditions\n\n"
        "`[global] [STAGE] CONDITION`: a channel or `any` (which is the same as none), and one of these. Verdicts are "
        "those by what the run captured upstream, with `global` those by the original inputs. Tiles are looked through "
        "as the kernel ran, slot by slot, after the cursor (`*`) or before it (`#`).\n\n"
        "| condition | holds in a tile with |\n| --- | --- |\n",
        out);
    for (int i = 0; i < STOP_KINDS; i++)
        fprintf(out, "| `%s%s` | %s |\n", stop_word(i), stop_needs_number(i) ? stop_word(i)[0] ? " > N" : "> N" : "",
                stop_meaning(i));
    fputs(
        "\nA condition that counts takes a number, too: `s off > 8`. Comparisons are `>`, `<`, `>=`, `<=` and `=`.\n\n"
        "## Searching\n\n"
        "`/` looks for text in the view on the screen, where it is one of lines, else in findings and log, then in the "
        "source. Small letters match capitals as well. While matches are marked, `n` and `N` go through them in views "
        "of lines; in all other views, and after Esc, they are the next and the previous bad tile.\n",
        out);
    return ferror(out) ? -1 : 0;
}
