/* The softmax state of the cursor's row over the kv tiles, captured and by the reference, as small curves. */
#include "tui/views/panels.h"

#include "tui/screen/number.h"
#include "tui/views/sign.h"
#include <math.h>
#include <stdio.h>

struct curve {
    const struct session *s;
    enum asc_channel channel;
    int slot, first, n; /* kv tiles first .. first + n - 1 */
};

enum point_kind { POINT_VALUE, POINT_ABSENT, POINT_MASKED, POINT_UNWRITTEN };

static enum point_kind captured(const struct curve *k, int kv, double *value)
{
    const struct tile tile = trace_tile(k->s->run.trace, k->channel, k->slot, kv);
    const int row = k->s->at.cursor.row;
    if (!tile.data || row < 0 || row >= tile.valid_rows)
        return POINT_ABSENT;
    const size_t i = (size_t)row * (size_t)tile.cols;
    if (dtype_is_unwritten(tile.dtype, tile.data, i))
        return POINT_UNWRITTEN;
    *value = dtype_load(tile.dtype, tile.data, i);
    return POINT_VALUE;
}

static enum point_kind point(const struct curve *k, int kv, int wanted, double *value)
{
    /* A tile without a key in reach is rightly never visited. */
    if (sign_of_tile(k->s, (struct place){k->slot, kv, k->channel}) == STATUS_MASKED)
        return POINT_MASKED;
    if (!wanted)
        return captured(k, kv, value);
    *value = k->s->tile.row_want[k->channel][kv];
    return isnan(*value) ? POINT_ABSENT : POINT_VALUE; /* a tile never visited changes nothing */
}

/* Captured and wanted share one scale. */
static void find_range(const struct curve *k, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    const int kinds = k->s->tile.row_want[k->channel] ? 2 : 1;
    for (int wanted = 0; wanted < kinds; wanted++) {
        for (int kv = k->first; kv < k->first + k->n; kv++) {
            double value;
            if (point(k, kv, wanted, &value) == POINT_VALUE && isfinite(value)) {
                *low = value < *low ? value : *low;
                *high = value > *high ? value : *high;
            }
        }
    }
}

static const char *level(double value, double low, double high)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    /* A curve shows its run, not rounding: what differs by less than a thousandth is level. */
    const double least = 1e-3 * fmax(fabs(low), fabs(high)), span = fmax(high - low, least);
    if (!(span > 0))
        return levels[0];
    int i = (int)((value - low) / span * 7.0 + 0.5);
    return levels[i < 0 ? 0 : i > 7 ? 7 : i];
}

/* A window on more kv tiles than there is room for says so at its ends. */
static void ends_draw(const struct curve *k, struct canvas *c, struct rect area, int row, int col)
{
    if (k->first > 0)
        canvas_put(c, area, row, col - 1, STYLE_DIM, "←");
    if (k->first + k->n < k->s->run.trace->layout.kv_tiles)
        canvas_put(c, area, row, col + k->n, STYLE_DIM, "→");
}

static void curve_draw(const struct curve *k, struct canvas *c, struct rect area, int row, int col, int wanted)
{
    double low, high, value = NAN;
    find_range(k, &low, &high);
    for (int i = 0; i < k->n; i++) {
        const int kv = k->first + i;
        enum style style = kv == k->s->at.cursor.kv_tile ? STYLE_STRONG : STYLE_TEXT;
        const char *glyph = " ";
        switch (point(k, kv, wanted, &value)) {
        case POINT_ABSENT:
            break;
        case POINT_MASKED:
            glyph = sign_glyph(STATUS_MASKED);
            style = STYLE_DIM;
            break;
        case POINT_UNWRITTEN:
            glyph = "?";
            style = STYLE_BAD;
            break;
        case POINT_VALUE:
            if (isfinite(value)) {
                glyph = level(value, low, high);
            } else {
                glyph = isnan(value) ? "N" : value > 0 ? "∞" : "-";
                style = isinf(value) && value < 0 ? STYLE_DIM : STYLE_NONFINITE;
            }
            break;
        }
        canvas_put(c, area, row, col + i, style, glyph);
    }
}

/* The value at the cursor's kv tile, right of the curve. */
static void value_draw(const struct curve *k, struct canvas *c, struct rect area, int row, int col, int wanted)
{
    double value;
    char text[NUMBER_BYTES];
    const int kv = k->s->at.cursor.kv_tile;
    if (area.cols - col >= 8 && point(k, kv, wanted, &value) == POINT_VALUE)
        canvas_put(c, area, row, col + 1, STYLE_DIM, number_signed(text, value, 7));
}

void state_draw(const struct session *s, struct canvas *c, struct rect area, bool roomy)
{
    static const enum asc_channel compact[] = {asc_m, asc_l}, full[] = {asc_m, asc_alpha, asc_l};
    const enum asc_channel *channels = roomy ? full : compact;
    const int n = roomy ? 3 : 2, label_cols = 7;
    const int slot = session_slot(s);
    if (!s->run.trace || slot < 0)
        return;
    const int kv_tiles = s->run.trace->layout.kv_tiles;
    int room = area.cols - label_cols - (roomy ? 9 : 0);
    if (room >= kv_tiles)
        room = kv_tiles;
    else
        room--; /* for the sign that there are more */
    int row = 0;
    for (int i = 0; i < n; i++) {
        const struct curve k = {s, channels[i], slot, window_first(s->at.cursor.kv_tile, room, kv_tiles), room};
        const bool has_want = s->tile.row_want[k.channel] != NULL;
        if (!trace_has(s->run.trace, k.channel))
            continue;
        canvas_printf(c, area, row, 0, STYLE_DIM, "%s", channel_label(k.channel));
        for (int wanted = 0; wanted < (has_want ? 2 : 1); wanted++, row++) {
            canvas_put(c, area, row, 3, STYLE_DIM, wanted ? "ref" : "got");
            curve_draw(&k, c, area, row, label_cols, wanted);
            hit_add(c, area, (struct rect){row, label_cols, 1, k.n}, HIT_KV, 0, k.first, 1);
            ends_draw(&k, c, area, row, label_cols);
            if (roomy)
                value_draw(&k, c, area, row, label_cols + room + (room < kv_tiles), wanted);
        }
    }
}
