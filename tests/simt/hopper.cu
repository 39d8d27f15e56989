// sm_90 in inline PTX: mbarriers, TMA in every swizzle and dimension, wgmma from every layout, and the mistakes that a
// GPU answers with a hang or with numbers of no kernel.
#include "check.h"
#include <cuda.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

__device__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void init(uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ uint64_t arrive(uint32_t barrier)
{
    uint64_t state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory"); // at: arrive
    return state;
}
__device__ void expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait(uint32_t barrier, int parity)
{
    asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t"
                 "@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(barrier),
                 "r"(parity));
}
__device__ bool test(uint32_t barrier, int parity)
{
    uint32_t done;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity));
    return done;
}

// A ring of one cell, handed from warp to warp: full and free, as producers and consumers have them.
__global__ void ring(int rounds)
{
    __shared__ __align__(8) uint64_t full, free_;
    __shared__ int cell;
    const uint32_t f = shared_address(&full), e = shared_address(&free_);
    if (threadIdx.x == 0) {
        init(f, 32);
        init(e, 64);
    }
    __syncthreads();
    CHECK(test(f, 1), true);
    __syncthreads();
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x < 32) {
            wait(e, (i + 1) & 1);
            if (threadIdx.x == 0)
                cell = 7 * i;
            CHECK(arrive(f), static_cast<uint64_t>(i));
        } else {
            wait(f, i & 1);
            CHECK(cell, 7 * i);
            arrive(e);
        }
    }
    CHECK(rounds == 0 || threadIdx.x < 32 || test(f, (rounds - 1) & 1), true);
}

// Elected once a warp; elements of stmatrix come back by ldmatrix.
__global__ void warp_operations()
{
    __shared__ __align__(16) uint16_t tile[64 * 8];
    uint32_t leads, out[4];
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p;}" : "=r"(leads));
    CHECK(__popc(__ballot_sync(0xffffffffu, leads)), 1);
    const uint32_t row = shared_address(tile + threadIdx.x * 8), x = threadIdx.x;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(x), "r"(x + 100),
                 "r"(x + 200), "r"(x << 16)
                 : "memory");
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(row));
    CHECK(out[0], x);
    CHECK(out[1], x + 100);
    CHECK(out[2], x + 200);
    CHECK(out[3], x << 16);
}

constexpr int COLS = 64, ROWS = 64, HEADS = 3;
using Tile = __half[HEADS][ROWS][COLS];

__device__ void load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.L2::cache_hint [%1, {%3, %4, %5}], %6;\n"
                 "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(0ull)
                 : "memory");
}
__device__ void store(const CUtensorMap *map, uint32_t from, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\n"
                 "cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
__device__ void add(const CUtensorMap *map, uint32_t from, int x, int y, int z)
{
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.bulk_group [%0, {%2, %3, %4}], [%1];\n"
                 "cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group 0;" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// A box of `width` columns and 16 rows at (x, y, z), where its swizzle (bytes, 0: none) puts each element; zeros beyond
// the tensor. Then back into another tensor, once and once more on top.
__global__ void boxes(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, const Tile *in,
                      int width, int swizzle, int x, int y, int z)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t tile = shared_address(shared), barrier = tile + 4096;
    if (threadIdx.x == 0) {
        init(barrier, 1);
        expect(barrier, width * 16 * 2);
        load(tile, &from, barrier, x, y, z);
        wait(barrier, 0);
        for (int row = 0; row < 16; row++)
            for (int col = 0; col < width; col++) {
                const bool inside = x + col >= 0 && x + col < COLS && y + row >= 0 && y + row < ROWS && z < HEADS;
                int at = row * width * 2 + col * 2;
                if (swizzle)
                    at ^= (at / 128 & (swizzle / 16 - 1)) * 16;
                CHECK(__half2float(*reinterpret_cast<__half *>(shared + at)),
                      inside ? __half2float((*in)[z][y + row][x + col]) : 0.0f);
            }
        store(&to, tile, x, y, z);
        add(&to, tile, x, y, z);
    }
}

__global__ void bytes_of(const unsigned char *in, unsigned char *out)
{
    __shared__ __align__(16) unsigned char piece[64];
    __shared__ __align__(8) uint64_t barrier;
    const uint32_t to = shared_address(piece), b = shared_address(&barrier);
    if (threadIdx.x)
        return;
    init(b, 1);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(b) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];" ::"r"(to),
                 "l"(in), "r"(b)
                 : "memory");
    arrive(b);
    wait(b, 0);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;\n"
                 "cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group 0;" ::"l"(out),
                 "r"(to)
                 : "memory");
}

