/* `--json`: docs/check-json.md says what each key means, docs/check.schema.json what may stand there. */
#include "cli/report.h"

#include "engine/base/json_memory.h"
#include "engine/base/tensor_core.h"
#include "engine/base/utf8.h"
#include "engine/run/resources.h"
#include "engine/session/look.h"
#include "engine/trace/own_values.h"
#include "engine/trace/trace_file.h"
#include "engine/verdict/again.h"
#include "engine/verdict/element_code.h"
#include "engine/verdict/exactness.h"
#include "engine/verdict/facts.h"
#include "engine/verdict/masks.h"
#include "engine/verdict/onset.h"
#include "engine/verdict/states.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *channels_json(unsigned set)
{
    json_t *json = json_array();
    for (int i = 0; i <= CULPRIT_LOOP; i++)
        if (set & 1u << i)
            json_array_append_new(json, json_string(culprit_name(i)));
    return json;
}

static json_t *place_json(const struct session *s, struct place place)
{
    return report_json_place(s, (int)place.channel, place);
}

static void put_stated(json_t *json, const char *key, const char *text)
{
    if (text[0])
        json_object_set_new(json, key, report_json_text(text));
}

static json_t *expect_json(const struct session *s)
{
    static const char *const verdict[] = {
        [EXPECT_NOTHING] = "nothing", [EXPECT_CLEAN] = "clean", [EXPECT_FAIL] = "fail"};
    const struct expect *e = &s->subject.scenario.expect;
    if (!s->subject.has_scenario)
        return json_pack("{s:s}", "verdict", verdict[EXPECT_NOTHING]);
    json_t *json = json_pack("{s:s}", "verdict", verdict[e->verdict]), *first = json_object();
    if (e->first_channel >= 0)
        json_object_set_new(first, "channel", json_string(culprit_name(e->first_channel)));
    report_json_put_at(first, e->first, e->first[3]);
    if (json_object_size(first))
        json_object_set(json, "first", first);
    json_decref(first);
    if (e->culprits || e->no_culprits)
        json_object_set_new(json, "culprits", channels_json(e->culprits));
    if (e->bias || e->no_bias)
        json_object_set_new(json, "bias", channels_json(e->bias));
    put_stated(json, "cause", e->cause);
    char events[EVENT_SET_BYTES];
    report_events_words(e->events, e->no_event, events);
    put_stated(json, "event", events);
    put_stated(json, "event_at", e->event_at);
    report_events_words(e->stopped, false, events);
    put_stated(json, "stopped", events);
    return json;
}

/* All verdicts on one channel, added up. */
struct total {
    uint64_t elements, unjudged, count[CLASS_COUNT];
    double worst; /* of error / bound */
};

static void add_verdict(struct total *t, const struct verdict *v)
{
    for (int class = 0; class < CLASS_COUNT; class ++) {
        t->count[class] += v->count[class];
        t->elements += v->count[class];
    }
    t->unjudged += v->unjudged;
    t->worst = error_larger(t->worst, verdict_worst(v));
}

static json_t *total_json(const struct total *t, enum stage_status mark, uint64_t bad)
{
    static const char *const marks[] = {[STAGE_OK] = "ok",
                                        [STAGE_BAD] = "bad",
                                        [STAGE_UNRECORDED] = "unrecorded",
                                        [STAGE_PARTIAL] = "partial",
                                        [STAGE_UNKNOWN] = "unknown"};
    static const char *const names[CLASS_COUNT] = {
#define CLASS(id, name, utf8, ascii, style, meaning) name,
#define STATUS(id, name, glyph, style, meaning)
#include "engine/oracle/statuses.def"
#undef STATUS
#undef CLASS
    };
    json_t *counts = json_object();
    for (int class = 0; class < CLASS_COUNT; class ++)
        json_object_set_new(counts, names[class], json_integer((json_int_t)t->count[class]));
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "mark", marks[mark], "elements", (json_int_t)t->elements,
                     "unjudged", (json_int_t)t->unjudged, "bad", (json_int_t)bad, "classes", counts, "worst_ratio",
                     report_json_number(t->worst));
}

