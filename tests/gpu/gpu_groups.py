#!/usr/bin/env python3
"""What the CPU executor takes cooperative groups for (tests/simt/groups.cu: ranks, masks, the order in which reduce adds up)
is what a GPU does."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/probes"))
import tap  # noqa: E402
from release_code import find_nvcc  # noqa: E402


class Groups(unittest.TestCase):
    def test_groups_are_what_the_executor_takes_them_for(self):
        said = json.loads(subprocess.run([ROOT / "build/attnscope-device"], stdout=subprocess.PIPE, text=True, check=False).stdout)
        if "error" in said or not find_nvcc():
            self.skipTest(said.get("error", "no nvcc here"))
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "groups"
            subprocess.run([find_nvcc(), "-std=c++17", "-w", f"-arch=sm_{said['major']}{said['minor']}", "--extended-lambda",
                            "-I", ROOT, "-I", ROOT / "tests/simt", "-o", program, "tests/gpu/groups_main.cu"], cwd=ROOT, check=True)
            done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    tap.main()
