#include "engine/gpu/timing.h"

#include "engine/base/wire.h"
#include "engine/gpu/cuda_error.h"
#include "engine/gpu/launches.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS_MAX 1000
#define GRAPH_LAUNCHES 10               /* in one graph, so that its own launch weighs little */
#define SWEEP_BYTES ((size_t)256 << 20) /* or four times the L2, if that is more */
#define COPY_BYTES ((size_t)256 << 20)
#define WARM_UP 3

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timing timing_summary(double *seconds, int n)
{
    if (n < 1)
        return (struct timing){.median_s = NAN, .min_s = NAN};
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    return (struct timing){.median_s = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2, .min_s = seconds[0], .n = n};
}

struct bench {
    const struct asc_kernel *kernel; /* borrowed */
    const struct run *run;           /* borrowed */
    int repeats;
    double limit_s; /* of one measurement */
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *sweep; /* owned device memory: written through, it takes the place of all that the L2 held */
    size_t sweep_bytes;
    char text[512]; /* what failed */
};

static int check(struct bench *b, cudaError_t status, const char *what)
{
    char words[256];
    if (status == cudaSuccess)
        return 0;
    cuda_error_text(status, words, sizeof words);
    snprintf(b->text, sizeof b->text, "%s: %s", what, words);
    return -1;
}

static int bench_open(struct bench *b)
{
    int l2 = 0;
    if (cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0) != cudaSuccess)
        l2 = 0;
    b->sweep_bytes = 4 * (size_t)l2 > SWEEP_BYTES ? 4 * (size_t)l2 : SWEEP_BYTES;
    return check(b, cudaStreamCreate(&b->stream), "a stream") != 0 ||
                   check(b, cudaEventCreate(&b->begin), "an event") != 0 ||
                   check(b, cudaEventCreate(&b->end), "an event") != 0 ||
                   check(b, cudaMalloc(&b->sweep, b->sweep_bytes), "device memory to flush the L2") != 0
               ? -1
               : 0;
}

static void bench_close(struct bench *b)
{
    if (b->sweep)
        cudaFree(b->sweep);
    if (b->begin)
        cudaEventDestroy(b->begin);
    if (b->end)
        cudaEventDestroy(b->end);
    if (b->stream)
        cudaStreamDestroy(b->stream);
}

static int launch(struct bench *b)
{
    const char *failure = b->kernel->launch(&b->run->problem, b->stream);
    const cudaError_t status = cudaGetLastError();

    if (failure)
        snprintf(b->text, sizeof b->text, "%s", failure);
    else if (status != cudaSuccess)
        snprintf(b->text, sizeof b->text, "%s", asc_launch_failure((int)status));
    return failure || status != cudaSuccess ? -1 : 0;
}

/* Waits for `end`; -1: the kernel stopped. */
static int take_sample(struct bench *b, double *seconds)
{
    float ms = 0;
    cudaError_t status = cudaEventSynchronize(b->end);
    if (status == cudaSuccess)
        status = cudaEventElapsedTime(&ms, b->begin, b->end);
    *seconds = 1e-3 * (double)ms;
    if (status == cudaSuccess)
        return 0;
    run_say_stopped(status, b->text, sizeof b->text);
    return -1;
}

/* The sweep ahead of it empties the L2, and keeps the device busy until what follows has been enqueued, so that no gap
   of the host's falls between the events. Warm: the same launch once more ahead of the one that counts. */
static int sample(struct bench *b, bool warm, double *seconds)
{
    if (check(b, cudaMemsetAsync(b->sweep, 0, b->sweep_bytes, b->stream), "flushing the L2") != 0 ||
        (warm && launch(b) != 0))
        return -1;
    cudaEventRecord(b->begin, b->stream);
    if (launch(b) != 0)
        return -1;
    cudaEventRecord(b->end, b->stream);
    return take_sample(b, seconds);
}

/* At least three, then until there are enough or the time is up. */
static bool more(const struct bench *b, int n, double spent_s)
{
    return n < b->repeats && (n < 3 || spent_s < b->limit_s);
}

static int time_launches(struct bench *b, bool warm, struct timing *out)
{
    double seconds[REPEATS_MAX], spent_s = 0;
    int n = 0;
    for (int i = 0; i < WARM_UP; i++)
        if (sample(b, warm, &seconds[0]) != 0)
            return -1;
    for (; more(b, n, spent_s); n++) {
        if (sample(b, warm, &seconds[n]) != 0)
            return -1;
        spent_s += seconds[n];
    }
    *out = timing_summary(seconds, n);
    return 0;
}

