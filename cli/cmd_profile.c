/* attnscope profile: what a kernel takes on the GPU when no probes are in it. */
#include "cli/options.h"
#include "cli/report.h"

#include "engine/base/leftovers.h"
#include "engine/base/path.h"
#include "engine/build/process.h"
#include "engine/run/measure.h"
#include "engine/run/resources.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_launch(const struct trace_info *info, const struct trace_launch *l, FILE *out)
{
    char words[320];
    launch_title(l, words, sizeof words);
    fprintf(out, "%s\n", words);
    for (int i = 0; i < FACTS; i++) {
        const enum budget_item item = fact_budget((enum fact)i);
        const bool over = item != BUDGET_ITEMS && budget_of_launch(info, l, item) == BUDGET_OVER;
        if (i >= FACT_ACHIEVED && !launch_has_counters(l))
            break;
        fact_words(l, (enum fact)i, words, sizeof words);
        fprintf(out, "  %-14s %s", fact_label((enum fact)i), words);
        if (over)
            fprintf(out, "; over the budget of %d", (int)info->launches.budget.most[item]);
        fputs("\n", out);
    }
}

static void write_text(const char *path, const struct trace_info *info, FILE *out)
{
    char words[512];
    text_inline(out, "%s", path);
    fputs("\n", out);
    for (size_t i = 0; i < info->launches.n; i++)
        write_launch(info, &info->launches.at[i], out);
    if (!info->launches.n)
        fputs("the kernel does not launch through ASC_LAUNCH\n", out);
    if (info->launches.not_measured[0])
        fprintf(out, "counters: %s\n", info->launches.not_measured);
    budget_meets(info, words, sizeof words);
    if (words[0])
        fprintf(out, "budget: %s\n", words);
}

/* ---- as a table for other programs ---- */

/* In quotes, as names of kernels have commas; a quote is doubled. */
static void put_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_extent(FILE *out, const int32_t n[3])
{
    fprintf(out, ",%dx%dx%d", n[0], n[1], n[2]);
}

static void put_whole(FILE *out, int32_t n)
{
    fputs(",", out);
    if (n >= 0)
        fprintf(out, "%d", (int)n);
}

static void put_real(FILE *out, double x)
{
    fputs(",", out);
    if (!isnan(x))
        fprintf(out, "%.9g", x);
}

static void write_csv(const struct trace_launches *launches, FILE *out)
{
    fputs("kernel,grid,block,limited_by", out);
#define LAUNCH_INTEGER(name, meaning) fputs("," #name, out);
#define LAUNCH_REAL(name, meaning) fputs("," #name, out);
#include "engine/trace/launch.def"
#undef LAUNCH_INTEGER
#undef LAUNCH_REAL
    fputs("\n", out);
    for (size_t i = 0; i < launches->n; i++) {
        const struct trace_launch *l = &launches->at[i];
        put_quoted(out, l->kernel);
        put_extent(out, l->grid);
        put_extent(out, l->block);
        fputs(",", out);
        put_quoted(out, l->limited_by);
#define LAUNCH_INTEGER(name, meaning) put_whole(out, l->name);
#define LAUNCH_REAL(name, meaning) put_real(out, l->name);
#include "engine/trace/launch.def"
#undef LAUNCH_INTEGER
#undef LAUNCH_REAL
        fputs("\n", out);
    }
}

/* ---- under ncu ---- */

static int check_ncu(const struct options *o, struct err *err)
{
    if (o->ncu && !path_ends_in(o->ncu, ".ncu-rep"))
        return err_set(err, ERR_USAGE, "--ncu", "expected a path that ends in .ncu-rep, found '%s'", o->ncu);
    if (o->ncu && access(o->ncu, F_OK) == 0)
        return err_set(err, ERR_INPUT, o->ncu, "exists; it is not replaced");
    return o->csv && o->json ? err_set(err, ERR_USAGE, "--csv", "expected one of --csv and --json") : 0;
}

/* The last line that it printed. */
static const char *last_line(char *text)
{
    for (size_t n = strlen(text); n && text[n - 1] == '\n'; n--)
        text[n - 1] = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* ncu counts what a process and its children launch, by running each launch several times; the counters of this process
   are at rest by then. */
static int run_ncu(const struct options *o, const struct scenario *scenario, struct err *err)
{
    enum { LIMIT_S = 1800 };
    char self[PATH_MAX], folder[] = "/tmp/attnscope-ncu.XXXXXX", problem[sizeof folder + 16];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    struct process_output said = {0};
    self[n > 0 ? n : 0] = '\0';
    if (!mkdtemp(folder))
        return err_errno(err, folder, "cannot be made");
    leftovers_add_path(folder);
    snprintf(problem, sizeof problem, "%s/problem.ini", folder);
    const char *const argv[] = {"ncu",   "--target-processes", "all", "-o",         o->ncu,      self,  "run",
                                problem, "--probes",           "off", "--no-retry", "--backend", "gpu", NULL};
    int failed = scenario_write(scenario, problem, err);
    if (!failed && process_capture(argv, LIMIT_S, options_progress(), &said, err) != 0)
        failed =
            errno == ENOENT ? err_set(err, ERR_SYSTEM, "--ncu", "ncu of NVIDIA Nsight Compute is not in PATH") : -1;
    if (!failed && access(o->ncu, R_OK) != 0)
        failed =
            err_set(err, ERR_RUN, "--ncu", "ncu left no report: %.300s", last_line(said.n_err ? said.err : said.out));
    process_output_free(&said);
    unlink(problem);
    rmdir(folder);
    leftovers_remove_path(folder);
    text_progress("");
    return failed;
}

int command_profile(const struct options *o, struct err *err)
{
    struct session *s;
    struct recorder plain = {0};
    struct trace_info info = {.backend = BACKEND_GPU};
    const struct runner_progress *progress = options_progress();
    if (check_ncu(o, err) != 0 || options_open(o, o->files[0], &s, err) != 0)
        return -1;
    int failed = s->subject.has_scenario
                     ? 0
                     : err_set(err, ERR_INPUT, o->files[0], "is a saved trace: there is nothing to launch");
    failed = failed || measure_ready(&s->subject.paths, &s->subject.scenario, "profile", err) != 0 ||
             measure_plain(&plain, &s->subject.paths, &s->subject.scenario, true, progress, &info.launches, err) != 0;
    failed = failed || (o->ncu && run_ncu(o, &s->subject.scenario, err) != 0);
    if (!failed && o->csv) {
        write_csv(&info.launches, text_out());
    } else if (!failed && o->json) {
        json_t *json = launches_json(&info.launches);
        failed = report_dump(json, text_out(), err);
        json_decref(json);
    } else if (!failed) {
        write_text(o->files[0], &info, text_out());
        if (o->ncu)
            text_inline(text_out(), "wrote %s", o->ncu);
        fputs(o->ncu ? "\n" : "", text_out());
    }
    launches_free(&info.launches);
    recorder_free(&plain);
    session_free(s);
    return failed ? -1 : 0;
}
