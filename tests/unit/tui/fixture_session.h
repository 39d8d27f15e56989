/* Hand-made sessions: fixed numbers instead of a run, so that a view's text depends on the view alone. The session's
   verbs are simple stand-ins here; the trace and the judgement's accessors are the real ones. */
#ifndef UNIT_FIXTURE_SESSION_H
#define UNIT_FIXTURE_SESSION_H

#include "engine/session/look.h"
#include "engine/session/session.h"
#include "engine/session/work.h"
#include "engine/verdict/reports.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the stand-in verbs were asked to do. */
static struct {
    int started, cancelled, saved, isolated, watching, asked, sought, busy, fd;
    int rerun; /* 1: a started run is over at once and U is off in it */
    char saved_path[256];
} fixture;

struct fixture_shape {
    int batch, heads, q_len, kv_len, head_dim, tile;
};

static const char fixture_source[] = "#include \"attnscope.h\"\n"
                                     "// scalar dot products, streaming softmax\n"
                                     "__global__ void attention(asc_problem p)\n"
                                     "{\n"
                                     "    for (int kt = 0; kt < tiles; kt++) {\n"
                                     "        float s0 = 0, s1 = 0;\n"
                                     "        for (int d = 0; d < D; d++) {\n"
                                     "\t\tfloat qv = __half2float(sQ[row * LD + d]);\n"
                                     "            s0 += qv * __half2float(sK[lane * LD + d]);\n"
                                     "            s1 += qv * __half2float(sK[(lane + 32) * LD + d]);\n"
                                     "        }\n"
                                     "        s0 *= p.scale * p.scale; s1 *= p.scale * p.scale;\n"
                                     "        ASC_RECORD(s, kt, i, 2, row, lane + 32 * i, s01[i]);\n"
                                     "        float mo = sm[row], mn = fmaxf(mo, warp_max(fmaxf(s0, s1)));\n"
                                     "    }\n"
                                     "}\n";

static struct trace *fixture_trace(const struct fixture_shape *shape, int n_slots)
{
    struct asc_problem p = {.batch = shape->batch,
                            .heads = shape->heads,
                            .kv_heads = shape->heads,
                            .q_len = shape->q_len,
                            .kv_len = shape->kv_len,
                            .head_dim = shape->head_dim,
                            .dtype = DTYPE_F16,
                            .window_left = -1,
                            .window_right = -1,
                            .scale = 0.125f};
    const struct asc_plan plan = {.br = shape->tile, .bc = shape->tile, .threads = 128};
    const struct asc_conventions conventions = {0};
    struct layout_types types = {.o = DTYPE_F16};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    types.channel[asc_q] = types.channel[asc_k] = types.channel[asc_v] = types.channel[asc_o] = DTYPE_F16;
    const int q_tiles = (p.q_len + plan.br - 1) / plan.br;
    int32_t(*slots)[3] = calloc((size_t)n_slots, sizeof *slots);
    for (int i = 0; i < n_slots; i++) {
        slots[i][0] = i / q_tiles / p.heads;
        slots[i][1] = i / q_tiles % p.heads;
        slots[i][2] = i % q_tiles;
    }
    const size_t longest = (size_t)(p.q_len > p.kv_len ? p.q_len : p.kv_len);
    void *zeros = calloc((size_t)p.batch * (size_t)p.heads * longest * (size_t)p.head_dim, 2);
    struct trace *t = NULL;
    struct err err;
    if (trace_create(&p, &plan, &conventions, &types, (const int32_t(*)[3])slots, n_slots, zeros, zeros, zeros, &t,
                     &err) != 0) {
        fprintf(stderr, "trace_create: %s\n", err.message);
        abort();
    }
    free(zeros);
    free(slots);
    snprintf(t->info.kernel, sizeof t->info.kernel, "v2b_scalar");
    snprintf(t->info.source_name, sizeof t->info.source_name, "kernels/v2b_scalar.cu");
    t->info.source = strdup(fixture_source);
    snprintf(t->info.scenario_name, sizeof t->info.scenario_name, "double-scale");
    snprintf(t->info.backend, sizeof t->info.backend, "cpu");
    snprintf(t->info.status, sizeof t->info.status, "complete");
    t->lse_found = TRACE_LSE_WRITTEN;
    t->info.workers = 2;
    t->info.seconds = 0.41;
    free(t->info.sites);
    t->info.sites = calloc(1, sizeof *t->info.sites);
    t->info.n_sites = 1;
    t->info.sites[0] = (struct trace_site){.channel = asc_s, .line = 13, .file = "kernels/v2b_scalar.cu"};
    return t;
}

