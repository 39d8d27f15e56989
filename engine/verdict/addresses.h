/* From where in memory rows of Q, K or V come that are not the sequence's: pages, and sequences one behind the other.
 */
#ifndef VERDICT_ADDRESSES_H
#define VERDICT_ADDRESSES_H

#include "engine/verdict/judgement.h"

enum { ADDRESS_BYTES = 240 };

/* Looks rows of a stage up among all rows of its kv head, and asks of which place in the page table, or at which begin
   of a sequence, they were read: "the page table is read at [batch][i + 1]". What is said has to hold for every row of
   the slots that are looked at. "": nothing does. -1 without memory. */
int addresses_words(const struct judgement *j, const struct trace *t, enum asc_channel ch, char out[ADDRESS_BYTES]);

#endif
