/* The command line, parsed by the tables commands.def and options.def. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "engine/base/err.h"
#include "engine/base/text.h"
#include "engine/session/session.h"
#include "tui/screen/theme.h"
#include <stdio.h>

enum command {
#define COMMAND(id, name, arguments, meaning, function) id,
#include "cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
};

enum option_id {
#define OPTION(id, letter, name, argument, commands, meaning) id,
#include "cli/options.def"
#undef OPTION
    OPTION_COUNT
};

/* --probes; names as they are given. */
enum asked_probes { ASKED_NOTHING, ASKED_ON, ASKED_OFF, ASKED_COMPARE };
extern const char *const asked_probes_names[]; /* [enum asked_probes], "" first */

struct option_words {
    const char *word[64]; /* in order */
    int n;
};

struct options {
    enum command command;
    const char *ncu; /* NULL: not given */
    bool csv;
    bool help, version, ascii, text, json, exact, all, checks, bias, no_retry, rerun, times, merge, yes, list;
    int repeat;           /* launches that bench times */
    int rank;             /* kernels that bench lists; 0: not given */
    const char *keep;     /* where it keeps them; NULL: not given */
    uint64_t limit_bytes; /* most that a bundle's trace takes; 0: not given */
    double time_s;        /* most for each kernel that check runs, or for a sweep; 0: not given */
    int runs;             /* most points of a sweep; 0: not given */
    int sample;           /* which of its random samples */
    int shard[2];         /* of it, from 1, of how many; 0: not given */
    const char *isolate, *feed, *backend, *on, *mem, *memory, *judge;
    enum asked_probes probes;
    const char *shape, *causal, *dtype, *keys, *patch, *output, *view,
        *junit;                 /* NULL: not given; borrowed from argv, as all strings here */
    enum background background; /* BACKGROUND_UNKNOWN: not given */
    const char *inputs[4];      /* --q --k --v --inputs, as these */
    const char *svg, *at;       /* as these */
    struct option_words settings, defines, includes, flags, over; /* "key=value", "NAME=VALUE" or "NAME" */
    int cols, rows;                                               /* of a printed screen */
    char **files;
    int n_files;
};

extern const char options_version[]; /* "1.2.3" */

/* ERR_USAGE names the word that is wrong. */
int options_parse(int argc, char **argv, struct options *out, struct err *err);
void options_write_help(FILE *out);

/* The session a command works on: a file with --shape, --set and --patch applied. */
int options_open(const struct options *o, const char *path, struct session **out, struct err *err);

/* Runs or judges a session to the end. 0 even where the run failed (s->job.err) but left a trace to show. */
int options_finish(struct session *s, struct err *err);

/* After options_finish(): looks for biased rounding where the options or the scenario ask for it. What came of it is
   the session's (rounding_look.h). */
void options_look_bias(const struct options *o, struct session *s);

/* Progress of a command without a session, told by text_progress(). */
const struct runner_progress *options_progress(void);

/* Each returns an exit status, or -1 with *err. */
#define COMMAND(id, name, arguments, meaning, function) int function(const struct options *o, struct err *err);
#include "cli/commands.def"
#undef COMMAND

#endif
