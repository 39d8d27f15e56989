/* Biased rounding, where it was looked for: text and JSON. */
#include "cli/report.h"

#include "engine/session/rounding_look.h"
#include <math.h>

void report_write_bias(const struct session *s, FILE *out)
{
    const struct rounding *b = session_rounding_result(s);
    const struct rounding_progress *now = session_rounding(s);
    if (now && now->err.code != ERR_NONE) {
        text_inline(out, "bias: %s", now->err.message);
        fputs("\n", out);
    }
    if (!b)
        return;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct rounding_cell *cell = rounding_stage(b, (enum asc_channel)ch);
        char words[256];
        rounding_words((enum asc_channel)ch, cell, words, sizeof words);
        if (cell->state != ROUNDING_UNRECORDED)
            fprintf(out, "bias of %-5s %-12s  %s\n", channel_name((enum asc_channel)ch),
                    rounding_state_word(cell->state), words);
    }
    if (b->lost[0])
        fprintf(out, "not run again: %s\n", b->lost);
}

/* JSON has no infinity and no NaN. */
static json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *cell_json(const struct rounding_cell *cell)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I}", "state", rounding_state_word(cell->state), "evidence",
                     rounding_evidence_name(cell->evidence), "why", rounding_reason_name(cell->why), "size",
                     number_json(cell->size), "error", number_json(cell->error), "z", number_json(cell->z), "elements",
                     (json_int_t)cell->elements);
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

static json_t *stage_json(const struct session *s, const struct rounding *b, enum asc_channel ch)
{
    const struct rounding_cell *all = rounding_stage(b, ch);
    json_t *json = cell_json(all), *heads = json_array();
    char words[256];
    rounding_words(ch, all, words, sizeof words);
    json_object_set_new(json, "text", json_string(words));
    json_object_set_new(json, "unit", json_string(rounding_unit(ch, all)));
    for (int head = 0; head < b->heads; head++) {
        json_t *of = cell_json(rounding_cell(b, ch, head, b->kv_tiles));
        json_object_set_new(of, "batch", json_integer(head / s->trace->problem.heads));
        json_object_set_new(of, "head", json_integer(head % s->trace->problem.heads));
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
        json_array_append_new(json,
                              json_pack("{s:i, s:o, s:o}", "kv_tile", kv, "mean", number_json(rounding_drift_mean(d)),
                                        "error", number_json(rounding_drift_error(d))));
    }
    return json;
}

json_t *report_json_bias(const struct session *s)
{
    const struct rounding *b = session_rounding_result(s);
    if (!b)
        return NULL;
    json_t *stages = json_object();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (rounding_stage(b, (enum asc_channel)ch)->state != ROUNDING_UNRECORDED)
            json_object_set_new(stages, channel_name((enum asc_channel)ch), stage_json(s, b, (enum asc_channel)ch));
    return json_pack("{s:b, s:o, s:o, s:{s:o, s:o}}", "negated", b->negated, "not_run", report_json_text(b->lost),
                     "stages", stages, "drift", "m_plus_ln_l", drift_json(b, ROUNDING_SUM), "u_over_l",
                     drift_json(b, ROUNDING_OUTPUT));
}
