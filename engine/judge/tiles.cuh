/* What a block that judges O and LSE works with: its arrays in shared memory, and how elements of Q, K and V come there
   and what the products take of them. */
#ifndef JUDGE_TILES_CUH
#define JUDGE_TILES_CUH

#include "engine/judge/work.h"

enum { THREADS = JUDGE_THREADS, ROWS = JUDGE_ROWS, SHARE = THREADS / ROWS /* threads to a row's weights */ };

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

/* Arrays of a block in shared memory, in doubles; W: bc. */
struct judge_room {
    double *q;                              /* [ROWS][D] */
    double *most_q;                         /* [ROWS][D] magnitudes; NULL where they are those of q */
    double *score, *loose, *weight, *error; /* [ROWS][W] */
    double *fixed, *variance, *more;        /* [ROWS][W]; of long rows alone, as: */
    double *bins;                           /* [ROWS][JUDGE_BINS] */
    double *row;                            /* [ROWS][ROW_NUMBERS] */
    double *most;                           /* [THREADS / 32] */
    float *size_q;                          /* [ROWS][D] */
    float *w, *e, *f, *v;                   /* [ROWS][W] narrowed; they lie where score and loose were */
    float *tile;                            /* [W][the longer row + 1] of K or V */
};

static __device__ struct judge_room judge_room_at(double *at, const struct judge_numbers *n)
{
    const int D = n->head_dim, W = n->bc;
    struct judge_room x = {};
    x.q = at, at += ROWS * D;
    x.most_q = n->input[0].lossy || n->input[1].lossy ? at : NULL;
    at += x.most_q ? ROWS * D : 0;
    x.score = at, at += ROWS * W;
    x.loose = at, at += ROWS * W;
    x.weight = at, at += ROWS * W;
    x.error = at, at += ROWS * W;
    if (n->likely) {
        x.fixed = at, at += ROWS * W;
        x.variance = at, at += ROWS * W;
        x.more = at, at += ROWS * W;
        x.bins = at, at += ROWS * JUDGE_BINS;
    }
    x.row = at, at += ROWS * ROW_NUMBERS;
    x.most = at, at += THREADS / 32;
    x.size_q = (float *)at;
    x.tile = x.size_q + ROWS * D;
    x.w = (float *)x.score;
    x.e = x.w + ROWS * W;
    x.f = x.e + ROWS * W;
    x.v = x.f + ROWS * W;
    return x;
}

/* code_is: what each of 256 codes is; read where the type is one of codes. */
static __device__ double judge_load(int type, const float *code_is, const unsigned char *data, int64_t i)
{
    if (type == DTYPE_F32)
        return (double)((const float *)data)[i];
    if (type != DTYPE_F16 && type != DTYPE_BF16)
        return (double)code_is[data[i]];
    const uint16_t code = ((const uint16_t *)data)[i];
    if (type == DTYPE_BF16)
        return (double)format_f32_of((uint32_t)code << 16);
    /* The exponent of a half moved to its place in f32 is short by 112; a subnormal one comes out normal. */
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, magnitude = (uint32_t)(code & 0x7FFFu) << 13;
    const float x = format_f32_of(magnitude) * 0x1p112f;
    return (double)format_f32_of(sign | format_f32_bits(x) | (magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0));
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

/* The largest of the threads that share a row. */
static __device__ double judge_row_most(double x)
{
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, flip));
    return x;
}

static __device__ double judge_block_most(double x, double *room)
{
    for (int flip = 16; flip > 0; flip /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffffu, x, flip));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        x = fmax(x, room[i]);
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

/* A tile of K or V as f32, which holds every number of the types; the largest magnitude, sizes at least `least`.
   Infinite where one is no finite number. */
static __device__ double judge_load_tile(const struct judge_arrays &work, int type, int operand, int64_t at, int first,
                                         int cols, int dim, double least, const struct judge_room &room)
{
    const int64_t stride = work.stride[operand];
    const unsigned char *data = work.input[operand] + at;
    double most = 0;
    for (int i = threadIdx.x; i < cols * dim; i += THREADS) {
        const int row = i / dim, d = i % dim;
        const double x = judge_load(type, work.code + 256 * operand, data, (first + row) * stride + d),
                     size = judge_size(x, least);
        room.tile[row * (dim + 1) + d] = (float)x;
        most = size <= DBL_MAX ? fmax(most, size) : (double)INFINITY;
    }
    return judge_block_most(most, room.most);
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

/* The largest of the tile's magnitudes and (V) of what they have beyond the values; the tile is there. */
static __device__ double judge_most_of_tile(const struct judge_numbers &n, const struct judge_arrays &work, int operand,
                                            int first, int cols, int dim, double least, const struct judge_room &room,
                                            double *beyond)
{
    const struct judge_input &input = n.input[operand];
    double most = 0, more = 0;
    for (int i = threadIdx.x; i < cols * dim; i += THREADS) {
        const int r = i / dim, d = i % dim;
        const float *row = room.tile + r * (dim + 1);
        const double x = judge_taken(work.scales, input, row, first + r, d), size = judge_most(input, row, d, x);
        most = size <= DBL_MAX ? fmax(most, judge_size(size, least)) : (double)INFINITY;
        more = fmax(more, size - fabs(x));
    }
    *beyond = judge_block_most(more, room.most);
    return judge_block_most(most, room.most);
}

#endif
