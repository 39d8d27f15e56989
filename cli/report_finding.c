/* A finding in JSON: its causes and rules, and what is known of its first element. */
#include "cli/report.h"

#include "engine/base/json_memory.h"
#include "engine/trace/writers.h"
#include "engine/verdict/again.h"
#include "engine/verdict/element_code.h"
#include "engine/verdict/facts.h"
#include "engine/verdict/onset.h"
#include <math.h>

/* Of a cause that is a rule's name what the rule has explained. NULL: it was found by what counts no elements. */
static json_t *evidence_json(const struct finding *f)
{
    const struct cause_evidence *e = &f->evidence;
    const struct rule_told *r = &f->rule[0];
    if (!e->elements && !f->n_rules)
        return NULL;
    return json_pack("{s:I, s:I, s:I, s:I}", "elements", (json_int_t)(e->elements ? e->elements : r->wrong),
                     "explained", (json_int_t)(e->elements ? e->explained : r->in), "rounding", (json_int_t)e->rounding,
                     "discriminating", (json_int_t)(e->elements ? e->discriminating : r->told));
}

static json_t *cause_json(enum cause cause)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "name", cause_name(cause), "sentence", cause_sentence(cause), "formula",
                     cause_formula(cause), "declaration", cause_is_declaration(cause));
}

/* The first rule that a search has found: what it explains and costs, the element that tells most, the next best. */
static void put_rule(const struct session *s, const struct finding *f, json_t *json)
{
    const struct rule_told *r = &f->rule[0];
    json_object_set_new(json, f->pattern ? "pattern" : "rule", report_json_text(f->explained));
    json_object_set_new(json, "rule_tried", json_integer((json_int_t)f->tried));
    if (!f->n_rules)
        return;
    json_object_set_new(json, "rule_share", json_real(f->share));
    json_object_set_new(json, "rule_bits", json_real(r->bits));
    json_object_set_new(json, "rule_cost", json_real(r->price));
    json_object_set_new(json, "rule_element",
                        json_pack("{s:o, s:i, s:i, s:o, s:o, s:o}", "place",
                                  report_json_place(s, (int)r->place.channel, r->place), "row", r->row, "col", r->col,
                                  "captured", report_json_value(r->got), "given", report_json_value(r->given), "right",
                                  report_json_value(r->want)));
    if (f->runner_up.text[0])
        json_object_set_new(json, "runner_up",
                            json_pack("{s:o, s:f, s:f}", "rule", report_json_text(f->runner_up.text), "bits",
                                      f->runner_up.bits, "cost", f->runner_up.price));
}

/* Of a finding's first element, where that is a code; NULL: it is none. */
static json_t *code_json(const struct session *s, const struct finding *f)
{
    struct element_code c;
    if (f->loop || f->first.slot < 0 || !element_code(s->run.trace, f->first, f->row, f->col, NAN, &c))
        return NULL;
    const struct code_neighbor *const beside[] = {&c.below, &c.above};
    json_t *json = json_pack("{s:s, s:i, s:o, s:o, s:o}", "dtype", dtype_name(c.type), "code", (int)c.code, "scale",
                             report_json_number(c.scale), "value", report_json_number(c.value), "given",
                             isnan(c.given) ? json_null() : report_json_number(c.given));
    for (int i = 0; i < 2; i++)
        json_object_set_new(json, i ? "above" : "below",
                            !beside[i]->is ? json_null()
                                           : json_pack("{s:i, s:o}", "code", (int)beside[i]->code, "value",
                                                       report_json_number(beside[i]->value)));
    return json;
}

/* Who recorded its first element; NULL: nobody did, or it is not known. */
static json_t *writer_json(const struct session *s, const struct finding *f)
{
    struct trace_writer w;
    if (f->loop || !trace_writer(s->run.trace, f->channel, f->first.slot, f->first.kv, f->row, f->col, &w))
        return NULL;
    json_t *json = json_pack("{s:i, s:i, s:i}", "thread", w.thread, "warp", w.thread / 32, "lane", w.thread % 32);
    if (!w.blocks)
        json_object_set_new(json, "block", json_pack("[i, i, i]", (int)w.block[0], (int)w.block[1], (int)w.block[2]));
    if (w.number >= 0)
        json_object_set_new(json, "value", json_integer(w.number));
    json_object_set_new(json, "shared", json_boolean(w.number == WRITER_SHARED));
    if (w.site)
        json_object_set_new(json, "site",
                            json_pack("{s:o, s:i}", "file", report_json_text(w.site->file), "line", w.site->line));
    return json;
}

json_t *report_json_finding(const struct session *s, const struct finding *f)
{
    const struct trace_site *site = finding_site(f, s->run.trace);
    char lines[FINDING_LINES_BYTES];
    json_t *causes = json_array();
    if (f->cause != CAUSE_NONE) {
        json_t *named = cause_json(f->cause);
        json_t *evidence = evidence_json(f);
        if (evidence)
            json_object_set_new(named, "evidence", evidence);
        if (f->detail[0])
            json_object_set_new(named, "detail", report_json_text(f->detail));
        json_array_append_new(causes, named);
    }
    for (int i = 0; i < f->n_also; i++)
        json_array_append_new(causes, cause_json(f->also[i]));
    json_t *json = json_pack(
        "{s:s, s:o, s:i, s:i, s:o, s:o, s:o}", "channel", culprit_name(f->loop ? CULPRIT_LOOP : (int)f->channel),
        "first", report_json_place(s, f->loop ? CULPRIT_LOOP : (int)f->channel, f->first), "row", f->row, "col", f->col,
        "text", report_json_text(f->text), "cause",
        f->cause == CAUSE_NONE ? json_null() : json_string(cause_name(f->cause)), "causes", causes);
    if (f->declaration[0])
        json_object_set_new(json, "declaration", json_string(f->declaration));
    finding_lines(f, lines);
    if (lines[0])
        json_object_set_new(json, "lines", json_string(lines));
    if (f->explained[0])
        put_rule(s, f, json);
    if (f->found_by != FOUND_BY_RUN)
        json_object_set_new(json, "found_by", json_string(found_by_name(f->found_by)));
    json_t *code = code_json(s, f);
    if (code)
        json_object_set_new(json, "code", code);
    json_t *writer = writer_json(s, f);
    if (writer)
        json_object_set_new(json, "writer", writer);
    char edge[FACT_WORDS_BYTES];
    if (run_fact_first_of(s->run.judgement, s->run.trace, f, FACT_SET(FACT_EDGE), edge))
        json_object_set_new(json, "edge", report_json_text(edge));
    if (site)
        json_object_set_new(json, "site",
                            json_pack("{s:o, s:i}", "file", report_json_text(site->file), "line", site->line));
    return json;
}
