/* nvcuda::wmma for f16 and bf16 operands: 16x16x16, 32x8x16, 8x32x16. Products are those of tensor cores, bit for bit
   (engine/base/tensor_core.h). */
#ifndef SIMT_MMA_H
#define SIMT_MMA_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "simt_warp.h"

namespace nvcuda
{
namespace wmma
{
struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };
} // namespace wmma
} // namespace nvcuda

namespace simt
{
namespace wmma = nvcuda::wmma;

template <class T> constexpr bool is_half = std::is_same<T, __half>::value;
template <class T> constexpr bool is_bfloat = std::is_same<T, __nv_bfloat16>::value;

/* A matrix as a warp holds it: [rows][cols], B transposed. */
template <class Use, int M, int N, int K, class T> struct matrix_shape {
    static_assert((M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16),
                  "the CPU executor knows the fragments 16x16x16, 32x8x16 and 8x32x16");
    static constexpr bool sum = std::is_same<Use, wmma::accumulator>::value;
    static_assert(is_half<T> || (sum ? std::is_same<T, float>::value : is_bfloat<T>),
                  "the CPU executor knows fragments of __half and __nv_bfloat16, with accumulators of float or __half");
    static constexpr int rows = std::is_same<Use, wmma::matrix_b>::value ? N : M;
    static constexpr int cols = sum ? N : K;
    static constexpr int held = rows * cols / 32; /* by a lane */
    /* CUDA's own number: fragments of __half operands hold every element twice. */
    static constexpr int elements = is_half<T> && !sum ? 16 : held;

    /* The element that a lane holds as its i-th. A 16x16 accumulator lies as in mma.m16n8 (PTX ISA): lane / 4 and
       lane / 4 + 8 are rows, 2 (lane % 4) is the column; the others are made of such 8x8 pieces too. */
    static constexpr int row(int lane, int i)
    {
        return lane / 4 + 8 * (i % held / 2 % (rows / 8));
    }
    static constexpr int col(int lane, int i)
    {
        return lane % 4 * 2 + i % 2 + 8 * (i % held / 2 / (rows / 8));
    }
};
} // namespace simt

namespace nvcuda
{
namespace wmma
{
template <class Use, int M, int N, int K, class T, class Layout = void> class fragment
{
  public:
    using element_type = T;
    using shape = simt::matrix_shape<Use, M, N, K, T>;
    enum { num_elements = shape::elements, num_storage_elements = shape::elements };
    T x[num_elements];
};
} // namespace wmma
} // namespace nvcuda

