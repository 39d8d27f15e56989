/* The last runs of a session, so that one can be set beside another: traces with their verdicts, oldest first. A run in
   here is never written to again: its memory goes back to the recorder's store only when the run is dropped. */
#ifndef SESSION_RUNS_H
#define SESSION_RUNS_H

#include "engine/base/err.h"
#include "engine/scenario/scenario.h"
#include "engine/verdict/judgement.h"
#include <time.h>

enum { RUNS_MAX = 8, RUN_NAME_BYTES = 40 };

struct run {
    int number; /* 1 for the session's first */
    time_t at;  /* when its launch was over, seconds since 1970 */
    char title[192];
    char name[RUN_NAME_BYTES];     /* the user's; "": none */
    char *saved;                   /* owned: the file it was saved to last; NULL: none */
    struct trace *trace;           /* owned */
    struct judgement *judgement;   /* owned */
    struct scenario *scenario;     /* owned: what decided it; NULL: not known */
    struct err_kept err;           /* what ended it early, or its judging; ERR_NONE: nothing */
    double worst[ASC_CHANNELS];    /* largest error / bound by what was captured; NaN: of a NaN; 0: not all judged */
    bool at_event;                 /* as in struct session */
    const struct finding *finding; /* borrowed from judgement: the one shown, or NULL */
};

/* Zero-initialize. */
struct runs {
    struct run at[RUNS_MAX]; /* [n] */
    int n;
    int made;   /* runs there have ever been */
    int shown;  /* number of the one on the screen; 0: none */
    int before; /* number of the one that was shown before it; 0: none */
};

void runs_free(struct runs *r);
/* Takes trace and judgement over as the newest run, which is then shown. runs_make_room() comes before it. */
struct run *runs_add(struct runs *r, struct trace *t, struct judgement *j, const char *title);
/* Drops the oldest runs until there is room for one more and what is left takes no more than `bytes`. The newest and
   the shown one stay whatever they take. Returns how many went. */
int runs_make_room(struct runs *r, uint64_t bytes);

/* Index of a run's number, or -1: it was dropped, or never was. */
int runs_index(const struct runs *r, int number);
const struct run *runs_shown(const struct runs *r);  /* NULL: none */
const struct run *runs_newest(const struct runs *r); /* NULL: none */
/* The one that a run (of these) is compared with: the youngest before it that nobody cancelled; NULL: none. */
const struct run *runs_before(const struct runs *r, const struct run *run);
/* The one to flip to: shown before this one, else the newest of the others; NULL: there is no other. */
const struct run *runs_other(const struct runs *r);

uint64_t run_bytes(const struct run *run); /* of the trace and its verdicts */
/* Fills in run->worst from the summary of a judgement that is complete. */
void run_measure(struct run *run);
enum run_verdict {
#define RUN_VERDICT(id, word) RUN_IS_##id,
#include "engine/session/run_verdicts.def"
#undef RUN_VERDICT
};
const char *run_verdict_word(enum run_verdict verdict);
/* Of a run that nothing is under way for. j may be NULL. */
enum run_verdict run_verdict(const struct trace *t, const struct judgement *j);
/* "run 3", "run 3 (before the swizzle)" */
void run_words(const struct run *run, char *out, size_t bytes);

#endif