static void fixture_verdict(struct verdict *v, enum element_class class, int bad, int total)
{
    memset(v, 0, sizeof *v);
    v->judged = v->visited = 1;
    v->count[class] = (uint32_t)bad;
    v->count[CLASS_OK] += (uint32_t)(total - bad);
    v->ratio_median = class == CLASS_OFF ? 0.125f : 1.0f;
    v->ratio_spread = 0;
    v->mean_error = class == CLASS_OFF ? -0.0012f : 0.0f;
    v->worst_ratio = class == CLASS_OFF ? 1.4e5f : 0.07f;
}

/* Every slot judged: `culprit` (-1: none) is off everywhere, what follows it only by the truth. */
static void fixture_judge(struct session *s, int culprit, int n_done)
{
    struct judgement *j = s->judgement;
    const struct trace *t = s->trace;
    for (int slot = 0; slot < n_done; slot++) {
        for (int kv = 0; kv < j->kv_tiles; kv++) {
            for (int ch = 0; ch < ASC_CHANNELS; ch++) {
                if (kv > 0 && !channel_per_kv(ch))
                    continue;
                struct tile_verdicts *v =
                    &j->tiles[((size_t)slot * (size_t)j->kv_tiles + (size_t)kv) * ASC_CHANNELS + (size_t)ch];
                const int total = channel_rows(ch, &t->plan) * channel_cols(ch, &t->plan, &t->problem);
                fixture_verdict(&v->local, ch == culprit ? CLASS_OFF : CLASS_OK, ch == culprit ? total : 0, total);
                const int wrong = culprit >= 0 && ch >= culprit;
                fixture_verdict(&v->global, wrong ? CLASS_OFF : CLASS_OK, wrong ? total : 0, total);
            }
        }
        atomic_store(&j->slot_done[slot], 1);
    }
    atomic_store(&j->n_done, n_done);
    judgement_summarise(j, t, &j->summary);
}

static void fixture_find(struct session *s)
{
    struct finding *f = &s->judgement->findings[0];
    *f = (struct finding){.channel = asc_s, .first = s->judgement->summary.first, .cause = CAUSE_s_scaled_twice};
    f->evidence = (struct cause_evidence){
        .elements = 2097152, .explained = 2097152, .rounding = 63, .discriminating = 2097089, .applicable = 1};
    snprintf(f->text, sizeof f->text,
             "S = scale² · q kᵀ explains 100%% of 2097152 (rounding 0.003%%): scores are scaled twice");
    s->judgement->n_findings = 1;
    s->finding = f;
}

/* What the cursor's element was made from: of S 64 products, of other stages two steps. */
static void fixture_operands(struct session *s)
{
    struct derivation *d = &s->operands;
    const struct tile_detail *tile = &s->detail;
    derivation_free(d);
    if (!tile->got || s->cursor.row >= tile->rows || s->cursor.col >= tile->cols)
        return;
    const size_t i = (size_t)s->cursor.row * (size_t)tile->cols + (size_t)s->cursor.col;
    *d = (struct derivation){.derived = DERIVED_YES,
                             .channel = s->cursor.channel,
                             .row = s->cursor.row,
                             .col = s->cursor.col,
                             .got = tile->got[i],
                             .want_local = tile->want_local[i],
                             .want_global = tile->want_global[i],
                             .recorded = 1};
    struct derivation_step *step = d->step;
    d->n_steps = 2;
    step[0] = (struct derivation_step){"sum of q·k", "in float64", 8 * d->want_local, 8 * d->want_global, 1, 1, 0};
    step[1] = (struct derivation_step){"factor", "", 0.125, 0.125, 1, 1, 0};
    if (s->cursor.channel != asc_s) {
        step[0] = (struct derivation_step){"m before", "", 0.31, 2.0, 1, 1, 0};
        step[1] = (struct derivation_step){"m", "", 0.31, 2.1, 1, 1, 1};
        return;
    }
    d->n_terms = 64;
    d->terms = calloc(64, sizeof *d->terms);
    d->index = "d";
    d->factor[0] = "q";
    d->factor[1] = "k";
    d->n_factors = 2;
    for (int k = 0; k < 64; k++) {
        const double q = (k % 2 ? -1 : 1) * (2.5 - 0.03 * k), x = 1.5 - 0.02 * k;
        d->terms[k] = (struct derivation_term){k * 29 % 64, {q, x}, {q, x}, q * x, q * x};
        d->size_got += fabs(q * x);
    }
}

