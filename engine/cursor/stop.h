/* Stop conditions: "nan", "s off > 8", "m falls", "l <= 0", "global o ratio > 2", as a predicate on one tile's verdicts
   and captured values. */
#ifndef CURSOR_STOP_H
#define CURSOR_STOP_H

#include "engine/verdict/judgement.h"
#include <stdbool.h>

enum stop_kind {
#define STOP(id, word, kind, meaning) id,
#include "engine/cursor/stops.def"
#undef STOP
    STOP_KINDS
};

enum stop_comparison { STOP_MORE, STOP_LESS, STOP_AT_LEAST, STOP_AT_MOST, STOP_EQUAL };

struct stop {
    enum stop_kind kind;
    int channel;                                      /* enum asc_channel; -1: any */
    char own[sizeof((struct asc_value *)NULL)->name]; /* a value of the kernel's own in its place; "": none */
    bool global; /* verdicts by the original inputs, not by what the run captured upstream */
    enum stop_comparison comparison;
    double number;
    char text[64]; /* as the user said it, blanks made one */
};

const char *stop_word(enum stop_kind kind); /* "" of STOP_VALUE */
const char *stop_meaning(enum stop_kind kind);
bool stop_needs_number(enum stop_kind kind); /* a comparison must follow the word */

/* ERR_INPUT names the word that is wrong. plan: whose own values may be meant; NULL: nobody's. */
int stop_parse(const char *text, const struct asc_plan *plan, struct stop *out, struct err *err);
/* Whether it asks about this channel of a run. */
bool stop_is_about(const struct stop *stop, const struct asc_plan *plan, enum asc_channel ch);

/* Whether the condition holds in this tile, whose slot is judged. before: the kv tile that the kernel visited before
   this one in the same split, -1: none. *row, *col: the first element that makes it so, where values were compared;
   else -1.
 */
bool stop_holds(const struct stop *stop, const struct trace *t, const struct judgement *j, struct place place,
                int before, int *row, int *col);
/* The first element of a tile that this condition is about, once it holds: false where none can be named. */
bool stop_element(const struct stop *stop, const struct tile_detail *d, int *row, int *col);

#endif
