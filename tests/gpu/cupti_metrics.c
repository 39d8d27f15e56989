/* Which of the counters' metrics CUPTI knows for each chip of compute capability 8.0 to 12.0; no device is needed. A
   line for each chip: its name and the metrics it has. Exits 77 where there is no libcupti. */
#include "engine/gpu/cupti.h"

#include <stdio.h>

static const char *const metrics[] = {
#define COUNTER(field, factor, metric) metric,
#include "engine/gpu/counters.def"
#undef COUNTER
};

static int print_metrics(const struct cupti *cupti, const char *chip)
{
    struct cupti_host_initialize host = {
        .size = CUPTI_SIZE(cupti_host_initialize, host), .type = CUPTI_TYPE_RANGE_PROFILER, .chip = chip};
    if (cupti->host_initialize(&host) != CUPTI_OK)
        return -1;
    printf("%s", chip);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const char *name = metrics[i];
        struct cupti_metric metric = {.size = CUPTI_SIZE(cupti_metric, type), .host = host.host, .name = name};
        struct cupti_add_metrics add = {
            .size = CUPTI_SIZE(cupti_add_metrics, n), .host = host.host, .names = &name, .n = 1};
        if (cupti->metric(&metric) == CUPTI_OK && cupti->add_metrics(&add) == CUPTI_OK)
            printf(" %s", name);
    }
    struct cupti_config_size config = {.size = CUPTI_SIZE(cupti_config_size, bytes), .host = host.host};
    const int failed = cupti->config_size(&config) != CUPTI_OK || config.bytes == 0;
    puts("");
    struct cupti_host done = {.size = CUPTI_SIZE(cupti_host, host), .host = host.host};
    cupti->host_deinitialize(&done);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    static const char *const chips[] = {"GA100", "GA102", "AD102", "GH100", "GB100", "GB202"};
    struct cupti cupti;
    struct err err = {0};
    int failed = 0;
    if (cupti_load(argc > 1 ? argv[1] : "", &cupti, &err) != 0) {
        puts(err.message);
        return 77;
    }
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        failed |= print_metrics(&cupti, chips[i]) != 0;
    return failed;
}
