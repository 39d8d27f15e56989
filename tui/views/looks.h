/* Pieces of the views of the session's laboratory: formats, compare, whatif. */
#ifndef VIEWS_LOOKS_H
#define VIEWS_LOOKS_H

#include "engine/session/look.h"
#include "tui/views/view.h"

/* "12 of 24, x stops"; "": all is there. */
void looks_words(const struct session *s, char *out, size_t bytes);

enum { LOOKS_NUMBER = 24 };
const char *looks_number(char out[LOOKS_NUMBER], double value); /* three digits; a dash where it is not known */
void looks_cell(struct canvas *c, struct rect area, int row, int end, enum style style, double value); /* ends there */

#endif
