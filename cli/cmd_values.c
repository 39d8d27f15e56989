/* attnscope values: a channel of a saved trace as whole arrays, with what it should be and how far it may be off. */
#include "cli/options.h"

#include "engine/base/replace.h"
#include "engine/oracle/element.h"
#include "engine/trace/trace_file.h"
#include "engine/verdict/case.h"
#include "engine/verdict/judgement.h"
#include "engine/verdict/own.h"
#include <math.h>
#include <stdlib.h>

enum { GOT, WANT, BOUND, WANT_LOCAL, BOUND_LOCAL, KINDS };
static const char *const kinds[KINDS] = {"got", "want", "bound", "want_local", "bound_local"};

/* The arrays of a (batch, head, q tile) lie together: element (row, col) of kv tile kv is
   row * row_stride + kv * kv_stride + col of its block. */
struct arrays {
    enum asc_channel channel;
    const struct trace *t; /* borrowed */
    uint64_t shape[5];     /* batch and heads first */
    int n_dims;
    size_t row_stride, kv_stride;
    size_t head, block; /* elements of a head, and of a whole q tile */
    enum dtype dtype;   /* of what was captured: bounds go as far as the rounding to it */
    double *of[KINDS];  /* owned by the first one: the block under way */
};

static void add_dim(struct arrays *a, int length)
{
    a->shape[a->n_dims++] = (uint64_t)length;
}

static void lay_out(struct arrays *a)
{
    const struct asc_problem *p = &a->t->problem;
    const struct layout *l = &a->t->layout;
    const enum asc_channel ch = a->channel;
    const bool of_keys = ch == asc_k || ch == asc_v,
               by_key = ch == asc_s || ch == asc_p ||
                        (channel_is_own(ch) && a->t->plan.value[ch - ASC_CHANNELS].cols == ASC_COLS_BC);
    const size_t cols = (size_t)(l->channel[ch].dtype >= 0 ? l->channel[ch].cols : channel_cols(ch, &a->t->plan, p)),
                 bc = (size_t)a->t->plan.bc;
    a->dtype = (enum dtype)(l->channel[ch].dtype >= 0 ? l->channel[ch].dtype : ch == asc_o ? l->o.dtype : l->lse.dtype);
    add_dim(a, p->batch);
    add_dim(a, p->heads);
    add_dim(a, of_keys ? l->q_tiles : p->q_len);
    if (of_keys || by_key)
        add_dim(a, p->kv_len);
    else if (channel_per_kv(ch))
        add_dim(a, l->kv_tiles);
    if (!by_key && cols > 1)
        add_dim(a, (int)cols);
    a->kv_stride = of_keys ? bc * cols : by_key ? bc : channel_per_kv(ch) ? cols : 0;
    a->row_stride = by_key ? (size_t)p->kv_len : cols * (channel_per_kv(ch) && !of_keys ? (size_t)l->kv_tiles : 1);
    a->block = (size_t)(of_keys ? p->kv_len : a->t->plan.br) * a->row_stride;
    a->head = of_keys ? (size_t)l->q_tiles * a->block : (size_t)p->q_len * a->row_stride;
}

static void take(void *ctx, const struct tile_detail *d)
{
    const struct arrays *a = ctx;
    if (d->channel != (int)a->channel)
        return;
    for (int r = 0; r < d->rows; r++)
        for (int c = 0; c < d->cols; c++) {
            const size_t from = (size_t)r * (size_t)d->cols + (size_t)c,
                         to = (size_t)r * a->row_stride + (size_t)d->kv * a->kv_stride + (size_t)c;
            a->of[GOT][to] = d->got[from];
            a->of[WANT][to] = d->want_global[from];
            a->of[BOUND][to] = element_reach(a->dtype, d->want_global[from], d->bound_global[from]);
            a->of[WANT_LOCAL][to] = d->want_local[from];
            a->of[BOUND_LOCAL][to] = element_reach(a->dtype, d->want_local[from], d->bound_local[from]);
        }
}

