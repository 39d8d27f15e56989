/* attnscope sweep: a kernel at many points, and where it fails as a rule. */
#include "cli/kernel_cases.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/trial.h"
#include "engine/base/clock.h"
#include "engine/base/json_memory.h"
#include "engine/base/leftovers.h"
#include "engine/base/path.h"
#include "engine/base/replace.h"
#include "engine/build/cache.h"
#include "engine/scenario/keys.h"
#include "engine/sweep/sweep.h"
#include "engine/verdict/judgement.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIME_S 300.0
#define RUNS 200
#define SAVE_S 5.0 /* between two writings of the file while it runs */
#define ROUND 64   /* points that are put in the order of their builds, so that a budget ends in a fair sample */
#define COMMAND_BYTES 4096

struct sweeping {
    const struct options *o;
    const char *path;
    const char *output; /* where it is saved meanwhile; NULL: nowhere */
    struct trial_watch watch;
    struct session *s;    /* owned */
    struct recorder ask;  /* asks for plans */
    struct scenario base; /* owned */
    struct sweep sweep;
    const struct sweep *like; /* whose points are run again; NULL: points are drawn */
    struct sweep read;        /* owned: the one that --over names */
    bool of_builds;           /* some axis chooses a build: one that cannot be made is a point's, not the sweep's */
};

/* ---- what it is about ---- */

static int state_number(struct scenario *s, const char *key, int number, struct err *err)
{
    char value[16];
    snprintf(value, sizeof value, "%d", number);
    return scenario_set(s, key, value, err);
}

/* A small problem that the kernel takes, where nothing is said of its shape. */
static int find_base(struct sweeping *w, const struct runner_progress *progress, struct err *err)
{
    static const enum scenario_key_id lengths[] = {KEY_Q_LEN, KEY_KV_LEN, KEY_HEADS, KEY_HEAD_DIM, KEY_Q_LENS};
    struct kernel_cases cases;
    struct scenario *s = &w->s->subject.scenario;
    bool stated = scenario_has_inputs(s);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        stated = stated || scenario_stated(s, lengths[i]);
    if (stated)
        return 0;
    if (kernel_cases_list(&w->ask, &w->s->subject.paths, s, PROBES_RECORD, progress, &cases, err) != 0)
        return -1;
    const struct asc_problem p = cases.base;
    char words[sizeof cases.base_words], why[CASE_WHY_BYTES] = "", *save = NULL;
    memcpy(words, cases.base_words, sizeof words);
    if (!p.batch && cases.n)
        memcpy(why, cases.at[0].why, sizeof why);
    kernel_cases_free(&cases);
    if (!p.batch)
        return err_set(err, ERR_DECLINED, s->kernel, "%s", why);
    *err = (struct err){0}; /* what the plan declined on the way */
    int failed = state_number(s, "shape.batch", p.batch, err) || state_number(s, "shape.heads", p.heads, err) ||
                 state_number(s, "shape.kv_heads", p.kv_heads, err) || state_number(s, "shape.q_len", p.q_len, err) ||
                 state_number(s, "shape.kv_len", p.kv_len, err) || state_number(s, "shape.head_dim", p.head_dim, err);
    for (char *word = strtok_r(words, " ", &save); word && !failed; word = strtok_r(NULL, " ", &save))
        failed = sweep_set(s, word, err);
    return failed ? -1 : 0;
}

static int ask_plan(struct sweeping *w, const struct scenario *scenario, struct asc_plan *plan, struct err *err)
{
    struct scenario own = *scenario; /* borrows what that owns */
    if (!w->ask.child || !child_alive(w->ask.child)) {
        if (record_child(&w->ask, &w->s->subject.paths, &own, PROBES_RECORD, NULL, err) != 0)
            return -1;
    }
    adopt_types(child_hello(w->ask.child), &own);
    return child_load(w->ask.child, &own.problem, plan, err);
}

static bool takes(void *ctx, const struct scenario *scenario)
{
    struct asc_plan plan;
    struct err err;
    return ask_plan(ctx, scenario, &plan, &err) == 0;
}

