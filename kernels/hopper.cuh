// hopper.cuh: what sm_90 has for attention, under short names: mbarriers, tiles that TMA copies, clusters of blocks,
// wgmma, registers that warps give each other. Tiles are panels of 64 elements of 16 bits, 128 bytes a row, whose
// 16-byte chunks TMA exchanges by the row (CU_TENSOR_MAP_SWIZZLE_128B): chunk c of row r stands at c ^ (r % 8). A panel
// begins at a multiple of 1024. Codes of a byte have one panel, as wide as a row of 128 or 64 elements; of 64 bytes a
// row (CU_TENSOR_MAP_SWIZZLE_64B) chunk c of row r stands at c ^ (r / 2 % 4).

#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "ladder.cuh"

namespace hopper
{

using namespace ladder;

constexpr int PANEL = 64; /* columns */

// A barrier that counts arrivals and bytes. A wait for parity 1 of a fresh one returns at once.
__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void fence_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barriers_are_there()
{
    fence_barriers();
    __syncthreads();
}
__device__ __forceinline__ void arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void arrive_and_expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(uint32_t barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred complete;\n"
                 "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
                 "@!complete bra AGAIN;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// One panel of a tile: rows first .. of head (head, batch), columns col .. col + 63. Rows beyond the tensor are zeros.
__device__ __forceinline__ void copy_panel(uint32_t to, const CUtensorMap *map, uint32_t barrier, int col, int first,
                                           int head, int batch)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(col), "r"(first), "r"(head), "r"(batch)
                 : "memory");
}

// A cluster: blocks that reach each other's shared memory. An address of one becomes that of another by its rank;
// stores that count their bytes into a barrier beside them need no other barrier. Who arrives at the cluster's barrier
// hands nothing over: to release would cost a fence of the whole GPU in every thread.
__device__ __forceinline__ int cluster_rank()
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}
__device__ __forceinline__ uint32_t in_block(uint32_t address, int rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void store_there(uint32_t to, const float *x, uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void store_there(uint32_t to, float x, float y, uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(to), "f"(x),
                 "f"(y), "r"(barrier)
                 : "memory");
}

// Launches that follow each other on a stream, where the later one says that it may begin early (launch_early): it is
// begun once every block of the earlier one has allowed it or ended. The one who waits sees all that the launches
// before wrote; who neither reads nor writes memory of theirs before needs no wait. Elsewhere both do nothing.
__device__ __forceinline__ void wait_for_launches_before()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void allow_next_launch()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void prefetch(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Bytes of a tile of `rows` rows from one panel to the next, and where an element stands, in elements.
template <int rows> __device__ __forceinline__ int place(int row, int col)
{
    return col / PANEL * rows * PANEL + row * PANEL + (col % PANEL / 8 ^ row % 8) * 8 + col % 8;
}

// What other threads have written into shared memory is there for wgmma and TMA behind a barrier and this.
__device__ __forceinline__ void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The inverse of load_matrices.
__device__ __forceinline__ void store_matrices(uint32_t row, const uint32_t (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
}

// To the last bit but one; a quotient would branch.
__device__ __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <int registers> __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers> __device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// wgmma: a warpgroup multiplies asynchronously. Between issue and wait nobody touches its registers and tiles.
__device__ __forceinline__ void wgmma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int groups_left, int N> __device__ __forceinline__ void wgmma_wait(float (&d)[N])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups_left) : "memory");
#pragma unroll
    for (int i = 0; i < N; i++) // the first use of d stays behind the wait
        asm volatile("" : "+f"(d[i])::"memory");
}

// The matrix that begins at this shared address: groups of 8 rows lie behind each other, panels `panel` bytes apart
// (which a transposed matrix alone asks for).
template <int row_bytes = 128> __device__ __forceinline__ uint64_t matrix(uint32_t address, int panel = 16)
{
    static_assert(row_bytes == 128 || row_bytes == 64);
    return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(panel >> 4) << 16 |
           static_cast<uint64_t>(8 * row_bytes >> 4) << 32 | static_cast<uint64_t>(128 / row_bytes) << 62;
}

// The one that begins so many bytes behind it. Addresses end below the upper half of the descriptor: one addition.
__device__ __forceinline__ uint64_t behind(uint64_t matrix, int bytes)
{
    return (matrix & 0xFFFFFFFF00000000) | static_cast<uint32_t>(matrix + (bytes >> 4));
}

