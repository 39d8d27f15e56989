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


def record(folder, backend, *arguments):
    path = Path(folder) / f"{backend}.safetensors"
    done = subprocess.run([ATTNSCOPE, "run", "tests/gpu/patterns.cu", *arguments, "--backend", backend, "--save",
                           str(path)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if not path.exists():
        raise RuntimeError(done.stdout + done.stderr)
    return Trace(path)


class Patterns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace = {b: record(cls.folder.name, b, "--shape", "1,1,64,64") for b in BACKENDS}

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


class Fragments(unittest.TestCase):
    """Tiles that CUDA has loaded into accumulators arrive as they were: attnscope.h knows which lane has which element."""

    def test_accumulators_lie_as_they_are_known_to(self):
        for backend in BACKENDS:
            with self.subTest(backend), tempfile.TemporaryDirectory() as folder:
                trace = record(folder, backend, "--shape", "1,1,64,64", "-D", "FRAGMENTS=1")
                self.assertEqual(trace.values("channel.s", 0, 4096), list(range(4096)))
                self.assertEqual(trace.values("channel.k", 0, 4096), [half(at / 4) for at in range(4096)])
                one = trace.values("channel.p", 0, 4096)
                self.assertEqual([at for at in range(4096) if one[at] == at], [at for at in range(4096) if at % 64 // 16 == 1])


class Units(unittest.TestCase):
    """A kernel in two files, each with probes of its own."""

    def test_both_files_record(self):
        for backend in BACKENDS:
            with self.subTest(backend), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "units.safetensors"
                done = subprocess.run([ATTNSCOPE, "run", "tests/probes/units/attention.cu", "--shape", "1,2,50,64",
                                       "--backend", backend, "--save", str(path)], cwd=ROOT, capture_output=True,
                                      text=True, timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                trace = Trace(path)
                for channel in ("k", "s", "m", "alpha", "p", "l", "u", "o", "lse"):
                    self.assertTrue(any(trace.values(f"stamp.{channel}", 0, 8)), f"{backend} {channel}")


class TilePerLane(unittest.TestCase):
    """The lanes of a warp record different tiles: each value arrives in its own lane's, and each tile has the stamps of
    all four warps."""

    def test_every_lane_in_its_own_tile(self):
        for backend in BACKENDS:
            with self.subTest(backend), tempfile.TemporaryDirectory() as folder:
                trace = record(folder, backend, "--shape", "1,32,64,64", "-D", "TILE_PER_LANE=1")
                slots = trace.values("slot", 0, 3 * 32)
                for slot in range(32):
                    head = slots[3 * slot + 1]
                    self.assertEqual(trace.values("channel.s", slot * 4096, 4096),
                                     [4096 * head + at for at in range(4096)], f"{backend} s, head {head}")
                    self.assertEqual(trace.values("channel.m", slot * 64, 64),
                                     [4096 * head + 64 * row for row in range(64)], f"{backend} m, head {head}")
                    for channel in "sm":
                        self.assertTrue(all(trace.values(f"stamp.{channel}", slot * 4, 4)), f"{backend} {channel}")


def half(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


if __name__ == "__main__":
    tap.main()
