/* What a block that judges captured stages works with: its arrays, what it reads of the tile at hand, and the parts of
   verdicts that its elements make. */
#ifndef JUDGE_STAGE_PARTS_CUH
#define JUDGE_STAGE_PARTS_CUH

#include "engine/judge/core.cuh"
#include "engine/judge/rows.cuh"

enum {
    THREADS = JUDGE_STAGE_THREADS,
    SHARE = THREADS / ROWS /* threads to a row's weights */,
    WARPS = THREADS / LANES,
    KINDS = JUDGE_STAGES * JUDGE_SIDES
};

struct judge_stage_arrays {
    struct judge_arrays base;
    struct judge_captured captured;
    const struct judge_slot *slots;
    const int32_t *orders;
    struct judge_part *parts; /* [verdicts][groups] */
    double *samples;          /* [verdicts][JUDGE_SAMPLES], NaN */
    struct judge_row *rows;   /* the noise of each */
};

/* Of a row, for the threads that hold its U. */
enum {
    OF_DECAY,
    OF_DECAY_ERROR,
    OF_LOST,
    OF_W, /* what 1 of the narrowed weights, errors and captured P stands for */
    OF_E,
    OF_P,
    OF_ALPHA,
    OF_SHIFT,
    OF_SUM,
    OF_ERROR,
    OF_L,
    OF_Q,
    OF_F, /* of likely weights: what 1 of them, narrowed, stands for */
    OF_V,
    OF_LIKELY_DECAY,
    OF_LIKELY, /* what the sum errs by with all but certainty */
    OF_TOGETHER,
    OF_KEPT, /* of U behind a sink, of the reference and as it was captured */
    OF_OWN_KEPT,
    OF_L_LOOSE, /* of a captured l behind a sink */
    OF_NUMBERS = JUDGE_STAGE_NUMBERS
};

/* Arrays of a block in shared memory. D, W: head_dim, bc. */
struct stage_tiles {
    double *score, *loose, *weight, *error; /* [ROWS][W] */
    double *row;                            /* [ROWS][OF_NUMBERS] */
    double *fixed, *variance, *bins;        /* of long rows alone */
    uint32_t *most;                         /* [WARPS] */
    float *keys;                            /* V's too */
};
struct stage_room {
    struct stage_tiles of;
    struct judge_part *part;          /* [WARPS][KINDS] */
    float *q, *size_q;                /* [ROWS][D] */
    float *s, *p;                     /* [ROWS][W] captured; p as P V takes it */
    float *w, *e, *size_p, *f;        /* [ROWS][W] narrowed; they lie where score and loose were */
    float *v;                         /* [ROWS][W]; of long rows alone, as: */
    double *more;                     /* [ROWS][W] */
    int16_t *q_exponent, *p_exponent; /* of q and p, see core.cuh */
};

static __device__ struct stage_room stage_room_at(double *at, const struct judge_numbers *n)
{
    const int D = n->head_dim, W = n->bc;
    struct stage_room x = {};
    x.of.score = at, at += ROWS * W;
    x.of.loose = at, at += ROWS * W;
    x.of.weight = at, at += ROWS * W;
    x.of.error = at, at += ROWS * W;
    x.of.row = at, at += ROWS * OF_NUMBERS;
    x.of.most = (uint32_t *)(void *)at, at += WARPS;
    if (n->likely) {
        x.of.fixed = at, at += ROWS * W;
        x.of.variance = at, at += ROWS * W;
        x.more = at, at += ROWS * W;
        x.of.bins = at, at += ROWS * LIKELY_BINS;
        x.v = (float *)at, at += ROWS * W / 2;
    }
    x.part = (struct judge_part *)at;
    x.q = (float *)(x.part + WARPS * KINDS);
    x.size_q = x.q + ROWS * D;
    x.s = x.size_q + ROWS * D;
    x.p = x.s + ROWS * W;
    x.q_exponent = (int16_t *)(x.p + ROWS * W);
    x.p_exponent = x.q_exponent + ROWS * D;
    x.of.keys = (float *)(x.p_exponent + ROWS * W);
    x.w = (float *)x.of.score;
    x.e = x.w + ROWS * W;
    x.size_p = (float *)x.of.loose;
    x.f = x.size_p + ROWS * W;
    return x;
}

