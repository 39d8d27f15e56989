#include "engine/run/output_error.h"

#include "engine/base/pool.h"
#include "engine/build/process.h"
#include "engine/run/given.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

/* One thread's own. */
struct judge {
    struct judge_scratch *scratch;  /* owned */
    struct tile_verdicts *verdicts; /* owned, [kv_tiles][ASC_CHANNELS] */
    struct tile_detail detail;      /* its arrays are owned */
    struct output_error error;
    double squares; /* of the errors of the place at hand, summed */
};

struct job {
    const struct trace *t;                  /* borrowed */
    const struct runner_progress *progress; /* borrowed, may be NULL */
    struct judge *judges;                   /* owned, [threads] */
    int64_t places;
    double *squares; /* owned, [places]: summed in their order, whichever thread was first */
    atomic_llong next;
    atomic_int failed;
};

static void add_element(struct judge *judge, int element_class, double off)
{
    struct output_error *error = &judge->error;
    if (element_class == CLASS_OK && !isfinite(off)) /* the same infinity is wanted */
        off = 0;
    error->elements++;
    error->largest = error_larger(error->largest, off);
    judge->squares += off * off;
}

static void add_tile(void *ctx, const struct tile_detail *d)
{
    const size_t n = (size_t)d->rows * (size_t)d->cols;
    for (size_t i = 0; d->channel == asc_o && i < n; i++)
        if (d->class_global[i] != STATUS_UNJUDGED)
            add_element(ctx, d->class_global[i], fabs(d->got[i] - d->want_global[i]));
}

static int judge_place(const struct job *job, struct judge *judge, const int32_t place[3])
{
    struct slot_case c;
    int failed = place_case_make(job->t, place, NULL, &c);
    failed = failed || judge_case(&c.c, judge->scratch, judge->verdicts, &judge->detail) != 0;
    slot_case_free(&c);
    /* Of a rounded output the bound is an interval, which the verdict knows. */
    judge->error.largest_ratio =
        error_larger(judge->error.largest_ratio, verdict_worst(&judge->verdicts[asc_o].global));
    return failed;
}

static int step(void *ctx, int worker)
{
    struct job *job = ctx;
    const struct layout *l = &job->t->layout;
    const int64_t i = atomic_fetch_add(&job->next, 1);
    if (i >= job->places || atomic_load(&job->failed) || process_cancelled(job->progress))
        return 0;
    if (worker == 0) /* one thread alone */
        runner_report(job->progress, STEP_JUDGING_OUTPUT, (double)i, (double)job->places);
    const int32_t place[3] = {(int32_t)(i / l->q_tiles / job->t->problem.heads),
                              (int32_t)(i / l->q_tiles % job->t->problem.heads), (int32_t)(i % l->q_tiles)};
    job->judges[worker].squares = 0;
    if (judge_place(job, &job->judges[worker], place) != 0)
        atomic_store(&job->failed, 1);
    job->squares[i] = job->judges[worker].squares;
    return 1;
}

static int judges_new(struct job *job, int threads)
{
    const size_t tiles = (size_t)job->t->layout.kv_tiles * ASC_CHANNELS,
                 largest = channel_largest_tile(&job->t->plan, &job->t->problem);
    job->judges = calloc((size_t)threads, sizeof *job->judges);
    job->squares = calloc((size_t)job->places, sizeof *job->squares);
    int made = job->judges && job->squares;
    for (int i = 0; i < threads && made; i++) {
        struct judge *judge = &job->judges[i];
        judge->scratch = judge_scratch_new();
        judge->verdicts = calloc(tiles, sizeof *judge->verdicts);
        judge->detail = (struct tile_detail){.each = add_tile, .ctx = judge};
        made = judge->scratch && judge->verdicts && tile_detail_make(&judge->detail, largest) == 0;
    }
    return made;
}

static void judges_free(struct job *job, int threads)
{
    for (int i = 0; job->judges && i < threads; i++) {
        judge_scratch_free(job->judges[i].scratch);
        free(job->judges[i].verdicts);
        tile_detail_free(&job->judges[i].detail);
    }
    free(job->judges);
    free(job->squares);
}