static int identify(struct sweeping *w, struct err *err)
{
    struct cache_key *key = cache_key_new();
    const struct scenario *s = &w->base;
    char versions[64];
    if (!key)
        return err_no_memory(err, "", "the sweep");
    snprintf(versions, sizeof versions, "%s %d", options_version, ORACLE_VERSION);
    cache_key_add_text(key, versions);
    int failed = cache_key_add_file(key, s->kernel, err);
    if (!failed && s->patch[0])
        failed = cache_key_add_file(key, s->patch, err);
    cache_key_finish(key, w->sweep.text);
    return failed;
}

static void add_word(char *out, const char *option, const char *value)
{
    const size_t used = strlen(out);
    char word[1024];
    if (value && subject_word(value, word, sizeof word) == 0)
        snprintf(out + used, COMMAND_BYTES - used, "%s%s", option, word);
}

static void add_words(char *out, const char *option, const struct option_words *words)
{
    for (int i = 0; i < words->n; i++)
        add_word(out, option, words->word[i]);
}

/* The command line, without what differs from shard to shard. */
static int write_command(struct sweeping *w, struct err *err)
{
    const struct options *o = w->o;
    static const char *const inputs[] = {" --q ", " --k ", " --v ", " --inputs "};
    char out[COMMAND_BYTES] = "attnscope sweep ", number[32];
    add_word(out, w->path[0] == '-' ? "./" : "", w->path);
    add_words(out, " --over ", &o->over);
    snprintf(number, sizeof number, "%d", o->runs);
    add_word(out, " --runs ", o->runs ? number : NULL);
    snprintf(number, sizeof number, "%d", o->sample);
    add_word(out, " --sample ", o->sample ? number : NULL);
    snprintf(number, sizeof number, "%g", o->time_s);
    add_word(out, " --time ", o->time_s > 0 ? number : NULL);
    add_word(out, " --shape ", o->shape);
    add_words(out, " --set ", &o->settings);
    for (int i = 0; i < 4; i++)
        add_word(out, inputs[i], o->inputs[i]);
    add_word(out, " --patch ", o->patch);
    add_words(out, " -D ", &o->defines);
    add_words(out, " -I ", &o->includes);
    add_words(out, " --flag ", &o->flags);
    add_word(out, " --backend ", o->backend);
    add_word(out, " --mem ", o->mem);
    add_word(out, " --memory ", o->memory);
    add_word(out, " --probes ", o->probes ? asked_probes_names[o->probes] : NULL);
    if (o->checks)
        add_word(out, " ", "--checks");
    w->sweep.command = strdup(out);
    return w->sweep.command ? 0 : err_no_memory(err, "", "the sweep");
}

/* What a sweep that is to be run again says of all points, but how its kernel is built. */
static int take_base_of(struct sweeping *w, const struct sweep *like, struct err *err)
{
    struct scenario *s = &w->s->subject.scenario;
    for (int i = 0; i < like->n_base; i++) {
        const char *word = like->base[i], *dot = strchr(word, '.'), *equals = strchr(word, '=');
        char section[32] = "", name[64] = "";
        if (dot && equals && dot < equals) {
            snprintf(section, sizeof section, "%.*s", (int)(dot - word), word);
            snprintf(name, sizeof name, "%.*s", (int)(equals - dot - 1), dot + 1);
        }
        const int id = scenario_key_find(section, name);
        if (id >= 0 && scenario_keys[id].section != SECTION_SCENARIO && !scenario_stated(s, (enum scenario_key_id)id) &&
            sweep_set(s, word, err) != 0)
            return -1;
    }
    return 0;
}