/* As vector_sum() of base/vector.h adds: four at a time, then what is left. */
static __device__ double judge_sum(const double *x, int n)
{
    double sum[4] = {0, 0, 0, 0}, rest = 0;
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += x[i + j];
    for (; i < n; i++)
        rest += x[i];
    double all = 0;
    for (int j = 0; j < 4; j++)
        all += sum[j];
    return all + rest;
}

/* deal_weights() by the SHARE lanes of each row, but for its squares. there: the row is one. A bin gets its weights one
   after the other, as the CPU adds them: the first lane that has one of them takes the others' in turn. */
template <int SHARE>
static __device__ void judge_deal_weights(const struct judge_numbers &n, bool there, const double *weight, int cols,
                                          double per_unit, double decay, double *bins)
{
    const int lane = threadIdx.x % LANES, mine = lane % SHARE;
    for (int i = mine; there && decay != 1 && i < LIKELY_BINS; i += SHARE)
        bins[i] *= decay;
    __syncwarp();
    for (int begin = 0; begin < cols; begin += SHARE) {
        const double w = there && begin + mine < cols ? weight[begin + mine] : 0;
        const bool some = judge_deals(w, per_unit);
        const int bin = some ? likely_bin(w * per_unit, n.bin_bits, n.bin_least) : -1;
        unsigned same = __match_any_sync(0xffffffffu, lane / SHARE * (LIKELY_BINS + 1) + bin + 1);
        const bool first = some && __ffs((int)same) - 1 == lane;
        double sum = first ? bins[bin] : 0;
        same = first ? same : 0;
        while (__any_sync(0xffffffffu, same != 0)) {
            const double x = __shfl_sync(0xffffffffu, w, same ? __ffs((int)same) - 1 : lane);
            sum += same ? x : 0;
            same &= same - 1;
        }
        if (first)
            bins[bin] = sum;
        __syncwarp();
    }
}

/* What all threads of a row know of it: the reference's state, and what was captured in the tile before. */
struct stage_state {
    double max, max_bound, frame, sum, sum_error, m, l;
    double likely_l, l_variance, squares; /* of long rows: likely.h */
};

/* Of one element of U: the sums of the reference so far. LONG: of rows so long that more of them is known. */
template <bool LONG> struct stage_element {
    double sum, error;
};
template <> struct stage_element<true> {
    double sum, error;
    struct likely_value likely;
};

/* What all threads of a block know, and of its row those that share one. */
struct stage_view {
    const struct judge_numbers *n;
    const struct judge_captured *c;
    const struct judge_slot *slot;
    const unsigned char *tensors;
    double *samples;    /* of the verdict's stage S, locally, in this visit */
    int kv, cols, seen; /* seen: tiles before this one */
    int row;            /* of the q tile, the block's first */
    int tile_rows, rows;
};

static __device__ const float *stage_at(const struct stage_view &v, int stage, int kv, int row)
{
    return (const float *)(const void *)(v.tensors + v.slot->at[stage] + v.c->step[stage] * kv) +
           (int64_t)row * v.c->row[stage];
}

/* Which of the sampled elements i is, of n; -1: none. */
static __device__ int stage_sample(int i, int n)
{
    const int take = n < JUDGE_SAMPLES ? n : JUDGE_SAMPLES, k = (i * take + n - 1) / n;
    return k < take && k * n / take == i ? k : -1;
}

static __device__ void stage_part_begin(struct judge_part *x)
{
    x->worst = x->sum = 0;
    x->place = x->n = x->bad = x->likely = 0;
}

/* One element, row-major in its channel; n: the channel's elements. */
static __device__ void stage_take(struct judge_part *x, double got, double want, double bound, int place, int n,
                                  double *samples)
{
    const double error = got - want, size = fabs(error);
    if (size <= bound && bound <= FLT_MAX) {
        if (size > x->worst * bound && size / bound > x->worst) {
            x->worst = size / bound;
            x->place = place;
        }
        x->sum += error;
        x->n++;
    } else if (!(got == want && fabs(got) > DBL_MAX)) {
        x->bad = 1;
    }
    const int sample = stage_sample(place, n);
    if (sample >= 0 && fabs(got / want) <= DBL_MAX && fabs(want) <= DBL_MAX)
        samples[sample] = got / want;
}

static __device__ void stage_part_join(struct judge_part *x, const struct judge_part &y)
{
    if (y.worst > x->worst || (y.worst == x->worst && y.worst > 0 && y.place < x->place)) {
        x->worst = y.worst;
        x->place = y.place;
    }
    x->sum += y.sum;
    x->n += y.n;
    x->bad |= y.bad;
    x->likely |= y.likely;
}

