/* Views as text against tests/screens/NAME.txt; UPDATE_GOLDEN=1 writes those files anew. A golden holds what a test is
   about: a view's own lines, the lines of the overview that answer first. Whole screens, with their key line, are few.
 */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include "tui/views/view.h"

/* A view as text; free() it. vs NULL: as it is opened. */
char *golden_draw(const struct session *s, enum view_id view, int cols, int rows, bool ascii,
                  const struct view_state *vs);
/* Whether these words stand there, in a view as it is opened; the screen on stderr where not. */
bool golden_has(const struct session *s, enum view_id view, int cols, int rows, const char *words);

void golden_compare(const char *name, const char *made);
/* The whole screen; the file's name ends in its size. */
void golden_screen(const struct session *s, enum view_id view, const struct view_state *vs, int cols, int rows,
                   const char *name);
/* A view's own lines, those of the overview without head and key line, at 120x40. */
void golden_view(const struct session *s, enum view_id view, const struct view_state *vs, const char *name);
/* The overview's first six lines, at 80x24 and 120x40: the run, its stages, and what is said of it. */
void golden_top(const struct session *s, const char *name);

#endif
