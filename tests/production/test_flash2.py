#!/usr/bin/env python3
"""FlashAttention-2's forward as it is published, under attnscope: FLASH_ATTENTION names the folder of its sources (of the
package flash-attn on PyPI, or its repository with CUTLASS beside it). Probes are added to a copy of its headers; what
is right is found clean, and mistakes that are planted are found. Without the folder the tests are skipped."""

import os
import unittest
from pathlib import Path

import flash

FOLDER = Path(os.environ.get("FLASH_ATTENTION", "/nonexistent"))
SOURCES = FOLDER / "csrc/flash_attn/src"

# Before or behind the lines that begin so: what is added. In flash_fwd_kernel.h, to both forward kernels.
BEFORE = {
    ("FLASH_NAMESPACE::gemm</*A_in_regs", "FLASH_NAMESPACE::gemm("): ["ASC_CUTE_SHARED(q, 0, sQ);", "ASC_CUTE_SHARED(k, n_block, sK);"],
    "masking_step == 0": ["ASC_CUTE_C(s, n_block, thr_mma, kBlockM, kBlockN, acc_s);"],
    "softmax.template softmax_rescale_o": ["ASC_CUTE_C(s, n_block, thr_mma, kBlockM, kBlockN, acc_s);"],
    "Tensor rP =": ["ASC_CUTE_ROWS(m, n_block, thr_mma, kBlockM, kBlockN, softmax.row_max);",
                    "if (n_block < n_block_max - 1)",
                    "    ASC_CUTE_ROWS(alpha, n_block, thr_mma, kBlockM, kBlockN, softmax.asc_alpha);",
                    "ASC_CUTE_LANES(l, n_block, thr_mma, kBlockM, kBlockN, softmax.row_sum);"],
    "FLASH_NAMESPACE::gemm_rs(": ["ASC_CUTE_C(p, n_block, thr_mma, kBlockM, kBlockN, rP);",
                                  "ASC_CUTE_SHARED(v, n_block, sV);"],
}
BEHIND = {
    "const BlockInfo<": ["ASC_AT(bidb, bidh, m_block);"],
    "FLASH_NAMESPACE::gemm_rs(": ["ASC_CUTE_C(u, n_block, thr_mma, kBlockM, kHeadDim, acc_o);"],
}


OPTIONS = "DROPOUT", "ALIBI", "LOCAL", "SOFTCAP", "UNEVEN_K"


def instance(file="hdim64_fp16", having=""):
    """The defines and flags that compile it alone: its options are FlashAttention's own."""
    left_out = [f"flags = -DFLASHATTENTION_DISABLE_{option}" for option in OPTIONS if option != having]
    return (f"FLASH={file} FLASH_P=ASC_{'BF16' if 'bf16' in file else 'F16'} FLASH_BC={64 if 'hdim128' in file else 128}",
            "\n".join(left_out).removeprefix("flags = "))


# Which of the mistakes that are planted is made; on the CPU one build has them all.
PLANTED = """
#ifdef SIMT_HOST
#include <stdlib.h>
static const int planted = getenv("FLASH_PLANTED") ? atoi(getenv("FLASH_PLANTED")) : 0;
#elif defined(FLASH_PLANTED)
constexpr int planted = FLASH_PLANTED;
#else
constexpr int planted = 0;
#endif
"""


def add_probes(folder):
    path = folder / "flash_fwd_kernel.h"
    text = flash.add_lines(path.read_text(encoding="utf-8"), BEFORE, BEHIND)
    path.write_text('#include "attnscope_cute.h"\n' + text, encoding="utf-8")
    flash.change(folder / "softmax.h", "TensorT row_max, row_sum;", "TensorT row_max, row_sum;\n    TensorT asc_alpha;")
    flash.change(folder / "softmax.h", "* softmax_scale_log2);\n                row_sum(mi) *=",
                 "* softmax_scale_log2);\n                asc_alpha(mi) = scores_scale;\n                row_sum(mi) *=")
    # The kernel with its probes and without them: four lines.
    flash.change(path, "bool Is_softcap, bool Return_softmax, typename Params>", "bool Is_softcap, bool Return_softmax, bool asc_probed, typename Params>")
    flash.change(path, "Is_softcap, Return_softmax>(params, bidb", "Is_softcap, Return_softmax, asc_probed>(params, bidb")
    launch = folder / "flash_fwd_launch_template.h"
    flash.change(launch, "bool Is_softcap, bool Return_softmax) {", "bool Is_softcap, bool Return_softmax, bool asc_probed) {")
    flash.change(launch, "Is_softcap, Return_softmax>(params);", "Is_softcap, Return_softmax, asc_probed>(params);")
    flash.change(launch, "auto kernel = &flash_fwd_kernel<Kernel_traits, Is_dropout && !Is_softcap,", "auto kernel = ASC_TWICE(&flash_fwd_kernel<Kernel_traits, Is_dropout && !Is_softcap,")
    flash.change(launch, "ReturnSoftmaxConst && Is_dropout && !Is_softcap>;", "ReturnSoftmaxConst && Is_dropout && !Is_softcap, asc_probed>);")


