#include "tui/sign.h"

static const struct {
    const char *glyph, *word;
    enum style style;
} signs[SIGN_COUNT] = {
#define CLASS(id, name, utf8, ascii, meaning) [id] = {utf8, name, STYLE_BAD},
#include "engine/oracle/classes.def"
#undef CLASS
#define SIGN(id, glyph, style, word) [id] = {glyph, word, style},
#include "tui/signs.def"
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

/* The most telling class among the bad elements of a tile. */
static enum sign worst_class(const struct verdict *v)
{
    static const enum element_class telling[] = {CLASS_NAN, CLASS_INF, CLASS_MISSING, CLASS_EXTRA};
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
        if (v->count[telling[i]] > 0)
            return (enum sign)telling[i];
    return (enum sign)CLASS_OFF;
}

static int recorded(const struct session *s, struct place place)
{
    return s->trace && s->judgement && place.slot >= 0 && trace_has(s->trace, place.channel);
}

enum sign sign_of_tile(const struct session *s, struct place place)
{
    if (!recorded(s, place))
        return SIGN_UNRECORDED;
    if (!judgement_slot_done(s->judgement, place.slot))
        return SIGN_WAITING;
    const struct tile_verdicts *v = judgement_tile(s->judgement, place);
    if (v->local.judged && judgement_tile_bad(s->judgement, place, 0))
        return worst_class(&v->local);
    if (v->local.masked)
        return SIGN_MASKED;
    if (v->global.judged && judgement_tile_bad(s->judgement, place, 1))
        return v->local.judged ? SIGN_UPSTREAM : worst_class(&v->global);
    /* Not bad, yet not every element is fine: a run that ended early never wrote here. */
    const struct verdict *judged = v->local.judged ? &v->local : &v->global;
    return verdict_ok(judged) ? (enum sign)CLASS_OK : SIGN_UNRECORDED;
}

static int severity(enum sign sign)
{
    if ((int)sign < CLASS_COUNT)
        return sign == (enum sign)CLASS_OK ? 2 : 5;
    return sign == SIGN_UPSTREAM ? 4 : sign == SIGN_WAITING ? 3 : sign == SIGN_MASKED ? 1 : 0;
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
            if (sign == SIGN_UNRECORDED || sign == SIGN_WAITING)
                break; /* the slot as a whole */
        }
    }
    return worst;
}

enum sign sign_of_element(const struct tile_detail *d, int row, int col)
{
    const size_t i = (size_t)row * (size_t)d->cols + (size_t)col;
    const uint8_t *local = d->class_local, *global = d->class_global;
    if (local && local[i] != CLASS_OK && local[i] < CLASS_COUNT)
        return (enum sign)local[i];
    if (global && global[i] != CLASS_OK && global[i] < CLASS_COUNT)
        return SIGN_UPSTREAM;
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
