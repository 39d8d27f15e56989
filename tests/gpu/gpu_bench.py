#!/usr/bin/env python3
"""What attnscope bench measures on a real GPU."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402
import warps  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))


def attnscope(*arguments):
    return subprocess.run([ATTNSCOPE, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=280,
                          check=False)


def bench(*arguments):
    done = attnscope("bench", "--backend", "gpu", "--json", "--repeat", "20", *arguments)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(done.stdout)


class Bench(unittest.TestCase):
    def check_times(self, build):
        for name in ("warm", "cold", "graph"):
            times = build[name]
            if name == "graph" and times is None:
                self.assertNotEqual(build["no_graph"], "")
                continue
            self.assertGreaterEqual(times["n"], 3, build)
            self.assertTrue(1e-6 < times["min"] <= times["median"] < 10, build)
        if build["build"] == "plain":  # recording is called, and calls have a stack
            self.assertEqual(build["launches"]["list"][0]["local_bytes"], 0)

    def test_builds(self):
        found = bench(ROOT / "kernels/v2b_scalar.cu", "--shape", "1,8,512,64", "--memory", "pinned")
        builds = {build["build"]: build for build in found["builds"]}
        self.assertEqual(list(builds), ["plain", "probes off", "capture", "full capture"])
        for build in builds.values():
            self.assertNotIn("error", build)
            self.check_times(build)
            print(f"# {build['build']}: {1e6 * build['warm']['median']:.1f} us, of plain {build['slow_down']:.3f}")
        self.assertEqual(builds["plain"]["slow_down"], 1)
        self.assertEqual(builds["plain"]["recorded_bytes"], 0)
        self.assertEqual(builds["probes off"]["recorded_bytes"], 0)
        full = builds["full capture"]
        self.assertEqual(full["slots"], full["places"])
        self.assertGreater(full["recorded_bytes"], 1 << 20)
        self.assertGreater(full["copy_bytes_per_second"], 1e9)
        self.assertLess(full["bytes_per_second"], 1.1 * full["copy_bytes_per_second"])
        self.assertGreater(full["warm"]["median"], builds["plain"]["warm"]["median"])
        # A launch in a graph waits for no host.
        if builds["plain"]["graph"]:
            self.assertLess(builds["plain"]["graph"]["median"], 1.5 * builds["plain"]["warm"]["median"])

    def test_off_is_the_kernel_without_probes(self):
        """A kernel that is launched by ASC_TWICE: which of the two it is."""
        found = bench(ROOT / "kernels/fp16_mma.cu", "--shape", "1,2,256,64")
        names = {build["build"]: build["launches"]["list"][0]["kernel"] for build in found["builds"]}
        self.assertEqual(names, {"plain": "fp16_mma<__half, 64, false>", "probes off": "fp16_mma<__half, 64, false>",
                                 "capture": "fp16_mma<__half, 64, true>", "full capture": "fp16_mma<__half, 64, true>"})

    def test_text(self):
        done = attnscope("bench", ROOT / "kernels/v2c_wmma.cu", "--shape", "1,2,256,64", "--backend", "gpu",
                         "--repeat", "5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in done.stdout.splitlines():
            print("#", line)
        for word in ("plain", "probes off", "capture", "full capture", "median", "the copy engine"):
            self.assertIn(word, done.stdout)

    def test_rank(self):
        names = ["kernels/v2b_scalar.cu", "kernels/v2c_wmma.cu", "scenarios/bugs/double-scale.ini"]
        done = attnscope("bench", "--backend", "gpu", "--json", "--rank", "2", "--shape", "1,8,512,64", *names)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["time"], found["failed"]), ("cuda-events", []))
        self.assertIn("sm_", found["device"])
        self.assertEqual([Path(entry["kernel"]).name for entry in found["ranked"]], ["v2c_wmma.cu", "v2b_scalar.cu"])
        self.assertTrue(all(1e-6 < entry["min"] <= entry["median"] < 10 for entry in found["ranked"]))
        self.assertIn("scaled-twice", found["wrong"][0]["found"])

    def test_every_kernel(self):
        found = bench("--all", "--shape", "1,8,512,64")
        self.assertEqual(sorted({rung["kernel"] for rung in found}),
                         sorted(f"kernels/{path.name}" for path in (ROOT / "kernels").glob("*.cu")))
        for kernel in warps.KERNELS:
            self.assertEqual([rung["define"] for rung in found if rung["kernel"] == f"kernels/{kernel}.cu"],
                             ["WS=0", "WS=1", "WS=2"])
        for rung in found:
            with self.subTest(rung["kernel"] + rung["define"]):
                if rung.get("error") == "declined":
                    continue
                self.assertNotIn("error", rung, rung.get("message"))
                self.check_times(dict(rung, build="plain"))
                self.assertIn(rung["registers"], range(8, 256))
                self.assertGreater(rung["shared_bytes"], 0)
                self.assertEqual(rung["spill_bytes"], 0)
                self.assertTrue(0 < rung["largest_error_of_bound"] <= 1, rung)
                self.assertTrue(0 < rung["largest_error"] < 0.05, rung)  # e4m3 weights: 0.011


if __name__ == "__main__":
    tap.main()
