#!/usr/bin/env python3
"""`attnscope sweep`: the rule is that of the mistake in the kernel, shards together are the whole, and what docs/sweep.md
shows for Slurm and GitHub Actions runs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import schema  # noqa: E402
import tap  # noqa: E402

SCHEMA = json.loads((ROOT / "docs/sweep.schema.json").read_text(encoding="utf-8"))
DIFF_SCHEMA = json.loads((ROOT / "docs/diff.schema.json").read_text(encoding="utf-8"))
# Keys beyond the end are not masked: it fails where a tile has some, and a query sees them.
CHANGES = (("key < p.kv_len && key", "key"), ("k[key * p.kv", "k[min(key, p.kv_len - 1) * p.kv"),
           ('#include "attnscope.h"', '#if WRONG\n#error "WRONG must be 0"\n#endif\n#include "attnscope.h"'))
OVER = ("--over", "kv_len,q_len,causal")
TIMES = re.compile(r'("seconds": |time=")[0-9.e-]+|\d+\.\d s$', re.MULTILINE)


def without_times(text):
    return TIMES.sub("TIME", text)


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="attnscope-sweep-"))
        text = (ROOT / "docs/examples/with_plan.cu").read_text(encoding="utf-8")
        for old, new in CHANGES:
            assert old in text, old
            text = text.replace(old, new)
        (cls.folder / "my_attention.cu").write_text(text, encoding="utf-8")
        cls.environment = dict(os.environ, ATTNSCOPE_PROGRESS="no", PATH=f"{BUILD}:{os.environ['PATH']}",
                               LC_ALL="C.UTF-8")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_in(self, *command, status=None, **environment):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100, check=False,
                              env=dict(self.environment, **environment))
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def sweep(self, *arguments, status):
        return self.run_in("attnscope", "sweep", *arguments, status=status)

    def test_the_rule_is_that_of_the_mistake(self):
        done = self.sweep("my_attention.cu", *OVER, "--json", "--junit", "sweep.xml", status=1)
        result = json.loads(done.stdout)
        self.assertEqual(schema.faults(result, SCHEMA), [])
        first = result["rules"][0]
        self.assertEqual(first["where"], "causal = none and kv_len % 32 != 0")
        inside = [point for point in result["points"]
                  if point["at"]["shape.causal"] == "none" and int(point["at"]["shape.kv_len"]) % 32]
        failing = [point for point in result["points"] if point["result"] == "fail"]
        self.assertEqual(len(result["points"]), 200)
        self.assertEqual((first["points_inside"], first["points_outside"]), (len(inside), 200 - len(inside)))
        self.assertEqual(first["failing_inside"], sum(point["result"] == "fail" for point in inside))
        self.assertEqual(first["failing_inside"] + first["failing_outside"], len(failing))
        self.assertEqual(first["failing_inside"], len(inside))
        self.assertGreater(first["failing_outside"], 0)
        self.assertIn("causal = top-left", result["rules"][1]["where"])
        self.assertEqual(result["rules"][1]["failing_outside"], 0)
        again = self.run_in("bash", "-c", failing[0]["command"], status=1)
        self.assertIn("S", again.stdout)
        suite = ElementTree.parse(self.folder / "sweep.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("200", str(len(failing))))

    def test_a_rule_that_holds_exactly(self):
        text = self.sweep("my_attention.cu", "--over", "kv_len,q_len", "--runs", "60", status=1).stdout
        self.assertRegex(text, r"(?m)^fails exactly where kv_len % 32 != 0: (\d+) of \1 fail there, 0 of \d+ elsewhere$")

    def test_where_there_is_no_rule(self):
        right = self.sweep("my_attention.cu", "--over", "kv_len=32,64", "--over", "seed", status=0)
        self.assertIn("all 8 points that ran are right", right.stdout)
        wrong = self.sweep("my_attention.cu", "--over", "kv_len=31,33", status=1)
        self.assertIn("fails at all 2 points that ran", wrong.stdout)
        few = self.sweep("my_attention.cu", "--over", "kv_len=32,33,64", status=1)
        self.assertIn("by no rule that these points can tell from chance", few.stdout)

    def test_a_kernel_that_is_not_deterministic(self):
        text = (ROOT / "docs/examples/with_plan.cu").read_text(encoding="utf-8")
        turns = "static int launches;\n    p.scale *= launches++ % 2 ? 1.0f : 1.5f;\n    return ASC_LAUNCH("
        self.assertEqual(text.count("return ASC_LAUNCH("), 1)
        (self.folder / "turns.cu").write_text(text.replace("return ASC_LAUNCH(", turns), encoding="utf-8")
        result = json.loads(self.sweep("turns.cu", "--over", "kv_len=31,33,64", "--set", "shape.heads=1", "--set",
                                       "shape.q_len=8", "--json", "--save", "turns.json", status=1).stdout)
        self.assertEqual(schema.faults(result, SCHEMA), [])
        self.assertRegex(result["said"][0], r"^not deterministic: kv_len=\d+: 2 of 4 runs fail; what follows is of one run each$")
        self.assertEqual([point["again"] for point in result["points"] if "again" in point], [[2, 4], [2, 4]])
        again = self.run_in("attnscope", "show", "turns.json", "--view", "sweep", status=0).stdout
        self.assertIn("not deterministic: kv_len=", again)
        shrunk = self.run_in("attnscope", "shrink", "turns.cu", "--shape", "1,1,8,33,64", "--save", "turns.ini", status=3)
        self.assertRegex(shrunk.stderr, r"attnscope: the kernel is not deterministic: \S+ failed in this way, and did not in [23] of 5 more runs\n$")
        self.assertFalse((self.folder / "turns.ini").exists())

    def test_two_kernels(self):
        shutil.copy(ROOT / "docs/examples/with_plan.cu", self.folder / "mended.cu")
        before = self.sweep("my_attention.cu", *OVER, "--runs", "80", "--save", "before.json", status=1)
        self.sweep("mended.cu", "--over", "before.json", "--save", "after.json", status=0)
        failing = int(re.search(r"(\d+) fail ", before.stdout)[1])
        done = self.run_in("attnscope", "diff", "before.json", "after.json", "--json", status=1)
        result = json.loads(done.stdout)
        self.assertEqual(schema.faults(result, DIFF_SCHEMA), [])
        self.assertEqual([result[key] for key in ("points", "right_in_both", "fail_in_both", "fail_in_first", "fail_in_second")],
                         [80, 80 - failing, 0, failing, 0])
        self.assertEqual(len(result["differing"]), failing)
        text = self.run_in("attnscope", "diff", "before.json", "after.json", status=1).stdout
        self.assertIn("where causal = none and kv_len % 32 != 0", text)
        same = self.run_in("attnscope", "diff", "before.json", "before.json", status=0)
        self.assertIn("the verdicts are the same at all 80 points", same.stdout)
        direct = self.run_in("attnscope", "diff", "mended.cu", "my_attention.cu", "--over", "kv_len=31,32", status=1)
        self.assertIn("1 in the second alone", direct.stdout)
        other = self.run_in("attnscope", "diff", "before.json", "before.json", "--runs", "3", status=2)
        self.assertIn("takes no option that makes a run", other.stderr)
        self.sweep("my_attention.cu", "--over", "kv_len=31,32", "--save", "other.json", status=1)
        done = self.run_in("attnscope", "diff", "before.json", "other.json", status=2)
        self.assertIn("vary other axes", done.stderr)

    def test_what_is_declined_and_what_does_not_compile(self):
        done = self.sweep("my_attention.cu", "--over", "head_dim=64,128", "--over", "define.WRONG=0,1", "--json", status=0)
        points = json.loads(done.stdout)["points"]
        self.assertEqual({(point["at"]["shape.head_dim"], point["at"]["define.WRONG"]): point["result"] for point in points},
                         {("64", "0"): "ok", ("64", "1"): "declined", ("128", "0"): "declined", ("128", "1"): "declined"})
        self.assertTrue(any("WRONG must be 0" in point["why"] for point in points))
        self.assertTrue(any("head_dim must be 64" in point["why"] for point in points))

    def test_a_budget_that_ends(self):
        done = self.sweep("my_attention.cu", "--over", "kv_len=32,64", "--time", "0.000001", status=3)
        self.assertIn("ran out", done.stdout + done.stderr)

    def test_shards_are_the_whole(self):
        few = ("my_attention.cu", *OVER, "--runs", "30")
        whole = self.sweep(*few, "--save", "whole.json", "--junit", "whole.xml", status=1)
        seen = []
        for i in range(1, 5):
            done = self.sweep(*few, "--shard", f"{i}/4", "--save", f"part-{i}.json", status=None)
            self.assertIn(f"shard {i} of 4", done.stdout)
            part = json.loads((self.folder / f"part-{i}.json").read_text(encoding="utf-8"))
            self.assertEqual(schema.faults(part, SCHEMA), [])
            seen += [point["number"] for point in part["points"]]
        self.assertEqual(sorted(seen), list(range(30)))
        parts = [f"part-{i}.json" for i in (3, 1, 4, 2)]
        merged = self.sweep("--merge", *parts, "--save", "merged.json", "--junit", "merged.xml", status=1)
        self.assertEqual(without_times(merged.stdout), without_times(whole.stdout))
        for end in ("json", "xml"):
            texts = [(self.folder / f"{name}.{end}").read_text(encoding="utf-8") for name in ("merged", "whole")]
            self.assertEqual(*map(without_times, texts))

        # One is missing: it is named, and its command makes it.
        (self.folder / "part-3.json").unlink()
        done = self.sweep("--merge", *parts[1:], status=3)
        self.assertEqual(done.stdout, "")
        self.assertIn("shard 3 of 4 is missing", done.stderr)
        command = next(line.strip() for line in done.stderr.splitlines() if line.startswith("  attnscope"))
        self.run_in("bash", "-c", command.replace("shard-3.json", "part-3.json"))
        self.sweep("--merge", *parts, status=1)

        # One was stopped.
        path = self.folder / "part-2.json"
        process = subprocess.Popen(["attnscope", "sweep", *few, "--shard", "2/4", "--save", "stopped.json"], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.DEVNULL)
        while not (self.folder / "stopped.json").exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        stopped = self.folder / "stopped.json"
        if json.loads(stopped.read_text(encoding="utf-8"))["ended"]:  # it was faster than the signal
            stopped.write_text(path.read_text(encoding="utf-8").replace('"ended": true', '"ended": false'), encoding="utf-8")
        done = self.sweep("--merge", "part-1.json", "stopped.json", "part-3.json", "part-4.json", status=3)
        self.assertIn("shard 2 of 4 (stopped.json) was stopped before its end", done.stderr)
        self.assertIn("--shard 2/4 --save stopped.json", done.stderr)

        # What is of another sweep is no part of this one.
        text = path.read_text(encoding="utf-8")
        for old, new, wanted in (('"sample": 0', '"sample": 1', "is of another sweep"),
                                 ('"number": 2,\n  "of": 4', '"number": 1,\n  "of": 4', "is shard 1 of 4, as"),
                                 ('"of": 4', '"of": 5', "one of 5 shards"), ('"ok"', '"fine"', "expected ok, fail"),
                                 ("{", "", "is not valid JSON")):
            self.assertIn(old, text)
            (self.folder / "other.json").write_text(text.replace(old, new, 1), encoding="utf-8")
            done = self.sweep("--merge", "part-1.json", "other.json", "part-3.json", "part-4.json", status=2)
            self.assertIn(wanted, done.stderr)
        done = self.sweep("--merge", "whole.json", status=2)
        self.assertIn("is a whole sweep, not a shard of one", done.stderr)

    def test_mistakes_are_said_in_one_line(self):
        for arguments, wanted in ((("my_attention.cu", "--over", "colour"), "'colour' has no values of its own"),
                                  (("my_attention.cu", "--over", "kv_len=64,x"), "shape.kv_len: expected"),
                                  (("my_attention.cu", "--over", "kv_len=9..1"), "expected FROM..TO"),
                                  (("my_attention.cu", "--shard", "5/4"), "expected I/N"),
                                  (("my_attention.cu", "--save", "sweep.txt"), "ends in .json"),
                                  (("my_attention.cu", "whole.cu"), "takes one kernel or scenario"),
                                  (("sweep.json",), "is a sweep"),
                                  (("--merge", "a.json", "--runs", "3"), "takes the files of shards"),
                                  (("--merge", "nowhere.json"), "nowhere.json")):
            done = self.sweep(*arguments, status=2 if "nowhere.json" not in arguments else None)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(wanted, done.stderr)
            self.assertNotEqual(done.returncode, 0)

    def test_the_page_shows_the_examples(self):
        page = (ROOT / "docs/sweep.md").read_text(encoding="utf-8")
        for name in ("sweep.sbatch", "sweep.yml"):
            lines = (ROOT / "docs/examples" / name).read_text(encoding="utf-8").splitlines()
            self.assertIn("\n".join(f"    {line}".rstrip() for line in lines), page)

    def test_the_workflow_for_github(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        flow = yaml.safe_load((ROOT / "docs/examples/sweep.yml").read_text(encoding="utf-8"))
        shards = flow["jobs"]["shard"]["strategy"]["matrix"]["shard"]
        self.assertEqual((shards, flow["jobs"]["merge"]["needs"]), ([1, 2, 3, 4], "shard"))
        tools = self.folder / "tools"  # what installs is not run again: its targets have to be there
        tools.mkdir()
        for name in ("make", "sudo"):
            (tools / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        environment = {"KERNEL": flow["env"]["KERNEL"], "RUNS": "24", "PATH": f"{tools}:{self.environment['PATH']}"}

        def run(job, shard, status):
            for step in flow["jobs"][job]["steps"]:
                if "run" not in step:
                    continue
                command = step["run"].replace("${{ matrix.shard }}", str(shard))
                self.assertNotIn("${{", command)
                for target in re.findall(r"make -C attnscope ([a-z -]+)", command):
                    for name in target.split():
                        self.assertRegex(makefile, rf"(?m)^[a-z -]*\b{name}\b[^=]*:")
                self.run_in("bash", "-e", "-o", "pipefail", "-c", command, status=status if step["name"] == job else 0,
                            **environment)

        for shard in shards:
            run("shard", shard, 0)
        run("merge", None, 1)
        self.assertTrue((self.folder / "sweep.json").exists() and (self.folder / "sweep.xml").exists())


if __name__ == "__main__":
    tap.main()
