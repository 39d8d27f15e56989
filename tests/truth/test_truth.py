#!/usr/bin/env python3
"""The short form of `make truth`, and docs/truth.md against what it says of itself."""

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
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
            "wrong": [], "said": True, **other}


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


class Blind(unittest.TestCase):
    """Mistakes that were written down before they were run."""

    def test_every_scenario_says_what_is_wrong_and_where_and_no_name(self):
        names = set(truth.cause_names().values())
        for path in truth.blind_paths():
            with self.subTest(scenario=path.stem):
                text = path.read_text(encoding="utf-8")
                self.assertNotEqual(truth.what(text), "")
                self.assertRegex(text, r"(?m)^verdict = fail$")
                self.assertRegex(text, r"(?m)^(first|event_at|culprits) = ")
                self.assertNotRegex(text, r"(?m)^cause\b")
                self.assertTrue(path.with_suffix(".patch").exists())
                self.assertLessEqual(set(truth.accepted_names(text)), names)

    def test_the_comment_is_read(self):
        text = "; The row sum leaves out\n; the last key.\n; accepted: l-tile-dropped, u-key-dropped\n[scenario]\n; no\n"
        self.assertEqual(truth.what(text), "The row sum leaves out the last key.")
        self.assertEqual(truth.accepted_names(text), ["l-tile-dropped", "u-key-dropped"])
        self.assertEqual(truth.accepted_names("; accepted:\n"), [])

    def graded(self, text, *causes):
        """What blind() makes of a run that names these causes of S."""
        found = {"run": {"kernel": "k"}, "parts": {"stage": "right", "tile": "wrong", "finding": "not stated"},
                 "as_expected": False, "why": "elsewhere", "events": [],
                 "findings": [{"channel": "s", "causes": [{"name": name} for name in causes]}]}
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(truth, "check", return_value=found):
            path = Path(folder) / "x.ini"
            path.write_text(text, encoding="utf-8")
            return truth.blind(BUILD, path)

    def test_a_name_counts_if_it_is_accepted(self):
        stated, bare = "; what\n; accepted: scaled-twice\n", "; what\n"
        for text, causes, names, wrong in ((stated, ("not-scaled", "scaled-twice"), ["scaled-twice"], []),
                                           (stated, ("not-scaled",), [], ["not-scaled"]), (stated, (), [], []),
                                           (bare, ("scaled-twice",), [], ["scaled-twice"]), (bare, (), [], [])):
            with self.subTest(text=text, causes=causes):
                found = self.graded(text, *causes)
                self.assertEqual((found["names"], found["wrong"]), (names, wrong))
                self.assertEqual(len(truth.goal_missed([], [], [found])), 1 + bool(wrong))  # its tile is wrong

    def test_what_counts_as_said(self):
        nothing, named = {"channel": "s", "causes": []}, {"channel": "s", "causes": [{"name": "x"}]}
        for findings, events, counts in (([], [], False), ([nothing], [], False), ([nothing, named], [], True),
                                         ([dict(nothing, rule="S = 2 s")], [], True), ([dict(nothing, channel="loop")], [], True),
                                         ([nothing], ["fp-invalid"], False), ([nothing], ["fp-invalid", "race"], True)):
            result = {"findings": findings, "events": [{"kind": kind} for kind in events]}
            self.assertEqual(truth.said(result), counts, result)

    def test_the_page_has_their_share_of_all(self):
        row = {"runs": 1, "elements": 2, "alarms": 0}
        blinds = [self.graded("; one\n; accepted: scaled-twice\n", "scaled-twice"), self.graded("; two\n"),
                  self.graded("; three\n", "m-not-carried")]
        text = truth.summary([result(), result(stated=[])], blinds, [row])
        self.assertIn("| right stage | 2 of 2 | 3 of 3 |", text)
        self.assertIn("| explained: a true cause is named | 1 of 2 (50 %) | 1 of 3 (33 %) | 28 of 85 (33 %) |", text)
        self.assertIn("not graded by hand | 2 of 2 (100 %) | 2 of 3 (67 %) |", text)
        self.assertIn("| a wrong cause is named | 0 of 2 | 1 of 3 |", text)
        self.assertIn("| x | k | three | right | wrong | wrong: m-not-carried |", truth.blind_table(blinds))
        self.assertIn("| none yet |", truth.summary([result()], [], [row]))


