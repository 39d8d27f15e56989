#!/usr/bin/env python3
"""What attnscope profile says of kernels on a real GPU, and budgets."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
SCALAR, WMMA = ROOT / "kernels/v2b_scalar.cu", ROOT / "kernels/v2c_wmma.cu"
COUNTERS = ("achieved_occupancy", "tensor_pipe", "dram_share", "dram_bytes_per_second")
SHAPE = "1,8,1024,64"


def attnscope(*arguments):
    return subprocess.run([ATTNSCOPE, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=280,
                          check=False)


def profile(kernel):
    done = attnscope("profile", kernel, "--shape", SHAPE, "--backend", "gpu", "--json")
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(done.stdout)


class Profile(unittest.TestCase):
    def check_launch(self, launch):
        self.assertEqual(launch["probes"], 0)
        self.assertIn(launch["registers"], range(8, 256))
        self.assertGreater(launch["static_shared_bytes"] + launch["dynamic_shared_bytes"], 0)
        self.assertEqual(launch["local_bytes"], 0)  # what attnscope brings along does not spill
        self.assertGreater(launch["resident_blocks"], 0)
        self.assertTrue(0 < launch["resident_warps"] <= launch["warp_slots"], launch)
        self.assertNotEqual(launch["limited_by"], "", launch)
        self.assertTrue(1e-6 < launch["seconds"] < 1, launch)

    def check_counters(self, found, launch):
        if found["not_measured"]:
            print(f"# not measured: {found['not_measured']}")
        counted = [name for name in COUNTERS if launch[name] is not None]
        print("# " + ", ".join(f"{name} {launch[name]:.4g}" for name in counted))
        if not counted:
            self.assertNotEqual(found["not_measured"], "")
            self.skipTest(found["not_measured"])
        occupancy = launch["achieved_occupancy"]
        if occupancy is not None:  # never more than fit
            self.assertTrue(0 < occupancy <= 1.02 * launch["resident_warps"] / launch["warp_slots"], launch)
        if launch["dram_share"] is not None:
            self.assertTrue(0 <= launch["dram_share"] <= 1, launch)
        if launch["dram_bytes_per_second"] is not None:
            self.assertTrue(0 <= launch["dram_bytes_per_second"] < 1e13, launch)

    def test_scalar(self):
        found = profile(SCALAR)
        self.assertEqual(len(found["list"]), 1)
        launch = found["list"][0]
        self.assertIn("v2b_scalar", launch["kernel"])
        self.check_launch(launch)
        self.check_counters(found, launch)
        if launch["tensor_pipe"] is not None:
            self.assertLess(launch["tensor_pipe"], 0.01)

    def test_tensor_cores(self):
        found = profile(WMMA)
        launch = found["list"][0]
        self.check_launch(launch)
        self.check_counters(found, launch)
        if launch["tensor_pipe"] is not None:
            self.assertTrue(0.005 < launch["tensor_pipe"] <= 1, launch)

    def test_text(self):
        done = attnscope("profile", SCALAR, "--shape", SHAPE, "--backend", "gpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("registers", "shared memory", "local memory", "occupancy", "limited by", "time"):
            self.assertIn(word, done.stdout)
        if "achieved" not in done.stdout:
            self.assertIn("counters: ", done.stdout)

    def budget(self, *settings):
        done = attnscope("run", SCALAR, "--shape", "1,1,128,64", "--backend", "gpu", "--json",
                         *(part for setting in settings for part in ("--set", f"budget.{setting}")))
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_within_budget(self):
        status, found = self.budget("registers=255", "shared_bytes=232448", "spill_bytes=0")
        self.assertEqual(status, 0, found["why"])
        self.assertEqual({limit["state"] for limit in found["budget"].values()}, {"met"})
        self.assertGreater(found["budget"]["registers"]["takes"], 0)
        self.assertEqual({launch["probes"] for launch in found["launches"]["list"]}, {0, 1})

    def test_over_budget(self):
        status, found = self.budget("registers=8")
        self.assertEqual(status, 1, found["why"])
        self.assertIn("over budget", found["why"])
        self.assertEqual(found["budget"]["registers"]["state"], "over")

    def test_a_trace_keeps_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.safetensors"
            done = attnscope("run", SCALAR, "--shape", "1,1,128,64", "--backend", "gpu", "--save", path, "--set",
                             "scenario.profile=yes", "--set", "budget.registers=8")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            shown = attnscope("show", "--view", "resources", "--size", "120x40", path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("with probes", shown.stdout)
        self.assertIn("more than 8", shown.stdout)
        self.assertIn("limited by", shown.stdout)


if __name__ == "__main__":
    tap.main()