/* NaN where nothing was recorded. */
static int fill(struct arrays *a, const struct judgement *j, int slot, struct judge_scratch *scratch)
{
    struct slot_case c;
    for (size_t i = 0; i < KINDS * a->block; i++)
        a->of[0][i] = NAN;
    if (slot < 0)
        return 0;
    for (int kv = 0; channel_is_own(a->channel) && kv < a->t->layout.kv_tiles; kv++) {
        struct tile_detail d;
        if (own_detail(a->t, (struct place){slot, kv, a->channel}, &d) != 0)
            return -1;
        take(a, &d);
        tile_detail_free(&d);
    }
    if (channel_is_own(a->channel))
        return 0;
    if (slot_case_make(a->t, slot, &c) != 0)
        return -1;
    c.c.fingerprint = j->fingerprint;
    const int failed = judge_each(&c.c, scratch, take, a);
    slot_case_free(&c);
    return failed;
}

static int write_block(const struct arrays *a, const struct safetensors_tensor *tensors, size_t head, int q_tile,
                       FILE *file)
{
    const size_t begin = (size_t)q_tile * a->block, left = a->head - begin, n = left < a->block ? left : a->block;
    for (int kind = 0; kind < KINDS; kind++)
        if (fseeko(file, (off_t)(tensors[kind].offset + (head * a->head + begin) * sizeof(double)), SEEK_SET) != 0 ||
            fwrite(a->of[kind], sizeof(double), n, file) != n)
            return -1;
    return 0;
}

static int write_arrays(struct arrays *a, const char *path, struct err *err)
{
    struct safetensors_tensor tensors[KINDS] = {{0}};
    unsigned char *header = NULL;
    size_t header_bytes = 0;
    struct replacement r;
    for (int kind = 0; kind < KINDS; kind++) {
        tensors[kind] = (struct safetensors_tensor){.name = kinds[kind], .dtype = "F64", .n_dims = a->n_dims};
        for (int i = 0; i < a->n_dims; i++)
            tensors[kind].shape[i] = a->shape[i];
    }
    if (safetensors_header(tensors, KINDS, NULL, 0, &header, &header_bytes, err) != 0)
        return -1;
    if (replace_open(&r, path, 0666, err) != 0) {
        free(header);
        return -1;
    }
    struct judgement *j = NULL;
    struct judge_scratch *scratch = judge_scratch_new();
    a->of[0] = calloc(KINDS * a->block, sizeof(double));
    for (int kind = 1; kind < KINDS && a->of[0]; kind++)
        a->of[kind] = a->of[0] + (size_t)kind * a->block;
    int no_memory = !scratch || !a->of[0] || judgement_new(a->t, &j) != 0 ||
                    judgement_fingerprint(j, a->t, &scratch, NULL) != 0,
        failed = !no_memory && fwrite(header, header_bytes, 1, r.file) != 1;
    const int heads = a->t->problem.heads, q_tiles = a->t->layout.q_tiles;
    for (int i = 0; i < a->t->problem.batch * heads * q_tiles && !no_memory && !failed; i++) {
        const int slot = trace_slot(a->t, i / q_tiles / heads, i / q_tiles % heads, i % q_tiles);
        no_memory = fill(a, j, slot, scratch) != 0;
        failed = !no_memory && write_block(a, tensors, (size_t)(i / q_tiles), i % q_tiles, r.file) != 0;
    }
    free(header);
    free(a->of[0]);
    judgement_free(j);
    judge_scratch_free(scratch);
    if (!no_memory && !failed)
        return replace_commit(&r, err);
    if (failed)
        err_errno(err, path, "cannot be written");
    else
        err_no_memory(err, path, "the arrays");
    replace_drop(&r);
    return -1;
}

int command_values(const struct options *o, struct err *err)
{
    const char *path = o->files[0], *name = o->files[1];
    struct trace *t;
    if (!o->output)
        return err_set(err, ERR_USAGE, "values", "expected --save FILE");
    if (trace_open(path, &t, err) != 0)
        return -1;
    const int channel = plan_channel_from_name(&t->plan, name);
    if (channel < 0) {
        trace_free(t);
        return err_set(err, ERR_USAGE, "values",
                       "no channel is named '%s', and no value of this run; attnscope docs channels lists them", name);
    }
    struct arrays a = {.channel = (enum asc_channel)channel, .t = t};
    int status = 0;
    if (!trace_has(t, a.channel))
        status = err_set(err, ERR_INPUT, path, "holds no values of %s: it was not recorded", name);
    if (status == 0)
        status = trace_may_replace(o->output, err);
    if (status == 0) {
        lay_out(&a);
        status = write_arrays(&a, o->output, err);
    }
    trace_free(t);
    return status;
}
