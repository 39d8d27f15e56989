/* The model: every verb of the user interface, without a screen. A session holds a scenario or a saved trace, the run
   that is shown, its judgement, and a cursor. Long work runs on the session's own threads; the owner polls
   session_fd() and calls session_update(). Views read a const session between two updates. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "engine/base/err.h"
#include "engine/bundle/bundle.h"
#include "engine/cursor/jumps.h"
#include "engine/cursor/pins.h"
#include "engine/oracle/nonfinite/invariants.h"
#include "engine/session/change.h"
#include "engine/session/cursor_tile.h"
#include "engine/session/log.h"
#include "engine/session/runs.h"
#include "engine/session/stops.h"
#include "engine/session/subject.h"
#include "engine/study/isolation.h"
#include "engine/verdict/judgement.h"

enum phase {
    PHASE_IDLE,
    PHASE_BUILDING,
    PHASE_RUNNING,
    PHASE_JUDGING,
    PHASE_READY,
    PHASE_FAILED /* job.err says why; a partial trace may still be shown */
};

/* What there was no memory for: it is not shown, and a screen without it is not the run's. */
enum lack {
    LACK_DETAIL = 1 << 0,
    LACK_ROW_STATE = 1 << 1,
    LACK_OPERANDS = 1 << 2,
    LACK_STATES = 1 << 3,
    LACK_PINS = 1 << 4,
    LACK_ELEMENT = 1 << 5, /* the cursor did not come to the element that it was to go to */
    LACK_LOOK = 1 << 6,
    LACK_ROUNDING = 1 << 7,
    LACK_PICTURE = 1 << 8
};

/* Which number of each element a tile view shows. */
enum shown { SHOW_GOT, SHOW_WANT, SHOW_DIFF, SHOW_ULP, SHOW_RATIO, SHOW_COUNT };

struct laboratory;
struct retry_scan;
struct rounding_scan;
struct sweep;
struct whatif_choice;
struct work;

/* The work under way, or the last. */
struct session_job {
    enum phase phase;
    struct err err; /* why PHASE_FAILED */
    enum runner_step step;
    double done, total;                 /* of the step; total 0: unknown */
    double step_since;                  /* monotonic seconds */
    struct runner_spent spent;          /* by the steps that have ended */
    bool made_run;                      /* it has come to a run that is shown */
    struct trace *opened;               /* owned: a saved trace that is not judged yet */
    struct isolation_request isolating; /* the one that was asked for last */
};

/* The run that is shown. */
struct session_run {
    struct trace *trace;            /* borrowed from runs, but an isolated one; NULL: no run yet */
    struct judgement *judgement;    /* as trace */
    struct finding const *finding;  /* borrowed from judgement: the one shown, or NULL */
    int number;                     /* 1 for the first */
    struct change change;           /* from the run before to this one */
    struct isolation isolation;     /* where it is an isolated run */
    struct laboratory *laboratory;  /* owned (look.h); NULL: nothing was asked of it */
    struct rounding_scan *rounding; /* owned: as laboratory */
    struct retry_scan *retry;       /* owned: as laboratory */
};

/* Where the user is. */
struct session_at {
    struct cursor cursor;
    struct jumps jumps;
    struct pins pins; /* elements that stay visible */
    enum shown shown;
    bool follow_first; /* the cursor still goes to the first bad tile by itself */
    bool event;        /* the run has one with a line, and the source stands there until the cursor moves */
};

struct session {
    struct subject subject; /* what is run */
    struct bundle_opened bundle;
    char title[192];   /* "v2b_scalar WS=2 + double-scale.patch", or the trace's file name */
    struct work *work; /* owned: threads, judge queue, child */
    struct log log;
    char message[256]; /* one line about the last command ("no next bad tile") */

    struct session_job job;
    struct session_run run;
    struct runs runs; /* the last ones, the shown one among them */
    struct session_at at;
    struct stop_search search;
    struct cursor_tile tile; /* what is shown there */
    struct sweep *swept;     /* owned; NULL: no sweep is open */
    unsigned lacks;          /* set of enum lack; what it names is tried again with the next refresh */
};

int session_open_scenario(const char *path, struct session **out, struct err *err);
int session_open_adhoc(const struct scenario *scenario, struct session **out, struct err *err); /* takes it over */
int session_open_trace(const char *path, struct session **out, struct err *err);
/* The kernel of a saved sweep (.json), set to the smallest point that fails. */
int session_open_sweep(const char *path, struct session **out, struct err *err);
/* The trace of a bundle, which is unpacked as long as the session lives. Nothing of it is built or run. */
int session_open_bundle(const char *path, struct session **out, struct err *err);
/* What would run, and how, where the scenario of the bundle was run here; false: this is no bundle, or it has none. The
   scenario's path goes into `scenario`. */
