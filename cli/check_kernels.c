/* attnscope check KERNEL.cu or a folder of them: the cases of kernel_cases.def, each judged and repeated, a line for
   each, within a budget of time. */
#include "cli/check_kernels.h"

#include "cli/kernel_cases.h"
#include "cli/report.h"
#include "cli/trial.h"
#include "engine/base/clock.h"
#include "engine/base/json_memory.h"
#include "engine/base/text.h"
#include "engine/run/output_error.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TIME_S 300.0 /* of a kernel, on two cores */
#define RUNS 2       /* without probes, of every case: their bits are the same */

enum result { RESULT_OK, RESULT_FAIL, RESULT_DECLINED, RESULT_NOT_TRIED };
static const char *const result_names[] = {"ok", "fail", "declined", "not tried"};

struct outcome {
    const struct kernel_case *c; /* borrowed from the kernel's cases */
    enum result result;
    struct repeat_result repeated;
    double seconds;
    char why[512]; /* in one line; "" where all is well */
};

/* One kernel. */
struct checked {
    const char *path;
    struct kernel_cases cases;
    struct outcome *outcomes; /* owned, [cases.n] */
    struct err err;           /* what ended it before the cases did; ERR_NONE: nothing */
    double seconds;
};

static void add_why(struct outcome *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_why(struct outcome *out, const char *format, ...)
{
    const size_t used = out->result == RESULT_FAIL ? strlen(out->why) : 0;
    va_list args;
    const char *between = used ? "; " : "";
    char text[sizeof out->why];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(out->why + used, sizeof out->why - used, "%s%s", between, text);
    out->result = RESULT_FAIL;
}

/* A NaN is within no limit. */
static void judge_repeated(struct outcome *out)
{
    const struct repeat_result *r = &out->repeated;
    if (r->differing)
        add_why(out, "%d of %d runs differ bitwise from the first", r->differing, r->runs);
    if (out->result == RESULT_OK && isnan(r->error.largest_ratio))
        add_why(out, "without probes, o is NaN or was never written where the reference is a number");
    else if (out->result == RESULT_OK && !(r->error.largest_ratio <= 1))
        add_why(out, "without probes, o differs from the reference by up to %.3g times its bound",
                r->error.largest_ratio);
    if (out->c->normal && r->limit > 0 && !(repeat_error_given(r) <= r->limit))
        add_why(out,
                "o differs by %.3g from the float64 reference of the unquantized inputs; the kernel's plan allows %.3g",
                repeat_error_given(r), r->limit);
}

/* What stays from case to case. */
struct bench {
    const struct options *o;
    struct trial_watch watch;
    struct session *s;        /* owned; NULL: not opened yet */
    struct scenario scenario; /* owned: of s, before any case */
    struct recorder plain;    /* a build without probes; asked what the kernel takes, too */
    struct runner_paths paths;
};

static int open_session(struct bench *b, const char *path, struct err *err)
{
    session_free(b->s);
    b->s = NULL;
    if (options_open(b->o, path, &b->s, err) != 0)
        return -1;
    b->paths = b->s->subject.paths;
    scenario_free(&b->scenario);
    return scenario_copy(&b->s->subject.scenario, &b->scenario) != 0 ? err_no_memory(err, "", "the scenario") : 0;
}

struct listing {
    struct bench *b;
    struct kernel_cases *cases;
};

static int list_cases(void *ctx, const struct runner_progress *progress, struct err *err)
{
    const struct listing *l = ctx;
    return kernel_cases_list(&l->b->plain, &l->b->paths, &l->b->scenario, PROBES_NONE, progress, l->cases, err);
}

struct repeating {
    struct bench *b;
    struct repeat_result *out;
};

static int repeat_case(void *ctx, const struct runner_progress *progress, struct err *err)
{
    const struct repeating *r = ctx;
    return repeat_measure(&r->b->plain, &r->b->paths, &r->b->s->subject.scenario, RUNS, progress, r->out, err);
}

/* The recorded run, judged; then the build without probes, again and again. */
static int run_case(struct bench *b, const char *path, struct outcome *out, struct err *err)
{
    struct repeating repeating = {b, &out->repeated};
    char found[TRIAL_FOUND_BYTES];
    /* The largest runs find no earlier ones in memory. */
    if (out->c->last && open_session(b, path, err) != 0)
        return -1;
    struct session *s = b->s;
    struct scenario now;
    if (kernel_case_make(out->c, &b->scenario, &now, err) != 0)
        return -1;
    const int wrong = trial_run(&b->watch, s, &now, found, err);
    if (wrong < 0)
        return -1;
    if (wrong)
        add_why(out, "%s", found);
    if (trial_work(&b->watch, repeat_case, &repeating, err) != 0)
        return -1;
    judge_repeated(out);
    return 0;
}

static void set_result(struct outcome *out, enum result result, const char *why)
{
    out->result = result;
    snprintf(out->why, sizeof out->why, "%s", why);
}

/* Why cases are not tried after what ended the check, which is said once. */
static void end_reason(const struct checked *k, char *out, size_t bytes)
{
    if (k->err.code == ERR_CANCELLED)
        snprintf(out, bytes, "--time ran out while the kernel was built and asked for its plan");
    else
        snprintf(out, bytes, "the %s error ended the check", err_name(k->err.code));
}

/* 1: no other case can be run either, as checked->err says. */
static int try_case(struct bench *b, struct checked *k, struct outcome *out)
{
    struct err err = {0};
    char text[512];
    const double begun = clock_seconds();
    if (out->c->answer != CASE_TAKEN) {
        set_result(out, out->c->answer == CASE_DECLINED ? RESULT_DECLINED : RESULT_FAIL, out->c->why);
        return 0;
    }
    const int failed = run_case(b, k->path, out, &err);
    out->seconds = clock_seconds() - begun;
    if (!failed)
        return 0;
    out->repeated = (struct repeat_result){0};
    trial_error_words(&err, text, sizeof text);
    switch (err.code) {
    case ERR_CANCELLED:
        snprintf(text, sizeof text, "stopped after %.0f s, when the %g s of --time ran out", out->seconds,
                 b->watch.limit_s);
        set_result(out, RESULT_NOT_TRIED, text);
        return 0;
    case ERR_DECLINED: /* the plan said yes a moment ago */
    case ERR_RUN:
    case ERR_INPUT:
        add_why(out, "%s", text);
        return 0;
    default:
        set_result(out, RESULT_NOT_TRIED, text);
        if (out->c->last && err.code == ERR_SYSTEM) /* memory, most likely */
            return 0;
        k->err = err;
        end_reason(k, out->why, sizeof out->why);
        return 1;
    }
}

static void add_option(char *out, size_t bytes, const char *option, const char *value)
{
    const size_t used = strlen(out);
    char word[512];
    if (value && subject_word(value, word, sizeof word) == 0)
        snprintf(out + used, bytes - used, "%s%s", option, word);
}

static void add_options(char *out, size_t bytes, const char *option, const struct option_words *words)
{
    for (int i = 0; i < words->n; i++)
        add_option(out, bytes, option, words->word[i]);
}

/* The command that runs the case by itself; "": there is none. */
static void write_command(const struct options *o, const char *path, const struct kernel_case *c, char *out,
                          size_t bytes)
{
    char words[sizeof c->settings];
    char *save = NULL;
    out[0] = '\0';
    if (!c->shape[0])
        return;
    memcpy(words, c->settings, sizeof words);
    add_option(out, bytes, path[0] == '-' ? "attnscope run ./" : "attnscope run ", path);
    add_option(out, bytes, " --shape ", c->shape);
    add_option(out, bytes, " --patch ", o->patch);
    add_option(out, bytes, " --backend ", o->backend);
    add_option(out, bytes, " --probes ", o->probes ? asked_probes_names[o->probes] : NULL);
    if (o->checks)
        add_option(out, bytes, " ", "--checks");
    add_options(out, bytes, " --set ", &o->settings);
    add_options(out, bytes, " -D ", &o->defines);
    add_options(out, bytes, " -I ", &o->includes);
    add_options(out, bytes, " --flag ", &o->flags);
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
        add_option(out, bytes, " --set ", word);
}

static void write_outcome(const struct options *o, const char *path, const struct outcome *x)
{
    static const char *const marks[] = {"ok  ", "FAIL", "-   ", "?   "};
    char command[1100];
    text_inline(text_out(), "  %s %-46s", marks[x->result], x->c->name);
    if (x->repeated.runs) {
        if (!isfinite(x->repeated.error.largest)) /* what was never written is a NaN, too */
            fputs(" O contains NaN or infinity", text_out());
        else
            fprintf(text_out(), " max error %-9.3g of bound %.3g", x->repeated.error.largest,
                    x->repeated.error.largest_ratio);
        if (x->repeated.error.unquantized.known && isfinite(x->repeated.error.unquantized.largest))
            fprintf(text_out(), ", unquantized %.3g", x->repeated.error.unquantized.largest);
    }
    if (x->why[0])
        text_inline(text_out(), "%s%s", x->repeated.runs ? ": " : " ", x->why);
    fputs("\n", text_out());
    write_command(o, path, x->c, command, sizeof command);
    if (x->result == RESULT_FAIL && command[0]) {
        text_inline(text_out(), "       %s", command);
        fputs("\n", text_out());
    }
    fflush(text_out());
}

/* What all cases of one kernel came to. */
struct tally {
    size_t count[sizeof result_names / sizeof *result_names];
    size_t taken;      /* by the plan */
    size_t unfinished; /* not tried, of those that a green needs */
    int runs;
    double largest, largest_ratio; /* of the error of O, and of that to its bound */
    double given, limit; /* of repeat_error_given(), and the most that a plan allows for it; -1, 0: there is none */
};

static struct tally tally_of(const struct checked *k)
{
    struct tally t = {.given = -1};
    for (size_t i = 0; i < k->cases.n; i++) {
        const struct outcome *x = &k->outcomes[i];
        t.count[x->result]++;
        t.taken += x->c->answer == CASE_TAKEN;
        t.unfinished += x->result == RESULT_NOT_TRIED && !x->c->last;
        t.runs += x->repeated.runs;
        t.largest = error_larger(t.largest, x->repeated.error.largest);
        t.largest_ratio = error_larger(t.largest_ratio, x->repeated.error.largest_ratio);
        if (x->c->normal && x->repeated.limit > 0)
            t.given = error_larger(t.given, repeat_error_given(&x->repeated));
        t.limit = fmax(t.limit, x->repeated.limit);
    }
    return t;
}

/* What was found comes first; a kernel that takes none of the cases has not been checked. */
static int status_of(const struct checked *k)
{
    const struct tally t = tally_of(k);
    if (t.count[RESULT_FAIL])
        return 1;
    if (k->err.code != ERR_NONE)
        return err_exit_status(k->err.code);
    if (t.unfinished || (t.taken && !t.count[RESULT_OK]))
        return 3;
    return t.taken ? 0 : 1;
}

static const char *word_of(const struct checked *k)
{
    switch (status_of(k)) {
    case 0:
        return "clean";
    case 1:
        return tally_of(k).taken ? "fail" : "takes none";
    default:
        return k->err.code == ERR_NONE || k->err.code == ERR_CANCELLED ? "unfinished" : "error";
    }
}

static void say_line(const char *text)
{
    text_inline(text_out(), "%s", text);
    fputs("\n", text_out());
    fflush(text_out());
}

static void check_kernel(struct bench *b, struct checked *k)
{
    struct trial_watch *w = &b->watch;
    struct listing listing = {b, &k->cases};
    w->begun = clock_seconds();
    snprintf(w->label, sizeof w->label, "asking for its plan");
    if (!b->o->json)
        say_line(k->path);
    int ended = open_session(b, k->path, &k->err) != 0 || trial_work(w, list_cases, &listing, &k->err) != 0;
    if (!ended)
        k->err = (struct err){0}; /* what the plan declined */
    k->outcomes = calloc(k->cases.n + 1, sizeof *k->outcomes);
    if (!k->outcomes) {
        kernel_cases_free(&k->cases);
        err_no_memory(&k->err, "", "the results");
    }
    if (!b->o->json && k->cases.takes[0])
        fprintf(text_out(), "  takes %s\n", k->cases.takes);
    for (size_t i = 0; i < k->cases.n; i++) {
        struct outcome *x = &k->outcomes[i];
        char why[512];
        x->c = &k->cases.at[i];
        snprintf(w->label, sizeof w->label, "%zu of %zu %s", i + 1, k->cases.n, x->c->name);
        if (ended)
            end_reason(k, why, sizeof why);
        else
            snprintf(why, sizeof why, "the %g s of --time ran out first", w->limit_s);
        if ((ended || trial_spent(w)) && x->c->answer == CASE_TAKEN)
            set_result(x, RESULT_NOT_TRIED, why);
        else
            ended |= try_case(b, k, x);
        text_progress("");
        if (!b->o->json && x->result != RESULT_NOT_TRIED)
            write_outcome(b->o, k->path, x);
    }
    text_progress("");
    k->seconds = clock_seconds() - w->begun;
    if (!b->o->json && k->err.code != ERR_NONE && k->err.code != ERR_CANCELLED) {
        fputs("  ERROR ", text_out());
        text_failure(text_out(), &k->err);
    }
    fflush(text_out());
    session_free(b->s);
    b->s = NULL;
    scenario_free(&b->scenario);
    recorder_free(&b->plain);
}

/* Cases of one reason stand together before it. */
static void write_not_tried(const struct checked *k)
{
    const char *before = NULL;
    FILE *out = text_out();
    char text[128];
    if (!k->cases.n && k->err.code != ERR_NONE) {
        end_reason(k, text, sizeof text);
        text_inline(out, "%s: not tried: every case: %s", k->path, text);
        fputs("\n", out);
        return;
    }
    for (size_t i = 0; i < k->cases.n; i++) {
        const struct outcome *x = &k->outcomes[i];
        if (x->result != RESULT_NOT_TRIED)
            continue;
        if (!before)
            text_inline(out, "%s: not tried: %s", k->path, x->c->name);
        else if (strcmp(before, x->why) == 0)
            text_inline(out, ", %s", x->c->name);
        else
            text_inline(out, ": %s; %s", before, x->c->name);
        before = x->why;
    }
    if (before) {
        text_inline(out, ": %s", before);
        fputs("\n", out);
    }
}

static void write_tallies(const struct checked *kernels, size_t n)
{
    int width = 6;
    for (size_t i = 0; i < n; i++)
        width = (int)strlen(kernels[i].path) > width ? (int)strlen(kernels[i].path) : width;
    fprintf(text_out(), "\n%-*s  clean  failed  declined  not tried  runs  max error  of bound  unquantized  allowed\n",
            width, "kernel");
    for (size_t i = 0; i < n; i++) {
        const struct tally t = tally_of(&kernels[i]);
        char given[16], limit[16];
        snprintf(given, sizeof given, t.given < 0 ? "-" : "%.3g", t.given);
        snprintf(limit, sizeof limit, t.limit > 0 ? "%.3g" : "-", t.limit);
        text_inline(text_out(), "%-*s  %5zu  %6zu  %8zu  %9zu  %4d  %9.3g  %8.3g  %11s  %7s  %s", width,
                    kernels[i].path, t.count[RESULT_OK], t.count[RESULT_FAIL], t.count[RESULT_DECLINED],
                    t.count[RESULT_NOT_TRIED], t.runs, t.largest, t.largest_ratio, given, limit, word_of(&kernels[i]));
        fputs("\n", text_out());
    }
    for (size_t i = 0; i < n; i++)
        write_not_tried(&kernels[i]);
}

static json_t *outcome_json(const struct options *o, const char *path, const struct outcome *x)
{
    const struct repeat_result *r = &x->repeated;
    const bool measured = r->runs > 0;
    char command[1100];
    write_command(o, path, x->c, command, sizeof command);
    return json_pack(
        "{s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:f, s:o}", "case", x->c->name, "result",
        result_names[x->result], "command", report_json_text(command), "runs", r->runs, "differing", r->differing,
        "largest_error", report_json_number(measured ? r->error.largest : NAN), "largest_error_of_bound",
        report_json_number(measured ? r->error.largest_ratio : NAN), "largest_error_unquantized",
        report_json_number(r->error.unquantized.known ? r->error.unquantized.largest : NAN), "error_limit",
        report_json_number(r->limit > 0 ? r->limit : NAN), "seconds", x->seconds, "why", report_json_text(x->why));
}

static json_t *not_tried_json(const char *name, const char *why)
{
    return json_pack("{s:s, s:o}", "case", name, "why", report_json_text(why));
}

static json_t *checked_json(const struct options *o, const struct checked *k)
{
    json_t *cases = json_array(), *not_tried = json_array();
    char text[128];
    for (size_t i = 0; i < k->cases.n; i++) {
        const struct outcome *x = &k->outcomes[i];
        json_array_append_new(cases, outcome_json(o, k->path, x));
        if (x->result == RESULT_NOT_TRIED)
            json_array_append_new(not_tried, not_tried_json(x->c->name, x->why));
    }
    if (!k->cases.n && k->err.code != ERR_NONE) {
        end_reason(k, text, sizeof text);
        json_array_append_new(not_tried, not_tried_json("every case", text));
    }
    json_t *json =
        json_pack("{s:o, s:i, s:s, s:o, s:f, s:f, s:o, s:o}", "kernel", report_json_text(k->path), "oracle_version",
                  ORACLE_VERSION, "result", word_of(k), "takes", report_json_text(k->cases.takes), "seconds",
                  k->seconds, "time", o->time_s > 0 ? o->time_s : TIME_S, "cases", cases, "not_tried", not_tried);
    if (json && k->err.code != ERR_NONE && k->err.code != ERR_CANCELLED)
        json_object_set_new(json, "error", report_json_error(&k->err));
    return json;
}

/* One test case for each case, and one for what ended a kernel's check. */
static int write_junit(const struct options *o, const struct checked *kernels, size_t n_kernels, struct err *err)
{
    size_t n = 0;
    for (size_t k = 0; k < n_kernels; k++)
        n += kernels[k].cases.n + 1;
    struct check_result *results = calloc(n + 1, sizeof *results);
    if (!results)
        return err_no_memory(err, "", "the report");
    n = 0;
    for (size_t k = 0; k < n_kernels; k++) {
        for (size_t i = 0; i < kernels[k].cases.n; i++) {
            const struct outcome *x = &kernels[k].outcomes[i];
            struct check_result *r = &results[n++];
            *r = (struct check_result){.kernel = kernels[k].path, .path = x->c->name, .seconds = x->seconds};
            r->status = x->result == RESULT_FAIL;
            r->skipped = x->result == RESULT_DECLINED || x->result == RESULT_NOT_TRIED ? x->why : NULL;
            snprintf(r->why, sizeof r->why, "%s", x->why);
            if (!r->status)
                continue;
            r->details = malloc(1100);
            if (!r->details)
                end_without_memory();
            write_command(o, kernels[k].path, x->c, r->details, 1100);
        }
        if (kernels[k].err.code != ERR_NONE) {
            results[n] = (struct check_result){.kernel = kernels[k].path, .path = "every case", .err = kernels[k].err};
            results[n++].status = err_exit_status(kernels[k].err.code);
        }
    }
    const int failed = junit_write(o->junit, "check", results, n, err);
    for (size_t i = 0; i < n; i++)
        free(results[i].details);
    free(results);
    return failed;
}

static int write_json(const struct options *o, const struct checked *kernels, size_t n, struct err *err)
{
    json_t *results = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(results, checked_json(o, &kernels[i]));
    const int failed = report_dump(results, text_out(), err);
    json_decref(results);
    return failed;
}

static int allow(const struct options *o, struct err *err)
{
    for (int i = 0; i < o->settings.n; i++)
        if (kernel_cases_allow(o->settings.word[i], err) != 0)
            return -1;
    if (o->bias)
        return err_set(err, ERR_USAGE, "--bias", "needs scenarios, or a kernel with --shape");
    return o->junit ? junit_check(o->junit, err) : 0;
}

int check_kernels(const struct options *o, char *const *paths, size_t n, struct err *err)
{
    struct bench b = {.o = o};
    if (allow(o, err) != 0)
        return -1;
    struct checked *kernels = calloc(n, sizeof *kernels);
    if (!kernels)
        return err_no_memory(err, "", "the results");
    b.watch.limit_s = o->time_s > 0 ? o->time_s : TIME_S;
    trial_watch_init(&b.watch);
    int worst = 0;
    for (size_t i = 0; i < n; i++) {
        kernels[i].path = paths[i];
        check_kernel(&b, &kernels[i]);
        const int status = status_of(&kernels[i]);
        worst = status > worst ? status : worst;
    }
    if (!o->json)
        write_tallies(kernels, n);
    if ((o->json && write_json(o, kernels, n, err) != 0) || (o->junit && write_junit(o, kernels, n, err) != 0))
        worst = -1;
    for (size_t i = 0; i < n; i++) {
        kernel_cases_free(&kernels[i].cases);
        free(kernels[i].outcomes);
    }
    free(kernels);
    trial_watch_end(&b.watch);
    return worst;
}