#define HOPPER_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define HOPPER_D16(i) HOPPER_D4(i), HOPPER_D4(i + 4), HOPPER_D4(i + 8), HOPPER_D4(i + 12)
#define HOPPER_D32 HOPPER_D16(0), HOPPER_D16(16)
#define HOPPER_D64 HOPPER_D32, HOPPER_D16(32), HOPPER_D16(48)
#define HOPPER_NAMES32                                                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "   \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define HOPPER_NAMES64                                                                                                 \
    HOPPER_NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
                   "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
// `sums` registers of d; the names of what follows them; `sides`: of 16 bits either side may be transposed, codes not.
#define HOPPER_WGMMA(N, k, type, sides, sums, A, B, adds, ...)                                                         \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " adds ", 0;\n"                                                        \
                 "wgmma.mma_async.sync.aligned.m64n" N "k" k ".f32." type "." type " {" HOPPER_NAMES##sums             \
                 "}, " A ", " B ", p, 1, 1" sides ";}"                                                                 \
                 : HOPPER_D##sums                                                                                      \
                 : __VA_ARGS__, "l"(b), "r"(static_cast<int>(add)))
#define HOPPER_MULTIPLY(N, sides, sums, A, B, adds, ...)                                                               \
    if constexpr (sizeof(T) == 1)                                                                                      \
        HOPPER_WGMMA(N, "32", "e4m3", "", sums, A, B, adds, __VA_ARGS__);                                              \
    else if constexpr (is_half<T>)                                                                                     \
        HOPPER_WGMMA(N, "16", "f16", sides, sums, A, B, adds, __VA_ARGS__);                                            \
    else                                                                                                               \
        HOPPER_WGMMA(N, "16", "bf16", sides, sums, A, B, adds, __VA_ARGS__)

