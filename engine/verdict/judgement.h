/* The verdicts on one trace: filled by the judge queue slot by slot, read by views while it fills. */
#ifndef VERDICT_JUDGEMENT_H
#define VERDICT_JUDGEMENT_H

#include "engine/oracle/causes/causes.h"
#include "engine/oracle/derivation.h"
#include "engine/trace/conventions.h"
#include "engine/trace/trace.h"
#include <stdatomic.h>
#include <stdbool.h>

/* A place in a run. kv is 0 for channels that exist once per slot. */
struct place {
    int slot, kv;
    enum asc_channel channel;
};

static inline bool place_same(struct place a, struct place b)
{
    return a.slot == b.slot && a.kv == b.kv && a.channel == b.channel;
}

/* Tiles of S or U that a tensor core's bits were asked of. */
struct exact_tiles {
    uint64_t judged;            /* tiles that hold anything */
    uint64_t n;                 /* of these: judged by bits */
    uint64_t off;               /* elements of those that are off */
    uint64_t unequal;           /* elements summed in another way, within its bound: struct verdict */
    uint64_t unequal_tiles;     /* where these are */
    struct place first_unequal; /* slot -1: none */
};

/* One stage over all judged slots. */
enum stage_status {
    STAGE_UNKNOWN, /* nothing of it is judged (yet) */
    STAGE_OK,
    STAGE_BAD,
    STAGE_UNRECORDED,
    STAGE_PARTIAL /* what was written is right, but the run ended before all of it was */
};

struct stage_summary {
    enum stage_status local, global;
    uint64_t elements; /* judged locally */
    uint64_t judged_global;
    uint64_t unwritten; /* of a run that ended early: elements it never came to write; not in `elements` */
    uint64_t bad_local, bad_global;
    uint64_t missing_local;   /* of bad_local: never written */
    double worst;             /* largest error / bound, locally, by error_larger() */
    uint64_t begins_local;    /* of bad_local: in the kv tile that its state visited first, made of what it begins at */
    struct place first_local; /* first bad tile in execution order; slot -1: none */
    struct exact_tiles exact;
    uint64_t likely, worst_case; /* of O and LSE: tiles by which bound decided globally */
    uint64_t unusual;            /* of O: tiles within their bounds whose errors are not of the size of roundings */
    struct place first_unusual;  /* slot -1: none */
};

/* Where an invariant of the softmax state is broken first (states.h). */
struct state_break {
    int slot, kv, row; /* slot -1: nowhere, as far as was looked */
    unsigned broken;   /* set of 1u << enum invariant (engine/oracle/nonfinite/invariants.h) */
};

struct pool;
struct run_onset;

struct masks;

enum { DECLARATION_BYTES = 96, RULE_TEXT_BYTES = 384, RULES_TOLD = 2 };

/* A rule that a search has found, and what speaks for it in the slots that were looked at (search/rule.h). */
struct rule_told {
    char text[RULE_TEXT_BYTES];
    uint64_t wrong, in; /* wrong elements; those that it gives */
    uint64_t told, out; /* elements of its region that it tells from the right formula; those that it does not give */
    uint64_t units;     /* rows that hold any, or columns */
    bool by_col;
    double bits;        /* that it explains */
    double cost, price; /* that it takes to say it, and that it has to explain to be said */
    uint64_t tried;     /* rules, in its search */
    struct place place; /* of the element that tells most */
    int row, col;
    double got, want, given;
};

enum found_by {
#define FOUND_BY(id, name, words) FOUND_BY_##id,
#include "engine/verdict/found_by.def"
#undef FOUND_BY
};

#define FINDING_WHOLE 0.9999 /* the share from which on a rule explains all */

