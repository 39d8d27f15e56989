#!/usr/bin/env python3
"""What probes write from a GPU arrives where it belongs, however the threads of a warp hold it; and the same as on the
CPU, bit for bit."""

import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402
from read_trace import Trace  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
BACKENDS = os.environ.get("PATTERNS_BACKENDS", "gpu,cpu").split(",")


class Patterns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace = {}
        for backend in BACKENDS:
            path = Path(cls.folder.name) / f"{backend}.safetensors"
            done = subprocess.run([ATTNSCOPE, "run", "tests/gpu/patterns.cu", "--shape", "1,1,64,64", "--backend",
                                   backend, "--save", str(path)], cwd=ROOT, capture_output=True, text=True,
                                  timeout=120, check=False)
            if not path.exists():
                raise RuntimeError(done.stdout + done.stderr)
            cls.trace[backend] = Trace(path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, channel, want):
        """want(row, col): the value, or None where nothing was written."""
        for backend, trace in self.trace.items():
            rows, cols = trace.tensors[f"channel.{channel}"]["shape"][-2:]
            values = trace.values(f"channel.{channel}", 0, rows * cols)
            for r in range(rows):
                for c in range(cols):
                    got, wanted = values[r * cols + c], want(r, c)
                    same = math.isnan(got) if wanted is None else got == wanted
                    self.assertTrue(same, f"{backend} {channel}[{r},{c}]: {got}, not {wanted}")

    def test_accumulators(self):
        self.check("s", lambda r, c: 64 * r + c)

    def test_accumulators_of_16_bits(self):
        self.check("k", lambda r, c: half((64 * r + c) / 4))

    def test_half_a_row_per_lane(self):
        self.check("u", lambda r, c: 64 * r + c)

    def test_pairs_of_16_bits(self):
        self.check("v", lambda r, c: half((64 * r + c) / 4))

    def test_scattered_by_half_a_warp(self):
        def want(r, c):
            lane = r % 16 * 2
            there = c >= 32 if lane % 4 else c < 32
            return 64 * (r // 16 * 16 + lane // 4) + lane % 4 * 2 if there else None
        self.check("p", want)

    def test_seven_rows(self):
        self.check("q", lambda r, c: half((64 * r + c) / 4) if r < 7 else None)

    def test_some_rows(self):
        self.check("m", lambda r, c: 64 * r if r < 50 else None)

    def test_beyond_the_tile(self):
        for trace in self.trace.values():
            self.assertEqual(trace.values("dropped", 0, 11)[5], 128)


def half(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


if __name__ == "__main__":
    tap.main()
