#include "engine/run/feed.h"

#include "engine/oracle/reference_fill.h"
#include "engine/trace/conventions.h"
#include "engine/trace/trace_store.h"
#include "engine/verdict/case.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int same_problem(const struct asc_problem *a, const struct asc_problem *b)
{
    int same = 1;
#define PROBLEM_INTEGER(name) same = same && a->name == b->name;
#define PROBLEM_REAL(name) same = same && a->name == b->name;
#define PROBLEM_TEXT(name) same = same && strcmp(a->name, b->name) == 0;
#include "engine/base/fields.def"
#undef PROBLEM_INTEGER
#undef PROBLEM_REAL
#undef PROBLEM_TEXT
    return same;
}

static bool same_tensor(const struct trace *a, const struct trace *b, char which)
{
    enum dtype x, y;
    const void *of_a = trace_tensor(a, which, &x), *of_b = trace_tensor(b, which, &y);
    const struct layout *l = &a->layout;
    const size_t bytes = which == 'q'   ? l->q.bytes
                         : which == 'k' ? l->k.bytes
                         : which == 'v' ? l->v.bytes
                         : which == 's' ? l->sink.bytes
                         : which == 'a' ? l->alibi.bytes
                         : which == 'm' ? l->mask.bytes
                         : which == 'd' ? l->keep.bytes
                                        : l->bias.bytes;
    if (!of_a || !of_b)
        return of_a == of_b;
    return x == y && memcmp(of_a, of_b, bytes) == 0;
}

/* Of the same problem. */
static bool same_scales(const struct trace *a, const struct trace *b, char which)
{
    const float *of_a = trace_scales(a, which), *of_b = trace_scales(b, which);
    const struct layout *l = &a->layout;
    const size_t bytes = which == 'q' ? l->q_scale.bytes : which == 'k' ? l->k_scale.bytes : l->v_scale.bytes;
    return !of_a || memcmp(of_a, of_b, bytes) == 0;
}

static int check_types(const struct trace *run, const struct trace *from, const char *path, uint32_t channels,
                       struct err *err)
{
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const int wanted = run->layout.channel[ch].dtype, there = from->layout.channel[ch].dtype;
        if (!(channels & 1u << ch) || wanted == there)
            continue;
        if (there < 0)
            return err_set(err, ERR_INPUT, path, "cannot feed this run: it does not contain %s", channel_name(ch));
        return err_set(err, ERR_INPUT, path, "cannot feed this run: it has %s as %s, the kernel has %s",
                       channel_name(ch), dtype_name((enum dtype)there), dtype_name((enum dtype)wanted));
    }
    return 0;
}

int feed_check(const struct trace *run, const struct trace *from, const char *path, uint32_t channels, struct err *err)
{
    const struct asc_plan *a = &run->plan, *b = &from->plan;
    if (!same_problem(&run->problem, &from->problem))
        return err_set(err, ERR_INPUT, path, "cannot feed this run: it has a different problem");
    if (a->br != b->br || a->bc != b->bc || a->l_lanes != b->l_lanes)
        return err_set(err, ERR_INPUT, path, "cannot feed this run: its tiles are %d x %d, the kernel's %d x %d", b->br,
                       b->bc, a->br, a->bc);
    if (a->kv_splits != b->kv_splits)
        return err_set(err, ERR_INPUT, path, "cannot feed this run: it has %d kv splits, the kernel %d", b->kv_splits,
                       a->kv_splits);
    if (a->kv_deal != b->kv_deal)
        return err_set(err, ERR_INPUT, path, "cannot feed this run: its kv tiles are dealt as %s, the kernel's as %s",
                       plan_deal_names[b->kv_deal], plan_deal_names[a->kv_deal]);
    if (!trace_same_states(run, from))
        return err_set(err, ERR_INPUT, path, "cannot feed this run: its kv tiles are dealt to other splits");
    if (!conventions_same(&run->conventions, &from->conventions))
        return err_set(err, ERR_INPUT, path, "cannot feed this run: its kernel declares different conventions");
    if (!same_tensor(run, from, 'q') || !same_tensor(run, from, 'k') || !same_tensor(run, from, 'v'))
        return err_set(err, ERR_INPUT, path, "cannot feed this run: its Q, K or V are not this run's inputs");
    if (!same_scales(run, from, 'q') || !same_scales(run, from, 'k') || !same_scales(run, from, 'v'))
        return err_set(err, ERR_INPUT, path, "cannot feed this run: its scales are not this run's inputs");
    if (!same_tensor(run, from, 's') || !same_tensor(run, from, 'a') || !same_tensor(run, from, 'b') ||
        !same_tensor(run, from, 'm') || !same_tensor(run, from, 'd'))
        return err_set(err, ERR_INPUT, path,
                       "cannot feed this run: its sinks, biases, mask or kept weights are not this run's inputs");
    if (check_types(run, from, path, channels, err) != 0)
        return -1;
    for (int slot = 0; slot < run->layout.n_slots; slot++) {
        const int32_t *place = trace_slot_place(run, slot);
        if (trace_slot(from, place[0], place[1], place[2]) < 0)
            return err_set(err, ERR_INPUT, path,
                           "cannot feed this run: it does not contain batch %d, head %d, q tile %d", place[0], place[1],
                           place[2]);
    }
    return 0;
}

