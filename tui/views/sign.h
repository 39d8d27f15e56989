/* One glyph for a verdict, everywhere the same. */
#ifndef VIEWS_SIGN_H
#define VIEWS_SIGN_H

#include "engine/session/session.h"
#include "tui/screen/canvas.h"

/* The first CLASS_COUNT signs are the element classes. */
enum sign {
    SIGN_LAST_CLASS = CLASS_COUNT - 1,
#define SIGN(id, glyph, style, word, meaning) id,
#include "tui/views/signs.def"
#undef SIGN
    SIGN_COUNT
};

const char *sign_glyph(enum sign sign);
const char *sign_word(enum sign sign);
/* The one that says more of a set that holds both: what is worse, of two that are as bad the more telling class. */
enum sign sign_worse(enum sign a, enum sign b);
int sign_bad(enum sign sign); /* 1: a class that is not ok */
const char *sign_meaning(enum sign sign);
enum style sign_style(enum sign sign);

/* The tile at a place (slot -1: not recorded). Blame is local: what is wrong only because of what came in is
   SIGN_UPSTREAM. The most telling class wins: nan, inf, missing, extra, off. */
enum sign sign_of_tile(const struct session *s, struct place place);
/* All tiles of the cursor's stage in one head. */
enum sign sign_of_head(const struct session *s, int batch, int head);
/* An element's class by its local verdict, and by the global one where it is locally fine. */
enum sign sign_of_element(const struct tile_detail *d, int row, int col);
/* "ok", or the glyph of what is not. */
const char *mark_text(enum mark mark, enum style *style);

#endif
