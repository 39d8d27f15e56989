#!/usr/bin/env python3
"""What a terminal session shows is what its file and its keys say: r reads the file again, watched or not, and the
command that Y c copies makes the shown run again, bit for bit."""

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/monkey"))

import tap  # noqa: E402
from terminal import PATIENCE_S, Terminal  # noqa: E402

PROGRAM = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
CTRL_L, ENTER, ESC = b"\x0c", b"\r", b"\x1b"
SCENARIO = "[scenario]\nkernel = k.cu\n[shape]\nheads = 2\nq_len = {length}\n"


class Command(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="attnscope-command-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.env = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", ATTNSCOPE_BACKEND="cpu",
                        XDG_CONFIG_HOME=str(self.folder), XDG_STATE_HOME=str(self.folder))
        for name in ("TMUX", "STY"):
            self.env.pop(name, None)
        shutil.copy(ROOT / "kernels/ladder.cuh", self.folder)
        shutil.copy(ROOT / "kernels/v2b_scalar.cu", self.folder / "k.cu")
        shutil.copy(ROOT / "scenarios/bugs/double-scale.patch", self.folder / "it's.patch")

    def write(self, length, more=""):
        (self.folder / "s.ini").write_text(SCENARIO.format(length=length) + more, encoding="utf-8")

    def begin(self, *arguments):
        self.terminal = Terminal([PROGRAM, *arguments], self.env, self.folder, 160, 40)
        self.addCleanup(self.terminal.close)

    def until(self, condition, what):
        """Waits as long as a loaded machine may need for a build and a run."""
        end = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            self.assertFalse(self.terminal.ended(), f"it ended before {what}")
            self.assertLess(time.monotonic(), end, f"{what} did not come")
            self.terminal.drain(0.05)
        return found

    def see(self, *texts):
        """Waits until a screen that is drawn anew has them all."""
        def drawn():
            self.terminal.forget()
            self.terminal.send(CTRL_L)
            self.terminal.settle()
            return all(self.terminal.has(text) for text in texts)
        self.until(drawn, texts)

    def line(self, text):
        self.terminal.send(b":" + text.encode() + ENTER)

    def copied(self):
        """The command that Y c gives the terminal."""
        self.terminal.settle()
        self.terminal.forget()
        self.terminal.send(b"Yc")
        copy = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")
        found = self.until(lambda: copy.search(self.terminal.shown), "a copy")
        return base64.b64decode(found[1]).decode()

    def run_it(self, *arguments, status=(0, 1)):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertIn(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def facts(self, text):
        """What a run's JSON says of the run, not of the moment and the file's name."""
        said = json.loads(text)
        for name in ("file", "title", "as_expected", "why", "expect"):
            said.pop(name)
        for name in ("seconds", "scenario_name"):
            said["run"].pop(name)
        said.pop("settings")  # the same may be said in other words
        return said

    def check_shown(self, name):
        """The copied command, run by a shell, makes the run that is on the screen."""
        self.line(f"save {name}.safetensors")
        self.until((self.folder / f"{name}.safetensors").exists, f"{name}.safetensors")
        command = self.copied()
        shell = subprocess.run(["sh", "-c", command.replace("attnscope", shlex.quote(PROGRAM), 1)], cwd=self.folder,
                               env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=300,
                               check=False)
        self.assertEqual(shell.returncode, 0, command)
        words = shlex.split(command)
        at = words.index("--at")
        self.assertEqual(words[:3], ["attnscope", "show", "--view"])
        again = self.run_it("run", "--json", "-o", "again.safetensors", *words[at + 2:])
        self.assertEqual(self.facts(again), self.facts(self.run_it("run", "--json", f"{name}.safetensors")), command)
        self.run_it("diff", "--exact", f"{name}.safetensors", "again.safetensors", status=(0,))
        return words[at + 2:]

    def test_the_command_of_each_run(self):
        self.write(64)
        self.begin("s.ini", "--set", "fill.seed=5", "--patch", "it's.patch")
        self.see("run 1", "Lq64", "FAIL")
        self.assertEqual(self.check_shown("first")[0], "s.ini")
        self.terminal.send(b"W")
        self.terminal.settle()
        self.write(96, "[fill]\nv.kind = uniform\n")
        self.terminal.send(b"r")
        self.see("run 2", "Lq96", "FAIL")
        for setting in ("shape.kv_heads=1", "fill.kind=large-logits", "shape.q_len=77"):
            self.line(f"set {setting}")
        self.terminal.send(b"r")
        self.see("run 3", "Hkv1", "Lq77", "FAIL")
        self.terminal.send(b"c")
        self.see("run 4", "Lq77", "checked", "FAIL")
        words = self.check_shown("checked")
        self.assertEqual(words[0], "s.ini")
        self.assertIn("scenario.checks=yes", words)
        # Older ones, chosen in the list: the second is the file's alone, the first was made by another file.
        self.terminal.send(b"Rjj" + ENTER)
        self.see("run 2", "Lq96", "FAIL")
        words = self.check_shown("second")
        self.assertEqual(words[0], "s.ini")
        self.assertNotIn("shape.kv_heads=1", words)
        self.terminal.send(b"Rj" + ENTER)
        self.see("run 1", "Lq64", "FAIL")
        self.assertEqual(self.check_shown("older")[0], "k.cu")
        # An isolated run is one of the run on the screen, whatever the file says.
        self.terminal.send(b"g" + b"i")
        self.see("S isolated", "Lq64", "FAIL")
        words = shlex.split(self.copied())
        self.assertEqual(words[:4], ["attnscope", "run", "--isolate", "s"])
        self.assertIn('"isolation"', self.run_it(*words[1:], "--json"))
        # What an edited kernel was cannot be said.
        with open(self.folder / "k.cu", "a", encoding="utf-8") as kernel:
            kernel.write("// edited\n")
        self.terminal.send(ESC)
        self.copied()
        self.terminal.wait("the kernel was edited since this run")

    def test_a_kernel_with_a_shape(self):
        self.begin("k.cu", "--shape", "1,2,50,90,64", "--set", "shape.scale=0.3")
        self.see("run 1", "Lq50", "Lkv90", "CLEAN")
        self.check_shown("first")
        self.line("set shape.q_len=512")
        self.line("set shape.heads=1")
        self.terminal.send(b"r")
        self.see("run 2", "H1 Lq512 Lkv90", "CLEAN")
        self.check_shown("second")

    def test_the_first_minutes(self):
        """What README tells of `make run`: e, mend the line, save, and all is well; the edit stays."""
        def demo():
            return subprocess.run([ROOT / "packaging/demo", self.folder], cwd=ROOT, check=True, capture_output=True,
                                  text=True).stdout
        kernel = self.folder / "demo/attention.cu"
        self.assertEqual(demo() + demo(), "")
        wrong = kernel.read_text(encoding="utf-8")
        self.assertIn("p.scale * p.scale", wrong.splitlines()[92])  # four lines above the probe
        editor = self.folder / "vi"
        editor.write_text("#!/bin/sh\necho \"$@\" >asked\nsed -i 's/p.scale [*] p.scale/p.scale/' \"$2\"\n", encoding="utf-8")
        editor.chmod(0o755)
        self.env["VISUAL"] = str(editor)
        self.begin("demo/attention.cu", "--shape", "1,1,128,64")
        self.see("attention.cu:97", "FAIL", "scores are scaled twice")
        self.terminal.send(b"e")
        self.see("CLEAN", "since run 1: S better")
        self.assertIn("+97 ", (self.folder / "asked").read_text(encoding="utf-8"))
        self.terminal.send(b"q")
        self.terminal.wait("2 runs are not saved: q again leaves")
        self.assertIn("has your edits and stays", demo())
        self.assertNotEqual(kernel.read_text(encoding="utf-8"), wrong)

    def test_the_inputs_of_a_trace_in_a_kernel(self):
        self.write(64)
        self.run_it("run", "s.ini", "--patch", "it's.patch", "-o", "wrong.safetensors")
        self.begin("wrong.safetensors")
        self.see("Lq64", "FAIL")
        self.terminal.send(b"r")
        self.see("run 2", "Lq64", "FAIL", "since run 1: as before")
        self.line("write again.ini")
        self.terminal.wait("wrote again.ini")
        self.assertIn("patch = ", (self.folder / "again.ini").read_text(encoding="utf-8"))
        (self.folder / "k.cu").rename(self.folder / "k2.cu")
        self.begin("wrong.safetensors")
        self.see("Lq64", "FAIL")
        self.terminal.send(b"r")
        self.terminal.wait("its kernel is not there any more")
        self.terminal.send(ESC)
        (self.folder / "k2.cu").rename(self.folder / "k.cu")
        self.line("replay nothing.cu")
        self.terminal.wait("nothing.cu: cannot be read: No such file")
        self.line("replay wrong.safetensors")
        self.terminal.wait("expected a kernel (.cu) or a scenario (.ini)")
        self.line("replay k.cu")
        self.see("run 2", "Lq64", "CLEAN", "since run 1: S better")
        words = self.check_shown("right")
        self.assertEqual(words[:3], ["k.cu", "--set", "inputs.from=wrong.safetensors"])
        self.line("set shape.q_len=50")
        self.terminal.wait("makes shape.q_len 64; expected 50")
        self.line("replay s.ini")
        self.see("run 3", "Lq64", "CLEAN")
        self.check_shown("by-scenario")


if __name__ == "__main__":
    tap.main()
