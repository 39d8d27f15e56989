/* A bundle: one file with what another person needs to see a failure (docs/bundle.md). */
#ifndef BUNDLE_BUNDLE_H
#define BUNDLE_BUNDLE_H

#include "engine/build/cache.h"
#include "engine/build/runner.h"
#include "engine/bundle/container.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/trace.h"
#include "engine/verdict/judgement.h"

#define BUNDLE_FORMAT 1
#define BUNDLE_MANIFEST "manifest.json"
#define BUNDLE_SCENARIO "scenario.ini"
#define BUNDLE_TRACE "trace.safetensors"
#define BUNDLE_VERDICT "verdict.json"
#define BUNDLE_TRACE_BYTES (UINT64_C(256) << 20) /* a larger trace is packed with its failing slots alone */

/* What is packed, borrowed. */
struct bundle_subject {
    const struct runner_paths *paths;
    const char *version;             /* attnscope's */
    const struct scenario *scenario; /* of the run; NULL: a saved trace */
    char *const *reads;              /* files that the build included, [n_reads] */
    size_t n_reads;
    const struct trace *trace;         /* NULL: the run left none */
    const struct judgement *judgement; /* of that trace */
    const char *verdict;               /* "FAIL" */
    const char *verdict_json;
    const char *error;    /* why there is no trace; "" */
    uint64_t trace_bytes; /* most that the trace may take */
};

/* The files of a bundle, the manifest first. A trace is written into the work folder, which has to outlive *out. */
int bundle_collect(const struct bundle_subject *of, const struct cache_work *work, struct container *out,
                   struct err *err);

/* What a scenario is built and run from, before anybody has built it: sources, scenario, patch, files of inputs. An
   entry's path says which file of the user's it is. Which headers are included is read from the text: more may be
   packed than a build would read, none that a macro names. */
int bundle_problem(const struct runner_paths *paths, const struct scenario *scenario, struct container *out,
                   struct err *err);

/* What a manifest says; "": nothing. */
struct bundle_facts {
    char attnscope[64], kernel[256], verdict[32], error[512];
    char backend[16], compiler[256], cuda[64], driver[256], gpu[128];
    char commit[80];
    bool dirty;
    int slots, recorded; /* of the trace that is packed, and of the run; 0: there is none */
};
/* Of an open container. ERR_INPUT: it is no bundle, or one of another version. */
int bundle_facts(struct container *c, struct bundle_facts *out, struct err *err);

/* One that is unpacked, in a folder that only this user can read. It goes with bundle_close(). */
struct bundle_opened {
    char path[512];
    struct cache_work work;
    bool open, has_scenario;
    struct bundle_facts facts;
};
int bundle_open(const struct runner_paths *paths, const char *path, struct bundle_opened *out, struct err *err);
void bundle_close(struct bundle_opened *b); /* zeros are legal */

#endif
