/* The run once more with Q, or V, negated: what only rounds has to give the negative result, bit for bit. */
#ifndef RUN_NEGATE_H
#define RUN_NEGATE_H

#include "engine/run/record.h"
#include <stdbool.h>

/* Negates n elements of type t: changes their sign bits; of u8, whose values count from ASC_U8_MIDPOINT, the code
   becomes 256 - code. Returns how many have no negative (code 0 of u8), which stay. */
size_t negate_elements(enum dtype t, void *data, size_t n);

/* What a run with this tensor ('q' or 'v', 0: none) negated can tell: S; U and O. A set of 1u << enum asc_channel, of
   those that `run` has recorded. */
uint32_t negate_channels(const struct trace *run, char which);

/* `run` of this scenario once more with that tensor negated (0: none, the same inputs again), only those channels
   recorded, on a recorder that is not busy. -1: *err; ERR_DECLINED: an element has no negative. */
int negate_record(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                  const struct trace *run, char which, const struct runner_progress *progress, struct trace **out,
                  struct err *err);

/* Whether both hold the same bits in these channels, wherever `run` recorded them, and in O if that is one of them. */
bool negate_same(const struct trace *run, const struct trace *again, uint32_t channels);

#endif