#define D8(i)                                                                                                          \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),        \
        "+f"(d[i + 7])
#define NAMES "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define MULTIPLY(type, transposed)                                                                                     \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %18, 0;\n"                                                             \
                 "wgmma.mma_async.sync.aligned.m64n32k" type " " NAMES ", %16, %17, p, 1, 1" transposed ";}"           \
                 : D8(0), D8(8)                                                                                        \
                 : "l"(a), "l"(b), "r"(add))
__device__ void multiply(float (&d)[16], uint64_t a, uint64_t b, int add, bool transposed_a, bool transposed_b)
{
    if (transposed_a && transposed_b)
        MULTIPLY("16.f32.f16.f16", ", 1, 1");
    else if (transposed_a)
        MULTIPLY("16.f32.f16.f16", ", 1, 0");
    else if (transposed_b)
        MULTIPLY("16.f32.f16.f16", ", 0, 1");
    else
        MULTIPLY("16.f32.f16.f16", ", 0, 0");
}
__device__ void commit_and_wait(float (&d)[16])
{
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (float &x : d)
        asm volatile("" : "+f"(x)::"memory");
}

// One k step of a matrix of `rows` rows, as TMA lays it out in this swizzle: [rows][k], or transposed [k][rows]. Its
// descriptor.
__device__ uint64_t place(uint32_t to, uint32_t barrier, const CUtensorMap *map, int rows, int k, int swizzle,
                          bool transposed)
{
    const int width = swizzle ? swizzle / 2 : 8, box = width * (transposed ? 16 : rows) * 2;
    const int boxes_ = transposed ? rows / width : swizzle ? 1 : 2;
    uint32_t start = to, leading = 16, stride = 8 * swizzle;
    if (threadIdx.x == 0) {
        expect(barrier, box * boxes_);
        for (int i = 0; i < boxes_; i++)
            load(to + i * box, map, barrier,
                 transposed ? i * width
                 : swizzle  ? 16 * k / width * width
                            : 16 * k + 8 * i,
                 transposed ? 16 * k : 0, 0);
    }
    wait(barrier, k & 1);
    if (transposed && swizzle)
        leading = box;
    else if (transposed) {
        stride = box;
        leading = 128;
    } else if (swizzle)
        start += 16 * k % width * 2;
    else {
        leading = box;
        stride = 128;
    }
    const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return (start & 0x3FFFF) >> 4 | static_cast<uint64_t>(leading >> 4) << 16 |
           static_cast<uint64_t>(stride >> 4) << 32 | mode << 62;
}

// D = A B' from tensors of 64 and 32 rows and 64 elements, in any layout of both.
__global__ void layouts(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                        const Tile *a, const Tile *b, int swizzle_a, bool transposed_a, int swizzle_b,
                        bool transposed_b)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t base = shared_address(shared), barrier = base + 32768;
    float d[16];
    for (float &x : d)
        x = 1e30f;
    if (threadIdx.x == 0) {
        init(barrier, 1);
        init(barrier + 8, 1);
    }
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        const uint64_t at_a = place(base, barrier, &map_a, 64, k, swizzle_a, transposed_a),
                       at_b = place(base + 16384, barrier + 8, &map_b, 32, k, swizzle_b, transposed_b);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, at_a, at_b, k > 0, transposed_a, transposed_b);
        CHECK(isnan(d[5]), true); // nobody has waited
        commit_and_wait(d);
        __syncthreads();
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 16; i++) {
        const int row = 16 * warp + lane / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float want = 0;
        for (int k = 0; k < 64; k++)
            want += __half2float(transposed_a ? (*a)[0][k][row] : (*a)[0][row][k]) *
                    __half2float(transposed_b ? (*b)[0][k][col] : (*b)[0][col][k]);
        CHECK(d[i], want);
    }
}

