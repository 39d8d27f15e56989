/* What a block that judges O and LSE works with: its arrays in shared memory, and how elements of Q, K and V come there
   and what the products take of them. */
#ifndef JUDGE_TILES_CUH
#define JUDGE_TILES_CUH

#include "engine/judge/work.h"

#include <cuda_fp16.h>

enum { ROWS = JUDGE_ROWS, LANES = 32 };

/* Where a launch finds its work in device memory. */
struct judge_arrays {
    const struct judge_numbers *numbers;
    const float *code;    /* [3][256] */
    const double *scales; /* NULL: there are none */
    int64_t stride[4];
    const unsigned char *tensors;  /* of the trace's file; `begin` of it has been taken off */
    const unsigned char *input[3]; /* where Q, K and V lie: there, or among what RoPE has turned */
    const int32_t *orders;         /* of splits; see judge_tile */
    const struct judge_tile *tiles;
    const struct judge_range *ranges;
    const struct judge_block *blocks;
    const unsigned char *skips; /* NULL: there is no mask of bytes */
    int64_t mask_stride, bias_stride;
    struct judge_row *rows;
    struct judge_value *values; /* NULL: nobody asks */
};

/* Arrays of a block in shared memory; W: bc. Rows of operands of a product are `pitch` apart, so that a tensor core's
   lanes meet in no bank, and go on with zeros to whole instructions. */
struct judge_room {
    double *q;                       /* [ROWS][pitch_q] */
    double *most_q;                  /* the same, magnitudes; NULL where they are those of q */
    double *score, *loose, *error;   /* [ROWS][W] */
    double *weight;                  /* [ROWS][pitch_p] */
    double *fixed, *variance, *bins; /* [ROWS][W], [ROWS][JUDGE_BINS]; of long rows alone */
    double *row;                     /* [ROWS][ROW_NUMBERS] */
    float *size_q;                   /* [ROWS][pitch_q] */
    float *sizes[JUDGE_SIZES];       /* [ROWS][pitch_p]: of weights, errors, fixed, variances */
    uint32_t *most;                  /* [3][warps] */
    float *keys, *values;            /* tiles, rows pitch_q and pitch_v apart; they may be the same room */
    int pitch_q, pitch_p, pitch_v;
};

static __device__ struct judge_room judge_room_at(double *at, const struct judge_numbers *n)
{
    const int W = n->bc;
    struct judge_room x = {};
    x.pitch_q = judge_pitch_q(n->head_dim);
    x.pitch_p = judge_pitch_q(W);
    x.pitch_v = judge_pitch_v(n->head_dim_v);
    x.q = at, at += ROWS * x.pitch_q;
    x.most_q = n->input[0].lossy || n->input[1].lossy ? at : NULL;
    at += x.most_q ? ROWS * x.pitch_q : 0;
    x.score = at, at += ROWS * W;
    x.loose = at, at += ROWS * W;
    x.error = at, at += ROWS * W;
    x.weight = at, at += ROWS * x.pitch_p;
    if (n->likely) {
        x.fixed = at, at += ROWS * W;
        x.variance = at, at += ROWS * W;
        x.bins = at, at += ROWS * JUDGE_BINS;
    }
    x.row = at, at += ROWS * ROW_NUMBERS;
    x.size_q = (float *)at;
    x.sizes[0] = x.size_q + ROWS * x.pitch_q;
    for (int i = 1; i < JUDGE_SIZES; i++)
        x.sizes[i] = x.sizes[i - 1] + ROWS * x.pitch_p;
    x.most = (uint32_t *)(void *)(x.sizes[JUDGE_SIZES - 1] + ROWS * x.pitch_p);
    x.keys = (float *)(void *)(x.most + 3 * (JUDGE_ROW_THREADS / LANES));
    x.values = x.keys + (n->apart ? judge_whole(W) * x.pitch_q : 0);
    return x;
}

/* The bits of element i. */
static __device__ uint32_t judge_bits(int type, const unsigned char *data, int64_t i)
{
    if (type == DTYPE_F32)
        return ((const uint32_t *)data)[i];
    return type == DTYPE_F16 || type == DTYPE_BF16 ? ((const uint16_t *)data)[i] : data[i];
}

/* code_is: what each of 256 codes is; read where the type is one of codes. f32 holds every number of all types. */
static __device__ float judge_value_of(int type, const float *code_is, uint32_t bits)
{
    if (type == DTYPE_F32)
        return format_f32_of(bits);
    if (type == DTYPE_BF16)
        return format_f32_of(bits << 16);
    if (type != DTYPE_F16)
        return code_is[bits];
    /* The exponent of a half moved to its place in f32 is short by 112; a subnormal one comes out normal. */
    const uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7FFFu) << 13;
    const float x = format_f32_of(magnitude) * 0x1p112f;
    return format_f32_of(sign | format_f32_bits(x) | (magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0));
}

static __device__ double judge_load(int type, const float *code_is, const unsigned char *data, int64_t i)
{
    return (double)judge_value_of(type, code_is, judge_bits(type, data, i));
}

