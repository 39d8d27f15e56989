/* Names for what is wrong: which mistakes the wrong values of a run agree with, by the evidence of all its tiles. */
#ifndef CAUSES_CAUSES_H
#define CAUSES_CAUSES_H

#include "engine/oracle/oracle.h"

/* A cause: a formula that explains wrong values (causes.def). */
enum cause {
    CAUSE_NONE,
#define CAUSE(id, ...) CAUSE_##id,
#define RULED(id, ...) CAUSE_##id,
#define DECLARED(id, ...) CAUSE_##id,
#include "engine/oracle/causes/causes.def"
#undef DECLARED
#undef RULED
#undef CAUSE
    CAUSE_COUNT
};
const char *cause_name(enum cause c);     /* "scaled-twice" */
const char *cause_sentence(enum cause c); /* "scores are scaled twice" */
const char *cause_formula(enum cause c);  /* "scale² · q kᵀ" */
enum asc_channel cause_channel(enum cause c);
/* 1: no mistake of the kernel: its values are right under another convention than the declared one. */
int cause_is_declaration(enum cause c);
bool cause_is_family(enum cause c); /* its rule says more than its name does */
/* 1: a product has met the K or V of a tile visited before, or of the next. */
int cause_is_other_tile(enum cause c);
int cause_from_name(const char *name); /* enum cause, or -1 */

/* What is settled before evidence is collected. */
struct cause_plan {
    unsigned culprits;               /* set of 1u << enum asc_channel */
    double parameter[CAUSE_COUNT];   /* of formulas that have one; NaN: none fits */
    int fits[CAUSE_COUNT];           /* how many values explain as much as that one, it included */
    uint64_t tied[CAUSE_COUNT];      /* and which, of the first 64 */
    uint64_t elements[ASC_CHANNELS]; /* in all tiles with a bad one: a cause that leaves more than 1 in 10,000 of them
                                        unexplained is given up. 0: none is */
};
void cause_plan_begin(struct cause_plan *plan, unsigned culprits);
/* What a formula with a parameter was found to have: "n = 48 of 64"; "" without one. */
void cause_detail(enum cause cause, const struct oracle_case *c, const struct cause_plan *plan, char *text,
                  size_t bytes);

/* Of a declaration: what a registration that says `declared` has to say instead, [CONVENTION_LINES]; returns how many
   lines. */
struct convention_line;
int cause_lines(enum cause cause, const struct asc_conventions *declared, const struct cause_plan *plan,
                struct convention_line *out);
/* The same of l or U that takes weights rounded to this type. */
int cause_rounded_lines(enum asc_channel ch, const struct asc_conventions *declared, enum dtype type,
                        struct convention_line *out);

/* Evidence for one candidate, summed over the tiles that hold any bad element; for a declaration, which has to hold
   everywhere, over all tiles. A formula with a parameter is weighed on the half of the elements that had no say in
   choosing it. */
enum { CAUSE_VALUES = 16 };

struct cause_evidence {
    uint64_t elements;                 /* judged elements in those tiles */
    uint64_t explained;                /* within the bound of the candidate formula */
    uint64_t rounding;                 /* within the bound of the right formula: what plain rounding explains */
    uint64_t discriminating;           /* explained, and beyond both bounds from what the right formula wants */
    uint64_t rows;                     /* in which any of these lie; one for each tile */
    int values;                        /* how many different numbers they are, counted up to CAUSE_VALUES */
    uint64_t value[CAUSE_VALUES];      /* which */
    uint64_t chance_tried, chance_hit; /* the candidate against the captured values of other elements */
    uint64_t chance_seen;              /* elements it could have been tried on: all that tell the two apart */
    int applicable;                    /* 0: the formula has no meaning for this shape */
    int given_up;                      /* 1: cannot be named any more; the rest was not looked at */
};
void cause_add_evidence(struct cause_evidence to[CAUSE_COUNT], const struct cause_evidence from[CAUSE_COUNT]);

/* bad: [kv_tiles] sets of 1u << enum asc_channel: tiles of culprits with bad elements; channels that exist once per
   slot stand at kv 0. cause_choose sets the parameters of the causes of these channels, from half of the elements; one
   tile is enough, another may decide between values that explain as much of the first. cause_collect adds what the slot
   says to evidence[CAUSE_COUNT]. -1 where memory ran out. */
int cause_choose(const struct oracle_case *c, const uint32_t *bad, struct judge_scratch *scratch,
                 struct cause_plan *plan);
int cause_collect(const struct oracle_case *c, const uint32_t *bad, const struct cause_plan *plan,
                  struct judge_scratch *scratch, struct cause_evidence evidence[CAUSE_COUNT]);
/* SplitMix64 (Steele, Lea, Flood 2014): draws that are the same on every machine. */
uint64_t evidence_mix(uint64_t z);
/* A captured and a wanted value, the latter to 10 bits: its last ones may differ where the numbers do not. */
uint64_t evidence_pair(double got, double want);
/* 99.99 %: of thousands of elements a few may have had unlucky roundings. */
bool evidence_nearly_all(uint64_t of, uint64_t n);
/* Elements beyond both bounds, and rows, that it takes to name a cause. */
enum { CAUSE_ELEMENTS = 16 };
/* 1: it explains >= 99.99 % of all elements and of those that discriminate, >= 16 of these in >= 16 rows and
   with >= 16 different values, and n ln(1/pi) >= 30. */
int cause_named(const struct cause_evidence *e);
/* 1 if it explains what there is and something tells it from the right formula, be that enough for a name or not. */
int cause_fits(const struct cause_evidence *e);

#endif
