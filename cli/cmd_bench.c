/* attnscope bench: how long a kernel takes on the GPU, and what its probes cost. */
#include "cli/bench_rank.h"
#include "cli/options.h"
#include "cli/report.h"

#include "engine/base/pool.h"
#include "engine/base/units.h"
#include "engine/build/cache.h"
#include "engine/run/ahead.h"
#include "engine/run/measure.h"
#include "engine/run/output_error.h"
#include <glob.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_S 1.0 /* of one measurement */

static json_t *timing_json(const struct timing *t)
{
    return t->n ? json_pack("{s:o, s:o, s:i}", "median", report_json_number(t->median_s), "min",
                            report_json_number(t->min_s), "n", t->n)
                : json_null();
}

static const char *seconds(const struct timing *t, int least, char text[32])
{
    units_seconds(t->n ? least ? t->min_s : t->median_s : NAN, text, 32);
    return *text ? text : "-";
}

static double slow_down(const struct bench_line *line, const struct bench_line *plain)
{
    const struct timing *t = &line->result.warm, *of = &plain->result.warm;
    return t->n && of->n && of->median_s > 0 ? t->median_s / of->median_s : NAN;
}

static double write_rate(const struct bench_line *line)
{
    const struct timing *t = &line->result.warm;
    return line->recorded_bytes && t->n && t->median_s > 0 ? (double)line->recorded_bytes / t->median_s : NAN;
}

static void write_recorded(const struct bench_line *line, FILE *out)
{
    char bytes[32];
    const double rate = write_rate(line), copy = line->result.copy_bytes_per_second;
    if (!line->recorded_bytes)
        return;
    units_bytes(line->recorded_bytes, bytes, sizeof bytes);
    fprintf(out, "  %s of %lld/%lld q tiles", bytes, (long long)line->slots, (long long)line->places);
    if (isfinite(rate))
        fprintf(out, ", %.1f GB/s", 1e-9 * rate);
    if (isfinite(rate) && isfinite(copy))
        fprintf(out, " (the copy engine: %.1f)", 1e-9 * copy);
}

static void write_line(enum bench_build build, const struct bench_line *line, const struct bench_line *plain, FILE *out)
{
    char text[4][32];
    const struct bench_result *r = &line->result;
    if (line->err.code != ERR_NONE) {
        fprintf(out, "%-14s", bench_name(build));
        text_failure(out, &line->err);
        return;
    }
    const double factor = slow_down(line, plain);
    fprintf(out, "%-14s%9s %9s %9s %9s", bench_name(build), seconds(&r->warm, 0, text[0]),
            seconds(&r->warm, 1, text[1]), seconds(&r->cold, 0, text[2]), seconds(&r->graph, 0, text[3]));
    if (isfinite(factor))
        fprintf(out, " %9.3f", factor);
    write_recorded(line, out);
    fputs("\n", out);
}

static json_t *line_json(enum bench_build build, const struct bench_line *line, const struct bench_line *plain)
{
    const struct bench_result *r = &line->result;
    if (line->err.code != ERR_NONE)
        return json_pack("{s:s, s:s, s:o}", "build", bench_name(build), "error", err_name(line->err.code), "message",
                         report_json_text(line->err.message));
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "build", bench_name(build), "warm",
                     timing_json(&r->warm), "cold", timing_json(&r->cold), "graph", timing_json(&r->graph), "no_graph",
                     r->no_graph, "slow_down", report_json_number(slow_down(line, plain)), "recorded_bytes",
                     (json_int_t)line->recorded_bytes, "slots", (json_int_t)line->slots, "places",
                     (json_int_t)line->places, "bytes_per_second", report_json_number(write_rate(line)),
                     "copy_bytes_per_second", report_json_number(r->copy_bytes_per_second), "launches",
                     launches_json(&r->launches));
}

static void write_title(const char *path, const struct asc_problem *p, FILE *out)
{
    char types[TYPES_BYTES];
    problem_types(p, types);
    text_inline(out, "%s", path);
    fprintf(out, "  (%d,%d,%d,%d,%d) %s%s\n", p->batch, p->heads, p->q_len, p->kv_len, p->head_dim, types,
            p->causal ? " causal" : "");
}

