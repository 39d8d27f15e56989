/* From a kernel's source to a live trace: build the debuggee, keep a child process of it warm, run a problem in it.
   Nothing here judges; nothing here links CUDA. */
#ifndef BUILD_RUNNER_H
#define BUILD_RUNNER_H

#include "engine/base/err.h"
#include "engine/build/device.h"
#include "engine/trace/trace.h"
#include <stdatomic.h>
#include <stdbool.h>

/* Where attnscope's own files are, and where builds are kept. */
struct runner_paths {
    char root[512];  /* holds probes/attnscope.h: above the program, or share/attnscope of where it is installed */
    char cache[512]; /* build/cache below root where that has a build/, else in XDG_CACHE_HOME; ATTNSCOPE_CACHE wins */
};
int runner_find_paths(struct runner_paths *paths, struct err *err);
/* What `make` built beside the program or in build/ below root, or installed in lib/attnscope: libraries of debuggees,
   helper programs. */
int runner_find_built(const struct runner_paths *paths, const char *name, char *path, size_t size, struct err *err);

/* A path below the current folder without that folder: what the user would type. */
const char *runner_short_path(const char *path);

enum runner_step {
#define STEP(id, words) STEP_##id,
#include "engine/build/steps.def"
#undef STEP
    STEP_COUNT
};
const char *runner_step_words(enum runner_step step); /* "compiling"; "" for STEP_NONE */

/* Tells the caller what is going on; called from the thread that builds or runs. May be NULL. */
struct runner_progress {
    void (*report)(void *ctx, enum runner_step step, double done, double total); /* may be NULL; total 0: unknown */
    void (*log)(void *ctx, const char *line); /* the compiler's and the kernel's own output, a line each */
    void *ctx;
    atomic_int *cancel; /* borrowed, may be NULL; non-zero: stop as soon as possible with ERR_CANCELLED */
    /* May be NULL. So many of the lines just logged are what compiler and linker said; cached: of a build of before. */
    void (*remarks)(void *ctx, size_t lines, bool cached);
    /* May be NULL. A file of the user's that the kernel includes; told by builds that ask a compiler. */
    void (*reads)(void *ctx, const char *path);
    /* May be NULL. One line on the run as a whole, for the user to see at once. */
    void (*say)(void *ctx, const char *line);
    /* May be NULL. What a part of STEP_COMPILING took, by the compiler's own word for it. */
    void (*part)(void *ctx, const char *name, double seconds);
};

/* Where the time of a run goes. */
#define SPENT_PARTS_MAX 12
struct runner_spent {
    double step[STEP_COUNT]; /* seconds; 0: it did not come to that */
    struct {
        char name[40];
        double seconds;
    } part[SPENT_PARTS_MAX]; /* of STEP_COMPILING, [n_parts]: those that the compiler tells of */
    int n_parts;
};
bool runner_built_before(const struct runner_spent *spent); /* a program was asked for, and none had to be made */
void runner_report(const struct runner_progress *progress, enum runner_step step, double done, double total);

/* A file of the user's that a patch changes, beside the kernel's. */
struct build_patched {
    char name[256]; /* as the user knows it */
    char path[600]; /* of the copy */
};
#define BUILD_PATCHED_MAX 16

struct build {
    char program[600];        /* the debuggee */
    char source_path[600];    /* the text that was compiled: the user's file, or the patched copy */
    char *source;             /* owned */
    struct trace_site *sites; /* owned: every probe line, in source order */
    size_t n_sites;
    struct asc_value values[ASC_OWN_CHANNELS]; /* of the kernel's own */
    struct build_patched patched[BUILD_PATCHED_MAX];
    int n_patched;
    bool from_cache;             /* nothing was compiled */
    bool unchanged;              /* the last build's answer, no compiler was asked */
    struct build_inputs *inputs; /* owned: what it was made from; NULL: not to be relied on */
};

/* What the probes of a build do: ASC_MODE of attnscope.h; switched, they record, and what a kernel has twice
   (ASC_TWICE) is there twice, as in a program of the user's own. */
enum probes { PROBES_NONE, PROBES_RECORD, PROBES_FEED, PROBES_SWITCHED };

/* What of a GPU build a debugger sees. */
enum gpu_debug {
    GPU_LINEINFO, /* nvcc -lineinfo: optimized code with line tables */
    GPU_FULL      /* nvcc -G: for cuda-gdb; slow, and other arithmetic where the optimizer would contract */
};

struct build_request {
    const char *kernel;  /* path of the .cu */
    const char *patch;   /* NULL or "": none */
    const char *define;  /* "NAME=VALUE NAME": macros; NULL or "": none */
    const char *include; /* lists as value_next() reads them: folders of headers, flags of the compiler; NULL or "" */
    const char *flags;
    enum probes probes;
    bool writers; /* probes say who records an element; those of a CPU build do so always */
    bool staging; /* of a GPU build: probes are quick in pinned memory (probes/staging.h), slower elsewhere */
    enum backend backend;
    const struct gpu_device *gpu; /* borrowed; BACKEND_GPU: what is built for */
    enum gpu_debug debug;
    bool checks;         /* with access checks, docs/checks.md; BACKEND_CPU alone, else ERR_INPUT */
    int dtype, head_dim; /* of the run; a kernel that asks asc_built_for() is built for nothing else. head_dim 0: all */
    const struct build *last; /* borrowed, may be NULL: an earlier build, whose answer stands if nothing has changed */
};

