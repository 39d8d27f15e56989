/* attnscope check KERNEL.cu or a folder of them: the cases of kernel_cases.def, judged, repeated, one line for each. */
#include "cli/check_kernels.h"

#include "cli/report.h"
#include "engine/session/backend.h"
#include "engine/session/repeat.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct kernel_case {
    int batch, heads, q_len, head_dim, causal, seeds, repeats;
} cases[] = {
#define KERNEL_CASE(batch, heads, q_len, head_dim, causal, seeds, repeats)                                             \
    {batch, heads, q_len, head_dim, causal, seeds, repeats},
#include "cli/kernel_cases.def"
#undef KERNEL_CASE
};

/* One case with one seed. */
struct outcome {
    char name[96];
    int status;   /* an exit status: 0 clean and the same bits each time */
    int declined; /* the kernel does not take this case; why is its sentence */
    struct repeat_result repeated;
    char why[512]; /* in one line */
};

/* What all cases of one kernel came to. */
struct tally {
    int cases, clean, declined, failed; /* failed: not clean, or other bits, or an error */
    int runs;
    double largest, largest_ratio; /* of the error of O, and of that to its bound */
    double given, limit; /* of repeat_error_given(), and the most that a plan allows for it; NaN, 0: there is none */
};

static int set_number(struct scenario *s, const char *key, int value, struct err *err)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return scenario_set(s, key, text, err);
}

static int set_case(struct scenario *s, const struct kernel_case *k, int seed, struct err *err)
{
    const struct {
        const char *key;
        int value;
    } numbers[] = {{"shape.batch", k->batch}, {"shape.heads", k->heads},  {"shape.kv_heads", k->heads},
                   {"shape.q_len", k->q_len}, {"shape.kv_len", k->q_len}, {"shape.head_dim", k->head_dim},
                   {"fill.seed", seed}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (set_number(s, numbers[i].key, numbers[i].value, err) != 0)
            return -1;
    if (scenario_set(s, "shape.causal", k->causal ? "bottom-right" : "none", err) != 0)
        return -1;
    return scenario_check(s, err);
}

static void add_why(struct outcome *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_why(struct outcome *out, const char *format, ...)
{
    size_t used = out->status ? strlen(out->why) : 0;
    va_list args;
    if (used)
        used += (size_t)snprintf(out->why + used, sizeof out->why - used, "; ");
    if (used < sizeof out->why) {
        va_start(args, format);
        vsnprintf(out->why + used, sizeof out->why - used, format, args);
        va_end(args);
    }
    out->status = 1;
}

/* A NaN is within no limit. */
static void judge_repeated(struct outcome *out)
{
    const struct repeat_result *r = &out->repeated;
    if (r->differing)
        add_why(out, "%d of %d runs leave other bits than the first", r->differing, r->runs);
    if (r->limit > 0 && !(repeat_error_given(r) <= r->limit))
        add_why(out, "o is %.3g from float64 of the inputs as given, the kernel's plan allows %.3g",
                repeat_error_given(r), r->limit);
}

/* The recorded run, judged; then the build without probes, again and again. */
static int run_case(const struct options *o, const char *path, const struct kernel_case *k, int seed,
                    struct outcome *out, struct err *err)
{
    struct session *s;
    if (options_open(o, path, &s, err) != 0)
        return -1;
    int failed = set_case(&s->scenario, k, seed, err);
    failed = failed || options_finish(s, err) != 0;
    if (!failed && s->err.code != ERR_NONE) {
        *err = s->err;
        failed = -1;
    }
    if (!failed) {
        out->status = report_checks(s, out->why, sizeof out->why) ? 0 : 1;
        char why[sizeof out->why];
        if (!report_meets(s, why, sizeof why))
            report_found(s, out->why);
        failed = repeat_measure(&s->paths, &s->scenario, k->repeats, options_progress(), &out->repeated, err);
    }
    session_free(s);
    if (!failed)
        judge_repeated(out);
    return failed;
}

static void add(struct tally *t, const struct outcome *x)
{
    t->cases++;
    t->declined += x->declined;
    t->clean += x->status == 0 && !x->declined;
    t->failed += x->status != 0;
    t->runs += x->repeated.runs;
    t->largest = fmax(t->largest, x->repeated.error.largest);
    t->largest_ratio = fmax(t->largest_ratio, x->repeated.error.largest_ratio);
    if (x->repeated.runs)
        t->given = fmax(t->given, x->repeated.error.unquantised.largest); /* NaN gives way */
    t->limit = fmax(t->limit, x->repeated.limit);
}

static void write_outcome(const struct outcome *x, FILE *out)
{
    fprintf(out, "  %s %-32s", x->status ? "FAIL" : x->declined ? "-   " : "ok  ", x->name);
    if (x->repeated.runs) {
        fprintf(out, " max error %-9.3g of bound %-7.3g ", x->repeated.error.largest, x->repeated.error.largest_ratio);
        if (!isnan(x->repeated.error.unquantised.rms))
            fprintf(out, "unquantised %-9.3g ", x->repeated.error.unquantised.largest);
        fprintf(out, "%d runs", x->repeated.runs);
    }
    if (x->status || x->declined)
        fprintf(out, "%s%s", x->repeated.runs ? ": " : " ", x->why);
    fputc('\n', out);
    fflush(out);
}

static json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *outcome_json(const struct outcome *x)
{
    const struct repeat_result *r = &x->repeated;
    const int measured = r->runs > 0;
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "case", x->name, "result",
        x->declined      ? "declined"
        : x->status == 0 ? "ok"
        : x->status == 1 ? "fail"
                         : "error",
        "runs", r->runs, "differing", r->differing, "largest_error", number_json(measured ? r->error.largest : NAN),
        "largest_error_of_bound", number_json(measured ? r->error.largest_ratio : NAN), "largest_error_unquantised",
        number_json(measured ? r->error.unquantised.largest : NAN), "error_limit",
        number_json(r->limit > 0 ? r->limit : NAN), "why", report_json_text(x->status || x->declined ? x->why : ""));
}

/* An error that a case meets is that case's outcome; -1 for none of them. */
static void check_case(const struct options *o, const char *path, const struct kernel_case *k, int seed,
                       struct outcome *x)
{
    struct err err = {0};
    *x = (struct outcome){0};
    snprintf(x->name, sizeof x->name, "(%d,%d,%d,%d)%s seed %d", k->batch, k->heads, k->q_len, k->head_dim,
             k->causal ? " causal" : "", seed);
    if (run_case(o, path, k, seed, x, &err) == 0)
        return;
    x->repeated = (struct repeat_result){0};
    x->declined = err.code == ERR_DECLINED;
    x->status = x->declined ? 0 : err_exit_status(err.code);
    snprintf(x->why, sizeof x->why, "%s", err.message);
}

static int check_kernel(const struct options *o, const char *path, json_t *results, struct tally *tally)
{
    json_t *list = results ? json_array() : NULL;
    int worst = 0;
    *tally = (struct tally){.given = NAN};
    if (!results)
        text_inline(text_out(), "%s", path);
    fputs("\n", text_out());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int seed = 0; seed < cases[i].seeds; seed++) {
            struct outcome x;
            check_case(o, path, &cases[i], seed, &x);
            add(tally, &x);
            worst = x.status > worst ? x.status : worst;
            if (results)
                json_array_append_new(list, outcome_json(&x));
            else
                write_outcome(&x, text_out());
        }
    /* A kernel that takes none of the cases has not been checked. */
    if (tally->declined == tally->cases)
        worst = 1;
    if (results)
        json_array_append_new(results, json_pack("{s:o, s:o}", "kernel", report_json_text(path), "cases", list));
    return worst;
}

