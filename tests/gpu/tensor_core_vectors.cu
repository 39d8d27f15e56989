/* Records what a GPU's tensor cores compute: `nvcc -std=c++17 -arch=sm_90 -o vectors tests/gpu/tensor_core_vectors.cu`,
   then `./vectors tests/vectors/h200.bin`. test_tensor_core.c sets the emulator against the file. */
#include "tensor_core_inputs.h"
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <mma.h>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        const cudaError_t error = (call);                                                                              \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* One warp per block: D [16][8] = A [16][K] B' [8][K] + C; the register layout is that of the PTX ISA, "Matrix
   Fragments for mma.m16n8k16" (and m16n8k32 for 8-bit types: the same in 32-bit words). `words` of 32 bits per row of A
   and B. */
template <int INSTRUCTION>
__global__ void mma(const uint32_t *a, const uint32_t *b, const float *c, float *d, int words)
{
    const int lane = threadIdx.x, group = lane / 4, member = lane % 4;
    a += blockIdx.x * 16 * words;
    b += blockIdx.x * 8 * words;
    c += blockIdx.x * 128;
    d += blockIdx.x * 128;
    const int at[4] = {group * 8 + member * 2, group * 8 + member * 2 + 1, (group + 8) * 8 + member * 2,
                       (group + 8) * 8 + member * 2 + 1};
    float acc[4];
    for (int i = 0; i < 4; i++)
        acc[i] = c[at[i]];
    for (int first = 0; first < words; first += 8) {
        const uint32_t a0 = a[group * words + first + member], a1 = a[(group + 8) * words + first + member];
        const uint32_t a2 = a[group * words + first + member + 4], a3 = a[(group + 8) * words + first + member + 4];
        const uint32_t b0 = b[group * words + first + member], b1 = b[group * words + first + member + 4];
#define MMA(shape_and_types)                                                                                           \
    asm volatile("mma.sync.aligned." shape_and_types " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"             \
                 : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])                                              \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
        if (INSTRUCTION == VECTOR_MMA_F16)
            MMA("m16n8k16.row.col.f32.f16.f16.f32");
        else if (INSTRUCTION == VECTOR_MMA_BF16)
            MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
        else
            MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    }
    for (int i = 0; i < 4; i++)
        d[at[i]] = acc[i];
}

/* One warp per block: D [16][16] = A [16][k] B' [16][k] + C. */
template <typename T> __global__ void wmma_product(const half *a, const half *b, const T *c, T *d, int k)
{
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> left;
    fragment<matrix_b, 16, 16, 16, half, col_major> right;
    fragment<accumulator, 16, 16, 16, T> sum;
    load_matrix_sync(sum, c + blockIdx.x * 256, 16, mem_row_major);
    for (int first = 0; first < k; first += 16) {
        load_matrix_sync(left, a + blockIdx.x * 16 * k + first, k);
        load_matrix_sync(right, b + blockIdx.x * 16 * k + first, k);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(d + blockIdx.x * 256, sum, 16, mem_row_major);
}

__global__ void exponentials(const float *x, float *y, int n, int base_e)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (base_e)
        y[i] = __expf(x[i]);
    else
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y[i]) : "f"(x[i]));
}

/* Codes packed to their own width, on the device. */
static void *upload(const std::vector<uint32_t> &codes, int bytes)
{
    std::vector<unsigned char> packed(codes.size() * bytes);
    for (size_t i = 0; i < codes.size(); i++)
        memcpy(&packed[i * bytes], &codes[i], bytes);
    void *device = nullptr;
    CHECK(cudaMalloc(&device, packed.size()));
    CHECK(cudaMemcpy(device, packed.data(), packed.size(), cudaMemcpyHostToDevice));
    return device;
}

