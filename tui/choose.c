#include "tui/choose.h"

#include "tui/keys/actions.h"
#include "tui/screen/term.h"
#include "tui/views/panels.h"
#include <errno.h>
#include <poll.h>

struct chooser {
    const char *title;
    const char *const *lines;
    int n, at, page;
    bool chosen, left;
    struct hits hits;
};

static void line_row(const struct list *l, int i, struct canvas *c, struct rect line)
{
    const char *const *lines = l->of;
    canvas_put_cut(c, line, 0, 2, list_style(l, i), lines[i]);
}

static void draw(struct chooser *k, struct canvas *c)
{
    const struct rect all = {0, 0, c->rows, c->cols};
    const struct list list = {.of = k->lines, .n = k->n, .selected = k->at, .row = line_row};
    k->hits.n = 0;
    canvas_clear(c);
    canvas_put(c, all, 0, 0, STYLE_STRONG, "attnscope");
    if (c->rows < 4)
        return;
    rule_draw(c, (struct rect){1, 0, 1, c->cols}, k->title, NULL);
    k->page = c->rows - 3;
    list_draw(&list, c, (struct rect){2, 0, k->page, c->cols});
    canvas_put_cut(c, all, c->rows - 1, 0, STYLE_DIM, "j k line  Enter opens it  q leaves");
}

static void act(struct chooser *k, enum action a)
{
    switch (a) {
    case ACTION_ZOOM:
        k->chosen = true;
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
        k->left = true;
        break;
    default:
        k->at = list_selected(k->at + list_moves(a, k->page), k->n);
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
        k->left = true;
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
    const bool ascii = o->ascii || !term_utf8();
    int failed = 0;
    while (!k.left && !k.chosen && !failed)
        failed = turn(&k, &canvas, ascii, err);
    term_stop();
    canvas_free(&canvas);
    return k.chosen && !failed ? k.at : -1;
}
