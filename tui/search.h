/* Looking for a text in a view of lines: what the view draws is what is searched, whatever view it is. */
#ifndef TUI_SEARCH_H
#define TUI_SEARCH_H

#include "tui/views/view.h"
#include <stdbool.h>

struct search {
    char text[128];    /* small letters match capitals as well */
    bool active;       /* matches are marked, and n and N go through them */
    enum view_id view; /* where the match gone to last is, */
    int line;          /* and on which line; -1: none yet */
};

/* The by-th line behind `from` (by < 0: before it; never 0) that holds the text, wrapping round; -1: there is none,
   SEARCH_NO_MEMORY: not all of the view could be looked at. */
enum { SEARCH_NO_MEMORY = -2 };
int search_view(const struct search *search, enum view_id view, const struct session *s, const struct view_state *vs,
                int cols, int from, int by);
/* Marks every match on rows of the canvas. */
void search_mark(const struct search *search, struct canvas *c, struct rect area);

#endif