static void write_heads(FILE *out)
{
    fprintf(out, "%-14s%9s %9s %9s %9s %9s  %s\n", "", "median", "min", "L2 cold", "graph", "of plain", "recorded");
}

/* All builds of one kernel; an exit status. Without the plain one there is nothing to compare with: -1. */
static int bench_one(const struct options *o, const struct session *s, json_t *json, struct err *err)
{
    const struct bench_request request = {.repeats = o->repeat, .limit_s = LIMIT_S};
    struct bench_line lines[BENCHES] = {0};
    json_t *builds = json_array();
    int failed = 0;
    /* Both builds at once, and none while anything is timed. */
    struct build_ahead *ahead[] = {build_ahead_start(&s->subject.paths, &s->subject.scenario, PROBES_NONE, NULL),
                                   build_ahead_start(&s->subject.paths, &s->subject.scenario, PROBES_SWITCHED, NULL)};
    for (size_t i = 0; i < sizeof ahead / sizeof ahead[0]; i++)
        build_ahead_end(ahead[i], true);
    for (int b = 0; b < BENCHES && !lines[BENCH_PLAIN].err.code; b++) {
        const enum bench_build build = (enum bench_build)b;
        failed |=
            measure_bench(&s->subject.paths, &s->subject.scenario, build, &request, options_progress(), &lines[b]) != 0;
        json_array_append_new(builds, line_json(build, &lines[b], &lines[BENCH_PLAIN]));
        if (!json && !b && !failed) {
            write_title(o->files[0], &s->subject.scenario.problem, text_out());
            write_heads(text_out());
        }
        if (!json && !lines[BENCH_PLAIN].err.code)
            write_line(build, &lines[b], &lines[BENCH_PLAIN], text_out());
        fflush(text_out());
    }
    if (!json && lines[BENCH_PLAIN].result.no_graph[0])
        fprintf(text_out(), "graph: %s\n", lines[BENCH_PLAIN].result.no_graph);
    if (json) {
        json_object_set_new(json, "file", report_json_text(o->files[0]));
        json_object_set(json, "builds", builds);
    }
    json_decref(builds);
    for (int b = 0; b < BENCHES; b++)
        measure_bench_free(&lines[b]);
    if (lines[BENCH_PLAIN].err.code) {
        *err = lines[BENCH_PLAIN].err;
        return -1;
    }
    return failed ? 3 : 0;
}

static int open_ready(const struct options *o, const char *path, struct session **s, struct err *err)
{
    if (options_open(o, path, s, err) != 0)
        return -1;
    const int failed = (*s)->subject.has_scenario
                           ? measure_ready(&(*s)->subject.paths, &(*s)->subject.scenario, "bench", err)
                           : err_set(err, ERR_INPUT, path, "is a saved trace: there is nothing to launch");
    if (failed) {
        session_free(*s);
        *s = NULL;
    }
    return failed;
}

static int bench_file(const struct options *o, struct err *err)
{
    struct session *s;
    json_t *json = o->json ? json_object() : NULL;
    if (open_ready(o, o->files[0], &s, err) != 0) {
        json_decref(json);
        return -1;
    }
    int status = bench_one(o, s, json, err);
    if (json && status >= 0 && report_dump(json, text_out(), err) != 0)
        status = -1;
    json_decref(json);
    session_free(s);
    return status;
}

/* What the ladder's table says of one kernel, built in one way: the launch that takes most stands for all of them. */
struct rung {
    const char *path;
    char define[CHOICE_BYTES]; /* "": as it stands */
    struct session *session;   /* owned */
    struct bench_line line;
    struct output_error error;
    struct err err; /* code ERR_NONE: error is known */
};

static int64_t takes(const struct rung *rung, enum budget_item item)
{
    const struct trace_launches *launches = &rung->line.result.launches;
    int64_t most = -1;
    for (size_t i = 0; i < launches->n; i++)
        if (launch_takes(&launches->at[i], item) > most)
            most = launch_takes(&launches->at[i], item);
    return most;
}