// A in registers, twice negated, and one group left under way while the other is done; a sum of f16; e4m3.
__global__ void registers()
{
    extern __shared__ __align__(1024) unsigned char shared[];
    __half *const b = reinterpret_cast<__half *>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // No swizzle: cores of 8 rows and 16 bytes, 128 bytes each; 32 rows of 16 elements.
    for (int i = threadIdx.x; i < 32 * 16; i += 128) {
        const int row = i / 16, k = i % 16;
        b[k / 8 * 256 + row / 8 * 64 + row % 8 * 8 + k % 8] = __float2half(row == k ? 1.0f : 0.0f);
    }
    for (int i = threadIdx.x; i < 4096; i += 128) // e4m3: 1 is 0x38
        shared[4096 + i] = 0x38;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const auto matrix = [&](const void *p) {
        return static_cast<uint64_t>((shared_address(p) & 0x3FFFF) >> 4) | 512ull >> 4 << 16 | 128ull >> 4 << 32;
    };
    const auto value = [&](int row, int k) { return static_cast<float>(row * 16 + k); };
    uint32_t a[4];
    for (int word = 0; word < 4; word++) {
        const int row = 16 * warp + lane / 4 + word % 2 * 8, k = lane % 4 * 2 + word / 2 * 8;
        const __half2 pair = __floats2half2_rn(value(row, k), value(row, k + 1));
        memcpy(&a[word], &pair, 4);
    }
    float d[16], e[16];
    for (int i = 0; i < 16; i++)
        d[i] = e[i] = 3;
    const auto issue = [&](float(&d)[16]) {
        asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 " NAMES
                     ", {%16, %17, %18, %19}, %20, p, -1, 1, 0;}\n"
                     "wgmma.commit_group.sync.aligned;"
                     : D8(0), D8(8)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix(b)));
    };
    issue(d);
    issue(e);
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    CHECK(isnan(e[0]), true);
    for (int i = 0; i < 16; i++) {
        const int row = 16 * warp + lane / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + lane % 4 * 2 + i % 2;
        CHECK(d[i], 3 - (col < 16 ? value(row, col) : 0.0f));
    }
    commit_and_wait(e);
    CHECK(e[3], d[3]);

    uint32_t h[8]; // f16 sums of pairs
    for (uint32_t &x : h)
        x = 0;
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, "
        "%12, p, 1, 1, 0;}\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
        : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3]), "+r"(h[4]), "+r"(h[5]), "+r"(h[6]), "+r"(h[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix(b)));
    for (int i = 0; i < 8; i++) {
        const int row = 16 * warp + lane / 4 + i % 2 * 8, col = i / 2 * 8 + lane % 4 * 2;
        __half2 pair;
        memcpy(&pair, &h[i], 4);
        CHECK(__half2float(pair.y), col + 1 < 16 ? value(row, col + 1) : 0.0f);
    }

    for (float &x : d)
        x = 0;
    const uint64_t ones = matrix(shared + 4096);
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 " NAMES ", %16, %17, p, 1, 1;}"
                 : D8(0), D8(8)
                 : "l"(ones), "l"(ones));
    commit_and_wait(d);
    CHECK(d[7], 32.0f);
}

__global__ void no_init()
{
    __shared__ __align__(8) uint64_t barrier;
    arrive(shared_address(&barrier));
}
__global__ void too_many_arrivals()
{
    __shared__ __align__(8) uint64_t barrier[2];
    if (threadIdx.x == 0) {
        init(shared_address(barrier), 1);
        expect(shared_address(barrier), 16);
        arrive(shared_address(barrier));
    }
}
__global__ void missing_bytes(const __grid_constant__ CUtensorMap map)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t barrier = shared_address(shared) + 8192;
    if (threadIdx.x == 0) {
        init(barrier, 1);
        expect(barrier, 4096); // two tiles, of which one comes
        load(shared_address(shared), &map, barrier, 0, 0, 0);
    }
    __syncthreads();
    wait(barrier, 0);
}
__global__ void never_waited()
{
    extern __shared__ __align__(1024) unsigned char shared[];
    float d[16] = {};
    multiply(d, shared_address(shared) >> 4 & 0x3FFF, shared_address(shared) >> 4 & 0x3FFF, 0, false, false);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__global__ void no_map(const __grid_constant__ CUtensorMap map)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t barrier = shared_address(shared) + 8192;
    init(barrier, 1);
    load(shared_address(shared), &map, barrier, 0, 0, 0);
}

static CUtensorMap map_of(const Tile *tile, int width, int rows, int swizzle)
{
    const cuuint64_t dims[] = {COLS, ROWS, HEADS}, strides[] = {COLS * 2, COLS * ROWS * 2};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(width), static_cast<cuuint32_t>(rows), 1}, steps[] = {1, 1, 1};
    CUtensorMap map;
    const CUtensorMapSwizzle mode = swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                    : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                    : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                    : CU_TENSOR_MAP_SWIZZLE_NONE;
    if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<Tile *>(tile), dims, strides, box,
                               steps, CU_TENSOR_MAP_INTERLEAVE_NONE, mode, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        failures++, printf("no map of boxes of %d x %d, swizzle %d\n", width, rows, swizzle);
    return map;
}