static void number_text(double x, char *text, size_t size)
{
    snprintf(text, size, isnan(x) ? "-" : "%.3g", x);
}

static void write_tallies(char *const *paths, const struct tally *tallies, size_t n)
{
    int width = 6;
    for (size_t i = 0; i < n; i++)
        width = (int)strlen(paths[i]) > width ? (int)strlen(paths[i]) : width;
    fprintf(text_out(), "\n%-*s  cases  clean  declined  runs  max error  of bound  unquantised  allowed\n", width,
            "kernel");
    for (size_t i = 0; i < n; i++) {
        const struct tally *t = &tallies[i];
        char given[16], limit[16];
        number_text(t->given, given, sizeof given);
        number_text(t->limit > 0 ? t->limit : NAN, limit, sizeof limit);
        fprintf(text_out(), "%-*s  %5d  %5d  %8d  %4d  %9.3g  %8.3g  %11s  %7s%s\n", width, paths[i], t->cases,
                t->clean, t->declined, t->runs, t->largest, t->largest_ratio, given, limit,
                t->failed                 ? "  FAIL"
                : t->declined == t->cases ? "  FAIL: takes none"
                                          : "");
    }
}

int check_kernels(const struct options *o, char *const *paths, size_t n, struct err *err)
{
    json_t *results = o->json ? json_array() : NULL;
    struct tally *tallies = calloc(n, sizeof *tallies);
    int worst = tallies ? 0 : err_errno(err, "", "no memory for the results");
    for (size_t i = 0; i < n && tallies; i++) {
        const int status = check_kernel(o, paths[i], results, &tallies[i]);
        worst = status > worst ? status : worst;
    }
    if (tallies && !results)
        write_tallies(paths, tallies, n);
    if (tallies && results && report_dump(results, text_out(), err) != 0)
        worst = -1;
    json_decref(results);
    free(tallies);
    return worst;
}
