// fp16_cute: fp16_mma in CuTe. What that one writes out, where an element of a fragment lies, how a tile is swizzled,
// which thread copies what, is a layout here: a type, from which CuTe derives the loops.
//
// A q tile of 64 rows is 4 warps' work, a kv tile has 64 keys, two stages. The arithmetic is fp16_mma's: scores stay as
// the tensor cores give them, the scale goes into the exponential, each lane sums its own columns into l, and the
// weights, rounded, are the A operand of P V as they stand.
//
// To read: a Tensor is a pointer and a layout, a layout maps coordinates to offsets, (row, col) or nested. What a
// thread has of a tile is that tile, partitioned: (atom, atoms down, atoms across). The same partition of an identity
// tensor, whose element at (row, col) is (row, col), tells where each element lies: the mask asks it, and so do the
// probes.
//
// Shared memory in bytes, head_dim 64 / 128:
//     q   [64][D] T       8192   16384
//     k   [2][64][D] T   16384   32768
//     v   [2][64][D] T   16384   32768
//                        40960   81920
//
// Limits: as fp16_mma's, and O leaves in pairs of elements from where the accumulators are. 16 bytes is the alignment
// that its copies need. CUTLASS's headers are wanted: make setup-cute, -I build/cute/cutlass_library/source/include.

#include "../ladder.cuh"
#include "attnscope_cute.h"

// With a name: nvcc's stub cannot tell an unnamed one from cute's own.
namespace rung
{

using namespace cute;

constexpr int BR = 64, BC = 64, THREADS = 128;

template <class T, int D> struct Tiles {
    static constexpr bool half = ladder::is_half<T>;
    using Element = conditional_t<half, half_t, bfloat16_t>;
    using Atom = conditional_t<half, SM80_16x8x16_F32F16F16F32_TN, SM80_16x8x16_F32BF16BF16F32_TN>;
    // Four warps one below the other; a warp's step is 16 x 16, two atoms, so that ldmatrix fetches four matrices.
    using Mma = TiledMMA<MMA_Atom<Atom>, Layout<Shape<_4, _1, _1>>, Tile<_64, _16, _16>>;

    // Eight rows of eight chunks of 16 bytes: chunk c of row r stands at c ^ r. Tiles are made of such pieces.
    using Rows = decltype(composition(Swizzle<3, 3, 3>{}, Layout<Shape<_8, _64>, Stride<_64, _1>>{}));
    using Stored = decltype(tile_to_shape(Rows{}, Shape<_64, Int<D>>{}));
    // The same memory as (column, row): V is wanted by columns.
    using Plain = Layout<Shape<Int<D>, _64>, Stride<_64, _1>>;
    using Transposed = decltype(composition(Stored{}, Plain{}));

    // Eight threads copy 64 elements of a row, 16 bytes each; what lies outside becomes zero.
    using Fetch = decltype(make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, Element>{},
                                           Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{}));
    using Load = Copy_Atom<SM75_U32x4_LDSM_N, Element>;
    using LoadTransposed = Copy_Atom<SM75_U16x8_LDSM_T, Element>;
    static constexpr size_t shared_bytes = 5 * 64 * D * sizeof(T);
};

// Begins to copy tile `tile` of a head of `rows` rows.
template <class Tiles, class Head, class To>
__device__ __forceinline__ void fetch(const Head &head, int tile, int rows, To &&to)
{
    const auto mine = typename Tiles::Fetch{}.get_slice(threadIdx.x);
    const auto size_of = product_each(shape(to));
    const auto from = mine.partition_S(local_tile(head, size_of, make_coord(tile, 0)));
    const auto at = mine.partition_S(make_identity_tensor(size_of));
    auto into = mine.partition_D(to);
    CUTE_UNROLL
    for (int i = 0; i < size<1>(into); i++) {
        const bool there = tile * 64 + static_cast<int>(get<0>(at(0, i, 0))) < rows;
        copy(typename Tiles::Fetch{}.with(there), from(_, i, _), into(_, i, _));
    }
}

// c += a b, b from shared memory.
template <class Load, class C, class A, class B, class Mma>
__device__ __forceinline__ void multiply(C &c, const A &a, const B &b, const Mma &mma)
{
    const auto load = make_tiled_copy_B(Load{}, mma);
    const auto mine = load.get_slice(threadIdx.x);
    const auto from = mine.partition_S(b);
    auto registers =
        mma.get_slice(threadIdx.x).partition_fragment_B(make_tensor(b.data(), make_layout(product_each(shape(b)))));
    auto into = mine.retile_D(registers);
    CUTE_UNROLL
    for (int k = 0; k < size<2>(a); k++) {
        copy(load, from(_, _, k), into(_, _, k));
        gemm(mma, a(_, _, k), registers(_, _, k), c);
    }
}

