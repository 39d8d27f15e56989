#ifndef VIEWS_VIEW_TEXT_H
#define VIEWS_VIEW_TEXT_H

#include "tui/views/view.h"

/* "build error", "cancelled" */
void error_title(const struct session *s, char *out, size_t bytes);
/* The session's error, as large as there is room, in place of panels. */
void error_draw(const struct session *s, struct canvas *c, struct rect area);
/* Header, title rule, message and keys of every view but the overview. */
void view_frame_draw(const struct session *s, struct canvas *c, enum view_id view, const char *title,
                     const char *right);

#endif
