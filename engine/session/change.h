/* What got better and worse from one run to the next, from what was judged of both. Values are not compared here
   (difference.h does): two runs of other kernels, or of the same one before and after a repair. */
#ifndef SESSION_CHANGE_H
#define SESSION_CHANGE_H

#include "engine/session/runs.h"

enum change_kind { CHANGE_NONE, CHANGE_BETTER, CHANGE_WORSE };

struct stage_change {
    enum change_kind local, global; /* by the number of bad elements; NONE too where a run has no verdict */
    uint64_t before, now;           /* bad elements by the local verdicts */
    uint64_t before_global, now_global;
    /* Largest error / bound; says something where the number stays and is not 0. */
    double worst_before, worst_now;
};

enum change_state {
    CHANGE_NOTHING, /* there is no run before it, or one of both is not judged to its end */
    CHANGE_OTHER,   /* another problem, or other q tiles recorded: numbers of elements do not compare */
    CHANGE_COMPARED
};

/* A value of the kernel's own that both runs have. */
struct own_change {
    const char *name; /* of the later run's plan; NULL: there is none */
    struct own_count before, now;
};

struct change {
    struct own_change own[ASC_OWN_CHANNELS];
    enum change_state state;
    int since;     /* number of the run before */
    char set[160]; /* what decided this one otherwise, "fill.kind=normal"; "": nothing that is known */
    struct stage_change stage[ASC_CHANNELS];
    unsigned better, worse; /* sets of 1u << enum asc_channel, by the local verdict, or where that is the same both
                               times by the global one */
    bool first_moved;       /* the first bad tile (or the first one left out) is another; either may be none */
    struct place first_before, first_now; /* slot -1: none. Of either trace */
    bool ended[2];                        /* the run came to its end: before, now */
};

/* before may be NULL. */
void change_find(const struct run *before, const struct run *now, struct change *out);
/* "since run 2: S better (4096 → 0 off), O worse (0 → 12 off), with fill.seed=7"; "": nothing to say. */
void change_words(const struct change *c, char *out, size_t bytes);
/* 1: something got worse; -1: nothing did and something better; 0: neither. */
int change_sense(const struct change *c);

#endif