#define LAUNCH(kernel, grid, block, ...)                                                                               \
    do {                                                                                                               \
        if (simt_launch_kernel(#kernel, kernel, grid, block, 40960, ##__VA_ARGS__))                                    \
            failures++, printf("%s: %s\n", #kernel, simt_error());                                                     \
    } while (0)

static void all_layouts(const Tile *a, const Tile *b)
{
    static const int swizzles[] = {0, 32, 64, 128};
    for (int which = 0; which < 64; which++) {
        const int sa = swizzles[which % 4], sb = swizzles[which / 4 % 4];
        const bool ta = which / 16 % 2, tb = which / 32 % 2;
        if (tb && sb > 64)
            continue; // its rows of 64 are more than B has: hopper_large multiplies so
        LAUNCH(layouts, 1, 128, map_of(a, sa ? sa / 2 : 8, ta ? 16 : 64, sa),
               map_of(b, sb ? sb / 2 : 8, tb ? 16 : 32, sb), a, b, sa, ta, sb, tb);
    }
}

static void all_boxes(const Tile *in)
{
    static __align__(16) Tile out;
    static const int places[][3] = {{0, 0, 0}, {-3, 5, 1}, {60, 56, 2}, {8, -20, 0}, {1, 2, 7}};
    for (int swizzle = 0; swizzle <= 128; swizzle = swizzle ? 2 * swizzle : 32)
        for (const int *at : places) {
            const int width = swizzle ? swizzle / 2 : 24;
            memset(out, 0, sizeof out);
            LAUNCH(boxes, 1, 32, map_of(in, width, 16, swizzle), map_of(&out, width, 16, swizzle), in, width, swizzle,
                   at[0], at[1], at[2]);
            for (int z = 0; z < HEADS; z++)
                for (int y = 0; y < ROWS; y++)
                    for (int x = 0; x < COLS; x++) {
                        const bool inside =
                            z == at[2] && y >= at[1] && y < at[1] + 16 && x >= at[0] && x < at[0] + width;
                        CHECK(__half2float(out[z][y][x]), inside ? 2 * __half2float((*in)[z][y][x]) : 0.0f);
                    }
        }
}

// FlashAttention-3's O has one split, at a stride of 0.
static void stride_of_nothing(Tile *tile)
{
    const cuuint64_t dims[] = {COLS, 1}, strides[] = {0};
    const cuuint32_t box[] = {8, 1};
    CUtensorMap map;
    CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, tile, dims, strides, box, nullptr,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          CUDA_SUCCESS);
}

extern "C" int simt_case(const char *name)
{
    static __align__(16) Tile a, b;
    static __align__(16) unsigned char from[64], to[64];
    for (int i = 0; i < HEADS * ROWS * COLS; i++) { // small numbers, whose sums are exact
        (&a[0][0][0])[i] = __float2half(static_cast<float>(i * 7 % 13 - 6));
        (&b[0][0][0])[i] = __float2half(static_cast<float>(i * 5 % 11 - 5));
    }
    for (int i = 0; i < 64; i++)
        from[i] = static_cast<unsigned char>(3 * i);
    if (!strcmp(name, "all")) {
        for (int rounds = 0; rounds < 6; rounds++)
            LAUNCH(ring, 2, 96, rounds);
        LAUNCH(warp_operations, 1, 32);
        all_boxes(&a);
        stride_of_nothing(&a);
        LAUNCH(bytes_of, 1, 32, from, to);
        CHECK(memcmp(from, to, sizeof to), 0);
        all_layouts(&a, &b);
        LAUNCH(registers, 2, 128);
    } else if (!strcmp(name, "no-init")) {
        LAUNCH(no_init, 1, 32);
    } else if (!strcmp(name, "too-many-arrivals")) {
        LAUNCH(too_many_arrivals, 1, 32);
    } else if (!strcmp(name, "missing-bytes")) {
        LAUNCH(missing_bytes, 1, 32, map_of(&a, 64, 16, 128));
    } else if (!strcmp(name, "never-waited")) {
        LAUNCH(never_waited, 1, 128);
    } else if (!strcmp(name, "no-map")) {
        LAUNCH(no_map, 1, 1, CUtensorMap());
    } else {
        return -1;
    }
    return failures;
}
