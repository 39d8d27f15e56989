/* What a block that judges O and LSE works with: its arrays in shared memory, and how elements of Q, K and V come there
   and what the products take of them. */
#ifndef JUDGE_TILES_CUH
#define JUDGE_TILES_CUH

#include "engine/judge/work.h"

#include <cuda_fp16.h>

/* Whether there are a tensor core's instructions, and those of float64 (scores.cuh); the CPU executor has none. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800 && !defined SIMT_KEYWORDS_H
#define JUDGE_HAS_CORES 1
#else
#define JUDGE_HAS_CORES 0
#endif
#if JUDGE_HAS_CORES && __CUDA_ARCH__ >= 900
#define JUDGE_HAS_F64_CORES 1
#else
#define JUDGE_HAS_F64_CORES 0
#endif

enum { ROWS = JUDGE_ROWS, LANES = 32, WARPS_OF_ROWS = JUDGE_ROW_THREADS / LANES };

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

/* An element of K or V as it lies in shared memory: as it came where that is 16 bits, else as f32, which holds every
   number of all types. EXACT: so is its magnitude in the sums of tensor cores. UNIT: those are taken as they are. */
struct judge_f16 {
    uint16_t bits;
    enum { EXACT = true, UNIT = true };
};
struct judge_bf16 {
    uint16_t bits;
    enum { EXACT = true, UNIT = false };
};
struct judge_f32 {
    float value;
    enum { EXACT = false, UNIT = false };
};
static __device__ float judge_number(judge_f16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}
static __device__ float judge_number(judge_bf16 x)
{
    return format_f32_of((uint32_t)x.bits << 16);
}
static __device__ float judge_number(judge_f32 x)
{
    return x.value;
}
static __device__ double judge_number(double x)
{
    return x;
}

/* What weights err by, in f32: see judge_weight_of(). Of the row's, and in its units. */
struct judge_weight_terms {
    float natural, beyond, convert; /* of a score of 1; frame - top; bound_convert() of 1, or 0 */
    float always, by_distance;      /* what the exponential errs by: exponential_error() */
    float limit, tiny;              /* weight_terms */
    float half_tiny, l_half_tiny;   /* likely_terms */
    float least, lost;              /* what tensor cores lose of a weight that is smaller */
};

/* What a row's sums have come to, for all of its threads. What depends on the maximum alone is found when it changes:
   also what a tile does to the sums that leaves it as it is. It lies in shared memory, since registers have U. */
struct judge_kept_row {
    double max, frame, sum, sum_error, turned;
    double p_unit, per_unit, turns, still, still_error, per_still, decay, decay_error;
    double largest, bin_scale, bin_ratio, per_bin; /* of the keys; see judge_per_bin() */
    struct judge_weight_terms narrow;
    int32_t framed;
};

/* Of a row and a tile, for the threads that hold its U, in units of theirs: see judge_values(). */
struct judge_now {
    float decay, most_decay, decay_error, squared; /* squared: most_decay^2 */
    float lost;
};

/* Arrays of a block in shared memory; W: bc. Rows of operands of a product are `pitch` apart, so that a tensor core's
   lanes meet in no bank, and go on with zeros to whole instructions. */
struct judge_room {
    double *q;      /* [ROWS][pitch_q] */
    double *most_q; /* the same, magnitudes; NULL where they are those of q */
    double *weight; /* [ROWS][pitch_p]; before that a tile's scores lie there */
    uint32_t *bins; /* [ROWS][2][LIKELY_BINS], see judge_bin_bits(); of long rows alone */
    double *row;    /* [ROWS][ROW_NUMBERS] */
    struct judge_kept_row *kept;
    struct judge_now *now;
    float *size_q;             /* [ROWS][pitch_q] */
    float *sizes[JUDGE_SIZES]; /* [ROWS][pitch_p]: of weights, errors, fixed, variances */
    float *loose;              /* where the last of these come to lie: bounds of the tile's scores */
    uint32_t *most;            /* [2][warps] */
    void *keys, *values;       /* tiles, rows pitch_k and pitch_v apart; elements of 32 bits share the room */
    int pitch_q, pitch_p, pitch_k, pitch_v;
};

/* DIM: of the rows of Q, K and V, where it is known to the compiler; 0: it is not. */
template <int DIM> static __device__ constexpr int judge_dim(int n)
{
    return DIM > 0 ? DIM : n;
}

