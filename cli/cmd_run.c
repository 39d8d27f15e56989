#include "cli/options.h"
#include "cli/report.h"
#include "engine/base/clock.h"
#include "engine/run/ahead.h"
#include "engine/study/retry.h"

#include <signal.h>
#include <string.h>

/* The run's own failure is said behind what was recorded. */
static int status_of(const struct session *s, struct err *err)
{
    char why[512];
    const int status = report_status(s, why, sizeof why);
    if (status < 0)
        *err = s->job.err;
    return status;
}

/* Runs it once more, isolated, and says what that shows; the ordinary run has ended well. */
static int isolate(struct session *s, const struct isolation_request *request, json_t *json, struct err *err)
{
    if (session_isolate(s, request) != 0)
        return err_set(err, ERR_INPUT, "--isolate", "%s", s->message);
    if (session_finish(s, text_progress) != 0) {
        *err = s->job.err;
        return -1;
    }
    if (json)
        json_object_set_new(json, "isolation", report_json_isolation(s));
    else
        report_write_isolation(s, text_out());
    return 0;
}

/* What quantizing costs, where something is quantized and the run came to its end. */
static int say_unquantized(const struct session *s, json_t *json, struct err *err)
{
    struct unquantized_error error;
    if (!s->run.trace || !trace_complete(s->run.trace))
        return 0;
    if (output_error_unquantized(s->run.trace, &error, err) != 0)
        return -1;
    json_t *cost = report_json_unquantized(&error);
    if (json && cost) {
        json_object_set(json, "unquantized", cost);
        json_object_set_new(json, "compare", report_json_compare(s->run.trace));
        json_object_set_new(json, "whatif", report_json_whatif(s->run.trace));
    }
    if (!json && cost)
        report_write_unquantized(&error, text_out());
    json_decref(cost);
    return 0;
}

/* Runs it once more without probes, and says whether that gives the same bits. 1: it does not. */
static int compare_probes(const struct session *s, json_t *json, struct err *err)
{
    struct probe_effect effect;
    if (probe_effect_find(&s->subject.paths, &s->subject.scenario, s->run.trace, options_progress(), &effect, err) != 0)
        return -1;
    if (json)
        json_object_set_new(json, "probes", report_json_probes(&effect));
    else
        report_write_probes(&effect, text_out());
    return effect.verdict == PROBES_CHANGE_NOTHING ? 0 : 1;
}

static atomic_int interrupted;

static void on_interrupt(int number)
{
    (void)number;
    atomic_store(&interrupted, 1);
}

/* Asks a second run where this one tells no cause. What interrupts that leaves what the first one says. */
static int ask_again(const struct session_run *run, const struct runner_paths *paths, const struct scenario *made_by,
                     struct runner_spent *spent, struct err *err)
{
    struct sigaction act = {.sa_handler = on_interrupt}, before;
    struct runner_progress progress = *options_progress();
    struct retry found;
    struct err why = {0};
    if (!made_by || !run->judgement || !findings_open(run->judgement) || !retry_wanted(run->trace, run->judgement))
        return 0; /* one that is clean says so at once */
    progress.cancel = &interrupted;
    const double begun = clock_seconds();
    sigaction(SIGINT, &act, &before);
    const int failed = retry_run(paths, made_by, run->trace, run->judgement, &progress, &found, &why);
    sigaction(SIGINT, &before, NULL);
    text_progress("");
    spent->step[STEP_CHECKED] += clock_seconds() - begun;
    run->judgement->asked_again = !failed;
    if (!failed && retry_tell(&found, run->judgement) != 0)
        return err_no_memory(err, "", "the second run");
    if (failed && why.code != ERR_CANCELLED) {
        *err = why;
        return -1;
    }
    return 0;
}

/* What the kernel printed, and of what the compiler said when it built it one line: a remark may take a thousand
   columns and says the same for every shape. */
static void write_log(const struct session *s, FILE *out)
{
    enum { REMARK_BYTES = 160 };
    const size_t n = s->log.n_remarks < s->log.n ? s->log.n_remarks : s->log.n;
    size_t first = 0;
    while (first < n && !strstr(s->log.line[first], "warning"))
        first++;
    if (n && s->log.fresh_remarks) {
        const char *line = s->log.line[first < n ? first : 0];
        fprintf(out, "compiler: %.*s%s", REMARK_BYTES, line, strlen(line) > REMARK_BYTES ? "..." : "");
        if (n > 1)
            fprintf(out, " (%zu lines more in the log: attnscope show --view log)", n - 1);
        fputs("\n", out);
    }
    for (size_t i = n; i < s->log.n; i++)
        fprintf(out, "%s\n", s->log.line[i]);
}

/* The exit status is the ordinary run's; where that is good, the comparison's. */
static int report(const struct options *o, struct session *s, const struct isolation_request *request, struct err *err)
{
    const int asked = o->no_retry ? 0 : ask_again(&s->run, &s->subject.paths, session_made_by(s), &s->job.spent, err);
    json_t *json = o->json ? report_json(s, o->files[0], &s->job.err) : NULL;
    if (!o->json) {
        write_log(s, text_out());
        report_write(s, text_out());
        report_write_bias(s, text_out());
        report_write_expectation(s, text_out());
    }
    int status = asked == 0 ? status_of(s, err) : -1;
    if (status >= 0 && say_unquantized(s, json, err) != 0)
        status = -1;
    if (o->probes == ASKED_COMPARE) {
        struct err of_comparison = {0};
        const int compared = compare_probes(s, json, &of_comparison);
        if (compared < 0 && status >= 0)
            *err = of_comparison;
        status = compared == 0 || status < 0 ? status : compared;
    }
    if (o->times && json)
        json_object_set_new(json, "times", report_json_times(&s->job.spent));
    else if (o->times)
        report_write_times(&s->job.spent, text_out());
    if (status >= 0 && o->isolate && isolate(s, request, json, err) != 0)
        status = -1;
    if (o->json && report_dump(json, text_out(), status < 0 ? NULL : err) != 0)
        status = -1;
    json_decref(json);
    return status;
}

int command_run(const struct options *o, struct err *err)
{
    struct session *s;
    struct isolation_request request;
    if ((o->isolate && isolation_parse(o->isolate, o->feed, &request, err) != 0) ||
        options_open(o, o->files[0], &s, err) != 0)
        return -1;
    const bool compares = o->probes == ASKED_COMPARE && s->subject.has_scenario;
    struct build_ahead *plain =
        compares ? build_ahead_start(&s->subject.paths, &s->subject.scenario, PROBES_NONE, NULL) : NULL;
    int status = options_finish(s, err);
    build_ahead_end(plain, status == 0);
    if (status == 0)
        options_look_bias(o, s);
    if (status == 0 && o->output)
        status = session_save(s, o->output, err);
    if (status == 0)
        status = report(o, s, &request, err);
    session_free(s);
    return status;
}
