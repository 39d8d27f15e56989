#include "cli/options.h"
#include "cli/report.h"
#include "tui/config.h"
#include "tui/layout.h"
#include "tui/looks.h"
#include "tui/loop.h"
#include "tui/show.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int usable_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static int view_named(const char *view, struct err *err)
{
    char names[256] = "";
    if (!view)
        return 0;
    for (const char *const *name = tui_view_names(); *name; name++) {
        if (strcmp(*name, view) == 0)
            return 0;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? ", " : "", *name);
    }
    return err_set(err, ERR_USAGE, "--view", "expected one of %s, found '%s'", names, view);
}

/* What the user's file says, and the options instead. */
static int configure(const struct options *o, struct config *config, struct err *err)
{
    if (config_load(config, err) != 0)
        return -1;
    if (o->background)
        config->theme.background = strcmp(o->background, "light") == 0 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
    return 0;
}

static int write_picture(const struct options *o, struct session *s, const char *view, struct err *err)
{
    struct config config;
    if (configure(o, &config, err) != 0)
        return -1;
    FILE *out = fopen(o->svg, "w");
    if (!out)
        return err_errno(err, o->svg, "the picture can not be written");
    int failed = tui_picture(s, view, o->cols, o->rows, o->ascii, &config.theme, out, err);
    if (fclose(out) != 0 && !failed)
        failed = err_errno(err, o->svg, "the picture can not be written");
    return failed;
}

static int show(const struct options *o, struct session *s, struct err *err)
{
    const char *view = o->view ? o->view : tui_view_names()[0];
    session_look(s, view_looks((enum view_id)view_from_name(view)));
    session_look_finish(s);
    return o->svg ? write_picture(o, s, view, err) : tui_show(s, view, o->cols, o->rows, o->ascii, stdout, err);
}

/* The first screen, then the finding; the exit status is the verdict. */
static int print_first_screen(const struct options *o, struct session *s, struct err *err)
{
    char why[512];
    if (options_finish(s, err) != 0 || show(o, s, err) != 0)
        return -1;
    fputs("\n", stdout);
    report_write_findings(s, stdout);
    report_write_expectation(s, stdout);
    const int status = report_status(s, why, sizeof why);
    if (status < 0)
        *err = s->err;
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
                   "the terminal is too small (--text prints one screen): need %dx%d, have %dx%d", SCREEN_MIN_COLS,
                   SCREEN_MIN_ROWS, size.ws_col, size.ws_row);
}

static int debug(const struct options *o, struct session *s, struct err *err)
{
    struct config config;
    if (configure(o, &config, err) != 0 || big_enough(err) != 0)
        return -1;
    const struct tui_options tui = {.ascii = o->ascii || config.choice[SETTING_ASCII] == 1,
                                    .view = o->view ? o->view : tui_view_names()[config.choice[SETTING_START]],
                                    .mouse = config.choice[SETTING_MOUSE] == 0,
                                    .theme = &config.theme};
    if (session_start(s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    if (s->has_scenario)
        session_watch(s, 1); /* where that can not be, the screen says why */
    if (tui_run(s, &tui, err) != 0)
        return -1;
    return o->output ? session_save(s, o->output, err) : 0;
}

int command_open(const struct options *o, struct err *err)
{
    struct session *s;
    if (view_named(o->view, err) != 0 || options_open(o, o->files[0], &s, err) != 0)
        return -1;
    int status;
    if (!o->text && usable_terminal()) {
        status = debug(o, s, err);
    } else {
        status = print_first_screen(o, s, err);
        if (o->output && s->trace && session_save(s, o->output, err) != 0)
            status = -1;
    }
    session_free(s);
    return status;
}

int command_show(const struct options *o, struct err *err)
{
    struct session *s;
    if (view_named(o->view, err) != 0 || options_open(o, o->files[0], &s, err) != 0)
        return -1;
    int status = options_finish(s, err) != 0 || show(o, s, err) != 0 ? -1 : 0;
    if (status == 0 && o->output)
        status = session_save(s, o->output, err);
    if (status == 0 &&
        s->err.code != ERR_NONE) { /* the screen shows what there was; the status says it did not end well */
        *err = s->err;
        status = -1;
    }
    session_free(s);
    return status;
}
