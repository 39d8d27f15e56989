/* attnscope profile: what a kernel takes on the GPU when no probes are in it. */
#include "cli/options.h"
#include "cli/report.h"

#include "engine/run/measure.h"
#include "engine/run/resources.h"
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

int command_profile(const struct options *o, struct err *err)
{
    struct session *s;
    struct recorder plain = {0};
    struct trace_info info = {.backend = BACKEND_GPU};
    const struct runner_progress *progress = options_progress();
    if (options_open(o, o->files[0], &s, err) != 0)
        return -1;
    int failed = s->subject.has_scenario
                     ? 0
                     : err_set(err, ERR_INPUT, o->files[0], "is a saved trace: there is nothing to launch");
    failed = failed || measure_ready(&s->subject.paths, &s->subject.scenario, "profile", err) != 0 ||
             measure_plain(&plain, &s->subject.paths, &s->subject.scenario, true, progress, &info.launches, err) != 0;
    if (!failed && o->json) {
        json_t *json = launches_json(&info.launches);
        failed = report_dump(json, text_out(), err);
        json_decref(json);
    } else if (!failed) {
        write_text(o->files[0], &info, text_out());
    }
    launches_free(&info.launches);
    recorder_free(&plain);
    session_free(s);
    return failed ? -1 : 0;
}
