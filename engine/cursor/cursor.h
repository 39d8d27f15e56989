/* Where the user stands, and places as text: "s[b0,h3,q17,k40]", "s b0 h3 q17 k40 r3 c5". */
#ifndef CURSOR_CURSOR_H
#define CURSOR_CURSOR_H

#include "engine/base/err.h"
#include "engine/trace/trace.h"
#include <stdbool.h>

struct cursor {
    int batch, head, q_tile, kv_tile;
    enum asc_channel channel;
    int row, col; /* element within the tile */
};

bool cursor_same(const struct cursor *a, const struct cursor *b);
enum { CURSOR_WORDS_BYTES = 96 };
/* "s[b0,h3,q17,k40] r3 c5"; without k where the channel exists once per q tile. */
/* t: whose values the kernel's own are; NULL: not known. */
void cursor_words(const struct trace *t, const struct cursor *c, char out[CURSOR_WORDS_BYTES]);
/* Parts may be left out, and are 0 then; which trace it is of is not asked but for the values of the kernel's own
   (plan; NULL: it has none). ERR_INPUT. */
int cursor_read(const char *text, const struct asc_plan *plan, struct cursor *c, struct err *err);
/* Parts may be left out: they stay as *c has them, but a part that is said puts row and column, unless these are said
   too, at 0. ERR_INPUT where a word is none of these or lies outside the trace; *c is then as it was. */
int cursor_parse(const char *text, const struct trace *t, struct cursor *c, struct err *err);
/* ERR_INPUT where the trace has no such tile. Row and column are made to fit. */
int cursor_fit(const struct trace *t, struct cursor *c, struct err *err);

#endif
