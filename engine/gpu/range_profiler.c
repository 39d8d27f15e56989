#include "engine/gpu/range_profiler.h"

#include "engine/gpu/launches.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES_MAX 64 /* four counters took 1 to 4 passes on every chip they are known on */

/* The metrics that are tried, several for one field of struct trace_launch. */
static const struct counter {
    const char *field, *metric;
    size_t offset;
    double factor;
} counters[] = {
#define COUNTER(field, factor, metric) {#field, metric, offsetof(struct trace_launch, field), factor},
#include "engine/gpu/counters.def"
#undef COUNTER
};
enum { COUNTERS = sizeof counters / sizeof *counters };

struct profiling {
    const struct cupti *cupti;
    void *host, *profiler;                 /* owned: CUPTI's objects */
    uint8_t *availability, *config, *data; /* owned */
    size_t config_bytes, data_bytes;
    const struct counter *chosen[COUNTERS];
    const char *names[COUNTERS];
    size_t n;
    size_t n_launches; /* of one replay */
    char *text;        /* borrowed, [size] */
    size_t size;
};

static int check(const struct profiling *p, int result, const char *step)
{
    if (result == CUPTI_OK)
        return 0;
    cupti_sentence(p->cupti, result, step, p->text, p->size);
    return -1;
}

static int no_memory(const struct profiling *p)
{
    snprintf(p->text, p->size, "out of memory for hardware counters");
    return -1;
}

/* The driver API's current context; the runtime has loaded the driver. */
static void *current_context(void)
{
    void *context = NULL;
    int (*current)(void **context) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver)
        *(void **)&current = dlsym(driver, "cuCtxGetCurrent");
    return current && current(&context) == 0 ? context : NULL;
}

static int find_availability(struct profiling *p, void *context)
{
    struct cupti_availability ask = {.size = CUPTI_SIZE(cupti_availability, image), .context = context};
    if (check(p, p->cupti->availability(&ask), "listing the counters") != 0)
        return -1;
    p->availability = malloc(ask.bytes + 1);
    ask.image = p->availability;
    return p->availability ? check(p, p->cupti->availability(&ask), "listing the counters") : no_memory(p);
}

static int open_host(struct profiling *p, void *context)
{
    struct cupti_initialize initialize = {.size = CUPTI_SIZE(cupti_initialize, reserved)};
    struct cupti_chip chip = {.size = CUPTI_SIZE(cupti_chip, name)};
    if (check(p, p->cupti->initialize(&initialize), "the profiler does not start") != 0 ||
        check(p, p->cupti->chip(&chip), "the chip's name") != 0 || find_availability(p, context) != 0)
        return -1;
    struct cupti_host_initialize host = {.size = CUPTI_SIZE(cupti_host_initialize, host),
                                         .type = CUPTI_TYPE_RANGE_PROFILER,
                                         .chip = chip.name,
                                         .availability = p->availability};
    const int failed = check(p, p->cupti->host_initialize(&host), "the chip's metrics");
    p->host = failed ? NULL : host.host;
    return failed;
}

static bool is_chosen(const struct profiling *p, size_t offset)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->chosen[i]->offset == offset)
            return true;
    return false;
}

/* Of each field the first metric that this chip has. */
static int choose(struct profiling *p)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        struct cupti_metric metric = {
            .size = CUPTI_SIZE(cupti_metric, type), .host = p->host, .name = counters[i].metric};
        const char *name = counters[i].metric;
        struct cupti_add_metrics add = {
            .size = CUPTI_SIZE(cupti_add_metrics, n), .host = p->host, .names = &name, .n = 1};
        if (is_chosen(p, counters[i].offset) || p->cupti->metric(&metric) != CUPTI_OK ||
            p->cupti->add_metrics(&add) != CUPTI_OK)
            continue;
        p->chosen[p->n] = &counters[i];
        p->names[p->n++] = name;
    }
    if (p->n)
        return 0;
    snprintf(p->text, p->size, "CUPTI knows none of the counters for this chip");
    return -1;
}

static int make_config(struct profiling *p)
{
    struct cupti_config_size ask = {.size = CUPTI_SIZE(cupti_config_size, bytes), .host = p->host};
    if (check(p, p->cupti->config_size(&ask), "the counters' configuration") != 0)
        return -1;
    p->config_bytes = ask.bytes;
    p->config = malloc(ask.bytes + 1);
    struct cupti_config_image image = {
        .size = CUPTI_SIZE(cupti_config_image, image), .host = p->host, .bytes = p->config_bytes, .image = p->config};
    return p->config ? check(p, p->cupti->config_image(&image), "the counters' configuration") : no_memory(p);
}

static int make_data(struct profiling *p)
{
    struct cupti_data_size ask = {.size = CUPTI_SIZE(cupti_data_size, bytes),
                                  .profiler = p->profiler,
                                  .names = p->names,
                                  .n = p->n,
                                  .max_ranges = p->n_launches,
                                  .max_nodes = (uint32_t)p->n_launches};
    if (check(p, p->cupti->data_size(&ask), "room for the counters") != 0)
        return -1;
    p->data_bytes = ask.bytes;
    p->data = calloc(1, ask.bytes + 1);
    struct cupti_data_initialize initialize = {.size = CUPTI_SIZE(cupti_data_initialize, image),
                                               .profiler = p->profiler,
                                               .bytes = p->data_bytes,
                                               .image = p->data};
    return p->data ? check(p, p->cupti->data_initialize(&initialize), "room for the counters") : no_memory(p);
}