template <int DIM> static __device__ struct judge_room judge_room_at(double *at, const struct judge_numbers *n)
{
    const int W = n->bc, bytes = DIM > 0 ? 2 : 4;
    struct judge_room x = {};
    static_assert(sizeof(struct judge_kept_row) + sizeof(struct judge_now) <= JUDGE_KEPT_BYTES, "work.h has it");
    x.pitch_q = judge_pitch_q(judge_dim<DIM>(n->head_dim));
    x.pitch_p = judge_pitch_q(W);
    x.pitch_k = judge_pitch_k(judge_dim<DIM>(n->head_dim), bytes);
    x.pitch_v = judge_pitch_v(judge_dim<DIM>(n->head_dim_v));
    /* What lies at the same place in all runs first. */
    x.q = at, at += ROWS * x.pitch_q;
    x.row = at, at += ROWS * ROW_NUMBERS;
    x.kept = (struct judge_kept_row *)(void *)at;
    x.now = (struct judge_now *)(void *)(x.kept + ROWS);
    x.size_q = (float *)(void *)((char *)(void *)x.kept + ROWS * JUDGE_KEPT_BYTES);
    x.most = (uint32_t *)(void *)(x.size_q + ROWS * x.pitch_q);
    at = (double *)(void *)(x.most + 2 * WARPS_OF_ROWS);
    x.most_q = n->input[0].lossy || n->input[1].lossy ? at : NULL;
    at += x.most_q ? ROWS * x.pitch_q : 0;
    x.bins = (uint32_t *)(void *)at, at += n->likely ? ROWS * LIKELY_BINS : 0;
    x.weight = at, at += ROWS * x.pitch_p;
    for (int i = 0; i < JUDGE_SIZES; i++)
        x.sizes[i] = (float *)(void *)at + i * ROWS * x.pitch_p;
    x.loose = x.sizes[JUDGE_SIZES - 1];
    x.keys = x.sizes[JUDGE_SIZES - 1] + ROWS * x.pitch_p;
    x.values = (char *)x.keys + (bytes == 4 ? 0 : (size_t)judge_whole(W) * x.pitch_k * bytes);
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
    return type == DTYPE_F16 ? formula_f16(x) : type == DTYPE_BF16 ? formula_bf16(x) : (double)(float)x;
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

template <int SHARE> static __device__ double judge_row_sum(double x)
{
    for (int flip = SHARE / 2; flip > 0; flip /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, flip);
    return x;
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

/* A tile of K or V of 16 bits as it comes, in the background; behind its last row there are zeros. A row that does not
   lie at a multiple of 16 bytes comes element by element. */
template <class ELEMENT, int DIM>
static __device__ void judge_ask_tile(const struct judge_arrays &work, int operand, int64_t at, int first, int cols,
                                      int rows, ELEMENT *to, int pitch)
{
    enum { EACH = 16 / sizeof(ELEMENT), BYTES = 16, SHARE = DIM / EACH, AT_ONCE = JUDGE_ROW_THREADS / SHARE };
    const int64_t stride = work.stride[operand];
    const ELEMENT *data = (const ELEMENT *)(const void *)(work.input[operand] + at) + first * stride;
    const int d = (int)threadIdx.x % SHARE * EACH;
#if JUDGE_HAS_CORES
    const bool whole = ((uint32_t)(uintptr_t)data | (uint32_t)stride * (uint32_t)sizeof(ELEMENT)) % BYTES == 0;
    uint32_t place = (uint32_t)__cvta_generic_to_shared(to + (int)threadIdx.x / SHARE * pitch + d);
    for (int r = (int)threadIdx.x / SHARE; whole && r < rows; r += AT_ONCE) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place),
                     "l"(data + (r < cols ? r : 0) * stride + d), "r"(r < cols ? BYTES : 0)
                     : "memory");
        place += AT_ONCE * pitch * (int)sizeof(ELEMENT);
    }
#else
    const bool whole = false;
#endif
    for (int r = (int)threadIdx.x / SHARE; !whole && r < rows; r += AT_ONCE)
        for (int i = 0; i < EACH; i++)
            to[r * pitch + d + i] = r < cols ? data[r * stride + d + i] : ELEMENT{};
#if JUDGE_HAS_CORES
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Until all but the last LEFT tiles that were asked for are there, of this thread's share. */
template <int LEFT> static __device__ void judge_await_tile()
{
#if JUDGE_HAS_CORES
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
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
    const double x = (double)judge_number(row[d]);
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
        loose =
            input_turned(input.turned_share, (double)judge_number(row[i]), (double)judge_number(row[i + input.apart]));
    } else if (input.descaled) {
        loose = input_descaled(input.roundings, x);
    }
    return input_size(&input.terms, x, loose);
}

/* The unit of an operand's magnitudes: a power of two at the largest finite one of a tile, which is there; 0 where that
   is 0. What 1 / unit is lifted by stays f32. By all threads, between barriers. */
#define JUDGE_UNIT_LEAST 0x1p-100
template <class ELEMENT>
static __device__ double judge_tile_unit(const struct judge_numbers &n, const struct judge_arrays &work, int operand,
                                         int first, int cols, int dim, const ELEMENT *tile, int pitch, uint32_t *room)
{
    const struct judge_input &input = n.input[operand];
    uint32_t most = 0;
    for (int i = threadIdx.x; !ELEMENT::UNIT && i < cols * dim; i += JUDGE_ROW_THREADS) {
        const int r = i / dim, d = i % dim;
        const ELEMENT *row = tile + r * pitch;
        const float size = (float)judge_most(input, row, d, judge_taken(work.scales, input, row, first + r, d));
        most = size <= FLT_MAX ? judge_largest(most, size) : most;
    }
    if (ELEMENT::UNIT)
        return 1;
    judge_put_largest(most, room);
    __syncthreads();
    const double largest = judge_block_largest<WARPS_OF_ROWS>(room);
    return largest > 0 ? fmax(judge_unit(largest), JUDGE_UNIT_LEAST) : 0;
}

static __device__ double judge_unit_or(double unit)
{
    return unit > 0 ? unit : 1;
}

#endif
