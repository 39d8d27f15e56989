// Inline PTX, each instruction against a plain loop, and the mistakes that a GPU would not have shown.
#include "check.h"
#include "ptx_wrappers.h"
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <string.h>

// Small whole numbers: every product and sum is exact, so any order gives the same.
__device__ float a_of(int row, int k)
{
    return (float)((row * 5 + k * 3) % 7 - 3);
}
__device__ float b_of(int k, int col)
{
    return (float)((k * 11 + col * 2) % 5 - 2);
}
__device__ float c_of(int row, int col)
{
    return (float)(row - 2 * col);
}
__device__ float d_of(int row, int col, int depth)
{
    float sum = c_of(row, col);
    for (int k = 0; k < depth; k++)
        sum += a_of(row, k) * b_of(k, col);
    return sum;
}

template <class T> __device__ uint32_t two(float low, float high)
{
    T x[2] = {T(low), T(high)};
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

// A and B as PTX ISA's figures of the fragments show them: g = lane / 4, t = lane % 4.
template <class T> __device__ void load_operands(uint32_t a[4], uint32_t b[2], int g, int t)
{
    for (int i = 0; i < 4; i++) {
        const int row = g + i % 2 * 8, k = 2 * t + i / 2 * 8;
        a[i] = two<T>(a_of(row, k), a_of(row, k + 1));
    }
    for (int i = 0; i < 2; i++)
        b[i] = two<T>(b_of(2 * t + 8 * i, g), b_of(2 * t + 8 * i + 1, g));
}

__device__ void check_sums(const float d[4], int g, int t, int depth)
{
    for (int i = 0; i < 4; i++)
        CHECK(d[i], d_of(g + i / 2 * 8, 2 * t + i % 2, depth));
}

__global__ void products_f16()
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t a[4], b[2];
    load_operands<__half>(a, b, g, t);
    float c[4], d[4];
    for (int i = 0; i < 4; i++)
        c[i] = c_of(g + i / 2 * 8, 2 * t + i % 2);
    Mma<__half>::fma(d, a, b, c);
    check_sums(d, g, t, 16);

    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    check_sums(c, g, t, 8);

    uint32_t sum[2], sum8[2];
    for (int i = 0; i < 2; i++)
        sum8[i] = sum[i] = two<__half>(c_of(g + 8 * i, 2 * t), c_of(g + 8 * i, 2 * t + 1));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                 : "+r"(sum[0]), "+r"(sum[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                 : "+r"(sum8[0]), "+r"(sum8[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    for (int i = 0; i < 2; i++) {
        CHECK(sum[i], two<__half>(d_of(g + 8 * i, 2 * t, 16), d_of(g + 8 * i, 2 * t + 1, 16)));
        CHECK(sum8[i], two<__half>(d_of(g + 8 * i, 2 * t, 8), d_of(g + 8 * i, 2 * t + 1, 8)));
    }
}

__global__ void products_bf16()
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t a[4], b[2];
    load_operands<__nv_bfloat16>(a, b, g, t);
    float c[4], d[4];
    for (int i = 0; i < 4; i++)
        c[i] = d[i] = c_of(g + i / 2 * 8, 2 * t + i % 2);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    check_sums(d, g, t, 16);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    check_sums(c, g, t, 8);
}

template <class T> __device__ uint32_t four(float x0, float x1, float x2, float x3)
{
    T x[4] = {T(x0), T(x1), T(x2), T(x3)};
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

// Four codes in a register: the figures of m16n8k32.
template <class T> __device__ void load_codes(uint32_t a[4], uint32_t b[2], int g, int t)
{
    for (int i = 0; i < 4; i++) {
        const int row = g + i % 2 * 8, k = 4 * t + i / 2 * 16;
        a[i] = four<T>(a_of(row, k), a_of(row, k + 1), a_of(row, k + 2), a_of(row, k + 3));
    }
    for (int i = 0; i < 2; i++) {
        const int k = 4 * t + 16 * i;
        b[i] = four<T>(b_of(k, g), b_of(k + 1, g), b_of(k + 2, g), b_of(k + 3, g));
    }
}

__global__ void products_fp8()
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t a[4], b[2];
    float c[4], d[4];
    for (int i = 0; i < 4; i++)
        c[i] = d[i] = c_of(g + i / 2 * 8, 2 * t + i % 2);
    load_codes<__nv_fp8_e4m3>(a, b, g, t);
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    check_sums(c, g, t, 32);
    load_codes<__nv_fp8_e5m2>(a, b, g, t);
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    check_sums(d, g, t, 32);
}

// 1 + 32 2^-18: sm_90 adds the products up by themselves, then to the accumulator in f32; sm_89 has 13 fraction bits
// for all of it.
__global__ void cuts_fp8(float *sum)
{
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    const uint32_t small = four<__nv_fp8_e4m3>(0x1p-9f, 0x1p-9f, 0x1p-9f, 0x1p-9f);
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(small));
    *sum = d[0];
}

// 1 + 2^-24 + 2^-24: an H100 adds 16 products at once, with 25 fraction bits; the chunks of an A100 have 8, and each
// loses its own.
__global__ void cuts(float *sum)
{
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    const uint32_t small = two<__half>(0x1p-12f, 0.0f);
    const uint32_t first = threadIdx.x % 4 == 0 ? small : 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(first), "r"(first));
    *sum = d[0];
}

// Element (row, col) of matrix i is 64 i + 8 row + col; the rows stand 48 bytes apart, in no order of matrices.
template <int N> __device__ void fill_matrices(uint16_t *m)
{
    for (int e = threadIdx.x; e < 64 * N; e += 32)
        m[(e / 8 * 5 % (8 * N)) * 24 + e % 8] = (uint16_t)e;
    __syncwarp();
}
template <int N> __device__ uint32_t row_address(const uint16_t *m)
{
    const int row = threadIdx.x % 32;
    return row < 8 * N ? shared_address(m + row * 5 % (8 * N) * 24) : 3; // what the others give is not read
}
__device__ uint32_t want(int i, bool transposed)
{
    const int major = threadIdx.x / 4, minor = threadIdx.x % 4 * 2;
    const int low = 64 * i + (transposed ? 8 * minor + major : 8 * major + minor);
    return (uint32_t)low | (uint32_t)(low + (transposed ? 8 : 1)) << 16;
}

__global__ void matrices()
{
    __shared__ __align__(16) uint16_t m[3][32 * 24];
    fill_matrices<1>(m[0]);
    fill_matrices<2>(m[1]);
    fill_matrices<4>(m[2]);
    const uint32_t one = row_address<1>(m[0]), two = row_address<2>(m[1]), four = row_address<4>(m[2]);
    uint32_t r[4], s[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(one) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 {%0}, [%1];" : "=r"(s[0]) : "r"(one));
    CHECK(r[0], want(0, false));
    CHECK(s[0], want(0, true));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(two));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(s[0]), "=r"(s[1]) : "r"(two));
    for (int i = 0; i < 2; i++) {
        CHECK(r[i], want(i, false));
        CHECK(s[i], want(i, true));
    }
    LDMATRIX_X4(r[0], r[1], r[2], r[3], four);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4 + 0];"
                 : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3])
                 : "r"(four));
    for (int i = 0; i < 4; i++) {
        CHECK(r[i], want(i, false));
        CHECK(s[i], want(i, true));
    }
    CHECK(shared_address_ptx(m[1]), shared_address(m[1]));
    CHECK(shared_address(m[1]) - shared_address(m[0]), (uint32_t)sizeof m[0]);
    CHECK((const void *)__cvta_shared_to_generic(shared_address(m[2])) == m[2], true);
}