/* What became of a declared tensor core; NULL: none is. */
static json_t *exactness_json(const struct session *s, enum asc_channel ch)
{
    struct exactness x;
    char words[256];
    if (!exactness_of(s->run.judgement, s->run.trace, ch, &x))
        return NULL;
    json_t *models = json_array();
    for (int m = 0; m < TENSOR_CORE_COUNT; m++)
        if (x.models >> m & 1)
            json_array_append_new(models, json_string(tensor_core_name((enum tensor_core)m)));
    exactness_words(s->run.judgement, s->run.trace, ch, words, sizeof words);
    return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "declared", x.declared, "bit_equal_to", models,
                     "text", words, "tiles", (json_int_t)x.tiles.judged, "exact_tiles", (json_int_t)x.tiles.n, "off",
                     (json_int_t)x.tiles.off, "unequal", (json_int_t)x.tiles.unequal, "unequal_tiles",
                     (json_int_t)x.tiles.unequal_tiles, "first_unequal", place_json(s, x.tiles.first_unequal));
}

static json_t *stage_json(const struct session *s, enum asc_channel ch)
{
    const struct judgement *j = s->run.judgement;
    const struct stage_summary *stage = &j->summary.stage[ch];
    struct total local = {0}, global = {0};
    for (int slot = 0; slot < j->n_slots; slot++) {
        if (!judgement_slot_done(j, slot))
            continue;
        for (int kv = 0; kv < (channel_per_kv(ch) ? j->kv_tiles : 1); kv++) {
            const struct tile_verdicts *v = judgement_tile(j, (struct place){slot, kv, ch});
            add_verdict(&local, &v->local);
            add_verdict(&global, &v->global);
        }
    }
    json_t *json =
        json_pack("{s:o, s:o, s:o}", "local", total_json(&local, stage->local, stage->bad_local), "global",
                  total_json(&global, stage->global, stage->bad_global), "first", place_json(s, stage->first_local));
    json_t *exactness = exactness_json(s, ch);
    if (exactness)
        json_object_set_new(json, "tensor_core", exactness);
    return json;
}

struct fact_list {
    const struct trace *t;
    json_t *json;
};

static void add_words(void *ctx, const struct run_fact *fact)
{
    const struct fact_list *to = ctx;
    json_array_append_new(to->json, report_json_text(fact->words));
}

static void add_fact(void *ctx, const struct run_fact *fact)
{
    const struct fact_list *to = ctx;
    char line[FACT_LINE_BYTES];
    run_fact_line(to->t, fact, line);
    json_array_append_new(to->json,
                          json_pack("{s:s, s:o}", "kind", run_fact_name(fact->kind), "text", report_json_text(line)));
}

/* What the report in text says, line by line. */
static json_t *facts_json(const struct session *s, unsigned kinds, run_fact_take *take)
{
    struct fact_list to = {s->run.trace, json_array()};
    run_facts(s->run.judgement, s->run.trace, kinds, take, &to);
    return to.json;
}

/* Values that the kernel wrote and that the trace has no place for. */
static json_t *lost_json(const struct trace *t)
{
    json_t *json = json_array();
    for (int ch = 0; ch < ASC_CHANNELS + plan_values(&t->plan); ch++)
        if (trace_dropped(t, ch) || trace_mistyped(t, ch))
            json_array_append_new(json, json_pack("{s:s, s:I, s:I}", "channel",
                                                  plan_channel_name(&t->plan, (enum asc_channel)ch), "out_of_range",
                                                  (json_int_t)trace_dropped(t, ch), "mistyped",
                                                  (json_int_t)trace_mistyped(t, ch)));
    return json;
}

/* The expectation a part at a time. */
static json_t *parts_json(const struct session *s)
{
    const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};
    struct expect_parts parts;
    judgement_parts(s->run.judgement, s->run.trace, s->subject.has_scenario ? &s->subject.scenario.expect : &nothing,
                    &parts);
    return json_pack("{s:s, s:s, s:s}", "stage", expect_part_word(parts.stage), "tile", expect_part_word(parts.tile),
                     "finding", expect_part_word(parts.finding));
}

