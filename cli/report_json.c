/* `--json`: docs/check-json.md says what each key means, docs/check.schema.json what may stand there. */
#include "cli/report.h"

#include "engine/base/json_memory.h"
#include "engine/base/tensor_core.h"
#include "engine/base/utf8.h"
#include "engine/run/budget.h"
#include "engine/trace/trace_file.h"
#include "engine/verdict/edge.h"
#include "engine/verdict/exactness.h"
#include "engine/verdict/undeclared.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *report_json_text(const char *text)
{
    char *clean = report_text(text, TEXT_JSON);
    json_t *json = clean ? json_string(clean) : NULL;
    free(clean);
    return json;
}

/* JSON has no infinity and no NaN. */
static json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *channels_json(unsigned set)
{
    json_t *json = json_array();
    for (int i = 0; i <= CULPRIT_LOOP; i++)
        if (set & 1u << i)
            json_array_append_new(json, json_string(culprit_name(i)));
    return json;
}

static json_t *culprit_place_json(const struct session *s, int culprit, struct place place)
{
    if (place.slot < 0)
        return json_null();
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    json_t *json = json_pack("{s:s, s:i, s:i, s:i}", "channel", culprit_name(culprit), "batch", at[0], "head", at[1],
                             "q_tile", at[2]);
    if (channel_per_kv(place.channel))
        json_object_set_new(json, "kv_tile", json_integer(place.kv));
    return json;
}

static json_t *place_json(const struct session *s, struct place place)
{
    return culprit_place_json(s, (int)place.channel, place);
}

static void put_stated(json_t *json, const char *key, const char *text)
{
    if (text[0])
        json_object_set_new(json, key, report_json_text(text));
}

static json_t *expect_json(const struct session *s)
{
    static const char *const axis[4] = {"batch", "head", "q_tile", "kv_tile"};
    static const char *const verdict[] = {
        [EXPECT_NOTHING] = "nothing", [EXPECT_CLEAN] = "clean", [EXPECT_FAIL] = "fail"};
    const struct expect *e = &s->scenario.expect;
    if (!s->has_scenario)
        return json_pack("{s:s}", "verdict", verdict[EXPECT_NOTHING]);
    json_t *json = json_pack("{s:s}", "verdict", verdict[e->verdict]), *first = json_object();
    if (e->first_channel >= 0)
        json_object_set_new(first, "channel", json_string(culprit_name(e->first_channel)));
    for (int i = 0; i < 4; i++)
        if (e->first[i] >= 0)
            json_object_set_new(first, axis[i], json_integer(e->first[i]));
    if (json_object_size(first))
        json_object_set(json, "first", first);
    json_decref(first);
    if (e->culprits || e->no_culprits)
        json_object_set_new(json, "culprits", channels_json(e->culprits));
    if (e->bias || e->no_bias)
        json_object_set_new(json, "bias", channels_json(e->bias));
    put_stated(json, "cause", e->cause);
    put_stated(json, "event", e->event);
    put_stated(json, "event_at", e->event_at);
    put_stated(json, "stopped", e->stopped);
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
    t->worst = fmax(t->worst, (double)v->worst_ratio);
}

static const char *mark_name(enum mark mark)
{
    switch (mark) {
    case MARK_OK:
        return "ok";
    case MARK_BAD:
        return "bad";
    case MARK_UNRECORDED:
        return "unrecorded";
    case MARK_PARTIAL:
        return "partial";
    case MARK_UNKNOWN:
        break;
    }
    return "unknown";
}

static json_t *total_json(const struct total *t, enum mark mark, uint64_t bad)
{
    static const char *const names[CLASS_COUNT] = {
#define CLASS(id, name, utf8, ascii, meaning) name,
#include "engine/oracle/classes.def"
#undef CLASS
    };
    json_t *counts = json_object();
    for (int class = 0; class < CLASS_COUNT; class ++)
        json_object_set_new(counts, names[class], json_integer((json_int_t)t->count[class]));
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "mark", mark_name(mark), "elements", (json_int_t)t->elements,
                     "unjudged", (json_int_t)t->unjudged, "bad", (json_int_t)bad, "classes", counts, "worst_ratio",
                     number_json(t->worst));
}