int feed_trace_with(const struct trace *run, const struct trace_inputs *inputs, uint32_t channels, struct trace **out,
                    struct err *err)
{
    const struct layout *l = &run->layout;
    struct layout_types types = layout_types_of(l);
    struct asc_problem problem = run->problem;
    enum dtype f32;
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        types.channel[ch] = channels & 1u << ch ? types.channel[ch] : -1;
    problem.sink = trace_tensor(run, 's', &f32);
    problem.alibi = trace_tensor(run, 'a', &f32);
    problem.bias = trace_tensor(run, 'b', &f32);
    problem.mask = trace_tensor(run, 'm', &f32);
    problem.keep = trace_tensor(run, 'd', &f32);
    problem.q_scale = trace_scales(run, 'q');
    problem.k_scale = trace_scales(run, 'k');
    problem.v_scale = trace_scales(run, 'v');
    return trace_create_in(NULL, &problem, &run->plan, &run->conventions, &types,
                           (const int32_t(*)[3])(const void *)(run->bytes + l->slots.offset), l->n_slots, inputs, out,
                           err);
}

int feed_trace_like(const struct trace *run, struct trace **out, struct err *err)
{
    const struct layout *l = &run->layout;
    const unsigned char *at = run->bytes;
    const struct trace_inputs inputs = {
        .of = {at + l->q.offset, at + l->k.offset, at + l->v.offset},
        .given = {at + l->q_given.offset, at + l->k_given.offset, at + l->v_given.offset}};
    return feed_trace_with(run, &inputs, ~0u, out, err);
}

int feed_open(struct feed *f, const struct trace *run, const struct trace *from, uint32_t channels, struct err *err)
{
    *f = (struct feed){.run = run, .from = from, .channels = channels};
    if (feed_trace_like(run, &f->trace, err) != 0)
        return -1;
    void *bytes = mmap(NULL, f->trace->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->trace->fd, 0);
    if (bytes == MAP_FAILED) {
        feed_close(f);
        return err_errno(err, "fed trace", "mapping it");
    }
    f->bytes = bytes;
    return 0;
}

/* The place of a tile in the writable mapping; data NULL: this channel is not fed. */
static struct tile writable(const struct feed *f, enum asc_channel ch, int slot, int kv)
{
    if (!(f->channels & 1u << ch))
        return (struct tile){0};
    return trace_tile(f->trace, ch, slot, kv);
}

static void *address(const struct feed *f, const struct tile *tile)
{
    return tile->data ? f->bytes + ((const unsigned char *)tile->data - f->trace->bytes) : NULL;
}

static int fill_from_reference(const struct feed *f, int slot, struct judge_scratch *scratch)
{
    struct slot_case c;
    const int kv_tiles = f->run->layout.kv_tiles;
    struct reference_target *tiles = calloc((size_t)kv_tiles * ASC_CHANNELS, sizeof *tiles);
    if (!tiles || slot_case_make(f->run, slot, &c) != 0) {
        free(tiles);
        return -1;
    }
    for (int kv = 0; kv < kv_tiles; kv++)
        for (int ch = 0; ch < ASC_CHANNELS; ch++) {
            const struct tile tile = writable(f, ch, slot, kv);
            const bool pads = ch == asc_s || ch == asc_p;
            tiles[kv * ASC_CHANNELS + ch] =
                (struct reference_target){.data = address(f, &tile),
                                          .dtype = tile.dtype,
                                          .row_stride = tile.cols,
                                          .rows = tile.valid_rows,
                                          .cols = tile.valid_cols,
                                          .pad_cols = pads ? tile.cols - tile.valid_cols : 0};
        }
    const int failed = reference_fill(&c.c, scratch, tiles);
    slot_case_free(&c);
    free(tiles);
    return failed;
}

int feed_slot(const struct feed *f, int slot, struct judge_scratch *scratch)
{
    if (!f->from)
        return fill_from_reference(f, slot, scratch);
    const int32_t *place = trace_slot_place(f->run, slot);
    const int there = trace_slot(f->from, place[0], place[1], place[2]);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int kv = 0; kv < (channel_per_kv(ch) ? f->run->layout.kv_tiles : 1); kv++) {
            const struct tile to = writable(f, ch, slot, kv), from = trace_tile(f->from, ch, there, kv);
            if (to.data && from.data)
                memcpy(address(f, &to), from.data, (size_t)to.rows * (size_t)to.cols * dtype_bytes(to.dtype));
        }
    return 0;
}

static void unmap(struct feed *f)
{
    if (f->bytes)
        munmap(f->bytes, f->trace->n_bytes);
    f->bytes = NULL;
}

struct trace *feed_finish(struct feed *f)
{
    struct trace *t = f->trace;
    unmap(f);
    f->trace = NULL;
    return t;
}

void feed_close(struct feed *f)
{
    unmap(f);
    trace_free(f->trace);
    f->trace = NULL;
}