static void write_rung(const struct rung *rung, FILE *out)
{
    char text[3][32];
    const struct bench_result *r = &rung->line.result;
    const struct err *err = rung->line.err.code != ERR_NONE ? &rung->line.err : &rung->err;
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", rung->path, *rung->define ? " " : "", rung->define);
    fprintf(out, "%-28s", name);
    if (err->code != ERR_NONE) {
        text_inline(out, "%s", err->message);
        fputs("\n", out);
        return;
    }
    fprintf(out, "%9lld %9lld %9lld %9s %9s %9s %10.3g %9.3g", (long long)takes(rung, BUDGET_REGISTERS),
            (long long)takes(rung, BUDGET_SHARED_BYTES), (long long)takes(rung, BUDGET_SPILL_BYTES),
            seconds(&r->warm, 0, text[0]), seconds(&r->warm, 1, text[1]), seconds(&r->graph, 0, text[2]),
            rung->error.largest, rung->error.largest_ratio);
    if (rung->error.unquantized.known)
        fprintf(out, "  unquantized: max %.3g, rms %.3g", rung->error.unquantized.largest, rung->error.unquantized.rms);
    fputs("\n", out);
}

static json_t *rung_json(const struct rung *rung)
{
    json_t *json = line_json(BENCH_PLAIN, &rung->line, &rung->line);
    json_object_set_new(json, "kernel", report_json_text(rung->path));
    json_object_set_new(json, "define", json_string(rung->define));
    for (int i = 0; i < BUDGET_ITEMS; i++)
        json_object_set_new(json, budget_name((enum budget_item)i), json_integer(takes(rung, (enum budget_item)i)));
    if (rung->err.code != ERR_NONE) {
        json_object_set_new(json, "error", json_string(err_name(rung->err.code)));
        json_object_set_new(json, "message", report_json_text(rung->err.message));
    }
    json_object_set_new(json, "largest_error", rung->err.code ? json_null() : report_json_number(rung->error.largest));
    json_object_set_new(json, "largest_error_of_bound",
                        rung->err.code ? json_null() : report_json_number(rung->error.largest_ratio));
    json_t *unquantized = rung->err.code ? NULL : report_json_unquantized(&rung->error.unquantized);
    if (unquantized)
        json_object_set_new(json, "unquantized", unquantized);
    return json;
}

/* An exit status: 3 where it could not be measured; a kernel that does not take the shape is only said to. */
static int climb(const struct options *o, struct rung *rung)
{
    const struct bench_request request = {.repeats = o->repeat, .limit_s = LIMIT_S};
    const struct subject *of = &rung->session->subject;
    int failed = measure_bench(&of->paths, &of->scenario, BENCH_PLAIN, &request, options_progress(), &rung->line) != 0;
    failed |= output_error_measure(&of->paths, &of->scenario, options_progress(), &rung->error, &rung->err) != 0;
    return failed && rung->line.err.code != ERR_DECLINED ? 3 : 0;
}

/* Every kernel, in every way in which its source lets it be built. */
struct ladder {
    struct rung *rungs; /* owned, [n] */
    size_t n;
    json_t *list; /* NULL: a table on stdout */
};

static void ladder_free(struct ladder *l)
{
    for (size_t i = 0; i < l->n; i++) {
        measure_bench_free(&l->rungs[i].line);
        session_free(l->rungs[i].session);
    }
    free(l->rungs);
    json_decref(l->list);
}

static int add_rung(struct ladder *l, const struct options *o, const char *path, const char *name, const char *define,
                    struct err *err)
{
    struct rung *more = realloc(l->rungs, (l->n + 1) * sizeof *more);
    if (!more)
        return err_no_memory(err, path, "its row");
    l->rungs = more;
    struct rung *rung = &l->rungs[l->n];
    *rung = (struct rung){.path = name};
    if (open_ready(o, path, &rung->session, err) != 0)
        return -1;
    l->n++;
    snprintf(rung->define, sizeof rung->define, "%s", define);
    return *define ? scenario_define(&rung->session->subject.scenario, define, err) : 0;
}

