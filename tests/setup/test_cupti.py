#!/usr/bin/env python3
"""What is called of CUPTI is declared anew in engine/gpu/cupti.h. Where CUPTI's own headers are, they agree;
where its library is, it takes those structures and knows the counters' metrics."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402

SOURCES = ("tests/gpu/cupti_metrics.c", "engine/gpu/cupti.c", "engine/base/err.c")


def include_folders():
    """Folders of cuda.h and of CUPTI's headers of 12.6 or later; None: they are not here."""
    homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    nvcc = shutil.which("nvcc")
    if nvcc:
        homes.append(str(Path(nvcc).resolve().parents[1]))
    for home in filter(None, homes):
        folders = [Path(home) / "include", Path(home) / "extras/CUPTI/include"]
        if (folders[0] / "cuda.h").exists() and any((f / "cupti_range_profiler.h").exists() for f in folders):
            return folders
    return None


class Cupti(unittest.TestCase):
    def compile(self, source):
        folders = include_folders()
        if not folders:
            self.skipTest("no CUPTI headers")
        flags = [flag for folder in folders for flag in ("-isystem", str(folder))]
        return subprocess.run(["g++", "-std=c++17", "-fsyntax-only", "-I", str(ROOT), *flags, "-x", "c++", "-"],
                              input=source, capture_output=True, text=True, timeout=120, check=False)

    def test_the_headers_agree(self):
        done = self.compile('#include "tests/gpu/cupti_layout.cpp"\n')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_difference_is_seen(self):
        done = self.compile('#include "tests/gpu/cupti_layout.cpp"\n'
                            "FIELD(cupti_stop, level, CUpti_RangeProfiler_Stop_Params, passIndex);\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cupti_stop.level is not CUpti_RangeProfiler_Stop_Params.passIndex", done.stderr)

    def test_every_chip_has_the_counters(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "metrics"
            built = subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-I", str(ROOT), "-o", str(program),
                                    *(str(ROOT / source) for source in SOURCES), "-ldl"],
                                   capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(built.returncode, 0, built.stderr)
            done = subprocess.run([program, os.environ.get("CUDA_HOME", "/usr/local/cuda")], capture_output=True,
                                  text=True, timeout=120, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counters = re.findall(r'^COUNTER\((\w+), [\d.]+, "(\S+)"\)$',
                              (ROOT / "engine/gpu/counters.def").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(counters), 3)
        for line in done.stdout.splitlines():
            chip, *metrics = line.split()
            self.assertEqual({field for field, metric in counters if metric in metrics},
                             {field for field, _ in counters}, chip)


if __name__ == "__main__":
    tap.main()
