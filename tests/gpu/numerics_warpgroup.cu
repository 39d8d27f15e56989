/* wgmma: one warpgroup per block and tile of 64 x 8. Needs sm_90a. */
#include "tests/gpu/numerics_cuda.h"

/* A row of an instruction has 32 bytes whatever the type: 16 f16 or 32 e4m3. Shared memory without swizzling, K-major:
   core matrices of 8 rows x 16 bytes, 128 bytes each, lie one after the other (PTX ISA, "Shared Memory Matrix Layout",
   canonical layout ((8,n),2):((1,SBO),LBO) in units of 16 bytes). The two of a row are LBO apart, groups of 8 rows SBO.
 */
enum { ROWS = 64, COLUMNS = 8, ROW_BYTES = 32, LBO = 128, SBO = 256 };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ static int core_offset(int row, int byte)
{
    return row / 8 * SBO + byte / 16 * LBO + row % 8 * 16 + byte % 16;
}

/* PTX ISA, "Matrix-descriptor": bits 0-13 address, 16-29 LBO, 32-45 SBO, each without its last 4 bits; no swizzling and
   no base offset. */
__device__ static uint64_t descriptor(const void *shared)
{
    const uint64_t address = (uint64_t)__cvta_generic_to_shared(shared);
    return (address & 0x3FFFF) >> 4 | (uint64_t)(LBO >> 4) << 16 | (uint64_t)(SBO >> 4) << 32;
}

/* Two scales of one follow the predicate; f16 and bf16 also have two transpositions, none. */
#define WGMMA_WIDE(text, end)                                                                                          \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0;\n"                                                              \
                 "wgmma.mma_async.sync.aligned." text " {%0,%1,%2,%3}, %4, %5, p, " end ";}\n"                         \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : "l"(left), "l"(right), "r"(accumulate))
#define WGMMA_HALF(text, end)                                                                                          \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\n"                                                              \
                 "wgmma.mma_async.sync.aligned." text " {%0,%1}, %2, %3, p, " end ";}\n"                               \
                 : "+r"(half[0]), "+r"(half[1])                                                                        \
                 : "l"(left), "l"(right), "r"(accumulate))

template <int INSTRUCTION>
__device__ static void multiply(float d[4], uint32_t half[2], const uint32_t a[4], uint64_t left, uint64_t right,
                                int accumulate)
{
    /* Accumulators are operands of both, so that no other use of them moves in between. */
    asm volatile("wgmma.fence.sync.aligned;\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+r"(half[0]), "+r"(half[1])::"memory");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_F16)
        WGMMA_WIDE("m64n8k16.f32.f16.f16", "1, 1, 0, 0");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_BF16)
        WGMMA_WIDE("m64n8k16.f32.bf16.bf16", "1, 1, 0, 0");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_E4M3 || INSTRUCTION == VECTOR_WGMMA_E4M3_PROMOTED)
        WGMMA_WIDE("m64n8k32.f32.e4m3.e4m3", "1, 1");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_E5M2)
        WGMMA_WIDE("m64n8k32.f32.e5m2.e5m2", "1, 1");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_F16_F16)
        WGMMA_HALF("m64n8k16.f16.f16.f16", "1, 1, 0, 0");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_E4M3_F16)
        WGMMA_HALF("m64n8k32.f16.e4m3.e4m3", "1, 1");
    if constexpr (INSTRUCTION == VECTOR_WGMMA_F16_A)
        asm volatile(
            "{.reg .pred p; setp.ne.b32 p, %9, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, 1, 1, 0;}\n"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right), "r"(accumulate));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+r"(half[0]), "+r"(half[1])::"memory");
}

#endif

/* Accumulators lie as in mma.sync.m16n8k16, warp w of the four holding rows 16 w to 16 w + 15 (PTX ISA, "Register
   Fragments" of wgmma); so does A in registers. */