bool session_bundle_words(const struct session *s, char scenario[700], char *words, size_t bytes);
/* A scenario (.ini), a kernel (.cu: an ad-hoc run), a saved trace or a bundle, told apart by content. */
/* The run of a saved trace once more: what it keeps is the scenario. */
int session_open_again(const char *path, struct session **out, struct err *err);
/* A scenario (.ini), a kernel (.cu: an ad-hoc run) or a saved trace, told apart by content. */
int session_open(const char *path, struct session **out, struct err *err);
void session_free(struct session *s); /* stops everything; NULL is legal */

/* What a scenario, a kernel (.cu: an ad-hoc run) or a saved trace says of a run by itself. */
int session_read(const char *path, const char *root, struct scenario *out, struct err *err);
/* Builds, runs, judges in the background, by s->subject.scenario as it is; a running one is left alone: -1. */
int session_start(struct session *s);
/* The same after the file was read again: what every key and every save that asks for a run does. -1: s->message says
   why not, or s->job.err where the file cannot be read any more. */
int session_rerun(struct session *s);
/* What is said where a saved trace would have to be run. */
#define SESSION_NO_KERNEL "this is a saved trace: r runs its kernel, :replay KERNEL.cu another one on its inputs"
/* From now on the session of a saved trace is one of the problem that the trace keeps, with the kernel as it is now;
   the trace stays as an earlier run. Nothing is started. -1: s->message says why not. */
int session_revive(struct session *s);
/* From now on the session of a saved trace is one of this kernel or scenario, on the trace's inputs; the trace stays as
   an earlier run. Starts the run. -1: it can not be read, or does not fit. */
int session_replay(struct session *s, const char *path, struct err *err);
/* Runs the kernel with the formats of a row of what-if. -1: s->message says why not. */
int session_run_choice(struct session *s, const struct whatif_choice *choice);
/* Sets a key of the scenario over what its file says, for the runs to come. -1: nothing has changed. */
int session_set(struct session *s, const char *key, const char *value, struct err *err);
/* What decided the run that is shown; NULL: a saved trace. */
const struct scenario *session_made_by(const struct session *s);
/* The words of a command line (a file and options) that make the shown run again, in one that opens the file as it is
   now. -1: they are not known. *edited: the kernel's text is another by now. */
int session_subject(const struct session *s, char *out, size_t bytes, bool *edited);
/* What is said over the file for the next run: "KEY=VALUE" lines, that --set takes; "" of a saved trace. -1: the file
   can not be read, what is said over it is no such lines, or there is no room. */
int session_settings(const struct session *s, char *out, size_t bytes);
/* A word of such a line, as a shell reads it. -1: no room. */
int subject_word(const char *word, char *out, size_t bytes);
/* Runs the shown run once more with everything up to the request's stages fed, and judges it; it then takes the place
   of the ordinary run, which is kept beside it until session_start(). -1: s->message says why not. */
int session_isolate(struct session *s, const struct isolation_request *request);
/* The isolated run that is shown, set beside the ordinary one. false: it is an ordinary run that is shown. */
bool session_isolated(const struct session *s, struct isolation_result *out);
void session_cancel(struct session *s);  /* stops what is under way; what was recorded is kept */
int session_fd(const struct session *s); /* readable when session_update() has something to do */
bool session_update(struct session *s);  /* takes over what the threads have done; whether anything changed */
bool session_busy(const struct session *s);
/* Runs to the end in the calling thread's time. progress (NULL: nobody asks) gets a line a few times a second once the
   first one is over, "" at the end. -1: it failed (s->job.err). */
int session_finish(struct session *s, void (*progress)(const char *line));
int session_save(const struct session *s, const char *path, struct err *err);

/* The last runs. The cursor stays at its place. -1: s->message says why not. */
int session_show_run(struct session *s, int number);
int session_flip(struct session *s); /* to the run that was shown before this one, and back */
int session_name_run(struct session *s, int number, const char *name); /* cut to RUN_NAME_BYTES */
int session_save_run(const struct session *s, int number, const char *path, struct err *err);
void session_note_saved(struct session *s, int number, const char *path); /* where that run was saved */