static std::vector<uint32_t> download(void *device, int n, int bytes)
{
    std::vector<unsigned char> packed((size_t)n * bytes);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(packed.data(), device, packed.size(), cudaMemcpyDeviceToHost));
    std::vector<uint32_t> codes(n, 0);
    for (int i = 0; i < n; i++)
        memcpy(&codes[i], &packed[(size_t)i * bytes], bytes);
    return codes;
}

static std::vector<uint32_t> operand(const vector_row &r, int row, int which, int n)
{
    std::vector<uint32_t> codes(n);
    vector_fill_operand(&r, row, which, codes.data(), n);
    return codes;
}

static std::vector<uint32_t> run_product(const vector_row &r, int row)
{
    const int k = vector_k(r.instruction) * r.chain, columns = vector_columns(r.instruction), n = r.count;
    const int blocks = n / (16 * columns), bytes = r.instruction == VECTOR_MMA_E4M3 ? 1 : 2;
    const int c_bytes = r.instruction == VECTOR_WMMA_F16_F16 ? 2 : 4, words = k * bytes / 4;
    void *a = upload(operand(r, row, 0, blocks * 16 * k), bytes);
    void *b = upload(operand(r, row, 1, blocks * columns * k), bytes);
    void *c = upload(operand(r, row, 2, n), c_bytes);
    void *d = upload(std::vector<uint32_t>(n, 0), c_bytes);
    const uint32_t *wa = (uint32_t *)a, *wb = (uint32_t *)b;
    const half *ha = (half *)a, *hb = (half *)b;
    if (r.instruction == VECTOR_MMA_F16)
        mma<VECTOR_MMA_F16><<<blocks, 32>>>(wa, wb, (float *)c, (float *)d, words);
    else if (r.instruction == VECTOR_MMA_BF16)
        mma<VECTOR_MMA_BF16><<<blocks, 32>>>(wa, wb, (float *)c, (float *)d, words);
    else if (r.instruction == VECTOR_MMA_E4M3)
        mma<VECTOR_MMA_E4M3><<<blocks, 32>>>(wa, wb, (float *)c, (float *)d, words);
    else if (r.instruction == VECTOR_WMMA_F16)
        wmma_product<float><<<blocks, 32>>>(ha, hb, (float *)c, (float *)d, k);
    else
        wmma_product<half><<<blocks, 32>>>(ha, hb, (half *)c, (half *)d, k);
    CHECK(cudaGetLastError());
    const std::vector<uint32_t> out = download(d, n, c_bytes);
    for (void *p : {a, b, c, d})
        CHECK(cudaFree(p));
    return out;
}

static std::vector<uint32_t> run_exponential(const vector_row &r, int row)
{
    const int n = r.count;
    std::vector<uint32_t> x(n);
    for (int i = 0; i < n; i++) {
        const float argument = vector_argument(row, i);
        memcpy(&x[i], &argument, 4);
    }
    void *in = upload(x, 4), *out = upload(x, 4);
    exponentials<<<(n + 255) / 256, 256>>>((float *)in, (float *)out, n, r.instruction == VECTOR_EXPF);
    CHECK(cudaGetLastError());
    const std::vector<uint32_t> result = download(out, n, 4);
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    FILE *file = fopen(argv[1], "wb");
    vector_row rows[128];
    const uint32_t n_rows = vector_rows(rows);
    int ok = file && fwrite(VECTOR_MAGIC, 8, 1, file) == 1 && fwrite(&n_rows, 4, 1, file) == 1;
    for (uint32_t row = 0; ok && row < n_rows; row++) {
        const vector_row &r = rows[row];
        const std::vector<uint32_t> out = r.instruction < VECTOR_EX2 ? run_product(r, row) : run_exponential(r, row);
        ok = fwrite(&r, sizeof r, 1, file) == 1 && fwrite(out.data(), 4, out.size(), file) == out.size();
    }
    ok = file && fclose(file) == 0 && ok;
    if (!ok)
        perror(argv[1]);
    return ok ? 0 : 1;
}
