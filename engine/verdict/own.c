#include "engine/verdict/own.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void own_count_tile(const struct trace *t, struct place place, struct own_count *count)
{
    const struct tile tile = trace_tile(t, place.channel, place.slot, place.kv);
    const uint64_t stamp = trace_first_stamp(t, place.channel, place.slot, place.kv);
    if (!tile.data || !stamp)
        return;
    for (int r = 0; r < tile.valid_rows; r++)
        for (int c = 0; c < tile.valid_cols; c++) {
            const size_t at = (size_t)r * (size_t)tile.cols + (size_t)c;
            const double value = dtype_load(tile.dtype, tile.data, at);
            if (dtype_is_unwritten(tile.dtype, tile.data, at)) {
                count->unwritten++;
                continue;
            }
            count->written++;
            if (isnan(value)) {
                count->nan++;
                if (stamp < count->nan_stamp || count->first_nan.slot < 0) {
                    count->nan_stamp = stamp;
                    count->first_nan = place;
                    count->row = r;
                    count->col = c;
                }
            } else if (isinf(value)) {
                count->inf++;
            } else {
                count->low = count->finite && count->low < value ? count->low : value;
                count->high = count->finite && count->high > value ? count->high : value;
                count->finite++;
            }
        }
}

void own_count_add(struct own_count *to, const struct own_count *from)
{
    if (from->finite) {
        to->low = to->finite && to->low < from->low ? to->low : from->low;
        to->high = to->finite && to->high > from->high ? to->high : from->high;
    }
    to->written += from->written;
    to->unwritten += from->unwritten;
    to->finite += from->finite;
    to->nan += from->nan;
    to->inf += from->inf;
    if (to->first_nan.slot < 0) { /* clocks of two slots say nothing about each other */
        to->first_nan = from->first_nan;
        to->row = from->row;
        to->col = from->col;
    }
}

void own_count_words(const struct own_count *count, char out[OWN_WORDS_BYTES])
{
    size_t used =
        (size_t)snprintf(out, OWN_WORDS_BYTES, "%" PRIu64 " value%s", count->written, count->written == 1 ? "" : "s");
    if (!count->written)
        used = (size_t)snprintf(out, OWN_WORDS_BYTES, "nothing recorded");
    if (count->finite)
        used += (size_t)snprintf(out + used, OWN_WORDS_BYTES - used, " from %.6g to %.6g", count->low, count->high);
    if (count->nan)
        used += (size_t)snprintf(out + used, OWN_WORDS_BYTES - used, ", %" PRIu64 " NaN", count->nan);
    if (count->inf)
        used += (size_t)snprintf(out + used, OWN_WORDS_BYTES - used, ", %" PRIu64 " infinite", count->inf);
    if (count->unwritten)
        snprintf(out + used, OWN_WORDS_BYTES - used, ", %" PRIu64 " not recorded", count->unwritten);
}

int own_detail(const struct trace *t, struct place place, struct tile_detail *out)
{
    const struct tile tile = trace_tile(t, place.channel, place.slot, place.kv);
    *out = (struct tile_detail){.channel = (int)place.channel, .kv = place.kv};
    if (tile_detail_make(out, (size_t)tile.rows * (size_t)tile.cols) != 0)
        return -1;
    out->rows = tile.valid_rows;
    out->cols = tile.valid_cols;
    for (int i = 0; i < out->rows * out->cols; i++) {
        const size_t at = (size_t)(i / out->cols) * (size_t)tile.cols + (size_t)(i % out->cols);
        const bool written = tile.data && !dtype_is_unwritten(tile.dtype, tile.data, at);
        out->got[i] = written ? dtype_load(tile.dtype, tile.data, at) : NAN;
        out->want_local[i] = out->want_global[i] = out->bound_local[i] = out->bound_global[i] = NAN;
        out->class_local[i] = out->class_global[i] = written ? STATUS_OWN : STATUS_UNRECORDED;
    }
    return 0;
}