/* The cursor's tile: wanted values from a small formula, captured ones an eighth of them where the stage is off. */
static void fixture_detail(struct session *s)
{
    judgement_detail_free(&s->detail);
    const struct place place = session_place(s);
    if (place.slot < 0 || !judgement_slot_done(s->judgement, place.slot) ||
        s->trace->layout.channel[place.channel].dtype < 0)
        return;
    const struct tile_verdicts *v = judgement_tile(s->judgement, place);
    struct tile_detail *d = &s->detail;
    const struct asc_problem *p = &s->trace->problem;
    d->channel = (int)place.channel;
    d->kv = place.kv;
    d->rows = channel_valid_rows(place.channel, p, &s->trace->plan, s->cursor.q_tile, place.kv);
    d->cols = channel_valid_cols(place.channel, p, &s->trace->plan, place.kv);
    const size_t n = (size_t)d->rows * (size_t)d->cols;
    /* As judgement_detail lays it out: one block of numbers, one of classes. */
    d->got = calloc(n * 5, sizeof *d->got);
    d->want_local = d->got + n;
    d->bound_local = d->got + 2 * n;
    d->want_global = d->got + 3 * n;
    d->bound_global = d->got + 4 * n;
    d->class_local = calloc(n * 2, 1);
    d->class_global = d->class_local + n;
    for (size_t i = 0; i < n; i++) {
        const double value = (double)((int)(i * 37 % 199) - 99) / 31.0;
        d->want_local[i] = d->want_global[i] = value;
        d->bound_local[i] = d->bound_global[i] = 2e-5;
        const int local = v->local.count[CLASS_OFF] > 0, global = v->global.count[CLASS_OFF] > 0;
        d->got[i] = local || global ? value / 8 : value + 1e-6;
        if (global && !local)
            d->want_local[i] = d->got[i];
        d->class_local[i] = local ? CLASS_OFF : CLASS_OK;
        d->class_global[i] = global ? CLASS_OFF : CLASS_OK;
    }
    fixture_operands(s);
}

/* m, alpha and l of every row, so that the curves have something to show. */
static void fixture_state(struct session *s)
{
    static const enum asc_channel channels[] = {asc_m, asc_alpha, asc_l};
    const int kv_tiles = s->trace->layout.kv_tiles;
    /* The session's own mapping is read-only, as a kernel's writes come from elsewhere. */
    unsigned char *bytes = mmap(NULL, s->trace->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->trace->fd, 0);
    if (bytes == MAP_FAILED)
        abort();
    for (int i = 0; i < 3; i++) {
        const enum asc_channel ch = channels[i];
        s->row_want[ch] = calloc((size_t)kv_tiles, sizeof(double));
        for (int kv = 0; kv < kv_tiles; kv++) {
            s->row_want[ch][kv] = ch == asc_l ? 41.0 - kv : ch == asc_m ? 2.0 + 0.1 * kv : kv ? 0.9 : 0.0;
            for (int slot = 0; slot < s->trace->layout.n_slots; slot++) {
                const struct tile tile = trace_tile(s->trace, ch, slot, kv);
                unsigned char *data = bytes + ((const unsigned char *)tile.data - s->trace->bytes);
                for (int r = 0; r < tile.rows; r++)
                    dtype_store(tile.dtype, data, (size_t)r,
                                ch == asc_l   ? 47.0 * (kv + 1)
                                : ch == asc_m ? 0.31
                                              : kv > 0);
            }
        }
    }
    munmap(bytes, s->trace->n_bytes);
}

static struct session *fixture_new(void)
{
    struct session *s = calloc(1, sizeof *s);
    memset(&fixture, 0, sizeof fixture);
    fixture.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct err err;
    s->scratch = judge_scratch_new();
    if (!s->scratch || work_new(&s->work, &err) != 0) /* what views ask for is worked on as in a real session */
        abort();
    s->has_scenario = 1;
    snprintf(s->title, sizeof s->title, "v2b_scalar + double-scale.patch");
    s->cursor.channel = asc_s;
    s->scenario.problem = (struct asc_problem){.batch = 1,
                                               .heads = 8,
                                               .kv_heads = 8,
                                               .q_len = 512,
                                               .kv_len = 512,
                                               .head_dim = 64,
                                               .dtype = DTYPE_F16,
                                               .window_left = -1,
                                               .window_right = -1};
    return s;
}

