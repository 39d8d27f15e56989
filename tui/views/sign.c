#include "tui/views/sign.h"

#include "engine/verdict/reports.h"
#include "engine/verdict/status.h"

static const struct {
    const char *glyph, *word, *meaning;
    enum style style;
} signs[STATUS_COUNT] = {
#define CLASS(id, name, utf8, ascii, style, meaning) [id] = {utf8, name, meaning, STYLE_##style},
#define STATUS(id, name, glyph, style, meaning) [id] = {glyph, name, meaning, STYLE_##style},
#include "engine/oracle/statuses.def"
#undef CLASS
#undef STATUS
};

const char *sign_glyph(enum tile_status sign)
{
    return signs[sign].glyph;
}

const char *sign_word(enum tile_status sign)
{
    return signs[sign].word;
}

const char *sign_meaning(enum tile_status sign)
{
    return signs[sign].meaning;
}

enum style sign_style(enum tile_status sign)
{
    return signs[sign].style;
}

static int severity(enum tile_status sign)
{
    if (sign < CLASS_COUNT)
        return sign == CLASS_OK ? 2 : 5;
    return sign == STATUS_REPORT || sign == STATUS_UPSTREAM || sign == STATUS_UNWRITTEN ? 4
           : sign == STATUS_UNJUDGED                                                    ? 3
           : sign == STATUS_MASKED                                                      ? 1
                                                                                        : 0;
}

bool sign_bad(enum tile_status sign)
{
    return severity(sign) == 5;
}

/* Of bad classes the more telling comes first. */
static int telling(enum tile_status sign)
{
    static const int ranks[] = {
        [CLASS_NAN] = 4, [CLASS_INF] = 3, [CLASS_MISSING] = 2, [CLASS_EXTRA] = 1, [CLASS_OFF] = 0};
    return sign_bad(sign) ? ranks[sign] : 0;
}

enum tile_status sign_worse(enum tile_status a, enum tile_status b)
{
    const int more = severity(b) - severity(a);
    return more > 0 || (more == 0 && telling(b) > telling(a)) ? b : a;
}

static bool recorded(const struct session *s, struct place place)
{
    return s->run.trace && s->run.judgement && place.slot >= 0 && trace_has(s->run.trace, place.channel);
}

enum tile_status sign_of_tile(const struct session *s, struct place place)
{
    if (!recorded(s, place))
        return STATUS_UNRECORDED;
    if (!judgement_slot_done(s->run.judgement, place.slot))
        return STATUS_UNJUDGED;
    /* A local fault says more than what was reported. */
    if (s->run.trace->info.n_events > 0 && !judgement_tile_bad(s->run.judgement, place, 0) &&
        reports_at(s->run.trace, trace_slot_place(s->run.trace, place.slot),
                   channel_per_kv(place.channel) ? place.kv : -1))
        return STATUS_REPORT;
    return judgement_status(s->run.judgement, place);
}

enum tile_status sign_of_head(const struct session *s, int batch, int head)
{
    enum tile_status worst = STATUS_UNRECORDED;
    if (!s->run.trace || !s->run.judgement)
        return worst;
    const enum asc_channel ch = s->at.cursor.channel;
    const int kv_tiles = channel_per_kv(ch) ? s->run.trace->layout.kv_tiles : 1;
    for (int q = 0; q < s->run.trace->layout.q_tiles; q++) {
        struct place place = {trace_slot(s->run.trace, batch, head, q), 0, ch};
        for (; place.kv < kv_tiles; place.kv++) {
            enum tile_status sign = sign_of_tile(s, place);
            if (severity(sign) > severity(worst))
                worst = sign;
            if (severity(worst) == 5)
                return worst;
            if (!judgement_slot_done(s->run.judgement, place.slot))
                break; /* nor is any other tile of it */
        }
    }
    return worst;
}

enum tile_status sign_of_element(const struct tile_detail *d, int row, int col)
{
    const size_t i = (size_t)row * (size_t)d->cols + (size_t)col;
    const uint8_t *local = d->class_local, *global = d->class_global;
    if (local && class_bad(local[i]))
        return local[i];
    if (global && class_bad(global[i]))
        return STATUS_UPSTREAM;
    if (local && local[i] == STATUS_UNJUDGED && (!global || global[i] == STATUS_UNJUDGED))
        return STATUS_UNJUDGED;
    return CLASS_OK;
}

const char *stage_status_text(enum stage_status mark, enum style *style)
{
    switch (mark) {
    case STAGE_OK:
        *style = STYLE_OK;
        return "ok";
    case STAGE_BAD:
        *style = STYLE_BAD;
        return signs[CLASS_OFF].glyph;
    case STAGE_UNRECORDED:
        *style = STYLE_DIM;
        return "-";
    case STAGE_PARTIAL:
        *style = STYLE_WARNING;
        return "part";
    case STAGE_UNKNOWN:
        break;
    }
    *style = STYLE_DIM;
    return signs[STATUS_UNJUDGED].glyph;
}
