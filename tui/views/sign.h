/* One glyph for a verdict, everywhere the same. */
#ifndef VIEWS_SIGN_H
#define VIEWS_SIGN_H

#include "engine/session/session.h"
#include "tui/screen/canvas.h"
#include <stdbool.h>

const char *sign_glyph(enum tile_status sign);
const char *sign_word(enum tile_status sign);
/* The one that says more of a set that holds both: what is worse, of two that are as bad the more telling class. */
enum tile_status sign_worse(enum tile_status a, enum tile_status b);
bool sign_bad(enum tile_status sign); /* a class that is not ok */
const char *sign_meaning(enum tile_status sign);
enum style sign_style(enum tile_status sign);

/* The tile at a place (slot -1: not recorded). Blame is local: what is wrong only because of what came in is
   STATUS_UPSTREAM. The most telling class wins: nan, inf, missing, extra, off. */
enum tile_status sign_of_tile(const struct session *s, struct place place);
/* All tiles of the cursor's stage in one head. */
enum tile_status sign_of_head(const struct session *s, int batch, int head);
/* An element's class by its local verdict, and by the global one where it is locally fine. */
enum tile_status sign_of_element(const struct tile_detail *d, int row, int col);
/* "ok", or the glyph of what is not. */
const char *stage_status_text(enum stage_status mark, enum style *style);

#endif