/* The base, the axes and the points. On a thread: it may build. */
static int plan_sweep(void *ctx, const struct runner_progress *progress, struct err *err)
{
    struct sweeping *w = ctx;
    struct sweep *sweep = &w->sweep;
    struct asc_plan plan;
    const struct options *o = w->o;
    const bool named = o->over.n && path_ends_in(o->over.word[0], ".json") && !w->like;
    if (named && (o->over.n > 1 || o->runs || o->sample))
        return err_set(err, ERR_USAGE, "--over", "%s brings all axes and points: no other --over, --runs or --sample",
                       o->over.word[0]);
    if (named && sweep_read(o->over.word[0], &w->read, err) != 0)
        return -1;
    const struct sweep *like = named ? &w->read : w->like;
    if ((like && take_base_of(w, like, err) != 0) || find_base(w, progress, err) != 0 ||
        sweep_take_base(sweep, &w->s->subject.scenario, err) != 0)
        return -1;
    snprintf(sweep->kernel, sizeof sweep->kernel, "%s", runner_short_path(w->s->subject.scenario.kernel));
    scenario_init(&w->base);
    memcpy(w->base.kernel, sweep->kernel, sizeof sweep->kernel);
    for (int i = 0; i < sweep->n_base; i++)
        if (sweep_set(&w->base, sweep->base[i], err) != 0)
            return -1;
    if (scenario_check(&w->base, err) != 0 || identify(w, err) != 0 || write_command(w, err) != 0 ||
        record_child(&w->ask, &w->s->subject.paths, &w->base, PROBES_RECORD, progress, err) != 0 ||
        ask_plan(w, &w->base, &plan, err) != 0)
        return -1;
    sweep->br = plan.br;
    sweep->bc = plan.bc;
    if (like)
        return sweep_take_points(sweep, like, err);
    sweep->sample = (uint64_t)o->sample;
    const struct sweep_kernel kernel = {&w->base, takes, w};
    int failed = o->over.n ? 0 : sweep_add(sweep, "shape,mask,dtype,fill,seed", &kernel, err);
    for (int i = 0; i < o->over.n && !failed; i++)
        failed = sweep_add(sweep, o->over.word[i], &kernel, err);
    return failed || sweep_draw(sweep, &w->base, (size_t)(o->runs ? o->runs : RUNS), err) != 0 ? -1 : 0;
}

/* ---- a point ---- */

static char *own_text(const char *text)
{
    char *own = text[0] ? strdup(text) : NULL;
    if (text[0] && !own)
        end_without_memory();
    return own;
}

/* What fails, without where: "s: tail-not-masked", "stopped by illegal-address". */
static void what_words(const struct session *s, char out[SWEEP_WHAT_BYTES])
{
    const struct judgement *j = s->run.judgement;
    const struct trace *t = s->run.trace;
    char names[64] = "";
    out[0] = '\0';
    if (!t || !j)
        return;
    if (t->info.stopped != EVENT_NONE) {
        snprintf(out, SWEEP_WHAT_BYTES, "stopped by %s", event_name(t->info.stopped));
        return;
    }
    culprits_words(j->summary.culprits, names, sizeof names);
    const char *cause = j->n_findings ? finding_word(&j->findings[0], t) : "";
    snprintf(out, SWEEP_WHAT_BYTES, "%s%s%s", names, names[0] && cause[0] ? ": " : "", cause);
    if (!out[0] && t->info.n_events)
        snprintf(out, SWEEP_WHAT_BYTES, "%s", event_name(t->info.events[0].kind));
}

