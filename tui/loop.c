/* One poll() loop over terminal, signals, the session's work and a save; a tick only while something is under way. */
#include "tui/loop.h"

#include "engine/base/clock.h"
#include "engine/base/file_map.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/session/look.h"
#include "tui/loop_state.h"
#include "tui/play.h"
#include "tui/screen/term.h"
#include "tui/screen/text_flow.h"
#include "tui/views/layout.h"
#include "tui/views/panels.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TICK_MS 100

static int put_all(const struct notes *notes, struct text_flow *f)
{
    for (int i = 0; i < notes->n; i++)
        flow_put(f, STYLE_TEXT, notes->line[i]);
    return f->line;
}

static void notes_draw(const struct notes *notes, struct canvas *c)
{
    struct text_flow count = {.area = {0, 0, 0, c->cols - 2}};
    const int lines = put_all(notes, &count), room = c->rows - 4, rows = lines < room ? lines : room;
    if (rows <= 0)
        return;
    const struct rect rule = {c->rows - 3 - rows, 0, 1, c->cols};
    canvas_fill(c, rule, STYLE_RULE, "─");
    canvas_fill(c, (struct rect){rule.row + 1, 0, rows, c->cols}, STYLE_TEXT, " ");
    struct text_flow f = {.canvas = c, .area = {rule.row + 1, 1, rows, c->cols - 2}};
    put_all(notes, &f);
}

/* What was said and has no room on the line above the keys: all of it, until the next key. */
static void message_whole(const struct session *s, struct canvas *c)
{
    struct text_flow count = {.area = {0, 0, 0, c->cols - 4}};
    if (!s->message[0] || text_columns(s->message) + 4 <= c->cols || c->rows < SCREEN_MIN_ROWS)
        return;
    flow_put(&count, STYLE_WARNING, s->message);
    const int rows = count.line < c->rows / 2 ? count.line : c->rows / 2;
    const struct rect rule = {c->rows - 2 - rows, 0, 1, c->cols};
    canvas_fill(c, rule, STYLE_RULE, "─");
    canvas_fill(c, (struct rect){rule.row + 1, 0, rows, c->cols}, STYLE_TEXT, " ");
    struct text_flow f = {.canvas = c, .area = {rule.row + 1, 2, rows, c->cols - 4}};
    flow_put(&f, STYLE_WARNING, s->message);
}

/* What lies over every view: matches of a search, lists, a count that was typed, the prompt. */
static void overlay(struct loop *l)
{
    struct canvas *c = &l->canvas;
    if (views[l->view]->lines)
        search_mark(&l->search, c, view_body(l->cols, l->rows));
    if (l->notes.n)
        notes_draw(&l->notes, c);
    else
        message_whole(l->s, c);
    if (c->no_memory && l->rows > 1)
        text_right(c, (struct rect){l->rows - 2, 0, 1, l->cols - 1}, 0, STYLE_BAD,
                   " out of memory: this screen is incomplete ");
    if (l->count > 0 && l->rows > 1) {
        char count[24];
        snprintf(count, sizeof count, " %d ", l->count);
        text_right(c, (struct rect){l->rows - 2, 0, 1, l->cols - 1}, 0, STYLE_STRONG, count);
    }
    prompt_draw(&l->prompt, c);
}

static int fit_canvas(struct loop *l, struct err *err)
{
    if (l->canvas.cells && l->canvas.cols == l->cols && l->canvas.rows == l->rows)
        return 0;
    canvas_free(&l->canvas);
    if (canvas_init(&l->canvas, l->cols, l->rows, l->ascii) != 0)
        return err_no_memory(err, "", "a screen of %dx%d", l->cols, l->rows);
    l->canvas.hits = &l->hits;
    return 0;
}

/* What is shown now. */
static int compose(struct loop *l, int colors, bool light, struct err *err)
{
    if (fit_canvas(l, err) != 0)
        return -1;
    l->canvas.colors = l->ascii ? 0 : colors;
    l->canvas.light = light;
    const struct view *view = views[l->view];
    if (view->anchor && view->anchor(l->s) != l->anchor)
        loop_stand(l);
    l->vs.now = clock_seconds();
    l->vs.top = view_clamp_top(l->view, l->s, &l->vs, l->cols, l->rows, l->vs.top);
    view_draw(l->view, l->s, &l->canvas, &l->vs);
    overlay(l);
    return 0;
}

