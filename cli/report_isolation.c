/* What an isolated run shows beside the ordinary one. */
#include "cli/report.h"

#include <stdlib.h>

void report_write_isolation(const struct session *s, FILE *out)
{
    struct isolation_result r;
    char fed[64], sentences[ISOLATION_SENTENCES][ISOLATION_SENTENCE_BYTES];
    if (!session_isolated(s, &r))
        return;
    isolation_labels(r.trace->fed_channels, fed, sizeof fed);
    fprintf(out, "isolated %s: %s fed from %s\n        %-16s%-16s\n", r.asked->name, *fed ? fed : "nothing",
            r.asked->feed[0] ? r.asked->feed : "the reference", "before", "isolated");
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const enum asc_channel channel = (enum asc_channel)ch;
        fprintf(out, "%-8s%-16s%-16s%s\n", channel_name(channel), stage_state_word(isolation_state(r.before, channel)),
                stage_state_word(isolation_state(r.after, channel)),
                effect_word(isolation_effect(r.before, r.after, channel)));
    }
    const int n = isolation_sentences(&r, sentences);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s\n", sentences[i]);
}

static json_t *channels_json(unsigned set)
{
    json_t *list = json_array();
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (set & 1u << ch)
            json_array_append_new(list, json_string(channel_name((enum asc_channel)ch)));
    return list;
}

static json_t *stage_json(const struct isolation_result *r, enum asc_channel ch)
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
        json_object_set_new(stages, channel_name((enum asc_channel)ch), stage_json(&r, (enum asc_channel)ch));
    const int n = isolation_sentences(&r, sentences);
    for (int i = 0; i < n; i++) {
        char *text = report_text(sentences[i], TEXT_JSON);
        json_array_append_new(words, json_string(text ? text : ""));
        free(text);
    }
    char *feed = report_text(r.asked->feed[0] ? r.asked->feed : "reference", TEXT_JSON);
    json_t *json =
        json_pack("{s:o, s:s, s:o, s:o, s:o}", "isolated", channels_json(r.asked->stages), "feed", feed ? feed : "",
                  "fed", channels_json(r.trace->fed_channels), "stages", stages, "sentences", words);
    free(feed);
    return json;
}