/* Tiles that were never visited; the list ends somewhere, the count does not. */
static json_t *left_out_json(const struct session *s)
{
    enum { LISTED = 256 };
    json_t *list = json_array();
    struct place at = {0};
    struct left_out it;
    for (int n = 0; n < LISTED && judgement_left_out(s->run.judgement, s->run.trace, &at, &it); n++) {
        json_t *json = json_object();
        report_json_put_at(json, trace_slot_place(s->run.trace, it.place.slot), it.place.kv);
        json_object_set_new(json, "first_row", json_integer(it.first_row));
        json_object_set_new(json, "last_row", json_integer(it.last_row));
        json_array_append_new(list, json);
    }
    return json_pack("{s:I, s:o}", "tiles", (json_int_t)s->run.judgement->summary.unvisited, "first", list);
}

static json_t *mask_name_json(const struct mask_name *name)
{
    const struct mask_evidence *e = &name->evidence;
    char words[128];
    mask_name_words(name, words, sizeof words);
    return json_pack("{s:s, s:s, s:i, s:{s:I, s:I, s:I, s:I}}", "name", mask_shift_name(name->shift), "sentence", words,
                     "keys", mask_shift_moves(name->shift) ? name->by : 0, "evidence", "elements",
                     (json_int_t)e->elements, "explained", (json_int_t)e->explained, "discriminating",
                     (json_int_t)e->telling, "rows", (json_int_t)e->rows);
}

static json_t *mask_json(const struct session *s)
{
    static const char *const sources[MASK_SOURCES] = {[MASK_FROM_S] = "s", [MASK_FROM_P] = "p"};
    const struct masks *m = s->run.judgement->masks;
    struct mask_counts n;
    const enum mask_source source = masks_total(m, &n);
    if (source == MASK_NOT_KNOWN)
        return json_null();
    json_t *names = json_array();
    for (int i = 0; i < m->n_names && atomic_load_explicit(&m->named, memory_order_acquire); i++)
        json_array_append_new(names, mask_name_json(&m->name[i]));
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "from", sources[source], "seen", (json_int_t)n.both,
                     "hidden", (json_int_t)n.neither, "only_applied", (json_int_t)n.only_applied, "only_wanted",
                     (json_int_t)n.only_wanted, "unknown", (json_int_t)n.unknown, "names", names);
}

static json_t *hop_json(enum asc_channel ch, const struct onset_hop *hop)
{
    json_t *json = json_pack("{s:s, s:I}", "channel", channel_name(ch), "elements", (json_int_t)hop->elements);
    if (channel_per_kv(ch)) {
        json_object_set_new(json, "first_kv_tile", json_integer(hop->first_kv));
        json_object_set_new(json, "last_kv_tile", json_integer(hop->last_kv));
    }
    return json;
}

/* The row of q or k that a score is made of, where a score is what matters. */
static void factors_json(const struct session *s, const struct run_root *r, enum asc_channel ch, json_t *json)
{
    double *values = calloc((size_t)s->run.trace->problem.head_dim, sizeof *values);
    if (!values)
        end_without_memory();
    const int n = onset_factors(s->run.trace, r, ch, values);
    json_t *row = n ? json_array() : NULL;
    for (int d = 0; d < n; d++)
        json_array_append_new(row, report_json_value(values[d]));
    if (row)
        json_object_set_new(json, channel_name(ch), row);
    free(values);
}

static json_t *root_json(const struct session *s, const struct run_root *r)
{
    const struct onset_root *root = &r->root;
    const int32_t *at = trace_slot_place(s->run.trace, r->slot);
    char reason[ONSET_WORDS_BYTES];
    onset_reason_words(s->run.judgement, s->run.trace, root, reason);
    json_t *operands = json_object(), *products = json_array(), *chain = json_array();
    for (int o = 0; o < OPERAND_COUNT; o++)
        if (root->known & 1u << o)
            json_object_set_new(operands, onset_operand_label((enum onset_operand)o),
                                report_json_value(root->operand[o]));
    for (int i = 0; i < root->n_products; i++)
        json_array_append_new(products, json_pack("{s:i, s:o, s:o}", "index", root->product[i].index, "a",
                                                  report_json_value(root->product[i].a), "b",
                                                  report_json_value(root->product[i].b)));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (root->chain[ch].elements)
            json_array_append_new(chain, hop_json((enum asc_channel)ch, &root->chain[ch]));
    json_t *json = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:I, s:i, s:s}", "channel",
        channel_name(root->channel), "batch", at[0], "head", at[1], "q_tile", at[2], "row", root->row, "col", root->col,
        "members", root->members, "value", onset_value_word(root->value), "origin", origin_name(root->origin),
        "sentence", reason, "from_input", root->from_input, "operands", operands, "products", products, "chain", chain,
        "reached", (json_int_t)root->reached, "reached_rows", root->reached_rows, "last", channel_name(root->last));
    if (channel_per_kv(root->channel))
        json_object_set_new(json, "kv_tile", json_integer(root->kv));
    if (root->keys >= 0) {
        json_object_set_new(json, "keys", json_integer(root->keys));
        json_object_set_new(json, "keys_so_far", json_integer(root->keys_so_far));
    }
    factors_json(s, r, asc_q, json);
    factors_json(s, r, asc_k, json);
    return json;
}