struct finding {
    enum asc_channel channel; /* the culprit stage */
    struct place first;       /* its first bad tile, and the element there */
    int row, col;
    enum cause cause;               /* CAUSE_NONE: none is known */
    struct cause_evidence evidence; /* of the named cause; zeros for none */
    enum cause also[CAUSE_COUNT];   /* other causes that survive the same rule */
    int n_also;
    int event;    /* 1 + index of the event that explains what no cause does (trace_info); 0: none */
    bool in_part; /* it explains some of the tiles alone */
    bool loop;    /* tiles were left out: nothing is wrong with the channel, which is the first that should be there */
    char detail[96]; /* what the cause's formula was found to have, "n = 48 of 64"; "": nothing to say */
    /* Where O and LSE are right: field and value of the declaration that makes this stage right too; "": none that was
       tried does (measured.h). */
    char declaration[DECLARATION_BYTES];
    bool output_right;
    bool follows; /* from tiles that were left out: those of its state are not known */
    /* [n_lines]: what the kernel has to say for it, by `declaration`, the cause or the rule; 0: it is no declaration.
       Of several that fit the first one's. */
    struct convention_line line[CONVENTION_LINES];
    int n_lines;
    /* The rules that a search has found (explain.h), or where it is wrong; "": nothing. */
    char explained[RULES_TOLD * RULE_TEXT_BYTES];
    bool pattern; /* no rule: where it is wrong, which `place` says, or that it is 0 or -inf there */
    bool bare;    /* it is a number that stands in Q, K or V: why, a run with checks may tell */
    char place[128];
    double share;                                 /* of the wrong elements that the rules explain */
    uint64_t given;                               /* how many these are, where all were looked at */
    bool placed;                                  /* each rule says where it holds */
    struct rule_told rule[RULES_TOLD], runner_up; /* [n_rules]; runner_up.text "": no other rule has passed */
    int n_rules;
    bool sampled;   /* not all of these were looked at */
    uint64_t tried; /* rules, in the search for the first one */
    int reason;     /* where in text it says why; 0: it knows */
    /* Of a second run, where this one does not tell (again.h). */
    enum found_by found_by;
    struct trace_event *again; /* owned by the judgement; NULL: none explains it */
    char text[960];            /* one line for the user, without the place */
};

#define MAX_FINDINGS (ASC_CHANNELS + 1)

/* A value of the kernel's own: what of it was recorded. */
struct own_count {
    uint64_t written, unwritten, finite, nan, inf; /* unwritten: in tiles that the kernel came to */
    double low, high;                              /* of the finite ones, where there are any */
    struct place first_nan;                        /* as the kernel ran; slot -1: none */
    int row, col;
    uint64_t nan_stamp;
};

/* What the verdicts of the slots judged so far add up to. */
struct summary {
    struct own_count own[ASC_OWN_CHANNELS];
    struct stage_summary stage[ASC_CHANNELS];
    /* first_unvisited, where there is one; else the first bad tile of all (local), slot by slot in execution order.
       slot -1: none */
    struct place first;
    /* set of 1u << enum asc_channel: stages with local faults; and of CULPRIT_LOOP (scenario.h), where tiles were left
       out */
    unsigned culprits;
    /* kv tiles that hold something for some row and that the kernel left out: no stage's fault, but the loop's. */
    uint64_t unvisited;
    struct place first_unvisited; /* slot -1: none */
    /* Stages off globally with no local fault at or before them and no tile left out: a bound or a declaration is
       wrong. */
    unsigned suspicious;
    uint32_t fed_channels; /* of an isolated run, as in its trace */
};

/* What a run with access checks says of one that is clean. */
struct checked_again {
    enum { CHECKED_NOT, CHECKED_CLEAN, CHECKED_FOUND, CHECKED_IMPOSSIBLE } is;
    char words[160]; /* "checks clean", "checks find a race at my.cu:20" */
};

struct judgement {
    int n_slots, kv_tiles;
    struct tile_verdicts *tiles; /* owned, [n_slots][kv_tiles][ASC_CHANNELS] */
    uint8_t *statuses;           /* owned, [n_slots][ASC_ALL_CHANNELS][kv_tiles] (status.h); filled with the slots */
    atomic_uchar *slot_done;     /* owned, [n_slots]; acquire before reading tiles of that slot */
    atomic_int n_done;           /* slots judged */
    int by_gpu;                  /* of these: a GPU's judge alone has looked at them; set with complete, as judge */
    char judge[200];             /* who judged the stages where a GPU was to, and why; "": the CPU, as always */
    struct own_count *own;       /* owned, [n_slots][ASC_OWN_CHANNELS]; filled with the slots; NULL: it has none */
    bool run_incomplete;         /* the run did not end well: missing values may be its doing */
    struct fingerprint *fingerprint; /* owned: which tensor core the run used; set before the first slot is judged */
    struct masks *masks;             /* owned: which keys rows were seen to see (masks.h); filled with the slots */
    /* Below: the session's own thread writes them. */
    struct summary summary;
    int summarized;                        /* slots that it adds up; -1: it was never made */
    bool no_summary;                       /* memory ran out when it was added up last: the run is unjudged */
    struct finding findings[MAX_FINDINGS]; /* one for tiles left out, then one per culprit in stage order */
    int n_findings;
    bool asked_again; /* what a second run says of the findings was looked for */
    struct checked_again checked;
    bool complete; /* every slot is judged and every culprit's causes are tested */
    struct state_break state_break;
    struct run_onset *onset; /* owned: where NaN and infinity begin (onset.h); NULL: nowhere, or not known yet */
};

