/* One poll() loop over terminal, signals, the session's work and a save; a tick only while something is under way. */
#include "tui/loop.h"

#include "tui/clock.h"
#include "tui/loop_state.h"
#include "tui/panels.h"
#include "tui/term.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TICK_MS 100
#define PAGE_TILES 8

void loop_say(struct loop *l, const char *text)
{
    snprintf(l->s->message, sizeof l->s->message, "%.*s", (int)sizeof l->s->message - 1, text);
}

void loop_open_view(struct loop *l, enum view_id view)
{
    if (view == l->view)
        return;
    if (l->n_back == MAX_BACK)
        memmove(l->back, l->back + 1, (size_t)--l->n_back * sizeof *l->back);
    l->back[l->n_back++] = l->view;
    l->view = view;
    l->vs.top = view_start_top(view, l->s, l->cols, l->rows);
    l->vs.selected = view == VIEW_RUNS ? runs_view_start(l->s) : 0;
}

static void cycle_shown(struct loop *l)
{
    const struct tile_detail *d = &l->s->detail;
    session_cycle_shown(l->s);
    if (d->got && d->cols == 1)
        loop_say(l, "v changes what tiles of several columns show: the list of one column has all four numbers");
}

static void cancel(struct loop *l)
{
    if (session_busy(l->s))
        session_cancel(l->s);
    else
        loop_say(l, "nothing is under way");
}

void loop_go_back(struct loop *l)
{
    if (l->n_back > 0) {
        l->view = l->back[--l->n_back];
        l->vs.top = view_start_top(l->view, l->s, l->cols, l->rows);
    } else if (l->view != VIEW_OVERVIEW) {
        l->view = VIEW_OVERVIEW;
    } else if (session_busy(l->s)) {
        session_cancel(l->s);
    }
}

static void zoom(struct loop *l)
{
    if (l->view == VIEW_TILE)
        loop_open_view(l, VIEW_SOURCE);
    else if (l->view == VIEW_OVERVIEW || l->view == VIEW_MAP)
        loop_open_view(l, VIEW_TILE);
}

/* Keys that scroll views of text; 1 if this was one. */
static int scroll(struct loop *l, enum action a)
{
    const int page = view_body(l->cols, l->rows).rows;
    if (!views[l->view].lines)
        return 0;
    int by = a == ACTION_Q_NEXT      ? 1
             : a == ACTION_Q_PREV    ? -1
             : a == ACTION_PAGE_DOWN ? page
             : a == ACTION_PAGE_UP   ? -page
                                     : 0;
    l->vs.top = view_clamp_top(l->view, l->s, l->cols, l->rows, l->vs.top + by);
    return by != 0;
}

/* In the zoomed tile the keys that step over tiles step over elements. */
static enum action within_tile(enum action a)
{
    switch (a) {
    case ACTION_KV_PREV:
        return ACTION_COL_PREV;
    case ACTION_KV_NEXT:
        return ACTION_COL_NEXT;
    case ACTION_Q_PREV:
        return ACTION_ROW_PREV;
    case ACTION_Q_NEXT:
        return ACTION_ROW_NEXT;
    default:
        return a;
    }
}

static void page(struct loop *l, int direction)
{
    if (l->view == VIEW_TILE)
        session_step_row(l->s, direction * PAGE_TILES);
    else
        session_step_q(l->s, direction * PAGE_TILES);
}

int loop_step(struct loop *l, enum action a)
{
    struct session *s = l->s;
    switch (a) {
    case ACTION_NEXT_BAD:
        session_step_bad(s, 1);
        break;
    case ACTION_PREV_BAD:
        session_step_bad(s, -1);
        break;
    case ACTION_FIRST_BAD:
        session_go_first_bad(s);
        break;
    case ACTION_WORST:
        session_go_worst(s);
        break;
    case ACTION_NEXT_STAGE:
        session_step_stage(s, 1);
        break;
    case ACTION_PREV_STAGE:
        session_step_stage(s, -1);
        break;
    case ACTION_HEAD_NEXT:
        session_step_head(s, 1);
        break;
    case ACTION_HEAD_PREV:
        session_step_head(s, -1);
        break;
    case ACTION_KV_NEXT:
        session_step_kv(s, 1);
        break;
    case ACTION_KV_PREV:
        session_step_kv(s, -1);
        break;
    case ACTION_Q_NEXT:
        session_step_q(s, 1);
        break;
    case ACTION_Q_PREV:
        session_step_q(s, -1);
        break;
    case ACTION_ROW_NEXT:
        session_step_row(s, 1);
        break;
    case ACTION_ROW_PREV:
        session_step_row(s, -1);
        break;
    case ACTION_COL_NEXT:
        session_step_col(s, 1);
        break;
    case ACTION_COL_PREV:
        session_step_col(s, -1);
        break;
    case ACTION_PAGE_DOWN:
        page(l, 1);
        break;
    case ACTION_PAGE_UP:
        page(l, -1);
        break;
    default:
        return 0;
    }
    return 1;
}

