/* attnscope shrink: the smallest part of a problem whose run is wrong in the same way. */
#include "cli/options.h"
#include "cli/report.h"

#include "engine/base/path.h"
#include "engine/base/replace.h"
#include "engine/scenario/keys.h"
#include "engine/verdict/judgement.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is wrong with a run, as far as a smaller one has to have it too. */
struct symptom {
    bool wrong;
    enum event_kind stopped; /* what ended the run */
    int culprit;             /* the first one: a channel, or CULPRIT_LOOP; -1: the values are right */
    enum event_kind event;   /* then what was reported first */
    char cause[64];          /* "": not known */
};

/* What can be cut: batches, heads, queries, keys. */
enum { BATCHES, HEADS, Q_ROWS, KV_ROWS, AXES };
static const struct {
    const char *cut, *length; /* keys: of inputs of files, of fills */
    const char *name;
} axes[AXES] = {{"inputs.batches", "shape.batch", "batches"},
                {"inputs.heads", "shape.heads", "heads"},
                {"inputs.q_rows", "shape.q_len", "queries"},
                {"inputs.kv_rows", "shape.kv_len", "keys"}};

struct shrinking {
    struct session *s; /* owned */
    struct symptom wanted;
    bool files; /* inputs are of files: a cut may begin anywhere */
    struct cut kept[AXES];
    int32_t *lens[2]; /* owned: queries and keys of each sequence of the whole problem, where the scenario lists them */
    int group;        /* heads that share a kv head */
    int runs;
};

static struct symptom symptom_of(const struct session *s)
{
    struct symptom out = {.culprit = -1};
    const struct judgement *j = s->run.judgement;
    const struct trace *t = s->run.trace;
    if (!t || !j || !j->complete)
        return out;
    out.stopped = t->info.stopped;
    for (int culprit = CULPRIT_LOOP; culprit >= 0; culprit--)
        if (j->summary.culprits & 1u << culprit)
            out.culprit = culprit;
    if (j->summary.culprits & 1u << CULPRIT_LOOP)
        out.culprit = CULPRIT_LOOP;
    if (j->n_findings)
        snprintf(out.cause, sizeof out.cause, "%s", finding_word(&j->findings[0], t));
    if (out.culprit < 0 && t->info.n_events)
        out.event = t->info.events[0].kind;
    out.wrong = out.stopped != EVENT_NONE || out.culprit >= 0 || out.event != EVENT_NONE;
    return out;
}

static bool same_symptom(const struct symptom *wanted, const struct symptom *found)
{
    if (!found->wrong || wanted->stopped != found->stopped)
        return false;
    return wanted->stopped != EVENT_NONE || (wanted->culprit == found->culprit && wanted->event == found->event &&
                                             (!wanted->cause[0] || strcmp(wanted->cause, found->cause) == 0));
}

static int lengths(const struct asc_problem *p, int axis)
{
    return axis == BATCHES ? p->batch : axis == HEADS ? p->heads : axis == Q_ROWS ? p->q_len : p->kv_len;
}

static int set_number(struct scenario *to, const char *key, int number, struct err *err)
{
    char value[16];
    snprintf(value, sizeof value, "%d", number);
    return scenario_set(to, key, value, err);
}

static const char *const lens_keys[2] = {"shape.q_lens", "shape.kv_lens"};

/* "5,3,0": what the cuts leave of a list of lengths; the caller's. NULL: memory ran out. */
static char *lens_words(const struct shrinking *k, int which, const struct cut cuts[AXES])
{
    enum { DIGITS = 12 };
    const struct cut *rows = &cuts[which ? KV_ROWS : Q_ROWS], *batches = &cuts[BATCHES];
    const size_t bytes = (size_t)(batches->end - batches->first) * DIGITS + 1;
    char *text = malloc(bytes);
    size_t n = 0;
    for (int b = batches->first; text && b < batches->end; b++) {
        const int left = (k->lens[which][b] < rows->end ? k->lens[which][b] : rows->end) - rows->first;
        n += (size_t)snprintf(text + n, bytes - n, "%s%d", n ? "," : "", left > 0 ? left : 0);
    }
    return text;
}

static int set_lens(struct shrinking *k, int which, const struct cut cuts[AXES], struct err *err)
{
    char *text = lens_words(k, which, cuts);
    const int failed = text ? scenario_set(&k->s->subject.scenario, lens_keys[which], text, err)
                            : err_no_memory(err, "", "the lengths of sequences");
    free(text);
    return failed;
}

