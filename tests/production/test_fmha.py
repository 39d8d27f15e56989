#!/usr/bin/env python3
"""CUTLASS's example of fused attention for Hopper, 88_hopper_fmha, as it is published, under attnscope: CUTLASS_SOURCE names
CUTLASS's repository, or cutlass_library/source of the package nvidia-cutlass on PyPI. Its kernel has no probes, so O and LSE
are judged: what is right is found clean, what is planted is found. Without the folder the tests are skipped."""

import os
import shutil
import unittest
from pathlib import Path

import flash

CUTLASS = Path(os.environ.get("CUTLASS_SOURCE", "/nonexistent"))
EXAMPLE = CUTLASS / "examples/88_hopper_fmha"
SOFTMAX = "collective/fmha_collective_softmax.hpp"
# What the kernel is not launched by, and the CPU's compiler does not take.
LAUNCHER = """#pragma once
#include "cutlass/cutlass.h"
"""


@unittest.skipUnless(EXAMPLE.is_dir(), "CUTLASS_SOURCE names no folder with examples/88_hopper_fmha")
class Fmha(flash.Sources):
    kernel, backend, includes = "fmha.cu", os.environ.get("FLASH_BACKEND", "cpu"), (CUTLASS / "include",)
    flags = "-DNDEBUG" + (" -fpermissive -D__CUDA_ARCH_FEAT_SM90_ALL" if backend == "cpu" else " --expt-relaxed-constexpr")

    MISTAKES = (
        (SOFTMAX, "a_sum(i) *= scale_pv;", "if (!#) a_sum(i) *= scale_pv;", "LSE"),
        (SOFTMAX, "+ __logf(sum)", "+ (# ? __log2f(sum) : __logf(sum))", "LSE"),
    )

    def setUp(self):
        self.copy_headers()
        for folder in ("collective", "kernel"):
            shutil.copytree(EXAMPLE / folder, self.copy / folder)
        if self.backend == "cpu":
            (self.copy / "cutlass/arch").mkdir(parents=True)
            (self.copy / "cutlass/cluster_launch.hpp").write_text(LAUNCHER, encoding="utf-8")
            (self.copy / "cutlass/arch/wmma.h").write_text("#pragma once\n", encoding="utf-8")
        self.plant(self.MISTAKES)

    def test_clean_and_each_mistake_found(self):
        """Tails, several tiles; on the CPU one build has all."""
        shape = "[shape]\nheads = 2\nq_len = 200\nkv_len = 300\nhead_dim = 64"
        status, text = self.run_it(shape)
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"local +(- +){9}ok +ok")
        for number, (_, old, _, stage) in enumerate(self.MISTAKES, 1):
            with self.subTest(old):
                status, text = self.run_it(shape, planted=number)
                self.assertEqual(status, 1, text)
                self.assertRegex(text, rf"{stage} is (?:the first bad stage|wrong)")


if __name__ == "__main__":
    flash.tap.main()