static __device__ double judge_round(int type, double x)
{
    return type == DTYPE_F16    ? formula_round(x, 11, -14, 65504)
           : type == DTYPE_BF16 ? formula_round(x, 8, -126, 0x1.FEp127)
                                : (double)(float)x;
}

/* The power of two at or below the largest, which is finite. */
static __device__ double judge_unit(double largest)
{
    const uint64_t exponent = format_f64_bits(largest) >> 52;
    return format_f64_of((exponent ? exponent : 1) << 52);
}

static __device__ double judge_size(double x, double least)
{
    const double size = fabs(x);
    return size > 0 && size < least ? least : size;
}

/* The largest of so many threads that follow each other. */
template <int SHARE> static __device__ double judge_row_most(double x)
{
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, flip));
    return x;
}

static __device__ double judge_row_sum(double x)
{
    for (int flip = LANES / 2; flip > 0; flip /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, flip);
    return x;
}

/* The largest of a row's lanes, none of which is NaN: of the bits, ordered like the numbers, first the upper half. */
static __device__ double judge_row_largest(double x)
{
    const int64_t bits = (int64_t)format_f64_bits(x), ordered = bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
    const int high = __reduce_max_sync(0xffffffffu, (int)(ordered >> 32));
    const uint32_t low = __reduce_max_sync(0xffffffffu, (int)(ordered >> 32) == high ? (uint32_t)ordered : 0);
    const int64_t largest = (int64_t)((uint64_t)(uint32_t)high << 32 | low);
    return format_f64_of((uint64_t)(largest ^ (int64_t)((uint64_t)(largest >> 63) >> 1)));
}

/* The largest of a block's magnitudes, as bits, which are ordered like them; what is no finite number is larger than
   all that are. Every warp puts its own; behind a barrier all know. */
static __device__ uint32_t judge_largest(uint32_t most, float x)
{
    return max(most, format_f32_bits(x) & 0x7FFFFFFFu);
}

static __device__ void judge_put_largest(uint32_t most, uint32_t *room)
{
    most = __reduce_max_sync(0xffffffffu, most);
    if (threadIdx.x % LANES == 0)
        room[threadIdx.x / LANES] = most;
}

template <int WARPS> static __device__ double judge_block_largest(const uint32_t *room)
{
    const unsigned lane = threadIdx.x % LANES;
    const uint32_t most = __reduce_max_sync(0xffffffffu, lane < WARPS ? room[lane] : 0);
    return (double)format_f32_of(min(most, 0x7F800000u));
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

/* Where a tile of K or V comes to lie: rows and elements beyond those that there are become 0. */
struct judge_tile_room {
    float *at;
    int pitch, rows, dims;
    uint32_t *most; /* [WARPS] */
};

/* A tile of K or V, and its largest magnitude. All of a thread's elements are on their way before it looks at the
 * first.
 */
template <int WARPS>
static __device__ void judge_load_tile(const struct judge_arrays &work, int type, int operand, int64_t at, int first,
                                       int cols, int dim, const struct judge_tile_room &to)
{
    enum { EACH = 4, PIECES = 4 };
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64_t stride = work.stride[operand];
    const unsigned char *data = work.input[operand] + at;
    const float *code = work.code + 256 * operand;
    uint32_t most = 0;
    for (int row = warp; row < to.rows; row += EACH * WARPS)
        for (int d = lane; d < to.dims; d += PIECES * LANES) {
            uint32_t bits[EACH * PIECES];
#pragma unroll
            for (int i = 0; i < EACH * PIECES; i++) {
                const int r = row + i / PIECES * WARPS, c = d + i % PIECES * LANES;
                bits[i] = r < cols && c < dim ? judge_bits(type, data, (first + r) * stride + c) : 0;
            }
#pragma unroll
            for (int i = 0; i < EACH * PIECES; i++) {
                const int r = row + i / PIECES * WARPS, c = d + i % PIECES * LANES;
                const float x = r < cols && c < dim ? judge_value_of(type, code, bits[i]) : 0;
                if (r < to.rows && c < to.dims)
                    to.at[r * to.pitch + c] = x;
                most = judge_largest(most, x);
            }
        }
    judge_put_largest(most, to.most);
}

/* The same of a tile that is asked for early, while there is other work to do: a thread's share of it is in registers.
   AHEAD: pieces of 16 bytes, and so many. */
enum { AHEAD = 2 };
struct judge_ahead {
    uint4 piece[AHEAD];
};
/* Where those of an operand lie: whose row, and the first element in it; row -1: there is no such piece. */
struct judge_pieces {
    int shift; /* 1 << shift elements */
    int row[AHEAD], first[AHEAD];
};

/* Whether tiles of W rows of `dim` elements can be: all pieces are whole, at their own multiples, and no more. */
static __device__ bool judge_goes_ahead(const struct judge_arrays &work, int type, int operand, int64_t at, int W,
                                        int dim, struct judge_pieces *x)
{
    const int bytes = type == DTYPE_F32 ? 4 : type == DTYPE_F16 || type == DTYPE_BF16 ? 2 : 1;
    const uint64_t places = (uint64_t)(uintptr_t)(work.input[operand] + at) | (uint64_t)work.stride[operand] * bytes;
    x->shift = bytes == 4 ? 2 : bytes == 2 ? 3 : 4;
    for (int i = 0; i < AHEAD; i++) {
        const int piece = threadIdx.x + i * JUDGE_ROW_THREADS, pieces = max(dim >> x->shift, 1);
        x->row[i] = piece / pieces < W ? piece / pieces : -1;
        x->first[i] = piece % pieces << x->shift;
    }
    return places % 16 == 0 && W % 16 == 0 && dim % 16 == 0 && W * dim * bytes <= AHEAD * JUDGE_ROW_THREADS * 16;
}

static __device__ struct judge_ahead judge_ask(const struct judge_arrays &work, int operand, int64_t at, int first,
                                               int cols, const struct judge_pieces &of)
{
    struct judge_ahead x;
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        const int64_t element = (first + of.row[i]) * work.stride[operand] + of.first[i];
        const uint4 *from = (const uint4 *)(const void *)(work.input[operand] + at) + (element >> of.shift);
        x.piece[i] = of.row[i] >= 0 && of.row[i] < cols ? *from : uint4{0, 0, 0, 0};
    }
    return x;
}

