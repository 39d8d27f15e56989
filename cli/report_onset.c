/* Where NaN and infinity begin, and where the softmax state is broken first: text and JSON. */
#include "cli/report.h"

#include "engine/verdict/onset.h"
#include "engine/verdict/states.h"
#include <math.h>

enum { ROOTS_LISTED = 16 };

static void write_break(const struct session *s, FILE *out)
{
    const struct state_break *b = &s->judgement->state_break;
    char words[BREAK_WORDS_BYTES];
    const unsigned scores = 1u << asc_q | 1u << asc_k | 1u << asc_v | 1u << asc_s;
    if (b->slot < 0 || s->judgement->summary.culprits & scores) /* then it is a consequence */
        return;
    const int32_t *at = trace_slot_place(s->trace, b->slot);
    states_broken_words(b->broken, words);
    fprintf(out, "softmax state: %s; first at batch %d, head %d, q tile %d, kv tile %d, row %d\n", words, at[0], at[1],
            at[2], b->kv, b->row);
}

void report_write_onset(const struct session *s, FILE *out)
{
    const struct run_onset *o = s->judgement->onset;
    const struct run_root *first = run_onset_first(o);
    char words[ONSET_WORDS_BYTES];
    write_break(s, out);
    if (!first)
        return;
    onset_words(s->judgement, s->trace, first, words);
    fprintf(out, "%s\n", words);
    if (o->roots == (uint64_t)first->root.members)
        return;
    fprintf(out, "         %llu such elements in all:", (unsigned long long)o->roots);
    for (int r = 0, n = 0; r < RULE_COUNT; r++)
        if (o->of_rule[r])
            fprintf(out, "%s %llu %s", n++ ? "," : "", (unsigned long long)o->of_rule[r], rule_name((enum rule)r));
    fprintf(out, "; of O %llu are no number\n", (unsigned long long)o->outputs);
}

/* JSON has no infinity and no NaN: these come as words. */
static json_t *value_json(double x)
{
    return isfinite(x) ? json_real(x) : json_string(onset_value_word(x));
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
    double *values = calloc((size_t)s->trace->problem.head_dim, sizeof *values);
    const int n = values ? onset_factors(s->trace, r, ch, values) : 0;
    json_t *row = n ? json_array() : NULL;
    for (int d = 0; d < n; d++)
        json_array_append_new(row, value_json(values[d]));
    if (row)
        json_object_set_new(json, channel_name(ch), row);
    free(values);
}

static json_t *root_json(const struct session *s, const struct run_root *r)
{
    const struct onset_root *root = &r->root;
    const int32_t *at = trace_slot_place(s->trace, r->slot);
    char reason[ONSET_WORDS_BYTES];
    onset_reason_words(s->judgement, s->trace, root, reason);
    json_t *operands = json_object(), *products = json_array(), *chain = json_array();
    for (int o = 0; o < OPERAND_COUNT; o++)
        if (root->known & 1u << o)
            json_object_set_new(operands, onset_operand_label((enum onset_operand)o), value_json(root->operand[o]));
    for (int i = 0; i < root->n_products; i++)
        json_array_append_new(products, json_pack("{s:i, s:o, s:o}", "index", root->product[i].index, "a",
                                                  value_json(root->product[i].a), "b", value_json(root->product[i].b)));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (root->chain[ch].elements)
            json_array_append_new(chain, hop_json((enum asc_channel)ch, &root->chain[ch]));
    json_t *json = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:I, s:i, s:s}", "channel",
        channel_name(root->channel), "batch", at[0], "head", at[1], "q_tile", at[2], "row", root->row, "col", root->col,
        "members", root->members, "value", onset_value_word(root->value), "rule", rule_name(root->rule), "sentence",
        reason, "from_input", root->from_input, "operands", operands, "products", products, "chain", chain, "reached",
        (json_int_t)root->reached, "reached_rows", root->reached_rows, "last", channel_name(root->last));
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

json_t *report_json_onset(const struct session *s)
{
    const struct run_onset *o = s->judgement->onset;
    if (!o || !o->roots)
        return json_null();
    json_t *of_rules = json_object(), *stages = json_object(), *first = json_array();
    for (int r = 0; r < RULE_COUNT; r++)
        if (o->of_rule[r])
            json_object_set_new(of_rules, rule_name((enum rule)r), json_integer((json_int_t)o->of_rule[r]));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (o->of_stage[ch])
            json_object_set_new(stages, channel_name((enum asc_channel)ch), json_integer((json_int_t)o->of_stage[ch]));
    for (int i = 0; i < o->n && i < ROOTS_LISTED; i++)
        json_array_append_new(first, root_json(s, &o->first[i]));
    return json_pack("{s:I, s:I, s:o, s:o, s:o}", "roots", (json_int_t)o->roots, "outputs", (json_int_t)o->outputs,
                     "rules", of_rules, "stages", stages, "first", first);
}

json_t *report_json_state_break(const struct session *s)
{
    const struct state_break *b = &s->judgement->state_break;
    if (b->slot < 0)
        return json_null();
    const int32_t *at = trace_slot_place(s->trace, b->slot);
    json_t *broken = json_array();
    for (int i = 0; i < INVARIANT_COUNT; i++)
        if (b->broken & 1u << i)
            json_array_append_new(broken, json_string(invariant_name((enum invariant)i)));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o}", "batch", at[0], "head", at[1], "q_tile", at[2], "kv_tile", b->kv,
                     "row", b->row, "broken", broken);
}