int judgement_new(const struct trace *t, struct judgement **out);
void judgement_free(struct judgement *j);
/* Finds out which tensor core the run used, from a sample of its slots; before that, and without it, bounds decide.
   scratch: one for each thread of the pool, or one without a pool (NULL). -1: no memory. */
int judgement_fingerprint(struct judgement *j, const struct trace *t, struct judge_scratch *const *scratch,
                          struct pool *pool);
/* Judges one slot. Thread-safe for different slots. */
int judgement_slot(struct judgement *j, const struct trace *t, int slot, struct judge_scratch *scratch);
/* Takes over what somebody else says of a slot, all of whose elements are right: tiles, [kv_tiles][ASC_CHANNELS], and
   of S of each kv tile how many elements are not masked, NULL where S does not show it. Thread-safe for different
   slots. -1: no memory. */
int judgement_adopt(struct judgement *j, const struct trace *t, int slot, const struct tile_verdicts *tiles,
                    const uint32_t *seen, struct judge_scratch *scratch);
/* Adds up the slots done so far, by a pool or (NULL) alone. -1 without memory: *out is no summary then. */
int judgement_summarize(const struct judgement *j, const struct trace *t, struct pool *pool, struct summary *out);
/* Settles what the causes of the culprits (a set of 1u << enum asc_channel) are tested with. -1 without memory. */
int judgement_plan(const struct judgement *j, const struct trace *t, unsigned culprits, struct judge_scratch *scratch,
                   struct cause_plan *plan);
/* Adds what one slot says about every cause of the culprits. Thread-safe for different evidence. -1 without memory. */
int judgement_collect(const struct judgement *j, const struct trace *t, const struct cause_plan *plan, int slot,
                      struct judge_scratch *scratch, struct cause_evidence evidence[CAUSE_COUNT]);
/* A finding for every culprit of a summary of all slots, from the evidence of all slots, by a pool, a scratch for each
   of its threads, or (NULL) alone; returns how many, -1 without memory. */
int judgement_find(const struct judgement *j, const struct trace *t, const struct summary *summary,
                   const struct cause_plan *plan, const struct cause_evidence evidence[CAUSE_COUNT],
                   struct judge_scratch *const *scratch, struct pool *pool, struct finding findings[MAX_FINDINGS]);
/* What it is in a word or two: "scaled-twice", "race", "s_unit = scaled"; "": that is not known. */
const char *finding_word(const struct finding *f, const struct trace *t);
bool finding_has_rule(const struct finding *f); /* that explains all that is wrong */
/* finding_word(), else the first of such rules in words; "": neither. */
const char *finding_says(const struct finding *f, const struct trace *t);
/* Where in its text stands why: what is found later goes there, or behind a rule that explains a part. */
char *finding_reason(struct finding *f, size_t *bytes);
/* What stands in the place of these words where no finding has any. */
const char *findings_unknown(const struct judgement *j);
/* Where a cause is known: what it explains, in one line. shorter: 1 without counts and detail, 2 without what rounding
   explains as well; of a rule its name alone, or of a family of them the rule alone. */
void finding_explained(const struct finding *f, int shorter, char *out, size_t bytes);
/* "kernel.m_policy = ASC_M_LAGGING; kernel.m_lag = 3;", "": it has none. */
enum { FINDING_LINES_BYTES = CONVENTION_LINES * CONVENTION_LINE_BYTES };
void finding_lines(const struct finding *f, char out[FINDING_LINES_BYTES]);
/* Nothing is wrong with the kernel but what it declares. */
static inline bool finding_declares(const struct finding *f)
{
    return f->n_lines > 0 && f->output_right;
}
void finding_also(const struct finding *f, int i, char *out, size_t bytes);            /* "also explained by ..." */
const struct trace_site *finding_site(const struct finding *f, const struct trace *t); /* its probe; NULL: not known */
/* "s,l"; "": none. culprits: as in struct summary. */
void culprits_words(unsigned culprits, char *out, size_t bytes);
/* What a run says that is judged and in which no stage is wrong: "every recorded stage is within its bound". */
const char *judgement_quiet(const struct judgement *j, const struct trace *t);
/* The event between this channel's probe and the one before it that explains what is wrong there (reports.h). */
const struct trace_event *judgement_event(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                                          bool unreal);
/* One that may, wherever in the slot's block it was (reports_in_slots). */
const struct trace_event *judgement_event_in_slots(const struct judgement *j, const struct trace *t,
                                                   enum asc_channel ch);
