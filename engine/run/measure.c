#include "engine/run/measure.h"

#include "engine/scenario/keys.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *meaning;
} benches[BENCHES] = {
    [BENCH_PLAIN] = {"plain", "without probes (ASC_MODE 0)"},
    [BENCH_OFF] = {"probes off", "probes compiled in and off (ASC_MODE 1)"},
    [BENCH_CAPTURE] = {"capture", "records what the scenario asks for, up to capture.mem"},
    [BENCH_FULL] = {"full capture", "records every channel of every q tile, up to half of this machine's memory"},
};

const char *bench_name(enum bench_build build)
{
    return benches[build].name;
}

const char *bench_meaning(enum bench_build build)
{
    return benches[build].meaning;
}

int measure_ready(const struct runner_paths *paths, const struct scenario *scenario, const char *what, struct err *err)
{
    struct scenario on_gpu = *scenario;
    struct build_request request = {0};
    struct gpu_device gpu;
    struct err why = {0};
    char note[512];
    int wanted;
    if (backend_wish(scenario, &wanted, err) != 0)
        return -1;
    if (wanted == SCENARIO_BACKEND_CPU)
        return err_set(err, ERR_SYSTEM, what, "needs a GPU, but the backend is cpu");
    on_gpu.backend = SCENARIO_BACKEND_GPU;
    if (backend_choose(paths, &on_gpu, &request, &gpu, note, sizeof note, &why) != 0)
        return err_set(err, ERR_SYSTEM, what, "needs a GPU: %s", why.message);
    return 0;
}

int measure_plain(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario, bool counters,
                  const struct runner_progress *progress, struct trace_launches *out, struct err *err)
{
    struct trace *t = NULL;
    int failed = record_open(r, paths, scenario, PROBES_NONE, false, progress, &t, err);
    if (!failed) {
        runner_report(progress, STEP_MEASURING, 0, 0);
        failed = child_profile(r->child, t, counters, scenario->limit_s, progress, err);
    }
    if (!failed) {
        json_t *json = launches_json(&t->info.launches);
        const char *wrong = launches_read(json, out);
        json_decref(json);
        if (wrong)
            failed = err_set(err, ERR_SYSTEM, "", "no room for what was measured: %s", wrong);
    }
    trace_free(t);
    return failed;
}

bool measures_beside(const struct runner_paths *paths, const struct scenario *scenario)
{
    struct err none;
    return (scenario->profile == SCENARIO_PROFILE_YES || scenario->budget.stated) &&
           measure_ready(paths, scenario, "", &none) == 0;
}

void measured_free(struct measured *m)
{
    free(m->of);
    json_decref(m->launches);
    *m = (struct measured){0};
}