/* The command that runs a scenario alone: its shape, then all else that it states. */
static void point_command(const struct scenario *s, char out[COMMAND_BYTES])
{
    static const enum scenario_key_id in_shape[] = {KEY_BATCH, KEY_HEADS, KEY_Q_LEN, KEY_KV_LEN, KEY_HEAD_DIM};
    const struct asc_problem *p = &s->problem;
    const bool shaped = !scenario_has_inputs(s) && !p->has_q_lens && !p->has_kv_lens;
    char word[1200];
    out[0] = '\0';
    add_word(out, s->kernel[0] == '-' ? "attnscope run ./" : "attnscope run ", s->kernel);
    snprintf(word, sizeof word, "%d,%d,%d,%d,%d", p->batch, p->heads, p->q_len, p->kv_len, p->head_dim);
    add_word(out, " --shape ", shaped ? word : NULL);
    add_word(out, " --patch ", s->patch[0] ? s->patch : NULL);
    for (int i = 0; i < KEY_COUNT; i++) {
        const enum scenario_key_id id = (enum scenario_key_id)i;
        const char *said = scenario_said(s, id);
        bool left_out = id == KEY_KERNEL || id == KEY_PATCH || !said || !scenario_stated(s, id) ||
                        (shaped && id == KEY_KV_HEADS && p->kv_heads == p->heads);
        for (size_t k = 0; k < sizeof in_shape / sizeof *in_shape; k++)
            left_out = left_out || (shaped && id == in_shape[k]);
        if (left_out)
            continue;
        snprintf(word, sizeof word, "%s.%s=%s", section_names[scenario_keys[i].section], scenario_keys[i].name, said);
        add_word(out, " --set ", word);
    }
}

static void set_result(struct sweep_point *p, enum sweep_result result, const char *why)
{
    p->result = result;
    free(p->why);
    p->why = own_text(why);
}

/* 1: no other point can be run either, as *err says. */
static int run_point(struct sweeping *w, struct sweep_point *p, struct err *err)
{
    char found[TRIAL_FOUND_BYTES], what[SWEEP_WHAT_BYTES] = "", text[TRIAL_FOUND_BYTES], command[COMMAND_BYTES];
    struct scenario now;
    const double begun = clock_seconds();
    if (sweep_apply(&w->sweep, p, &w->base, &now, err) != 0)
        return 1;
    point_command(&now, command);
    p->command = own_text(command);
    const int wrong = trial_run(&w->watch, w->s, &now, found, err);
    p->seconds = clock_seconds() - begun;
    if (wrong >= 0) {
        set_result(p, wrong ? SWEEP_FAIL : SWEEP_OK, found);
        if (wrong)
            what_words(w->s, what);
        p->what = own_text(what);
        return 0;
    }
    trial_error_words(err, text, sizeof text);
    switch (err->code) {
    case ERR_CANCELLED:
        snprintf(text, sizeof text, "stopped when the %g s of --time ran out", w->watch.limit_s);
        set_result(p, SWEEP_NOT_TRIED, text);
        return 0;
    case ERR_DECLINED:
        set_result(p, SWEEP_DECLINED, text);
        return 0;
    case ERR_RUN:
    case ERR_INPUT:
        set_result(p, SWEEP_FAIL, text);
        what_words(w->s, what);
        p->what = own_text(what[0] ? what : err_name(err->code));
        return 0;
    case ERR_BUILD:
    case ERR_GPU_ONLY:
        if (w->of_builds) { /* this one does not compile; others may */
            set_result(p, SWEEP_DECLINED, text);
            return 0;
        }
        break;
    default:
        break;
    }
    set_result(p, SWEEP_NOT_TRIED, text);
    return 1;
}

static const struct sweep *ordered; /* for by_build(): qsort() passes nothing on */