static struct session *fixture_run(const struct fixture_shape *shape, int n_slots, int culprit, int n_done)
{
    struct session *s = fixture_new();
    s->trace = fixture_trace(shape, n_slots);
    if (judgement_new(s->trace, &s->judgement) != 0)
        abort();
    s->run_number = 3;
    fixture_judge(s, culprit, n_done);
    s->phase = PHASE_READY;
    s->made_run = 1;
    s->judgement->complete = n_done == n_slots;
    fixture_state(s);
    fixture_detail(s);
    return s;
}

static const struct fixture_shape fixture_mission = {1, 8, 512, 512, 64, 64};

/* The run of the first screen: S is off everywhere, all that follows is off by the truth only. */
static __attribute__((unused)) struct session *fixture_fail(void)
{
    struct session *s = fixture_run(&fixture_mission, 64, asc_s, 64);
    fixture_find(s);
    return s;
}

static void __attribute__((unused))
fixture_event(struct session *s, const char *kind, const char *text, const char *file, int line)
{
    struct trace_info *info = &s->trace->info;
    info->events = realloc(info->events, (info->n_events + 1) * sizeof *info->events);
    struct trace_event *e = &info->events[info->n_events++];
    *e = (struct trace_event){.batch = -1, .head = -1, .q_tile = -1, .kv_tile = -1, .line = line, .times = 1};
    snprintf(e->kind, sizeof e->kind, "%s", kind);
    snprintf(e->text, sizeof e->text, "%s", text);
    snprintf(e->file, sizeof e->file, "%s", file);
    s->at_event = info->events[0].line > 0;
}

static void fixture_free(struct session *s)
{
    if (!s)
        return;
    scenario_free(&s->scenario);
    session_drop_look(s);
    session_drop_states(s);
    judge_scratch_free(s->scratch);
    work_free(s->work);
    judgement_detail_free(&s->detail);
    derivation_free(&s->operands);
    pins_free(&s->pins);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        free(s->row_want[ch]);
    for (size_t i = 0; i < s->n_log; i++)
        free(s->log[i]);
    free(s->log);
    if (runs_index(&s->runs, s->runs.shown) < 0) { /* else they are the ring's */
        judgement_free(s->judgement);
        trace_free(s->trace);
    }
    runs_free(&s->runs);
    judgement_free(s->isolation.judgement);
    trace_free(s->isolation.trace);
    free(s);
    close(fixture.fd);
}

/* What every pinned element holds at each kv step: right by what came in and wrong by the truth, at k1 wrong by itself,
   at k2 never written. */
static void fixture_pins(struct session *s)
{
    for (int i = 0; i < s->pins.n; i++) {
        struct pin *pin = &s->pins.at[i];
        const size_t n = channel_per_kv(pin->at.channel) ? (size_t)s->trace->layout.kv_tiles : 1;
        if (pin->kv_tiles)
            continue;
        pin->kv_tiles = (int)n;
        pin->got = calloc(n * 5, sizeof *pin->got);
        pin->classes = calloc(n * 2, 1);
        for (size_t k = 0; k < 2; k++)
            pin->of[k] =
                (struct pin_values){pin->got + (1 + 2 * k) * n, pin->got + (2 + 2 * k) * n, pin->classes + k * n};
        for (size_t kv = 0; kv < n; kv++) {
            pin->got[kv] = kv == 2 ? NAN : 0.25 * (i + 1) + 0.125 * (double)kv;
            for (size_t k = 0; k < 2; k++) {
                const int wrong = k || kv == 1;
                pin->of[k].want[kv] = wrong ? 1.5 : pin->got[kv] + 1e-6;
                pin->of[k].bound[kv] = 2e-6;
                pin->of[k].class[kv] = kv == 2 ? CLASS_MISSING : wrong ? CLASS_OFF : CLASS_OK;
            }
        }
    }
}

/* Stand-ins for the session's verbs. */
void session_refresh_detail(struct session *s)
{
    fixture_detail(s);
    fixture_pins(s);
}

int session_studying(const struct session *s, double *share, double *seconds)
{
    (void)s, (void)share, (void)seconds;
    return 0;
}

int session_stop_study(struct session *s)
{
    (void)s;
    return 0;
}

int session_slot(const struct session *s)
{
    return s->trace ? trace_slot(s->trace, s->cursor.batch, s->cursor.head, s->cursor.q_tile) : -1;
}