static int draw(struct loop *l, struct err *err)
{
    term_size(&l->cols, &l->rows);
    if (compose(l, term_colors(), term_light(), err) != 0)
        return -1;
    term_draw(&l->canvas);
    return 0;
}

static int ended(struct err *err)
{
    if (term_signal())
        return err_set(err, ERR_CANCELLED, "", "killed by signal %d (%s)", term_signal(), strsignal(term_signal()));
    return err_set(err, ERR_CANCELLED, "", "the terminal is gone");
}

/* All that waits at the terminal. */
static int read_terminal(struct loop *l, struct err *err)
{
    for (int key; !l->quit && (key = term_read()) != TERM_NOTHING;) {
        if (key == TERM_ENDED)
            return ended(err);
        if (key == TERM_INTERRUPTED)
            loop_act(l, ACTION_INTERRUPT);
        else if (key == TERM_MOUSE)
            loop_take_mouse(l);
        else if (key != TERM_RESIZED)
            loop_key(l, key);
    }
    return 0;
}

/* The first run is there: the cursor goes where it was asked to. */
static void go_first(struct loop *l)
{
    struct session *s = l->s;
    struct cursor to = s->at.cursor;
    struct err err;
    if (!l->at || !s->run.trace)
        return;
    const bool found = cursor_parse(l->at, s->run.trace, &to, &err) == 0;
    l->at = NULL;
    if (found)
        session_go_cursor(s, &to);
    if (!found && !l->at_remembered)
        session_say(s, "--at: %.230s", err.message);
    else if (found && l->at_remembered && !s->message[0])
        session_say(l->s, "where you left it; g: the first bad tile");
}

/* What is said where the program itself crashes: only what the run's owner can still find. */
static void note_last_words(const struct loop *l)
{
    const struct session *s = l->s;
    const int i = runs_index(&s->runs, s->runs.shown);
    char words[700], saved[640];
    if (!s->subject.has_scenario)
        snprintf(words, sizeof words, "attnscope crashed; the trace is unchanged\n");
    else if (i >= 0 && s->runs.at[i].saved)
        snprintf(words, sizeof words, "attnscope crashed; the run that was shown is saved as %s\n",
                 text_name(s->runs.at[i].saved, strlen(s->runs.at[i].saved), saved, sizeof saved));
    else
        snprintf(words, sizeof words, "attnscope crashed; the run that was shown was not saved and is lost\n");
    term_last_words(words);
}

/* What the session is to find out for the view. */
static void want(struct loop *l)
{
    const struct view *view = views[l->view];
    session_look(l->s, view->looks);
    session_want_states(l->s, view->states);
    session_want_picture(l->s, view->picture ? (enum picture_scope)l->vs.scope : PICTURE_TILE, l->vs.global);
    if (view->rounding || (!session_busy(l->s) && session_verdict(l->s) == RUN_IS_CLEAN))
        session_want_rounding(l->s);
}

static int turn(struct loop *l, struct err *err)
{
    want(l);
    if (l->tries || session_verdict(l->s) != RUN_IS_CLEAN)
        session_want_retry(l->s);
    note_last_words(l);
    if (l->s->run.trace && file_map_check(l->s->run.trace->bytes, err) != 0)
        return -1;
    if (draw(l, err) != 0)
        return -1;
    /* While a save reads the trace, the session does not take over a new one. */
    struct pollfd fds[] = {{.fd = term_fd(), .events = POLLIN},
                           {.fd = term_signal_fd(), .events = POLLIN},
                           {.fd = l->saver.fd, .events = POLLIN},
                           {.fd = l->saver.active ? -1 : session_fd(l->s), .events = POLLIN}};
    double share, seconds;
    const bool busy = session_busy(l->s) || l->saver.active || session_values_under_way(l->s, &share, &seconds);
    if (poll(fds, sizeof fds / sizeof *fds, busy ? TICK_MS : -1) < 0 && errno != EINTR)
        return err_errno(err, "", "waiting for events");
    if (read_terminal(l, err) != 0)
        return -1;
    if (l->saver.active && fds[2].revents)
        loop_take_saved(l);
    if (!l->saver.active) {
        session_update(l->s);
        loop_take_run(l);
        go_first(l);
    }
    return 0;
}

