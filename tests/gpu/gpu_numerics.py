#!/usr/bin/env python3
"""The GPU's arithmetic is what the emulator and the oracle's bounds take it for: tests/gpu/numerics.sh, on every 61st
argument of the functions and conversions (all of them: without STEP)."""

import functools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/gpu"))

import numerics_report  # noqa: E402
import tap  # noqa: E402

BUILD = Path(os.environ.get("BUILD", ROOT / "build")) / "gpu-numerics"
FOLDER = tempfile.TemporaryDirectory(prefix="attnscope-numerics-")
OUT = Path(FOLDER.name)


@functools.lru_cache(maxsize=None)
def measure():
    """Exit status and what was printed."""
    done = subprocess.run([ROOT / "tests/gpu/numerics.sh"], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
                          env=dict(os.environ, B=str(BUILD), OUT=str(OUT), STEP="61"))
    return done.returncode, done.stdout + done.stderr


class Numerics(unittest.TestCase):
    def setUp(self):
        self.status, self.said = measure()
        if self.status == 77:
            self.skipTest(self.said.strip().splitlines()[-1].removeprefix("SKIP: "))

    def rows(self):
        self.assertTrue((OUT / "numerics.tsv").exists(), self.said[-2000:])
        return numerics_report.read(OUT / "numerics.tsv")

    def test_verdict(self):
        failed = [line for line in self.said.splitlines() if line.startswith("FAIL")]
        self.assertEqual(self.status, 0, "\n".join(failed[:20] or self.said.splitlines()[-20:]))

    def test_every_part_is_measured(self):
        said, rows = self.rows()
        skipped = {row["what"] for row in rows if row["status"] == "SKIP"}
        for section in ("product", "function", "conversion"):
            self.assertTrue([row for row in rows if row["section"] == section and row["status"] == "ok"], section)
        if "sm_90," in said[0]:
            self.assertEqual(skipped, set())
            self.assertEqual({row["what"] for row in rows if row["section"] == "product" and row["equal"] != row["elements"]},
                             set())

    def test_vectors_say_the_same(self):
        vectors = list(OUT.glob("*-products.bin"))
        self.assertEqual(len(vectors), 1, self.said[-2000:])
        done = subprocess.run([BUILD / "numerics", "--replay", vectors[0]], cwd=ROOT, capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode == 0, not [row for row in self.rows()[1]
                                                   if row["status"] == "FAIL" and row["section"] == "product"], done.stdout[-2000:])

    def test_page(self):
        page = numerics_report.page(*self.rows(), "")
        self.assertIn("| `mma.m16n8k16.f32.f16.f16.f32` |", page)
        self.assertIn("| `ex2.approx.ftz.f32` |", page)


if __name__ == "__main__":
    tap.main()