struct place session_place(const struct session *s)
{
    return (struct place){session_slot(s), channel_per_kv(s->cursor.channel) ? s->cursor.kv_tile : 0,
                          s->cursor.channel};
}

const struct trace_site *session_site(const struct session *s)
{
    return s->trace ? trace_site(s->trace, s->cursor.channel) : NULL;
}

const struct trace_event *session_event(const struct session *s)
{
    const int32_t at[3] = {s->cursor.batch, s->cursor.head, s->cursor.q_tile};
    return s->trace ? reports_shown(s->trace, at, s->cursor.kv_tile) : NULL;
}

int session_at_report(const struct session *s)
{
    const int32_t at[3] = {s->cursor.batch, s->cursor.head, s->cursor.q_tile};
    return s->trace && reports_at(s->trace, at, s->cursor.kv_tile);
}

static int fixture_step(struct session *s, int *value, int by, int count)
{
    const int to = *value + by;
    if (to < 0 || to >= count) {
        snprintf(s->message, sizeof s->message, "no further");
        return 0;
    }
    s->message[0] = '\0';
    s->at_event = 0;
    *value = to;
    fixture_detail(s);
    return 1;
}

int session_step_stage(struct session *s, int by)
{
    int channel = (int)s->cursor.channel, moved = fixture_step(s, &channel, by, ASC_CHANNELS);
    s->cursor.channel = (enum asc_channel)channel;
    fixture_detail(s);
    return moved;
}

int session_step_head(struct session *s, int by)
{
    return fixture_step(s, &s->cursor.head, by, s->trace->problem.heads);
}

int session_step_q(struct session *s, int by)
{
    return fixture_step(s, &s->cursor.q_tile, by, s->trace->layout.q_tiles);
}

int session_step_kv(struct session *s, int by)
{
    return fixture_step(s, &s->cursor.kv_tile, by, s->trace->layout.kv_tiles);
}

int session_step_row(struct session *s, int by)
{
    return fixture_step(s, &s->cursor.row, by, s->detail.rows);
}

int session_step_col(struct session *s, int by)
{
    return fixture_step(s, &s->cursor.col, by, s->detail.cols);
}

int session_step_bad(struct session *s, int by)
{
    return session_step_kv(s, by);
}

int session_go_first_bad(struct session *s)
{
    s->cursor = (struct cursor){.channel = asc_s};
    fixture_detail(s);
    return 1;
}

int session_step_order(struct session *s, int by)
{
    return session_step_stage(s, by);
}

int session_step_visit(struct session *s, int by)
{
    return session_step_kv(s, by);
}

int session_step_element(struct session *s, int by)
{
    return session_step_col(s, by);
}

int session_go_cursor(struct session *s, const struct cursor *to)
{
    s->cursor = *to;
    s->message[0] = '\0';
    fixture_detail(s);
    return 1;
}

int session_jump_to(struct session *s, const struct cursor *to)
{
    jumps_note(&s->jumps, &s->cursor);
    return session_go_cursor(s, to);
}

int session_go_mark(struct session *s, uint32_t letter)
{
    const struct cursor *mark = jumps_mark(&s->jumps, letter);
    if (mark)
        return session_jump_to(s, mark);
    snprintf(s->message, sizeof s->message, "no mark '%c'", (int)letter);
    return 0;
}

int session_jump(struct session *s, int by)
{
    struct cursor to;
    if (by < 0 ? jumps_back(&s->jumps, &s->cursor, &to) : jumps_forward(&s->jumps, &s->cursor, &to))
        return session_go_cursor(s, &to);
    snprintf(s->message, sizeof s->message, "no jump");
    return 0;
}

int session_add_stop(struct session *s, const char *text)
{
    struct err err;
    if (stop_parse(text, &s->stops[s->n_stops], &err) != 0) {
        snprintf(s->message, sizeof s->message, "%.250s", err.message);
        return 0;
    }
    s->n_stops++;
    return 1;
}

void session_remove_stop(struct session *s, int i)
{
    (void)i;
    s->n_stops--;
}

int session_seek(struct session *s, int by)
{
    fixture.sought += by;
    snprintf(s->message, sizeof s->message, "looking for %d conditions", s->n_stops);
    return 1;
}

int session_go_worst(struct session *s)
{
    s->cursor.row = 5;
    s->cursor.col = 7;
    return 1;
}

