#include "engine/run/gpu_judge.h"

#include "engine/base/units.h"
#include "engine/build/device.h"
#include "engine/build/process.h"
#include "engine/judge/numbers.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/run/gpu_work.h"
#include "engine/trace/layout.h"
#include "engine/verdict/case.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT_S 3600.0 /* of a judge that hangs */
#define FIND_S 60.0    /* a context on a cold driver takes seconds */

void gpu_judged_free(struct gpu_judged *g)
{
    free(g->tiles);
    free(g->values);
    *g = (struct gpu_judged){0};
}

/* The case of a place. A head's is made anew where the head is another one than before. */
static int case_at(const struct trace *t, const int32_t *types, const int32_t place[3], struct head *head,
                   struct oracle_case *out)
{
    if (!head->made || head->place[0] != place[0] || head->place[1] != place[1]) {
        slot_case_free(&head->c);
        head->made = false;
        if (place_case_make(t, place, types, &head->c) != 0)
            return -1;
        head->made = true;
        memcpy(head->place, place, sizeof head->place);
    }
    *out = head->c.c;
    out->q_tile = place[2];
    out->states = trace_states(t, place);
    out->q_codes.first += (place[2] - head->place[2]) * out->br;
    if (out->bias.data)
        out->bias.data =
            (const float *)out->bias.data + (int64_t)(place[2] - head->place[2]) * out->br * out->bias.row_stride;
    if (out->mask.data)
        out->mask.data = (const unsigned char *)out->mask.data +
                         (int64_t)(place[2] - head->place[2]) * out->br * out->mask.row_stride;
    out->in_q.rows = channel_valid_rows(asc_q, &t->problem, &t->plan, place[0], place[2], 0);
    return 0;
}

int gpu_judge_unknown(const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                      const char **unknown, struct err *err)
{
    struct head head = {0};
    int failed = 0;
    *unknown = NULL;
    for (int64_t i = 0; i < n && !failed && !*unknown; i++) {
        struct oracle_case c;
        failed = case_at(t, types, places[i], &head, &c);
        if (failed)
            break;
        *unknown = judge_unknown(&c);
    }
    slot_case_free(&head.c);
    return failed ? err_no_memory(err, "", "the judge's work") : 0;
}

bool gpu_judge_is_slow(const struct gpu_device *gpu)
{
    enum { COMPUTES = 4 };
    return gpu->f32_per_f64 > COMPUTES;
}

/* A multiply and an add in a clock of each unit, of which there are 128 for f32 in a multiprocessor. */
void gpu_judge_slow_words(const struct gpu_device *gpu, const struct asc_problem *p, char *out, size_t bytes)
{
    enum { UNITS = 128 };
    char time[32];
    const double products = (double)p->batch * p->heads * p->q_len * p->kv_len * (p->head_dim + p->head_dim_v) *
                            (p->causal != ASC_CAUSAL_NONE ? 0.5 : 1);
    const double rate = 1e3 * gpu->clock_khz * gpu->multiprocessors * UNITS / gpu->f32_per_f64;
    int used = snprintf(out, bytes, "%.60s computes float64 at 1/%d of f32's rate", gpu->name, gpu->f32_per_f64);
    if (!(rate > 0) || used < 0 || (size_t)used >= bytes)
        return;
    units_seconds(products / rate, time, sizeof time);
    snprintf(out + used, bytes - (size_t)used, ": the products of every q tile take at least %s there", time);
}

