/* Text that wraps and scrolls: the same code draws it and counts its lines. */
#ifndef SCREEN_TEXT_FLOW_H
#define SCREEN_TEXT_FLOW_H

#include "tui/screen/canvas.h"

struct text_flow {
    struct canvas *canvas; /* borrowed; NULL: only count */
    struct rect area;
    int top;  /* first line shown */
    int line; /* lines put so far */
    int hang; /* columns that continuation lines are indented by; 0: two */
};

/* Puts text, broken at newlines and at the area's width (at blanks where possible); continuation lines hang. An empty
 * text is an empty line. */
void flow_put(struct text_flow *f, enum style style, const char *text);
/* One line, cut with a sign where it has no room. */
void flow_cut(struct text_flow *f, enum style style, const char *text);

/* Wraps text into the area. Where its rows do not suffice, the last one is cut with a sign and ends with `where`, the
   place to read on. Returns the rows used. */
int flow_fit(struct canvas *c, struct rect area, enum style style, const char *text, const char *where);

#endif
