/* What a session runs, and the files that decide it. The verbs are in session.h. */
#ifndef SESSION_SUBJECT_H
#define SESSION_SUBJECT_H

#include "engine/build/runner.h"
#include "engine/scenario/keys.h"

struct session;
struct watch;

/* A key that was set in the session, over what the file says. What was said last of a key counts: the file's word takes
   its place as soon as it is another than when the key was set. */
struct session_setting {
    char *value; /* owned; NULL: not set here */
    char *file;  /* owned: what the file said of it then; NULL: nothing */
};

/* Reads what the session was opened with again, as it was read then. read NULL: session_read(). */
struct scenario_reader {
    int (*read)(const void *ctx, const char *path, const char *root, struct scenario *out, struct err *err);
    const void *ctx; /* borrowed */
};

struct subject {
    struct runner_paths paths;
    char path[512];           /* the file that was opened; "": none */
    struct scenario scenario; /* of the next run: the file's, and what was set here */
    bool has_scenario;        /* false: a saved trace */
    bool flags_shown;         /* those that a saved trace's kernel would be built with */
    struct session_setting settings[KEY_COUNT];
    struct scenario_reader reader;
    char reread[256];    /* what became of the settings when the file was read again; "": nothing to say */
    struct watch *watch; /* owned; NULL: saved files are not noticed */
    char **reads;        /* owned, [n_reads]: files that the kernel's builds have included */
    size_t n_reads;
    bool rerun_due; /* something was saved that no run has used yet */
};

/* Files that a build included, [n], taken over: they are watched from now on. */
void subject_take_reads(struct subject *what, char **reads, size_t n);
void subject_free(struct subject *what); /* all but the scenario */

bool session_take_saves(struct session *s);   /* something was saved */
bool session_rerun_if_due(struct session *s); /* a run was started, or it could not be */

#endif
