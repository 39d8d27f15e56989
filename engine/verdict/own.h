/* What is known of a kernel's own values (ASC_VALUE), which have no formula and get no verdict. */
#ifndef VERDICT_OWN_H
#define VERDICT_OWN_H

#include "engine/verdict/judgement.h"

/* Adds one tile of a value; one that the kernel never came to counts nothing. */
void own_count_tile(const struct trace *t, struct place place, struct own_count *count);
/* Adds what was counted elsewhere, behind it. */
void own_count_add(struct own_count *to, const struct own_count *from);
/* "4096 values from -3.2 to 1.5, 2 NaN, 64 infinite"; "nothing recorded". */
enum { OWN_WORDS_BYTES = 160 };
void own_count_words(const struct own_count *count, char out[OWN_WORDS_BYTES]);
/* Every element of one tile, as struct tile_detail has those of channels. -1: memory ran out. */
int own_detail(const struct trace *t, struct place place, struct tile_detail *out);

#endif