/* *rms: of |o - reference| over all elements. */
static int judge_output(const struct trace *t, const struct runner_progress *progress, struct output_error *out,
                        double *rms, struct err *err)
{
    struct pool *pool = NULL;
    struct job job = {.t = t, .progress = progress};
    job.places = (int64_t)t->problem.batch * t->problem.heads * t->layout.q_tiles;
    if (pool_new(0, &pool, err) != 0)
        return -1;
    const int threads = pool_threads(pool);
    if (judges_new(&job, threads)) {
        pool_start(pool, step, &job);
        pool_wait(pool);
    } else {
        atomic_store(&job.failed, 1);
    }
    *out = (struct output_error){0};
    for (int i = 0; i < threads && job.judges; i++) {
        const struct output_error *error = &job.judges[i].error;
        out->largest = error_larger(out->largest, error->largest);
        out->largest_ratio = error_larger(out->largest_ratio, error->largest_ratio);
        out->elements += error->elements;
    }
    *rms = 0;
    for (int64_t i = 0; i < job.places && job.squares; i++)
        *rms += job.squares[i];
    *rms = sqrt(*rms / (double)out->elements);
    judges_free(&job, threads);
    pool_free(pool);
    if (process_cancelled(progress))
        return err_set(err, ERR_CANCELLED, "", "cancelled");
    return atomic_load(&job.failed) ? err_no_memory(err, "", "judging") : 0;
}

static int judge_unquantized(const struct trace *t, const struct runner_progress *progress,
                             struct unquantized_error *out, struct err *err)
{
    struct trace view;
    struct output_error error;
    *out = (struct unquantized_error){.known = false};
    if (!unquantized_view(t, &view))
        return 0;
    if (judge_output(&view, progress, &error, &out->rms, err) != 0)
        return -1;
    out->known = true;
    out->largest = error.largest;
    return 0;
}

int output_error_unquantized(const struct trace *t, struct unquantized_error *out, struct err *err)
{
    return judge_unquantized(t, NULL, out, err);
}

int output_error_judge(const struct trace *t, const struct runner_progress *progress, struct output_error *out,
                       struct err *err)
{
    double rms;
    const int failed = judge_output(t, progress, out, &rms, err);
    return failed || judge_unquantized(t, progress, &out->unquantized, err) != 0 ? -1 : 0;
}

int output_error_measure(const struct runner_paths *paths, const struct scenario *scenario,
                         const struct runner_progress *progress, struct output_error *out, struct err *err)
{
    struct recorder r = {0};
    struct trace *t = NULL;
    int failed = record_open(&r, paths, scenario, PROBES_NONE, false, progress, &t, err);
    failed = failed || child_run(r.child, t, scenario->limit_s, progress, err) != 0;
    failed = failed || output_error_judge(t, progress, out, err) != 0;
    trace_free(t);
    recorder_free(&r);
    return failed ? -1 : 0;
}

static uint64_t outputs_of(const struct trace *t)
{
    const struct asc_problem *p = &t->problem;
    const uint64_t rows = (uint64_t)p->batch * (uint64_t)p->heads * (uint64_t)p->q_len;
    enum dtype type;
    const void *o = trace_tensor(t, 'o', &type);
    const uint64_t hash = XXH3_64bits(o, rows * (uint64_t)p->head_dim_v * dtype_bytes(type));
    const void *lse = trace_tensor(t, 'L', &type);
    return XXH3_64bits_withSeed(lse, rows * dtype_bytes(type), hash);
}

double repeat_error_given(const struct repeat_result *r)
{
    return r->error.unquantized.known ? r->error.unquantized.largest : r->error.largest;
}

int repeat_measure(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario, int runs,
                   const struct runner_progress *progress, struct repeat_result *out, struct err *err)
{
    struct trace *t = NULL;
    uint64_t first = 0;
    *out = (struct repeat_result){0};
    int failed = record_open(r, paths, scenario, PROBES_NONE, false, progress, &t, err);
    for (int i = 0; i < runs && !failed; i++) {
        failed = child_run(r->child, t, scenario->limit_s, progress, err) != 0;
        if (failed)
            break;
        const uint64_t outputs = outputs_of(t);
        if (i == 0) {
            first = outputs;
            out->limit = t->plan.error_limit;
            failed = output_error_judge(t, progress, &out->error, err) != 0;
        }
        out->runs++;
        out->differing += outputs != first;
    }
    trace_free(t);
    return failed ? -1 : 0;
}
