#!/usr/bin/env python3
"""Whatever ends the program and whatever it is at: the terminal is as it was, and no process of it is left. Ctrl-Z and
storms of resizes are no end."""

import os
import shutil
import signal
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(HERE))

import tap  # noqa: E402
from terminal import Failure, Terminal  # noqa: E402

PROGRAM = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
CTRL_C, CTRL_L, CTRL_Z = b"\x03", b"\x0c", b"\x1a"
KERNEL = """[scenario]
kernel = k.cu
limit = 600
{patch}
[shape]
heads = {heads}
q_len = {length}
head_dim = 64
"""


class Signals(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="attnscope-signals-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.env = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", ATTNSCOPE_BACKEND="cpu",
                        VISUAL=f"{self.folder}/slow", XDG_CONFIG_HOME=str(self.folder), XDG_STATE_HOME=str(self.folder))
        shutil.copy(ROOT / "kernels/ladder.cuh", self.folder)
        self.kernel = (ROOT / "kernels/v2b_scalar.cu").read_text(encoding="utf-8")
        (self.folder / "slow").write_text("#!/bin/sh\necho editing\nsleep 60\n", encoding="ascii")
        (self.folder / "slow").chmod(0o755)

    def begin(self, phase):
        """The program on a terminal, in that phase."""
        shape = {"heads": 8, "length": 512} if phase in ("judging", "looking") else {"heads": 1, "length": 128}
        patch = f"patch = {ROOT}/tests/session/hang.patch" if phase == "running" else ""
        text = KERNEL.format(patch=patch, **shape)
        # Nobody has built it before.
        (self.folder / "k.cu").write_text(f"{self.kernel}extern int made_{time.time_ns()};\n" if phase == "building" else self.kernel,
                                          encoding="utf-8")
        (self.folder / "s.ini").write_text(text, encoding="utf-8")
        terminal = Terminal([PROGRAM, "s.ini"], self.env, self.folder, 120, 40)
        self.addCleanup(terminal.close)
        words = {"building": "compiling", "running": "running", "judging": "judging"}
        self.see(terminal, words.get(phase, "CLEAN"))
        if phase == "looking":
            terminal.send(b"B")
            self.see(terminal, "searching for bias")
        elif phase == "editing":
            terminal.send(b"e")
            terminal.wait("editing")
        return terminal

    def see(self, terminal, text):
        """Waits for a text on a screen that is drawn anew all the time: else only cells that changed are written."""
        for _ in range(2000):
            terminal.send(CTRL_L)
            try:
                return terminal.wait(text, 0.05)
            except Failure:
                self.assertFalse(terminal.ended(), f"it ended before '{text}'")
        return self.fail(f"'{text}' did not come")

    def check_end(self, terminal, *expected, limit_s=60):
        end = terminal.report(1, limit_s)
        self.assertIsNotNone(end, "it does not end")
        self.assertEqual(end["left"], [])
        self.assertIn(os.waitstatus_to_exitcode(end["status"]), expected)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)
        self.assertEqual(end["unrestored"], 0)
        return end

    def interrupt(self, phase):
        """Ctrl-C stops what is under way, q leaves."""
        terminal = self.begin(phase)
        for _ in range(20):
            terminal.send(CTRL_C)
            terminal.settle()
            terminal.send(b"q")
            if terminal.report(1, 0.5) is not None:
                break
        self.check_end(terminal, 0, -signal.SIGINT)

    def kill(self, phase, number, *expected):
        terminal = self.begin(phase)
        os.kill(terminal.pid, number)
        self.check_end(terminal, *expected)

    def test_killed_it_takes_the_kernel_with_it(self):
        terminal = self.begin("running")
        os.kill(terminal.pid, signal.SIGKILL)
        end = terminal.report(1, 60)
        self.assertEqual(os.waitstatus_to_exitcode(end["status"]), -signal.SIGKILL)
        self.assertEqual(end["left"], [])

    def hang_up(self, phase):
        """The terminal's window is closed."""
        terminal = self.begin(phase)
        os.close(terminal.master)
        terminal.master = os.open("/dev/null", os.O_RDWR)
        end = terminal.report(1, 60)
        self.assertIsNotNone(end, "it does not end")
        self.assertEqual(end["left"], [])

    def test_no_resize_is_missed_and_none_is_too_fast(self):
        terminal = self.begin("ready")
        for i in range(300):
            terminal.resize(80 + i % 120, 24 + i % 40)
            if i % 7 == 0:
                terminal.resize(1 + i % 5, 1 + i % 3)
            os.kill(terminal.pid, signal.SIGWINCH)
        terminal.resize(100, 30)
        terminal.settle()
        terminal.forget()
        terminal.send(b"\x0c")
        terminal.wait("? help")
        terminal.send(b"q")
        self.check_end(terminal, 0)

    def suspend(self, phase):
        terminal = self.begin(phase)
        terminal.send(CTRL_Z)
        terminal.settle()
        if phase == "editing":  # it has stopped with its editor, which goes on
            os.killpg(terminal.pid, signal.SIGINT)
        for _ in range(20):
            terminal.send(CTRL_C)
            terminal.settle()
            terminal.send(b"q")
            if terminal.report(1, 0.5) is not None:
                break
        self.assertGreaterEqual(self.check_end(terminal, 0, -signal.SIGINT)["stops"], 1)


def case(name, *arguments):
    def run(self):
        getattr(self, name)(*arguments)
    return run


for each in ("building", "running", "judging", "looking", "editing", "ready"):
    setattr(Signals, f"test_interrupt_{each}", case("interrupt", each))
for each in ("building", "running", "editing"):
    setattr(Signals, f"test_hang_up_{each}", case("hang_up", each))
    setattr(Signals, f"test_suspend_{each}", case("suspend", each))
for each in ("building", "running", "judging"):
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        setattr(Signals, f"test_{signal_number.name.lower()}_{each}", case("kill", each, signal_number, 3))

if __name__ == "__main__":
    tap.main()
