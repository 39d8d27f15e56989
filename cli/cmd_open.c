#include "cli/report.h"
#include "cli/tables.h"
#include "engine/session/look.h"
#include "tui/choose.h"
#include "tui/config.h"
#include "tui/loop.h"
#include "tui/play.h"
#include "tui/recent.h"
#include "tui/show.h"
#include "tui/views/layout.h"
#include "tui/views/view.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool usable_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* --view, or the overview. */
static int view_named(const struct options *o, enum view_id *out, struct err *err)
{
    char names[256] = "";
    const int view = o->view ? view_from_name(o->view) : VIEW_OVERVIEW;
    if (view >= 0) {
        *out = (enum view_id)view;
        return 0;
    }
    for (enum view_id v = 0; v < VIEW_COUNT; v++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", v ? ", " : "", view_name(v));
    return err_set(err, ERR_USAGE, "--view", "expected one of %s, found '%s'", names, o->view);
}

/* What the user's file says, and the options instead. */
static int configure(const struct options *o, struct config *config, struct err *err)
{
    if (config_load(config, err) != 0)
        return -1;
    if (o->background != BACKGROUND_UNKNOWN)
        config->theme.background = o->background;
    return 0;
}

static bool is_ascii(const struct options *o, const struct config *config)
{
    return o->ascii || config->choice[SETTING_ASCII] == 1;
}

static int write_picture(const struct options *o, struct session *s, enum view_id view, struct err *err)
{
    struct config config;
    if (configure(o, &config, err) != 0)
        return -1;
    FILE *out = fopen(o->svg, "w");
    if (!out)
        return err_errno(err, o->svg, "the picture cannot be written");
    const struct tui_script script = {o->keys, o->cols, o->rows, o->ascii, true, &config.theme};
    int failed = o->keys ? tui_show_script(s, view, &script, out, err)
                         : tui_picture(s, view, o->cols, o->rows, o->ascii, &config.theme, out, err);
    if (fclose(out) != 0 && !failed)
        failed = err_errno(err, o->svg, "the picture cannot be written");
    return failed;
}

/* The cursor where --at wants it. */
static int go_to(const struct options *o, struct session *s, struct err *err)
{
    struct cursor to = s->at.cursor;
    if (!o->at || !s->run.trace)
        return 0;
    if (cursor_parse(o->at, s->run.trace, &to, err) != 0) {
        snprintf(err->where, sizeof err->where, "--at");
        return -1;
    }
    session_go_cursor(s, &to);
    return 0;
}

static int show(const struct options *o, struct session *s, enum view_id view, struct err *err)
{
    if (go_to(o, s, err) != 0)
        return -1;
    const struct view *shown = views[view];
    session_look(s, shown->looks);
    session_look_finish(s);
    session_want_states(s, shown->states);
    if (shown->rounding) {
        session_want_rounding(s);
        session_finish_rounding(s);
    }
    const struct tui_script script = {o->keys, o->cols, o->rows, o->ascii, false, NULL};
    return o->svg    ? write_picture(o, s, view, err)
           : o->keys ? tui_show_script(s, view, &script, text_out(), err)
                     : tui_show(s, view, o->cols, o->rows, o->ascii, text_out(), err);
}

/* The first screen, then the finding; the exit status is the verdict. */
static int print_first_screen(const struct options *o, struct session *s, enum view_id view, struct err *err)
{
    char why[512];
    if (options_finish(s, err) != 0)
        return -1;
    options_look_bias(o, s);
    if (show(o, s, view, err) != 0)
        return -1;
    fputs("\n", text_out());
    report_write_findings(s, text_out());
    report_write_bias(s, text_out());
    report_write_expectation(s, text_out());
    const int status = report_status(s, why, sizeof why);
    if (status < 0)
        *err = s->job.err;
    return status;
}

static int big_enough(struct err *err)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return 0; /* curses knows better, or asks terminfo */
    if (size.ws_col >= SCREEN_MIN_COLS && size.ws_row >= SCREEN_MIN_ROWS)
        return 0;
    return err_set(err, ERR_TERMINAL, "",
                   "the terminal is too small (--text prints one screen): needs %dx%d, have %dx%d", SCREEN_MIN_COLS,
                   SCREEN_MIN_ROWS, size.ws_col, size.ws_row);
}

/* How the user left this file, under its full path. note: what is said of a list that is damaged. */
static void recall(const struct session *s, struct recent_entry *entry, char *note, size_t bytes)
{
    static struct recent recent;
    char path[PATH_MAX], list[512];
    *entry = (struct recent_entry){.split = 0};
    if (!realpath(s->subject.path, path) || strlen(path) >= sizeof entry->path ||
        session_settings(s, entry->set, sizeof entry->set) != 0)
        return;
    recent_load(&recent);
    const struct recent_entry *found = recent_find(&recent, path, entry->set);
    if (found)
        *entry = *found;
    memcpy(entry->path, path, strlen(path) + 1);
    if (recent.damaged && recent_path(list, sizeof list) == 0)
        snprintf(note, bytes, "line %d makes no sense and is passed over: %.180s", recent.damaged, list);
}

