#!/usr/bin/env python3
"""The judge of O and LSE on a real GPU: the CPU's bits, and the time that it takes."""

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


def run(*command):
    return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)


class Judge(unittest.TestCase):
    def setUp(self):
        if not JUDGE.exists():
            self.skipTest("build/attnscope-judge is not built: make judge")
        says = run(JUDGE)
        if says.returncode:
            self.skipTest(f"it has no device: {says.stderr.strip()}")

    def test_bits(self):
        done = run(BUILD / "tests/test_gpu_judge", JUDGE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

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
