#include "engine/simt/wgmma.h"

#include "engine/base/dtype.h"
#include "engine/base/format.h"
#include "engine/simt/checks/checks.h"
#include "engine/simt/report.h"
#include "engine/simt/shared.h"
#include "engine/simt/traps.h"
#include "engine/simt/worker.h"

#include <stdlib.h>
#include <string.h>

enum { REGISTERS_MAX = 128, N_MAX = 256, ROWS = 16, ROW_BYTES = 32 /* of one k step, of any type */ };

struct wgmma_sums {
    void *at[REGISTERS_MAX]; /* borrowed: the thread's registers */
    uint32_t value[REGISTERS_MAX];
    int n;
};

struct wgmma_op {
    struct simt_wgmma what;
    unsigned sums, group;
};

void wgmma_begin_block(struct worker *w)
{
    for (unsigned i = 0; w->multiplying && i < SIMT_THREADS_MAX; i++)
        w->wgmmas[i].n = w->wgmmas[i].n_sums = w->wgmmas[i].group = w->wgmmas[i].fenced = 0;
    w->multiplying = false;
}

void wgmma_free(struct worker *w)
{
    for (unsigned i = 0; i < SIMT_THREADS_MAX; i++) {
        free(w->wgmmas[i].op);
        free(w->wgmmas[i].sums);
    }
}

static void *grown(void *old, unsigned n, unsigned *capacity, size_t bytes, const struct simt_wgmma *what)
{
    if (n < *capacity)
        return old;
    const unsigned more = *capacity ? 2 * *capacity : 8;
    void *new = realloc(old, more * bytes);
    if (!new) {
        report_raise(EVENT_SYSTEM, true, what->file, what->line, NULL, "out of memory for another wgmma");
        traps_end();
    }
    *capacity = more;
    return new;
}

/* The accumulators of these registers: those of a wgmma that is under way, or new ones. Until it is waited for a
   register holds what tells that nobody has. */
static unsigned sums_of(struct wgmmas *q, const struct simt_wgmma *what, void *const *d, int n_d)
{
    for (unsigned i = 0; i < q->n_sums; i++)
        if (q->sums[i].at[0] == d[0] && q->sums[i].n == n_d)
            return i;
    q->sums = grown(q->sums, q->n_sums, &q->sums_capacity, sizeof *q->sums, what);
    struct wgmma_sums *s = &q->sums[q->n_sums];
    const uint32_t unknown = UNFINISHED_16 | (uint32_t)UNFINISHED_16 << 16;
    s->n = n_d;
    for (int i = 0; i < n_d; i++) {
        s->at[i] = d[i];
        memcpy(&s->value[i], d[i], sizeof s->value[i]);
        memcpy(d[i], &unknown, sizeof unknown);
    }
    return q->n_sums++;
}

void simt_wgmma_issue(const struct simt_wgmma *what, void *const *d, int n_d)
{
    struct worker *w = simt_tls.worker;
    struct wgmmas *q = &w->wgmmas[simt_tls.self - w->fiber];
    w->multiplying = true;
    simt_tls.self->pc = __builtin_return_address(0);
    /* Sums that go on from product to product need none. */
    if (w->checks && !q->fenced && !(q->n && what->adds && !what->a_in_registers))
        checks_wgmma_unfenced(w, what->file, what->line);
    q->op = grown(q->op, q->n, &q->capacity, sizeof *q->op, what);
    const unsigned sums = sums_of(q, what, d, n_d);
    q->op[q->n++] = (struct wgmma_op){*what, sums, q->group};
}

void simt_wgmma_fence(void)
{
    struct worker *w = simt_tls.worker;
    w->multiplying = true;
    w->wgmmas[simt_tls.self - w->fiber].fenced = true;
}

void simt_wgmma_commit(void)
{
    struct worker *w = simt_tls.worker;
    w->wgmmas[simt_tls.self - w->fiber].group++;
}

/* A matrix in shared memory as its descriptor has it (PTX ISA, "Matrix-Descriptor Format" and "Strides"; the canonical
   layouts are those of CUTLASS, cute/arch/mma_sm90_desc.hpp). */
struct matrix {
    uint32_t start, leading, stride; /* bytes */
    uint32_t pieces;                 /* of 16 bytes that the swizzle exchanges; 1: none */
    bool transposed;
    const struct simt_wgmma *what;
};

static struct matrix matrix_of(const struct simt_wgmma *what, uint64_t descriptor, bool transposed)
{
    static const uint8_t pieces[] = {1, 8, 4, 2};
    if (descriptor >> 49 & 7)
        simt_gpu_only("a wgmma descriptor with a base offset", what->file, what->line);
    return (struct matrix){.start = (uint32_t)(descriptor & 0x3FFF) << 4,
                           .leading = (uint32_t)(descriptor >> 16 & 0x3FFF) << 4,
                           .stride = (uint32_t)(descriptor >> 32 & 0x3FFF) << 4,
                           .pieces = pieces[descriptor >> 62],
                           .transposed = transposed,
                           .what = what};
}