// D [64][N] (+)= A [64][K] B' [N][K], both of them matrices in shared memory; K is 16, of codes 32.
template <class T> __device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, bool add)
{
    HOPPER_MULTIPLY("64", ", 0, 0", 32, "%32", "%33", "%34", "l"(a));
}
template <class T> __device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, bool add)
{
    HOPPER_MULTIPLY("128", ", 0, 0", 64, "%64", "%65", "%66", "l"(a));
}
// D [64][N] (+)= A [64][K] B [K][N], of codes B' [N][K]; A in registers as the accumulator of a product has it, in
// pairs (of codes see hopper_fp8).
template <class T> __device__ __forceinline__ void multiply(float (&d)[32], const uint32_t *a, uint64_t b, bool add)
{
    HOPPER_MULTIPLY("64", ", 1", 32, "{%32, %33, %34, %35}", "%36", "%37", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
}
template <class T> __device__ __forceinline__ void multiply(float (&d)[64], const uint32_t *a, uint64_t b, bool add)
{
    HOPPER_MULTIPLY("128", ", 1", 64, "{%64, %65, %66, %67}", "%68", "%69", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
}
#undef HOPPER_MULTIPLY
#undef HOPPER_WGMMA

// What all kernels here get: tensor maps of Q, K and V beside the rest.
template <class T, class O = T> struct HopperParams : Params<T, T, O> {
    CUtensorMap q_map, k_map, v_map;
    int q_tiles, all_heads, work; /* all_heads: of all batches; work: q tiles of all heads */
};

// Which q tile the block has in its round `round`, and how many kv tiles its rows see. With a causal mask those that
// may see most come first, and every other round deals them the other way round: each block gets as much as another.
// Without one q tiles of a head are beside each other: blocks that run at once read the same K and V.
template <class S> struct Item {
    int q_tile, of_all, tiles; // of_all: which head of all batches
    bool is_there;
    template <class P> __device__ __forceinline__ Item(const P &p, int round)
    {
        const unsigned block = round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x, item = round * gridDim.x + block;
        const bool all_see_all = p.reach == p.kv_len;
        const unsigned by = all_see_all ? p.q_tiles : p.all_heads, quotient = item / by, rest = item - quotient * by;
        is_there = item < static_cast<unsigned>(p.work);
        q_tile = all_see_all ? rest : p.q_tiles - 1 - quotient;
        of_all = all_see_all ? quotient : rest;
        tiles = (max(p.keys(q_tile, S::BR), 0) + S::BC - 1) / S::BC;
    }
    template <class P> __device__ __forceinline__ int batch(const P &p) const
    {
        return static_cast<unsigned>(of_all) / p.heads;
    }
    template <class P> __device__ __forceinline__ int head(const P &p) const
    {
        return static_cast<unsigned>(of_all) % p.heads;
    }
};

// The maxima of a lane's two rows, which four lanes share, rise with these scores; `before` is what they were.
template <int N> __device__ __forceinline__ void raise_maxima(const float (&s)[N], float (&m)[2], float (&before)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float largest = m[r];
#pragma unroll
        for (int i = 2 * r; i < N; i += 4)
            largest = fmaxf(largest, fmaxf(s[i], s[i + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        before[r] = m[r];
        m[r] = largest;
    }
}

// All consumers meet, and what they have written is there for wgmma: of an isolated run.
template <class S> __device__ __forceinline__ void consumers_agree()
{
    fence_async();
    asm volatile("bar.sync %0, %1;\n" ::"n"(7), "n"(S::CONSUMER_THREADS) : "memory");
}

// The host's side: a map of [batch][heads][rows][D], at these strides, for boxes of `rows_of_box` rows and one panel.
// False: the driver refuses it, or is none.
template <class T>
bool map_of(CUtensorMap *map, const T *base, int head_dim, int rows, int heads, int batch, const asc_strides &s,
            int rows_of_box)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) ||
        !function)
        return false;
    const cuuint64_t dims[] = {static_cast<cuuint64_t>(head_dim), static_cast<cuuint64_t>(rows),
                               static_cast<cuuint64_t>(heads), static_cast<cuuint64_t>(batch)};
    const cuuint64_t strides[] = {s.row * sizeof(T), s.head * sizeof(T), s.batch * sizeof(T)};
    const cuuint32_t cols = sizeof(T) == 1 ? head_dim : PANEL;
    const cuuint32_t box[] = {cols, static_cast<cuuint32_t>(rows_of_box), 1, 1}, steps[] = {1, 1, 1, 1};
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
               map,
               sizeof(T) == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
               : is_half<T>   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                              : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
               4, const_cast<void *>(static_cast<const void *>(base)), dims, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE,
               cols * sizeof(T) == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// The problem for q tiles of `br` rows and kv tiles of `bc`; why there is none, or NULL.
template <class P> const char *hopper_params(const asc_problem *problem, int head_dim, int br, int bc, P *p)
{
    *p = params_of<P>(problem);
    p->q_tiles = (problem->q_len - 1) / br + 1;
    p->all_heads = problem->heads * problem->batch;
    p->work = p->q_tiles * p->all_heads;
    if (!p->aligned)
        return "TMA copies from arrays that begin at a multiple of 16 bytes";
    if (!map_of(&p->q_map, p->q, head_dim, p->q_len, p->heads, problem->batch, p->q_strides, br) ||
        !map_of(&p->k_map, p->k, head_dim, p->kv_len, p->kv_heads, problem->batch, p->kv_strides, bc) ||
        !map_of(&p->v_map, p->v, head_dim, p->kv_len, p->kv_heads, problem->batch, p->kv_strides, bc))
        return "the driver makes no tensor map of these arrays";
    return NULL;
}

// Launches a kernel that waits for the launches before by itself.
template <class... P>
const char *launch_early(void (*kernel)(P...), dim3 blocks, int threads, int bytes, void *stream, const P &...p)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &early;
    config.numAttrs = 1;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaGetLastError();
    const cudaError_t status = cudaLaunchKernelEx(&config, kernel, p...);
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

inline const char *hopper_plan(const asc_problem *problem, asc_plan *plan, int br, int bc, int threads)
{
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    if (!(problem->scale > 0))
        return "the maximum is taken before scores are scaled: scale must be above 0";
    return plan_tiles(problem, plan, br, bc, threads);
}

// How both kernels mean their values.
inline void hopper_conventions(asc_kernel &kernel)
{
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.s_unit = ASC_UNIT_RAW;
    kernel.conventions.m_unit = ASC_UNIT_RAW;
    kernel.conventions.acc_s = ASC_ACC_MMA;
    kernel.conventions.acc_u = ASC_ACC_MMA;
    kernel.conventions.p_rounded = ASC_P_INPUT;
    kernel.conventions.l_lanes = 4;
    kernel.conventions.empty_lse_negative = 1;
}

} // namespace hopper
