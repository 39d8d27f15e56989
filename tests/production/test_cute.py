#!/usr/bin/env python3
"""kernels/cute on the CPU. Its headers are CUTLASS's: `make setup-cute` installs them, or CUTLASS names their folder."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
INCLUDE = Path(os.environ.get("CUTLASS", ROOT / "build/cute/cutlass_library/source/include"))
KERNEL = "kernels/cute/fp16_cute.cu"


@unittest.skipUnless((INCLUDE / "cute/tensor.hpp").is_file(), f"no CUTLASS in {INCLUDE}: make setup-cute")
class Cute(unittest.TestCase):
    def run_it(self, *arguments, kernel=KERNEL, **more):
        done = subprocess.run([ATTNSCOPE, "run", kernel, "-I", INCLUDE, "--backend", "cpu", "--no-retry", *arguments], cwd=ROOT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
        return done.returncode, done.stdout + done.stderr

    def clean(self, *arguments, **more):
        status, text = self.run_it(*arguments, **more)
        self.assertEqual(status, 0, text)
        for stage in ("S", "U"):
            self.assertIn(f"{stage}: bit-equal to h100\n", text)
        self.assertNotIn("event:", text)

    def test_clean(self):
        self.clean("--shape", "1,2,200,64")
        self.clean("--shape", "1,4,130,64", "--set", "shape.kv_heads=2", "--set", "shape.causal=bottom-right",
                   "--set", "shape.kv_len=201")
        self.clean("--shape", "1,2,100,64", "--set", "shape.dtype=bf16", "--set", "shape.layout=BLHD")
        self.clean("--shape", "1,1,70,128")

    def test_rows_without_keys(self):
        self.clean("--shape", "1,1,200,64", "--set", "shape.causal=bottom-right", "--set", "shape.kv_len=90")

    def test_checked_by_either_compiler(self):
        self.clean("--shape", "1,2,200,64", "--checks")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("g++", "as", "ld", "objcopy"):
                Path(folder, name).symlink_to(shutil.which(name))
            self.clean("--shape", "1,2,200,64", "--checks", env={**os.environ, "PATH": folder})

    def test_isolated(self):
        status, text = self.run_it("--shape", "1,2,100,64", "--isolate", "u")
        self.assertEqual(status, 0, text)
        self.assertIn("every stage is clean, isolated and in the ordinary run", text)

    def changed(self, old, new, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            text = (ROOT / KERNEL).read_text(encoding="utf-8").replace('"../ladder.cuh"', f'"{ROOT}/kernels/ladder.cuh"')
            self.assertIn(old, text)
            path = Path(folder, "changed.cu")
            path.write_text(text.replace(old, new), encoding="utf-8")
            status, said = self.run_it(*arguments, kernel=path)
        self.assertEqual(status, 1, said)
        return said, 1 + text.split(old)[0].count("\n")

    def test_events_name_the_kernel(self):
        """A missing barrier is said where the kernel calls CuTe, not in CuTe."""
        text, _ = self.changed("__syncthreads(); // the tile is there", "// the tile is there", "--shape", "1,1,200,64",
                               "--checks")
        events = [line for line in text.splitlines() if line.startswith("event: race")]
        self.assertTrue(events, text)
        for line in events:
            self.assertIn("changed.cu:", line)
            self.assertNotIn("/cute/", line)

    def test_permuted_columns(self):
        text, _ = self.changed("ASC_CUTE_C(u, kt, mine, BR, D, u);",
                               "ASC_CUTE_C_AT(u, kt, mine, BR, D, [](int row, int col) { return make_coord(row, col ^ 8); }, u);",
                               "--shape", "1,1,100,64")
        self.assertIn("U is the first bad stage", text)


if __name__ == "__main__":
    tap.main()