/* What became of a declared tensor core; NULL: none is. */
static json_t *exactness_json(const struct session *s, enum asc_channel ch)
{
    struct exactness x;
    char words[256];
    if (!exactness_of(s->judgement, s->trace, ch, &x))
        return NULL;
    json_t *models = json_array();
    for (int m = 0; m < TENSOR_CORE_COUNT; m++)
        if (x.models >> m & 1)
            json_array_append_new(models, json_string(tensor_core_name((enum tensor_core)m)));
    exactness_words(s->judgement, s->trace, ch, words, sizeof words);
    return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "declared", x.declared, "bit_equal_to", models,
                     "text", words, "tiles", (json_int_t)x.tiles.judged, "exact_tiles", (json_int_t)x.tiles.n, "off",
                     (json_int_t)x.tiles.off, "unequal", (json_int_t)x.tiles.unequal, "unequal_tiles",
                     (json_int_t)x.tiles.unequal_tiles, "first_unequal", place_json(s, x.tiles.first_unequal));
}

static json_t *stage_json(const struct session *s, enum asc_channel ch)
{
    const struct judgement *j = s->judgement;
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

static json_t *evidence_json(const struct cause_evidence *e)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "elements", (json_int_t)e->elements, "explained", (json_int_t)e->explained,
                     "rounding", (json_int_t)e->rounding, "discriminating", (json_int_t)e->discriminating);
}

static json_t *cause_json(enum cause cause)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "name", cause_name(cause), "sentence", cause_sentence(cause), "formula",
                     cause_formula(cause), "declaration", cause_is_declaration(cause));
}

static json_t *finding_json(const struct session *s, const struct finding *f)
{
    const struct trace_site *site = f->loop ? NULL : trace_site(s->trace, f->channel);
    json_t *causes = json_array();
    if (f->cause != CAUSE_NONE) {
        json_t *named = cause_json(f->cause);
        json_object_set_new(named, "evidence", evidence_json(&f->evidence));
        if (f->detail[0])
            json_object_set_new(named, "detail", report_json_text(f->detail));
        json_array_append_new(causes, named);
    }
    for (int i = 0; i < f->n_also; i++)
        json_array_append_new(causes, cause_json(f->also[i]));
    json_t *json = json_pack(
        "{s:s, s:o, s:i, s:i, s:o, s:o, s:o}", "channel", culprit_name(f->loop ? CULPRIT_LOOP : (int)f->channel),
        "first", culprit_place_json(s, f->loop ? CULPRIT_LOOP : (int)f->channel, f->first), "row", f->row, "col",
        f->col, "text", report_json_text(f->text), "cause",
        f->cause == CAUSE_NONE ? json_null() : json_string(cause_name(f->cause)), "causes", causes);
    if (f->declaration[0])
        json_object_set_new(json, "declaration", json_string(f->declaration));
    char edge[EDGE_WORDS_BYTES];
    if (!f->loop && edge_words(s->trace, &s->judgement->summary, f, edge))
        json_object_set_new(json, "edge", report_json_text(edge));
    if (site)
        json_object_set_new(json, "site",
                            json_pack("{s:o, s:i}", "file", report_json_text(site->file), "line", site->line));
    return json;
}

static json_t *undeclared_json(const struct trace *t)
{
    json_t *list = json_array();
    char words[UNDECLARED_WORDS_BYTES];
    for (int i = 0; undeclared_words(t, i, words); i++)
        json_array_append_new(list, json_string(words));
    return list;
}

/* Values that the kernel wrote and that the trace has no place for. */
static json_t *lost_json(const struct trace *t)
{
    json_t *json = json_array();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (trace_dropped(t, ch) || trace_mistyped(t, ch))
            json_array_append_new(json, json_pack("{s:s, s:I, s:I}", "channel", channel_name(ch), "out_of_range",
                                                  (json_int_t)trace_dropped(t, ch), "mistyped",
                                                  (json_int_t)trace_mistyped(t, ch)));
    return json;
}

/* The expectation a part at a time. */
static json_t *parts_json(const struct session *s)
{
    const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};
    struct expect_parts parts;
    judgement_parts(s->judgement, s->trace, s->has_scenario ? &s->scenario.expect : &nothing, &parts);
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
    for (int n = 0; n < LISTED && judgement_left_out(s->judgement, s->trace, &at, &it); n++) {
        const int32_t *place = trace_slot_place(s->trace, it.place.slot);
        json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "batch", place[0], "head", place[1],
                                              "q_tile", place[2], "kv_tile", it.place.kv, "first_row", it.first_row,
                                              "last_row", it.last_row));
    }
    return json_pack("{s:I, s:o}", "tiles", (json_int_t)s->judgement->summary.unvisited, "first", list);
}

