#include "tui/views/list.h"

int list_selected(int selected, int n)
{
    return selected >= n ? n > 0 ? n - 1 : 0 : selected > 0 ? selected : 0;
}

int list_moves(enum action a, int page)
{
    return a == ACTION_Q_NEXT      ? 1
           : a == ACTION_Q_PREV    ? -1
           : a == ACTION_PAGE_DOWN ? page
           : a == ACTION_PAGE_UP   ? -page
                                   : 0;
}

int window_first(int at, int visible, int n)
{
    int first = at - visible / 2;
    if (first > n - visible)
        first = n - visible;
    return first > 0 ? first : 0;
}

enum style list_style(const struct list *l, int i)
{
    return i == l->selected ? STYLE_STRONG : STYLE_TEXT;
}

void list_mark(struct canvas *c, struct rect line)
{
    canvas_put(c, line, 0, 1, STYLE_STRONG, "◆");
}

/* Where an entry's text stands: beside its mark. */
static struct text_flow flow_of(struct canvas *c, struct rect area, int top)
{
    return (struct text_flow){.canvas = c, .area = {area.row, area.col + 2, area.rows, area.cols - 3}, .top = top};
}

/* Lines of the first n entries. */
static int lines_of(const struct list *l, struct rect area, int n)
{
    struct text_flow f = flow_of(NULL, area, 0);
    for (int i = 0; l->text && i < n; i++)
        l->text(l, i, &f);
    return l->text ? f.line : n;
}

/* The first line that is shown: the selected entry in the middle, as far as there are others, and its first line before
   its last. */
static int first_line(const struct list *l, struct rect area)
{
    if (!l->text)
        return window_first(l->selected, area.rows, l->n);
    const int begin = lines_of(l, area, l->selected), lines = lines_of(l, area, l->selected + 1) - begin;
    const int middle = window_first(begin + lines / 2, area.rows, lines_of(l, area, l->n));
    return middle < begin ? middle : begin;
}

int list_draw(const struct list *l, struct canvas *c, struct rect area)
{
    if (l->n == 0) {
        struct text_flow f = {.canvas = c, .area = {area.row, 1, area.rows, area.col + area.cols - 2}};
        flow_put(&f, STYLE_DIM, l->empty ? l->empty : "");
        return f.line;
    }
    struct text_flow f = flow_of(c, area, first_line(l, area));
    for (int i = 0; i < l->n && f.line - f.top < area.rows; i++) {
        const int from = f.line - f.top;
        const struct rect line = {area.row + from, area.col, 1, area.cols};
        if (l->text)
            l->text(l, i, &f);
        else
            f.line++;
        const int first = from > 0 ? from : 0, lines = f.line - f.top - first;
        if (lines <= 0)
            continue;
        if (!l->text)
            l->row(l, i, c, line);
        for (int k = 0; k < lines && l->kind == LIST_CHOICE; k++)
            hit_add(c, area, (struct rect){first + k, 0, 1, area.cols}, HIT_ENTRY, i, 0, 0);
        if (i == l->selected && from >= 0 && l->kind != LIST_TABLE)
            canvas_put(c, line, 0, 0, STYLE_CURSOR, "▶");
    }
    const int used = f.line - f.top;
    return used < area.rows ? used : area.rows;
}