static int debug(const struct options *o, const struct config *config, struct session *s, enum view_id view,
                 struct err *err)
{
    struct recent_entry entry;
    char note[240] = "";
    const bool remember = config->choice[SETTING_REMEMBER] == 0;
    if (big_enough(err) != 0)
        return -1;
    if (remember)
        recall(s, &entry, note, sizeof note);
    const struct tui_options tui = {.ascii = is_ascii(o, config),
                                    .view = view,
                                    .mouse = config->choice[SETTING_MOUSE] == 0,
                                    .tries = config->choice[SETTING_TRY] == 0,
                                    .theme = &config->theme,
                                    .at = o->at,
                                    .place = remember ? &entry : NULL,
                                    .note = note[0] ? note : NULL};
    if (session_start(s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    if (s->subject.has_scenario)
        session_watch(s, 1); /* where that cannot be, the screen says why */
    err->code = ERR_NONE;
    const int failed = tui_run(s, &tui, err);
    /* By a signal, too. Where that cannot be, nothing is remembered. */
    if (remember && entry.path[0] && (!failed || err->code == ERR_CANCELLED) &&
        session_settings(s, entry.set, sizeof entry.set) == 0)
        recent_note(&entry);
    if (failed)
        return -1;
    return o->output ? session_save(s, o->output, err) : 0;
}

/* Without a file: one of those that were open last. 1: `o` has one now; 0: the user left. */
static int choose_file(struct options *o, char *file[1], struct recent *recent, const struct config *config,
                       struct err *err)
{
    static char words[RECENT_MAX][2100];
    const char *lines[RECENT_MAX];
    const struct tui_options tui = {
        .ascii = is_ascii(o, config), .mouse = config->choice[SETTING_MOUSE] == 0, .theme = &config->theme};
    recent_load(recent);
    for (int i = 0; i < recent->n; i++)
        recent_words(&recent->at[i], words[i], sizeof words[i]), lines[i] = words[i];
    if (recent->n == 0)
        return err_set(err, ERR_USAGE, "", "expected %s; attnscope --help lists commands and options",
                       command_rows[COMMAND_OPEN].arguments);
    err->code = ERR_NONE;
    const int chosen = tui_choose("opened last", lines, recent->n, &tui, err);
    if (chosen < 0)
        return err->code == ERR_NONE ? 0 : -1;
    file[0] = recent->at[chosen].path;
    for (char *set = recent->at[chosen].set, *end; (end = strchr(set, '\n')); set = end + 1) {
        *end = '\0';
        if (o->settings.n < (int)(sizeof o->settings.word / sizeof *o->settings.word))
            o->settings.word[o->settings.n++] = set;
    }
    o->files = file;
    o->n_files = 1;
    return 1;
}

/* Runs it and opens the debugger, or prints the first screen. */
static int open_file(const struct options *o, const struct config *config, int debugger, enum view_id view,
                     struct err *err)
{
    struct session *s;
    int status;
    if (options_open(o, o->files[0], &s, err) != 0)
        return -1;
    if (s->swept && !o->view)
        view = VIEW_SWEEP;
    if (debugger && s->subject.has_scenario && access(s->subject.scenario.kernel, R_OK) != 0) {
        status = err_errno(err, s->subject.scenario.kernel, "cannot read the kernel");
    } else if (debugger) {
        status = debug(o, config, s, view, err);
    } else {
        status = print_first_screen(o, s, view, err);
        if (o->output && s->run.trace && session_save(s, o->output, err) != 0)
            status = -1;
    }
    session_free(s);
    return status;
}

int command_open(const struct options *o, struct err *err)
{
    const bool debugger = !o->text && usable_terminal();
    struct options chosen = *o;
    struct config config = {0};
    static struct recent recent; /* the options point into it */
    enum view_id view;
    char *file[1];
    if (view_named(o, &view, err) != 0 || (debugger && configure(o, &config, err) != 0))
        return -1;
    if (debugger && !o->view)
        view = (enum view_id)config.choice[SETTING_START];
    if (o->n_files == 0) {
        if (!debugger)
            return err_set(err, ERR_USAGE, "", "expected %s; attnscope --help lists commands and options",
                           command_rows[COMMAND_OPEN].arguments);
        const int found = choose_file(&chosen, file, &recent, &config, err);
        if (found <= 0)
            return found;
    }
    return open_file(&chosen, &config, debugger, view, err);
}

int command_show(const struct options *o, struct err *err)
{
    struct session *s;
    struct play play = {.n = 0};
    enum view_id view;
    if (o->keys && play_read(o->keys, &play, err) != 0) /* before the kernel runs */
        return -1;
    play_free(&play);
    if (view_named(o, &view, err) != 0 || options_open(o, o->files[0], &s, err) != 0)
        return -1;
    if (s->swept && !o->view)
        view = VIEW_SWEEP;
    int status = options_finish(s, err);
    if (status == 0)
        options_look_bias(o, s);
    status = status != 0 || show(o, s, view, err) != 0 ? -1 : 0;
    if (status == 0 && o->output)
        status = session_save(s, o->output, err);
    if (status == 0 &&
        s->job.err.code != ERR_NONE) { /* the screen shows what there was; the status says it did not end well */
        *err = s->job.err;
        status = -1;
    }
    session_free(s);
    return status;
}