int gpu_judge_find(const struct runner_paths *paths, char *program, size_t program_bytes, char *device,
                   size_t device_bytes, struct err *err)
{
    struct process_output output = {0};
    struct gpu_device gpu;
    if (device_find(paths, &gpu, err) != 0)
        return -1;
    if (runner_find_built(paths, "attnscope-judge", program, program_bytes, err) != 0)
        return err_set(err, ERR_SYSTEM, "", "attnscope-judge is not built (make judge)");
    const char *argv[] = {program, NULL};
    if (process_capture(argv, FIND_S, NULL, &output, err) != 0)
        return -1;
    char *end = strchr(output.out, '\n');
    const bool says = output.status == 0 && end && end > output.out;
    if (says) {
        *end = '\0';
        snprintf(device, device_bytes, "%s", output.out);
    } else {
        output.err[strcspn(output.err, "\n")] = '\0';
        err_set(err, ERR_SYSTEM, "", "%.200s", *output.err ? output.err : "attnscope-judge says nothing");
    }
    process_output_free(&output);
    return says ? 0 : -1;
}

static int64_t after(int64_t *at, int64_t n, size_t size)
{
    const int64_t here = (*at + 63) / 64 * 64;
    *at = here + n * (int64_t)size;
    return here;
}

static int make_file(const struct judge_work *header, struct gpu_work *job, struct err *err)
{
    job->bytes = (size_t)header->bytes;
    job->fd = memfd_create("attnscope-judge", MFD_CLOEXEC);
    if (job->fd < 0 || ftruncate(job->fd, header->bytes) != 0)
        return err_errno(err, "", "the judge's work");
    void *at = mmap(NULL, job->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, job->fd, 0);
    if (at == MAP_FAILED)
        return err_errno(err, "", "the judge's work");
    job->work = at;
    *job->work = *header;
    return 0;
}

void gpu_work_close(struct gpu_work *job)
{
    if (job->work)
        munmap(job->work, job->bytes);
    if (job->fd >= 0)
        close(job->fd);
}

void *gpu_work_part(const struct gpu_work *job, int64_t offset)
{
    return (unsigned char *)job->work + offset;
}

static int64_t bytes_from(const void *from, const void *to)
{
    return (const unsigned char *)to - (const unsigned char *)from;
}

static int64_t offset_of(const struct trace *t, const void *data)
{
    return bytes_from(t->bytes, data);
}

static int64_t row_bytes(const struct matrix *m)
{
    return m->row_stride * (int64_t)dtype_bytes(m->dtype);
}

/* Where the tensors of a tile lie. */
static void place_tensors(const struct trace *t, const struct oracle_case *c, const struct head *head,
                          const struct judge_work *w, struct judge_tile *tile)
{
    const struct matrix *o = &c->captured[asc_o], *lse = &c->captured[asc_lse];
    const int64_t rows = (int64_t)(c->q_tile - head->place[2]) * c->br;
    tile->q = offset_of(t, c->in_q.data) + rows * row_bytes(&c->in_q);
    tile->k = offset_of(t, c->in_k.data);
    if (w->turned_bytes[0]) {
        tile->q = w->turned[0] + rows * row_bytes(&c->in_q) + bytes_from(trace_turned(t, 'q'), c->in_q.data);
        tile->k = w->turned[1] + bytes_from(trace_turned(t, 'k'), c->in_k.data);
    }
    tile->v = offset_of(t, c->in_v.data);
    tile->o = offset_of(t, o->data) + rows * row_bytes(o);
    tile->mask = c->mask.data ? offset_of(t, c->mask.data) : 0;
    tile->bias = c->bias.data ? offset_of(t, c->bias.data) : 0;
    tile->lse = lse->data ? offset_of(t, lse->data) + rows * row_bytes(lse) : 0;
}

/* Whether place i is another head's than the one before. */
static bool begins_head(int32_t (*places)[3], int64_t i)
{
    return i == 0 || places[i][0] != places[i - 1][0] || places[i][1] != places[i - 1][1];
}