// Every copy happens at the wait for its group, not before.
__global__ void copies(const uint4 *in)
{
    __shared__ uint4 to[5][64];
    const int t = threadIdx.x;
    for (int i = 0; i < 5; i++)
        to[i][t] = make_uint4(7, 7, 7, 7);
    CP_ASYNC_CG(shared_address(&to[0][t]), &in[t], 16);
    CP_ASYNC_COMMIT_GROUP();
    cp_async_zfill<16>(&to[1][t], &in[t], t % 2);
    cp_async_if<16>(&to[2][t], &in[t], t % 2);
    zero_unless(&to[4][t], t % 2);
    CP_ASYNC_COMMIT_GROUP();
    asm volatile("cp.async.ca.shared.global [%0+8], [%1+8], 8;" ::"r"(shared_address(&to[3][t])), "l"(in + t));
    CHECK(to[4][t].w, t % 2 ? 7u : 0u);
    CP_ASYNC_WAIT_GROUP(2);
    CHECK(to[0][t].x, 7u);
    cp_async_wait<1>();
    CHECK(to[0][t].x == (unsigned)t && to[0][t].w == (unsigned)t + 3000, true);
    CHECK(to[1][t].y, 7u);
    cp_async_wait<0>();
    CHECK(to[1][t].y, t % 2 ? (unsigned)t + 1000 : 0u);
    CHECK(to[2][t].y, t % 2 ? (unsigned)t + 1000 : 7u);
    CHECK(to[3][t].z, 7u);
    asm volatile("cp.async.wait_all;" ::: "memory"); // commits what is left
    CHECK(to[3][t].y == 7 && to[3][t].z == (unsigned)t + 2000 && to[3][t].w == (unsigned)t + 3000, true);
}

