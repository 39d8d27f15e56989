/* The part of CUPTI's binary interface that is used (CUDA 12.6 and later), under names of our own: profiling neither
   needs CUPTI's headers to be built, one of which is C++, nor links the library, which is looked for at run time.
   tests/gpu/cupti_layout.cpp compares every field with the headers. Each structure begins with its own size: CUPTI's
   way to stay compatible. */
#ifndef GPU_CUPTI_H
#define GPU_CUPTI_H

#include "engine/base/err.h"
#include <stddef.h>
#include <stdint.h>

enum {
    CUPTI_OK = 0,
    CUPTI_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES = 40,
    CUPTI_KIND_CONCURRENT_KERNEL = 10, /* activity records */
    CUPTI_TYPE_RANGE_PROFILER = 0,
    CUPTI_RANGE_AUTO = 1,  /* every kernel is a range */
    CUPTI_REPLAY_USER = 3, /* we launch again for every pass */
    CUPTI_FLUSH_FORCED = 1
};

/* The size of a structure up to its last field, padding left out. */
#define CUPTI_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)NULL)->last))

#define CUPTI_HEAD                                                                                                     \
    size_t size;                                                                                                       \
    void *reserved

struct cupti_initialize {
    CUPTI_HEAD;
};
struct cupti_chip {
    CUPTI_HEAD;
    size_t device;
    const char *name; /* out */
};
struct cupti_availability {
    CUPTI_HEAD;
    void *context;
    size_t bytes; /* out where image is NULL */
    uint8_t *image;
};
struct cupti_host_initialize {
    CUPTI_HEAD;
    int type;
    const char *chip;
    const uint8_t *availability;
    void *host; /* out */
};
struct cupti_host {
    CUPTI_HEAD;
    void *host;
};
struct cupti_metric {
    CUPTI_HEAD;
    void *host;
    const char *name;
    const char *description, *hardware_unit, *dimension; /* out */
    int type;                                            /* out */
};
struct cupti_add_metrics {
    CUPTI_HEAD;
    void *host;
    const char **names;
    size_t n;
};
struct cupti_config_size {
    CUPTI_HEAD;
    void *host;
    size_t bytes; /* out */
};
struct cupti_config_image {
    CUPTI_HEAD;
    void *host;
    size_t bytes;
    uint8_t *image;
};
struct cupti_enable {
    CUPTI_HEAD;
    void *context;
    void *profiler; /* out */
};
struct cupti_profiler { /* of start and disable */
    CUPTI_HEAD;
    void *profiler;
};
struct cupti_stop {
    CUPTI_HEAD;
    void *profiler;
    size_t pass, level; /* out */
    uint8_t all_passes; /* out */
};
struct cupti_decode {
    CUPTI_HEAD;
    void *profiler;
    size_t dropped; /* out */
};
struct cupti_data_size {
    CUPTI_HEAD;
    void *profiler;
    const char **names;
    size_t n, max_ranges;
    uint32_t max_nodes;
    size_t bytes; /* out */
};
struct cupti_data_initialize {
    CUPTI_HEAD;
    void *profiler;
    size_t bytes;
    uint8_t *image;
};
struct cupti_set_config {
    CUPTI_HEAD;
    void *profiler;
    size_t config_bytes;
    const uint8_t *config;
    size_t data_bytes;
    uint8_t *data;
    int range, replay;
    size_t max_ranges;
    uint16_t levels, min_level;
    size_t pass;
    uint16_t target_level;
};
struct cupti_data_info {
    CUPTI_HEAD;
    const uint8_t *data;
    size_t bytes;
    size_t n_ranges; /* out */
};
struct cupti_evaluate {
    CUPTI_HEAD;
    void *host;
    const uint8_t *data;
    size_t bytes, range;
    const char **names;
    size_t n;
    double *values; /* out */
};
/* How an activity record of a kernel begins, whichever version of it. */
struct cupti_kernel_record {
    uint32_t kind;
    uint8_t cache[2];
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start_ns, end_ns;
};

struct cupti {
#define CUPTI_FUNCTION(name, symbol, arguments) int(*name) arguments; /* NOLINT(bugprone-macro-parentheses) */
#include "engine/gpu/cupti.def"
#undef CUPTI_FUNCTION
};

/* libcupti below the toolkit's folder ("": none), else wherever the loader finds it. ERR_SYSTEM: one line that says why
   there is none to use. Once loaded it stays. */
int cupti_load(const char *toolkit, struct cupti *out, struct err *err);

/* CUPTI's own words for a result that is not CUPTI_OK, as one sentence on what `step` came to. */
void cupti_sentence(const struct cupti *cupti, int result, const char *step, char *text, size_t size);

#endif