/* The 16 bytes `offset` bytes into a matrix. */
static const unsigned char *piece_at(const struct worker *w, const struct matrix *m, uint32_t offset)
{
    const uint32_t a = m->start + offset;
    const unsigned char *p = shared_of_descriptor(w, (a ^ (a >> 7 & (m->pieces - 1)) << 4) & 0x3FFF0);
    if (!p) {
        report_raise(EVENT_ADDRESS, true, m->what->file, m->what->line, NULL,
                     "wgmma: its descriptor leads out of the block's shared memory (byte 0x%x of a matrix at 0x%x)",
                     offset, m->start);
        traps_end();
    }
    if (w->checks) {
        checks_async_read(simt_tls.worker, p, 16, m->what->file, m->what->line);
        simt_check_matrix(p, 1, 16, 16, m->what->file, m->what->line);
    }
    return p;
}

/* Rows first .. first + n - 1 of it, one k step of each, as [n][ROW_BYTES]. */
static void load(const struct worker *w, const struct matrix *m, int first, int n, unsigned char (*out)[ROW_BYTES])
{
    const uint32_t s = m->pieces;
    if (!m->transposed) {
        for (int i = 0; i < n; i++)
            for (uint32_t half = 0; half < 2; half++) {
                const uint32_t r = (uint32_t)(first + i);
                const uint32_t at = r % 8 * s * 16 + r / 8 * m->stride + half * (s > 1 ? 16 : m->leading);
                memcpy(out[i] + (size_t)half * 16, piece_at(w, m, at), 16);
            }
        return;
    }
    for (uint32_t k = 0; k < 16; k++)
        for (int i = 0; i < n; i += 8) {
            const uint32_t r = (uint32_t)(first + i), across = 8 * s;
            const uint32_t at = s > 1 ? r % across * 2 + r / across * m->leading + k % 8 * s * 16 + k / 8 * m->stride
                                      : r / 8 * m->stride + k % 8 * 16 + k / 8 * m->leading;
            const unsigned char *p = piece_at(w, m, at);
            for (size_t j = 0; j < 8; j++)
                memcpy(out[(size_t)i + j] + (size_t)k * 2, p + 2 * j, 2);
        }
}

/* Which row and column a lane's i-th sum is of (PTX ISA, register fragments of wgmma). */
static int sum_at(int lane, int i, int n)
{
    return (lane / 4 + 8 * (i / 2 % 2)) * n + 8 * (i / 4) + 2 * (lane % 4) + i % 2;
}

static void load_registers(const struct worker *w, unsigned warp, uint32_t lanes, unsigned op,
                           unsigned char (*out)[ROW_BYTES])
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const struct simt_wgmma *what = &w->wgmmas[warp * 32 + (unsigned)lane].op[op].what;
        for (int word = 0; word < 4; word++) /* a word is 4 bytes of a row; 8 rows, 8 below, then to the right */
            memcpy(out[lane / 4 + 8 * (word % 2)] + (size_t)(lane % 4 * 4 + word / 2 * 16), &what->a_registers[word],
                   4);
    }
}

static float sum_of(const struct wgmma_sums *s, int i, bool f16)
{
    float x;
    if (f16)
        return f16_to_f32((uint16_t)(s->value[i / 2] >> i % 2 * 16));
    memcpy(&x, &s->value[i], sizeof x);
    return x;
}

static void set_sum(struct wgmma_sums *s, int i, bool f16, float x)
{
    if (f16)
        s->value[i / 2] = (s->value[i / 2] & (i % 2 ? 0xFFFFu : 0xFFFF0000u)) | (uint32_t)f16_from_f32(x) << i % 2 * 16;
    else
        memcpy(&s->value[i], &x, sizeof x);
}

static void multiply(struct worker *w, unsigned warp, uint32_t lanes, unsigned op)
{
    static __thread unsigned char a[ROWS][ROW_BYTES], b[N_MAX][ROW_BYTES];
    static __thread float c[ROWS * N_MAX], d[ROWS * N_MAX];
    const struct simt_wgmma what = w->wgmmas[warp * 32 + (unsigned)__builtin_ctz(lanes)].op[op].what;
    const struct matrix ma = matrix_of(&what, what.a, what.a_transposed),
                        mb = matrix_of(&what, what.b, what.b_transposed);
    if (what.a_in_registers)
        load_registers(w, warp, lanes, op, a);
    else
        load(w, &ma, (int)(warp % 4) * ROWS, ROWS, a);
    load(w, &mb, 0, what.n, b);
    for (int i = 0; what.negates && i < ROWS * ROW_BYTES; i++) /* the byte that has the sign */
        a[i / ROW_BYTES][i % ROW_BYTES] ^= what.k == 32 || i % 2 ? 0x80 : 0;
    memset(c, 0, sizeof c);
    for (uint32_t rest = what.adds ? lanes : 0; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const struct wgmmas *q = &w->wgmmas[warp * 32 + (unsigned)lane];
        for (int i = 0; i < what.n / 2; i++)
            c[sum_at(lane, i, what.n)] = sum_of(&q->sums[q->op[op].sums], i, what.f16_accumulator);
    }
    const struct simt_mma product = {
        what.type, what.f16_accumulator, ROWS, what.n, what.k, a, b, c, what.file, what.line, true};
    simt_tensor_product(&product, d);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        struct wgmmas *q = &w->wgmmas[warp * 32 + (unsigned)lane];
        for (int i = 0; i < what.n / 2; i++)
            set_sum(&q->sums[q->op[op].sums], i, what.f16_accumulator, d[sum_at(lane, i, what.n)]);
    }
}

