#!/usr/bin/env python3
"""What is called of CUPTI is declared anew in engine/runners/gpu/cupti.h; where CUPTI's own headers are, they agree."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402


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


if __name__ == "__main__":
    tap.main()
