/* What the probes do to a kernel's output. */
#include "cli/report.h"

#include <math.h>

static const char *const words[] = {[PROBES_CHANGE_NOTHING] = "same",
                                    [PROBES_CHANGE_OUTPUT] = "changed",
                                    [PROBES_NO_MATTER] = "not deterministic",
                                    [PROBES_CHANGE_STATUS] = "other end"};

/* Both channels of the output. */
static const enum asc_channel outputs[] = {asc_o, asc_lse};

void report_write_probes(const struct probe_effect *effect, FILE *out)
{
    char text[PROBE_EFFECT_WORDS];
    fprintf(out, "probes: %s\n", probe_effect_sentence(effect->verdict));
    if (effect->verdict == PROBES_CHANGE_STATUS)
        fprintf(out, "        with probes: %s; without: %s%s%s\n", effect->status[0], effect->status[1],
                effect->status_text[0] ? ": " : "", effect->status_text);
    for (int i = 0; i < 2; i++) {
        probe_effect_channel(effect, outputs[i], text);
        if (text[0])
            fprintf(out, "        %s: %s\n", channel_name(outputs[i]), text);
    }
}

static json_t *channel_json(const struct probe_effect *effect, enum asc_channel ch)
{
    const struct channel_difference *d = &effect->difference.channel[ch];
    char text[PROBE_EFFECT_WORDS];
    probe_effect_channel(effect, ch, text);
    return json_pack("{s:I, s:I, s:I, s:o, s:s}", "compared", (json_int_t)d->compared, "other_bits",
                     (json_int_t)(d->compared - d->same), "beyond", (json_int_t)probe_effect_beyond(effect, ch),
                     "largest", isfinite(d->largest) ? json_real(d->largest) : json_null(), "text", text);
}

json_t *report_json_probes(const struct probe_effect *effect)
{
    json_t *channels = json_object();
    for (int i = 0; i < 2; i++)
        json_object_set_new(channels, channel_name(outputs[i]), channel_json(effect, outputs[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "verdict", words[effect->verdict], "sentence",
                     probe_effect_sentence(effect->verdict), "with", effect->status[0], "without", effect->status[1],
                     "why", report_json_text(effect->status_text), "channels", channels);
}
