#include "engine/gpu/activity.h"

#include <pthread.h>
#include <stdlib.h>

#define BUFFER_BYTES ((size_t)1 << 20)

/* CUPTI hands buffers back on a thread of its own, with nothing of the caller's: that it is over is known after a
   forced flush. */
static struct {
    pthread_mutex_t lock;
    const struct cupti *cupti;
    struct kernel_time {
        uint64_t start_ns, end_ns;
    } times[ACTIVITY_RECORDS_MAX];
    size_t n;
} records = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0; /* as many as fit */
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context;
    (void)stream;
    (void)size;
    pthread_mutex_lock(&records.lock);
    while (records.cupti && records.cupti->activity_next(buffer, valid, &record) == CUPTI_OK) {
        const struct cupti_kernel_record *kernel = record;
        if (kernel->kind == CUPTI_KIND_CONCURRENT_KERNEL && records.n < ACTIVITY_RECORDS_MAX)
            records.times[records.n++] = (struct kernel_time){kernel->start_ns, kernel->end_ns};
    }
    pthread_mutex_unlock(&records.lock);
    free(buffer);
}

int activity_begin(const struct cupti *cupti)
{
    pthread_mutex_lock(&records.lock);
    records.cupti = cupti;
    records.n = 0;
    pthread_mutex_unlock(&records.lock);
    const int result = cupti->activity_register(give_buffer, take_buffer);
    return result == CUPTI_OK ? cupti->activity_enable(CUPTI_KIND_CONCURRENT_KERNEL) : result;
}

static int earlier(const void *a, const void *b)
{
    const struct kernel_time *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

int activity_end(const struct cupti *cupti, struct activity *out)
{
    int result = cupti->activity_flush(CUPTI_FLUSH_FORCED);
    const int disabled = cupti->activity_disable(CUPTI_KIND_CONCURRENT_KERNEL);
    if (result == CUPTI_OK)
        result = disabled;
    pthread_mutex_lock(&records.lock);
    qsort(records.times, records.n, sizeof *records.times, earlier);
    out->n = result == CUPTI_OK ? records.n : 0;
    for (size_t i = 0; i < out->n; i++)
        out->seconds[i] = 1e-9 * (double)(records.times[i].end_ns - records.times[i].start_ns);
    pthread_mutex_unlock(&records.lock);
    return result;
}
