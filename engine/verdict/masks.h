/* The masks that a run applied, tile by tile, and what they differ from the wanted ones by: filled slot by slot by the
   threads that judge, named once all are there. */
#ifndef VERDICT_MASKS_H
#define VERDICT_MASKS_H

#include "engine/oracle/mask/mask.h"
#include "engine/trace/trace.h"
#include <stdatomic.h>

/* A name that the applied masks have. */
struct mask_name {
    enum mask_shift shift;
    int by; /* keys, of a shift that moves something; else 0 */
    struct mask_evidence evidence;
};

struct masks {
    int n_slots, kv_tiles;
    uint8_t *source;                    /* owned, [n_slots] enum mask_source */
    struct mask_counts *counts;         /* owned, [n_slots][kv_tiles]; read those of slots that are judged */
    struct mask_tile **wrong;           /* owned, [n_slots][kv_tiles] of slots with a wrong bit; NULL: there is none */
    struct mask_name name[MASK_SHIFTS]; /* [n_names], the first one in the order of masks.def first */
    int n_names;
    atomic_bool named; /* name and n_names are set; acquire before reading them */
};

int masks_new(const struct trace *t, struct masks **out); /* -1: memory ran out */
void masks_free(struct masks *m);                         /* NULL is legal */

/* Reads one slot; thread-safe for different slots. -1: memory ran out. */
int masks_slot(struct masks *m, const struct oracle_case *c, int slot, struct judge_scratch *scratch);
/* The same of a slot whose S is right: it hides what it should. seen: [kv_tiles] how many elements of each tile that
   leaves, of `elements`. */
void masks_adopt(struct masks *m, int slot, const uint32_t *seen, uint64_t elements);
/* After all slots. -1: memory ran out. */
int masks_find(struct masks *m, const struct trace *t);

const struct mask_counts *masks_tile(const struct masks *m, int slot, int kv);
/* Of all slots that were read; returns where it is from, MASK_NOT_KNOWN: from nothing. */
enum mask_source masks_total(const struct masks *m, struct mask_counts *out);

/* "the diagonal is out of place, by 1 key to the right". */
void mask_name_words(const struct mask_name *name, char *out, size_t bytes);
/* The mask that the problem asks for: "causal, bottom right", "window 40 to the left". */
void mask_wanted_words(const struct asc_problem *p, char *out, size_t bytes);
/* One line about a whole run: "as wanted", or by how much it differs, and the name of that. */
void masks_words(const struct masks *m, char *out, size_t bytes);

/* What is wrong with the mask, where `bad` elements are wrong and all of them by it: "the diagonal is misplaced, by 1
   key to the right", "keys 150 to 152 are not hidden, kv_len is 150", "the mask counts its keys from the first one of
   each kv tile", "the mask is that of q tile blockIdx.x". *certain: else that is not told from a limit that is missing
   in some tiles. false: it is none of these. */
bool masks_explain(const struct masks *m, const struct trace *t, uint64_t bad, char *out, size_t bytes, bool *certain);

/* Whether keys behind the last one are seen anywhere. */
bool masks_shows_padding(const struct masks *m, const struct trace *t);

/* Where every row of a tile that any key shows in hides some columns wrongly and wrongly sees others, the same in all:
   "hides columns 4-7, 12-15 and shows columns 16-19, 24-27". false: it is not so, or they are too many to list. */
bool masks_columns_words(const struct masks *m, int slot, int kv, char *out, size_t bytes);

#endif
