/* What is looked into beside the session's own work, on a thread of its own, for one trace: formats, the comparison of
   the cursor's slot, a survey of all slots, what-if. The owner asks, is woken, collects, and reads the state until it
   collects again. */
#ifndef STUDY_LABORATORY_H
#define STUDY_LABORATORY_H

#include "engine/study/comparison.h"
#include "engine/study/formats.h"
#include "engine/study/whatif.h"
#include <stdbool.h>

/* SURVEY: the comparison of every slot, in short. */
enum { LABORATORY_FORMATS = 1, LABORATORY_COMPARISON = 2, LABORATORY_SURVEY = 4, LABORATORY_WHATIF = 8 };

struct laboratory_state {
    const struct formats *formats;       /* NULL: not there yet */
    const struct comparison *comparison; /* of one slot, which need not be the cursor's any more; NULL */
    const struct survey_row *survey;     /* [surveyed]: of slots 0, 1, ... */
    int surveyed, slots;
    const struct whatif *whatif; /* NULL: not begun */
    int predicted;               /* slots that its rows are made of */
    int done, total;             /* pieces of what is under way; total 0: nothing is */
    bool stopped, failed;        /* scans were stopped; memory ran out */
};

struct laboratory;

/* t is borrowed until laboratory_free(), and its bytes do not change. wake(ctx) is called on the laboratory's thread
   whenever there is something to collect. */
int laboratory_new(const struct trace *t, void (*wake)(void *ctx), void *ctx, struct laboratory **out);
void laboratory_free(struct laboratory *l); /* ends what is under way; NULL is legal */

/* wanted: set of the above, with what was asked before; slot: whose comparison, -1: none. */
void laboratory_ask(struct laboratory *l, unsigned wanted, int slot);
/* One more choice for what-if, which then begins anew. -1: there is no room. */
int laboratory_try(struct laboratory *l, const struct whatif_choice *choice);
/* Scans stop after the piece at hand, or go on. A slot's comparison is made in any case. */
void laboratory_stop(struct laboratory *l, bool stopped);
bool laboratory_busy(struct laboratory *l);
/* Waits for all that was asked for, as far as it is not stopped; then collects. */
void laboratory_finish(struct laboratory *l);

bool laboratory_collect(struct laboratory *l); /* the state has changed */
const struct laboratory_state *laboratory_state(const struct laboratory *l);
const struct trace *laboratory_trace(const struct laboratory *l);

#endif