// Accumulators ((2, 2), atoms down, atoms across) as (rows, columns) of the thread.
template <class C> __device__ __forceinline__ auto rows_of(C &c)
{
    const auto l = c.layout();
    return make_tensor(c.data(),
                       make_layout(make_layout(get<0, 1>(l), get<1>(l)), make_layout(get<0, 0>(l), get<2>(l))));
}

// The same, rounded, as an operand A: two atoms side by side are its 16 columns.
template <class Element, class C> __device__ __forceinline__ auto round_to(const C &c)
{
    auto out = make_tensor<Element>(c.layout());
    CUTE_UNROLL
    for (int i = 0; i < size(c); i++)
        out(i) = Element(c(i));
    return out;
}
template <class P> __device__ __forceinline__ auto as_operand(P &p)
{
    const auto l = logical_divide(p.layout(), Shape<Underscore, Underscore, _2>{});
    return make_tensor(p.data(), make_layout(make_layout(get<0>(l), get<2, 0>(l)), get<1>(l), get<2, 1>(l)));
}

// Over the four lanes that have a row.
template <class Op> __device__ __forceinline__ float over_quad(float x, Op op)
{
    x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

template <class T, int D> __global__ void __launch_bounds__(THREADS) fp16_cute(ladder::Params<T> p)
{
    using Tiles = Tiles<T, D>;
    using Element = typename Tiles::Element;
    using Stored = typename Tiles::Stored;
    extern __shared__ __align__(128) unsigned char shared[];
    const auto tile_at = [&](int i) {
        return make_tensor(make_smem_ptr(reinterpret_cast<Element *>(shared) + i * 64 * D), Stored{});
    };
    const int q_tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const auto head_of = [&](const T *x, const asc_strides &s, int h, int rows) {
        const T *begin = x + batch * s.batch + h * s.head;
        return make_tensor(make_gmem_ptr(reinterpret_cast<const Element *>(begin)), make_shape(rows, Int<D>{}),
                           make_stride(s.row, _1{}));
    };
    const auto k = head_of(p.k, p.kv_strides, head / p.group, p.kv_len);
    const auto v = head_of(p.v, p.kv_strides, head / p.group, p.kv_len);
    const auto sq = tile_at(0);
    ASC_AT(batch, head, q_tile);

    const int keys = p.keys(q_tile, BR);
    fetch<Tiles>(head_of(p.q, p.q_strides, head, p.q_len), q_tile, p.q_len, sq);
    cp_async_fence();
    if (keys > 0) {
        fetch<Tiles>(k, 0, p.kv_len, tile_at(1));
        fetch<Tiles>(v, 0, p.kv_len, tile_at(3));
    }
    cp_async_fence();
    cp_async_wait<1>();
    __syncthreads();
    ASC_CUTE_SHARED(q, 0, sq);

    const typename Tiles::Mma mma;
    const int thread = threadIdx.x; // signed, and so are all coordinates
    const auto mine = mma.get_slice(thread);
    const auto load_q = make_tiled_copy_A(typename Tiles::Load{}, mma);
    auto a_q = mine.partition_fragment_A(sq);
    auto a_q_loaded = load_q.get_slice(thread).retile_D(a_q);
    copy(load_q, load_q.get_slice(thread).partition_S(sq), a_q_loaded);

    auto u = partition_fragment_C(mma, Shape<Int<BR>, Int<D>>{});
    clear(u);
    auto u_rows = rows_of(u);
    constexpr int ROWS = size<0>(decltype(u_rows.layout()){}); // of a thread
    float m[ROWS], l[ROWS], alpha[ROWS];
    for (int r = 0; r < ROWS; r++)
        m[r] = -INFINITY, l[r] = 0.0f;
    const auto at = mine.partition_C(make_identity_tensor(Shape<Int<BR>, Int<BC>>{}));

    for (int kt = 0; kt * BC < keys; kt++) {
        cp_async_wait<0>();
        __syncthreads(); // the tile is there for all, and all have read the one before
        if ((kt + 1) * BC < keys) {
            fetch<Tiles>(k, kt + 1, p.kv_len, tile_at(1 + (kt + 1) % 2));
            fetch<Tiles>(v, kt + 1, p.kv_len, tile_at(3 + (kt + 1) % 2));
        }
        cp_async_fence();
        const auto sk = tile_at(1 + kt % 2), sv = tile_at(3 + kt % 2);
        ASC_CUTE_SHARED(k, kt, sk);
        ASC_CUTE_SHARED(v, kt, sv);

        auto s = partition_fragment_C(mma, Shape<Int<BR>, Int<BC>>{});
        clear(s);
        multiply<typename Tiles::Load>(s, a_q, sk, mma);
        CUTE_UNROLL
        for (int i = 0; i < size(s); i++)
            if (kt * BC + get<1>(at(i)) >= p.seen(q_tile * BR + get<0>(at(i)))) // below 0 where nothing is seen
                s(i) = -INFINITY;
        ASC_CUTE_C(s, kt, mine, BR, BC, s);

        auto s_rows = rows_of(s);
        CUTE_UNROLL
        for (int r = 0; r < ROWS; r++) {
            float largest = m[r];
            CUTE_UNROLL
            for (int c = 0; c < size<1>(s_rows); c++)
                largest = fmaxf(largest, s_rows(r, c));
            largest = over_quad(largest, [](float x, float y) { return fmaxf(x, y); });
            const float base = largest == -INFINITY ? 0.0f : largest; // no key yet: -inf - -inf would be NaN
            alpha[r] = ladder::exp2_fast((m[r] - base) * p.scale_log2);
            m[r] = largest;
            l[r] *= alpha[r];
            CUTE_UNROLL
            for (int c = 0; c < size<1>(s_rows); c++) {
                s_rows(r, c) = ladder::exp2_fast(fmaf(s_rows(r, c), p.scale_log2, -base * p.scale_log2));
                l[r] += s_rows(r, c);
            }
            CUTE_UNROLL
            for (int c = 0; c < size<1>(u_rows); c++)
                u_rows(r, c) *= alpha[r];
        }
        ASC_CUTE_ROWS(m, kt, mine, BR, BC, m);
        ASC_CUTE_ROWS(alpha, kt, mine, BR, BC, alpha);
        ASC_CUTE_LANES(l, kt, mine, BR, BC, l);
        ASC_CUTE_C(p, kt, mine, BR, BC, s);

        auto rounded = round_to<Element>(s);
        multiply<typename Tiles::LoadTransposed>(u, as_operand(rounded),
                                                 make_tensor(sv.data(), typename Tiles::Transposed{}), mma);
        ASC_CUTE_C(u, kt, mine, BR, D, u);
    }

    const auto at_u = mine.partition_C(make_identity_tensor(Shape<Int<BR>, Int<D>>{}));
    const auto at_rows = rows_of(at_u);
    T *o = p.o + batch * p.q_strides.batch + head * p.q_strides.head;
    CUTE_UNROLL
    for (int r = 0; r < ROWS; r++) {
        const int row = q_tile * BR + get<0>(at_rows(r, 0));
        l[r] = over_quad(l[r], [](float x, float y) { return x + y; });
        const float inverse = l[r] > 0.0f ? 1.0f / l[r] : 0.0f; // a row without any key gives zero
        if (row >= p.q_len)
            continue;
        if (get<1>(at_rows(r, 0)) == 0)
            p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.q_len + row] =
                l[r] > 0.0f ? m[r] * p.scale + __logf(l[r]) : -INFINITY;
        CUTE_UNROLL
        for (int c = 0; c < size<1>(u_rows); c += 2)
            *reinterpret_cast<uint32_t *>(o + row * p.q_strides.row + get<1>(at_rows(r, c))) =
                ladder::two<T>(u_rows(r, c) * inverse, u_rows(r, c + 1) * inverse);
    }
}