static void put_judgement(json_t *json, const struct session *s)
{
    const struct judgement *j = s->judgement;
    json_t *stages = json_object(), *findings = json_array();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        json_object_set_new(stages, channel_name(ch), stage_json(s, (enum asc_channel)ch));
    for (int i = 0; i < j->n_findings; i++)
        json_array_append_new(findings, finding_json(s, &j->findings[i]));
    json_object_set_new(
        json, "first",
        culprit_place_json(s, j->summary.unvisited ? CULPRIT_LOOP : (int)j->summary.first.channel, j->summary.first));
    if (j->summary.unvisited)
        json_object_set_new(json, "left_out", left_out_json(s));
    json_object_set_new(json, "parts", parts_json(s));
    json_object_set_new(json, "culprits", channels_json(j->summary.culprits));
    json_object_set_new(json, "suspicious", channels_json(j->summary.suspicious));
    json_object_set_new(json, "stages", stages);
    json_object_set_new(json, "findings", findings);
    json_object_set_new(json, "mask", report_json_mask(s));
    json_object_set_new(json, "onset", report_json_onset(s));
    json_object_set_new(json, "state_break", report_json_state_break(s));
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
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "wanted", (json_int_t)c->wanted, "judged", (json_int_t)c->judged,
                     "off", (json_int_t)c->off, "off_places", report_json_text(c->off_places), "differing",
                     c->differing < 0 ? json_null() : json_integer((json_int_t)c->differing));
}

/* What a saved trace says of its run, under the same keys (docs/trace-format.md). */
static void put_run(json_t *json, const struct trace *t)
{
    static const char *const keys[] = {"problem", "plan", "run", "events", "launches"};
    struct safetensors_text texts[TRACE_TEXTS_MAX];
    const int n = trace_metadata_write(t, texts, NULL);
    for (int i = 0; i < n; i++) {
        const char *dot = strchr(texts[i].key, '.');
        for (size_t k = 0; dot && k < sizeof keys / sizeof *keys; k++)
            if (strcmp(dot + 1, keys[k]) == 0)
                json_object_set_new(json, keys[k], json_loads(texts[i].value, 0, NULL));
    }
    if (n > 0)
        trace_metadata_free(texts, n);
    const long long all = (long long)t->problem.batch * t->problem.heads * t->layout.q_tiles;
    json_object_set_new(json, "slots", json_pack("{s:i, s:I}", "recorded", t->layout.n_slots, "all", (json_int_t)all));
    if (t->info.launches.budget.stated)
        json_object_set_new(json, "budget", budget_json(&t->info));
    if (t->info.capture.wanted)
        json_object_set_new(json, "first_pass", first_pass_json(&t->info.capture));
    json_object_set_new(json, "lost", lost_json(t));
    json_object_set_new(json, "undeclared", undeclared_json(t));
    json_t *formats = report_json_formats(t);
    if (formats)
        json_object_set_new(json, "formats", formats);
}

json_t *report_json(const struct session *s, const char *path, const struct err *err)
{
    char why[512];
    const int met = s && report_status(s, why, sizeof why) == 0;
    if (!s || (err && err->code != ERR_NONE && !s->judgement))
        snprintf(why, sizeof why, "it could not be run");
    json_t *json = json_pack("{s:o, s:i, s:b, s:o}", "file", report_json_text(path), "oracle_version", ORACLE_VERSION,
                             "as_expected", met, "why", report_json_text(why));
    if (err && err->code != ERR_NONE)
        json_object_set_new(json, "error",
                            json_pack("{s:s, s:o, s:o}", "code", err_name(err->code), "where",
                                      report_json_text(err->where), "message", report_json_text(err->message)));
    if (!s)
        return json;
    json_object_set_new(json, "title", report_json_text(s->title));
    json_object_set_new(json, "verdict", json_string(session_verdict_word(s)));
    json_object_set_new(json, "expect", expect_json(s));
    if (s->trace)
        put_run(json, s->trace);
    if (s->judgement)
        put_judgement(json, s);
    json_t *bias = report_json_bias(s);
    if (bias)
        json_object_set_new(json, "bias", bias);
    return json;
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
        return err_errno(err, "", "standard output can not be written");
    return 0;
}