/* Of the tiles in which a stage is wrong (up to 256), how many hold what is no number: so is uninitialized memory on
   the CPU, but for codes, of which every byte may be one. */
enum unreal { UNREAL_NONE, UNREAL_SOME, UNREAL_ALL };
enum unreal judgement_unreal(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                             struct judge_scratch *scratch);
/* Uninitialized memory that was read in the block and is all of what is wrong in Q, K or V: what a probe reads has no
   line of the kernel's. */
const struct trace_event *judgement_event_of_read(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                                                  struct judge_scratch *scratch);
/* Whether an event of uninitialized memory explains some of these tiles alone. */
bool judgement_event_in_part(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                             const struct trace_event *e, struct judge_scratch *scratch);
/* Every element of one tile; free with tile_detail_free. */
int judgement_detail(const struct judgement *j, const struct trace *t, struct place place,
                     struct judge_scratch *scratch, struct tile_detail *out);
/* What element (row, col) of one tile was made from; free with derivation_free. -1: memory ran out, and nothing needs
   to be freed. */
int judgement_operands(const struct judgement *j, const struct trace *t, struct place place, int row, int col,
                       struct judge_scratch *scratch, struct derivation *out);

/* Of a slot: [kv_tiles][ASC_CHANNELS]. */
struct tile_verdicts *judgement_tiles(const struct judgement *j, int slot);
const struct tile_verdicts *judgement_tile(const struct judgement *j, struct place place);
bool judgement_any(const struct judgement *j); /* something is judged; a run of which nothing is, is not clean */
bool judgement_slot_done(const struct judgement *j, int slot);
/* Elements of a tile. excused: never written, as the run ended early, or as the kernel never came to this tile;
   these are no fault of the stage, and neither judged nor bad. */
struct tile_count {
    uint64_t judged, bad, excused;
};
struct tile_count judgement_count(const struct judgement *j, struct place place, bool global);
/* Whether the tile counts as bad: an element outside its bound. What a run that ended early never wrote does not count.
 */
bool judgement_tile_bad(const struct judgement *j, struct place place, bool global);
/* Whether the kernel should have come to this kv tile and, in a run that completed, did not. Of a channel that exists
   once per slot: it came to no kv tile of the slot, and wrote nothing of this. */
bool judgement_tile_unvisited(const struct judgement *j, struct place place);
/* The next kv tile that was left out, from *at (slot and kv; begin with zeros) on, and the rows of the q tile that
   should see it; moves *at behind it. 0: there is none. */
struct left_out {
    struct place place;
    int first_row, last_row;
};
/* "rows 0 to 63", "row 5" */
enum { LEFT_OUT_ROWS_BYTES = 40 };
void left_out_rows(const struct left_out *it, char out[LEFT_OUT_ROWS_BYTES]);
bool judgement_left_out(const struct judgement *j, const struct trace *t, struct place *at, struct left_out *out);

/* Every (kv tile, channel) of a slot in the kernel's own execution order: per-slot channels that come first (q), then
   kv tiles as visited and, in each, the stages and the kernel's own values; then tiles never visited; then o and lse.
   Returns how many, -1 where memory ran out. places: [kv_tiles * ASC_ALL_CHANNELS]. */
int judgement_sequence(const struct trace *t, int slot, struct place *places);
struct expect;
/* Whether the scenario's [expect] is met (a scenario that expects nothing expects a clean run); why: one line that says
 * what was expected and what was found. */
bool judgement_meets(const struct judgement *j, const struct trace *t, const struct expect *expect, char *why,
                     size_t why_bytes);
/* The same in parts: the stage (first channel, culprits; of a run that should be clean that it is), the tile (place of
   the first bad one, line of the event), the finding (causes, kinds of events, what stopped it). */
enum expect_part { PART_NOT_STATED, PART_RIGHT, PART_WRONG };
struct expect_parts {
    enum expect_part stage, tile, finding;
};
void judgement_parts(const struct judgement *j, const struct trace *t, const struct expect *expect,
                     struct expect_parts *out);

#endif
