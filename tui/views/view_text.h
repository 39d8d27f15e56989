#ifndef VIEWS_VIEW_TEXT_H
#define VIEWS_VIEW_TEXT_H

#include "engine/verdict/facts.h"
#include "tui/screen/text_flow.h"
#include "tui/views/view.h"

/* "build error", "cancelled" */
void error_title(const struct session *s, char *out, size_t bytes);
/* The session's error, as large as there is room, in place of panels. */
void error_draw(const struct session *s, struct canvas *c, struct rect area);
/* Header, title rule, message and keys of every view but the overview. */
void view_frame_draw(const struct session *s, struct canvas *c, enum view_id view, const char *title,
                     const char *right);
/* The facts of a run (facts.h) as text: what run_facts() is to call, with a struct fact_flow. */
struct fact_flow {
    const struct session *s;
    struct text_flow *f;
    const char *indent; /* of details */
};
void fact_flow(void *ctx, const struct run_fact *fact);
/* Views of running text: all of it, drawn from line vs->top on below the frame; and how many lines it has. */
typedef void view_text(const struct session *s, struct text_flow *f);
void text_view_draw(const struct session *s, struct canvas *c, const struct view_state *vs, view_text *text);
int text_view_lines(const struct session *s, int cols, view_text *text);

#endif
