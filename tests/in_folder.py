"""A case in a folder of its own, from which it runs the program on the CPU executor."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()


class InFolder(unittest.TestCase):
    """folder: the case's own, gone after it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def command(self, *words):
        """(exit status, stdout, stderr) of the program."""
        done = subprocess.run([BUILD / "attnscope", *map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, check=False,
                              env={**os.environ, "ATTNSCOPE_BACKEND": "cpu", "ATTNSCOPE_PROGRESS": "no"})
        return done.returncode, done.stdout, done.stderr

    def clean_runs(self, *words):
        """random_runs of a correct kernel: not one may be wrong."""
        done = subprocess.run([BUILD / "tests/random_runs", *map(str, words)], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