static void command(struct loop *l, enum action a)
{
    switch (a) {
    case ACTION_ZOOM:
        zoom(l);
        break;
    case ACTION_BACK:
        loop_go_back(l);
        break;
    case ACTION_OVERVIEW:
        loop_open_view(l, VIEW_OVERVIEW);
        break;
    case ACTION_MAP:
        loop_open_view(l, VIEW_MAP);
        break;
    case ACTION_TILE:
        loop_open_view(l, VIEW_TILE);
        break;
    case ACTION_SOURCE:
        loop_open_view(l, VIEW_SOURCE);
        break;
    case ACTION_LOG:
        loop_open_view(l, VIEW_LOG);
        break;
    case ACTION_RESOURCES:
        loop_open_view(l, VIEW_RESOURCES);
        break;
    case ACTION_RUNS:
        loop_open_view(l, VIEW_RUNS);
        break;
    case ACTION_CHANGES:
        loop_open_view(l, VIEW_CHANGES);
        break;
    case ACTION_ERRORS:
        loop_open_view(l, VIEW_ERRORS);
        break;
    case ACTION_HELP:
        if (l->view == VIEW_HELP)
            loop_go_back(l);
        else
            loop_open_view(l, VIEW_HELP);
        break;
    case ACTION_CYCLE_SHOWN:
        cycle_shown(l);
        break;
    case ACTION_REFERENCE:
        l->vs.truth = !l->vs.truth;
        loop_say(l, l->vs.truth ? "wanted: the truth from the original inputs"
                                : "wanted: what follows from the values captured upstream");
        break;
    case ACTION_CANCEL:
        cancel(l);
        break;
    case ACTION_INTERRUPT:
        if (session_busy(l->s))
            session_cancel(l->s);
        else
            l->quit = 1;
        break;
    case ACTION_REDRAW:
        term_redraw_all();
        break;
    case ACTION_SUSPEND:
        term_suspend();
        break;
    case ACTION_QUIT:
        l->quit = 1;
        break;
    default:
        break;
    }
}

void loop_act(struct loop *l, enum action a)
{
    if (a == ACTION_NONE)
        return;
    if (!l->saver.active)
        l->s->message[0] = '\0';
    if (loop_list_action(l, a) || scroll(l, a))
        return;
    if (l->view == VIEW_TILE)
        a = within_tile(a);
    if (!loop_step(l, a) && !loop_run_action(l, a))
        command(l, a);
}

static void take_key(struct loop *l, int key)
{
    if (l->naming)
        loop_type_name(l, key);
    else
        loop_act(l, action_of_key(key));
}

static int fit_canvas(struct loop *l, struct err *err)
{
    term_size(&l->cols, &l->rows);
    if (l->canvas.cells && l->canvas.cols == l->cols && l->canvas.rows == l->rows)
        return 0;
    canvas_free(&l->canvas);
    if (canvas_init(&l->canvas, l->cols, l->rows, l->ascii) != 0)
        return err_errno(err, "", "no memory for a screen of %dx%d", l->cols, l->rows);
    l->canvas.hits = &l->hits;
    return 0;
}

static int draw(struct loop *l, struct err *err)
{
    if (fit_canvas(l, err) != 0)
        return -1;
    const int line = source_line(l->s);
    if (l->view == VIEW_SOURCE && line != l->source_line)
        l->vs.top = view_start_top(l->view, l->s, l->cols, l->rows);
    l->source_line = line;
    l->vs.now = clock_seconds();
    l->vs.top = view_clamp_top(l->view, l->s, l->cols, l->rows, l->vs.top);
    view_draw(l->view, l->s, &l->canvas, &l->vs);
    term_draw(&l->canvas);
    return 0;
}

static int ended(struct err *err)
{
    if (term_signal())
        return err_set(err, ERR_CANCELLED, "", "ended by signal %d (%s)", term_signal(), strsignal(term_signal()));
    return err_set(err, ERR_CANCELLED, "", "the terminal has gone");
}

/* All that waits at the terminal. */
static int read_terminal(struct loop *l, struct err *err)
{
    for (int key; !l->quit && (key = term_read()) != TERM_NOTHING;) {
        if (key == TERM_ENDED)
            return ended(err);
        if (key == TERM_INTERRUPTED)
            command(l, ACTION_INTERRUPT);
        else if (key == TERM_MOUSE)
            loop_take_mouse(l);
        else if (key != TERM_RESIZED)
            take_key(l, key);
    }
    return 0;
}

static int turn(struct loop *l, struct err *err)
{
    if (draw(l, err) != 0)
        return -1;
    /* While a save reads the trace, the session does not take over a new one. */
    struct pollfd fds[] = {{.fd = term_fd(), .events = POLLIN},
                           {.fd = term_signal_fd(), .events = POLLIN},
                           {.fd = l->saver.fd, .events = POLLIN},
                           {.fd = l->saver.active ? -1 : session_fd(l->s), .events = POLLIN}};
    const int busy = session_busy(l->s) || l->saver.active;
    if (poll(fds, sizeof fds / sizeof *fds, busy ? TICK_MS : -1) < 0 && errno != EINTR)
        return err_errno(err, "", "waiting for events");
    if (read_terminal(l, err) != 0)
        return -1;
    if (l->saver.active && fds[2].revents)
        loop_take_saved(l);
    if (!l->saver.active) {
        session_update(l->s);
        loop_take_run(l);
    }
    return 0;
}

int tui_run(struct session *s, const struct tui_options *o, struct err *err)
{
    struct loop l = {.s = s, .ascii = o->ascii, .view = VIEW_OVERVIEW};
    if (o->view && view_from_name(o->view) >= 0)
        l.view = (enum view_id)view_from_name(o->view);
    if (saver_init(&l.saver, err) != 0)
        return -1;
    const struct term_options terminal = {.theme = o->theme, .mouse = o->mouse};
    if (term_start(&terminal, err) != 0) {
        saver_free(&l.saver);
        return -1;
    }
    if (!term_utf8())
        l.ascii = 1;
    term_size(&l.cols, &l.rows);
    loop_begin_runs(&l);
    l.vs.top = view_start_top(l.view, s, l.cols, l.rows);
    int failed = 0;
    while (!l.quit && !failed)
        failed = turn(&l, err) != 0;
    term_stop();
    saver_free(&l.saver);
    canvas_free(&l.canvas);
    return failed ? -1 : 0;
}