namespace simt
{
template <class F, class T> struct matrix_arg {
    F *fragment; /* NULL: there is nothing left to load */
    T *memory;
    unsigned stride; /* from row to row of [rows][cols]; 1: from column to column */
    unsigned step;   /* from column to column, or from row to row */
    const char *file;
    int line;
};

/* CUDA asks for one address, of a multiple of 32 bytes, and rows that are a multiple of 16 bytes apart (C++ Programming
   Guide, "Warp Matrix Functions"). */
template <class F, class T> static inline void check_matrix(void *const args[32], uint32_t lanes, const char *what)
{
    const auto *first = static_cast<const matrix_arg<F, T> *>(args[__builtin_ctz(lanes)]);
    const unsigned ldm = first->stride == 1 ? first->step : first->stride;
    if ((uintptr_t)first->memory % 32)
        simt_matrix_report(first->file, first->line, what, "its address is not a multiple of 32 bytes");
    if (ldm * sizeof(T) % 16)
        simt_matrix_report(first->file, first->line, what, "its ldm is not a multiple of 16 bytes");
    bool same = lanes == 0xFFFFFFFFu;
    each_lane<matrix_arg<F, T>>(args, lanes, [&](int, matrix_arg<F, T> *me) {
        same &= me->memory == first->memory && me->stride == first->stride && me->step == first->step;
    });
    if (!same)
        simt_matrix_report(first->file, first->line, what, "the 32 lanes do not name the same matrix");
}

template <class F, class T> static inline void load_elements(int lane, const matrix_arg<F, T> *arg)
{
    using shape = typename F::shape;
    for (int i = 0; i < F::num_elements; i++)
        arg->fragment->x[i] =
            arg->memory[(size_t)shape::row(lane, i) * arg->stride + (size_t)shape::col(lane, i) * arg->step];
}

template <class F, class T> void load_combine(void *const args[32], uint32_t lanes)
{
    using shape = typename F::shape;
    check_matrix<F, T>(args, lanes, "wmma::load_matrix_sync");
    if (SIMT_CHECKS) {
        const auto *first = static_cast<const matrix_arg<F, T> *>(args[__builtin_ctz(lanes)]);
        const bool by_row = first->step == 1; /* else the columns are what lies together */
        const size_t n = by_row ? shape::rows : shape::cols, held = by_row ? shape::cols : shape::rows;
        simt_check_matrix(first->memory, n, held * sizeof(T), (by_row ? first->stride : first->step) * sizeof(T),
                          first->file, first->line);
    }
    each_lane<matrix_arg<F, T>>(args, lanes, [&](int lane, matrix_arg<F, T> *me) {
        if (me->fragment)
            load_elements(lane, me);
    });
}

template <class F, class T> void store_combine(void *const args[32], uint32_t lanes)
{
    check_matrix<F, T>(args, lanes, "wmma::store_matrix_sync");
}

template <class F, class T>
static inline void load(F &fragment, const T *memory, unsigned stride, unsigned step, const char *file, int line)
{
    matrix_arg<F, const T> arg = {&fragment, memory, stride, step, file, line};
    if (simt_early()) {
        load_elements((int)simt_lane(), &arg);
        arg.fragment = nullptr;
    }
    simt_warp_meet(0xFFFFFFFFu, SIMT_FRAGMENT_LOAD, load_combine<F, const T>, &arg, file, line);
}

template <class D, class A, class B, class C> struct mma_arg {
    D *d;
    const A *a;
    const B *b;
    const C *c;
    const char *file;
    int line;
};

template <class D, class A, class B, class C> void mma_combine(void *const args[32], uint32_t lanes)
{
    using arg = mma_arg<D, A, B, C>;
    constexpr int m = A::shape::rows, n = B::shape::rows, k = A::shape::cols;
    constexpr bool half_sum = is_half<typename D::element_type>;
    uint16_t a[m * k] = {}, b[n * k] = {};
    float c[m * n] = {}, d[m * n];
    each_lane<arg>(args, lanes, [&](int lane, arg *me) {
        for (int i = 0; i < A::shape::held; i++)
            a[A::shape::row(lane, i) * k + A::shape::col(lane, i)] = me->a->x[i].__x;
        for (int i = 0; i < B::shape::held; i++)
            b[B::shape::row(lane, i) * k + B::shape::col(lane, i)] = me->b->x[i].__x;
        for (int i = 0; i < C::shape::held; i++)
            c[C::shape::row(lane, i) * n + C::shape::col(lane, i)] = (float)me->c->x[i];
    });
    const arg *first = static_cast<const arg *>(args[__builtin_ctz(lanes)]);
    if (lanes != 0xFFFFFFFFu)
        simt_matrix_report(first->file, first->line, "wmma::mma_sync", "some of the 32 lanes have returned");
    const simt_mma_type type = is_half<typename A::element_type> ? SIMT_MMA_F16 : SIMT_MMA_BF16;
    const simt_mma mma = {type, half_sum, m, n, k, a, b, c, first->file, first->line, false};
    simt_tensor_product(&mma, d);
    each_lane<arg>(args, lanes, [&](int lane, arg *me) {
        for (int i = 0; i < D::shape::held; i++)
            me->d->x[i] = d[D::shape::row(lane, i) * n + D::shape::col(lane, i)];
    });
}
} // namespace simt