static json_t *onset_json(const struct session *s)
{
    enum { ROOTS_LISTED = 16 };
    const struct run_onset *o = s->run.judgement->onset;
    if (!o || !o->roots)
        return json_null();
    json_t *of_origins = json_object(), *stages = json_object(), *first = json_array();
    for (int r = 0; r < ORIGIN_COUNT; r++)
        if (o->of_origin[r])
            json_object_set_new(of_origins, origin_name((enum nan_origin)r), json_integer((json_int_t)o->of_origin[r]));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (o->of_stage[ch])
            json_object_set_new(stages, channel_name((enum asc_channel)ch), json_integer((json_int_t)o->of_stage[ch]));
    for (int i = 0; i < o->n && i < ROOTS_LISTED; i++)
        json_array_append_new(first, root_json(s, &o->first[i]));
    return json_pack("{s:I, s:I, s:o, s:o, s:o}", "roots", (json_int_t)o->roots, "outputs", (json_int_t)o->outputs,
                     "origins", of_origins, "stages", stages, "first", first);
}

static json_t *state_break_json(const struct session *s)
{
    const struct state_break *b = &s->run.judgement->state_break;
    if (b->slot < 0)
        return json_null();
    const int32_t *at = trace_slot_place(s->run.trace, b->slot);
    json_t *broken = json_array();
    for (int i = 0; i < INVARIANT_COUNT; i++)
        if (b->broken & 1u << i)
            json_array_append_new(broken, json_string(invariant_name((enum invariant)i)));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o}", "batch", at[0], "head", at[1], "q_tile", at[2], "kv_tile", b->kv,
                     "row", b->row, "broken", broken);
}

/* Of the kernel's own values. */
static json_t *values_json(const struct session *s)
{
    const struct asc_plan *plan = &s->run.trace->plan;
    json_t *json = json_object();
    for (int i = 0; i < plan_values(plan); i++) {
        const struct own_count *n = &s->run.judgement->summary.own[i];
        json_t *value =
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "columns", own_value_cols[plan->value[i].cols],
                      "dtype", dtype_name((enum dtype)plan->value[i].dtype), "recorded", (json_int_t)n->written,
                      "unwritten", (json_int_t)n->unwritten, "nan", (json_int_t)n->nan, "inf", (json_int_t)n->inf,
                      "min", n->finite ? report_json_number(n->low) : json_null(), "max",
                      n->finite ? report_json_number(n->high) : json_null(), "first_nan",
                      n->first_nan.slot < 0 ? json_null() : json_object());
        if (n->first_nan.slot >= 0) {
            json_t *at = json_object_get(value, "first_nan");
            report_json_put_at(at, trace_slot_place(s->run.trace, n->first_nan.slot), n->first_nan.kv);
            json_object_set_new(at, "row", json_integer(n->row));
            json_object_set_new(at, "col", json_integer(n->col));
        }
        json_object_set_new(json, plan->value[i].name, value);
    }
    return json;
}

