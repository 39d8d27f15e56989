#!/usr/bin/env python3
"""Every scenario that comes along shows what it says must be found; the large ones of scenarios/acceptance are left to
`make acceptance`."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

MOST = 8 * 512 * 512  # scores: sequences times heads times queries times keys
# How many of these folders; `make truth` runs all of the first.
BLIND = {"blind": 6, "blind-60": 6, "blind-20": 1, "blind-20b": 1, "blind-20c": 2, "blind-20d": 2, "blind-20e": 3,
         "blind-20f": 2, "blind-20g": 2, "blind-20h": 1, "blind-20i": 2, "hopper": 4}
STAGES = ("q", "k", "v", "s", "m", "alpha", "p", "l", "u", "o", "lse")


def value(text, key, otherwise):
    found = re.search(rf"^{key} = (.*)$", text, re.MULTILINE)
    return found.group(1) if found else otherwise


def size(text):
    q_len = int(value(text, "q_len", 512))
    return int(value(text, "batch", 1)) * int(value(text, "heads", 8)) * q_len * int(value(text, "kv_len", q_len))


class Scenarios(unittest.TestCase):
    def test_bugs_cover_every_stage_and_two_at_once(self):
        culprits = [value(path.read_text(encoding="utf-8"), "culprits", "").split(",")
                    for path in (ROOT / "scenarios/bugs").glob("*.ini")]
        self.assertLessEqual(set(STAGES), {stage for stages in culprits for stage in stages})
        self.assertTrue(any(len(stages) > 1 for stages in culprits))


def case_of(path):
    def run(self):
        done = subprocess.run([BUILD / "attnscope", "check", path], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250, check=False)
        self.assertEqual((done.returncode, done.stdout.startswith("ok ")), (0, True), done.stdout)
    return run


left_out = set()
for folder, most in BLIND.items():
    blind = sorted((ROOT / "scenarios" / folder).glob("*.ini"))
    left_out |= set(blind) - set(blind[::-(-len(blind) // most) or 1])
for each in sorted((ROOT / "scenarios").rglob("*.ini")):
    if each not in left_out and size(each.read_text(encoding="utf-8")) <= MOST:
        setattr(Scenarios, f"test_{each.relative_to(ROOT / 'scenarios')}", case_of(each))

if __name__ == "__main__":
    tap.main()
