/* Inline PTX of sm_90: mbarrier, bulk copies and tensor maps (TMA), wgmma. What simt_ptx.h includes; the work is that
   of engine/simt/mbarriers.c, bulk.c and wgmma.c. */
#ifndef SIMT_HOPPER_H
#define SIMT_HOPPER_H

#include "simt_runtime.h"

namespace simt_ptx
{
template <class... T> static inline void nothing(T...) {}

/* In the kernel's own code, so that a report can name the line that called a helper. */
static inline __attribute__((always_inline)) void mbarrier_init(uint64_t at, uint32_t count, SIMT_SITE)
{
    simt_mbarrier_init(at, count, simt_file, simt_line);
}
static inline void mbarrier_inval(uint64_t at, SIMT_SITE)
{
    simt_mbarrier_inval(at, simt_file, simt_line);
}
static inline uint64_t mbarrier_arrive(uint64_t at, uint32_t count, SIMT_SITE)
{
    return simt_mbarrier_arrive(at, count, 0, simt_file, simt_line);
}
static inline uint64_t mbarrier_arrive(uint64_t at, SIMT_SITE)
{
    return simt_mbarrier_arrive(at, 1, 0, simt_file, simt_line);
}
static inline uint64_t mbarrier_arrive_expect(uint64_t at, uint32_t bytes, SIMT_SITE)
{
    return simt_mbarrier_arrive(at, 1, bytes, simt_file, simt_line);
}
static inline void mbarrier_expect(uint64_t at, uint32_t bytes, SIMT_SITE)
{
    simt_mbarrier_transactions(at, bytes, simt_file, simt_line);
}
static inline void mbarrier_complete(uint64_t at, uint32_t bytes, SIMT_SITE)
{
    simt_mbarrier_transactions(at, -(int64_t)bytes, simt_file, simt_line);
}
template <bool waits>
static inline __attribute__((always_inline)) bool mbarrier_wait(uint64_t at, uint32_t parity, SIMT_SITE)
{
    return simt_mbarrier_wait(at, parity, waits, simt_file, simt_line);
}
template <bool waits>
static inline __attribute__((always_inline)) bool mbarrier_wait(uint64_t at, uint32_t parity, uint32_t, SIMT_SITE)
{
    return simt_mbarrier_wait(at, parity, waits, simt_file, simt_line);
}
/* A state is the number of the phase that it is of. */
template <bool waits> static inline bool mbarrier_wait_state(uint64_t at, uint64_t state, SIMT_SITE)
{
    return simt_mbarrier_wait(at, (uint32_t)state & 1, waits, simt_file, simt_line);
}
template <bool waits> static inline bool mbarrier_wait_state(uint64_t at, uint64_t state, uint32_t, SIMT_SITE)
{
    return simt_mbarrier_wait(at, (uint32_t)state & 1, waits, simt_file, simt_line);
}

template <int N>
static inline void tma_load(uint64_t to, uint64_t map, regs<uint32_t, N> at, uint64_t mbarrier, SIMT_SITE)
{
    int32_t place[N];
    memcpy(place, at.r, sizeof place);
    simt_tma_load(to, (const void *)map, N, place, mbarrier, simt_file, simt_line);
}
template <int N>
static inline void tma_load(uint64_t to, uint64_t map, regs<uint32_t, N> at, uint64_t mbarrier, uint64_t, SIMT_SITE)
{
    tma_load<N>(to, map, at, mbarrier, simt_file, simt_line);
}
template <int N>
static inline void tma_multicast(uint64_t to, uint64_t map, regs<uint32_t, N> at, uint64_t mbarrier, uint16_t ranks,
                                 SIMT_SITE)
{
    int32_t place[N];
    memcpy(place, at.r, sizeof place);
    simt_tma_multicast(to, (const void *)map, N, place, mbarrier, ranks, simt_file, simt_line);
}
template <int N>
static inline void tma_multicast(uint64_t to, uint64_t map, regs<uint32_t, N> at, uint64_t mbarrier, uint16_t ranks,
                                 uint64_t, SIMT_SITE)
{
    tma_multicast<N>(to, map, at, mbarrier, ranks, simt_file, simt_line);
}
template <int N, bool adds = false>
static inline void tma_store(uint64_t map, regs<uint32_t, N> at, uint64_t from, SIMT_SITE)
{
    int32_t place[N];
    memcpy(place, at.r, sizeof place);
    simt_tma_store((const void *)map, N, place, from, adds, simt_file, simt_line);
}
template <int N> static inline void tma_store(uint64_t map, regs<uint32_t, N> at, uint64_t from, uint64_t, SIMT_SITE)
{
    tma_store<N>(map, at, from, simt_file, simt_line);
}
template <int N> static inline void tma_add(uint64_t map, regs<uint32_t, N> at, uint64_t from, SIMT_SITE)
{
    tma_store<N, true>(map, at, from, simt_file, simt_line);
}
template <int N> static inline void tma_add(uint64_t map, regs<uint32_t, N> at, uint64_t from, uint64_t, SIMT_SITE)
{
    tma_store<N, true>(map, at, from, simt_file, simt_line);
}
static inline void bulk_load(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, SIMT_SITE)
{
    simt_bulk_load(to, (const void *)from, bytes, mbarrier, simt_file, simt_line);
}
static inline void bulk_load(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, uint64_t, SIMT_SITE)
{
    simt_bulk_load(to, (const void *)from, bytes, mbarrier, simt_file, simt_line);
}
static inline void bulk_multicast(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, uint16_t ranks,
                                  SIMT_SITE)
{
    simt_bulk_multicast(to, (const void *)from, bytes, mbarrier, ranks, simt_file, simt_line);
}
static inline void bulk_multicast(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, uint16_t ranks,
                                  uint64_t, SIMT_SITE)
{
    simt_bulk_multicast(to, (const void *)from, bytes, mbarrier, ranks, simt_file, simt_line);
}
static inline void bulk_send(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, SIMT_SITE)
{
    simt_bulk_send(to, from, bytes, mbarrier, simt_file, simt_line);
}
static inline void store_async(uint64_t to, uint32_t value, uint64_t mbarrier, SIMT_SITE)
{
    simt_store_async(to, &value, sizeof value, mbarrier, simt_file, simt_line);
}
template <int N> static inline void store_async(uint64_t to, regs<uint32_t, N> values, uint64_t mbarrier, SIMT_SITE)
{
    simt_store_async(to, values.r, sizeof values.r, mbarrier, simt_file, simt_line);
}

/* Clusters. */
static inline unsigned cluster_size()
{
    const simt_dim c = simt_cluster_dim();
    return c.x * c.y * c.z;
}
static inline uint3 cluster_block()
{
    const simt_dim c = simt_cluster_dim(), b = simt_block_index();
    return uint3{b.x % c.x, b.y % c.y, b.z % c.z};
}
template <class T> static inline T mapa(T address, uint32_t rank, SIMT_SITE)
{
    return (T)simt_cluster_address(address, rank, simt_file, simt_line);
}
static inline uint64_t mapa_generic(uint64_t address, uint32_t rank, SIMT_SITE)
{
    return (uint64_t)simt_cluster_generic((const void *)address, rank, simt_file, simt_line);
}
static inline uint32_t rank_of(uint64_t address)
{
    return simt_cluster_rank_of_address(address);
}
static inline uint32_t rank_of_generic(uint64_t address, SIMT_SITE)
{
    return simt_cluster_rank_of((const void *)address, simt_file, simt_line);
}
template <bool releases> static inline void cluster_arrive(SIMT_SITE)
{
    __asm__ volatile("" ::: "memory"); /* what was written before is there for the others */
    simt_cluster_arrive(releases, simt_file, simt_line);
}
static inline void cluster_wait(SIMT_SITE)
{
    simt_cluster_wait(true, simt_file, simt_line);
    __asm__ volatile("" ::: "memory");
}

static inline void proxy_fence()
{
    simt_mbarrier_fence();
    simt_proxy_fence();
}
static inline void mbarrier_fence()
{
    simt_mbarrier_fence();
}
static inline void wgmma_fence()
{
    simt_wgmma_fence();
}
template <bool more> static inline void set_registers(uint32_t n, SIMT_SITE)
{
    simt_set_registers(more, n, simt_file, simt_line);
}

static inline void bulk_store(uint64_t to, uint64_t from, uint32_t bytes, SIMT_SITE)
{
    simt_bulk_store((void *)to, from, bytes, simt_file, simt_line);
}
static inline void bulk_store(uint64_t to, uint64_t from, uint32_t bytes, uint64_t, SIMT_SITE)
{
    simt_bulk_store((void *)to, from, bytes, simt_file, simt_line);
}
static inline void bulk_commit()
{
    simt_bulk_commit();
}
static inline void bulk_wait(uint32_t groups_left)
{
    simt_bulk_wait(groups_left);
}

/* Registers that a wgmma writes when it is waited for. */
template <int N> struct register_list {
    void *at[N];
    bool halves; /* two f16 in each */
};
template <class First, class... Rest>
static inline register_list<1 + sizeof...(Rest)> references(First &first, Rest &...rest)
{
    static_assert(sizeof(First) == 4, "an operand of inline PTX has a different width than its instruction");
    return {{&first, &rest...}, !std::is_floating_point<First>::value};
}

template <int N, simt_mma_type type, int D>
static inline void wgmma_issue(simt_wgmma w, register_list<D> d, uint64_t b, bool adds, uint32_t scale_a,
                               uint32_t scale_b)
{
    w.type = type;
    w.n = N;
    w.k = type == SIMT_MMA_E4M3 || type == SIMT_MMA_E5M2 ? 32 : 16;
    w.f16_accumulator = D == N / 4;
    w.b = b;
    w.adds = adds;
    w.negates = ((int32_t)scale_a < 0) != ((int32_t)scale_b < 0);
    simt_wgmma_issue(&w, d.at, D);
}
static inline simt_wgmma wgmma_of(uint64_t a, const char *file, int line)
{
    simt_wgmma w = {};
    w.a = a;
    w.file = file;
    w.line = line;
    return w;
}
static inline simt_wgmma wgmma_of(regs<uint32_t, 4> a, const char *file, int line)
{
    simt_wgmma w = wgmma_of(0, file, line);
    w.a_in_registers = true;
    memcpy(w.a_registers, a.r, sizeof w.a_registers);
    return w;
}
/* 8 bits; 16 bits with A in registers; 16 bits with both in shared memory. */
template <int N, simt_mma_type type, int D, class A>
static inline void wgmma(register_list<D> d, A a, uint64_t b, bool adds, uint32_t scale_a, uint32_t scale_b, SIMT_SITE)
{
    wgmma_issue<N, type>(wgmma_of(a, simt_file, simt_line), d, b, adds, scale_a, scale_b);
}
template <int N, simt_mma_type type, int D, class A>
static inline void wgmma(register_list<D> d, A a, uint64_t b, bool adds, uint32_t scale_a, uint32_t scale_b,
                         uint32_t transposed_b, SIMT_SITE)
{
    simt_wgmma w = wgmma_of(a, simt_file, simt_line);
    w.b_transposed = transposed_b != 0;
    wgmma_issue<N, type>(w, d, b, adds, scale_a, scale_b);
}
template <int N, simt_mma_type type, int D, class A>
static inline void wgmma(register_list<D> d, A a, uint64_t b, bool adds, uint32_t scale_a, uint32_t scale_b,
                         uint32_t transposed_a, uint32_t transposed_b, SIMT_SITE)
{
    simt_wgmma w = wgmma_of(a, simt_file, simt_line);
    w.a_transposed = transposed_a != 0;
    w.b_transposed = transposed_b != 0;
    wgmma_issue<N, type>(w, d, b, adds, scale_a, scale_b);
}
static inline void wgmma_commit()
{
    simt_wgmma_commit();
}
static inline void wgmma_wait_combine(void *const args[32], uint32_t lanes)
{
    simt_wgmma_finish(*static_cast<const uint32_t *>(args[__builtin_ctz(lanes)]), lanes);
}
static inline void wgmma_wait(uint32_t groups_left, SIMT_SITE)
{
    simt_warp_meet(0xFFFFFFFFu, SIMT_WGMMA_WAIT, wgmma_wait_combine, &groups_left, simt_file, simt_line);
    __asm__ volatile("" ::: "memory"); /* what a wgmma has written, by its reference */
}

struct elected {
    uint32_t leader;
    bool is_leader;
};
struct ignored {
};
static inline void put(elected value, ignored, bool &to)
{
    to = value.is_leader;
}
static inline void put(elected value, uint32_t &leader, bool &to)
{
    leader = value.leader;
    to = value.is_leader;
}
/* Which lane it is, PTX leaves open: the first of the mask. */
static inline elected elect(uint32_t lanes, SIMT_SITE)
{
    const uint32_t first = (uint32_t)__builtin_ctz(lanes ? lanes : 1);
    __syncwarp(lanes, simt_file, simt_line);
    return {first, simt_lane() == first};
}

static inline void pause(uint32_t)
{
    simt_yield();
}

/* The inverse of ldmatrix (PTX ISA, stmatrix). */
template <int N> struct stmatrix_arg {
    unsigned char *row;
    regs<uint32_t, N> in;
    const char *file;
    int line;
};
template <int N, bool transposed> void stmatrix_combine(void *const args[32], uint32_t lanes)
{
    using arg = stmatrix_arg<N>;
    uint16_t x[8 * N][8] = {};
    simt::each_lane<arg>(args, lanes, [&](int lane, const arg *me) {
        const int major = lane / 4, minor = lane % 4 * 2;
        for (int i = 0; i < N; i++)
            for (int half = 0; half < 2; half++)
                (transposed ? x[8 * i + minor + half][major] : x[8 * i + major][minor + half]) =
                    (uint16_t)(me->in.r[i] >> 16 * half);
    });
    if (lanes != 0xFFFFFFFFu) {
        const arg *first = static_cast<const arg *>(args[__builtin_ctz(lanes)]);
        simt_matrix_report(first->file, first->line, "stmatrix", "some of the 32 lanes have returned");
    }
    simt::each_lane<arg>(args, lanes, [&](int lane, const arg *me) {
        if (lane < 8 * N)
            simt_write_lane(lane, me->row, x[lane], sizeof x[lane], me->file, me->line);
    });
}
template <int N, bool transposed> static inline void stmatrix(uint64_t address, regs<uint32_t, N> in, SIMT_SITE)
{
    stmatrix_arg<N> arg = {nullptr, in, simt_file, simt_line};
    if (simt_lane() < 8 * N)
        arg.row = static_cast<unsigned char *>(simt_shared_pointer(address, 16, 16, "stmatrix", simt_file, simt_line));
    simt_warp_meet(0xFFFFFFFFu, SIMT_STMATRIX, stmatrix_combine<N, transposed>, &arg, simt_file, simt_line);
}
template <bool transposed> static inline void stmatrix1(uint64_t address, uint32_t in, SIMT_SITE)
{
    stmatrix<1, transposed>(address, {{in}}, simt_file, simt_line);
}
} // namespace simt_ptx

#endif
