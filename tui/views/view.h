/* Views: each draws the whole screen from a const session, and says what keys mean in it. */
#ifndef VIEWS_VIEW_H
#define VIEWS_VIEW_H

#include "engine/session/session.h"
#include "tui/keys/actions.h"
#include "tui/screen/canvas.h"

struct whatif_choice;

enum { PAGE_TILES = 8 }; /* that a page is, of tiles or of elements */

enum view_id {
#define VIEW(id, name, title, ops, about) id,
#include "tui/views/views.def"
#include <stdbool.h>
#undef VIEW
    VIEW_COUNT
};

/* What belongs to the screen and not to the session. */
struct view_state {
    double now;    /* monotonic seconds, for what is under way */
    bool by_worst; /* heads by their share of bad tiles; false: as they are numbered */
    bool global;   /* 0: wanted values by what this run captured upstream; 1: by the original inputs */
    int split;     /* column of the line between the overview\'s sides; 0: by the screen\'s size */
    int top;       /* first line shown of a view that scrolls */
    int selected;  /* entry of a view that is a list, from 0 */
    /* Of the picture: enum picture_scope, and which of its paints (view_picture.c). */
    int scope, paint;
    enum view_id about; /* of the help: the view that it was asked in */
};

/* What a view makes of an action. */
struct view_answer {
    enum {
        ANSWER_PASSES,     /* it is not the view's */
        ANSWER_DID,        /* done */
        ANSWER_MEANS,      /* that action in its place, so many times */
        ANSWER_OPENS,      /* that view */
        ANSWER_CLOSES,     /* this one: back to the one before */
        ANSWER_GOES,       /* there, then that view */
        ANSWER_SHOWS_RUN,  /* that run, then that view */
        ANSWER_TRIES,      /* a run with those formats */
        ANSWER_RUNS_POINT, /* that point of the sweep, then that view */
        ANSWER_DECLARES,   /* what that finding asks for, in the kernel's registration */
        ANSWER_SAYS
    } does;
    enum action action;
    int times;
    enum view_id view;
    struct cursor to;
    int run;
    const struct whatif_choice *choice; /* borrowed from the session */
    const struct finding *finding;      /* the same */
    const char *text;
};

/* All but draw may be NULL, 0. */
struct view {
    void (*draw)(const struct session *s, struct canvas *c, const struct view_state *vs);
    /* Of views that scroll: how many lines there are in this many columns; which one comes first when the view is
       opened, and whenever what anchor() says has changed. */
    int (*lines)(const struct session *s, const struct view_state *vs, int cols);
    int (*start)(const struct session *s, int cols, int rows);
    int (*anchor)(const struct session *s);
    /* Of lists: how many entries there are, and which one is selected at first. */
    int (*count)(const struct session *s);
    int (*begin)(const struct session *s);
    /* Before lists and lines move, and before what the action does anywhere. */
    struct view_answer (*act)(const struct session *s, struct view_state *vs, enum action a, int times);
    /* Of a HIT_CELL: where a click there leads. */
    bool (*click)(const struct session *s, const struct view_state *vs, struct canvas *c, int line, int column,
                  struct cursor *to);
    /* The selected entry as a run's number (0: none), and as a line of a file (0: none). */
    int (*run)(const struct session *s, const struct view_state *vs);
    int (*place)(const struct session *s, const struct view_state *vs, char *file, size_t bytes);
    /* What the session is to find out for it: set of LABORATORY_* (look.h), the rows' states, how rounding is biased,
       the picture of vs->scope. */
    unsigned looks;
    bool states, rounding, picture;
};

extern const struct view *const views[VIEW_COUNT];
const char *view_name(enum view_id id);
const char *view_title(enum view_id id);
int view_from_name(const char *name); /* enum view_id, or -1 */

/* Draws a view; where the screen is too small, says so instead. */
void view_draw(enum view_id id, const struct session *s, struct canvas *c, const struct view_state *vs);
/* Where a view other than the overview has its content. */
struct rect view_body(int cols, int rows);
/* vs->top within [0, lines - body rows]; 0 for views that do not scroll. */
int view_clamp_top(enum view_id id, const struct session *s, const struct view_state *vs, int cols, int rows, int top);
int view_start_top(enum view_id id, const struct session *s, int cols, int rows);

/* What the view makes of an action: its own act(), then moves in its list or its lines. */
struct view_answer view_act(enum view_id id, const struct session *s, int cols, int rows, struct view_state *vs,
                            enum action a, int times);

#endif