/* How much of each there is: heads, rows, blocks and values of all places. c: the case of one. */
static void count_work(const struct trace *t, const struct oracle_case *c, int32_t (*places)[3], int64_t n,
                       struct judge_work *w)
{
    const struct asc_problem *p = &t->problem;
    const bool coded = dtype_is_code((enum dtype)p->dtype) || dtype_is_code((enum dtype)p->k_dtype) ||
                       dtype_is_code((enum dtype)p->v_dtype);
    w->n_tiles = n;
    enum dtype u8;
    w->n_skips = trace_tensor(t, 'm', &u8) ? n * t->layout.kv_tiles : 0;
    for (int64_t i = 0; i < n; i++) {
        const int rows = channel_valid_rows(asc_q, &t->problem, &t->plan, places[i][0], places[i][2], 0);
        w->n_rows += rows;
        w->n_blocks += (rows + JUDGE_ROWS - 1) / JUDGE_ROWS;
        w->n_values += (int64_t)rows * (t->problem.head_dim_v + 1);
        w->n_numbers += begins_head(places, i);
    }
    w->n_scales =
        coded ? w->n_rows + w->n_numbers * ((int64_t)p->kv_len + t->layout.kv_tiles + judge_scale_codes_room(c)) : 0;
    if (c->kv_splits > 1)
        w->n_orders = n * t->layout.kv_tiles;
    for (int i = 0; i < 2 && c->rope.kind; i++)
        w->turned_bytes[i] = (int64_t)(problem_tensor_count(p, i ? TENSOR_K : TENSOR_Q) * sizeof(float));
}

/* Longest rows first: what is left at the end of a launch is short. Captured q tiles piece by piece. */
static int by_length(const void *a, const void *b, void *work)
{
    const struct gpu_work *job = work;
    const int64_t n = job->work->n_tiles;
    const int pieces = job->work->n_verdicts ? judge_piece(((const struct judge_block *)a)->tile, n) -
                                                   judge_piece(((const struct judge_block *)b)->tile, n)
                                             : 0;
    const struct judge_tile *of = gpu_work_part(job, job->work->tiles), *x = &of[((const struct judge_block *)a)->tile],
                            *y = &of[((const struct judge_block *)b)->tile];
    const int by = (y->last - y->first) - (x->last - x->first);
    return pieces ? pieces : by ? by : (int)(x > y) - (int)(x < y);
}

/* What is the same for all heads: strides, and what codes are. */
static void fill_common(const struct oracle_case *c, struct judge_work *w)
{
    const struct matrix *of[] = {&c->in_q, &c->in_k, &c->in_v, &c->captured[asc_o]};
    for (int m = 0; m < 4; m++)
        w->stride[m] = of[m]->row_stride;
    w->mask_stride = c->mask.row_stride;
    w->bias_stride = c->bias.row_stride;
    if (!c->mask.data)
        w->n_skips = 0;
    for (int m = 0; m < 3; m++)
        for (int code = 0; code < 256 && dtype_is_code(of[m]->dtype); code++)
            w->code[m][code] = (float)values_code(of[m]->dtype, (uint8_t)code);
}

/* One launch judges all heads: where one of them needs more than K and V as they come, as by a slope that is not 0, all
   have f32. */
static void same_elements(struct judge_numbers *numbers, int64_t n)
{
    int32_t bytes = 2;
    for (int64_t i = 0; i < n; i++)
        bytes = numbers[i].element_bytes > bytes ? numbers[i].element_bytes : bytes;
    for (int64_t i = 0; i < n; i++)
        numbers[i].element_bytes = bytes;
}

