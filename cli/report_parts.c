/* What all that is printed in JSON is made of: texts, errors, places, numbers. */
#include "cli/report.h"

#include "engine/base/json_memory.h"
#include "engine/base/utf8.h"
#include "engine/verdict/onset.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *report_json_text(const char *text)
{
    enum { LONGEST = 3 }; /* bytes that one byte of text can become: U+FFFD */
    char *clean = malloc(strlen(text) * LONGEST + 1), *at = clean;
    uint32_t code;
    if (!clean)
        end_without_memory();
    for (size_t n; (n = utf8_decode(text, &code)) > 0; text += n)
        at += utf8_write(code, at);
    json_t *json = json_stringn(clean, (size_t)(at - clean));
    free(clean);
    return json;
}

json_t *report_json_error(const struct err *err)
{
    return json_pack("{s:s, s:o, s:o}", "code", err_name(err->code), "where", report_json_text(err->where), "message",
                     report_json_text(err->message));
}

void report_json_put_at(json_t *json, const int32_t *at, int kv)
{
    static const char *const axis[] = {"batch", "head", "q_tile", "kv_tile"};
    for (int i = 0; i < 4; i++)
        if ((i < 3 ? at[i] : kv) >= 0)
            json_object_set_new(json, axis[i], json_integer(i < 3 ? at[i] : kv));
}

json_t *report_json_place(const struct session *s, int culprit, struct place place)
{
    if (place.slot < 0)
        return json_null();
    json_t *json = json_pack("{s:s}", "channel", culprit_name(culprit));
    report_json_put_at(json, trace_slot_place(s->run.trace, place.slot), channel_per_kv(place.channel) ? place.kv : -1);
    return json;
}

json_t *report_json_value(double x)
{
    return isfinite(x) ? json_real(x) : json_string(onset_value_word(x));
}