#define OF_F32(opcode, x)                                                                                              \
    [](float in) {                                                                                                     \
        float out;                                                                                                     \
        asm(opcode " %0, %1;" : "=f"(out) : "f"(in));                                                                  \
        return out;                                                                                                    \
    }(x)

__global__ void functions()
{
    CHECK(OF_F32("ex2.approx.f32", 3.5f), exp2f(3.5f));
    CHECK(OF_F32("ex2.approx.f32", -127.0f), 0x1p-127f);
    CHECK(exp2_ftz(-127.0f), 0.0f);
    CHECK(exp2_ftz(-INFINITY), 0.0f);
    CHECK(exp2_ftz(5.0f), 32.0f);
    CHECK(OF_F32("lg2.approx.ftz.f32", 8.0f), 3.0f);
    CHECK(OF_F32("rcp.approx.ftz.f32", 8.0f), 0.125f);
    CHECK(OF_F32("rsqrt.approx.f32", 16.0f), 0.25f);
    CHECK(OF_F32("tanh.approx.f32", 0.5f), tanhf(0.5f));
    uint32_t x;
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(x) : "r"(two<__half>(3.0f, -2.0f)));
    CHECK(x, two<__half>(8.0f, 0.25f));
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(x) : "r"(two<__half>(0.0f, 20.0f)));
    CHECK(x, two<__half>(0.0f, 1.0f));
    unsigned short h;
    asm("ex2.approx.f16 %0, %1;" : "=h"(h) : "h"((unsigned short)0x3C00));
    CHECK(h, 0x4000);
    float y;
    asm("fma.rn.f32 %0, %1, %1, %2; add.f32 %0, %0, %2; sub.f32 %0, %0, 0f3F800000; mul.f32 %0, %0, %1;"
        : "=&f"(y)
        : "f"(3.0f), "f"(4.0f));
    CHECK(y, 48.0f);
    asm("max.f32 %0, %1, %2; min.f32 %0, %0, 0f40000000;" : "=&f"(y) : "f"(NAN), "f"(5.0f));
    CHECK(y, 2.0f);
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(0x1p-100f), "f"(0x1p-40f));
    CHECK(y, 0.0f);
    asm("mul.f32 %0, %1, %2;" : "=f"(y) : "f"(0x1p-100f), "f"(0x1p-40f));
    CHECK(y, 0x1p-140f);
}

// As the __shfl_*_sync() of C++, whose arguments nvcc turns into these bounds.
__global__ void shuffles()
{
    __shared__ uint32_t cell;
    const uint32_t x = threadIdx.x * 3, lane = threadIdx.x % 32;
    uint32_t y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(5));
    CHECK(y, __shfl_xor_sync(~0u, x, 5));
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, -1;" : "=r"(y) : "r"(x), "r"(lane * 7));
    CHECK(y, __shfl_sync(~0u, x, lane * 7));
    asm volatile("shfl.sync.up.b32 %0, %1, 3, 0, -1;" : "=r"(y) : "r"(x));
    CHECK(y, __shfl_up_sync(~0u, x, 3));
    asm volatile("shfl.sync.down.b32 %0, %1, 3, %2, -1;" : "=r"(y) : "r"(x), "n"((32 - 8) << 8 | 31));
    CHECK(y, __shfl_down_sync(~0u, x, 3, 8));
    if (threadIdx.x == 0)
        cell = 9;
    asm volatile("bar.sync 0;" ::: "memory");
    CHECK(cell, 9u);
    asm volatile("bar.warp.sync 0xffffffff;");
    asm volatile("barrier.sync.aligned 0;" ::: "memory");
}