static int configure(struct profiling *p, void *context)
{
    struct cupti_enable enable = {.size = CUPTI_SIZE(cupti_enable, profiler), .context = context};
    if (check(p, p->cupti->enable(&enable), "the range profiler") != 0)
        return -1;
    p->profiler = enable.profiler;
    if (make_data(p) != 0)
        return -1;
    struct cupti_set_config config = {.size = CUPTI_SIZE(cupti_set_config, target_level),
                                      .profiler = p->profiler,
                                      .config_bytes = p->config_bytes,
                                      .config = p->config,
                                      .data_bytes = p->data_bytes,
                                      .data = p->data,
                                      .range = CUPTI_RANGE_AUTO,
                                      .replay = CUPTI_REPLAY_USER,
                                      .max_ranges = p->n_launches,
                                      .levels = 1,
                                      .min_level = 1,
                                      .target_level = 1};
    return check(p, p->cupti->set_config(&config), "the counters cannot be set up");
}

/* As many times as the counters need passes. */
static int replay(const struct profiling *p, const struct replayed *replayed)
{
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        struct cupti_profiler start = {.size = CUPTI_SIZE(cupti_profiler, profiler), .profiler = p->profiler};
        struct cupti_stop stop = {.size = CUPTI_SIZE(cupti_stop, all_passes), .profiler = p->profiler};
        if (check(p, p->cupti->start(&start), "counting cannot begin") != 0)
            return -1;
        const int failed = replayed->launch(replayed->ctx, p->text, p->size);
        const int result = p->cupti->stop(&stop);
        if (failed || check(p, result, "counting cannot end") != 0)
            return -1;
        if (stop.all_passes)
            return 0;
    }
    snprintf(p->text, p->size, "the counters were not complete after %d passes", PASSES_MAX);
    return -1;
}

static int read_ranges(const struct profiling *p)
{
    struct cupti_decode decode = {.size = CUPTI_SIZE(cupti_decode, dropped), .profiler = p->profiler};
    struct cupti_data_info info = {
        .size = CUPTI_SIZE(cupti_data_info, n_ranges), .data = p->data, .bytes = p->data_bytes};
    if (check(p, p->cupti->decode(&decode), "the counters cannot be read") != 0 ||
        check(p, p->cupti->data_info(&info), "the counters cannot be read") != 0)
        return -1;
    if (info.n_ranges != p->n_launches || decode.dropped) {
        snprintf(p->text, p->size, "counters of %zu kernels for %zu launches: they cannot be matched",
                 info.n_ranges + decode.dropped, p->n_launches);
        return -1;
    }
    for (size_t range = 0; range < info.n_ranges; range++) {
        double values[COUNTERS];
        struct cupti_evaluate evaluate = {.size = CUPTI_SIZE(cupti_evaluate, values),
                                          .host = p->host,
                                          .data = p->data,
                                          .bytes = p->data_bytes,
                                          .range = range,
                                          .names = (const char **)p->names,
                                          .n = p->n,
                                          .values = values};
        if (check(p, p->cupti->evaluate(&evaluate), "the counters cannot be evaluated") != 0)
            return -1;
        for (size_t i = 0; i < p->n; i++) {
            const double value = values[i] * p->chosen[i]->factor;
            if (isfinite(value) && value >= 0)
                memcpy((char *)&launches_at(range)->facts + p->chosen[i]->offset, &value, sizeof value);
        }
    }
    return 0;
}

static void say_missing(const struct profiling *p)
{
    size_t used = 0;
    p->text[0] = '\0';
    for (size_t i = 0; i < COUNTERS; i++) {
        const bool repeated = i > 0 && counters[i].offset == counters[i - 1].offset;
        if (!repeated && !is_chosen(p, counters[i].offset) && used < p->size)
            used += (size_t)snprintf(p->text + used, p->size - used, "%s%s",
                                     used ? ", " : "not available on this chip: ", counters[i].field);
    }
}

static void close_profiling(struct profiling *p)
{
    struct cupti_profiler disable = {.size = CUPTI_SIZE(cupti_profiler, profiler), .profiler = p->profiler};
    struct cupti_host host = {.size = CUPTI_SIZE(cupti_host, host), .host = p->host};
    if (p->profiler)
        p->cupti->disable(&disable);
    if (p->host)
        p->cupti->host_deinitialize(&host);
    free(p->availability);
    free(p->config);
    free(p->data);
}

int range_profiler_measure(const struct cupti *cupti, const struct replayed *replayed, char *text, size_t size)
{
    struct profiling p = {.cupti = cupti, .n_launches = launches_count(), .text = text, .size = size};
    void *context = current_context();
    if (!context || !p.n_launches) {
        snprintf(text, size, context ? "nothing was launched" : "the driver has no current context");
        return -1;
    }
    const bool failed = open_host(&p, context) != 0 || choose(&p) != 0 || make_config(&p) != 0 ||
                        configure(&p, context) != 0 || replay(&p, replayed) != 0 || read_ranges(&p) != 0;
    if (!failed)
        say_missing(&p);
    close_profiling(&p);
    return failed ? -1 : 0;
}
