/* attnscope diff: two saved traces of one problem, channel by channel; or two sweeps, verdict by verdict. */
#include "cli/options.h"
#include "cli/report.h"
#include "cli/trial.h"

#include "engine/base/path.h"
#include "engine/study/difference.h"
#include "engine/sweep/sweep.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

struct comparison {
    const struct options *o;
    struct trace *t[2]; /* owned */
    struct difference d;
};

static const char *verdict_word(const struct comparison *c)
{
    if (difference_exact(&c->d))
        return "identical";
    return !c->o->exact && difference_within(&c->d) ? "same" : "different";
}

static void write_run(const struct comparison *c, int run, FILE *out)
{
    const struct trace_info *info = &c->t[run]->info;
    text_inline(out, "%s: %s%s%s%s%s, %s, %s", c->o->files[run], info->kernel, info->define[0] ? " " : "", info->define,
                info->patch_name[0] ? " + " : "", info->patch_name, backend_names[info->backend],
                run_status_names[info->status]);
    fputs("\n", out);
}

/* How many there are, the kernel's own values of the first run last; and the name of each. */
static int channels_of(const struct comparison *c)
{
    return ASC_CHANNELS + plan_values(&c->t[0]->plan);
}

static const char *name_of(const struct comparison *c, int ch)
{
    return plan_channel_name(&c->t[0]->plan, (enum asc_channel)ch);
}

static void write_channel(const struct channel_difference *d, const char *name, FILE *out)
{
    fprintf(out, "%-6s", name);
    if (!d->in[0] || !d->in[1] || !d->compared) {
        fprintf(out, "  %s\n",
                !d->in[0] && !d->in[1] ? "recorded in neither"
                : d->in[0] && d->in[1] ? "empty in both"
                : d->in[0]             ? "recorded in the first alone"
                                       : "recorded in the second alone");
        return;
    }
    char share[16] = "all";
    if (d->same != d->compared) /* 99.999 % must not become 100 */
        snprintf(share, sizeof share, "%.3f %%", fmin(99.999, 100 * (double)d->same / (double)d->compared));
    fprintf(out, "%12" PRIu64 "  %9s  %9.3g  %9" PRIu64 "  %9.3g  %9" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "\n",
            d->compared, share, d->largest, d->largest_ulp, d->largest_ratio, d->beyond + d->unbounded, d->classes,
            d->coverage);
}

static void write_notes(const struct comparison *c, FILE *out)
{
    for (int ch = 0; ch < channels_of(c); ch++) {
        const struct channel_difference *d = &c->d.channel[ch];
        const char *name = name_of(c, ch);
        if (d->nan)
            fprintf(out, "note: %" PRIu64 " elements of %s are NaN in both runs, %" PRIu64 " with different bits\n",
                    d->nan, name, d->nan_bits);
        if (d->unwritten)
            fprintf(out, "note: %" PRIu64 " elements of %s were written in neither run\n", d->unwritten, name);
        if (d->unbounded && channel_is_own((enum asc_channel)ch))
            fprintf(out, "note: %" PRIu64 " elements of %s differ: it is the kernel's own, no bound is known\n",
                    d->unbounded, name);
        else if (d->unbounded)
            fprintf(out, "note: %" PRIu64 " elements of %s differ and have no bound: they count as out of bounds\n",
                    d->unbounded, name);
        if (d->lost[0] != d->lost[1])
            fprintf(out,
                    "note: values of %s were out of the trace's range or of the wrong type: %" PRIu64 " and %" PRIu64
                    "\n",
                    name, d->lost[0], d->lost[1]);
    }
    fputs("the inputs of both runs are the same\n", out); /* else they were not compared */
    fprintf(out, "%lld of %lld (batch, head, q tile)s are recorded in both runs", (long long)c->d.both,
            (long long)c->d.places);
    if (c->d.only[0] || c->d.only[1])
        fprintf(out, ", %lld in the first alone, %lld in the second alone", (long long)c->d.only[0],
                (long long)c->d.only[1]);
    fprintf(out, "; o and lse are compared %s\n", c->d.outputs ? "everywhere" : "there as well");
    if (c->d.reordered)
        fprintf(out, "note: %lld of them visited the kv tiles in a different order\n", (long long)c->d.reordered);
}