static int by_build(const void *a, const void *b)
{
    const struct sweep_point *x = *(struct sweep_point *const *)a, *y = *(struct sweep_point *const *)b;
    const int order = sweep_build_order(ordered, x, y);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int save_file(const struct sweeping *w, struct err *err)
{
    char name[300], words[400];
    if (!w->output)
        return 0;
    if (sweep_write(&w->sweep, w->output, err) != 0)
        return -1;
    snprintf(words, sizeof words, "stopped; %s has the points that ran",
             text_name(w->output, strlen(w->output), name, sizeof name));
    text_keep(words);
    return 0;
}

/* Whether the smallest point of a result has it again. What cannot be run again is left as it is. */
static void run_again(struct sweeping *w, enum sweep_result result)
{
    enum { AGAIN = 3 };
    const struct sweep_point *least = sweep_smallest(&w->sweep, result);
    struct sweep_point *p = least ? &w->sweep.point[least - w->sweep.point] : NULL;
    char found[TRIAL_FOUND_BYTES];
    if (!p)
        return;
    int runs = 1, failed = result == SWEEP_FAIL;
    for (int i = 0; i < AGAIN && !trial_spent(&w->watch); i++) {
        struct scenario now;
        struct err err = {0};
        if (sweep_apply(&w->sweep, p, &w->base, &now, &err) != 0)
            return;
        const int wrong = trial_run(&w->watch, w->s, &now, found, &err);
        if (wrong < 0 && err.code != ERR_RUN)
            return;
        failed += wrong != 0;
        runs++;
    }
    if (failed && failed < runs) {
        p->runs = runs;
        p->runs_failed = failed;
    }
}

/* The points in rounds; in a round, those of one build one after the other. */
static int run_points(struct sweeping *w, struct err *err)
{
    struct sweep *sweep = &w->sweep;
    struct sweep_point **order = malloc((sweep->n + 1) * sizeof(void *));
    double saved = clock_seconds();
    char why[TRIAL_FOUND_BYTES], line[64];
    size_t bad = 0;
    int ended = 0, failed = 0;
    if (!order)
        return err_no_memory(err, "", "the order of the points");
    ordered = sweep;
    for (size_t i = 0; i < sweep->n; i++) {
        order[i] = &sweep->point[i];
        set_result(order[i], SWEEP_NOT_TRIED, "the sweep has not come to it");
    }
    for (size_t i = 0; i < sweep->n; i += ROUND)
        qsort(order + i, sweep->n - i < ROUND ? sweep->n - i : ROUND, sizeof(void *), by_build);
    failed = save_file(w, err); /* what is killed leaves a file that says so */
    for (size_t i = 0; i < sweep->n && !failed; i++) {
        struct err own = {0};
        snprintf(line, sizeof line, "point %zu of %zu, %zu fail", i + 1, sweep->n, bad);
        memcpy(w->watch.label, line, sizeof line);
        if (ended || trial_spent(&w->watch)) {
            snprintf(why, sizeof why, "the %g s of --time ran out first", w->watch.limit_s);
            set_result(order[i], SWEEP_NOT_TRIED, ended ? sweep->error : why);
            continue;
        }
        ended = run_point(w, order[i], &own);
        bad += order[i]->result == SWEEP_FAIL;
        if (ended) {
            trial_error_words(&own, why, sizeof why);
            sweep->error = own_text(why[0] ? why : "an error");
            sweep->error_status = err_exit_status(own.code);
        }
        if (clock_seconds() - saved > SAVE_S) {
            saved = clock_seconds();
            failed = save_file(w, err);
        }
    }
    free(order);
    if (!ended && !failed) {
        run_again(w, SWEEP_FAIL);
        run_again(w, SWEEP_OK);
    }
    text_progress("");
    return failed;
}

/* ---- what it came to ---- */

static void put_line(const char *text)
{
    text_inline(text_out(), "%s", text);
    fputs("\n", text_out());
}

/* Each way to fail with its count, most often first. */
static void write_ways(const struct sweep *s)
{
    bool *said = calloc(s->n + 1, sizeof *said);
    if (!said)
        end_without_memory();
    for (int ways = 0; ways < 5; ways++) {
        size_t most = 0, which = 0;
        for (size_t i = 0; i < s->n; i++) {
            size_t n = 0;
            if (s->point[i].result != SWEEP_FAIL || said[i] || !s->point[i].what)
                continue;
            for (size_t k = i; k < s->n; k++)
                n += s->point[k].result == SWEEP_FAIL && s->point[k].what &&
                     strcmp(s->point[k].what, s->point[i].what) == 0;
            if (n > most) {
                most = n;
                which = i;
            }
        }
        if (!most)
            break;
        for (size_t k = 0; k < s->n; k++)
            said[k] = said[k] || (s->point[k].result == SWEEP_FAIL && s->point[k].what &&
                                  strcmp(s->point[k].what, s->point[which].what) == 0);
        text_inline(text_out(), "  %zu: %s", most, s->point[which].what);
        fputs("\n", text_out());
    }
    free(said);
}

/* How many of a result there are, and why the first of them is. */
static void write_rest(const struct sweep *s, enum sweep_result result)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->point[i].result == result) {
            text_inline(text_out(), "%zu %s, the first because: %s", sweep_count(s, result), sweep_result_names[result],
                        s->point[i].why ? s->point[i].why : "");
            fputs("\n", text_out());
            return;
        }
}