template <int INSTRUCTION> __global__ void __launch_bounds__(128) wgmma(product_arguments p)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr bool HALF = INSTRUCTION == VECTOR_WGMMA_F16_F16 || INSTRUCTION == VECTOR_WGMMA_E4M3_F16;
    constexpr bool PROMOTED = INSTRUCTION == VECTOR_WGMMA_E4M3_PROMOTED;
    __shared__ __align__(128) unsigned char left[ROWS * ROW_BYTES], right[COLUMNS * ROW_BYTES];
    const int thread = threadIdx.x, lane = thread % 32, row = thread / 32 * 16 + lane / 4, column = lane % 4 * 2;
    const size_t stride = (size_t)ROW_BYTES * p.chain;
    const unsigned char *a = (const unsigned char *)p.a + blockIdx.x * ROWS * stride;
    const unsigned char *b = (const unsigned char *)p.b + blockIdx.x * COLUMNS * stride;
    const size_t tile = (size_t)blockIdx.x * ROWS * COLUMNS;
    float d[4] = {};
    float total[4] = {};
    uint32_t half[2] = {};
    for (int i = 0; i < 4; i++) {
        const size_t at = tile + (row + i / 2 * 8) * COLUMNS + column + i % 2;
        if constexpr (HALF)
            half[i / 2] |= (uint32_t)((const uint16_t *)p.c)[at] << i % 2 * 16;
        else
            total[i] = d[i] = ((const float *)p.c)[at];
    }
    for (int step = 0; step < p.chain; step++) {
        __syncthreads();
        for (int i = thread; i < ROWS * ROW_BYTES; i += 128)
            left[core_offset(i / ROW_BYTES, i % ROW_BYTES)] =
                a[i / ROW_BYTES * stride + step * ROW_BYTES + i % ROW_BYTES];
        for (int i = thread; i < COLUMNS * ROW_BYTES; i += 128)
            right[core_offset(i / ROW_BYTES, i % ROW_BYTES)] =
                b[i / ROW_BYTES * stride + step * ROW_BYTES + i % ROW_BYTES];
        /* Ordinary stores, read by the asynchronous proxy. */
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
        __syncthreads();
        uint32_t registers[4];
        for (int i = 0; i < 4; i++) /* rows row and row + 8; then their second 16 bytes */
            registers[i] = *(const uint32_t *)&left[core_offset(row + i % 2 * 8, lane % 4 * 4 + i / 2 * 16)];
        multiply<INSTRUCTION>(d, half, registers, descriptor(left), descriptor(right), !PROMOTED);
        for (int i = 0; PROMOTED && i < 4; i++)
            total[i] = __fadd_rn(total[i], d[i]);
    }
    for (int i = 0; i < 4; i++) {
        const size_t at = tile + (row + i / 2 * 8) * COLUMNS + column + i % 2;
        if constexpr (HALF)
            p.out[at] = half[i / 2] >> i % 2 * 16 & 0xFFFF;
        else
            p.out[at] = __float_as_uint(PROMOTED ? total[i] : d[i]);
    }
#endif
}

/* 1 if the code that would run here has the instruction: only sm_90a's kernel has a body, and with it shared
   memory. */
static int compiled()
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, wgmma<VECTOR_WGMMA_F16>) == cudaSuccess && attributes.sharedSizeBytes > 0;
}

int numerics_launch_warpgroup(uint32_t instruction, const struct product_arguments *p)
{
    if (!compiled())
        return 0;
    switch (instruction) {
#define WGMMA(id)                                                                                                      \
    case id:                                                                                                           \
        wgmma<id><<<p->tiles, 128>>>(*p);                                                                              \
        return 1;
        WGMMA(VECTOR_WGMMA_F16)
        WGMMA(VECTOR_WGMMA_BF16)
        WGMMA(VECTOR_WGMMA_F16_F16)
        WGMMA(VECTOR_WGMMA_F16_A)
        WGMMA(VECTOR_WGMMA_E4M3)
        WGMMA(VECTOR_WGMMA_E5M2)
        WGMMA(VECTOR_WGMMA_E4M3_F16)
        WGMMA(VECTOR_WGMMA_E4M3_PROMOTED)
#undef WGMMA
    default:
        return 0;
    }
}