static __device__ __noinline__ void stage_part_put(const struct stage_room &room, int kind, struct judge_part x)
{
    for (int flip = 16; flip > 0; flip /= 2) {
        struct judge_part y;
        y.worst = __shfl_xor_sync(0xffffffffu, x.worst, flip);
        y.sum = __shfl_xor_sync(0xffffffffu, x.sum, flip);
        y.place = __shfl_xor_sync(0xffffffffu, x.place, flip);
        y.n = __shfl_xor_sync(0xffffffffu, x.n, flip);
        y.bad = __shfl_xor_sync(0xffffffffu, x.bad, flip);
        y.likely = __shfl_xor_sync(0xffffffffu, x.likely, flip);
        stage_part_join(&x, y);
    }
    if (threadIdx.x % 32 == 0)
        room.part[threadIdx.x / 32 * KINDS + kind] = x;
}

/* The block's parts of `kinds` verdicts, to where they are joined with those of the q tile's other blocks. */
static __device__ void stage_parts_end(const struct judge_stage_arrays &work, const struct stage_room &room,
                                       int64_t verdict, int group, int kinds)
{
    __syncthreads();
    if ((int)threadIdx.x < kinds) {
        struct judge_part x = room.part[threadIdx.x];
        for (int warp = 1; warp < WARPS; warp++)
            stage_part_join(&x, room.part[warp * KINDS + threadIdx.x]);
        work.parts[(verdict + threadIdx.x) * work.captured.groups + group] = x;
    }
    __syncthreads();
}

/* Whether a captured operand is the input, bit for bit; each block looks at its share. */
static __device__ bool stage_same(const struct judge_stage_arrays &work, const struct stage_view &v, int which,
                                  int operand, int64_t input, int first, int rows, int dim, int share, int shares)
{
    bool same = true;
    const int bytes = v.n->type[operand] == DTYPE_F32 ? 4 : 2;
    if (!v.c->has[which])
        return true;
    const unsigned char *captured = v.tensors + v.slot->at[which] + v.c->step[which] * v.kv;
    for (int i = threadIdx.x + THREADS * share; i < rows * dim; i += THREADS * shares) {
        const int64_t a = (i / dim) * v.c->row[which] + i % dim,
                      b = (first + i / dim) * work.base.stride[operand] + i % dim;
        same &= bytes == 4 ? ((const uint32_t *)(const void *)captured)[a] ==
                                 ((const uint32_t *)(const void *)(v.tensors + input))[b]
                           : ((const uint16_t *)(const void *)captured)[a] ==
                                 ((const uint16_t *)(const void *)(v.tensors + input))[b];
    }
    return same;
}

/* Of a masked element that was never written, what the mask makes of it. */
static __device__ float stage_masked(float got, bool sees, float masked)
{
    return !sees && format_f32_bits(got) == 0x7FF57FF5u ? masked : got;
}

static __device__ bool stage_sees(const struct judge_range *range, const unsigned char *mask, int64_t stride, int r,
                                  int key)
{
    return key >= range[r].first && key < range[r].last && (!mask || mask[r * stride + key]);
}

/* What all threads of a block read, in shared memory: each of them having its own would fill the caches. */
struct stage_block {
    struct judge_stage_arrays work;
    struct judge_numbers n;
    struct judge_tile tile;
    struct judge_slot slot;
    struct stage_view v;
    struct stage_room room;
};
static_assert(sizeof(struct stage_block) <= JUDGE_BLOCK_BYTES, "JUDGE_BLOCK_BYTES");

static __device__ void stage_block_begin(const struct judge_stage_arrays &arrays, const struct judge_block &block,
                                         double *shared)
{
    struct stage_block &x = *(struct stage_block *)shared;
    x.work = arrays;
    x.tile = arrays.base.tiles[block.tile];
    x.slot = arrays.slots[block.tile];
    x.n = arrays.base.numbers[x.tile.numbers];
    x.room = stage_room_at(shared + JUDGE_BLOCK_BYTES / sizeof(double), &x.n);
    x.v.n = &x.n;
    x.v.c = &x.work.captured;
    x.v.slot = &x.slot;
    x.v.tensors = arrays.base.tensors;
    x.v.row = block.row;
    x.v.tile_rows = x.tile.rows;
    x.v.rows = x.tile.rows - block.row < ROWS ? x.tile.rows - block.row : ROWS;
    x.v.kv = 0;
}

#endif