static int fill_work(const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                     const struct gpu_work *job)
{
    struct judge_work *w = job->work;
    struct judge_tile *tiles = gpu_work_part(job, w->tiles);
    struct judge_range *ranges = gpu_work_part(job, w->ranges);
    struct judge_block *blocks = gpu_work_part(job, w->blocks);
    struct judge_numbers *numbers = gpu_work_part(job, w->numbers);
    double *scales = gpu_work_part(job, w->scales);
    struct head head = {0};
    int64_t scale = 0;
    int64_t row = 0;
    int64_t block = 0;
    int64_t value = 0;
    for (int64_t i = 0; i < n; i++) {
        struct oracle_case c;
        if (case_at(t, types, places[i], &head, &c) != 0) {
            slot_case_free(&head.c);
            return -1;
        }
        if (i == 0)
            fill_common(&c, w);
        if (begins_head(places, i)) {
            *numbers = judge_numbers_of(&c);
            if (w->n_scales) {
                numbers->by_key = scale;
                numbers->by_tile = scale + c.kv_len;
                judge_scale_keys(&c, scales + numbers->by_key, scales + numbers->by_tile);
                scale += c.kv_len + c.kv_tiles;
                judge_scale_codes(&c, scale, scales, numbers);
                scale += judge_scale_codes_room(&c);
            }
            numbers++;
        }
        place_tensors(t, &c, &head, w, &tiles[i]);
        tiles[i].numbers = (int32_t)(numbers - 1 - (struct judge_numbers *)gpu_work_part(job, w->numbers));
        tiles[i].by_row = scale;
        if (w->n_scales)
            tiles[i].largest_by_row = judge_scale_rows(&c, scales + scale);
        scale += w->n_scales ? c.in_q.rows : 0;
        tiles[i].skips = i * c.kv_tiles;
        tiles[i].order = i * c.kv_tiles;
        if (judge_tiles_of(&c, &tiles[i], ranges + row,
                           c.mask.data ? (unsigned char *)gpu_work_part(job, w->skips) + tiles[i].skips : NULL,
                           c.kv_splits > 1 ? (int32_t *)gpu_work_part(job, w->orders) + tiles[i].order : NULL) != 0) {
            slot_case_free(&head.c);
            return -1;
        }
        tiles[i].row = row;
        tiles[i].values = value;
        for (int r = 0; r < c.in_q.rows; r += JUDGE_ROWS)
            blocks[block++] = (struct judge_block){(int32_t)i, r};
        row += c.in_q.rows;
        value += (int64_t)c.in_q.rows * (c.head_dim_v + 1);
    }
    slot_case_free(&head.c);
    same_elements(gpu_work_part(job, w->numbers), w->n_numbers);
    for (int i = 0; i < 2 && w->turned_bytes[0]; i++)
        memcpy(gpu_work_part(job, w->turned[i]), trace_turned(t, "qk"[i]), (size_t)w->turned_bytes[i]);
    qsort_r(blocks, (size_t)block, sizeof *blocks, by_length, (void *)(uintptr_t)job);
    return 0;
}

int gpu_work_run(const char *program, struct gpu_process *process, const struct trace *t, const struct gpu_work *job,
                 const struct runner_progress *progress, struct err *err)
{
    char work[64], tensors[64];
    struct process_output output = {0};
    snprintf(work, sizeof work, "/proc/%d/fd/%d", (int)getpid(), job->fd);
    snprintf(tensors, sizeof tensors, "/proc/%d/fd/%d", (int)getpid(), t->fd);
    if (process)
        return gpu_process_ask(process, work, tensors, progress, err);
    const char *argv[] = {program, work, tensors, NULL};
    if (process_capture(argv, LIMIT_S, progress, &output, err) != 0)
        return -1;
    const bool right = output.status == 0 && job->work->done == 1;
    output.err[strcspn(output.err, "\n")] = '\0';
    if (!right)
        err_set(err, ERR_SYSTEM, "", "%.200s", *output.err ? output.err : "attnscope-judge ended early");
    process_output_free(&output);
    return right ? 0 : -1;
}

static void take_tile(const struct judge_numbers *n, const struct judge_tile *tile, const struct judge_row *rows,
                      const struct judge_range *ranges, struct noise_row *room, struct gpu_verdict *out)
{
    *out = (struct gpu_verdict){0};
    for (int r = 0; r < tile->rows; r++) {
        const struct judge_row *row = &rows[tile->row + r];
        out->bad += row->bad_o + row->bad_lse;
        out->worst = fmax(out->worst, fmax(row->worst_o, row->worst_lse));
        out->open |= row->open || !row->judged;
        room[r] = row->noise;
    }
    const struct judge_range last = ranges[tile->row + tile->rows - 1];
    noise_finish(room, tile->rows, n->head_dim_v, n->noise, last.keys, &out->noise);
}

