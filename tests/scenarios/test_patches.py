#!/usr/bin/env python3
"""Every patch of the repository fits the file that it names. It takes a second; whether the mistake is found is
test_scenarios.py's."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

PATCHES = sorted([*ROOT.glob("scenarios/*/*.patch"), *ROOT.glob("tests/*/*.patch")])


class Patches(unittest.TestCase):
    def test_every_patch_fits(self):
        self.assertGreater(len(PATCHES), 90)
        for path in PATCHES:
            name = str(path.relative_to(ROOT))
            text = path.read_text(encoding="utf-8")
            target = re.search(r"^--- a/(\S+)", text, re.M)[1]
            done = subprocess.run(["patch", "--dry-run", "-p1", "-F0", "-f", "-o", "/dev/null", target], cwd=ROOT,
                                  input=text, capture_output=True, text=True, check=False)
            with self.subTest(name):
                self.assertEqual(done.returncode, 0, f"{name}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    tap.main()
