/* What inline PTX does on the CPU: the functions of ptx.def. A register is its bits, a shared address an offset into
   the block's shared memory (simt_shared_address). */
#ifndef SIMT_PTX_H
#define SIMT_PTX_H

#include "engine/base/format.h"
#include "simt_math.h"
#include "simt_memory.h"
#include "simt_warp.h"

namespace simt_ptx
{
template <class W, int N> struct regs {
    W r[N];
};

/* In place of a statement that the executor does not know. */
[[noreturn]] static inline void refused(const char *what, int line, const char *file = __builtin_FILE())
{
    simt_gpu_only(what, file, line);
}

/* An operand's bits. */
template <class W, class T> static inline W bits(const T &x)
{
    static_assert(std::is_scalar<T>::value, "an operand of inline PTX is a number or a pointer");
    if constexpr (std::is_pointer<T>::value) {
        return (W)(uintptr_t)x;
    } else if constexpr (std::is_floating_point<T>::value) {
        static_assert(sizeof(T) == sizeof(W), "an operand of inline PTX has a different width than its instruction");
        return simt::bit_cast<W>(x);
    } else {
        return (W)x;
    }
}

template <class W, class T> static inline void put(W value, T &to)
{
    static_assert(std::is_scalar<T>::value, "an operand of inline PTX is a number or a pointer");
    static_assert(sizeof(T) == sizeof(W), "an operand of inline PTX has a different width than its instruction");
    if constexpr (std::is_integral<T>::value)
        to = (T)value;
    else
        to = simt::bit_cast<T>(value);
}

template <class W, int N, class... T> static inline void put(regs<W, N> value, T &...to)
{
    static_assert(sizeof...(T) == N, "as many registers as the vector has");
    int i = 0;
    (put(value.r[i++], to), ...);
}

template <class T> static inline uint64_t address(T base, int64_t offset)
{
    const uint64_t at = bits<uint64_t>(base) + (uint64_t)offset;
    return sizeof(T) == 4 ? (uint32_t)at : at;
}

template <class T> static inline int64_t offset(T x)
{
    return (int64_t)x;
}

/* Matrices of 8 rows of 8 elements of 16 bits. A lane gives the address of a row: lanes 0 to 7 those of the first
   matrix, 8 to 15 of the second and so on. It gets elements 2 (lane % 4) and the next one of row lane / 4 of each;
   transposed, of column lane / 4 (PTX ISA, ldmatrix). */
template <int N> struct ldmatrix_arg {
    const unsigned char *row;
    bool early; /* read from it before the others came */
    uint16_t early_row[8];
    regs<uint32_t, N> out;
    const char *file;
    int line;
};

static inline uint32_t two(uint16_t low, uint16_t high)
{
    return low | (uint32_t)high << 16;
}

template <int N, bool transposed> void ldmatrix_combine(void *const args[32], uint32_t lanes)
{
    using arg = ldmatrix_arg<N>;
    uint16_t x[8 * N][8] = {};
    simt::each_lane<arg>(args, lanes, [&](int lane, const arg *me) {
        if (lane < 8 * N)
            memcpy(x[lane], me->early ? reinterpret_cast<const unsigned char *>(me->early_row) : me->row,
                   sizeof x[lane]);
        if (SIMT_CHECKS && lane < 8 * N)
            simt_check_lane(lane, me->row, sizeof x[lane], me->file, me->line);
    });
    if (lanes != 0xFFFFFFFFu) {
        const arg *first = static_cast<const arg *>(args[__builtin_ctz(lanes)]);
        simt_matrix_report(first->file, first->line, "ldmatrix", "some of the 32 lanes have returned");
    }
    simt::each_lane<arg>(args, lanes, [&](int lane, arg *me) {
        const int major = lane / 4, minor = lane % 4 * 2;
        for (int i = 0; i < N; i++)
            me->out.r[i] = transposed ? two(x[8 * i + minor][major], x[8 * i + minor + 1][major])
                                      : two(x[8 * i + major][minor], x[8 * i + major][minor + 1]);
    });
}

template <int N, bool transposed> static inline regs<uint32_t, N> ldmatrix(uint64_t address, SIMT_SITE)
{
    ldmatrix_arg<N> arg = {nullptr, simt_early(), {}, {}, simt_file, simt_line};
    if (simt_lane() < 8 * N) {
        arg.row =
            static_cast<const unsigned char *>(simt_shared_pointer(address, 16, 16, "ldmatrix", simt_file, simt_line));
        if (arg.early)
            memcpy(arg.early_row, arg.row, sizeof arg.early_row);
    }
    simt_warp_meet(0xFFFFFFFFu, SIMT_LDMATRIX, ldmatrix_combine<N, transposed>, &arg, simt_file, simt_line);
    return arg.out;
}

template <bool transposed> static inline uint32_t ldmatrix1(uint64_t address, SIMT_SITE)
{
    return ldmatrix<1, transposed>(address, simt_file, simt_line).r[0];
}

/* Which element a lane holds as its i-th: of A and the accumulator [16][cols], of B transposed [8][k] (PTX ISA, matrix
   fragments for mma.m16n8k8, m16n8k16 and m16n8k32): pieces of 8 rows by 4 registers, the lower one before the one to
   the right. A register holds `per` of them. */
template <int rows, int per = 2> static constexpr int row_of(int lane, int i)
{
    return lane / 4 + 8 * (i / per % (rows / 8));
}
template <int rows, int per = 2> static constexpr int col_of(int lane, int i)
{
    return lane % 4 * per + i % per + 4 * per * (i / per / (rows / 8));
}

template <class E> static inline E element_of(const uint32_t *words, int i)
{
    constexpr int per = 4 / (int)sizeof(E);
    return (E)(words[i / per] >> i % per * (32 / per));
}
static inline uint16_t half_of(const uint32_t *words, int i)
{
    return element_of<uint16_t>(words, i);
}

/* Of operands whose rows, of k elements, have so many bytes. */
template <int bytes> struct mma_arg {
    regs<uint32_t, bytes / 8> a;
    regs<uint32_t, bytes / 16> b;
    float c[4];
    const char *file;
    int line;
};

template <simt_mma_type type>
using code_of = std::conditional_t<type == SIMT_MMA_E4M3 || type == SIMT_MMA_E5M2, uint8_t, uint16_t>;

template <int K, simt_mma_type type, bool f16_accumulator> void mma_combine(void *const args[32], uint32_t lanes)
{
    using E = code_of<type>;
    using arg = mma_arg<K * sizeof(E)>;
    constexpr int per = 4 / (int)sizeof(E);
    E a[16 * K] = {}, b[8 * K] = {};
    float c[16 * 8] = {}, d[16 * 8];
    simt::each_lane<arg>(args, lanes, [&](int lane, const arg *me) {
        for (int i = 0; i < K / 2; i++)
            a[row_of<16, per>(lane, i) * K + col_of<16, per>(lane, i)] = element_of<E>(me->a.r, i);
        for (int i = 0; i < K / 4; i++)
            b[row_of<8, per>(lane, i) * K + col_of<8, per>(lane, i)] = element_of<E>(me->b.r, i);
        for (int i = 0; i < 4; i++)
            c[row_of<16>(lane, i) * 8 + col_of<16>(lane, i)] = me->c[i];
    });
    const arg *first = static_cast<const arg *>(args[__builtin_ctz(lanes)]);
    if (lanes != 0xFFFFFFFFu)
        simt_matrix_report(first->file, first->line, "mma.sync", "some of the 32 lanes have returned");
    const simt_mma product = {type, f16_accumulator, 16, 8, K, a, b, c, first->file, first->line, false};
    simt_tensor_product(&product, d);
    simt::each_lane<arg>(args, lanes, [&](int lane, arg *me) {
        for (int i = 0; i < 4; i++)
            me->c[i] = d[row_of<16>(lane, i) * 8 + col_of<16>(lane, i)];
    });
}

static inline regs<uint32_t, 1> as_regs(uint32_t x)
{
    return {{x}};
}
template <int N> static inline regs<uint32_t, N> as_regs(regs<uint32_t, N> x)
{
    return x;
}

template <int K, simt_mma_type type, class A, class B>
static inline regs<uint32_t, 4> mma(A a, B b, regs<uint32_t, 4> c, SIMT_SITE)
{
    mma_arg<K * sizeof(code_of<type>)> arg = {a, as_regs(b), {}, simt_file, simt_line};
    memcpy(arg.c, c.r, sizeof arg.c);
    simt_warp_meet(0xFFFFFFFFu, SIMT_PTX_MMA, mma_combine<K, type, false>, &arg, simt_file, simt_line);
    memcpy(c.r, arg.c, sizeof arg.c);
    return c;
}

template <int K, class B>
static inline regs<uint32_t, 2> mma_f16(regs<uint32_t, K / 4> a, B b, regs<uint32_t, 2> c, SIMT_SITE)
{
    mma_arg<2 *K> arg = {a, as_regs(b), {}, simt_file, simt_line};
    for (int i = 0; i < 4; i++)
        arg.c[i] = f16_to_f32(half_of(c.r, i));
    simt_warp_meet(0xFFFFFFFFu, SIMT_PTX_MMA, mma_combine<K, SIMT_MMA_F16, true>, &arg, simt_file, simt_line);
    return {{two(f16_from_f32(arg.c[0]), f16_from_f32(arg.c[1])), two(f16_from_f32(arg.c[2]), f16_from_f32(arg.c[3]))}};
}

/* Of `bytes` the first `source_bytes` are copied, the others become zero. */
template <bool l2_only>
static inline void cp_async(uint64_t shared, uint64_t global, uint32_t bytes, uint32_t source_bytes, SIMT_SITE)
{
    if (l2_only && bytes != 16)
        simt_address_error("cp.async.cg copies 16 bytes, nothing else", simt_file, simt_line);
    void *to = simt_shared_pointer(shared, bytes, bytes, "cp.async", simt_file, simt_line);
    if (source_bytes)
        (void)*reinterpret_cast<const volatile unsigned char *>(
            global); /* an address that is none shows at this line */
    simt_copy_async(to, reinterpret_cast<const void *>(global), bytes, source_bytes < bytes ? bytes - source_bytes : 0,
                    simt_file, simt_line);
}
template <bool l2_only> static inline void cp_async(uint64_t shared, uint64_t global, uint32_t bytes, SIMT_SITE)
{
    cp_async<l2_only>(shared, global, bytes, bytes, simt_file, simt_line);
}
static inline void cp_async_commit()
{
    simt_copy_commit();
}
static inline void cp_async_wait(uint32_t groups_left)
{
    simt_copy_wait(groups_left);
}
static inline void cp_async_wait_all()
{
    simt_copy_commit();
    simt_copy_wait(0);
}

static inline float f32(uint32_t x)
{
    return simt::bit_cast<float>(x);
}
static inline uint32_t word(float x)
{
    return simt::bit_cast<uint32_t>(x);
}
/* Subnormal numbers become zero of their sign. */
static inline uint32_t flushed(uint32_t x)
{
    return x & 0x7F800000u ? x : x & 0x80000000u;
}
template <float f(float)> static inline uint32_t of_f32(uint32_t x)
{
    return word(f(f32(x)));
}
template <float f(float)> static inline uint32_t of_f32_ftz(uint32_t x)
{
    return flushed(word(f(f32(flushed(x)))));
}

template <float f(float)> static inline uint16_t of_f16(uint16_t x)
{
    return f16_from_f32(f(f16_to_f32(x)));
}
template <float f(float)> static inline uint32_t of_f16x2(uint32_t x)
{
    return two(of_f16<f>((uint16_t)x), of_f16<f>((uint16_t)(x >> 16)));
}
template <float f(float, float)> static inline uint32_t f32_of(uint32_t x, uint32_t y)
{
    return word(f(f32(x), f32(y)));
}
template <float f(float, float)> static inline uint32_t f32_of_ftz(uint32_t x, uint32_t y)
{
    return flushed(word(f(f32(flushed(x)), f32(flushed(y)))));
}
template <float f(float, float, float)> static inline uint32_t f32_of(uint32_t x, uint32_t y, uint32_t z)
{
    return word(f(f32(x), f32(y), f32(z)));
}
template <float f(float, float, float)> static inline uint32_t f32_of_ftz(uint32_t x, uint32_t y, uint32_t z)
{
    return flushed(word(f(f32(flushed(x)), f32(flushed(y)), f32(flushed(z)))));
}

/* Of two sources the first becomes the upper half (PTX ISA, cvt). */
static inline uint32_t cvt_f16x2_f32(uint32_t high, uint32_t low)
{
    return two(f16_from_f32(f32(low)), f16_from_f32(f32(high)));
}
static inline uint32_t cvt_bf16x2_f32(uint32_t high, uint32_t low)
{
    return two(bf16_from_f32(f32(low)), bf16_from_f32(f32(high)));
}
static inline uint16_t cvt_f16_f32(uint32_t x)
{
    return f16_from_f32(f32(x));
}
static inline uint16_t cvt_bf16_f32(uint32_t x)
{
    return bf16_from_f32(f32(x));
}
static inline uint32_t cvt_f32_f16(uint16_t x)
{
    return word(f16_to_f32(x));
}
static inline uint32_t cvt_f32_bf16(uint16_t x)
{
    return word(bf16_to_f32(x));
}
static inline uint16_t bytes(uint8_t low, uint8_t high)
{
    return (uint16_t)(low | high << 8);
}
static inline uint16_t cvt_e4m3x2_f32(uint32_t high, uint32_t low)
{
    return bytes(e4m3_from_f32(f32(low), 1), e4m3_from_f32(f32(high), 1));
}
static inline uint16_t cvt_e5m2x2_f32(uint32_t high, uint32_t low)
{
    return bytes(e5m2_from_f32(f32(low), 1), e5m2_from_f32(f32(high), 1));
}
static inline uint16_t cvt_e4m3x2_f16x2(uint32_t x)
{
    return bytes(e4m3_from_f32(f16_to_f32((uint16_t)x), 1), e4m3_from_f32(f16_to_f32((uint16_t)(x >> 16)), 1));
}
static inline uint16_t cvt_e5m2x2_f16x2(uint32_t x)
{
    return bytes(e5m2_from_f32(f16_to_f32((uint16_t)x), 1), e5m2_from_f32(f16_to_f32((uint16_t)(x >> 16)), 1));
}
static inline uint32_t cvt_f16x2_e4m3x2(uint16_t x)
{
    return two(f16_from_f32(e4m3_to_f32((uint8_t)x)), f16_from_f32(e4m3_to_f32((uint8_t)(x >> 8))));
}
static inline uint32_t cvt_f16x2_e5m2x2(uint16_t x)
{
    return two(f16_from_f32(e5m2_to_f32((uint8_t)x)), f16_from_f32(e5m2_to_f32((uint8_t)(x >> 8))));
}
static inline uint32_t cvt_f32_s32(uint32_t x)
{
    return word((float)(int32_t)x);
}
static inline uint32_t cvt_f32_u32(uint32_t x)
{
    return word((float)x);
}
template <int f(float)> static inline uint32_t cvt_s32_f32(uint32_t x)
{
    return (uint32_t)f(f32(x));
}

template <class W, class T> static inline W copy(T x)
{
    return (W)x;
}
static inline uint64_t to_shared(uint64_t generic, SIMT_SITE)
{
    return simt_shared_address(reinterpret_cast<const void *>(generic), simt_file, simt_line);
}
static inline uint32_t pack(regs<uint16_t, 2> x)
{
    return two(x.r[0], x.r[1]);
}
static inline regs<uint16_t, 2> unpack(uint32_t x)
{
    return {{(uint16_t)x, (uint16_t)(x >> 16)}};
}

enum shfl_mode { SHFL_BFLY, SHFL_IDX, SHFL_UP, SHFL_DOWN };

/* The lane that is read, out of a segment, else the own one (PTX ISA, shfl.sync). */
template <shfl_mode mode>
static inline uint32_t shfl(uint32_t x, uint32_t b, uint32_t bounds, uint32_t lanes, SIMT_SITE)
{
    const int lane = (int)simt_lane(), segment = (int)(bounds >> 8 & 31), move = (int)(b & 31);
    const int last = (lane & segment) | ((int)(bounds & 31) & ~segment);
    int from = (lane & segment) | (move & ~segment);
    if (mode == SHFL_BFLY)
        from = lane ^ move;
    else if (mode != SHFL_IDX)
        from = mode == SHFL_UP ? lane - move : lane + move;
    const bool inside = mode == SHFL_UP ? from >= last : from <= last;
    return simt::shuffle(lanes, x, inside ? from : lane, simt_file, simt_line);
}
static inline void syncthreads(SIMT_SITE)
{
    __syncthreads(simt_file, simt_line);
}
template <bool aligned> static inline void bar_sync(uint32_t id, SIMT_SITE)
{
    if (id)
        simt_named_barrier(SIMT_NAMED_SYNC_BLOCK, id, 0, aligned, simt_file, simt_line);
    else
        __syncthreads(simt_file, simt_line);
}
template <bool aligned> static inline void bar_sync(uint32_t id, uint32_t threads, SIMT_SITE)
{
    simt_named_barrier(SIMT_NAMED_SYNC, id, threads, aligned, simt_file, simt_line);
}
template <bool aligned> static inline void bar_arrive(uint32_t id, uint32_t threads, SIMT_SITE)
{
    simt_named_barrier(SIMT_NAMED_ARRIVE, id, threads, aligned, simt_file, simt_line);
}
static inline void bar_warp_sync(uint32_t lanes, SIMT_SITE)
{
    __syncwarp(lanes, simt_file, simt_line);
}

static inline bool equal(uint32_t a, uint32_t b)
{
    return a == b;
}
static inline bool unequal(uint32_t a, uint32_t b)
{
    return a != b;
}
template <class T> static inline bool less(uint32_t a, uint32_t b)
{
    return (T)a < (T)b;
}
template <class T> static inline bool not_less(uint32_t a, uint32_t b)
{
    return (T)a >= (T)b;
}
static inline uint32_t select(uint32_t a, uint32_t b, bool first)
{
    return first ? a : b;
}
static inline uint32_t bit_and(uint32_t a, uint32_t b)
{
    return a & b;
}
static inline uint32_t bit_or(uint32_t a, uint32_t b)
{
    return a | b;
}
static inline uint32_t bit_xor(uint32_t a, uint32_t b)
{
    return a ^ b;
}
/* Bit 4 a + 2 b + c of the table, for each bit. */
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t out = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}
/* Bytes 0 to 3 are a's, 4 to 7 b's; bit 3 of a selector repeats the byte's sign. */
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t selectors)
{
    const uint64_t all = a | (uint64_t)b << 32;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t selector = selectors >> 4 * i & 15, byte = (uint32_t)(all >> 8 * (selector & 7)) & 0xFF;
        out |= (selector & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte) << 8 * i;
    }
    return out;
}