const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->error_limit = problem->dtype == ASC_F16 ? 1e-3f : 0.0f;
    if (!(problem->scale > 0))
        return "the maximum is taken before scores are scaled: scale must be above 0";
    return ladder::plan_tiles(problem, plan, BR, BC, THREADS);
}

const char *launch(const asc_problem *problem, void *stream)
{
    return ladder::for_instance(problem, [&](auto type, auto head_dim) -> const char * {
        using T = decltype(type);
        constexpr int D = head_dim;
        const auto p = ladder::params_of<ladder::Params<T>>(problem);
        if (!p.aligned)
            return "q, k, v and o must be aligned to 16 bytes";
        return ASC_LAUNCH((fp16_cute<T, D>), ladder::grid_of(problem, BR), THREADS, (Tiles<T, D>::shared_bytes), stream,
                          p);
    });
}

} // namespace rung

ASC_KERNEL(fp16_cute)
{
    kernel.plan = rung::plan;
    kernel.launch = rung::launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD);
    kernel.conventions.acc_s = ASC_ACC_MMA;
    kernel.conventions.acc_u = ASC_ACC_MMA;
    kernel.conventions.p_rounded = ASC_P_INPUT;
    kernel.conventions.l_lanes = 4;
    kernel.conventions.empty_lse_negative = 1;
}
