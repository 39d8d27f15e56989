#!/usr/bin/env python3
"""`check --json` is what docs/check.schema.json says, `check --junit` is XML that says the same, whatever the text."""

import copy
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
DIFF_SCHEMA = json.loads((ROOT / "docs/diff.schema.json").read_text(encoding="utf-8"))
SMALL = "[scenario]\nkernel = kernels/v2b_scalar.cu\n[shape]\nheads = 1\nq_len = 64\n"
# Markup, quotes, a character XML has no place for, a line break, and a byte that is no UTF-8.
NASTY = b"a<&\"']]>\x01\n\xff.ini"


class Reports(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="attnscope-check-"))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def scenario(self, name, text):
        path = os.path.join(os.fsencode(self.folder), name)
        with open(path, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        return path

    def check(self, *arguments, status=0):
        done = subprocess.run([BUILD / "attnscope", "check", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
        self.assertEqual(done.returncode, status, done.stdout.decode(errors="replace") + done.stderr.decode())
        return done.stdout

    def json(self, *arguments, status=0):
        results = json.loads(self.check("--json", *arguments, status=status))
        self.assertEqual(schema.faults(results, SCHEMA), [])
        return results

    def junit(self, *arguments, status=0):
        path = self.folder / "report.xml"
        self.check("--junit", path, *arguments, status=status)
        suites = ElementTree.fromstring(path.read_bytes())
        self.assertEqual((suites.tag, [suite.tag for suite in suites]), ("testsuites", ["testsuite"]))
        cases = suites[0].findall("testcase")
        for element in (suites, suites[0]):
            self.assertEqual(int(element.get("tests")), len(cases))
            self.assertEqual(int(element.get("failures")), sum(case.find("failure") is not None for case in cases))
            self.assertEqual(int(element.get("errors")), sum(case.find("error") is not None for case in cases))
        return cases

    def test_a_clean_run(self):
        [result] = self.json(self.scenario(b"small.ini", SMALL))
        self.assertEqual((result["verdict"], result["as_expected"], result["expect"]), ("CLEAN", True, {"verdict": "nothing"}))
        self.assertEqual((result["first"], result["culprits"], result["findings"], result["events"]), (None, [], [], []))
        for stage in result["stages"].values():
            for side in (stage["local"], stage["global"]):
                self.assertEqual((side["mark"], side["bad"]), ("ok", 0))
                self.assertEqual(side["classes"]["ok"], side["elements"])
        self.assertEqual(result["stages"]["s"]["local"]["elements"], 64 * 64)
        self.assertEqual((result["problem"]["q_len"], result["run"]["status"]), (64, "complete"))

    def attnscope(self, *arguments):
        done = subprocess.run([BUILD / "attnscope", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
        return done.returncode, done.stdout

    def test_a_difference(self):
        first, second = self.folder / "a.safetensors", self.folder / "b\udcff.safetensors"
        small = self.scenario(b"small.ini", SMALL)
        for path, settings in ((first, []), (second, ["--patch", "scenarios/bugs/double-scale.patch"])):
            self.assertIn(self.attnscope("run", small, *settings, "-o", path)[0], (0, 1))
        for other, verdict in ((first, "identical"), (second, "different")):
            status, out = self.attnscope("diff", "--json", first, other)
            result = json.loads(out)
            self.assertEqual(schema.faults(result, DIFF_SCHEMA), [])
            self.assertEqual((status, result["verdict"]), (int(verdict == "different"), verdict))
            for channel in result["channels"].values():
                parts = ("same", "nan_bits", "within", "beyond", "unbounded", "classes", "coverage")
                self.assertEqual(channel["compared"], sum(channel[part] for part in parts))
        self.assertEqual(result["first"]["channel"], "s")

    def test_two_passes_in_bounded_memory(self):
        [result] = self.json("tests/session/one-q-tile.ini", status=1)
        self.assertEqual(result["first_pass"], {"wanted": 20, "judged": 20, "off": 1, "off_places": "b0 h2 q3", "unusual": 0,
                                                "unusual_places": "", "by_gpu": 0, "judge": "", "differing": 0})
        self.assertEqual((result["verdict"], result["culprits"]), ("FAIL", ["o"]))

    def test_two_mistakes(self):
        [result] = self.json("scenarios/bugs/two-mistakes.ini")
        place = {"batch": 0, "head": 0, "q_tile": 0, "kv_tile": 0}
        self.assertEqual((result["verdict"], result["as_expected"]), ("FAIL", True))
        self.assertEqual(result["first"], {"channel": "s", **place})
        self.assertEqual((result["expect"]["first"], result["expect"]["culprits"]), (result["first"], ["s", "l"]))
        self.assertEqual(result["culprits"], ["s", "l"])
        self.assertEqual([finding["channel"] for finding in result["findings"]], ["s", "l"])
        finding = result["findings"][0]
        self.assertEqual((finding["cause"], finding["causes"][0]["name"]), ("scaled-twice", "scaled-twice"))
        evidence = finding["causes"][0]["evidence"]
        self.assertEqual(evidence["explained"], evidence["elements"])
        self.assertEqual(finding["site"]["file"], "kernels/v2b_scalar.cu")
        s = result["stages"]["s"]
        self.assertEqual(s["local"]["classes"]["off"], s["local"]["bad"])
        self.assertEqual(s["first"], result["first"])
        self.assertEqual((result["stages"]["p"]["local"]["mark"], result["stages"]["p"]["global"]["mark"]), ("ok", "bad"))

    def test_nan_and_events(self):
        [result] = self.json("tests/session/nan-row.ini", status=1)
        s = result["stages"]["s"]["local"]
        self.assertGreater(s["classes"]["nan"], 0)
        self.assertEqual((s["mark"], s["worst_ratio"]), ("bad", None))

    def test_a_tensor_core(self):
        [result] = self.json("tests/session/wmma-scalar-tail.ini")
        s, u = (result["stages"][name]["tensor_core"] for name in "su")
        self.assertEqual((s["declared"], s["bit_equal_to"], s["tiles"], s["exact_tiles"]), ("mma-f16", ["h100"], 64, 64))
        self.assertEqual((s["off"], s["unequal_tiles"], s["first_unequal"]["kv_tile"]), (0, 16, 3))
        self.assertEqual((u["text"], u["unequal"], u["first_unequal"]), ("bit-equal to h100", 0, None))
        self.assertNotIn("tensor_core", result["stages"]["p"])

    def test_what_is_not_recorded(self):
        capture = "[capture]\nchannels = q,k,s,m\nq_tiles = 1\n"
        [result] = self.json(self.scenario(b"part.ini", SMALL.replace("q_len = 64", "q_len = 128") + capture))
        marks = {name: stage["local"]["mark"] for name, stage in result["stages"].items()}
        self.assertEqual((marks["s"], marks["p"]), ("ok", "unrecorded"))
        self.assertEqual(result["slots"], {"recorded": 1, "all": 2})

    def test_a_run_that_hangs(self):
        [result] = self.json("tests/session/hang.ini", status=3)
        self.assertEqual((result["verdict"], result["error"]["code"], result["as_expected"]), ("HUNG", "run", False))
        self.assertEqual(result["run"]["status"], "hung")
        self.assertIn("stages", result)

    def test_what_can_not_be_run(self):
        bad = self.scenario(b"bad.ini", "[scenario]\nkernel = nowhere.cu\n")
        results = self.json(bad, self.scenario(b"declined.ini", SMALL + "head_dim = 32\n"), status=2)
        self.assertEqual([result["error"]["code"] for result in results], ["input", "declined"])
        self.assertNotIn("stages", results[0])

    def test_a_folder(self):
        for name in ("b.ini", "a.ini"):
            self.scenario(name.encode(), SMALL)
        self.scenario(b".hidden.ini", "nonsense")
        self.scenario(b"notes.txt", "nonsense")
        names = [Path(result["file"]).name for result in self.json(f"{self.folder}/")]
        self.assertEqual(names, ["a.ini", "b.ini"])

    def test_json_holds_any_text(self):
        results = self.json(self.scenario(NASTY, SMALL), self.scenario(b"\xc3.ini", b"[\xff\x01<&\"]\n"), status=2)
        self.assertTrue(results[0]["file"].endswith("a<&\"']]>\x01\n\ufffd.ini"))
        self.assertEqual(results[1]["error"]["code"], "input")

    def test_junit(self):
        clean = self.scenario(b"clean.ini", SMALL)
        unmet = self.scenario(b"unmet.ini", SMALL + "[expect]\nverdict = fail\n")
        bad = self.scenario(b"bad.ini", SMALL + "[nonsense]\n")
        cases = self.junit(clean, "scenarios/bugs/double-scale.ini", unmet, bad, status=2)
        self.assertEqual([case.get("name") for case in cases],
                         [clean.decode(), "scenarios/bugs/double-scale.ini", unmet.decode(), bad.decode()])
        self.assertEqual([[child.tag for child in case] for case in cases],
                         [["properties"], ["properties"], ["properties", "failure"], ["properties", "error"]])
        properties = {each.get("name"): each.get("value") for each in cases[1].find("properties")}
        self.assertEqual(properties["found"], "fail: s b0 h0 q0 k0; culprits s; scaled-twice")
        self.assertEqual(properties["expected"], properties["found"])
        self.assertIn("expected a failure", cases[2].find("failure").get("message"))
        self.assertEqual(cases[3].find("error").get("type"), "input")
        for case in cases:
            self.assertGreaterEqual(float(case.get("time")), 0)

    def test_junit_holds_any_text(self):
        cases = self.junit(self.scenario(NASTY, SMALL), self.scenario(b"\xc3.ini", b"[\xff\x01<&\"]]>\n"), status=2)
        self.assertTrue(cases[0].get("name").endswith("a<&\"']]>\ufffd\n\ufffd.ini"))
        self.assertIsNotNone(cases[1].find("error"))

    def test_junit_is_whole_or_not_there(self):
        small = self.scenario(b"small.ini", SMALL)
        report = self.folder / "report.xml"
        report.write_text("old")
        report.chmod(0o640)
        self.check("--junit", report, small)
        self.assertTrue(report.read_text(encoding="utf-8").startswith("<?xml"))
        before = sorted(os.listdir(self.folder))
        self.check("--junit", self.folder / "none/report.xml", small, status=3)
        self.check("--junit", self.folder, small, status=2)
        # A file size limit of one block stands for a full disk.
        done = subprocess.run(["sh", "-c", 'ulimit -f 1; exec "$0" "$@"', BUILD / "attnscope", "check", "--junit", report]
                              + [self.folder / "none.ini"] * 9, cwd=ROOT, capture_output=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(b"cannot be written", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(len(ElementTree.fromstring(report.read_bytes()).findall(".//testcase")), 1)

    def test_the_schema_can_tell(self):
        [good] = self.json("scenarios/bugs/double-scale.ini")
        changes = [
            ("why",), ("oracle_version",), ("stages", "s"), ("stages", "s", "local"), ("stages", "s", "local", "classes", "nan"),
            ("findings", 0, "first", "batch"), ("findings", 0, "causes", 0, "evidence", "explained"), ("run", "status"),
        ]
        for *path, last in changes:
            for change in ("remove", "replace"):
                result = copy.deepcopy(good)
                part = result
                for name in path:
                    part = part[name]
                if change == "remove":
                    del part[last]
                else:
                    part[last] = [-1]
                self.assertNotEqual(schema.faults([result], SCHEMA), [], f"{change} {path} {last}")
        self.assertNotEqual(schema.faults([{**good, "more": 1}], SCHEMA), [])
        self.assertNotEqual(schema.faults(good, SCHEMA), [])

    def test_isolation_is_what_the_schema_says(self):
        path = self.scenario(b"a.ini", SMALL)
        done = subprocess.run([BUILD / "attnscope", "run", "--json", "--isolate", "softmax", path], cwd=ROOT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=100, check=True)
        result = json.loads(done.stdout)
        self.assertEqual(schema.faults([result], SCHEMA), [])
        self.assertEqual(result["isolation"]["isolated"], ["m", "alpha", "p", "l"])
        result["isolation"]["fed"].append("x")
        self.assertNotEqual(schema.faults([result], SCHEMA), [])

    def test_the_effect_of_probes_is_what_the_schema_says(self):
        path = self.scenario(b"a.ini", SMALL)
        for patch, verdict in (("probes-change-o", "changed"), ("crashes-without-probes", "different end")):
            done = subprocess.run([BUILD / "attnscope", "run", "--json", "--probes", "compare", "--shape", "1,2,100,64",
                                   "--patch", f"tests/session/{patch}.patch", path], cwd=ROOT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=100, check=False)
            result = json.loads(done.stdout)
            self.assertEqual((done.returncode, schema.faults([result], SCHEMA)), (1, []))
            self.assertEqual((result["run"]["probes"], result["probes"]["verdict"]), ("on", verdict))
            result["probes"]["channels"]["o"]["beyond"] = "many"
            self.assertNotEqual(schema.faults([result], SCHEMA), [])


if __name__ == "__main__":
    tap.main()
