#include "cli/report.h"

#include <string.h>

int report_meets(const struct session *s, char *why, size_t why_bytes)
{
    const struct expect nothing = {.first_channel = -1, .first = {-1, -1, -1, -1}};
    if (!s->judgement) {
        snprintf(why, why_bytes, "there is no run");
        return 0;
    }
    return judgement_meets(s->judgement, s->trace, s->has_scenario ? &s->scenario.expect : &nothing, why, why_bytes);
}

static const char *mark_text(enum mark mark)
{
    switch (mark) {
    case MARK_OK:
        return "ok";
    case MARK_BAD:
        return "bad";
    case MARK_UNRECORDED:
        return "-";
    case MARK_PARTIAL:
        return "part";
    case MARK_UNKNOWN:
        break;
    }
    return "?";
}

static void write_place(const struct session *s, struct place place, FILE *out)
{
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    fprintf(out, "batch %d, head %d, q tile %d", at[0], at[1], at[2]);
    if (channel_per_kv(place.channel))
        fprintf(out, ", kv tile %d", place.kv);
}

static void write_finding(const struct session *s, const struct finding *f, FILE *out)
{
    const struct trace_site *site = trace_site(s->trace, f->channel);
    fprintf(out, "finding: %s\n", f->text);
    fputs("         begins at ", out);
    write_place(s, f->first, out);
    fprintf(out, ", row %d, column %d", f->row, f->col);
    if (site)
        fprintf(out, "; probe at %s:%d", site->file, site->line);
    fputs("\n", out);
    for (int i = 0; i < f->n_also; i++)
        fprintf(out, "         explained as well by: %s\n", cause_sentence(f->also[i]));
}

static void write_warnings(const struct trace *t, FILE *out)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (trace_dropped(t, ch))
            fprintf(out, "warning: %llu values of %s had no place in the trace: row, column or kv tile out of range\n",
                    (unsigned long long)trace_dropped(t, ch), channel_name(ch));
        if (trace_mistyped(t, ch))
            fprintf(out, "warning: %llu values of %s were not of the declared type %s and are not recorded\n",
                    (unsigned long long)trace_mistyped(t, ch), channel_name(ch),
                    dtype_name(t->layout.channel[ch].dtype));
    }
    long long all = (long long)t->problem.batch * t->problem.heads * t->layout.q_tiles;
    if (t->layout.n_slots < all)
        fprintf(out, "note: %d of %lld (batch, head, q tile)s are recorded\n", t->layout.n_slots, all);
}

static void write_events(const struct trace *t, FILE *out)
{
    for (size_t i = 0; i < t->info.n_events; i++) {
        const struct trace_event *e = &t->info.events[i];
        fprintf(out, "event: %s: %s", e->kind, e->text);
        if (e->file[0])
            fprintf(out, " (%s:%d)", e->file, e->line);
        fputs("\n", out);
    }
}