@unittest.skipUnless(SOURCES.is_dir(), "FLASH_ATTENTION names no folder with csrc/flash_attn/src")
class Sources(flash.Sources):
    kernel, backend, includes = "flash2.cu", os.environ.get("FLASH_BACKEND", "cpu"), (FOLDER / "csrc/cutlass/include",)

    def setUp(self):
        self.copy_headers(SOURCES / "*.h", SOURCES / "*.cuh", SOURCES / "flash_fwd_*.cu", SOURCES.parent / "flash_api.cpp")
        add_probes(self.copy)

    def scenario(self, keys, defines="", planted=0):
        defines, self.flags = defines or instance()
        return super().scenario(keys + "\nlayout = BLHD", defines, planted)


class Clean(Sources):
    def test_plain(self):
        keys = "[shape]\nheads = 4\nkv_heads = 2\nq_len = 256"
        for arguments in ((), ("--checks",))[:1 if self.backend == "gpu" else 2]:
            text = self.clean(keys, *arguments)
            self.assertNotIn("event:", text)

    def test_tails(self):
        self.clean("[shape]\nheads = 2\nbatch = 2\nq_len = 300\nkv_len = 333")

    def test_causal(self):
        """Both tails, and rows without any key."""
        for lengths in ("q_len = 300\nkv_len = 333", "q_len = 400\nkv_len = 130"):
            self.clean("[shape]\nheads = 4\nkv_heads = 2\ncausal = bottom-right\n" + lengths, defines=instance("hdim64_fp16_causal"))

    def test_bf16(self):
        self.clean("[shape]\nheads = 2\nq_len = 300\ncausal = bottom-right\ndtype = bf16", defines=instance("hdim64_bf16_causal"))

    def test_head_dim_128(self):
        for dtype in ("f16", "bf16"):
            self.clean(f"[shape]\nheads = 2\nq_len = 200\nhead_dim = 128\ndtype = {dtype}",
                       defines=instance("hdim128_bf16" if dtype == "bf16" else "hdim128_fp16"))

    def test_window(self):
        self.clean("[shape]\nheads = 2\nq_len = 300\nwindow = 70,20", defines=instance(having="LOCAL"))

    def test_softcap(self):
        self.clean("[shape]\nheads = 2\nq_len = 300\nsoftcap = 20", defines=instance(having="SOFTCAP"), exact=False)

    def test_alibi(self):
        self.clean("[shape]\nheads = 2\nq_len = 300\nalibi = yes", defines=instance(having="ALIBI"), exact=False)
        self.clean("[shape]\nheads = 2\nq_len = 300\nalibi = yes\ncausal = bottom-right",
                   defines=instance("hdim64_fp16_causal", having="ALIBI"), exact=False)


class Split(Sources):
    kernel = "flash2_split.cu"

    def test_split_kv(self):
        """And its merge, which writes LSE by eight rows: one that is no multiple of it is overrun, and that is said of the
        tensor that mha_fwd has made for it."""
        self.clean("[shape]\nheads = 2\nq_len = 72\nkv_len = 1100", exact=False)
        if self.backend == "gpu":
            return
        status, text = self.run_it("[shape]\nheads = 2\nq_len = 70\nkv_len = 1100")
        self.assertEqual(status, 1, text)
        self.assertIn("the kernel wrote outside an allocation of 560 bytes", text)


