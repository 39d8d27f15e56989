/* Pieces of the views of the session's laboratory: formats, compare, whatif. */
#ifndef VIEWS_LOOKS_H
#define VIEWS_LOOKS_H

#include "engine/session/look.h"
#include "tui/views/view.h"

/* What a view needs from the laboratory (set of LABORATORY_*); whoever shows it asks for that by session_look(). */
unsigned view_looks(enum view_id view);

/* "12 of 24, x stops"; "": all is there. */
void looks_words(const struct session *s, char *out, size_t bytes);

enum { LOOKS_NUMBER = 24 };
const char *looks_number(char out[LOOKS_NUMBER], double value); /* three digits; a dash where it is not known */
void looks_cell(struct canvas *c, struct rect area, int row, int end, enum style style, double value); /* ends there */

/* Of the view of formats: how many tensors there are to choose from. */
int formats_view_tensors(const struct session *s);
int whatif_view_rows(const struct session *s);
/* Of the view of what-if: the selected row's choice, or NULL. */
const struct whatif_choice *whatif_view_choice(const struct session *s, const struct view_state *vs);

#endif
