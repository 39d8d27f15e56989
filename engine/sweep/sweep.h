/* A sweep: points of a grid of settings, whether the kernel is right at each, and where it is not as a rule. */
#ifndef SWEEP_SWEEP_H
#define SWEEP_SWEEP_H

#include "engine/scenario/scenario.h"
#include "engine/sweep/rules.h"
#include <jansson.h>

enum { SWEEP_AXES = 16, SWEEP_WHAT_BYTES = 128, SWEEP_WORDS_BYTES = 384, SWEEP_LINE_BYTES = 1536 };

enum sweep_result { SWEEP_OK, SWEEP_FAIL, SWEEP_DECLINED, SWEEP_NOT_TRIED, SWEEP_RESULTS };
extern const char *const sweep_result_names[SWEEP_RESULTS];

/* Its key is one of a scenario, "shape.kv_len", or a macro of the kernel's build, "define.WS". */
struct sweep_axis {
    char *key;    /* owned */
    char **value; /* owned, [n] and each; ascending where all are numbers */
    int n;
};

struct sweep_point {
    size_t number; /* in the sample, whatever shard it is of */
    short at[SWEEP_AXES];
    enum sweep_result result;
    int runs, runs_failed; /* of one that was run again and did not do the same; runs 0: any other */
    double seconds;
    char *what;    /* owned; of one that fails: its stages and cause, "s: tail-not-masked"; NULL: nothing */
    char *why;     /* owned; in one line; NULL: all is well */
    char *command; /* owned; runs it alone; NULL: it is not known */
};

struct sweep {
    char kernel[512];
    char text[33]; /* of the kernel, its patch and the oracle: shards of one sweep have the same */
    char **base;   /* owned, [n_base] and each: "KEY=VALUE" of all points, where no axis says otherwise */
    int n_base;
    struct sweep_axis axis[SWEEP_AXES];
    int n_axes;
    int br, bc;                /* of the plan at the base */
    uint64_t sample;           /* which random sample */
    size_t whole;              /* points of it */
    double grid;               /* of the whole grid, those that cannot be among them */
    char *command;             /* owned: makes it, without --shard and --save */
    int shard, shards;         /* from 1; 0: all of it */
    struct sweep_point *point; /* owned, [n]: in the order of their numbers */
    size_t n;
    bool compares; /* of two sweeps: what fails are the points where their verdicts differ */
    bool ended;    /* came to its end, by whatever way; false: it was killed */
    char *error;   /* owned; what ended it before its points did; NULL: nothing */
    int error_status;
    double seconds;
    /* What sweep_find() found. */
    struct sweep_rules rules;
    char rule_words[SWEEP_RULES][SWEEP_WORDS_BYTES], same_words[SWEEP_SAME][SWEEP_WORDS_BYTES];
    int shown[2]; /* axes of a picture: those that the rule names first; -1: there is none */
};

void sweep_init(struct sweep *s);
void sweep_free(struct sweep *s); /* what it owns; NULL is legal */

/* The kernel that values are chosen for. */
struct sweep_kernel {
    const struct scenario *base;
    bool (*takes)(void *ctx, const struct scenario *scenario); /* by its plan */
    void *ctx;
};
/* One word of --over: "kv_len=63,64,65", "kv_len=1..128", "window=none 5,3", "define.WS=1,2", or names of axes and
   groups, whose values are those of axes.def that the kernel takes. ERR_USAGE. */
int sweep_add(struct sweep *s, const char *over, const struct sweep_kernel *kernel, struct err *err);
/* Draws at most `most` points: all that there are in an order by chance, or a sample; those that scenario_check()
   refuses are none. The same for the same axes, base and s->sample. ERR_INPUT where there is none. */
int sweep_draw(struct sweep *s, const struct scenario *base, size_t most, struct err *err);
/* The axes and points of another sweep, in the place of drawn ones. */
int sweep_take_points(struct sweep *s, const struct sweep *from, struct err *err);
/* Leaves those of one shard: point i is of shard i mod `of`. */
void sweep_take_shard(struct sweep *s, int shard, int of);
/* What scenario says, as s->base; all but the kernel, what is expected, and which places are captured. */
int sweep_take_base(struct sweep *s, const struct scenario *scenario, struct err *err);
/* Sets a word KEY=VALUE, as they stand in base and command. */
int sweep_set(struct scenario *scenario, const char *word, struct err *err);
/* *out: the scenario of a point. scenario_free(). */
int sweep_apply(const struct sweep *s, const struct sweep_point *p, const struct scenario *base, struct scenario *out,
                struct err *err);
/* Whether two points want the same build, as far as the axes tell: it is run once then, and stays warm. */
int sweep_build_order(const struct sweep *s, const struct sweep_point *a, const struct sweep_point *b);

const char *sweep_axis_name(const struct sweep_axis *axis); /* "kv_len" */
void sweep_point_words(const struct sweep *s, const struct sweep_point *p, char *out, size_t bytes);
/* Finds the rules, and their words. -1: no memory. */
int sweep_find(struct sweep *s, struct err *err);
size_t sweep_count(const struct sweep *s, enum sweep_result result);
/* The exit status, as `check` has it: 0 all that ran are right, 1 some are not or the kernel takes none, 3 unfinished
   (or what the error says); and its word: clean, fail, takes none, unfinished, error. */
int sweep_status(const struct sweep *s);
const char *sweep_verdict(const struct sweep *s);
double sweep_point_size(const struct sweep *s, const struct sweep_point *p); /* product of its shape's numbers */
/* The smallest point of those that fail; NULL: none does. */
const struct sweep_point *sweep_smallest(const struct sweep *s, enum sweep_result result);
/* What is said of it: "fails exactly where kv_len % 64 != 0: 40 of 40 there, 0 of 60 elsewhere", line i; false: there
   are no more. */
bool sweep_sentence(const struct sweep *s, int i, char *out, size_t bytes);

/* The file of a sweep, or of a shard of one, as docs/sweep.schema.json has it. It is replaced as a whole. */
json_t *sweep_json(const struct sweep *s); /* owned by the caller; NULL: no memory */
int sweep_write(const struct sweep *s, const char *path, struct err *err);
int sweep_read(const char *path, struct sweep *out, struct err *err);
/* The whole sweep of its shards. ERR_INPUT where they are not of one sweep; ERR_RUN where some are missing or did not
   come to their end: say() then names each, with the command that runs it alone. */
int sweep_merge(char *const *paths, int n, void (*say)(const char *line), struct sweep *out, struct err *err);

/* Points of two sweeps that ran in both: n[fails in the first][fails in the second]. */
struct sweep_change {
    size_t n[2][2];
    size_t left_out; /* of the first: not in the second, or not run in both */
};
/* *out: the points where verdicts differ as those that fail, and their rules. ERR_INPUT: the axes are others. */
int sweep_compare(const struct sweep *a, const struct sweep *b, struct sweep *out, struct sweep_change *change,
                  struct err *err);

#endif
