/* The strides that a kernel reads Q, K or V with, where they are not those of the array. */
#ifndef VERDICT_STRIDES_H
#define VERDICT_STRIDES_H

#include "engine/verdict/addresses.h"

/* Looks rows of a stage up in the memory that the kernel was given, whatever lies there, and solves for the strides and
   the beginning that say where each was read. What is said has to hold for every element of the slots that are looked
   at. "": nothing does. -1 without memory. */
int strides_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char out[ADDRESS_BYTES]);

#endif
