#!/usr/bin/env python3
"""`attnscope check KERNEL.cu` is a promise: the cases come from what the kernel takes, and what they would show is shown."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import schema  # noqa: E402
import tap  # noqa: E402

SCHEMA = json.loads((ROOT / "docs/check.schema.json").read_text(encoding="utf-8"))
EXAMPLE = (ROOT / "docs/examples/with_plan.cu").read_text(encoding="utf-8")
PLAN = "if (problem->head_dim != D)"
SMALL = ('if (problem->q_len > 70 || problem->kv_len > 300) return "at most 70 queries and 300 keys";', PLAN)
LAUNCH = "kernel.launch = launch;"


class Kernels(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="attnscope-kernels-"))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def kernel(self, name, *changes):
        """The example with some of its text replaced, kept to shapes that take no time."""
        text = EXAMPLE.replace(PLAN, " ".join(SMALL))
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def run_check(self, *arguments):
        return subprocess.run([BUILD / "attnscope", "check", *map(str, arguments)], cwd=ROOT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100, check=False)

    def check(self, kernel, *arguments, status):
        """The kernel's result, and its cases by name."""
        done = self.run_check("--json", kernel, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        results = json.loads(done.stdout)
        self.assertEqual(schema.faults(results, SCHEMA), [])
        self.assertEqual(len(results), 1)
        cases = {case["case"]: case for case in results[0]["cases"]}
        self.assertEqual(len(cases), len(results[0]["cases"]))
        return results[0], cases

    def test_wrong_heads_and_no_mask_of_the_tail(self):
        kernel = self.kernel("blind.cu", ("head / p.group", "head % (p.heads / p.group)"), ("key < p.kv_len && key", "key"),
                             ("k[key * p.kv", "k[min(key, p.kv_len - 1) * p.kv"))
        result, cases = self.check(kernel, status=1)
        self.assertEqual((result["result"], result["takes"]), ("fail", "f16; BHLD; head_dim 64"))
        for name, wanted in {"(1,2,8,32,64)": "ok", "(1,2,7,31,64)": "fail", "(1,2,9,33,64)": "fail", "(1,2,1,64)": "fail",
                             "(1,4/2,8,32,64)": "fail", "(1,4/1,8,32,64)": "ok", "(1,2,64,64)": "ok",
                             "(1,2,67,64) causal=bottom-right": "ok", "(1,2,67,33,64) causal=top-left": "fail",
                             "(1,4/2,9,67,64) causal=bottom-right": "fail",
                             "(1,2,67,64) window=5,3": "declined"}.items():
            self.assertEqual(cases[name]["result"], wanted, cases[name])
        failing = cases["(1,4/2,9,67,64) causal=bottom-right"]
        self.assertIn("wrong-head", failing["why"])
        again = subprocess.run([BUILD / "attnscope", *failing["command"].split()[1:]], cwd=ROOT, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(again.returncode, 1, again.stdout)

    def test_another_head_dim(self):
        kernel = self.kernel("wide.cu", ("D = 64", "D = 128"), ("head_dim must be 64", "head_dim must be 128"))
        result, cases = self.check(kernel, status=0)
        self.assertEqual((result["result"], result["takes"]), ("clean", "f16; BHLD; head_dim 128"))
        self.assertTrue(all(",128)" in name for name in cases), cases)
        ok = [name for name, case in cases.items() if case["result"] == "ok"]
        self.assertGreater(len(ok), 25)
        for name in ok:
            self.assertEqual((cases[name]["runs"], cases[name]["differing"]), (2, 0))

    def test_whole_tiles_alone(self):
        """Tails are declined; all the rest is tried at lengths that are taken."""
        kernel = self.kernel("whole.cu", (PLAN, 'if (problem->q_len % 32 || problem->kv_len % 32) return "whole tiles"; ' + PLAN))
        _, cases = self.check(kernel, status=0)
        for name in ("(1,2,9,33,64)", "(1,2,67,64) causal=top-left"):
            self.assertEqual((cases[name]["result"], cases[name]["why"]), ("declined", "whole tiles"))
        for name in ("(1,4/2,32,64)", "(1,2,32,96,64) causal=bottom-right", "(1,2,64,64) causal=top-left",
                     "(1,2,32,96,64) fill.kind=outliers"):
            self.assertEqual(cases[name]["result"], "ok", cases[name])

    def test_what_is_taken_is_tried(self):
        """A kernel that says it takes everything, and knows of nothing."""
        kernel = self.kernel(
            "all.cu", ("problem->window_left >= 0 || problem->window_right >= 0", "false"), ("problem->softcap != 0", "false"),
            (LAUNCH, LAUNCH + " kernel.biases = ASC_SUPPORTS(ALIBI) | ASC_SUPPORTS(BIAS); kernel.conventions.l_sink = ASC_SINK_END;"
             " kernel.layouts = ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD); kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);"),
            (PLAN, 'if (problem->dtype != ASC_F16) return "f16 is\\nenough"; ' + PLAN))
        _, cases = self.check(kernel, status=1)
        for feature in ("window=5,3", "window=70,0", "softcap=1", "sink=yes", "alibi=yes", "bias=shared", "bias=per-head",
                        "bias=per-batch", "bias=full"):
            results = {case["result"] for name, case in cases.items() if feature in name}
            self.assertEqual(results, {"fail"}, feature)
        self.assertEqual(cases["(1,2,8,32,64) layout=BLHD"]["result"], "ok")
        self.assertEqual((cases["dtype=bf16"]["result"], cases["dtype=bf16"]["why"]),
                         ("fail", "is registered, but the plan never accepts it: f16 is\nenough"))

    def test_one_case_that_goes_wrong_is_that_case(self):
        """A launch that fails, bits that change from launch to launch, a promise of the plan; an odd head_dim, too."""
        kernel = self.kernel(
            "faults.cu", ("D = 64", "D = 288"), ("p.scale = problem->scale;", "static int n; p.scale = problem->scale * (1 + 1e-6f * "
                          '(problem->batch == 3 ? n++ : 0)); if (problem->kv_heads == 1) return "one is too few";'),
            ("plan->br = BR;", "plan->br = BR; plan->error_limit = problem->q_len == 19 && problem->kv_len == 67 ? 1e-9f : 0;"))
        result, cases = self.check(kernel, status=1)
        failed = {name: case for name, case in cases.items() if case["result"] == "fail"}
        self.assertEqual(set(failed), {"(1,4/1,8,32,288)", "(3,6/2,9,33,288)",
                                       "(2,4/1,9,67,288) causal=bottom-right", "(1,2,19,67,288)"})  # a limit is one for normal inputs alone
        self.assertIn("one is too few", failed["(1,4/1,8,32,288)"]["why"])
        self.assertIn("1 of 2 runs differ bitwise from the first", failed["(3,6/2,9,33,288)"]["why"])
        self.assertIn("the kernel's plan allows 1e-09", failed["(1,2,19,67,288)"]["why"])
        self.assertEqual(result["not_tried"], [])

    def test_a_build_error_is_said_once(self):
        line = "m = fmaxf(m, warp_max(s));"
        for name, new in (("broken.cu", "m = fmaxff(m, warp_max(s));"),
                          ("with_probes.cu", line + "\n#if ASC_MODE\nm = fmaxff(m, 0);\n#endif")):
            kernel = self.kernel(name, (line, new))
            done = self.run_check(kernel)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertEqual(done.stdout.count("'fmaxff' was not declared"), 1, done.stdout)
            last = done.stdout.splitlines()[-1]
            self.assertTrue(last.startswith(f"{kernel}: not tried: "), last)
            self.assertTrue(last.endswith(": the build error ended the check"), last)
            result, cases = self.check(kernel, status=3)
            self.assertEqual((result["result"], result["error"]["code"]), ("error", "build"))
            untried = [case["case"] for case in result["not_tried"]]
            self.assertEqual(untried, [name for name, case in cases.items() if case["result"] == "not tried"] or ["every case"])

    def test_no_time(self):
        kernel = self.kernel("slow.cu")
        done = self.run_check(kernel, "--time", "0.001")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn(f"{kernel}: not tried: every case: --time ran out", done.stdout.splitlines()[-1])
        result, _ = self.check(kernel, "--time", "0.001", status=3)
        self.assertEqual((result["result"], [case["case"] for case in result["not_tried"]]), ("unfinished", ["every case"]))

    def test_what_a_case_sets_is_not_set(self):
        kernel = self.kernel("settings.cu")
        for setting in ("shape.head_dim=128", "shape.causal=none", "fill.kind=ones", "fill.q.seed=1", "capture.heads=0",
                        "capture.channels=o", "quant.scales=tensor", "expect.verdict=fail"):
            done = self.run_check(kernel, "--set", setting)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(f"--set: {setting.split('=')[0]} is set by the kernel's cases", done.stderr)
        for setting in ("shape.scale=0.3", "capture.mem=1GiB", "scenario.limit=10"):
            self.assertEqual(self.run_check(kernel, "--set", setting, "--time", "0.001").returncode, 3)
        self.assertEqual(self.run_check(kernel, "--bias").returncode, 2)
        self.assertEqual(self.run_check(kernel, "--shape", "1,1,8,64", "--time", "1").returncode, 2)

    def test_junit(self):
        kernel = self.kernel("none.cu", (PLAN, 'return "this kernel <takes> nothing"; ' + PLAN))
        report = self.folder / "report.xml"
        broken = self.folder / "broken.cu"
        broken.write_text('#include "attnscope.h"\nnonsense\n', encoding="utf-8")
        done = self.run_check("--junit", report, kernel, broken)
        self.assertEqual(done.returncode, 3, done.stdout)
        [suite] = ElementTree.fromstring(report.read_bytes())
        cases = suite.findall("testcase")
        self.assertEqual([suite.get(key) for key in ("tests", "failures", "errors", "skipped")], ["2", "1", "1", "0"])
        self.assertEqual([case.get("classname") for case in cases], [str(kernel), str(broken)])
        self.assertIn("this kernel <takes> nothing", cases[0].find("failure").get("message"))
        self.assertEqual(cases[1].find("error").get("type"), "build")


if __name__ == "__main__":
    tap.main()
