#!/usr/bin/env python3
"""The FP8 kernels against attention on what was quantized, and docs/fp8.md against what it says of itself."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

MOST_OF_U8 = 0.06  # |O - attention on the f16 inputs|
SHAPES = ("1,2,64,64", "1,4,128,64", "1,8,512,64", "2,2,64,64")


MIXED = "fp8_e4m3 MIXED=1"  # a kernel, and a macro that it is built with


def unquantized(kernel, shape, *settings):
    kernel, _, define = kernel.partition(" ")
    command = [ATTNSCOPE, "run", f"kernels/{kernel}.cu", "--json", "--backend", "cpu", "--probes", "off",
               "--shape", shape]
    if define:
        command += ["-D", define]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
                          check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)["unquantized"]


class Fp8(unittest.TestCase):
    def test_u8_is_as_near_as_it_can_be(self):
        for shape in SHAPES:
            for seed in range(3):
                with self.subTest(shape=shape, seed=seed):
                    error = unquantized("fp8_sim", shape, f"fill.seed={seed}")["largest_error"]
                    self.assertIsNotNone(error)
                    self.assertLessEqual(error, MOST_OF_U8)

    def test_all_granularities_are_taken(self):
        for kernel in ("fp8_e4m3", MIXED):
            errors = [unquantized(kernel, "1,2,64,64", "shape.k_dtype=e4m3", f"quant.scales={scales}")["rms_error"]
                      for scales in ("tensor", "head", "rows:64", "rows:5")]
            self.assertLess(max(errors), 1.2 * min(errors), errors)

    def test_q_in_f16_is_nearer(self):
        def squares(kernel):
            errors = [unquantized(kernel, "1,4,128,64", "shape.k_dtype=e4m3", f"fill.seed={seed}")["rms_error"]
                      for seed in range(3)]
            return sum(error ** 2 for error in errors)
        self.assertLess(squares(MIXED), squares("fp8_e4m3"))


class Page(unittest.TestCase):
    """What docs/fp8.md says in words is what its table says."""

    def setUp(self):
        text = (ROOT / "docs/fp8.md").read_text(encoding="utf-8")
        self.assertIn(" 20 seeds", text)
        rows = re.findall(r"^\| (fp8_\w+(?: \w+=\d)?) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", text, re.MULTILINE)
        self.rms = {(kernel, scales): tuple(map(float, errors)) for kernel, scales, *errors in rows}

    def test_every_granularity_of_every_rung(self):
        finest = ("tensor", "head", "rows:64", "rows:16")
        wanted = [("fp8_sim", "head"), *(("fp8_mma", scales) for scales in finest[:2])]
        wanted += [(kernel, scales) for kernel in ("fp8_e4m3", MIXED) for scales in finest]
        self.assertEqual(sorted(self.rms), sorted(wanted))

    def test_mixed_is_below_e4m3(self):
        for (kernel, scales), errors in self.rms.items():
            if kernel == "fp8_e4m3":
                for mixed, e4m3 in zip(self.rms[MIXED, scales], errors):
                    self.assertLess(mixed, e4m3, scales)

    def test_finer_scales_help_where_they_are_said_to(self):
        for kernel in ("fp8_e4m3", MIXED):
            normal, _, large = zip(*(self.rms[kernel, scales] for scales in ("tensor", "head", "rows:64")))
            self.assertLess(max(normal), 1.1 * min(normal))
            self.assertLess(large[1], 0.7 * large[0])
            self.assertLess(large[2], 0.9 * large[1])
            self.assertLess(large[2], 1.1 * normal[2])

    def test_u8_is_finer_where_there_are_no_outliers(self):
        u8, e4m3 = self.rms["fp8_sim", "head"], self.rms["fp8_e4m3", "head"]
        self.assertLess(u8[0], e4m3[0])
        self.assertGreater(u8[1], e4m3[1])


if __name__ == "__main__":
    tap.main()