void report_write_findings(const struct session *s, FILE *out)
{
    const struct judgement *j = s->judgement;
    if (!j)
        return;
    if (j->summary.first.slot >= 0) {
        fprintf(out, "%s is the first bad stage, from ", channel_label(j->summary.first.channel));
        write_place(s, j->summary.first, out);
        fputs(" on\n", out);
    } else if (j->complete && !j->summary.suspicious && !j->summary.unvisited) {
        fputs(j->run_incomplete ? "what was recorded is within its bound\n"
                                : "every recorded stage is within its bound\n",
              out);
    }
    for (int i = 0; i < j->n_findings; i++)
        write_finding(s, &j->findings[i], out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (j->summary.suspicious & 1u << ch)
            fprintf(out,
                    "%s is off globally though no stage up to it is wrong locally: a bound or a declared convention is "
                    "wrong\n",
                    channel_label(ch));
    write_warnings(s->trace, out);
    write_events(s->trace, out);
}

void report_write(const struct session *s, FILE *out)
{
    const struct asc_problem *p = &s->trace->problem;
    static const char *const causal[] = {"", " causal top-left", " causal bottom-right"};
    fprintf(out, "%s  (%d,%d,", s->title, p->batch, p->heads);
    if (p->kv_len != p->q_len)
        fprintf(out, "%d,%d,%d)", p->q_len, p->kv_len, p->head_dim);
    else
        fprintf(out, "%d,%d)", p->q_len, p->head_dim);
    fprintf(out, " %s%s  %s %.2f s  %s\n        ", dtype_name(p->dtype), causal[p->causal], s->trace->info.backend,
            s->trace->info.seconds, session_verdict_word(s));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        fprintf(out, "%-6s", channel_name(ch));
    fputs("\nglobal  ", out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        fprintf(out, "%-6s", mark_text(s->judgement->summary.stage[ch].global));
    fputs("\nlocal   ", out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        fprintf(out, "%-6s", mark_text(s->judgement->summary.stage[ch].local));
    fputs("\n", out);
    report_write_findings(s, out);
}

static json_t *place_json(const struct session *s, struct place place)
{
    if (place.slot < 0)
        return json_null();
    const int32_t *at = trace_slot_place(s->trace, place.slot);
    json_t *json = json_pack("{s:s, s:i, s:i, s:i}", "channel", channel_name(place.channel), "batch", at[0], "head",
                             at[1], "q_tile", at[2]);
    if (channel_per_kv(place.channel))
        json_object_set_new(json, "kv_tile", json_integer(place.kv));
    return json;
}

static json_t *finding_json(const struct session *s, const struct finding *f)
{
    const struct cause_evidence *e = &f->evidence;
    const struct trace_site *site = trace_site(s->trace, f->channel);
    json_t *json = json_pack("{s:s, s:o, s:i, s:i, s:s, s:s}", "channel", channel_name(f->channel), "first",
                             place_json(s, f->first), "row", f->row, "col", f->col, "cause",
                             f->cause == CAUSE_NONE ? "" : cause_name(f->cause), "text", f->text);
    if (f->cause != CAUSE_NONE)
        json_object_set_new(json, "evidence",
                            json_pack("{s:I, s:I, s:I, s:I}", "elements", (json_int_t)e->elements, "explained",
                                      (json_int_t)e->explained, "rounding", (json_int_t)e->rounding, "discriminating",
                                      (json_int_t)e->discriminating));
    if (site)
        json_object_set_new(json, "site", json_pack("{s:s, s:i}", "file", site->file, "line", site->line));
    return json;
}

json_t *report_json(const struct session *s, const char *path)
{
    char why[512];
    const struct judgement *j = s->judgement;
    int met = report_meets(s, why, sizeof why);
    json_t *json = json_pack("{s:s, s:s, s:b, s:s, s:s}", "file", path, "title", s->title, "as_expected", met, "why",
                             why, "verdict", session_verdict_word(s));
    if (s->err.code != ERR_NONE)
        json_object_set_new(json, "error",
                            json_pack("{s:s, s:s, s:s}", "code", err_name(s->err.code), "where", s->err.where,
                                      "message", s->err.message));
    if (!j)
        return json;
    json_t *stages = json_object(), *findings = json_array();
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct stage_summary *stage = &j->summary.stage[ch];
        json_object_set_new(stages, channel_name(ch),
                            json_pack("{s:s, s:s, s:I, s:I, s:I}", "local", mark_text(stage->local), "global",
                                      mark_text(stage->global), "elements", (json_int_t)stage->elements, "bad_local",
                                      (json_int_t)stage->bad_local, "bad_global", (json_int_t)stage->bad_global));
    }
    for (int i = 0; i < j->n_findings; i++)
        json_array_append_new(findings, finding_json(s, &j->findings[i]));
    json_object_set_new(json, "first", place_json(s, j->summary.first));
    json_object_set_new(json, "stages", stages);
    json_object_set_new(json, "findings", findings);
    json_object_set_new(json, "seconds", json_real(s->trace->info.seconds));
    return json;
}
