#include "tui/choose.h"

#include "tui/keys/actions.h"
#include "tui/screen/hits.h"
#include "tui/screen/term.h"
#include "tui/views/panels.h"
#include <errno.h>
#include <poll.h>

struct chooser {
    const char *title;
    const char *const *lines;
    int n, at, chosen, left;
    struct hits hits;
};

static void draw(struct chooser *k, struct canvas *c)
{
    const struct rect all = {0, 0, c->rows, c->cols}, list = {2, 0, c->rows - 3, c->cols};
    k->hits.n = 0;
    canvas_clear(c);
    canvas_put(c, all, 0, 0, STYLE_STRONG, "attnscope");
    if (c->rows < 4)
        return;
    rule_draw(c, (struct rect){1, 0, 1, c->cols}, k->title, NULL);
    const int first = window_first(k->at, list.rows, k->n);
    for (int i = 0; i < list.rows && first + i < k->n; i++) {
        hit_add(c, list, (struct rect){i, 0, 1, list.cols}, HIT_ENTRY, first + i, 0, 0);
        canvas_put(c, list, i, 0, STYLE_CURSOR, first + i == k->at ? "▶" : " ");
        canvas_put_cut(c, list, i, 2, first + i == k->at ? STYLE_STRONG : STYLE_TEXT, k->lines[first + i]);
    }
    canvas_put_cut(c, all, c->rows - 1, 0, STYLE_DIM, "j k line  Enter opens it  q leaves");
}

static void act(struct chooser *k, enum action a)
{
    switch (a) {
    case ACTION_Q_NEXT:
        k->at += k->at + 1 < k->n;
        break;
    case ACTION_Q_PREV:
        k->at -= k->at > 0;
        break;
    case ACTION_ZOOM:
        k->chosen = 1;
        break;
    case ACTION_SUSPEND:
        term_suspend();
        break;
    case ACTION_REDRAW:
        term_redraw_all();
        break;
    case ACTION_QUIT:
    case ACTION_BACK:
    case ACTION_INTERRUPT:
        k->left = 1;
        break;
    default:
        break;
    }
}

static void take_mouse(struct chooser *k)
{
    const struct mouse *m = term_mouse();
    enum hit_kind kind;
    int line, unused;
    if (m->kind == MOUSE_WHEEL_UP || m->kind == MOUSE_WHEEL_DOWN) {
        act(k, m->kind == MOUSE_WHEEL_UP ? ACTION_Q_PREV : ACTION_Q_NEXT);
    } else if (m->kind == MOUSE_PRESS && hits_find(&k->hits, m->row, m->col, &kind, &line, &unused)) {
        k->chosen = line == k->at;
        k->at = line;
    }
}

static void take(struct chooser *k, int key)
{
    if (key == TERM_MOUSE)
        take_mouse(k);
    else if (key == TERM_INTERRUPTED || key == TERM_ENDED)
        k->left = 1;
    else if (key != TERM_RESIZED)
        act(k, action_of_key(key));
}

static int turn(struct chooser *k, struct canvas *c, int ascii, struct err *err)
{
    struct pollfd fds[] = {{.fd = term_fd(), .events = POLLIN}, {.fd = term_signal_fd(), .events = POLLIN}};
    int cols, rows;
    term_size(&cols, &rows);
    if (c->cols != cols || c->rows != rows) {
        canvas_free(c);
        if (canvas_init(c, cols, rows, ascii) != 0)
            return err_no_memory(err, "", "a screen of %dx%d", cols, rows);
        c->hits = &k->hits;
    }
    draw(k, c);
    term_draw(c);
    if (poll(fds, 2, -1) < 0 && errno != EINTR)
        return err_errno(err, "", "waiting for events");
    for (int key; !k->left && !k->chosen && (key = term_read()) != TERM_NOTHING;)
        take(k, key);
    return 0;
}

int tui_choose(const char *title, const char *const *lines, int n, const struct tui_options *o, struct err *err)
{
    struct chooser k = {.title = title, .lines = lines, .n = n};
    struct canvas canvas = {0};
    const struct term_options terminal = {.theme = o->theme, .mouse = o->mouse};
    if (term_start(&terminal, err) != 0)
        return -1;
    const int ascii = o->ascii || !term_utf8();
    int failed = 0;
    while (!k.left && !k.chosen && !failed)
        failed = turn(&k, &canvas, ascii, err);
    term_stop();
    canvas_free(&canvas);
    return k.chosen && !failed ? k.at : -1;
}