KERNEL, SOFTMAX, MASK = "flash_fwd_kernel.h", "softmax.h", "mask.h"
WAIT = "FLASH_NAMESPACE::cp_async_wait<0>();"

MISTAKES = (
    (SOFTMAX, "tensor(mi, ni) * scale - max_scaled", "tensor(mi, ni) * scale * (# ? scale : 1.f) - max_scaled", "P"),
    (SOFTMAX, "row_sum(mi) *= scores_scale;", "if (!#) row_sum(mi) *= scores_scale;", "l"),
    (SOFTMAX, "acc_o_rowcol(mi, ni) *= scores_scale;", "if (!#) acc_o_rowcol(mi, ni) *= scores_scale;", "U"),
    (SOFTMAX, "Allreduce<4>::run(src(i), op);", "# ? Allreduce<2>::run(src(i), op) : Allreduce<4>::run(src(i), op);", "m"),
    (SOFTMAX, "? 1.f : 1.f / sum;", "? 1.f : # ? 1.f : 1.f / sum;", "O"),
    (SOFTMAX, "row_max(mi) * softmax_scale +", "row_max(mi) * (# ? 1.f : softmax_scale) +", "LSE"),
    (SOFTMAX, "__logf(sum)", "(# ? __log2f(sum) : __logf(sum))", "LSE"),
    (MASK, "row_idx + 1 + max_seqlen_k", "row_idx + (# ? 2 : 1) + max_seqlen_k", "S"),
    (KERNEL, "mK(_, bidh / params.h_h_k_ratio, _)", "mK(_, # ? bidh % params.h_k : bidh / params.h_h_k_ratio, _)", "K"),
    (KERNEL, "mV(_, bidh / params.h_h_k_ratio, _)", "mV(_, # ? 0 : bidh / params.h_h_k_ratio, _)", "V"),
    (KERNEL, "tVgV(_, _, _, n_block), tVsV, tKVcKV, tKVpKV);",
     "tVgV(_, _, _, # && n_block > 0 ? n_block - 1 : n_block), tVsV, tKVcKV, tKVpKV);", "V"),
    (KERNEL, "reinterpret_cast<Element*>(params.q_ptr)",
     "reinterpret_cast<Element*>(params.q_ptr) - (# ? m_block * params.q_row_stride : 0)", "Q"),
    (KERNEL, f"{WAIT}\n        __syncthreads();\n        if (n_block > n_block_min)",
     f"if (!#) {WAIT}\n        __syncthreads();\n        if (n_block > n_block_min)", "V"),
    (KERNEL, f"{WAIT}\n        __syncthreads();\n\n", f"{WAIT}\n        if (!#) __syncthreads();\n\n", "K"),
)
BARRIER = len(MISTAKES)


class Mistakes(Sources):
    """Causal with GQA and tails. On the CPU one build has them all, on a GPU each is a build."""

    def setUp(self):
        super().setUp()
        self.plant(MISTAKES)
        flash.change(self.copy / "namespace_config.h", "#pragma once\n", "#pragma once\n" + PLANTED)

    def planted(self, number, *arguments):
        return self.run_it("[shape]\nheads = 4\nkv_heads = 2\nq_len = 300\nkv_len = 333\ncausal = bottom-right",
                           *arguments, defines=instance("hdim64_fp16_causal"), planted=number)

    def test_each_is_found(self):
        """The first run is of none, and builds on the CPU what all others run. On a GPU the last two, a wait and a barrier
        left out, need not change a value."""
        status, text = self.planted(0)
        self.assertEqual(status, 0, text)
        self.each_is_found(MISTAKES[:-2] if self.backend == "gpu" else MISTAKES, self.planted)

    @unittest.skipIf(Sources.backend == "gpu", "events are the CPU's")
    def test_a_race_names_lines_of_flash_attention(self):
        status, text = self.planted(BARRIER, "--checks")
        self.assertEqual(status, 1, text)
        races = [line for line in text.splitlines() if line.startswith("event: race")]
        self.assertTrue(races, text)
        for line in races:
            self.assertRegex(line, r"src/(flash_fwd_kernel|utils)\.h:\d+")
            self.assertNotIn("include/cute/", line)


if __name__ == "__main__":
    flash.tap.main()
