#!/usr/bin/env python3
"""What must not change the verdict: saving a run and opening it, one worker or all of them, and damage to a file, which
is refused or leaves a run that is not clean as it is."""

import contextlib
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import hostile
import tap

BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
PROGRAM = str(BUILD / "attnscope")
# Clean, wrong in one stage, wrong in O alone, NaN, an event and a crash.
RUNS = (("kernels/v2b_scalar.cu", "--shape", "1,2,40,64"), ("scenarios/bugs/double-scale.ini", "--shape", "1,1,24,64"),
        ("tests/session/lse-not-stored.ini",), ("tests/session/nan-row.ini",), ("tests/session/reads-behind-k.ini",),
        ("tests/session/crashes-in-one-q-tile.ini",))
OF_THE_FILE = ("file", "title", "as_expected", "why", "expect", "parts", "error")  # of a scenario, which a trace is not
SEED = 20260


def attnscope(*words, cores=None):
    done = subprocess.run([PROGRAM, *words], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                          check=False, preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None)
    return done.returncode, done.stdout, done.stderr


def without(report):
    """Without the line of what to try next, too: of that a run has tried some itself."""
    kept = {key: value for key, value in report.items() if key not in OF_THE_FILE}
    for key, value in kept.items():
        if isinstance(value, list):
            kept[key] = [one for one in value if not (isinstance(one, dict) and one.get("kind") == "next")]
    return kept


class Same(unittest.TestCase):
    executions = failures = 0

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.saved = {}  # words of the run: (its report, the file)
        for n, words in enumerate(RUNS):
            path = cls.folder / f"{n}.safetensors"
            status, out, err = attnscope("run", *words, "--json", "-o", str(path))
            assert out and path.exists(), (words, status, err)
            cls.saved[words] = json.loads(out), path

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()
        print(f"# harness: same verdict saved, damaged and by one worker; executions {cls.executions}; failures "
              f"{cls.failures}")

    @contextlib.contextmanager
    def counted(self):
        Same.executions += 1
        Same.failures += 1
        yield
        Same.failures -= 1

    def test_saved_runs_open_with_the_same_report(self):
        for words, (report, path) in self.saved.items():
            with self.subTest(words):
                status, out, err = attnscope("run", str(path), "--json")
                with self.counted():
                    self.assertEqual(without(json.loads(out)), without(report), err)
                    self.assertNotEqual(status, 2)
        verdicts = {report["verdict"] for report, _ in self.saved.values()}
        self.assertGreaterEqual(verdicts, {"CLEAN", "FAIL", "CRASHED"})

    def test_workers_change_nothing(self):
        cores = os.sched_getaffinity(0)
        if len(cores) < 2:
            self.skipTest("one core: there is nothing to compare")
        for path in [path for _, path in self.saved.values()] + sorted((ROOT / "tests/recorded").glob("*.safetensors")):
            for words in (("run", "--bias"), ("run", "--json"), ("open", "--text")):
                with self.subTest(f"{words} {path.name}"), self.counted():
                    self.assertEqual(attnscope(*words, str(path), cores={min(cores)}), attnscope(*words, str(path)))

    def check_damaged(self, name, report):
        """Refused with a sentence, or not clean, as the whole file. 1: it opened."""
        path = self.folder / "damaged.safetensors"
        status, out, err = attnscope("run", str(path), "--json")
        with self.counted():
            self.assertIn(status, (1, 2, 3), (name, err))
            if not out.strip():
                self.assertTrue(err.startswith(b"attnscope: ") and err.count(b"\n") == 1, (name, err))
                return 0
            self.assertNotEqual(json.loads(out).get("verdict"), "CLEAN", name)
            if status == 1:
                self.assertEqual(json.loads(out)["verdict"], report["verdict"], name)
            return 1

    def test_damaged_headers(self):
        """Each field of the metadata, and of each tensor, is left out or is another thing."""
        report, whole = self.saved[RUNS[1]]
        header, data = hostile.read(whole)
        self.assertEqual(report["verdict"], "FAIL")
        seen = opened = 0

        def try_it(name, changed):
            nonlocal seen, opened
            hostile.write(self.folder / "damaged.safetensors", changed, data)
            opened += self.check_damaged(name, report)
            seen += 1

        entries = [key.removeprefix("attnscope.") for key in header["__metadata__"]]
        for key in entries:
            changed = copy.deepcopy(header)
            del changed["__metadata__"]["attnscope." + key]
            try_it(key, changed)
            if key in ("format", "source", "scenario"):
                continue
            value = hostile.entry(header, key)
            for field in value if isinstance(value, dict) else ():
                for other in (None, "", [], 10**30):
                    changed = copy.deepcopy(header)
                    hostile.set_entry(changed, key, {k: other if k == field else v for k, v in value.items()
                                                     if k != field or other is not None})
                    try_it(f"{key}.{field} {other!r}", changed)
        for name, tensor in header.items():
            for field, other in (("dtype", "F64"), ("shape", [*tensor["shape"], 2]), ("shape", [0]),
                                 ("data_offsets", [0, 8]), ("data_offsets", [8, 0])) if name != "__metadata__" else ():
                changed = copy.deepcopy(header)
                changed[name][field] = other
                try_it(f"{name} {field} {other}", changed)
        self.assertGreater(seen, 300)
        self.assertLess(opened, seen / 4)

    def test_damaged_bytes(self):
        """A bit of the file, some bytes of it, its end."""
        report, whole = self.saved[RUNS[1]]
        raw = whole.read_bytes()
        begin = 8 + int.from_bytes(raw[:8], "little")
        dice = random.Random(SEED)
        opened = 0
        for n in range(200):
            damaged = bytearray(raw)
            if n % 4 == 0:
                damaged = damaged[:dice.randrange(len(raw))]
            elif n % 4 == 1:
                damaged[dice.randrange(begin)] ^= 1 << dice.randrange(8)
            elif n % 4 == 2:
                damaged[dice.randrange(begin, len(raw))] ^= 1 << dice.randrange(8)
            else:
                at = dice.randrange(begin, len(raw) - 64)
                damaged[at:at + 64] = dice.randbytes(64)
            (self.folder / "damaged.safetensors").write_bytes(damaged)
            opened += self.check_damaged(n, report)
        self.assertGreater(opened, 50)


if __name__ == "__main__":
    tap.main()