void session_cycle_shown(struct session *s)
{
    s->shown = (s->shown + 1) % SHOW_COUNT;
}

int session_start(struct session *s)
{
    fixture.started++;
    fixture.busy = 1;
    if (s->trace)
        snprintf(s->trace->info.checks, sizeof s->trace->info.checks, "%s", s->scenario.checks ? "on" : "");
    s->phase = PHASE_RUNNING;
    snprintf(s->activity, sizeof s->activity, "running");
    const uint64_t one = 1;
    if (fixture.rerun && write(fixture.fd, &one, sizeof one) < 0)
        abort();
    return 0;
}

int session_rerun(struct session *s)
{
    return session_start(s);
}

int session_set(struct session *s, const char *key, const char *value, struct err *err)
{
    return fixture.busy ? err_set(err, ERR_USAGE, "", "a run is under way: x stops it")
                        : scenario_set(&s->scenario, key, value, err);
}

const struct scenario *session_made_by(const struct session *s)
{
    return &s->scenario;
}

int session_subject(const struct session *s, char *out, size_t bytes, int *edited)
{
    (void)s;
    *edited = 0;
    snprintf(out, bytes, "fixture.ini");
    return 0;
}

int session_isolate(struct session *s, const struct isolation_request *request)
{
    fixture.isolated++;
    snprintf(s->message, sizeof s->message, "isolating %s", request->name);
    return 0;
}

int session_isolated(const struct session *s, struct isolation_result *out)
{
    if (!s->isolation.trace)
        return 0;
    *out = (struct isolation_result){&s->isolation.asked, &s->isolation.judgement->summary, &s->judgement->summary,
                                     s->trace};
    return 1;
}

void session_cancel(struct session *s)
{
    fixture.cancelled++;
    fixture.busy = 0;
    s->phase = PHASE_READY;
    const uint64_t one = 1;
    if (write(fixture.fd, &one, sizeof one) < 0)
        abort();
}

int session_fd(const struct session *s)
{
    (void)s;
    return fixture.fd;
}

int session_update(struct session *s)
{
    uint64_t count;
    if (read(fixture.fd, &count, sizeof count) != (ssize_t)sizeof count)
        return 0;
    if (fixture.rerun && fixture.busy) {
        fixture.busy = 0;
        s->run_number++;
        s->phase = PHASE_READY;
        fixture_judge(s, asc_u, s->judgement->n_slots);
    }
    return 1;
}

int session_busy(const struct session *s)
{
    (void)s;
    return fixture.busy;
}

int session_show_run(struct session *s, int number)
{
    const struct run *run = &s->runs.at[runs_index(&s->runs, number)];
    s->runs.before = s->runs.shown;
    s->runs.shown = s->run_number = number;
    s->trace = run->trace;
    s->judgement = run->judgement;
    s->finding = s->judgement->n_findings ? s->judgement->findings : NULL;
    change_find(runs_before(&s->runs, run), run, &s->change);
    s->phase = PHASE_READY;
    fixture_detail(s);
    return 0;
}

int session_flip(struct session *s)
{
    const struct run *other = runs_other(&s->runs);
    if (other)
        return session_show_run(s, other->number);
    snprintf(s->message, sizeof s->message, "there is no other run");
    return -1;
}

int session_name_run(struct session *s, int number, const char *name)
{
    struct run *run = &s->runs.at[runs_index(&s->runs, number)];
    snprintf(run->name, sizeof run->name, "%s", name);
    return 0;
}

void session_note_saved(struct session *s, int number, const char *path)
{
    const int i = runs_index(&s->runs, number);
    if (i >= 0)
        snprintf(s->runs.at[i].saved, sizeof s->runs.at[i].saved, "%s", path);
}

int session_watch(struct session *s, int on)
{
    (void)s;
    fixture.watching = on;
    return 0;
}

int session_watching(const struct session *s)
{
    (void)s;
    return fixture.watching;
}

void session_ask_rerun(struct session *s)
{
    (void)s;
    fixture.asked++;
}

int session_save(const struct session *s, const char *path, struct err *err)
{
    (void)s;
    (void)err;
    fixture.saved++;
    snprintf(fixture.saved_path, sizeof fixture.saved_path, "%s", path);
    FILE *file = fopen(path, "wx");
    if (!file)
        return err_errno(err, path, "can not be created");
    fclose(file);
    return 0;
}

int session_save_run(const struct session *s, int number, const char *path, struct err *err)
{
    (void)number;
    return session_save(s, path, err);
}

#endif
