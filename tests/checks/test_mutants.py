#!/usr/bin/env python3
"""A handful of the mutants of tests/checks/mutate.py, and kernels that are whole: the checks tell them apart."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from kernels import choices  # noqa: E402


class Mutants(unittest.TestCase):
    def run_it(self, program, *arguments):
        done = subprocess.run([program, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, timeout=500, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_a_handful(self):
        text = self.run_it("tests/checks/mutate.py", "--build", BUILD / "tests", "--only", "2",
                           ROOT / "kernels/v2c_cpasync.cu")
        self.assertIn("2 mutants, 0 missed", text)
        self.assertRegex(text, "never-waited|race|uninitialized")

    def outputs(self, *arguments):
        """Lines of O and LSE; there must be no report."""
        lines = self.run_it(BUILD / "tests/run_checked", *arguments).splitlines()
        self.assertEqual([line for line in lines if line.startswith("event")], [])
        return [line for line in lines if line.startswith("output ")]

    def test_store_beyond_a_tail(self):
        """Its last rows have no place, those before are another head's: both are said, whichever comes first."""
        source = (ROOT / "kernels/fp16_mma.cu").read_text()
        test = "if (global_row >= p.q_len)"
        self.assertEqual(source.count(test), 1)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "kernels/ladder.cuh", folder)
            kernel = Path(folder) / "tail.cu"
            kernel.write_text(source.replace(test, "if (false)"))
            done = subprocess.run([BUILD / "tests/run_checked", "-c", kernel, "1,2,2,33,64,64"], cwd=ROOT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=100, check=False)
        line = 1 + source[:source.index("*reinterpret_cast<uint4 *>(o) = ")].count("\n")
        kinds = [event.split()[1] for event in done.stdout.splitlines() if re.match(rf"event \S+ \S*tail.cu:{line} ", event)]
        self.assertEqual((done.returncode, sorted(kinds)), (1, ["address", "two-writers"]), done.stdout)

    def test_whole_kernels_raise_nothing(self):
        """Kernels in their variants, in two orders of lanes and warps: tails, groups, rows without a key."""
        variants = ((kernel, define) for kernel in sorted((ROOT / "kernels").glob("*.cu")) for define in choices(kernel))
        for kernel, define in tap.sampled(variants, 9):
            with self.subTest(kernel=kernel.stem, define=define):
                found = self.outputs("-c", "-o", "ascending,shuffled:1", *(("-D", define) if define else ()), kernel,
                                     "1,2,1,70,133,64", "1,2,2,130,70,64", "shape.causal=bottom-right",
                                     "1,1,1,5,3,64", "shape.layout=BLHD")
                self.assertEqual((len(found), len(set(found))), (6, 3), found)

    def test_whole_kernels_keep_their_values(self):
        for kernel, *shape in (("v2c_wmma", "1,2,1,70,133,64", "shape.causal=top-left"),
                               ("fp16_mma", "1,2,2,65,130,128", "shape.dtype=bf16")):
            with self.subTest(kernel=kernel):
                path = f"kernels/{kernel}.cu"
                orders = "ascending,descending," + ",".join(f"shuffled:{seed}" for seed in range(4))
                found = self.outputs("-c", path, *shape) + self.outputs("-o", orders, path, *shape)
                self.assertEqual((len(found), len(set(found))), (7, 1), found)


if __name__ == "__main__":
    tap.main()