/* What a launch takes depends on: the build without probes and the scenario. NULL: it can not be had. */
static char *measured_of(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                         const struct runner_progress *progress, size_t *n)
{
    struct err err = {0};
    char *text = NULL;
    FILE *out = record_child(r, paths, scenario, PROBES_NONE, progress, &err) == 0 ? open_memstream(&text, n) : NULL;
    if (!out)
        return NULL;
    fprintf(out, "%s\n", r->build.program);
    const int failed = scenario_write_as(scenario, out, "", NULL, &err);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

void measure_beside(struct recorder *r, struct measured *last, const struct runner_paths *paths,
                    const struct scenario *scenario, const struct runner_progress *progress, struct trace_info *info)
{
    struct err err = {0};
    struct measured now = {0};
    const bool counters = scenario->profile == SCENARIO_PROFILE_YES;
    if (info->backend != BACKEND_GPU || (!counters && !scenario->budget.stated))
        return;
    if (!counters && !scenario_has_inputs(scenario)) /* files may have changed, lengths among them */
        now.of = measured_of(r, paths, scenario, progress, &now.n);
    const bool known = now.of && last->of && now.n == last->n && memcmp(now.of, last->of, now.n) == 0;
    if (known && !launches_read(last->launches, &info->launches)) {
        measured_free(&now);
        return;
    }
    const size_t before = info->launches.n;
    if (measure_plain(r, paths, scenario, counters, progress, &info->launches, &err) != 0) {
        snprintf(info->launches.not_measured, sizeof info->launches.not_measured, "%s", err.message);
    } else if (now.of) {
        const struct trace_launches added = {.at = info->launches.at + before, .n = info->launches.n - before};
        now.launches = launches_json(&added);
        measured_free(last);
        *last = now;
        return;
    }
    measured_free(&now);
}

/* The capture of a build; the lists are borrowed. */
static struct scenario as_recorded(const struct scenario *scenario, enum bench_build build)
{
    struct scenario s = *scenario;
    if (build == BENCH_FULL) {
        const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        s.capture = (struct capture){
            .channels = (1u << ASC_CHANNELS) - 1, .mem_bytes = memory / 2, .memory = scenario->capture.memory};
    }
    return s;
}

int measure_bench(const struct runner_paths *paths, const struct scenario *scenario, enum bench_build build,
                  const struct bench_request *request, const struct runner_progress *progress, struct bench_line *line)
{
    const struct scenario s = as_recorded(scenario, build);
    const bool room = build == BENCH_CAPTURE || build == BENCH_FULL;
    struct bench_request asked = *request;
    struct recorder r = {0};
    struct trace *t = NULL;
    *line = (struct bench_line){0};
    asked.record = room;
    int failed = record_open(&r, paths, &s, build == BENCH_PLAIN ? PROBES_NONE : PROBES_SWITCHED, room, progress, &t,
                             &line->err);
    if (!failed) {
        const struct layout *l = &t->layout;
        uint64_t slot_bytes = 0;
        const struct layout_types types = layout_types_of(l);
        layout_slot_bytes(&t->problem, &t->plan, &types, &slot_bytes, NULL);
        line->slots = room ? l->n_slots : 0;
        line->places = (int64_t)t->problem.batch * t->problem.heads * l->q_tiles;
        line->recorded_bytes = room ? slot_bytes * (uint64_t)l->n_slots : 0;
        runner_report(progress, STEP_TIMING, 0, 0);
        failed = child_bench(r.child, t, &asked, scenario->limit_s, progress, &line->result, &line->err);
    }
    trace_free(t);
    recorder_free(&r);
    return failed;
}

void measure_bench_free(struct bench_line *line)
{
    launches_free(&line->result.launches);
}

static int add_choice(struct choices *c, const char *name, size_t n_name, const char *value, size_t n_value)
{
    char(*more)[CHOICE_BYTES] = realloc(c->define, (c->n + 1) * sizeof *more);
    if (!more)
        return -1;
    c->define = more;
    snprintf(more[c->n++], sizeof *more, "%.*s=%.*s", (int)n_name, name, (int)n_value, value);
    return 0;
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '-')
        n++;
    return n;
}

/* "NAME, 0, 1, 2)", as far as it can be read. */
static int read_choice(const char *at, struct choices *out)
{
    const char *name = at + strspn(at, " ");
    const size_t n_name = word_length(name);
    at = name + n_name + strspn(name + n_name, " ");
    while (n_name > 0 && *at == ',') {
        const char *value = at + 1 + strspn(at + 1, " ");
        const size_t n_value = word_length(value);
        if (n_value == 0 || n_name + n_value + 2 > CHOICE_BYTES)
            return 0;
        if (add_choice(out, name, n_name, value, n_value) != 0)
            return -1;
        at = value + n_value + strspn(value + n_value, " ");
    }
    return 0;
}

int choices_read(const char *source, struct choices *out)
{
    static const char macro[] = "ASC_CHOICES(";
    *out = (struct choices){0};
    for (const char *line = source; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, macro, sizeof macro - 1) == 0 && read_choice(line + sizeof macro - 1, out) != 0) {
            choices_free(out);
            return -1;
        }
    return 0;
}

void choices_free(struct choices *c)
{
    if (!c)
        return;
    free(c->define);
    *c = (struct choices){0};
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int measure_launches(const struct runner_paths *paths, const struct scenario *scenario,
                     const struct bench_request *request, const struct runner_progress *progress, struct timing *out,
                     struct err *err)
{
    enum { LEAST = 3, MOST = 1000 };
    double seconds[MOST], spent = 0;
    struct recorder r = {0};
    struct trace *t = NULL;
    int n = 0, failed = record_open(&r, paths, scenario, PROBES_NONE, false, progress, &t, err);
    runner_report(progress, STEP_MEASURING, 0, 0);
    for (int i = 0; i <= request->repeats && i <= MOST && !failed && (n < LEAST || spent < request->limit_s); i++) {
        failed = child_run(r.child, t, scenario->limit_s, progress, err);
        if (i > 0 && !failed) { /* the first one touches all memory */
            spent += t->info.seconds;
            seconds[n++] = t->info.seconds;
        }
    }
    trace_free(t);
    recorder_free(&r);
    if (n)
        qsort(seconds, (size_t)n, sizeof *seconds, by_size);
    *out = (struct timing){n ? (seconds[(n - 1) / 2] + seconds[n / 2]) / 2 : NAN, n ? seconds[0] : NAN, n};
    return failed ? -1 : 0;
}