static void put_judgement(json_t *json, const struct session *s)
{
    const struct judgement *j = s->run.judgement;
    json_t *stages = json_object(), *findings = json_array();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        json_object_set_new(stages, channel_name(ch), stage_json(s, (enum asc_channel)ch));
    for (int i = 0; i < j->n_findings; i++)
        json_array_append_new(findings, report_json_finding(s, &j->findings[i]));
    json_object_set_new(json, "facts", facts_json(s, FACTS_ALL, add_fact));
    json_object_set_new(json, "undeclared", facts_json(s, FACT_SET(FACT_UNDECLARED), add_words));
    json_object_set_new(
        json, "first",
        report_json_place(s, j->summary.unvisited ? CULPRIT_LOOP : (int)j->summary.first.channel, j->summary.first));
    if (j->summary.unvisited)
        json_object_set_new(json, "left_out", left_out_json(s));
    json_object_set_new(json, "parts", parts_json(s));
    json_object_set_new(json, "culprits", channels_json(j->summary.culprits));
    json_object_set_new(json, "suspicious", channels_json(j->summary.suspicious));
    json_object_set_new(json, "stages", stages);
    if (plan_values(&s->run.trace->plan))
        json_object_set_new(json, "values", values_json(s));
    json_object_set_new(json, "findings", findings);
    json_object_set_new(json, "mask", mask_json(s));
    json_object_set_new(json, "onset", onset_json(s));
    json_object_set_new(json, "state_break", state_break_json(s));
}

/* Each limit that the scenario states. */
static json_t *budget_json(const struct trace_info *info)
{
    json_t *json = json_object();
    for (int i = 0; i < BUDGET_ITEMS; i++) {
        const struct budget_verdict v = budget_judge(info, (enum budget_item)i);
        if (v.state == BUDGET_NOT_STATED)
            continue;
        json_object_set_new(json, budget_name((enum budget_item)i),
                            json_pack("{s:s, s:I, s:o, s:o}", "state", budget_state_word(v.state), "most",
                                      (json_int_t)v.most, "takes", v.takes < 0 ? json_null() : json_integer(v.takes),
                                      "kernel", v.launch ? report_json_text(v.launch->kernel) : json_null()));
    }
    return json;
}

static json_t *first_pass_json(const struct trace_capture *c)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:o, s:I, s:o, s:o}", "wanted", (json_int_t)c->wanted, "judged",
                     (json_int_t)c->judged, "off", (json_int_t)c->off, "off_places", report_json_text(c->off_places),
                     "unusual", (json_int_t)c->unusual, "unusual_places", report_json_text(c->unusual_places), "by_gpu",
                     (json_int_t)c->by_gpu, "judge", report_json_text(c->judge), "differing",
                     c->differing < 0 ? json_null() : json_integer((json_int_t)c->differing));
}

/* What a saved trace says of its run, under the same keys (docs/trace-format.md). */
static void put_run(json_t *json, const struct trace *t)
{
    static const char *const keys[] = {"problem", "plan", "run", "events", "launches", "inputs", "settings"};
    struct safetensors_text texts[TRACE_TEXTS_MAX];
    const int n = trace_metadata_write(t, texts, NULL);
    if (n < 0)
        end_without_memory();
    for (int i = 0; i < n; i++) {
        const char *dot = strchr(texts[i].key, '.');
        for (size_t k = 0; dot && k < sizeof keys / sizeof *keys; k++)
            if (strcmp(dot + 1, keys[k]) == 0)
                json_object_set_new(json, keys[k], json_loads(texts[i].value, 0, NULL));
    }
    trace_metadata_free(texts, n);
    const long long all = trace_places(t);
    json_object_set_new(json, "slots", json_pack("{s:i, s:I}", "recorded", t->layout.n_slots, "all", (json_int_t)all));
    if (t->info.launches.budget.stated)
        json_object_set_new(json, "budget", budget_json(&t->info));
    if (t->info.capture.wanted)
        json_object_set_new(json, "first_pass", first_pass_json(&t->info.capture));
    json_object_set_new(json, "lost", lost_json(t));
    json_t *formats = report_json_formats(t);
    if (formats)
        json_object_set_new(json, "formats", formats);
}

static json_t *cell_json(const struct rounding_cell *cell)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I}", "state", rounding_state_word(cell->state), "evidence",
                     rounding_evidence_name(cell->evidence), "why", rounding_reason_name(cell->why), "size",
                     report_json_number(cell->size), "error", report_json_number(cell->error), "z",
                     report_json_number(cell->z), "elements", (json_int_t)cell->elements);
}