__global__ void conversions()
{
    // Halfway cases go to even.
    const float x = 1.0f + 0x1p-11f, y = -(1.0f + 3 * 0x1p-11f);
    const __half2 h = pack_half2(x, y);
    CHECK((float)h.x, 1.0f);
    CHECK((float)h.y, -(1.0f + 2 * 0x1p-10f));
    uint32_t b, n;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(1.0f + 0x1p-8f), "f"(-2.5f));
    CHECK(b, two<__nv_bfloat16>(-2.5f, 1.0f));
    unsigned short s;
    float f;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(__uint_as_float(0xFFF57FF5)), "f"(__uint_as_float(0x7F800001)));
    CHECK(b, 0x7FFF7FFFu); // NaNs
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(s) : "f"(65504.0f));
    CHECK(s, 0x7BFF);
    asm("{ cvt.f32.f16 %0, %1; }" : "=f"(f) : "h"(s));
    CHECK(f, 65504.0f);
    asm("cvt.rn.bf16.f32 %0, %2;\n\tcvt.f32.bf16 %1, %0;" : "=&h"(s), "=f"(f) : "f"(3.0f));
    CHECK(s, 0x4040);
    CHECK(f, 3.0f);
    // The largest E4M3 and E5M2 numbers, 1 and its code.
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(s) : "f"(1e6f), "f"(1.0f));
    CHECK(s, 0x7E38);
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(n) : "h"(s));
    CHECK(n, two<__half>(1.0f, 448.0f));
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(s) : "r"(n));
    CHECK(s, 0x7E38);
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(s) : "f"(-1e6f), "f"(1.0f));
    CHECK(s, 0xFB3C);
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(n) : "h"(s));
    CHECK(n, two<__half>(1.0f, -57344.0f));
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(s) : "r"(n));
    CHECK(s, 0xFB3C);
    int i;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(-2.5f));
    CHECK(i, -2);
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(i) : "f"(-2.75f));
    CHECK(i, -2);
    asm("cvt.rn.f32.s32 %0, %1;" : "=f"(f) : "r"(-7));
    CHECK(f, -7.0f);
    asm("cvt.rn.f32.u32 %0, %1;" : "=f"(f) : "r"(0x80000000u));
    CHECK(f, 0x1p31f);
}

__global__ void words(uint32_t *memory)
{
    __shared__ alignas(16) uint32_t cell[8];
    const uint32_t at = shared_address(cell);
    uint32_t x = 0, y = 0, z = 0, w = 0;
    unsigned short low, high;
    uint64_t wide;
    if (threadIdx.x == 0)
        asm volatile(R"(
            st.shared.v4.b32 [%0], {%1, %2, %3, %4};   // four at once
            st.shared.u32 [%0 + 16], %4; /* and one */
        )" ::"r"(at),
                     "r"(1), "r"(2), "r"(3), "r"(4)
                     : "memory");
    else
        asm volatile("" ::: "memory");
    __syncwarp();
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2+8];" : "=r"(x), "=r"(y) : "r"(at));
    CHECK(x * 10 + y, 34u);
    asm volatile("ld.shared.b32 %0, [%1+%2];" : "=r"(x) : "r"(at), "n"(16));
    CHECK(x, 4u);
    if (threadIdx.x == 1)
        asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, 0x2A};" ::"l"(memory), "r"(x) : "memory");
    __syncwarp();
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "l"(memory));
    CHECK(x + y + z + w, 54u);
    asm volatile("ld.global.u32 %0, [%1+-4];" : "=r"(x) : "l"(memory + 4));
    CHECK(x, 42u);

    asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(0xBEEF1234u));
    CHECK(low, 0x1234);
    CHECK(high, 0xBEEF);
    asm("mov.b32 %0, {%1, %2};" : "=r"(x) : "h"(high), "h"(low));
    CHECK(x, 0x1234BEEFu);
    float f;
    asm("mov.b32 %0, 0f3FC00000;" : "=f"(f));
    CHECK(f, 1.5f);
    asm("mov.u32 %0, %%laneid;" : "=r"(x));
    CHECK(x, threadIdx.x % 32);
    asm("cvt.u64.u32 %0, %1;" : "=l"(wide) : "r"(~0u));
    CHECK(wide == 0xFFFFFFFFull, true);
    // The bits of a where c is set, else those of b; bytes 5 0 7 and the sign of byte 3.
    asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(x) : "r"(0xFF00FF00u), "r"(0x12345678u), "r"(0xCAFEBABEu));
    CHECK(x, 0x12FE56BEu);
    asm("prmt.b32 %0, %1, %2, 0xB705;" : "=r"(x) : "r"(0x80112233u), "r"(0x44556677u));
    CHECK(x, 0xFF443366u);
    asm("and.b32 %0, %1, %2; or.b32 %0, %0, 1; xor.b32 %0, %0, %1;" : "+r"(x) : "r"(12), "r"(10));
    CHECK(x, 5u);
    asm("{ .reg .pred p, q; .reg .b32 t; mov.b32 t, 1; setp.lt.s32 p, %1, 0; setp.lt.u32 q, %1, 1; @p mov.b32 %0, t;"
        " @q mov.b32 %0, 9; }"
        : "+r"(x)
        : "r"(-3));
    CHECK(x, 1u);
}

