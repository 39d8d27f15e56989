#!/usr/bin/env python3
"""FlashAttention-3's forward as it is published, under attnscope: FLASH_ATTENTION3 names the repository's folder hopper,
CUTLASS its headers. The package xformers has both on PyPI, in the sdist of 0.0.33.post2: third_party/flash-attention/hopper,
and csrc/cutlass/include beside it. As test_flash2.py: what is right is found clean, what is planted is found. Without the
folders the tests are skipped; FLASH_BACKEND=gpu takes a GPU of compute capability 9.0, on the CPU each build takes half a
minute."""

import os
import unittest
from pathlib import Path

import flash

HOPPER = Path(os.environ.get("FLASH_ATTENTION3", "/nonexistent"))
CUTLASS = Path(os.environ.get("CUTLASS", "/nonexistent"))
MAINLOOP, SOFTMAX, MASK = "mainloop_fwd_sm90_tma_gmma_ws.hpp", "softmax.h", "mask.h"

# Of the mainloop with P V of one tile behind Q K of the next; U is therefore that of the tile before.
SHARED = "ASC_RECORD_SHARED_BY({0}, asc_row, {1}, asc_col, {2}, thread_idx, NumMmaThreads, (void)0, {3});"
# One thread tells the producer that the stage is free: what the others read for their probes must have been read by then.
HAS_READ = """#define FLASH_HAS_READ()                                                                                   \\
    if constexpr (asc_probed)                                                                                              \\
    asm volatile("bar.sync %0, 128;" ::"r"(11 + threadIdx.x / 128) : "memory") // a barrier nobody uses
"""
# Of codes V lies in shared memory in an order of its own: it is not recorded. So do U's columns, until O is stored.
BY_TYPE = "if constexpr (!Is_FP8) {{ {0} }} else {{ {1} }}"
Q = SHARED.format("q, 0", "kBlockM", "kHeadDim", "sQ(asc_row, asc_col)")
K = SHARED.format("k, n_block", "kBlockN", "kHeadDim", "sK(asc_row, asc_col, smem_pipe_read.index())") + " FLASH_HAS_READ();"
V = "\n".join(["#if !FLASH_FP8", SHARED.format("v, n_block + 1", "kBlockN", "kHeadDimV", "sV(asc_col, asc_row, {0}.index())") +
               " FLASH_HAS_READ();", "#endif"])
S = "ASC_CUTE_C(s, n_block, tiled_mma_qk.get_thread_slice(thread_idx), kBlockM, kBlockN, tSrS);"
P = "ASC_CUTE_C(p, n_block, tiled_mma_qk.get_thread_slice(thread_idx), kBlockM, kBlockN, {0});"
P_OF_CODES = "if constexpr (Is_FP8) { " + P.format("tSrS") + " }"
P = "if constexpr (!Is_FP8) { " + P.format("make_tensor(tOrP.data(), tSrS.layout())") + " }"
U = "ASC_CUTE_C(u, n_block + 1, thread_mma_pv, kBlockM, kHeadDimV, {0});"
U = BY_TYPE.format(U.format("tOrO"), "auto asc_u = make_fragment_like(tOrO); cute::copy(tOrO, asc_u); flash::permute_output_fp8(asc_u); "
                   "flash::permute_output_fp8_Vcolmajor(asc_u); " +
                   U.format("asc_u"))
ROWS = ["ASC_CUTE_ROWS(m, n_block, thread_mma_pv, kBlockM, kHeadDimV, softmax.row_max);",
        "ASC_CUTE_ROWS(alpha, n_block, thread_mma_pv, kBlockM, kHeadDimV, scores_scale);",
        "ASC_CUTE_LANES(l, n_block, thread_mma_pv, kBlockM, kHeadDimV, softmax.row_sum);"]
BEFORE = {
    "pipeline_k.consumer_release(smem_pipe_read);": [Q, K],
    ("Tensor scores_scale = softmax.template max_get_scale", "cute::copy(softmax.template max_get_scale"): [S],
    "pipeline_v.consumer_release(smem_pipe_read_v);": [U, V.format("smem_pipe_read_v")],
    "pipeline_v.consumer_release(smem_pipe_read);  // release V, otherwise": [U, V.format("smem_pipe_read")],
    "if constexpr (Is_FP8 && !V_colmajor) { flash::permute_Cregs_fp8(tSrS); }": [P_OF_CODES],
    "if constexpr (!MmaPV_is_RS) { write_P_to_smem(tOrP); }": [P],
}
BEHIND = {"softmax.template online_softmax</*Is_first=*/": ROWS}