/* Elements of a word, side by side at a multiple of its number of them. */
static __device__ void judge_put_word(int type, const float *code, uint32_t word, float *at, uint32_t *most)
{
    if (type == DTYPE_F16 || type == DTYPE_BF16) {
        float2 two = {format_f32_of(word << 16), format_f32_of(word & 0xFFFF0000u)};
        if (type == DTYPE_F16)
            two = __half22float2(*(const __half2 *)(const void *)&word);
        *(float2 *)(void *)at = two;
        *most = judge_largest(judge_largest(*most, two.x), two.y);
        return;
    }
    for (int i = 0; i < (type == DTYPE_F32 ? 1 : 4); i++) {
        at[i] = type == DTYPE_F32 ? format_f32_of(word) : code[word >> 8 * i & 0xFF];
        *most = judge_largest(*most, at[i]);
    }
}

static __device__ void judge_take_tile(const struct judge_arrays &work, int type, int operand,
                                       const struct judge_ahead &x, const struct judge_pieces &of,
                                       const struct judge_tile_room &to)
{
    const float *code = work.code + 256 * operand;
    const int step = 1 << (of.shift - 2);
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        float *at = to.at + of.row[i] * to.pitch + of.first[i];
        if (of.row[i] < 0)
            continue;
        judge_put_word(type, code, x.piece[i].x, at, &most);
        judge_put_word(type, code, x.piece[i].y, at + step, &most);
        judge_put_word(type, code, x.piece[i].z, at + 2 * step, &most);
        judge_put_word(type, code, x.piece[i].w, at + 3 * step, &most);
    }
    judge_put_largest(most, to.most);
}

/* The scale of element d of row `row` of the head. */
static __device__ double judge_scale(const double *scales, const struct judge_input &input, int row, int d)
{
    return scales[input.scales + (input.rows > 0 ? row / input.rows : 0) * input.parts +
                  (input.dims > 0 ? d / input.dims : 0)];
}

/* What the products take of element d of a row, which lies there as judge_load() gives it. */
template <class ELEMENT>
static __device__ double judge_taken(const double *scales, const struct judge_input &input, const ELEMENT *row,
                                     int number, int d)
{
    const double x = (double)row[d];
    return input.descaled ? x * judge_scale(scales, input, number, d) : x;
}

/* Its magnitude at most, where a correct kernel's may be another: x, or a row that RoPE has turned tells. */
template <class ELEMENT>
static __device__ double judge_most(const struct judge_input &input, const ELEMENT *row, int d, double x)
{
    if (!input.lossy)
        return fabs(x);
    double loose = 0;
    if (d < input.turned) {
        const int i = input.apart == 1 ? d & ~1 : d % input.apart;
        loose = input_turned(input.turned_share, (double)row[i], (double)row[i + input.apart]);
    } else if (input.descaled) {
        loose = input_descaled(input.roundings, x);
    }
    return input_size(&input.terms, x, loose);
}

/* The largest of the tile's magnitudes, the tile is there; put as well what they have beyond the values. */
static __device__ double judge_most_of_tile(const struct judge_numbers &n, const struct judge_arrays &work, int operand,
                                            int first, int cols, int dim, double least,
                                            const struct judge_tile_room &tile, uint32_t *beyond)
{
    enum { WARPS = JUDGE_ROW_THREADS / LANES };
    const struct judge_input &input = n.input[operand];
    uint32_t most = 0, more = 0;
    for (int i = threadIdx.x; i < cols * dim; i += JUDGE_ROW_THREADS) {
        const int r = i / dim, d = i % dim;
        const float *row = tile.at + r * tile.pitch;
        const double x = judge_taken(work.scales, input, row, first + r, d), size = judge_most(input, row, d, x);
        most = judge_largest(most, (float)judge_size(size, least));
        more = judge_largest(more, (float)(size - fabs(x)));
    }
    judge_put_largest(most, tile.most);
    judge_put_largest(more, beyond);
    __syncthreads();
    return judge_block_largest<WARPS>(tile.most);
}

#endif