static void write_value(double x, int unwritten, FILE *out)
{
    if (unwritten)
        fputs("never written", out);
    else if (isnan(x)) /* its sign says nothing */
        fputs("nan", out);
    else
        fprintf(out, "%.9g", x);
}

static void write_first(const struct comparison *c, FILE *out)
{
    const bool exact = c->o->exact || difference_within(&c->d);
    const struct difference_place first = difference_first(&c->d, exact);
    char place[96];
    if (first.order == UINT64_MAX)
        return;
    difference_place_words(&first, place, sizeof place);
    fprintf(out, "first %s: %s: ", exact ? "other bits" : "difference", place);
    write_value(first.got[0], first.unwritten_a, out);
    fputs(" and ", out);
    write_value(first.got[1], first.unwritten_b, out);
    fputs("\n", out);
}

static void write_verdict(const struct comparison *c, FILE *out)
{
    if (c->d.complete[0] != c->d.complete[1])
        fputs("different: one run completed, the other did not\n", out);
    else if (difference_exact(&c->d))
        fputs("identical: the same bits in everything both runs recorded\n", out);
    else if (c->o->exact)
        fputs("different: not the same bits\n", out);
    else if (difference_within(&c->d))
        fputs("same: every difference is within both runs' bounds\n", out);
    else
        fputs("different: out of bounds\n", out);
}

static void write_text(const struct comparison *c, FILE *out)
{
    write_run(c, 0, out);
    write_run(c, 1, out);
    fprintf(out, "%-6s%12s  %9s  %9s  %9s  %9s  %9s  %8s  %8s\n", "", "elements", "same bits", "largest", "ulp",
            "of bounds", "beyond", "classes", "coverage");
    for (int ch = 0; ch < channels_of(c); ch++)
        write_channel(&c->d.channel[ch], name_of(c, ch), out);
    if (!difference_exact(&c->d))
        fputs("the part of a difference that upstream differences do not explain, in bounds\n", out);
    write_notes(c, out);
    write_first(c, out);
    write_verdict(c, out);
}

