#!/usr/bin/env python3
"""What attnscope-device says of a device's products is what tests/gpu/numerics.sh has recorded, and a run says it."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from test_arithmetic import H200  # noqa: E402

KNOWN = {(8, 0): "f32 a100", (8, 6): "f32 a100", (8, 9): "f32 a100 ada-e4m3", (9, 0): H200, (10, 0): "f32 h100"}


def device(*question):
    done = subprocess.run([ROOT / "build/attnscope-device", *question], stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout)


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.device = device()
        if "error" in self.device:
            self.skipTest(self.device["error"])
        said = device("arithmetic")
        self.assertNotIn("error", said)
        self.cores = set(said["cores"].split())

    def test_what_is_known_of_it(self):
        known = KNOWN.get((self.device["major"], self.device["minor"]))
        if not known:
            self.skipTest(f"nothing is known of {self.device['name']}; it computes {sorted(self.cores)}")
        self.assertLessEqual(set(known.split()), self.cores)

    def test_a_run_says_it(self):
        done = subprocess.run([ROOT / "build/attnscope", "run", "kernels/v2c_wmma.cu", "--backend", "gpu", "--shape", "1,2,128,64"],
                              cwd=ROOT, env=dict(os.environ, ATTNSCOPE_PROGRESS="no"), stdout=subprocess.PIPE, text=True, check=False)
        words = "as h100" if "h100" in self.cores else "as a100" if "a100" in self.cores else "unknown: bounds decide"
        self.assertIn(f"arithmetic of this GPU: {words}\n", done.stdout)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    tap.main()
