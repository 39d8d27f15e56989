#!/usr/bin/env python3
"""A handful of the mutants of tests/checks/mutate.py, and kernels that are whole: the checks tell them apart."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402


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
        self.assertRegex(text, "never-waited|race|uninitialised")

    def test_whole_kernels_raise_nothing_and_keep_their_values(self):
        for kernel, shape in (("v2c_wmma", ("1,2,1,70,133,64", "causal")), ("fp16_mma", ("1,2,2,65,130,128", "bf16"))):
            with self.subTest(kernel=kernel):
                path = f"kernels/{kernel}.cu"
                said = [self.run_it(BUILD / "tests/run_checked", *checks, path, *shape).splitlines()
                        for checks in ((), ("-c",))]
                self.assertEqual([line for line in said[1] if line.startswith("event")], [])
                self.assertEqual(said[0][:2], said[1][:2])
                self.assertTrue(said[0][0].startswith("output "), said[0])


if __name__ == "__main__":
    tap.main()
