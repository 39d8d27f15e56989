#!/usr/bin/env python3
"""A trace that another program cuts or writes to while it is open (rsync --inplace): attnscope ends with a sentence that
names the file and exit status 3, in the screen with the terminal as it was; it is never killed, and never says CLEAN."""

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap

BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
PROGRAM = str(BUILD / "attnscope")
CLEAN = ROOT / "tests/recorded/clean-wmma.safetensors"
SENTENCE = "was modified or truncated while it was open"
DELAYS_S = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15)


class Cut(unittest.TestCase):
    executions = failures = 0

    @classmethod
    def tearDownClass(cls):
        print(f"# harness: traces cut while they are open; executions {cls.executions}; failures {cls.failures}")

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.trace = Path(temporary.name) / "trace.safetensors"
        shutil.copyfile(CLEAN, self.trace)
        self.env = dict(os.environ, XDG_STATE_HOME=temporary.name, XDG_CONFIG_HOME=temporary.name, TERM="xterm")

    def cut(self, after_s, how, statuses):
        """One run whose file is changed that long after its start; its exit status."""
        shutil.copyfile(CLEAN, self.trace)
        process = subprocess.Popen([PROGRAM, "run", "--bias", str(self.trace)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=self.env)
        time.sleep(after_s)
        how(self.trace)
        _, err = process.communicate(timeout=120)
        Cut.executions += 1
        Cut.failures += 1  # until it has passed
        self.assertIn(process.returncode, statuses, (after_s, err))
        if process.returncode == 3:
            self.assertIn(f"{self.trace.name}: {SENTENCE}", err.decode())
        Cut.failures -= 1
        return process.returncode

    def test_cut(self):
        """At whatever moment: before it is opened (2: no trace), while it is read (3), or after its end (0)."""
        seen = set()
        for delay in DELAYS_S:
            seen.add(self.cut(delay, lambda path: os.truncate(path, 4096), (0, 2, 3)))
        self.assertIn(3, seen, "no delay hit a trace that was open")

    def test_rewritten(self):
        """The same length, other bytes: no read fails, and yet it is not one run. What was written before it was opened
        is a trace of a failing kernel (1)."""
        def rewrite(path):
            with open(path, "r+b") as file:
                file.seek(200000)
                file.write(bytes(100000))
        seen = {self.cut(delay, rewrite, (0, 1, 3)) for delay in DELAYS_S}
        self.assertIn(3, seen, "no delay hit a trace that was open")

    def test_screen(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(PROGRAM, [PROGRAM, str(self.trace)], self.env)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        said = b""

        def read_until(text, limit_s):
            """None: the end of the program, which leaves nobody at the other side."""
            nonlocal said
            end = time.monotonic() + limit_s
            while time.monotonic() < end:
                if text is not None and text in said:
                    return
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        said += os.read(terminal, 65536)
                    except OSError:
                        self.assertIsNone(text, said)
                        return
            self.fail(f"{text} is not in {said!r}")

        try:
            read_until(b"CLEAN", 60)
            os.truncate(self.trace, 4096)
            os.write(terminal, b"3")  # another view: it reads the trace
            read_until(None, 60)
        finally:
            os.close(terminal)
            _, status = os.waitpid(pid, 0)
        self.assertTrue(os.WIFEXITED(status), status)
        self.assertEqual(os.WEXITSTATUS(status), 3)
        self.assertIn(SENTENCE.encode(), said)
        left = said.rindex(b"\x1b[?1049l")  # the alternate screen, before the sentence
        self.assertLess(left, said.index(SENTENCE.encode()))


if __name__ == "__main__":
    tap.main()
