#!/usr/bin/env python3
"""Replays the corpus of every fuzz target: what coverage needed, and every input that ever failed."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap

BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()


class Corpus(unittest.TestCase):
    def replay(self, name):
        corpus = ROOT / "tests/fuzz/corpus" / name
        files = sorted(corpus.iterdir())
        self.assertGreater(len(files), 20, f"{corpus} holds next to nothing")
        done = subprocess.run([BUILD / "tests" / f"fuzz_{name}", corpus], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=240,
                              check=False)
        passed = (done.returncode, done.stdout) == (0, f"{len(files)} inputs\n")
        print(f"# harness: fuzz corpus {name}; executions {len(files)}; failures {int(not passed)}", flush=True)
        self.assertEqual((done.returncode, done.stdout), (0, f"{len(files)} inputs\n"), done.stderr[-4000:])

    def test_saved_traces(self):
        self.replay("trace")

    def test_made_traces(self):
        self.replay("shape")

    def test_arrays(self):
        self.replay("array")

    def test_bundles(self):
        self.replay("bundle")

    def test_texts(self):
        self.replay("text")

    def test_the_corpus_is_small(self):
        self.assertLess(sum(file.stat().st_size for file in (ROOT / "tests/fuzz/corpus").rglob("*")), 1_000_000)

    def test_without_libfuzzer(self):
        """The driver that `make fuzz` falls back to finds no fault in a second, and leaves nothing behind."""
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "last"
            done = subprocess.run([BUILD / "tests/fuzz_text", "--seconds", "1", "--kept", kept,
                                   ROOT / "tests/fuzz/corpus/text"], cwd=ROOT, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertRegex(done.stdout, r"^\d{3,} inputs\n$", done.stderr[-4000:])
            self.assertEqual((done.returncode, kept.exists()), (0, False))


if __name__ == "__main__":
    tap.main()