/* Captures some launches; *exec NULL where that cannot be done, with the reason. */
static void capture(struct bench *b, cudaGraphExec_t *exec, char *why, size_t size)
{
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    char words[256];
    int failed = 0;
    *exec = NULL;
    snprintf(why, size, "its launch cannot be captured");
    if (cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    for (int i = 0; i < GRAPH_LAUNCHES && !failed; i++)
        failed = launch(b);
    cudaError_t status = cudaStreamEndCapture(b->stream, &graph);
    if (!failed && status == cudaSuccess)
        status = cudaGraphGetNodes(graph, NULL, &nodes);
    if (failed) {
        snprintf(why, size, "its launch cannot be captured: %.180s", b->text);
    } else if (status == cudaSuccess && nodes == 0) {
        snprintf(why, size, "its launch does not use the given stream");
    } else {
        if (status == cudaSuccess)
            status = cudaGraphInstantiate(exec, graph, 0);
        cuda_error_text(status, words, sizeof words);
        if (status != cudaSuccess)
            snprintf(why, size, "its launch cannot be captured: %.180s", words);
        else
            why[0] = '\0';
    }
    if (graph)
        cudaGraphDestroy(graph);
    b->text[0] = '\0';
    cudaGetLastError();
}

static int replay(struct bench *b, cudaGraphExec_t exec, double *seconds)
{
    if (check(b, cudaEventRecord(b->begin, b->stream), "an event") != 0 ||
        check(b, cudaGraphLaunch(exec, b->stream), "replaying the graph") != 0 ||
        check(b, cudaEventRecord(b->end, b->stream), "an event") != 0 || take_sample(b, seconds) != 0)
        return -1;
    *seconds /= GRAPH_LAUNCHES;
    return 0;
}

static int time_graph(struct bench *b, struct timing *out, char *why, size_t size)
{
    double seconds[REPEATS_MAX], spent_s = 0;
    cudaGraphExec_t exec;
    int n = 0, failed = 0;
    capture(b, &exec, why, size);
    if (!exec)
        return 0;
    for (int i = 0; i < WARM_UP && !failed; i++)
        failed = replay(b, exec, &seconds[0]);
    while (!failed && more(b, n, spent_s)) {
        failed = replay(b, exec, &seconds[n]);
        if (!failed)
            spent_s += seconds[n++] * GRAPH_LAUNCHES;
    }
    cudaGraphExecDestroy(exec);
    if (!failed)
        *out = timing_summary(seconds, n);
    return failed;
}

/* What the copy engine moves from the device into pinned memory, which is where the probes write: bytes a second. */
static double copy_rate(struct bench *b)
{
    void *host = NULL;
    double best_s = INFINITY, seconds;
    if (cudaMallocHost(&host, COPY_BYTES) != cudaSuccess) {
        cudaGetLastError();
        return NAN;
    }
    for (int i = 0; i < 5; i++) {
        cudaEventRecord(b->begin, b->stream);
        cudaMemcpyAsync(host, b->sweep, COPY_BYTES, cudaMemcpyDeviceToHost, b->stream);
        cudaEventRecord(b->end, b->stream);
        if (take_sample(b, &seconds) == 0 && seconds > 0)
            best_s = fmin(best_s, seconds);
    }
    cudaFreeHost(host);
    return isfinite(best_s) ? (double)COPY_BYTES / best_s : NAN;
}

double timing_of_one(const struct asc_kernel *kernel, const struct run *run)
{
    struct bench b = {.kernel = kernel, .run = run, .repeats = 9, .limit_s = 1};
    struct timing timing = {.median_s = NAN};
    const size_t kept = launches_count();
    if (bench_open(&b) != 0 || time_launches(&b, true, &timing) != 0)
        timing.median_s = NAN;
    bench_close(&b);
    launches_keep(kept);
    return timing.median_s;
}

static json_t *timing_json(const struct timing *t)
{
    return t->n ? json_pack("{s:f, s:f, s:i}", "median", t->median_s, "min", t->min_s, "n", t->n)
                : json_pack("{s:n, s:n, s:i}", "median", "min", "n", 0);
}

/* A kernel that fails leaves *text; what was measured until then is not handed out. */
static json_t *bench_json(struct bench *b, bool record)
{
    struct timing warm = {0}, cold = {0}, graph = {0};
    char no_graph[256] = "";
    double copy = NAN;
    const bool failed = bench_open(b) != 0 || time_launches(b, true, &warm) != 0 ||
                        time_launches(b, false, &cold) != 0 || time_graph(b, &graph, no_graph, sizeof no_graph) != 0;
    if (!failed && record)
        copy = copy_rate(b);
    bench_close(b);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "text", debuggee_words(failed ? b->text : ""), "warm",
                     timing_json(&warm), "cold", timing_json(&cold), "graph", timing_json(&graph), "no_graph",
                     debuggee_words(no_graph), "copy", isfinite(copy) ? json_real(copy) : json_null());
}

json_t *debuggee_bench(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                       char *why, size_t size)
{
    struct run run = {0};
    struct err err = {0};
    const bool record = wire_integer(asked, "record", 0, 1, 0);
    struct bench b = {.kernel = kernel,
                      .run = &run,
                      .repeats = (int)wire_integer(asked, "repeats", 3, REPEATS_MAX, 50),
                      .limit_s = wire_number(asked, "seconds", 1)};
    launches_reset();
    /* Probes that are not bound are off, as in a program of the user's own. */
    if (run_prepare(&run, kernel, request, &err) != 0 || (record && run_bind(&run, &err) != 0)) {
        snprintf(why, size, "%.80s%s%.400s", err.where, *err.where ? ": " : "", err.message);
        run_finish(&run, request);
        return NULL;
    }
    json_t *answer = NULL;
    if (run_once(kernel, &run, NULL, b.text, sizeof b.text) != 0) {
        answer = json_pack("{s:o}", "text", debuggee_words(b.text));
    } else {
        const size_t n = launches_count();
        launches_find_occupancy();
        answer = bench_json(&b, record);
        launches_keep(n);
    }
    if (answer)
        json_object_set_new(answer, "launches", launches_describe(""));
    else
        snprintf(why, size, "out of memory for the answer");
    run_finish(&run, request);
    return answer;
}
