#!/usr/bin/env python3
"""Where probes write on a GPU: into the guardian's device memory, the kernel's own or the host's, a run leaves the same
trace; where device memory lacks, it says so and takes the host's."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
KINDS = ("guard", "device", "pinned")
# Fragments and rows, a block of warps with roles, host code and a launch of its own, tails that no vector fits.
RUNS = (("kernels/fp16_mma.cu", "1,2,300,64"), ("kernels/fp16_mma.cu", "1,2,300,64", "-D", "WS=2"), ("kernels/v2b_scalar.cu", "2,2,77,64"),
        ("kernels/fp8_e4m3.cu", "1,2,200,64"), ("tests/host_code/fragments.cu", "2,3,64,16"),
        ("tests/host_code/extension.cu", "2,2,50,64"))


def run(kernel, shape, *more):
    return subprocess.run([ATTNSCOPE, "run", kernel, "--shape", shape, "--backend", "gpu", *more], cwd=ROOT, capture_output=True,
                          text=True, timeout=280, check=False)


class Memory(unittest.TestCase):
    def test_the_trace_is_the_same(self):
        for kernel, shape, *more in RUNS:
            with self.subTest(kernel=kernel, more=more), tempfile.TemporaryDirectory() as folder:
                for kind in KINDS:
                    done = run(kernel, shape, *more, "--memory", kind, "--save", f"{folder}/{kind}.safetensors", "--json")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertEqual(json.loads(done.stdout)["run"]["memory"], kind)
                for kind in KINDS[1:]:
                    # For pinned memory a kernel is built with other probes: the compiler may contract a product and a sum elsewhere.
                    exact = [] if kind == "pinned" else ["--exact"]
                    done = subprocess.run([ATTNSCOPE, "diff", *exact, f"{folder}/guard.safetensors", f"{folder}/{kind}.safetensors"],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, f"{kernel}, {kind}: {done.stdout}{done.stderr}")

    def test_the_default_is_the_guardian_s(self):
        done = run("kernels/fp16_mma.cu", "1,2,300,64")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("recorded in device memory that a guardian keeps", done.stdout)

    def test_where_there_is_no_guardian(self):
        """A tree whose guardian ends at once."""
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder) / "build"
            build.mkdir()
            for path in [*ROOT.glob("*"), *(ROOT / "build").glob("*")]:
                if path.name not in ("build", "attnscope", "attnscope-device", "cache"):
                    (Path(folder) / path.relative_to(ROOT)).symlink_to(path)
            shutil.copy(ATTNSCOPE, build / "attnscope")
            (build / "attnscope-device").write_text(f'#!/bin/sh\n[ "$1" = guard ] && exit 1\nexec {ROOT}/build/attnscope-device "$@"\n',
                                                    encoding="utf-8")
            (build / "attnscope-device").chmod(0o755)
            arguments = ["run", "kernels/v2b_scalar.cu", "--shape", "1,2,77,64", "--backend", "gpu"]
            done = subprocess.run([build / "attnscope", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("recorded in pinned memory: the guardian of device memory", done.stdout)
            done = subprocess.run([build / "attnscope", *arguments, "--memory", "guard"], cwd=ROOT, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertIn("guard cannot be had: the guardian of device memory", done.stderr)


if __name__ == "__main__":
    tap.main()
