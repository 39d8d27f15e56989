/* The session's long work on threads of its own: build, run, judge, find. It leaves what it has done in a mailbox that
   session_update() empties; nothing here touches the session. */
#ifndef SESSION_WORK_H
#define SESSION_WORK_H

#include "engine/session/session.h"

struct work;

/* What has happened since the last work_collect(). Pointers are handed over to the caller. */
struct mail {
    enum phase phase;
    enum runner_step step;
    double done, total;
    double since;                /* monotonic seconds when this step began */
    struct runner_spent spent;   /* by the steps that have ended */
    struct trace *trace;         /* NULL: no new one */
    struct judgement *judgement; /* comes with trace */
    bool summed;                 /* summary is of all slots of the judgement, whose last one is judged */
    struct summary summary;
    bool complete;            /* every slot is judged, findings[n_findings] are all there are */
    struct finding *findings; /* owned; comes with complete */
    int n_findings;
    struct state_break state_break;
    struct run_onset *onset; /* owned; comes with findings; NULL: every number is one */
    struct log log;          /* new lines */
    char said[200];          /* what the user is told of the run at once; "": nothing */
    char **reads;            /* files that the kernel includes, each once since the last mail */
    size_t n_reads;
    struct err err; /* code ERR_NONE while all is well */
    bool finished;  /* the thread has nothing left to do */
    bool sought;    /* what was under way is a search; it has no phase */
};

int work_new(struct work **out, struct err *err);
void work_free(struct work *w); /* cancels and joins; NULL is legal */

int work_fd(const struct work *w); /* an eventfd: readable when there is mail */
bool work_busy(const struct work *w);
/* Starts a run of the scenario (borrowed until finished), or only the judging of a trace (borrowed by the thread, owned
   by whoever collects the mail). -1: busy, or no thread could be made. */
int work_run(struct work *w, const struct runner_paths *paths, const struct scenario *scenario);
int work_judge(struct work *w, struct trace *t);
/* Starts `run` (of this scenario; borrowed until finished, as the request) once more, isolated. */
int work_isolate(struct work *w, const struct runner_paths *paths, const struct scenario *scenario,
                 const struct trace *run, const struct isolation_request *request);
/* Starts looking for a stop condition in a judged run (borrowed until finished). */
int work_seek(struct work *w, struct seek *seek);
void work_cancel(struct work *w);
void work_wait(struct work *w);                       /* until the thread has ended; its mail stays to be collected */
void work_prefer(struct work *w, int slot);           /* judge this slot next */
bool work_collect(struct work *w, struct mail *mail); /* there was some */
void work_wake(struct work *w);                       /* makes work_fd() readable; from any thread */

#endif
