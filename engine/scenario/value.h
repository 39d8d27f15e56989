/* The text of one value, read whole: blanks around it are gone, anything left over is an error, and so is a number that
   does not fit. All return 0, or -1 with nothing written. Decimal points are points in every locale. */
#ifndef SCENARIO_VALUE_H
#define SCENARIO_VALUE_H

#include "engine/trace/layout.h"
#include <stddef.h>
#include <stdint.h>

#define VALUE_LENGTH_MAX ASC_LENGTH_MAX /* of any dimension of a shape */

int value_seed(const char *text, uint64_t *out);                  /* decimal digits only */
int value_integer(const char *text, int low, int high, int *out); /* decimal digits only; low >= 0 */
int value_real(const char *text, double *out);                    /* finite */
int value_bytes(const char *text, uint64_t *out);                 /* "4096", "512MiB", "2 GiB"; 1..2^63 - 1 */
/* "0,3,5-7" as a list of its own (malloc) in ascending order, every place below VALUE_LENGTH_MAX; "all": NULL and 0.
   -2 where memory ran out. */
int value_places(const char *text, int **places, int *n_places);

/* An enumerated value: its place in the NULL-terminated list of names, or -1. value_choice() writes it to *out. */
int value_name(const char *text, const char *const *names);
int value_choice(int *out, const char *const *names, const char *text);
extern const char *const value_no_yes[];

/* Adds a macro, NAME or NAME=VALUE of n bytes, to the macros in `all`, in the place of an earlier one of that name. -1:
   it is none, or there is no room. */
#define VALUE_MACROS_MAX 8
#define VALUE_MACROS_BYTES 256
int value_add_macro(char all[VALUE_MACROS_BYTES], const char *macro, size_t n);

/* A list has blanks between its words; a backslash makes a blank, or itself, a part of a word. value_next() takes the
   next word of *list: false where there is none, or it is too long. value_join() writes a word behind what is in `all`:
   -1: it is empty, or there is no room. */
bool value_next(const char **list, char *word, size_t n_bytes);
int value_join(char *all, size_t n_bytes, const char *word);

/* The next word of *text, up to one of `ends`, blanks around it dropped; moves *text behind it. 0: empty or too long.
 */
bool value_word(const char **text, const char *ends, char *out, size_t n_bytes);

#endif
