#!/usr/bin/env python3
"""The short form of `make truth`, and docs/truth.md against what it says of itself."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/truth")]
import tap  # noqa: E402
import truth  # noqa: E402


class Truth(unittest.TestCase):
    def test_short_form(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "tests/truth/truth.py", "--short", "--build", BUILD],
                              cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=300,
                              check=False)
        self.assertEqual((done.returncode, "the goal is met" in done.stdout), (0, True), done.stdout)


def result(**other):
    return {"name": "x", "stage": "right", "tile": "right", "finding": "right", "stated": ["scaled-twice"],
            "wrong": [], **other}


class Goal(unittest.TestCase):
    """Each way to miss it is told."""

    def test_is_met(self):
        row = {"kernel": "k", "alarms": 0, "seed": 1}
        self.assertEqual(truth.goal_missed([result(), result(stage="not stated", stated=[])], [row]), [])

    def test_is_missed(self):
        for fault in ({"stage": "wrong"}, {"tile": "wrong"}, {"finding": "wrong"}, {"wrong": ["not-scaled"]}):
            with self.subTest(fault=fault):
                self.assertEqual(len(truth.goal_missed([result(**fault)], [])), 1)
        self.assertEqual(len(truth.goal_missed([result()], [{"kernel": "k", "alarms": 1, "seed": 1}])), 1)

    def test_one_cause_in_twenty_may_be_missing(self):
        found = [result() for _ in range(19)]
        self.assertEqual(truth.goal_missed([*found, result(finding="wrong")], []), [])
        self.assertNotEqual(truth.goal_missed([*found[1:], result(finding="wrong")], []), [])

    def test_a_name_where_none_is_stated_is_wrong(self):
        findings = [{"channel": "s", "causes": [{"name": "not-scaled"}, {"name": "scaled-twice"}]},
                    {"channel": "l", "causes": [{"name": "l-tile-dropped"}]}, {"channel": "u", "causes": []}]
        self.assertEqual(truth.wrong_names({"findings": findings}, ["scaled-twice"]), ["l-tile-dropped"])
        self.assertEqual(truth.wrong_names({"findings": findings}, []),
                         ["l-tile-dropped", "not-scaled", "scaled-twice"])


class Page(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "docs/truth.md").read_text(encoding="utf-8")

    def test_every_row_is_a_scenario(self):
        """A scenario that is newer than the page has no row yet."""
        rows = re.findall(r"^\| (\S+) \| \w+ \| (?:right|–).*? \| (?:right|–).*? \| .* \|$", self.text, re.MULTILINE)
        self.assertGreater(len(rows), 80)
        self.assertEqual([name for name in rows if not (ROOT / f"scenarios/bugs/{name}.ini").exists()], [])

    def test_every_kernel_is_there_and_the_sums_are_right(self):
        rows = re.findall(r"^\| (\w+) \| (.*?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", self.text, re.MULTILINE)
        wanted = [(Path(path).stem, " ".join(settings) or "–") for path, settings in truth.correct()]
        self.assertEqual([(name, settings) for name, settings, *_ in rows], wanted)
        runs, elements, alarms = (sum(int(row[i]) for row in rows) for i in (3, 4, 5))
        self.assertGreaterEqual(runs, 2000)
        self.assertIn(f"| {alarms} of {runs} runs, {elements} elements |", self.text)

    def test_the_goal_is_met(self):
        for right, stated in re.findall(r"^\| right (?:stage|tile).*? \| (\d+) of (\d+) \|", self.text, re.MULTILINE):
            self.assertEqual(right, stated)
        right, stated = re.search(r"^\| right cause.*? \| (\d+) of (\d+) \|", self.text, re.MULTILINE).groups()
        self.assertGreaterEqual(int(right), 0.95 * int(stated))
        self.assertIn("| wrong cause | 0 of ", self.text)
        self.assertIn("| false alarms | 0 of ", self.text)

    def test_names_that_count_as_the_same(self):
        self.assertTrue(self.text.endswith(truth.same_names()), "make truth, or its last part by hand")


if __name__ == "__main__":
    tap.main()