static json_t *value_json(double x, int unwritten)
{
    if (unwritten)
        return json_string("unwritten");
    return isfinite(x) ? json_real(x) : json_string(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static json_t *first_json(const struct difference_place *first)
{
    if (first->order == UINT64_MAX)
        return json_null();
    json_t *json = json_pack("{s:s}", "channel", first->own[0] ? first->own : channel_name(first->channel));
    report_json_put_at(json, first->place, first->kv);
    json_object_set_new(json, "row", json_integer(first->row));
    json_object_set_new(json, "col", json_integer(first->col));
    json_object_set_new(json, "first", value_json(first->got[0], first->unwritten_a));
    json_object_set_new(json, "second", value_json(first->got[1], first->unwritten_b));
    return json;
}

static json_t *channel_json(const struct channel_difference *d)
{
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {{"compared", d->compared},
                  {"same", d->same},
                  {"nan_bits", d->nan_bits},
                  {"within", d->within},
                  {"beyond", d->beyond},
                  {"unbounded", d->unbounded},
                  {"classes", d->classes},
                  {"coverage", d->coverage},
                  {"nan", d->nan},
                  {"unwritten", d->unwritten},
                  {"largest_ulp", d->largest_ulp}};
    json_t *json = json_pack("{s:[b, b], s:[I, I]}", "recorded", d->in[0], d->in[1], "lost", (json_int_t)d->lost[0],
                             (json_int_t)d->lost[1]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(json, counts[i].name, json_integer((json_int_t)counts[i].n));
    json_object_set_new(json, "largest", report_json_number(d->largest));
    json_object_set_new(json, "largest_ratio", report_json_number(d->largest_ratio));
    json_object_set_new(json, "first", first_json(&d->first));
    json_object_set_new(json, "first_beyond", first_json(&d->first_bad));
    return json;
}

static json_t *run_json(const struct comparison *c, int run)
{
    const struct trace_info *info = &c->t[run]->info;
    const struct {
        const char *name, *text;
    } texts[] = {{"file", c->o->files[run]},
                 {"kernel", info->kernel},
                 {"define", info->define},
                 {"patch", info->patch_name},
                 {"backend", backend_names[info->backend]},
                 {"status", run_status_names[info->status]}};
    json_t *json = json_object();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        json_object_set_new(json, texts[i].name, report_json_text(texts[i].text));
    return json;
}

static json_t *comparison_json(const struct comparison *c)
{
    json_t *channels = json_object();
    for (int ch = 0; ch < channels_of(c); ch++)
        json_object_set_new(channels, name_of(c, ch), channel_json(&c->d.channel[ch]));
    const struct difference_place first = difference_first(&c->d, c->o->exact || difference_within(&c->d));
    return json_pack("{s:s, s:b, s:[o, o], s:{s:I, s:I, s:I, s:I, s:I}, s:b, s:s, s:o, s:o}", "verdict",
                     verdict_word(c), "exact", c->o->exact, "runs", run_json(c, 0), run_json(c, 1), "slots", "all",
                     (json_int_t)c->d.places, "both", (json_int_t)c->d.both, "first", (json_int_t)c->d.only[0],
                     "second", (json_int_t)c->d.only[1], "reordered", (json_int_t)c->d.reordered, "outputs",
                     c->d.outputs, "inputs", "same", "first", first_json(&first), "channels", channels);
}

static int compare(struct comparison *c, struct err *err)
{
    for (int run = 0; run < 2; run++)
        if (trace_open(c->o->files[run], &c->t[run], err) != 0)
            return -1;
    if (difference_check(c->t[0], c->t[1], c->o->files[0], c->o->files[1], err) != 0 ||
        difference_find(c->t[0], c->t[1], 0, &c->d, err) != 0)
        return -1;
    if (c->o->json) {
        json_t *json = comparison_json(c);
        const int failed = report_dump(json, text_out(), err);
        json_decref(json);
        if (failed)
            return -1;
    } else {
        write_text(c, text_out());
    }
    return (c->o->exact ? difference_exact(&c->d) : difference_within(&c->d)) ? 0 : 1;
}

/* ---- sweeps ---- */

/* Of a point where verdicts differ, in either sweep. */
static const struct sweep_point *point_in(const struct sweep *of, const struct sweep *differ,
                                          const struct sweep_point *p)
{
    char wanted[512], words[512];
    sweep_point_words(differ, p, wanted, sizeof wanted);
    for (size_t i = 0; i < of->n; i++) {
        sweep_point_words(of, &of->point[i], words, sizeof words);
        if (strcmp(words, wanted) == 0)
            return &of->point[i];
    }
    return NULL;
}

static void write_sweeps(char *const *files, const struct sweep of[2], const struct sweep *differ,
                         const struct sweep_change *x)
{
    FILE *out = text_out();
    char line[SWEEP_LINE_BYTES];
    const struct sweep_point *least = sweep_smallest(differ, SWEEP_FAIL);
    for (int i = 0; i < 2; i++) {
        text_inline(out, "%s: %s%s%zu points%s%s", files[i], strcmp(files[i], of[i].kernel) ? of[i].kernel : "",
                    strcmp(files[i], of[i].kernel) ? ", " : "", of[i].n, of[i].error ? ", ended by an error: " : "",
                    of[i].error ? of[i].error : "");
        fputs("\n", out);
    }
    fprintf(out,
            "%zu ran in both: %zu right in both, %zu fail in both, %zu in the first alone, %zu in the second alone\n",
            differ->n, x->n[0][0], x->n[1][1], x->n[1][0], x->n[0][1]);
    if (x->left_out)
        fprintf(out, "%zu of the first are left out: they did not run in both\n", x->left_out);
    for (int i = 0; sweep_sentence(differ, i, line, sizeof line); i++) {
        text_inline(out, "%s", line);
        fputs("\n", out);
    }
    if (!least)
        return;
    sweep_point_words(differ, least, line, sizeof line);
    text_inline(out, "smallest: %s", line);
    fputs("\n", out);
    for (int i = 0; i < 2; i++) {
        const struct sweep_point *p = point_in(&of[i], differ, least);
        text_inline(out, "  %-4s  %s", p ? sweep_result_names[p->result] : "", p && p->command ? p->command : "");
        fputs("\n", out);
    }
}

static json_t *sweeps_json(char *const *files, const struct sweep of[2], const struct sweep *differ,
                           const struct sweep_change *x)
{
    json_t *said = json_array(), *points = json_array();
    char line[SWEEP_LINE_BYTES];
    for (int i = 0; sweep_sentence(differ, i, line, sizeof line); i++)
        json_array_append_new(said, report_json_text(line));
    for (size_t i = 0; i < differ->n; i++) {
        const struct sweep_point *p = &differ->point[i];
        if (p->result != SWEEP_FAIL)
            continue;
        json_t *at = json_object();
        for (int a = 0; a < differ->n_axes; a++)
            json_object_set_new(at, differ->axis[a].key, report_json_text(differ->axis[a].value[p->at[a]]));
        json_array_append_new(points, json_pack("{s:o, s:s}", "at", at, "fails_in",
                                                of[0].point[p->number].result == SWEEP_FAIL ? "first" : "second"));
    }
    return json_pack("{s:s, s:[o, o], s:[o, o], s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "verdict",
                     sweep_count(differ, SWEEP_FAIL) ? "different" : "same", "files", report_json_text(files[0]),
                     report_json_text(files[1]), "kernels", report_json_text(of[0].kernel),
                     report_json_text(of[1].kernel), "points", (json_int_t)differ->n, "right_in_both",
                     (json_int_t)x->n[0][0], "fail_in_both", (json_int_t)x->n[1][1], "fail_in_first",
                     (json_int_t)x->n[1][0], "fail_in_second", (json_int_t)x->n[0][1], "left_out",
                     (json_int_t)x->left_out, "said", said, "differing", points);
}

static int diff_sweeps(const struct options *o, struct err *err)
{
    struct sweep of[2], differ;
    struct sweep_change change;
    for (int i = 0; i < 2; i++)
        sweep_init(&of[i]);
    sweep_init(&differ);
    int failed = o->exact ? err_set(err, ERR_USAGE, "--exact", "applies to traces") : 0;
    for (int i = 0; i < 2 && !failed; i++)
        if (path_ends_in(o->files[i], ".json"))
            failed = sweep_read(o->files[i], &of[i], err);
        else
            failed = sweep_kernel(o, o->files[i], NULL, i ? &of[0] : NULL, &of[i], err);
    if (!failed)
        failed = sweep_compare(&of[0], &of[1], &differ, &change, err);
    if (!failed && o->json) {
        json_t *json = sweeps_json(o->files, of, &differ, &change);
        failed = report_dump(json, text_out(), err);
        json_decref(json);
    } else if (!failed) {
        write_sweeps(o->files, of, &differ, &change);
    }
    const bool whole = differ.n && !of[0].error && !of[1].error;
    const int status = failed ? -1 : sweep_count(&differ, SWEEP_FAIL) ? 1 : whole ? 0 : 3;
    sweep_free(&differ);
    sweep_free(&of[0]);
    sweep_free(&of[1]);
    return status;
}

static bool is_kernel(const char *path)
{
    return path_ends_in(path, ".cu") || path_ends_in(path, ".ini");
}

#define RUNS_NOTHING "of %s takes no option that makes a run: those are for two kernels"
static bool runs_anything(const struct options *o)
{
    return o->over.n || o->runs || o->sample || o->time_s > 0 || o->shape || o->settings.n || o->defines.n ||
           o->includes.n || o->flags.n || o->backend || o->checks;
}

int command_diff(const struct options *o, struct err *err)
{
    const bool kernels = is_kernel(o->files[0]) && is_kernel(o->files[1]);
    if (kernels || (path_ends_in(o->files[0], ".json") && path_ends_in(o->files[1], ".json")))
        return kernels || !runs_anything(o) ? diff_sweeps(o, err)
                                            : err_set(err, ERR_USAGE, "diff", RUNS_NOTHING, "saved sweeps");
    if (runs_anything(o))
        return err_set(err, ERR_USAGE, "diff", RUNS_NOTHING, "traces");
    struct comparison c = {.o = o};
    const int status = compare(&c, err);
    trace_free(c.t[0]);
    trace_free(c.t[1]);
    return status;
}
