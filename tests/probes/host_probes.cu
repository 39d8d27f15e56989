/* Probes that must and must not write, for test_probe_header.c; built behind one_thread.h. x counts up per thread. */
#include "attnscope.h"

enum { BR = 8, BC = 4, D = 6, KV = 3 };

/* Of nvcuda::wmma, what attnscope.h looks at. */
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    T x[M * N / 32];
};
struct accumulator;

struct code8 {
    unsigned char bits;
};
#if ASC_MODE
ASC_TYPE(code8, ASC_E4M3);
#endif

__global__ static void probes(int wrong)
{
    const int h = blockIdx.y, qt = blockIdx.x, t = threadIdx.x + blockDim.x * threadIdx.y;
    ASC_AT(0, h + (wrong ? 100 : 0), qt);
    static float q[BR * D];
    for (int e = 0; e < BR * D; e++)
        q[e] = static_cast<float>(1000 * h + 100 * qt + e);
    ASC_RECORD_SHARED(q, 77, r, BR, c, D, q[r * D + c]); // once per q tile: the kv tile is ignored
    float copy = static_cast<float>(1 + t); // of its own in each thread, to tell who records and who is fed
    ASC_RECORD_ROW(o, 0, t % BR, t < BR, copy);
    const float seen = copy;
    if (t < BR * (D - 1))
        ASC_RECORD(o, 0, i, 1, t % BR, 1 + t / BR, seen);
    for (int j = 0; j < KV; j++) {
        float s[4];
        for (int e = 0; e < 4; e++)
            s[e] = static_cast<float>(1000 * h + 100 * qt + 10 * j + e);
        if (t < BR)
            ASC_RECORD(s, j, i, 4, t, i, s[i]);
        if (t < BR) {
            const double wrong_type = 1.0;
            ASC_RECORD_ROW(m, j, t, true, s[0]);
            ASC_RECORD_ROW(l, j, t, true, wrong_type);
            code8 code = {static_cast<unsigned char>(16 * t + j)};
            ASC_RECORD_ROW(alpha, j, t, true, code);
        }
        ASC_RECORD(p, j, i, 2, t - 2, i + BC - 1, s[i]);   // rows -2.., and column BC: no such places
        ASC_RECORD_SHARED(u, j + 1, r, 2, c, 2, s[r + c]); // the last one has no such kv tile
        static float v[BC * D];
        for (int e = 0; e < BC * D; e++)
            v[e] = static_cast<float>(1000 * h + 100 * qt + e);
        if (j == 1 && t >= 8 && t < 24)
            ASC_RECORD_SHARED_BY(v, j, r, BC, c, D, t - 8, 16, (void)0, v[r * D + c]);
        if (t < 32 && j == 0) {
            fragment<accumulator, 16, 16, 16, float> two[2];
            for (int e = 0; e < 16; e++)
                two[e / 8].x[e % 8] = s[0] + 16.0f * t + e;
            ASC_RECORD_FRAGMENT(u, 0, 1, -14, two); // the first one's last two columns have a place, then four
            if (t == 5)
                ASC_RECORD_ROW(lse, 0, 2, true, two[1].x[1]);
        }
        for (int g = 0; g < 1; g++) {
            ASC_AT(0, 0, 0); // another work item in an inner scope
            if (t == 0)
                // clang-format off
                ASC_RECORD_ROW(lse, 0, 1, true,
                        s[0]);
            // clang-format on
        }
    }
}

static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    if (problem->head_dim != D)
        return "head_dim must be 6";
    plan->br = BR;
    plan->bc = BC;
    plan->threads = 64;
    return nullptr;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    const dim3 grid((problem->q_len + BR - 1) / BR, problem->heads), block(32, 2);
    return ASC_LAUNCH(probes, grid, block, problem->batch > 1 ? 1 << 20 : 0, stream, problem->batch < 0);
}

ASC_KERNEL(host_probes)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F32) | ASC_SUPPORTS(E4M3);
    kernel.channel_dtype[asc_alpha] = ASC_E4M3;
}