static inline void *global_pointer(uint64_t address, size_t bytes, const char *file, int line)
{
    if (address % bytes)
        simt_misaligned_error("ld.global or st.global", file, line);
    return reinterpret_cast<void *>(address);
}
template <int N> static inline regs<uint32_t, N> ld_shared_v(uint64_t address, SIMT_SITE)
{
    regs<uint32_t, N> out;
    memcpy(out.r, simt_cluster_pointer(address, sizeof out, sizeof out, "ld.shared", simt_file, simt_line), sizeof out);
    return out;
}
template <int N> static inline void st_shared_v(uint64_t address, regs<uint32_t, N> x, SIMT_SITE)
{
    memcpy(simt_cluster_pointer(address, sizeof x, sizeof x, "st.shared", simt_file, simt_line), x.r, sizeof x);
}
template <int N> static inline regs<uint32_t, N> ld_global_v(uint64_t address, SIMT_SITE)
{
    regs<uint32_t, N> out;
    memcpy(out.r, global_pointer(address, sizeof out, simt_file, simt_line), sizeof out);
    return out;
}
template <int N> static inline void st_global_v(uint64_t address, regs<uint32_t, N> x, SIMT_SITE)
{
    memcpy(global_pointer(address, sizeof x, simt_file, simt_line), x.r, sizeof x);
}
static inline uint32_t ld_shared(uint64_t address, SIMT_SITE)
{
    return ld_shared_v<1>(address, simt_file, simt_line).r[0];
}
static inline void st_shared(uint64_t address, uint32_t x, SIMT_SITE)
{
    st_shared_v<1>(address, {{x}}, simt_file, simt_line);
}
static inline uint32_t ld_global(uint64_t address, SIMT_SITE)
{
    return ld_global_v<1>(address, simt_file, simt_line).r[0];
}
static inline void st_global(uint64_t address, uint32_t x, SIMT_SITE)
{
    st_global_v<1>(address, {{x}}, simt_file, simt_line);
}
} // namespace simt_ptx

#include "simt_hopper.h"

#endif
