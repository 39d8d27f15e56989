// FlashAttention's forward as it is published, f16, dense: FLASH (2 or 3) and DIM choose the kernel. A library for
// published_main.cu, which has it once without probes and once with probes that are off.
#if FLASH == 2
// The one instance that lengths of whole tiles take, of the four that the launch chooses from.
#define ALWAYS(condition, NAME, ...)                                                                                   \
    [&] {                                                                                                              \
        constexpr static bool NAME = true;                                                                             \
        return __VA_ARGS__();                                                                                          \
    }()
#define NEVER(condition, NAME, ...)                                                                                    \
    [&] {                                                                                                              \
        constexpr static bool NAME = false;                                                                            \
        return __VA_ARGS__();                                                                                          \
    }()
#include "flash_fwd_launch_template.h"
using namespace flash;
#else
#include "attnscope_cute.h"
#define FLASH_FP8 0
#include "flash_fwd_launch_template.h"
#endif

// q, k, v, o [batch][heads][length][DIM], for FlashAttention-2 [batch][length][heads][DIM]; lse [batch][heads][length];
// counter: one int of the persistent kernel's.
extern "C" void run(void *q, void *k, void *v, void *o, float *lse, int *counter, int batch, int heads, int length,
                    cudaStream_t stream)
{
    const int64_t row = FLASH == 2 ? heads * DIM : DIM, head = FLASH == 2 ? DIM : int64_t{length} * DIM;
    Flash_fwd_params p = {};
    p.q_ptr = q, p.k_ptr = k, p.v_ptr = v, p.o_ptr = o, p.softmax_lse_ptr = lse;
    p.q_batch_stride = p.k_batch_stride = p.v_batch_stride = p.o_batch_stride = int64_t{length} * heads * DIM;
    p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = row;
    p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = head;
    p.b = batch, p.h = p.h_k = heads, p.seqlen_q = p.seqlen_k = length, p.d = DIM;
    p.scale_softmax = 1 / sqrtf(DIM), p.num_splits = 1;
#if FLASH == 2
    p.h_h_k_ratio = 1, p.seqlen_q_rounded = p.seqlen_k_rounded = length, p.d_rounded = DIM;
    p.scale_softmax_log2 = p.scale_softmax * 1.44269504f, p.p_dropout = 1,
    p.window_size_left = p.window_size_right = -1;
    run_flash_fwd<Flash_fwd_kernel_traits<DIM, 128, DIM == 64 ? 128 : 64, 4, false, false, cutlass::half_t>, false,
                  false>(p, stream);
#else
    p.total_q = p.total_k = length, p.dv = DIM, p.v_dim_stride = 1, p.arch = 90, p.num_sm = 132;
    p.window_size_left = p.window_size_right = length - 1, p.tile_count_semaphore = counter;
    ASC_TWICE(run_flash_fwd < 90, DIM, DIM, DIM == 128 ? 2 : 1, cutlass::half_t, cutlass::half_t, false, false, false,
              false, false, false, false, false, false, false, asc_probed > (p, stream));
#endif
}