/* Of one head, or of all together (b->heads), by kv step. */
static json_t *steps_json(const struct rounding *b, enum asc_channel ch, int head)
{
    json_t *json = json_array();
    for (int kv = 0; channel_per_kv(ch) && kv < b->kv_tiles; kv++) {
        json_t *of = cell_json(rounding_cell(b, ch, head, kv));
        json_object_set_new(of, "kv_tile", json_integer(kv));
        json_array_append_new(json, of);
    }
    return json;
}

static json_t *biased_stage_json(const struct trace *t, const struct rounding *b, enum asc_channel ch)
{
    const struct rounding_cell *all = rounding_stage(b, ch);
    json_t *json = cell_json(all), *heads = json_array();
    char words[256];
    rounding_words(ch, all, words, sizeof words);
    json_object_set_new(json, "text", json_string(words));
    json_object_set_new(json, "unit", json_string(rounding_unit(ch, all)));
    for (int head = 0; head < b->heads; head++) {
        json_t *of = cell_json(rounding_cell(b, ch, head, b->kv_tiles));
        json_object_set_new(of, "batch", json_integer(head / t->problem.heads));
        json_object_set_new(of, "head", json_integer(head % t->problem.heads));
        json_object_set_new(of, "kv_tiles", steps_json(b, ch, head));
        json_array_append_new(heads, of);
    }
    json_object_set_new(json, "heads", heads);
    json_object_set_new(json, "kv_tiles", steps_json(b, ch, b->heads));
    return json;
}

static json_t *drift_json(const struct rounding *b, enum rounding_curve curve)
{
    json_t *json = json_array();
    for (int kv = 0; kv < b->kv_tiles; kv++) {
        const struct rounding_drift *d = rounding_drift(b, curve, b->heads, kv);
        json_array_append_new(json, json_pack("{s:i, s:o, s:o}", "kv_tile", kv, "mean",
                                              report_json_number(rounding_drift_mean(d)), "error",
                                              report_json_number(rounding_drift_error(d))));
    }
    return json;
}

static json_t *bias_json(const struct session *s)
{
    const struct rounding *b = session_rounding_result(s);
    if (!b || !s->run.trace)
        return NULL;
    json_t *stages = json_object();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (rounding_stage(b, (enum asc_channel)ch)->state != ROUNDING_UNRECORDED)
            json_object_set_new(stages, channel_name((enum asc_channel)ch),
                                biased_stage_json(s->run.trace, b, (enum asc_channel)ch));
    return json_pack("{s:b, s:o, s:o, s:{s:o, s:o}}", "negated", b->negated, "not_run", report_json_text(b->lost),
                     "stages", stages, "drift", "m_plus_ln_l", drift_json(b, ROUNDING_SUM), "u_over_l",
                     drift_json(b, ROUNDING_OUTPUT));
}

json_t *report_json(const struct session *s, const char *path, const struct err *err)
{
    char why[512];
    const bool met = s && report_status(s, why, sizeof why) == 0;
    if (!s || (err && err->code != ERR_NONE && !s->run.judgement))
        snprintf(why, sizeof why, "it could not be run");
    json_t *json = json_pack("{s:o, s:i, s:b, s:o}", "file", report_json_text(path), "oracle_version", ORACLE_VERSION,
                             "as_expected", met, "why", report_json_text(why));
    if (err && err->code != ERR_NONE)
        json_object_set_new(json, "error", report_json_error(err));
    if (!s)
        return json;
    json_object_set_new(json, "title", report_json_text(s->title));
    json_object_set_new(json, "verdict", json_string(session_verdict_word(s)));
    json_object_set_new(json, "expect", expect_json(s));
    if (s->run.trace)
        put_run(json, s->run.trace);
    if (s->run.judgement)
        put_judgement(json, s);
    json_t *bias = bias_json(s);
    if (bias)
        json_object_set_new(json, "bias", bias);
    return json;
}

static json_t *isolated_stage_json(const struct isolation_result *r, enum asc_channel ch)
{
    const enum effect effect = isolation_effect(r->before, r->after, ch);
    json_t *json = json_pack("{s:s, s:s}", "before", stage_state_word(isolation_state(r->before, ch)), "isolated",
                             stage_state_word(isolation_state(r->after, ch)));
    if (effect != EFFECT_NONE)
        json_object_set_new(json, "effect", json_string(effect_word(effect)));
    return json;
}

