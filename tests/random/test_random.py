#!/usr/bin/env python3
"""Random runs of correct kernels raise nothing: a short form of what `make acceptance` does with 500 each."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from kernels import kernels  # noqa: E402

RUNS = 6


class Random(unittest.TestCase):
    def run_it(self, *arguments, status=0):
        done = subprocess.run([BUILD / "tests/random_runs", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=1000, check=False)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_kernels(self):
        """Variants of a kernel share its runs."""
        paths = [path for path, *_ in kernels()]
        for seed, kernel in tap.sampled(enumerate(kernels(), 21), 8):
            with self.subTest(kernel=kernel):
                self.run_it(str(RUNS // paths.count(kernel[0])), str(seed), *kernel)

    def test_my_attention(self):
        self.run_it(str(RUNS), "12", "docs/examples/with_plan.cu", "shape.head_dim=64", "shape.dtype=f16",
                    "shape.layout=BHLD")

    def test_runs_that_once_were_called_wrong(self):
        # Weights of exactly 1: most sums are exact, and another tensor core equals the run's in all that was sampled.
        nearly_exact = """shape.batch=1 shape.heads=2 shape.kv_heads=2 shape.q_len=129 shape.kv_len=117 shape.head_dim=128
            shape.causal=none shape.layout=BLHD shape.dtype=f16 shape.scale=0.001 shape.k_dtype=e4m3 scenario.define=MIXED=1 quant.scales=tensor
            fill.q.kind=one-hot fill.q.sigma=3 fill.k.kind=zeros fill.k.sigma=1 fill.v.kind=normal fill.v.sigma=1
            fill.seed=845303198"""
        for kernel, settings in (("kernels/fp8_e4m3.cu", nearly_exact),):
            done = subprocess.run([BUILD / "attnscope", "run", kernel, *[f"--set={s}" for s in settings.split()]], cwd=ROOT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_wrong_kernel_is_told_with_the_command_that_repeats_it(self):
        patch = "scenario.patch=scenarios/bugs/not-scaled.patch"
        text = self.run_it("2", "1", "kernels/v2b_scalar.cu", patch, "shape.scale=0.3", "shape.causal=none",
                           "fill.q.kind=normal", "fill.k.kind=normal", status=1)
        commands = re.findall(r"^# +attnscope (run .*)$", text, re.MULTILINE)
        self.assertEqual((len(commands), "not ok 1" in text), (2, True), text)
        again = subprocess.run([BUILD / "attnscope", *commands[0].split()], cwd=ROOT, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True, timeout=100, check=False)
        self.assertEqual(again.returncode, 1, again.stdout)
        self.assertIn("S is the first bad stage", again.stdout)

    def test_a_run_that_can_not_be_made_is_no_success(self):
        self.run_it("1", "1", "kernels/v2b_scalar.cu", "shape.head_dim=32", status=1)
        self.run_it("1", "1", "kernels/v2b_scalar.cu", "shape.q_len=0", status=1)
        self.run_it("1", "1", "kernels/none.cu", status=1)
        self.run_it("0", "1", "kernels/v2b_scalar.cu", status=1)


if __name__ == "__main__":
    tap.main()