/* Whether an axis is as long as lists of lengths say, and its own key not stated. */
static bool is_listed(const struct shrinking *k, int axis)
{
    static const enum scenario_key_id keys[AXES] = {KEY_BATCH, KEY_HEADS, KEY_Q_LEN, KEY_KV_LEN};
    const bool lists = axis == BATCHES   ? k->lens[0] || k->lens[1]
                       : axis == Q_ROWS  ? k->lens[0] != NULL
                       : axis == KV_ROWS ? k->lens[0] || k->lens[1]
                                         : false;
    return lists && !scenario_stated(&k->s->subject.scenario, keys[axis]);
}

static int set_cuts(struct shrinking *k, const struct cut cuts[AXES], struct err *err)
{
    struct scenario *to = &k->s->subject.scenario;
    char value[32];
    for (int i = 0; i < AXES; i++) {
        snprintf(value, sizeof value, "%d:%d", cuts[i].first, cuts[i].end);
        if (k->files          ? scenario_set(to, axes[i].cut, value, err)
            : is_listed(k, i) ? 0
                              : set_number(to, axes[i].length, cuts[i].end - (i == BATCHES) * cuts[i].first, err))
            return -1;
    }
    for (int which = 0; which < 2; which++)
        if (k->lens[which] && set_lens(k, which, cuts, err) != 0)
            return -1;
    if (!k->files && set_number(to, "shape.kv_heads", cuts[HEADS].end < k->group ? 1 : cuts[HEADS].end / k->group, err))
        return -1;
    return scenario_check(to, err);
}