/* Sweeps. Opens one of the kernel that is open, in the place of another. */
int session_load_sweep(struct session *s, const char *path, struct err *err);
/* Sets what a point of it says over what the file says; runs it, too. -1: *err, or s->message, says why not. */
int session_set_point(struct session *s, size_t point, struct err *err);
int session_run_point(struct session *s, size_t point);
size_t session_point_of_interest(const struct session *s); /* the smallest that fails, else the first */

/* Watching. While it is on, whatever decides a run (the kernel, what it includes, its patch, the scenario) is run again
   as soon as it is saved; saves during a run are followed by one more. -1: s->message says why not. */
int session_watch(struct session *s, bool on);
bool session_watching(const struct session *s);
/* Runs again when nothing is under way any more. */
void session_ask_rerun(struct session *s);

/* Sets s->message, which no other function writes: one line, cut to its room; the second one empties it. */
void session_say(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void session_hush(struct session *s);
int session_refuse(struct session *s, const char *why); /* says it; -1 */

/* The user's marks and pins. */
bool session_set_mark(struct session *s, uint32_t letter); /* of the cursor; false, said: no letter */
void session_toggle_pin(struct session *s, const struct cursor *at);
void session_unpin(struct session *s, int i); /* -1: all */

/* Stepping. Each says whether the cursor moved; else s->message says why not. */
bool session_step_stage(struct session *s, int by); /* over the channels that are recorded */
bool session_step_head(struct session *s, int by);  /* batch, head as one sequence */
bool session_step_q(struct session *s, int by);
bool session_step_kv(struct session *s, int by);
bool session_step_row(struct session *s, int by);
bool session_step_col(struct session *s, int by);
bool session_step_bad(struct session *s, int by); /* next / previous bad tile, in execution order */
bool session_go_first_bad(struct session *s);
/* In the kernel's own execution order, through the whole run: stage by stage; from one kv step to the next of this
   stage; element by element of a tile, then of the next one. */
bool session_step_order(struct session *s, int by);
bool session_step_visit(struct session *s, int by);
bool session_step_element(struct session *s, int by);
bool session_go(struct session *s, struct place place);
/* To the first root of NaN and infinity (by 0), or from root to root; and which one the cursor is at, or -1. */
bool session_go_root(struct session *s, int by);
int session_root(const struct session *s);
bool session_go_cursor(struct session *s, const struct cursor *to);
bool session_jump_to(struct session *s, const struct cursor *to); /* the same; the jump can be gone back */
bool session_go_mark(struct session *s, uint32_t letter);         /* ': where the last jump began */
bool session_jump(struct session *s, int by);                     /* < 0: back to where jumps began; > 0: forth again */
bool session_go_worst(struct session *s);                         /* the worst element of this tile */
void session_cycle_shown(struct session *s);

/* Stop conditions (stop.h). It is one of the session's now; else s->message says why not. */
bool session_add_stop(struct session *s, const char *text);
void session_remove_stop(struct session *s, int i);
/* Looks in the background for the next place (by < 0: the one before, |by| > 1: that many on) where one of them holds,
   and takes the cursor there. false: s->message says why not. */
bool session_seek(struct session *s, int by);

/* Nobody looks at tiles: what is shown of the cursor's is not made. */
void session_set_unseen(struct session *s);
/* How long a verb waits for it; it comes by itself then. 0, as at the start: to the end, however long. */
void session_set_patience(struct session *s, double seconds);
void session_set_reader(struct session *s, const struct scenario_reader *reader);
/* What of it is under way: how much of it is done, 0 to 1, and for how many seconds. false: nothing is. */
bool session_values_under_way(const struct session *s, double *share, double *seconds);
bool session_stop_values(struct session *s); /* it stops; the next step of the cursor asks again */
/* Memory ran out for something that is shown. */
bool session_lacks_memory(const struct session *s);
/* The softmax state of the cursor's slot, for as long as a view shows it. */
void session_want_states(struct session *s, bool on);

int session_slot(const struct session *s); /* of the cursor, or -1: not recorded */
struct place session_place(const struct session *s);
/* A channel of the shown run, the kernel's own values too. */
const char *session_label(const struct session *s, enum asc_channel ch);
const struct trace_site *session_site(const struct session *s); /* probe line of the cursor's channel, or NULL */
/* The report (reports.h) of the cursor's tile, else the run's first one, else its first event, or NULL. */
const struct trace_event *session_event(const struct session *s);
bool session_at_report(const struct session *s); /* it is one of the cursor's tile */
enum run_verdict session_verdict(const struct session *s);
const char *session_verdict_word(const struct session *s); /* "FAIL", "CLEAN", "judging", "CRASHED", ... */

#endif
