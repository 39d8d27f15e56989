#!/usr/bin/env python3
"""The judge on a real GPU: of O and LSE the CPU's bits, of captured stages the CPU's verdicts."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402

BUILD = ROOT / "build"
ATTNSCOPE = os.environ.get("ATTNSCOPE", str(BUILD / "attnscope"))
JUDGE = BUILD / "attnscope-judge"


def run(*command, **environment):
    return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
                          env={**os.environ, **environment})


class Judge(unittest.TestCase):
    def setUp(self):
        if not JUDGE.exists():
            self.skipTest("build/attnscope-judge is not built: make judge")
        says = run(JUDGE)
        if says.returncode:
            self.skipTest(f"it has no device: {says.stderr.strip()}")

    def test_bits(self):
        """The runs are the CPU's, the judge is the GPU: nvcc would take minutes for so many kernels."""
        done = run(BUILD / "tests/test_gpu_judge", JUDGE, ATTNSCOPE_BACKEND="cpu")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_stages(self):
        """The runs are the CPU's, the judge is the GPU."""
        done = run(BUILD / "tests/test_gpu_stages", JUDGE, ATTNSCOPE_BACKEND="cpu")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_stages_of_a_gpu(self):
        """Tensor cores, a mask, tails of both tiles: every verdict is the CPU's."""
        done = run(BUILD / "tests/bench_stages", "kernels/fp16_mma.cu", 2, "shape.heads=2", "shape.q_len=300",
                   "shape.kv_len=500", "shape.head_dim=128", "shape.causal=bottom-right", "capture.judge=cpu",
                   ATTNSCOPE_BACKEND="gpu")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["good"], found["agreed"]), (found["slots"], found["slots"]), done.stdout)

    def test_every_q_tile_is_judged(self):
        """The shape of the issue's goal, less its heads: every q tile, and none of a correct kernel off."""
        done = run(ATTNSCOPE, "run", "kernels/fp16_mma.cu", "--backend", "gpu", "--shape", "1,2,65536,128", "--mem",
                   "1GiB", "--json")
        found = json.loads(done.stdout)
        first = found["first_pass"]
        self.assertEqual(first["judged"], first["wanted"], done.stderr)
        self.assertEqual(first["off"], 0)
        self.assertGreater(first["by_gpu"], 0, first["judge"])
        print(f"# {first['judge']}")


if __name__ == "__main__":
    tap.main()