class LongForm(unittest.TestCase):
    def test_seeds_are_its_own_and_parts_add_up(self):
        chunks = truth.LONG_RUNS // truth.LONG_CHUNK
        seeds = {truth.chunk(number)[1] for number in range(chunks)}
        self.assertEqual((len(seeds), chunks * truth.LONG_CHUNK), (chunks, truth.LONG_RUNS))
        self.assertGreater(min(seeds), truth.FIRST_SEED + len(truth.correct()))
        self.assertEqual({truth.chunk(number)[0] for number in range(chunks)}, set(truth.correct()))
        self.assertEqual(truth.part_of("2/8"), (2, 8))
        for text in ("0/8", "9/8", "2", "a/b"):
            self.assertRaises(argparse.ArgumentTypeError, truth.part_of, text)

    def test_a_raised_run_is_a_failure(self):
        row = {"kernel": "k", "settings": "", "seed": 1, "runs": truth.LONG_CHUNK, "elements": 5, "alarms": 0, "said": []}
        for alarms, status in ((0, 0), (1, 1)):
            with unittest.mock.patch.object(truth, "random_runs", return_value={**row, "alarms": alarms}), \
                    contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(truth.long_form(BUILD, truth.LONG_RUNS, (3, 4)), status)
            self.assertIn(f"2500 random runs of correct kernels, seeds {truth.FIRST_LONG_SEED + 200} to "
                          f"{truth.FIRST_LONG_SEED + 299}", out.getvalue())


class Page(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "docs/truth.md").read_text(encoding="utf-8")

    def test_every_row_is_a_scenario(self):
        """A scenario that is newer than the page has no row yet."""
        rows = re.findall(r"^\| (\S+) \| \w+ \| (?:right|–).*? \| (?:right|–).*? \| .* \|$", self.text, re.MULTILINE)
        self.assertGreater(len(rows), 80)
        self.assertEqual([name for name in rows if not (ROOT / f"scenarios/bugs/{name}.ini").exists()], [])

    def test_every_kernel_is_there_and_the_sums_are_right(self):
        row = re.compile(r"^\| (\w+) \| (.*?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
        text, _, at_once = self.text.partition(truth.ALL_HEAD)
        rows, together = row.findall(text), row.findall(at_once)
        self.assertEqual([int(row[5]) for row in together], [0] * len(truth.ALL_WAYS))
        self.assertGreaterEqual(sum(int(row[3]) for row in together), 2000)
        wanted = [(Path(path).stem, " ".join(settings) or "–") for path, settings in truth.correct()]
        self.assertEqual([(name, settings) for name, settings, *_ in rows], wanted)
        runs, elements, alarms = (sum(int(row[i]) for row in rows) for i in (3, 4, 5))
        self.assertGreaterEqual(runs, 2000)
        self.assertIn(f"| {alarms} of {runs} runs, {elements} elements |", self.text)

    def test_the_goal_is_met(self):
        for right, stated in re.findall(r"^\| right (?:stage|tile).*? \| (\d+) of (\d+) \|", self.text, re.MULTILINE):
            self.assertEqual(right, stated)
        stated, right = re.search(r"of the (\d+) runs with a name (\d+) get it", " ".join(self.text.split())).groups()
        self.assertGreaterEqual(int(right), 0.95 * int(stated))
        self.assertIn("| a wrong cause is named | 0 of ", self.text)
        self.assertIn("| false alarms | 0 of ", self.text)

    def test_names_that_count_as_the_same(self):
        self.assertTrue(self.text.endswith(truth.same_names()), "make truth, or its last part by hand")


if __name__ == "__main__":
    tap.main()