static void write_text(const struct sweep *s)
{
    char line[SWEEP_LINE_BYTES];
    const struct sweep_point *least = sweep_smallest(s, SWEEP_FAIL);
    text_inline(text_out(), "%s: %zu of %.0f points", s->kernel, s->n, s->grid);
    if (s->shards)
        fprintf(text_out(), ", shard %d of %d", s->shard, s->shards);
    fprintf(text_out(), ": %zu right, %zu fail  %.1f s\n", sweep_count(s, SWEEP_OK), sweep_count(s, SWEEP_FAIL),
            s->seconds);
    for (int i = 0; sweep_sentence(s, i, line, sizeof line); i++)
        put_line(line);
    write_ways(s);
    if (least) {
        sweep_point_words(s, least, line, sizeof line);
        text_inline(text_out(), "smallest: %s", line);
        fputs("\n", text_out());
        if (least->command)
            text_inline(text_out(), "  %s", least->command);
        fputs("\n", text_out());
    }
    write_rest(s, SWEEP_DECLINED);
    write_rest(s, SWEEP_NOT_TRIED);
    if (s->error) {
        text_inline(text_out(), "ended by an error: %s", s->error);
        fputs("\n", text_out());
    }
}

static int write_junit(const struct options *o, const struct sweep *s, struct err *err)
{
    struct check_result *results = calloc(s->n + 1, sizeof *results);
    char words[512];
    size_t n = 0;
    if (!results)
        return err_no_memory(err, "", "the report");
    for (size_t i = 0; i < s->n; i++) {
        const struct sweep_point *p = &s->point[i];
        struct check_result *r = &results[n++];
        sweep_point_words(s, p, words, sizeof words);
        *r = (struct check_result){.kernel = s->kernel, .path = strdup(words), .seconds = p->seconds};
        r->status = p->result == SWEEP_FAIL;
        r->skipped = p->result == SWEEP_DECLINED || p->result == SWEEP_NOT_TRIED ? (p->why ? p->why : "") : NULL;
        snprintf(r->why, sizeof r->why, "%s", p->why ? p->why : "");
        r->details = r->status && p->command ? strdup(p->command) : NULL;
        if (!r->path || (r->status && p->command && !r->details))
            end_without_memory();
    }
    if (s->error) {
        results[n] = (struct check_result){.kernel = s->kernel, .path = strdup("every point"), .status = 3};
        if (!results[n].path)
            end_without_memory();
        (void)err_set(&results[n++].err, ERR_RUN, "", "%s", s->error);
    }
    const int failed = junit_write(o->junit, "sweep", results, n, err);
    for (size_t i = 0; i < n; i++) {
        free((char *)results[i].path);
        free(results[i].details);
    }
    free(results);
    return failed;
}

static int write_results(const struct options *o, const struct sweep *s, struct err *err)
{
    if (o->json) {
        json_t *json = sweep_json(s);
        const int failed = report_dump(json, text_out(), err);
        json_decref(json);
        if (failed)
            return -1;
    } else {
        write_text(s);
    }
    if ((o->output && sweep_write(s, o->output, err) != 0) || (o->junit && write_junit(o, s, err) != 0))
        return -1;
    return sweep_status(s);
}

static void say_lack(const char *line)
{
    text_inline(text_err(), "%s", line);
    fputs("\n", text_err());
}