static int run(struct shrinking *k, struct err *err)
{
    k->runs++;
    if (session_start(k->s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    session_finish(k->s, NULL);
    return 0;
}

/* 1: a run of these is wrong in the same way, 0: it is not, or there is none; -1 with *err. */
static int fails(struct shrinking *k, const struct cut cuts[AXES], struct err *err)
{
    char line[160];
    struct err refused = {0};
    if (set_cuts(k, cuts, &refused) != 0)
        return 0;
    const struct asc_problem *p = &k->s->subject.scenario.problem;
    snprintf(line, sizeof line, "shrinking: run %d, (%d,%d,%d,%d,%d)", k->runs + 1, p->batch, p->heads, p->q_len,
             p->kv_len, p->head_dim);
    text_progress(line);
    if (run(k, err) != 0)
        return -1;
    if (k->s->job.err.code == ERR_CANCELLED || k->s->job.err.code == ERR_SYSTEM) {
        *err = k->s->job.err;
        return -1;
    }
    if (k->s->job.err.code != ERR_NONE && k->s->job.err.code != ERR_RUN) /* the kernel does not take this shape */
        return 0;
    const struct symptom found = symptom_of(k->s);
    return same_symptom(&k->wanted, &found);
}

/* n of an axis, from its begin on, or those before its end. */
static int fails_with(struct shrinking *k, int axis, int n, bool at_end, struct err *err)
{
    struct cut cuts[AXES];
    if (axis == HEADS && n > k->group && n % k->group != 0) /* other groups would be another problem */
        return 0;
    memcpy(cuts, k->kept, sizeof cuts);
    struct cut *cut = &cuts[axis];
    if (at_end)
        cut->first = cut->end - n;
    else
        cut->end = cut->first + n;
    const int failed = fails(k, cuts, err);
    if (failed > 0)
        memcpy(k->kept, cuts, sizeof cuts);
    return failed;
}

/* The least that fails of a length, whose doublings are tried first: small runs take little time. Whole groups of
   heads, or parts of one. */
static int shrink_axis(struct shrinking *k, int axis, bool at_end, bool *shorter, struct err *err)
{
    const int all = k->kept[axis].end - k->kept[axis].first;
    int right = 0, wrong = all; /* lengths that do not fail, and do */
    for (int n = 1; n < all; n *= 2) {
        const int failed = fails_with(k, axis, n, at_end, err);
        if (failed < 0)
            return -1;
        if (failed) {
            wrong = n;
            break;
        }
        right = n;
    }
    while (wrong - right > 1) {
        const int n = right + (wrong - right) / 2, failed = fails_with(k, axis, n, at_end, err);
        if (failed < 0)
            return -1;
        if (failed)
            wrong = n;
        else
            right = n;
    }
    *shorter |= wrong < all;
    return 0;
}

/* What is filled begins anew for every problem; but of sequences that are listed any may be left out. */
static bool may_begin_later(const struct shrinking *k, int axis)
{
    return k->files || (axis == BATCHES && (k->lens[0] || k->lens[1]));
}

/* Where the mistake begins is tried first: its batch, its heads, its rows. */
static int guess(struct shrinking *k, struct err *err)
{
    const struct judgement *j = k->s->run.judgement;
    const struct trace *t = k->s->run.trace;
    if (j->summary.first.slot < 0)
        return 0;
    const int32_t *at = trace_slot_place(t, j->summary.first.slot);
    const int one[AXES] = {1, 1, t->plan.br, t->plan.bc}, place[AXES] = {at[0], at[1], at[2], j->summary.first.kv};
    for (int axis = 0; axis < AXES; axis++) {
        struct cut cuts[AXES];
        if (!may_begin_later(k, axis))
            continue;
        memcpy(cuts, k->kept, sizeof cuts);
        const int begin = cuts[axis].first + place[axis] * one[axis];
        cuts[axis] = (struct cut){begin, begin + one[axis] < cuts[axis].end ? begin + one[axis] : cuts[axis].end};
        const int failed = fails(k, cuts, err);
        if (failed < 0)
            return -1;
        if (failed)
            memcpy(k->kept, cuts, sizeof cuts);
    }
    return 0;
}

/* The least length of one sequence that fails, whose others stay as they are. */
static int shrink_sequence(struct shrinking *k, int which, int b, bool *shorter, struct err *err)
{
    int32_t *length = &k->lens[which][b];
    const struct cut *rows = &k->kept[which ? KV_ROWS : Q_ROWS];
    const int all = *length < rows->end ? *length : rows->end;
    int right = rows->first - 1, wrong = all; /* lengths that do not fail, and do */
    for (int step = 1; wrong - right > 1;) {
        const int n = wrong == all && right + step < all ? right + step : right + (wrong - right) / 2;
        *length = n;
        const int failed = fails(k, k->kept, err);
        if (failed < 0)
            return -1;
        if (failed)
            wrong = n;
        else
            right = n;
        step *= 2;
    }
    *length = wrong;
    *shorter |= wrong < all;
    return 0;
}

static int shrink(struct shrinking *k, struct err *err)
{
    if (guess(k, err) != 0)
        return -1;
    for (bool shorter = true; shorter;) {
        shorter = false;
        for (int axis = 0; axis < AXES; axis++)
            for (int at_end = 0; at_end < (may_begin_later(k, axis) ? 2 : 1); at_end++)
                if (k->kept[axis].end - k->kept[axis].first > 1 &&
                    shrink_axis(k, axis, at_end != 0, &shorter, err) != 0)
                    return -1;
        for (int which = 0; which < 2; which++)
            for (int b = k->kept[BATCHES].first; k->lens[which] && b < k->kept[BATCHES].end; b++)
                if (shrink_sequence(k, which, b, &shorter, err) != 0)
                    return -1;
    }
    enum { AGAIN = 5 };
    int right = 0; /* the last run is shown and written */
    for (int i = 0; i < AGAIN; i++) {
        const int failed = fails(k, k->kept, err);
        if (failed < 0)
            return -1;
        right += failed == 0;
    }
    if (!right)
        return 0;
    const struct asc_problem *p = &k->s->subject.scenario.problem;
    return err_set(err, ERR_RUN, "",
                   "the kernel is not deterministic: (%d,%d,%d,%d,%d) failed in this way, and did not in %d of %d more "
                   "runs",
                   p->batch, p->heads, p->q_len, p->kv_len, p->head_dim, right, AGAIN);
}

static void unstate(struct scenario *s, int id)
{
    free(s->said[id]);
    s->said[id] = NULL;
    s->stated[id] = false;
}

/* The whole problem is run without what names places of it, or what is expected there. Lengths are those of files,
   where there are any. */
static void forget_places(struct scenario *s)
{
    const bool files = scenario_has_inputs(s);
    struct scenario fresh;
    scenario_init(&fresh);
    for (int id = 0; id < KEY_COUNT; id++)
        if (scenario_keys[id].section == SECTION_EXPECT || id == KEY_BATCHES || id == KEY_CAPTURED_HEADS ||
            id == KEY_Q_TILES || (files && id >= KEY_BATCH && id <= KEY_HEAD_DIM) ||
            (files && scenario_keys[id].section == SECTION_FILL))
            unstate(s, id);
    s->expect = fresh.expect;
    free(s->capture.batches);
    free(s->capture.heads);
    free(s->capture.q_tiles);
    s->capture.batches = s->capture.heads = s->capture.q_tiles = NULL;
    s->capture.n_batches = s->capture.n_heads = s->capture.n_q_tiles = 0;
}

static int expect_it(struct shrinking *k, struct err *err)
{
    struct scenario *to = &k->s->subject.scenario;
    char names[128];
    if (scenario_set(to, "expect.verdict", "fail", err) != 0)
        return -1;
    if (k->wanted.stopped != EVENT_NONE)
        return scenario_set(to, "expect.stopped", event_name(k->wanted.stopped), err);
    culprits_words(k->s->run.judgement->summary.culprits, names, sizeof names);
    if (scenario_set(to, "expect.culprits", names[0] ? names : "none", err) != 0 ||
        (k->wanted.event != EVENT_NONE && scenario_set(to, "expect.event", event_name(k->wanted.event), err) != 0))
        return -1;
    return cause_from_name(k->wanted.cause) >= 0 ? scenario_set(to, "expect.cause", k->wanted.cause, err) : 0;
}

static void shape_words(const struct asc_problem *p, char out[96])
{
    snprintf(out, 96, "(%d,%d/%d,%d,%d,%d)", p->batch, p->heads, p->kv_heads, p->q_len, p->kv_len, p->head_dim);
}

static int begin(struct shrinking *k, const struct options *o, struct err *err)
{
    struct scenario *scenario = &k->s->subject.scenario;
    if (!k->s->subject.has_scenario)
        return err_set(err, ERR_INPUT, o->files[0],
                       "is a saved trace: attnscope shrink KERNEL.cu --inputs %s runs a kernel on its inputs",
                       path_name(o->files[0]));
    if (o->output && !path_ends_in(o->output, ".ini"))
        return err_set(err, ERR_USAGE, "--save", "expected a scenario's path, which ends in .ini, found '%s'",
                       o->output);
    if (o->output && access(o->output, F_OK) == 0)
        return err_set(err, ERR_INPUT, o->output, "exists; it is not replaced");
    struct replacement probe; /* a folder that is not there is said before the work */
    if (o->output && replace_open(&probe, o->output, 0666, err) != 0)
        return -1;
    if (o->output)
        replace_drop(&probe);
    forget_places(scenario);
    if (run(k, err) != 0)
        return -1;
    if (!k->s->run.trace) {
        *err = k->s->job.err;
        return -1;
    }
    k->wanted = symptom_of(k->s);
    if (!k->wanted.wrong) {
        report_write(k->s, text_out());
        return err_set(err, ERR_INPUT, o->files[0],
                       "there is nothing to shrink: no stage of this run is wrong, and nothing was reported");
    }
    const struct asc_problem *p = &k->s->run.trace->problem;
    const struct inputs *in = &scenario->inputs;
    const struct cut cuts[AXES] = {in->batches, in->heads, in->q_rows, in->kv_rows};
    k->files = scenario_has_inputs(scenario);
    k->group = p->heads / p->kv_heads;
    for (int i = 0; i < AXES; i++)
        k->kept[i] = cuts[i].end ? cuts[i] : (struct cut){0, lengths(p, i)};
    for (int which = 0; which < 2; which++) {
        const size_t n = (size_t)scenario->n_lens[which];
        if (!n || (k->files && cuts[BATCHES].end)) /* lists of what is cut already stay as they are */
            continue;
        k->lens[which] = malloc(n * sizeof *k->lens[which]);
        if (!k->lens[which])
            return err_no_memory(err, "", "the lengths of sequences");
        memcpy(k->lens[which], scenario->lens[which], n * sizeof *k->lens[which]);
    }
    return 0;
}

static int write_result(struct shrinking *k, const struct options *o, const char *before, struct err *err)
{
    char after[96];
    shape_words(&k->s->run.trace->problem, after);
    report_write(k->s, text_out());
    fprintf(text_out(), "shrunk %s to %s in %d runs", before, after, k->runs);
    for (int i = 0; i < AXES && k->files; i++)
        fprintf(text_out(), "%s%s %d:%d", i ? ", " : ": ", axes[i].name, k->kept[i].first, k->kept[i].end);
    for (int which = 0; which < 2; which++) {
        char *lens = k->lens[which] ? lens_words(k, which, k->kept) : NULL;
        if (lens)
            fprintf(text_out(), ", %s %s", strchr(lens_keys[which], '.') + 1, lens);
        free(lens);
    }
    fputs("\n", text_out());
    if (!o->output)
        return 0;
    if (expect_it(k, err) != 0 || scenario_write(&k->s->subject.scenario, o->output, err) != 0)
        return -1;
    text_inline(text_out(), "wrote %s", o->output);
    fputs("\n", text_out());
    return 0;
}

int command_shrink(const struct options *o, struct err *err)
{
    struct shrinking k = {0};
    char before[96];
    if (options_open(o, o->files[0], &k.s, err) != 0)
        return -1;
    int status = begin(&k, o, err);
    if (status == 0) {
        shape_words(&k.s->run.trace->problem, before);
        status = shrink(&k, err);
        text_progress("");
    }
    if (status == 0)
        status = write_result(&k, o, before, err);
    session_free(k.s);
    free(k.lens[0]);
    free(k.lens[1]);
    return status;
}