/* The first `done` are done: registers that none of the others changes get their sums. */
static void retire(struct wgmmas *q, unsigned done)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < q->n_sums; i++) {
        bool used = false;
        for (unsigned j = done; j < q->n; j++)
            used = used || q->op[j].sums == i;
        if (used) {
            for (unsigned j = done; j < q->n; j++)
                if (q->op[j].sums == i)
                    q->op[j].sums = kept;
            q->sums[kept++] = q->sums[i];
            continue;
        }
        for (int k = 0; k < q->sums[i].n; k++)
            memcpy(q->sums[i].at[k], &q->sums[i].value[k], sizeof q->sums[i].value[k]);
    }
    q->n_sums = kept;
    q->fenced = false;
    memmove(q->op, q->op + done, (q->n - done) * sizeof *q->op);
    q->n -= done;
}

void simt_wgmma_finish(uint32_t groups_left, uint32_t lanes)
{
    struct worker *w = simt_tls.worker;
    const unsigned warp = simt_tls.self->warp;
    const struct wgmmas *first = &w->wgmmas[warp * 32 + (unsigned)__builtin_ctz(lanes)];
    unsigned done = 0;
    while (done < first->n && first->op[done].group + groups_left < first->group)
        done++;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const struct wgmmas *q = &w->wgmmas[warp * 32 + (unsigned)__builtin_ctz(rest)];
        if (q->n != first->n || q->group != first->group) {
            simt_matrix_report(simt_tls.self->file, simt_tls.self->line, "wgmma",
                               "the lanes of a warp have issued different ones");
            return;
        }
    }
    if (done && lanes != UINT32_MAX)
        simt_matrix_report(first->op[0].what.file, first->op[0].what.line, "wgmma",
                           "some of the 32 lanes have returned");
    for (unsigned op = 0; op < done; op++)
        multiply(w, warp, lanes, op);
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        retire(&w->wgmmas[warp * 32 + (unsigned)__builtin_ctz(rest)], done);
}

void wgmma_left(struct worker *w)
{
    const struct wgmmas *q = &w->wgmmas[simt_tls.self - w->fiber];
    if (q->n)
        report_raise(EVENT_NEVER_WAITED, false, q->op[0].what.file, q->op[0].what.line, simt_tls.self,
                     "returns without having waited for its wgmma");
}

/* What ptxas gives a thread of so large a block whose kernel uses setmaxnreg (Hopper: 65536 registers of a
   multiprocessor, given to warps by eights for each thread, at most 255). */
static unsigned registers_of_launch(const struct worker *w)
{
    const unsigned n = 65536u / ((w->n_threads + 31) / 32 * 32) / 8 * 8;
    return n < 255 ? n : 255;
}

void simt_proxy_fence(void)
{
    struct worker *w = simt_tls.worker;
    if (w->checks)
        checks_proxy_fence(w, simt_tls.self);
}

/* PTX ISA, setmaxnreg: 24 to 256 by eights; inc waits until the block has so many to give. */
void simt_set_registers(bool more, uint32_t n, const char *file, int line)
{
    struct worker *w = simt_tls.worker;
    struct warp *p = &w->warp[simt_tls.self->warp];
    const unsigned of_launch = registers_of_launch(w), now = p->registers ? p->registers : of_launch;
    if (n < 24 || n > 256 || n % 8)
        report_raise(EVENT_REGISTERS, false, file, line, simt_tls.self,
                     "setmaxnreg to %u: 24 to 256 are allowed, by eights", n);
    else if (n != now && more == (n < now))
        report_raise(EVENT_REGISTERS, false, file, line, simt_tls.self,
                     "setmaxnreg.%s to %u, where a thread of this block has %u", more ? "inc" : "dec", n, now);
    p->registers = (uint16_t)n;
    if (!p->registers_file) {
        p->registers_file = file;
        p->registers_line = line;
    }
}

void wgmma_block_left(struct worker *w)
{
    const unsigned of_launch = registers_of_launch(w), warps = (w->n_threads + 31) / 32, all = of_launch * 32 * warps;
    const struct warp *last = NULL;
    unsigned sum = 0;
    for (unsigned i = 0; i < warps; i++) {
        const struct warp *p = &w->warp[i];
        sum += (p->registers ? p->registers : of_launch) * 32;
        last = p->registers > of_launch ? p : last;
    }
    if (last && sum > all)
        report_raise(
            EVENT_REGISTERS, false, last->registers_file, last->registers_line, simt_tls.self,
            "setmaxnreg: the block's %u warps are to have %u registers, and it was launched with %u (%u threads "
            "of %u): a warp waits for ever",
            warps, sum, all, w->n_threads, of_launch);
}