/* Every way in which its source lets it be built, unless macros are stated. */
static int add_kernel(struct ladder *l, const struct options *o, const char *path, const char *name, struct err *err)
{
    struct choices choices = {0};
    char *source;
    if (cache_read_text(path, "the kernel", &source, err) != 0)
        return -1;
    int failed = o->defines.n ? 0 : choices_read(source, &choices);
    free(source);
    if (failed)
        return err_no_memory(err, path, "its choices");
    for (size_t i = 0; (i < choices.n || i == 0) && !failed; i++)
        failed = add_rung(l, o, path, name, choices.n ? choices.define[i] : "", err);
    choices_free(&choices);
    return failed;
}

struct builds {
    const struct ladder *ladder;
    atomic_size_t next;
    size_t end;
};

static int build_step(void *ctx, int worker)
{
    struct builds *b = ctx;
    const size_t i = atomic_fetch_add(&b->next, 1);
    (void)worker;
    if (i >= b->end)
        return 0;
    const struct subject *of = &b->ladder->rungs[i].session->subject;
    const struct runner_progress quiet = {.cancel = options_progress()->cancel};
    struct err err = {0}; /* said where it is measured */
    record_build(&of->paths, &of->scenario, PROBES_NONE, NULL, &quiet, &err);
    return 1;
}

/* As many are built at once as there are cores, and none while anything is timed. */
static int climb_all(const struct options *o, struct ladder *l, struct pool *pool)
{
    const size_t together = (size_t)pool_threads(pool);
    struct builds builds = {.ladder = l};
    int status = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct rung *rung = &l->rungs[i];
        if (i == builds.end) {
            atomic_store(&builds.next, i);
            builds.end = l->n - i < together ? l->n : i + together;
            pool_start(pool, build_step, &builds);
            pool_wait(pool);
        }
        status |= climb(o, rung);
        if (l->list) {
            json_array_append_new(l->list, rung_json(rung));
            continue;
        }
        if (i == 0)
            fprintf(text_out(), "%-28s%9s %9s %9s %9s %9s %9s %10s %9s\n", "", "registers", "shared B", "spill B",
                    "median", "min", "graph", "max error", "of bound");
        write_rung(rung, text_out());
        fflush(text_out());
    }
    return status;
}

static int bench_kernels(const struct options *o, const glob_t *kernels, const char *root, struct err *err)
{
    struct ladder l = {.list = o->json ? json_array() : NULL};
    struct pool *pool = NULL;
    int failed = pool_new(0, &pool, err);
    for (size_t i = 0; i < kernels->gl_pathc && !failed; i++)
        failed = add_kernel(&l, o, kernels->gl_pathv[i], kernels->gl_pathv[i] + strlen(root) + 1, err);
    int status = failed ? -1 : climb_all(o, &l, pool);
    if (l.list && status >= 0 && report_dump(l.list, text_out(), err) != 0)
        status = -1;
    pool_free(pool);
    ladder_free(&l);
    return status;
}

static int bench_all(const struct options *o, struct err *err)
{
    struct runner_paths paths;
    char pattern[600];
    glob_t kernels;
    if (runner_find_paths(&paths, err) != 0)
        return -1;
    snprintf(pattern, sizeof pattern, "%s/kernels/*.cu", paths.root);
    if (glob(pattern, 0, NULL, &kernels) != 0)
        return err_set(err, ERR_SYSTEM, pattern, "no kernel was found");
    const int status = bench_kernels(o, &kernels, paths.root, err);
    globfree(&kernels);
    return status;
}

int command_bench(const struct options *o, struct err *err)
{
    if (o->keep && !o->rank)
        return err_set(err, ERR_USAGE, "--keep", "needs --rank N");
    if (o->rank)
        return bench_rank(o, err);
    if (o->n_files > 1)
        return err_set(err, ERR_USAGE, "bench", "takes one file without --rank N, found '%s' as well", o->files[1]);
    return o->all ? bench_all(o, err) : bench_file(o, err);
}
