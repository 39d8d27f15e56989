#include "engine/run/negate.h"

#include "engine/run/feed.h"
#include <stdlib.h>
#include <string.h>

size_t negate_elements(enum dtype t, void *data, size_t n)
{
    unsigned char *bytes = data;
    const size_t size = dtype_bytes(t);
    size_t lost = 0;
    if (t == DTYPE_U8) {
        for (size_t i = 0; i < n; i++) {
            lost += bytes[i] == 0;
            bytes[i] = bytes[i] ? (unsigned char)(2 * ASC_U8_MIDPOINT - bytes[i]) : 0;
        }
        return lost;
    }
    for (size_t i = 0; i < n; i++) /* little-endian: the sign is in the last byte */
        bytes[i * size + size - 1] ^= 0x80;
    return 0;
}

uint32_t negate_channels(const struct trace *run, char which)
{
    static const enum asc_channel of_q[] = {asc_s}, of_v[] = {asc_u, asc_o};
    uint32_t set = 0;
    if (which != 'v' && trace_has(run, of_q[0]))
        set |= 1u << of_q[0];
    for (int i = 0; which != 'q' && i < 2; i++)
        if (trace_has(run, of_v[i]))
            set |= 1u << of_v[i];
    return set;
}

static int negated_trace(const struct trace *run, char which, struct trace **out, struct err *err)
{
    const struct layout *l = &run->layout;
    const unsigned char *at = run->bytes;
    struct trace_inputs inputs = {.of = {at + l->q.offset, at + l->k.offset, at + l->v.offset}};
    const uint64_t bytes = which == 'q' ? l->q.bytes : l->v.bytes;
    void *own = NULL;
    if (which) {
        enum dtype t;
        const void *from = trace_tensor(run, which, &t);
        own = malloc(bytes);
        if (!own)
            return err_no_memory(err, "", "the negated inputs");
        memcpy(own, from, bytes);
        if (negate_elements(t, own, bytes / dtype_bytes(t)) > 0) {
            free(own);
            return err_set(err, ERR_DECLINED, "", "%c contains the u8 code 0, which has no negative",
                           which == 'q' ? 'Q' : 'V');
        }
        inputs.of[which == 'q' ? 0 : 2] = own;
    }
    const int failed = feed_trace_with(run, &inputs, negate_channels(run, which), out, err);
    free(own);
    return failed;
}

int negate_record(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                  const struct trace *run, char which, const struct runner_progress *progress, struct trace **out,
                  struct err *err)
{
    struct trace *t;
    *out = NULL;
    if (negated_trace(run, which, &t, err) != 0)
        return -1;
    const int failed = record_again(r, paths, scenario, run, run->info.probes_off ? PROBES_NONE : PROBES_RECORD, t,
                                    progress, out, err);
    if (failed) {
        trace_free(*out);
        *out = NULL;
    }
    return failed;
}

static int same_tile(struct tile a, struct tile b)
{
    const size_t size = dtype_bytes(a.dtype);
    if (!a.data || !b.data)
        return 1;
    for (int row = 0; row < a.valid_rows; row++)
        if (memcmp((const unsigned char *)a.data + (size_t)(row * a.cols) * size,
                   (const unsigned char *)b.data + (size_t)(row * b.cols) * size, (size_t)a.valid_cols * size) != 0)
            return 0;
    return 1;
}

bool negate_same(const struct trace *run, const struct trace *again, uint32_t channels)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; channels & 1u << ch && slot < run->layout.n_slots; slot++)
            for (int kv = 0; kv < (channel_per_kv(ch) ? run->layout.kv_tiles : 1); kv++)
                if (!same_tile(trace_tile(run, ch, slot, kv), trace_tile(again, ch, slot, kv)))
                    return false;
    enum dtype t;
    return !(channels & 1u << asc_o) ||
           memcmp(trace_tensor(run, 'o', &t), trace_tensor(again, 'o', &t), run->layout.o.bytes) == 0;
}
