#include "tui/views/sign.h"

#include "engine/verdict/outcome.h"
#include "engine/verdict/reports.h"

static const struct {
    const char *glyph, *word, *meaning;
    enum style style;
} signs[SIGN_COUNT] = {
#define CLASS(id, name, utf8, ascii, meaning) [id] = {utf8, name, meaning, STYLE_BAD},
#include "engine/oracle/classes.def"
#undef CLASS
#define SIGN(id, glyph, style, word, meaning) [id] = {glyph, word, meaning, style},
#include "tui/views/signs.def"
#undef SIGN
};

const char *sign_glyph(enum sign sign)
{
    return signs[sign].glyph;
}

const char *sign_word(enum sign sign)
{
    return signs[sign].word;
}

const char *sign_meaning(enum sign sign)
{
    return signs[sign].meaning;
}

enum style sign_style(enum sign sign)
{
    switch ((int)sign) {
    case CLASS_OK:
        return STYLE_OK;
    case CLASS_NAN:
    case CLASS_INF:
        return STYLE_NONFINITE;
    default:
        return signs[sign].style;
    }
}

static int severity(enum sign sign)
{
    if ((int)sign < CLASS_COUNT)
        return sign == (enum sign)CLASS_OK ? 2 : 5;
    return sign == SIGN_REPORT || sign == SIGN_UPSTREAM || sign == SIGN_UNWRITTEN ? 4
           : sign == SIGN_WAITING                                                 ? 3
           : sign == SIGN_MASKED                                                  ? 1
                                                                                  : 0;
}

int sign_bad(enum sign sign)
{
    return severity(sign) == 5;
}

/* Of bad classes the more telling comes first. */
static int telling(enum sign sign)
{
    static const int ranks[] = {
        [CLASS_NAN] = 4, [CLASS_INF] = 3, [CLASS_MISSING] = 2, [CLASS_EXTRA] = 1, [CLASS_OFF] = 0};
    return sign_bad(sign) ? ranks[sign] : 0;
}

enum sign sign_worse(enum sign a, enum sign b)
{
    const int more = severity(b) - severity(a);
    return more > 0 || (more == 0 && telling(b) > telling(a)) ? b : a;
}

static int recorded(const struct session *s, struct place place)
{
    return s->trace && s->judgement && place.slot >= 0 && trace_has(s->trace, place.channel);
}

static enum sign sign_of_outcome(enum outcome outcome)
{
    switch ((int)outcome) {
    case OUTCOME_UPSTREAM:
        return SIGN_UPSTREAM;
    case OUTCOME_MASKED:
        return SIGN_MASKED;
    case OUTCOME_UNWRITTEN:
        return SIGN_UNWRITTEN;
    case OUTCOME_UNJUDGED:
        return SIGN_WAITING;
    default:
        return (enum sign)outcome;
    }
}

enum sign sign_of_tile(const struct session *s, struct place place)
{
    if (!recorded(s, place))
        return SIGN_UNRECORDED;
    if (!judgement_slot_done(s->judgement, place.slot))
        return SIGN_WAITING;
    const enum outcome outcome = judgement_outcome(s->judgement, place);
    /* A local fault says more than what was reported. */
    if (s->trace->info.n_events > 0 && !judgement_tile_bad(s->judgement, place, 0) &&
        reports_at(s->trace, trace_slot_place(s->trace, place.slot), channel_per_kv(place.channel) ? place.kv : -1))
        return SIGN_REPORT;
    return sign_of_outcome(outcome);
}

enum sign sign_of_head(const struct session *s, int batch, int head)
{
    enum sign worst = SIGN_UNRECORDED;
    if (!s->trace || !s->judgement)
        return worst;
    const enum asc_channel ch = s->cursor.channel;
    const int kv_tiles = channel_per_kv(ch) ? s->trace->layout.kv_tiles : 1;
    for (int q = 0; q < s->trace->layout.q_tiles; q++) {
        struct place place = {trace_slot(s->trace, batch, head, q), 0, ch};
        for (; place.kv < kv_tiles; place.kv++) {
            enum sign sign = sign_of_tile(s, place);
            if (severity(sign) > severity(worst))
                worst = sign;
            if (severity(worst) == 5)
                return worst;
            if (!judgement_slot_done(s->judgement, place.slot))
                break; /* nor is any other tile of it */
        }
    }
    return worst;
}

enum sign sign_of_element(const struct tile_detail *d, int row, int col)
{
    const size_t i = (size_t)row * (size_t)d->cols + (size_t)col;
    const uint8_t *local = d->class_local, *global = d->class_global;
    if (local && class_bad(local[i]))
        return (enum sign)local[i];
    if (global && class_bad(global[i]))
        return SIGN_UPSTREAM;
    if (local && local[i] == CLASS_UNJUDGED && (!global || global[i] == CLASS_UNJUDGED))
        return SIGN_WAITING;
    return (enum sign)CLASS_OK;
}

const char *mark_text(enum mark mark, enum style *style)
{
    switch (mark) {
    case MARK_OK:
        *style = STYLE_OK;
        return "ok";
    case MARK_BAD:
        *style = STYLE_BAD;
        return signs[CLASS_OFF].glyph;
    case MARK_UNRECORDED:
        *style = STYLE_DIM;
        return "-";
    case MARK_PARTIAL:
        *style = STYLE_WARNING;
        return "part";
    case MARK_UNKNOWN:
        break;
    }
    *style = STYLE_DIM;
    return signs[SIGN_WAITING].glyph;
}