def add_probes(folder):
    path = folder / MAINLOOP
    text = path.read_text(encoding="utf-8")
    begin, end = text.index("        if constexpr (IntraWGOverlap) {\n            Tensor tSrS"), text.index("// No intra-WG overlap")
    head = flash.add_lines(text[:begin], {}, {"int const bidh_kv = !PackGQA ? params.qhead_per_khead_divmod.divide(bidh)":
                                              ["ASC_AT(bidb, bidh, m_block);"]})
    path.write_text('#include "attnscope_cute.h"\n' + HAS_READ + head + flash.add_lines(text[begin:end], BEFORE, BEHIND).rstrip("\n") +
                    text[end:], encoding="utf-8")
    # The kernel with its probes and without them.
    flash.change(path, "bool PackGQA_, bool Split_, bool V_colmajor_>\nstruct CollectiveMainloopFwdSm90 {",
                 "bool PackGQA_, bool Split_, bool V_colmajor_, bool asc_probed>\nstruct CollectiveMainloopFwdSm90 {")
    launch = folder / "flash_fwd_launch_template.h"
    flash.change(launch, "bool V_colmajor>\nvoid run_flash_fwd(", "bool V_colmajor, bool asc_probed = ::asc_probed>\nvoid run_flash_fwd(")
    flash.change(launch, "IntraWGOverlap, PackGQA, Split, V_colmajor>,", "IntraWGOverlap, PackGQA, Split, V_colmajor, asc_probed>,")


# A launch by its name's type: the CPU has none by an untyped pointer.
CLUSTER_LAUNCH = """#pragma once
#include "cutlass/cutlass.h"
namespace cutlass {
struct ClusterLaunchParams {
    dim3 grid, block, cluster;
    int shared_bytes;
    cudaStream_t stream;
};
template <class Params>
void launch_kernel_on_cluster(const ClusterLaunchParams &to, void (*kernel)(Params), const Params &params)
{
    cudaLaunchAttribute attribute = {cudaLaunchAttributeClusterDimension, {{to.cluster.x, to.cluster.y, to.cluster.z}}};
    cudaLaunchConfig_t config = {to.grid, to.block, static_cast<size_t>(to.shared_bytes), to.stream, &attribute, 1};
    cudaLaunchKernelEx(&config, kernel, params);
}
} // namespace cutlass
"""


@unittest.skipUnless(HOPPER.is_dir() and CUTLASS.is_dir(), "FLASH_ATTENTION3 and CUTLASS name no folders")
class Sources(flash.Sources):
    kernel, backend, includes = "flash3.cu", os.environ.get("FLASH_BACKEND", "cpu"), (CUTLASS,)
    flags = "-DNDEBUG" + (" -fpermissive -D__CUDA_ARCH_FEAT_SM90_ALL" if backend == "cpu" else " --expt-extended-lambda")

    def setUp(self):
        self.copy_headers(HOPPER / "*.h", HOPPER / "*.hpp")
        add_probes(self.copy)
        if self.backend == "cpu":
            (self.copy / "cutlass/arch").mkdir(parents=True)
            (self.copy / "cutlass/cluster_launch.hpp").write_text(CLUSTER_LAUNCH, encoding="utf-8")
            (self.copy / "cutlass/arch/wmma.h").write_text("#pragma once\n", encoding="utf-8")
            flash.change(self.copy / "flash_fwd_launch_template.h", "void const* kernel = (void const*) cutlass::device_kernel<AttnKernel>;",
                         "auto kernel = cutlass::device_kernel<AttnKernel>;")