json_t *report_json_isolation(const struct session *s)
{
    struct isolation_result r;
    char sentences[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES];
    if (!session_isolated(s, &r))
        return json_null();
    json_t *stages = json_object(), *words = json_array();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        json_object_set_new(stages, channel_name((enum asc_channel)ch), isolated_stage_json(&r, (enum asc_channel)ch));
    const int n = isolation_sentences(&r, sentences);
    for (int i = 0; i < n; i++)
        json_array_append_new(words, report_json_text(sentences[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "isolated", channels_json(r.asked->stages), "feed",
                     report_json_text(r.asked->feed[0] ? r.asked->feed : "reference"), "fed",
                     channels_json(r.trace->fed_channels), "stages", stages, "sentences", words);
}

static json_t *output_json(const struct probe_effect *effect, enum asc_channel ch)
{
    const struct channel_difference *d = &effect->difference.channel[ch];
    char text[PROBE_EFFECT_WORDS];
    probe_effect_channel(effect, ch, text);
    return json_pack("{s:I, s:I, s:I, s:o, s:s}", "compared", (json_int_t)d->compared, "other_bits",
                     (json_int_t)(d->compared - d->same), "beyond", (json_int_t)probe_effect_beyond(effect, ch),
                     "largest", report_json_number(d->largest), "text", text);
}

static const char *const probe_verdicts[] = {[PROBES_CHANGE_NOTHING] = "same",
                                             [PROBES_CHANGE_OUTPUT] = "changed",
                                             [PROBES_NO_MATTER] = "not deterministic",
                                             [PROBES_CHANGE_STATUS] = "different end"};

json_t *report_json_probes(const struct probe_effect *effect)
{
    json_t *channels = json_object();
    for (enum asc_channel ch = asc_o; ch <= asc_lse; ch++)
        json_object_set_new(channels, channel_name(ch), output_json(effect, ch));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "verdict", probe_verdicts[effect->verdict], "sentence",
                     probe_effect_sentence(effect->verdict), "with", run_status_names[effect->status[0]], "without",
                     run_status_names[effect->status[1]], "why", report_json_text(effect->status_text), "channels",
                     channels);
}

json_t *report_json_unquantized(const struct unquantized_error *error)
{
    return !error->known ? NULL
                         : json_pack("{s:o, s:o}", "largest_error", report_json_number(error->largest), "rms_error",
                                     report_json_number(error->rms));
}

/* What jansson leaves as it is and a terminal may not have stays itself to who reads the JSON: "\u202e". */
static int dump_text(const char *text, FILE *out)
{
    char name[UTF8_NAME_BYTES];
    uint32_t code;
    for (size_t length; (length = utf8_decode(text, &code)) > 0; text += length) {
        if (code == '\n' || utf8_name(text, length, code, name) == 0)
            fwrite(text, 1, length, out);
        else if (code < 0x10000)
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fprintf(out, "\\u%04x\\u%04x", 0xD800u + (unsigned)((code - 0x10000) >> 10),
                    0xDC00u + (unsigned)(code & 0x3FF));
    }
    return ferror(out) ? -1 : 0;
}

int report_dump(const json_t *json, FILE *out, struct err *err)
{
    if (!json)
        return err_no_memory(err, "", "the report");
    char *text = json_memory_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text)
        return err_no_memory(err, "", "the report");
    const int failed = dump_text(text, out);
    free(text);
    if (failed || fputs("\n", out) < 0)
        return err_errno(err, "", "standard output cannot be written");
    return 0;
}

json_t *report_json_times(const struct runner_spent *spent)
{
    json_t *steps = json_object(), *parts = json_object();
    for (int i = STEP_NONE + 1; i < STEP_COUNT; i++)
        if (spent->step[i] > 0)
            json_object_set_new(steps, runner_step_words((enum runner_step)i), json_real(spent->step[i]));
    for (int i = 0; i < spent->n_parts; i++)
        json_object_set_new(parts, spent->part[i].name, json_real(spent->part[i].seconds));
    return json_pack("{s:b, s:o, s:o}", "built_before", runner_built_before(spent), "steps", steps, "compiling", parts);
}