__global__ void misaligned()
{
    __shared__ __align__(16) uint16_t m[32 * 8];
    uint32_t r[4];
    const uint32_t row = shared_address(m + threadIdx.x * 8) + (threadIdx.x == 9 ? 2 : 0);
    LDMATRIX_X4(r[0], r[1], r[2], r[3], row); // at: misaligned
}

__global__ void outside()
{
    extern __shared__ __align__(16) uint16_t dynamic[];
    uint32_t r[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" // at: outside
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(dynamic + threadIdx.x * 8)));
}

__global__ void generic()
{
    __shared__ uint32_t cell;
    uint32_t x;
    // Half of a generic address is no shared one.
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"((uint32_t)(uintptr_t)&cell)); // at: generic
    cell = x;
}

// An array that a kernel has no room for begins at null: its parts may be converted, not used.
__global__ void null_part()
{
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" // at: null-part
                 : "=r"(x)
                 : "r"(shared_address_ptx(reinterpret_cast<const void *>(0x4000))));
    CHECK(x, 0u);
}

__global__ void not_shared(const void *global)
{
    (void)shared_address_ptx(global);
}

__global__ void lanes()
{
    if (threadIdx.x == 7)
        return;
    float d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " // at: lanes
                 "{%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(0));
}

__global__ void copy_to_odd(const unsigned char *from)
{
    __shared__ __align__(16) unsigned char to[64];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to + 8)), "l"(from)); // at: copy-to
}

__global__ void copy_little(const unsigned char *from)
{
    __shared__ __align__(16) unsigned char to[64];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)), "l"(from)); // at: copy-little
}

#define LAUNCH(kernel, grid, block, shared, ...)                                                                       \
    do {                                                                                                               \
        if (simt_launch_kernel(#kernel, kernel, grid, block, shared, ##__VA_ARGS__))                                   \
            failures++, printf("%s: %s\n", #kernel, simt_error());                                                     \
    } while (0)

extern "C" int simt_case(const char *name)
{
    static uint4 in[64], memory;
    float sum = 0;
    for (unsigned i = 0; i < 64; i++)
        in[i] = make_uint4(i, i + 1000, i + 2000, i + 3000);
    if (!strcmp(name, "all")) {
        LAUNCH(products_f16, 3, 64, 0);
        LAUNCH(products_bf16, 1, 32, 0);
        LAUNCH(products_fp8, 1, 64, 0);
        LAUNCH(matrices, 2, 32, 0);
        LAUNCH(copies, 5, 64, 0, in);
        LAUNCH(functions, 1, 1, 0);
        LAUNCH(shuffles, 2, 96, 0);
        LAUNCH(conversions, 1, 1, 0);
        LAUNCH(words, 1, 32, 0, &memory.x);
    } else if (!strcmp(name, "cuts")) {
        LAUNCH(cuts, 1, 32, 0, &sum);
        printf("sum 1 + %g\n", (double)(sum - 1.0f));
    } else if (!strcmp(name, "cuts-fp8")) {
        LAUNCH(cuts_fp8, 1, 32, 0, &sum);
        printf("sum 1 + %g\n", (double)(sum - 1.0f));
    } else if (!strcmp(name, "misaligned")) {
        LAUNCH(misaligned, 1, 32, 0);
    } else if (!strcmp(name, "outside")) {
        LAUNCH(outside, 1, 32, 15 * 16);
    } else if (!strcmp(name, "generic")) {
        LAUNCH(generic, 1, 1, 0);
    } else if (!strcmp(name, "null-part")) {
        LAUNCH(null_part, 1, 1, 64);
    } else if (!strcmp(name, "not-shared")) {
        LAUNCH(not_shared, 1, 1, 0, in);
    } else if (!strcmp(name, "lanes")) {
        LAUNCH(lanes, 1, 32, 0);
    } else if (!strcmp(name, "copy-to")) {
        LAUNCH(copy_to_odd, 1, 1, 0, (const unsigned char *)in);
    } else if (!strcmp(name, "copy-little")) {
        LAUNCH(copy_little, 1, 1, 0, (const unsigned char *)in);
    } else {
        return -1;
    }
    return failures;
}
