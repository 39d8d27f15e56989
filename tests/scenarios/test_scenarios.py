#!/usr/bin/env python3
"""Scenarios show what they say must be found: some of each folder, with `make test TESTS=all` all but the large ones, which
`make acceptance` runs. `make truth` runs every mistake."""

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
# How many of a folder: a mistake takes a second or two, most of it the build.
SAMPLED = {"bugs": 30, "blind": 4, "blind-60": 6, "hopper": 4}
SAMPLED_ELSEWHERE = 1
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
        include = value(path.read_text(encoding="utf-8"), "include", "")
        if not (ROOT / include).is_dir():
            self.skipTest(f"no folder {include}: make setup-cute")
        done = subprocess.run([BUILD / "attnscope", "check", path], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250, check=False)
        self.assertEqual((done.returncode, done.stdout.startswith("ok ")), (0, True), done.stdout)
    return run


for folder in sorted(path for path in (ROOT / "scenarios").iterdir() if path.is_dir()):
    small = [path for path in sorted(folder.glob("*.ini")) if size(path.read_text(encoding="utf-8")) <= MOST]
    for each in tap.sampled(small, SAMPLED.get(folder.name, SAMPLED_ELSEWHERE)):
        setattr(Scenarios, f"test_{each.relative_to(ROOT / 'scenarios')}", case_of(each))

if __name__ == "__main__":
    tap.main()