/* Compiles a kernel for the CPU executor (g++) or a GPU (nvcc). Cached by content: preprocessed source, flags,
   compiler, runtime and ABI version. ERR_BUILD carries the compiler's message at the user's line, ERR_GPU_ONLY the
   construct and its line, ERR_INPUT a missing file or a hunk that does not apply. */
int build_debuggee(const struct runner_paths *paths, const struct build_request *request,
                   const struct runner_progress *progress, struct build *out, struct err *err);
void build_free(struct build *b);
/* Whether kernels can be built for a GPU here: nvcc is found, and `make` has built what debuggees link. ERR_SYSTEM. */
int build_gpu_ready(const struct runner_paths *paths, struct err *err);
/* The folder of the CUDA Toolkit whose nvcc that is; "" where there is none. */
void build_gpu_toolkit(char *folder, size_t size);

struct child; /* one debuggee process, warm between runs */

/* What the debuggee said of itself on start. */
struct child_hello {
    char kernel[64];
    enum backend backend;
    char device[96]; /* "NVIDIA H200, sm_90"; "" on the CPU */
    int abi;
    bool checks; /* built with access checks */
    uint32_t dtypes, layouts, biases, sequences, tensors;
    uint32_t k_dtypes, v_dtypes; /* 0: the type of q, no other */
    int32_t o_dtype;
    int32_t channel_dtype[ASC_CHANNELS];
    struct asc_conventions conventions;
};

/* ERR_ABI, ERR_RUN, ERR_SYSTEM; *damaged: the file may be no whole program, since it could not be started, or a signal
   or the loader ended it ahead of its first word. May be NULL. */
int child_start(const char *program, struct child **out, bool *damaged, struct err *err);
const struct child_hello *child_hello(const struct child *c);
/* Asks the kernel for its plan. ERR_DECLINED carries the kernel's own sentence. */
int child_load(struct child *c, const struct asc_problem *p, struct asc_plan *plan, struct err *err);
/* The process that keeps what probes write in device memory. It makes itself ready while a kernel is built; what it
   lacks a run says. NULL: no memory. */
struct guardian;
struct guardian *guardian_start(const struct runner_paths *paths, int device); /* its ordinal */
bool guardian_alive(const struct guardian *g); /* false once it has ended, or did not answer in time */
void guardian_stop(struct guardian *g);        /* NULL is legal */

/* Where the probes of the next runs write; guardian (borrowed) may be NULL where that asks for none. */
void child_set_memory(struct child *c, enum memory_kind kind, struct guardian *guardian);
/* Launches into the live trace (fed from t->fed, where there is one) and waits, at most limit_s for another block to
   come to its end, where the backend counts them, else for all; t->info.workers threads (0: as many as cores),
   t->info.tensor_core the products on the CPU. 0: complete, t->info.events may hold traps and diverged barriers. -1
   with ERR_RUN (crash, assert, deadlock, time limit: the text says which, and where the last probe fired) or
   ERR_CANCELLED: the trace then holds what was written, its info the status and the events, and the child is gone;
   start another. t->info.sites and source_name should be set before, so that the text can name lines as the user does.
 */
int child_run(struct child *c, struct trace *t, double limit_s, const struct runner_progress *progress,
              struct err *err);

/* Launches on the inputs of the live trace t, in a build without probes, and appends to t->info.launches what each
   kernel takes; counters: also how long the device itself says it ran, and hardware counters, or why there are none.
   ERR_DECLINED: not on this backend. ERR_RUN, ERR_CANCELLED as child_run(). */
int child_profile(struct child *c, struct trace *t, bool counters, double limit_s,
                  const struct runner_progress *progress, struct err *err);

struct timing {
    double median_s, min_s; /* NaN where n is 0 */
    int n;                  /* launches timed; 0: not measured */
};
struct bench_request {
    int repeats;    /* of each measurement, 3 to 1000 */
    double limit_s; /* of each measurement; at least three launches are timed */
    bool record;    /* false: the probes of the build, if it has any, are off */
};
struct bench_result {
    struct timing warm, cold; /* between two events; the launch before was the same one, or the L2 held nothing of it */
    struct timing graph;      /* of ten launches in a CUDA graph, replayed: for each */
    char no_graph[256];       /* why that was not measured */
    double copy_bytes_per_second;   /* of the copy engine into pinned memory; NaN where nothing is recorded */
    struct trace_launches launches; /* owned: launches_free() */
};
int child_bench(struct child *c, struct trace *t, const struct bench_request *request, double limit_s,
                const struct runner_progress *progress, struct bench_result *out, struct err *err);
bool child_alive(const struct child *c);
void child_stop(struct child *c); /* quit, then kill; NULL is legal */

#endif
