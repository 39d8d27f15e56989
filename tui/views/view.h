/* Views: each draws the whole screen from a const session. */
#ifndef VIEWS_VIEW_H
#define VIEWS_VIEW_H

#include "engine/session/session.h"
#include "tui/screen/canvas.h"

enum view_id {
#define VIEW(id, name, title, draw, lines, start) id,
#include "tui/views/views.def"
#undef VIEW
    VIEW_COUNT
};

/* What belongs to the screen and not to the session. */
struct view_state {
    double now;   /* monotonic seconds, for what is under way */
    int by_worst; /* 1: heads by their share of bad tiles, 0: as they are numbered */
    int truth;    /* 0: wanted values by what this run captured upstream; 1: by the original inputs */
    int split;    /* column of the line between the overview\'s sides; 0: by the screen\'s size */
    int top;      /* first line shown of a view that scrolls */
    int selected; /* entry of a view that is a list, from 0 */
};

struct view {
    const char *name, *title;
    void (*draw)(const struct session *s, struct canvas *c, const struct view_state *vs);
    /* Of views that scroll, else NULL: how many lines there are in this many columns, and which one comes first when
       the view is opened (NULL: 0). */
    int (*lines)(const struct session *s, int cols);
    int (*start)(const struct session *s, int cols, int rows);
};

extern const struct view views[VIEW_COUNT];
int view_from_name(const char *name); /* enum view_id, or -1 */

/* Draws a view; where the screen is too small, says so instead. */
void view_draw(enum view_id id, const struct session *s, struct canvas *c, const struct view_state *vs);
/* Where a view other than the overview has its content. */
struct rect view_body(int cols, int rows);
/* vs->top within [0, lines - body rows]; 0 for views that do not scroll. */
int view_clamp_top(enum view_id id, const struct session *s, int cols, int rows, int top);
int view_start_top(enum view_id id, const struct session *s, int cols, int rows);

/* The draw functions of views.def. */
#define VIEW(id, name, title, draw, lines, start)                                                                      \
    void draw(const struct session *s, struct canvas *c, const struct view_state *vs);
#include "tui/views/views.def"
#undef VIEW
int view_source_lines(const struct session *s, int cols);
int view_source_start(const struct session *s, int cols, int rows);
int view_log_lines(const struct session *s, int cols);
int view_log_start(const struct session *s, int cols, int rows);
int view_resources_lines(const struct session *s, int cols);
int view_formats_lines(const struct session *s, int cols);
int view_changes_lines(const struct session *s, int cols);
/* The list of runs, newest first: where it begins, and the number of the selected run (0: none). */
int runs_view_start(const struct session *s);
int runs_view_number(const struct session *s, const struct view_state *vs);
/* The list of an error's lines: how many, and the place that the selected one is about; returns its line, 0: none. */
int errors_view_lines(const struct session *s);
int errors_view_place(const struct session *s, const struct view_state *vs, char *file, size_t bytes);
int view_help_lines(const struct session *s, int cols);

#endif