class Clean(Sources):
    def test_head_dim_64(self):
        for lengths in ("q_len = 1024", "q_len = 300\nkv_len = 333\nkv_heads = 2"):
            self.clean("[shape]\nheads = 4\n" + lengths)

    def test_causal(self):
        """Tails, and rows without any key."""
        for lengths in ("q_len = 1024", "q_len = 300\nkv_len = 777", "q_len = 400\nkv_len = 130"):
            self.clean("[shape]\nheads = 4\nkv_heads = 2\ncausal = bottom-right\n" + lengths, defines="FLASH_CAUSAL=1")

    def test_other_layout(self):
        self.clean("[shape]\nheads = 2\nbatch = 2\nq_len = 300\nkv_len = 333\nlayout = BLHD")

    def test_head_dim_128(self):
        for dtype in ("f16", "bf16"):
            self.clean(f"[shape]\nheads = 2\nq_len = 1024\nhead_dim = 128\ndtype = {dtype}", defines="FLASH_CLUSTER=2")
        self.clean("[shape]\nheads = 2\nq_len = 300\nkv_len = 500\nhead_dim = 128\ncausal = bottom-right", defines="FLASH_CAUSAL=1")

    def test_codes(self):
        for head_dim in (64, 128):
            self.clean(f"[shape]\nheads = 2\nq_len = 300\nkv_len = 500\nhead_dim = {head_dim}\ndtype = e4m3", defines="FLASH_FP8=1",
                       marks=r"(ok +){2}- +(ok +){8}", tensor_core="wgmma-e4m3")


@unittest.skipUnless(Sources.backend == "cpu", "access checks are the CPU executor's")
class Checked(Sources):
    """No access that races, is out of bounds or waits for nobody, in a kernel that has none."""

    def test_dense(self):
        self.clean("[shape]\nheads = 2\nq_len = 300\nkv_len = 333", "--checks")

    def test_cluster(self):
        self.clean("[shape]\nheads = 2\nq_len = 512\nhead_dim = 128", "--checks", defines="FLASH_CLUSTER=2")

    def test_codes(self):
        self.clean("[shape]\nheads = 2\nq_len = 300\nkv_len = 500\nhead_dim = 64\ndtype = e4m3", "--checks", defines="FLASH_FP8=1",
                   marks=r"(ok +){2}- +(ok +){8}", tensor_core="wgmma-e4m3")


MISTAKES = (
    (SOFTMAX, "row_sum(mi) *= scores_scale(mi);", "if (!#) row_sum(mi) *= scores_scale(mi);", "l"),
    (SOFTMAX, "acc_o_rowcol(mi, ni) *= scores_scale(mi);", "acc_o_rowcol(mi, ni) *= # && scores_scale(mi) > 0.5f ? 1.f : scores_scale(mi);", "U"),
    (SOFTMAX, "exp2f(tensor(mi, ni) * scale - max_scaled)", "exp2f(tensor(mi, ni) * scale * (# ? scale : 1.f) - max_scaled)", "P"),
    (SOFTMAX, "+ __logf(sum)", "+ (# ? __log2f(sum) : __logf(sum))", "LSE"),
    (SOFTMAX, "row_max(mi) * (softmax_scale_log2 *", "row_max(mi) * ((# ? 1.f : softmax_scale_log2) *", "LSE"),
    (MAINLOOP, "tOrV(_, _, _, smem_pipe_read_v.index()), tOrO);", "tOrV(_, _, _, # ? smem_pipe_read_v.index() ^ 1 : smem_pipe_read_v.index()), tOrO);", "U"),
    (MAINLOOP, "int const bidh_kv = !PackGQA ? params.qhead_per_khead_divmod.divide(bidh) : bidh;",
     "int const bidh_kv = # ? bidh % 2 : !PackGQA ? params.qhead_per_khead_divmod.divide(bidh) : bidh;", "K"),
    (MAINLOOP, "mask.template apply<true /*Seqlenk_mask*/, Is_causal, Is_local>(tSrS, m_block, n_block);",
     "if (#) mask.template apply<true, false, Is_local>(tSrS, m_block, n_block); "
     "else mask.template apply<true, Is_causal, Is_local>(tSrS, m_block, n_block);", "S"),
)


class Mistakes(Sources):
    def setUp(self):
        super().setUp()
        self.plant(MISTAKES)

    def planted(self, number):
        return self.run_it("[shape]\nheads = 4\nkv_heads = 2\nq_len = 300\nkv_len = 777\ncausal = bottom-right",
                           defines="FLASH_CAUSAL=1", planted=number)

    def test_each_is_found(self):
        status, text = self.planted(0)
        self.assertEqual(status, 0, text)
        self.each_is_found(MISTAKES, self.planted)


if __name__ == "__main__":
    flash.tap.main()
