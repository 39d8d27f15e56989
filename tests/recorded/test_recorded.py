#!/usr/bin/env python3
"""Traces recorded on a GPU by tests/gpu/record_traces.py, read and judged as when they were recorded: without a GPU, and
whatever has become of the kernels since. The recorder itself is run on the CPU."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402
from judged import changes, judged  # noqa: E402
from read_trace import BYTES, STRUCT, Trace, product  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
TRACES = sorted(HERE.glob("*.safetensors"))


def put(path, name, at, value):
    """Changes one element of a tensor in the file."""
    trace = Trace(path)
    tensor = trace.tensors[name]
    kind = tensor["dtype"]
    assert at < product(tensor["shape"])
    with open(path, "r+b") as file:
        file.seek(trace.begin + tensor["data_offsets"][0] + at * BYTES[kind])
        file.write(struct.pack("<" + STRUCT[kind], value))


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def judged(self, path):
        found, why = judged(ATTNSCOPE, path)
        self.assertIsNone(why)
        return found

    def check_trace(self, path):
        expected = json.loads(path.with_suffix(".expect").read_text(encoding="utf-8"))
        self.assertEqual(changes(expected, self.judged(path)), [])

    def check_copy(self, path):
        """Saved again it is the same trace."""
        copy = f"{self.folder.name}/copy.safetensors"
        subprocess.run([ATTNSCOPE, "run", path, "--save", copy], stdout=subprocess.DEVNULL, timeout=120, check=False)
        done = subprocess.run([ATTNSCOPE, "diff", "--exact", path, copy], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(changes(self.judged(path), self.judged(copy)), [])

    def check_change_is_seen(self, path):
        """One score that is another one is another judgement."""
        copy = shutil.copy(path, self.folder.name)
        before = self.judged(copy)
        put(copy, "channel.s", 0, 1000.0)
        self.assertNotEqual(changes(before, self.judged(copy)), [])

    @unittest.skipUnless(TRACES, "tests/recorded holds no trace: tests/gpu/record_traces.py records them, on a GPU")
    def test_every_trace_has_its_expectation(self):
        self.assertEqual([path.stem for path in TRACES], sorted(path.stem for path in HERE.glob("*.expect")))

    def test_the_recorder(self):
        folder = Path(self.folder.name) / "traces"
        done = subprocess.run([ROOT / "tests/gpu/record_traces.py", "--backend", "cpu", folder], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=250, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        made = sorted(folder.glob("*.safetensors"))
        self.assertEqual(len(made), len(re.findall(r"^ok ", done.stdout, re.M)), done.stdout)
        self.assertGreaterEqual(len(made), len(TRACES), done.stdout)
        for path in made:
            self.check_trace(path)
            self.check_copy(path)
            self.check_change_is_seen(path)

    def test_what_is_no_change(self):
        self.assertEqual(changes({"a": [1, {"b": None}]}, {"a": [1, {"b": None, "new": 2}], "more": 1}), [])
        for got in ({}, {"a": 1.0}, {"a": True}, {"a": [1]}, {"a": 2}):
            self.assertEqual(len(changes({"a": 1}, got)), 1, got)
        self.assertEqual(changes({"a": [1, 2]}, {"a": [1]}), [".a: [1], not [1, 2]"])


def case_of(path):
    def run(self):
        self.check_trace(path)
        self.check_copy(path)
        self.check_change_is_seen(path)
    return run


for each in TRACES:
    setattr(Recorded, f"test_{each.stem}", case_of(each))

if __name__ == "__main__":
    tap.main()