static int merge(const struct options *o, struct err *err)
{
    struct sweep whole;
    if (sweep_merge(o->files, o->n_files, say_lack, &whole, err) != 0)
        return -1;
    const int status = write_results(o, &whole, err);
    sweep_free(&whole);
    return status;
}

/* What is to be written is found impossible before the work. */
static int check_outputs(const struct options *o, struct err *err)
{
    struct replacement probe;
    if (o->output && !path_ends_in(o->output, ".json"))
        return err_set(err, ERR_USAGE, "--save", "expected a path that ends in .json, found '%s'", o->output);
    if (o->output && replace_open(&probe, o->output, 0666, err) != 0)
        return -1;
    if (o->output)
        replace_drop(&probe);
    return o->junit ? junit_check(o->junit, err) : 0;
}

static int check_usage(const struct options *o, struct err *err)
{
    if (o->merge && (o->over.n || o->shard[1] || o->runs || o->shape || o->settings.n))
        return err_set(err, ERR_USAGE, "--merge", "takes the files of shards, and no option that makes a sweep");
    if (!o->merge && o->n_files != 1)
        return err_set(err, ERR_USAGE, "sweep", "takes one kernel or scenario, found '%s' as well", o->files[1]);
    if (!o->merge && path_ends_in(o->files[0], ".json"))
        return err_set(err, ERR_USAGE, "sweep", "'%s' is a sweep: attnscope %s shows it, --merge puts shards together",
                       o->files[0], o->files[0]);
    return 0;
}

static bool chooses_builds(const struct sweep *s)
{
    struct sweep_point a = {.number = 0}, b = {.number = 1};
    for (int i = 0; i < s->n_axes; i++)
        b.at[i] = 1;
    return sweep_build_order(s, &a, &b) != 0;
}

static int run_sweep(struct sweeping *w, struct err *err)
{
    const struct options *o = w->o;
    w->watch.begun = clock_seconds();
    snprintf(w->watch.label, sizeof w->watch.label, "asking for its plan");
    if (options_open(o, w->path, &w->s, err) != 0)
        return -1;
    if (!w->s->subject.has_scenario)
        return err_set(err, ERR_INPUT, w->path, "is a saved trace: a sweep runs a kernel (.cu) or a scenario (.ini)");
    if (trial_work(&w->watch, plan_sweep, w, err) != 0)
        return err->code != ERR_CANCELLED
                   ? -1
                   : err_set(err, ERR_CANCELLED, "", "the %g s of --time ran out before the first point",
                             w->watch.limit_s);
    if (o->shard[1])
        sweep_take_shard(&w->sweep, o->shard[0], o->shard[1]);
    recorder_free(&w->ask);
    w->ask = (struct recorder){0};
    w->of_builds = chooses_builds(&w->sweep);
    if (run_points(w, err) != 0)
        return -1;
    w->sweep.ended = true;
    w->sweep.seconds = clock_seconds() - w->watch.begun;
    return sweep_find(&w->sweep, err);
}

int sweep_kernel(const struct options *o, const char *path, const char *output, const struct sweep *like,
                 struct sweep *out, struct err *err)
{
    struct sweeping w = {.o = o, .path = path, .output = output, .like = like};
    w.watch.limit_s = o->time_s > 0 ? o->time_s : TIME_S;
    sweep_init(&w.sweep);
    sweep_init(&w.read);
    trial_watch_init(&w.watch);
    const int failed = run_sweep(&w, err);
    text_progress("");
    session_free(w.s);
    recorder_free(&w.ask);
    scenario_free(&w.base);
    sweep_free(&w.read);
    trial_watch_end(&w.watch);
    *out = w.sweep;
    return failed;
}

int command_sweep(const struct options *o, struct err *err)
{
    struct sweep swept;
    if (check_usage(o, err) != 0 || check_outputs(o, err) != 0)
        return -1;
    if (o->merge)
        return merge(o, err);
    const int failed = sweep_kernel(o, o->files[0], o->output, NULL, &swept, err);
    const int status = failed ? -1 : write_results(o, &swept, err);
    sweep_free(&swept);
    return status;
}