namespace nvcuda
{
namespace wmma
{
/* Reads the whole matrix for all lanes once the last of them has come. */
template <int M, int N, int K, class T>
static inline void load_matrix_sync(fragment<matrix_a, M, N, K, T, row_major> &f, const T *p, unsigned ldm, SIMT_SITE)
{
    simt::load(f, p, ldm, 1, simt_file, simt_line);
}
template <int M, int N, int K, class T>
static inline void load_matrix_sync(fragment<matrix_a, M, N, K, T, col_major> &f, const T *p, unsigned ldm, SIMT_SITE)
{
    simt::load(f, p, 1, ldm, simt_file, simt_line);
}
template <int M, int N, int K, class T>
static inline void load_matrix_sync(fragment<matrix_b, M, N, K, T, row_major> &f, const T *p, unsigned ldm, SIMT_SITE)
{
    simt::load(f, p, 1, ldm, simt_file, simt_line);
}
template <int M, int N, int K, class T>
static inline void load_matrix_sync(fragment<matrix_b, M, N, K, T, col_major> &f, const T *p, unsigned ldm, SIMT_SITE)
{
    simt::load(f, p, ldm, 1, simt_file, simt_line);
}
template <int M, int N, int K, class T>
static inline void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *p, unsigned ldm, layout_t layout,
                                    SIMT_SITE)
{
    const bool rows = layout == mem_row_major;
    simt::load(f, p, rows ? ldm : 1, rows ? 1 : ldm, simt_file, simt_line);
}

/* Each lane stores its own elements after all have come: another lane sees them behind a __syncwarp. */
template <int M, int N, int K, class T>
static inline void store_matrix_sync(T *p, const fragment<accumulator, M, N, K, T> &f, unsigned ldm, layout_t layout,
                                     SIMT_SITE)
{
    using F = fragment<accumulator, M, N, K, T>;
    const bool rows = layout == mem_row_major;
    simt::matrix_arg<F, T> arg = {nullptr, p, rows ? ldm : 1, rows ? 1 : ldm, simt_file, simt_line};
    const int lane = (int)simt_lane(), early = simt_early();
    if (!early)
        simt_warp_meet(0xFFFFFFFFu, SIMT_FRAGMENT_STORE, simt::store_combine<F, T>, &arg, simt_file, simt_line);
    for (int i = 0; i < F::num_elements; i++)
        p[(size_t)F::shape::row(lane, i) * arg.stride + (size_t)F::shape::col(lane, i) * arg.step] = f.x[i];
    if (early)
        simt_warp_meet(0xFFFFFFFFu, SIMT_FRAGMENT_STORE, simt::store_combine<F, T>, &arg, simt_file, simt_line);
}

template <class Use, int M, int N, int K, class T, class Layout, class V>
static inline void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, V value)
{
    for (int i = 0; i < f.num_elements; i++)
        f.x[i] = (T)value;
}

template <int M, int N, int K, class AB, class LA, class LB, class TD, class TC>
static inline void mma_sync(fragment<accumulator, M, N, K, TD> &d, const fragment<matrix_a, M, N, K, AB, LA> &a,
                            const fragment<matrix_b, M, N, K, AB, LB> &b, const fragment<accumulator, M, N, K, TC> &c,
                            SIMT_SITE)
{
    using A = fragment<matrix_a, M, N, K, AB, LA>;
    using B = fragment<matrix_b, M, N, K, AB, LB>;
    using C = fragment<accumulator, M, N, K, TC>;
    using D = fragment<accumulator, M, N, K, TD>;
    simt::mma_arg<D, A, B, C> arg = {&d, &a, &b, &c, simt_file, simt_line};
    simt_warp_meet(0xFFFFFFFFu, SIMT_MMA, simt::mma_combine<D, A, B, C>, &arg, simt_file, simt_line);
}
} // namespace wmma
} // namespace nvcuda

#endif
