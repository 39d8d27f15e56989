#!/usr/bin/env python3
"""Kernels run by host code of their own on a real GPU: tensors, pointers, <<<>>>, launches by a configuration."""

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
FILES = {"extension": "2,2,50,64", "pointers": "1,2,50,64", "fragments": "2,3,64,16", "tensors": "2,2,50,64"}


def run(name, *arguments):
    return subprocess.run([ATTNSCOPE, "run", f"tests/host_code/{name}.cu", "--backend", "gpu", *arguments], cwd=ROOT,
                          capture_output=True, text=True, timeout=280, check=False)


class HostCode(unittest.TestCase):
    def clean(self, name, *arguments):
        done = run(name, "--shape", FILES[name], "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout)["run"]["backend"], "gpu")

    def test_tensors(self):
        self.clean("extension")
        self.clean("extension", "--set", "shape.causal=top-left")
        self.clean("tensors")

    def test_pointers(self):
        self.clean("pointers")

    def test_fragments(self):
        self.clean("fragments")
        for stage in ("s", "m", "l", "p"):
            done = run("fragments", "--shape", FILES["fragments"], "--isolate", stage)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_the_call_leaves_out_is_declined(self):
        done = run("extension", "--shape", "1,1,64,64", "--set", "shape.softcap=3")
        self.assertEqual((done.returncode, done.stderr), (2, "attnscope: extension: its host code does not take softcap\n"))

    def test_host_code_that_exits_declines(self):
        done = run("fragments", "--shape", "1,1,64,64")
        self.assertEqual((done.returncode, done.stderr), (2, "attnscope: fragments: its host code called exit(2)\n"))

    def test_what_host_code_allocates_is_never_written(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "tests/host_code/extension.cu", folder)
            text = (ROOT / "tests/host_code/flash.cuh").read_text(encoding="utf-8")
            (Path(folder) / "flash.cuh").write_text(text.replace("x < d; x++)\n        O[", "x < d - 1; x++)\n        O["),
                                                    encoding="utf-8")
            done = subprocess.run([ATTNSCOPE, "run", f"{folder}/extension.cu", "--backend", "gpu", "--shape", "1,1,50,64"],
                                  cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("O was never written in 50 of 3200 elements", done.stdout)

    def test_launches_are_reported(self):
        done = subprocess.run([ATTNSCOPE, "profile", "tests/host_code/pointers.cu", "--shape", FILES["pointers"], "--json"],
                              cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        launches = json.loads(done.stdout)["list"]
        self.assertEqual([launch["block"][0] for launch in launches], [32, 32, 32])
        self.assertIn("flash<float>", launches[0]["kernel"])


if __name__ == "__main__":
    tap.main()
