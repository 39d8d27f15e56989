/* Lists: entries below each other, the selected one marked and in sight, each a place to click on. A view says how
   many there are and draws one. */
#ifndef VIEWS_LIST_H
#define VIEWS_LIST_H

#include "tui/keys/actions.h"
#include "tui/screen/text_flow.h"

struct list {
    const void *of; /* for the functions below */
    int n, selected;
    enum {
        LIST_CHOICE, /* the user moves in it: an arrow stands at the selected entry, a click selects one */
        LIST_CURSOR, /* the arrow stands where the session's cursor is */
        LIST_TABLE   /* the same without an arrow */
    } kind;
    const char *empty; /* stands there where n is 0 */
    /* One of them. The cells of an entry that is one line, the first two columns of which are for marks; */
    void (*row)(const struct list *l, int i, struct canvas *c, struct rect line);
    /* or its text, with as many lines as that takes. */
    void (*text)(const struct list *l, int i, struct text_flow *f);
};

/* Returns the lines used. */
int list_draw(const struct list *l, struct canvas *c, struct rect area);
/* STYLE_STRONG of the selected entry, else STYLE_TEXT. */
enum style list_style(const struct list *l, int i);
/* Marks the entry that is on the screen, or the run's own. */
void list_mark(struct canvas *c, struct rect line);

/* An entry of n: the nearest to this one that there is, 0 of none. */
int list_selected(int selected, int n);
/* How far an action moves in a list or in lines of text, a page being so many; 0: it does not. */
int list_moves(enum action a, int page);
/* First index of a window of `visible` out of `n` that shows `at`. */
int window_first(int at, int visible, int n);

#endif