static int take_results(const struct gpu_work *job, const struct trace *t, bool values, struct gpu_judged *out)
{
    const struct judge_work *w = job->work;
    const struct judge_tile *tiles = gpu_work_part(job, w->tiles);
    struct noise_row *room = calloc((size_t)t->plan.br, sizeof *room);
    out->tiles = calloc((size_t)w->n_tiles, sizeof *out->tiles);
    out->values = values ? calloc((size_t)w->n_values, sizeof *out->values) : NULL;
    out->n_values = values ? w->n_values : 0;
    const bool made = room && out->tiles && (!values || out->values);
    for (int64_t i = 0; i < w->n_tiles && made; i++)
        take_tile((const struct judge_numbers *)gpu_work_part(job, w->numbers) + tiles[i].numbers, &tiles[i],
                  gpu_work_part(job, w->rows), gpu_work_part(job, w->ranges), room, &out->tiles[i]);
    if (made && values)
        memcpy(out->values, gpu_work_part(job, w->values), (size_t)w->n_values * sizeof *out->values);
    free(room);
    return made ? 0 : -1;
}

int gpu_work_open(const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                  const struct judge_work *wanted, struct gpu_work *job, struct err *err)
{
    struct judge_work header = *wanted;
    *job = (struct gpu_work){.fd = -1};
    if (t->fd < 0)
        return err_set(err, ERR_SYSTEM, "", "a run of a file is judged on the CPU");
    header.magic = JUDGE_MAGIC;
    header.version = JUDGE_VERSION;
    header.n_values = 0;
    struct slot_case one;
    if (place_case_make(t, places[0], types, &one) != 0)
        return err_no_memory(err, "", "the judge's work");
    count_work(t, &one.c, places, n, &header);
    slot_case_free(&one);
    if (!wanted->n_values)
        header.n_values = 0;
    int64_t at = sizeof header;
    header.numbers = after(&at, header.n_numbers, sizeof(struct judge_numbers));
    header.scales = after(&at, header.n_scales, sizeof(double));
    header.tiles = after(&at, header.n_tiles, sizeof(struct judge_tile));
    header.ranges = after(&at, header.n_rows, sizeof(struct judge_range));
    header.blocks = after(&at, header.n_blocks, sizeof(struct judge_block));
    header.skips = after(&at, header.n_skips, 1);
    for (int i = 0; i < 2; i++)
        header.turned[i] = after(&at, header.turned_bytes[i], 1);
    header.slots = after(&at, header.n_verdicts ? n : 0, sizeof(struct judge_slot));
    header.orders = after(&at, header.n_orders, sizeof(int32_t));
    header.rows = after(&at, header.n_rows, sizeof(struct judge_row));
    header.values = after(&at, header.n_values, sizeof(struct judge_value));
    header.verdicts = after(&at, header.n_verdicts, sizeof(struct judge_verdict));
    header.bytes = at;
    if (make_file(&header, job, err) != 0)
        return -1;
    return fill_work(t, types, places, n, job) != 0 ? err_no_memory(err, "", "the judge's work") : 0;
}

int gpu_judge_run(const char *program, const struct trace *t, const int32_t *types, int32_t (*places)[3], int64_t n,
                  bool values, const struct runner_progress *progress, struct gpu_judged *out, struct err *err)
{
    const struct judge_work wanted = {.end = (int64_t)t->layout.stamps_offset, .n_values = values};
    struct gpu_work job;
    *out = (struct gpu_judged){0};
    int failed = gpu_work_open(t, types, places, n, &wanted, &job, err);
    if (!failed)
        failed = gpu_work_run(program, NULL, t, &job, progress, err);
    if (!failed && take_results(&job, t, values, out) != 0)
        failed = err_no_memory(err, "", "the judge's verdicts");
    gpu_work_close(&job);
    if (failed)
        gpu_judged_free(out);
    return failed ? -1 : 0;
}