int tui_run(struct session *s, const struct tui_options *o, struct err *err)
{
    struct loop l = {
        .s = s, .ascii = o->ascii, .view = o->view, .pending = ACTION_NONE, .at = o->at, .tries = o->tries};
    if (o->place) {
        l.vs.split = o->place->split;
        l.at_remembered = !o->at && o->place->at[0];
        l.at = l.at_remembered ? o->place->at : o->at;
        recent_give(o->place, s);
    }
    if (o->note)
        session_say(s, "%s", o->note);
    session_set_patience(s, 0.05); /* what is made sooner does not flicker */
    if (saver_init(&l.saver, err) != 0)
        return -1;
    const struct term_options terminal = {.theme = o->theme, .mouse = o->mouse};
    if (term_start(&terminal, err) != 0) {
        saver_free(&l.saver);
        return -1;
    }
    if (!term_utf8())
        l.ascii = true;
    term_size(&l.cols, &l.rows);
    loop_begin_runs(&l);
    loop_stand(&l);
    l.vs.selected = views[l.view]->begin ? views[l.view]->begin(s) : 0;
    go_first(&l);
    int failed = 0;
    while (!l.quit && !failed)
        failed = turn(&l, err) != 0;
    term_stop();
    if (o->place && s->run.trace) {
        cursor_words(s->run.trace, &s->at.cursor, o->place->at);
        o->place->split = l.vs.split;
    }
    if (o->place)
        recent_take(o->place, s);
    saver_free(&l.saver);
    canvas_free(&l.canvas);
    return failed ? -1 : 0;
}

/* Until all work has ended that the screen shows something of. */
static int settle(struct loop *l, struct err *err)
{
    for (;;) {
        want(l);
        session_update(l->s);
        if (!l->saver.active)
            loop_take_run(l);
        if (!session_busy(l->s) && !l->saver.active && !l->s->search.under_way)
            break;
        struct pollfd fds[] = {{.fd = session_fd(l->s), .events = POLLIN}, {.fd = l->saver.fd, .events = POLLIN}};
        if (poll(fds, 2, TICK_MS) < 0 && errno != EINTR)
            return err_errno(err, "", "waiting for events");
        if (l->saver.active && fds[1].revents)
            loop_take_saved(l);
    }
    session_look_finish(l->s);
    if (views[l->view]->rounding)
        session_finish_rounding(l->s);
    return 0;
}

/* What a line of keys says, a character at a time. */
static void press(struct loop *l, const struct play_step *step)
{
    uint32_t code;
    if (step->key != KEY_ID_NONE)
        loop_key(l, step->key);
    for (const char *at = step->text; step->key == KEY_ID_NONE && *at; at += utf8_decode(at, &code)) {
        utf8_decode(at, &code);
        loop_key(l, code == ' ' ? KEY_ID_SPACE : (int)code);
    }
}

/* Shows what there is now, for as long as steps from i on say that it stays; returns the step behind those. */
static int show_still(struct loop *l, const struct tui_playing *p, const struct play *play, int i, double seconds,
                      const char *key, struct err *err)
{
    if (settle(l, err) != 0 || compose(l, p->colors, p->light, err) != 0)
        return -1;
    for (; i < play->n && play->step[i].key == KEY_ID_NONE && !play->step[i].text[0]; i++)
        seconds += play->step[i].seconds;
    p->shown(p->ctx, &l->canvas, seconds, key);
    return i;
}

int tui_play(struct session *s, const struct tui_options *o, const struct tui_playing *p, struct err *err)
{
    struct loop l = {
        .s = s, .ascii = o->ascii, .view = o->view, .pending = ACTION_NONE, .cols = p->cols, .rows = p->rows};
    struct play play;
    if (play_read(p->keys, &play, err) != 0)
        return -1;
    if (saver_init(&l.saver, err) != 0) {
        play_free(&play);
        return -1;
    }
    loop_begin_runs(&l);
    loop_stand(&l);
    const bool said = play.n > 0 && play.step[0].key == KEY_ID_NONE && !play.step[0].text[0];
    int i = show_still(&l, p, &play, 0, said ? 0 : PLAY_STAYS_S, "", err);
    while (i >= 0 && i < play.n && !l.quit) {
        const struct play_step *step = &play.step[i];
        press(&l, step);
        if (!l.quit)
            i = show_still(&l, p, &play, i + 1, step->seconds, step->text, err);
    }
    saver_free(&l.saver);
    canvas_free(&l.canvas);
    play_free(&play);
    return i < 0 ? -1 : 0;
}
