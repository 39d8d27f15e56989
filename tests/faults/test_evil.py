#!/usr/bin/env python3
"""Kernels that misbehave: each ends in the right word and status, in bounded memory, and leaves no process. And what ends
attnscope itself, at any moment, leaves nothing behind. With --all the cases that take half a minute each run as well; the
last line of its output counts for docs/truth.md."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402
from read_trace import Trace  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
ALL = "--all" in sys.argv
RSS_KIB_MAX = 800 * 1024  # attnscope and its debuggee, on 2 MiB of trace
CLEAN, FAIL, CRASHED, HUNG = ("CLEAN", 0), ("FAIL", 1), ("CRASHED", 3), ("HUNG", 3)
GONE = ("CRASHED HUNG", 3)  # which of the two depends on where its threads are
DECLINED, REFUSED = ("", 2), ("", 3)  # no run, so no word for one

# EVIL: (word, status), and what else the output says
WANTED = {
    "host-spins": (HUNG, "did not finish within 1 s"),
    "host-overflows": (CRASHED, "signal 11"),
    "host-exits": (CRASHED, "exited with status 0"),
    "host-aborts": (CRASHED, "signal 6"),
    "host-null": (CRASHED, "signal 11"),
    "host-throws": (CRASHED, "signal 6"),
    "host-killed": (CRASHED, "signal 9"),
    "host-stops": (HUNG, ""),
    "host-double-free": (CRASHED, "signal 6"),
    "closes-streams": (CLEAN, ""),
    "closes-wire": (GONE, ""),
    "shuts-wire-down": (CRASHED, ""),
    "changes-folder": (CLEAN, ""),
    "ignores-signals": (HUNG, ""),
    "signals-its-parent": (CLEAN, ""),
    "signals-its-group": (CRASHED, "signal 15"),
    "takes-all-files": (CLEAN, ""),
    "limits-its-memory": (("UNJUDGED", 3), "cannot start a worker"),
    "starts-threads": (CLEAN, ""),
    "scribbles": (FAIL, ""),
    "forks": (CLEAN, ""),
    "forks-daemons": (CLEAN, ""),
    "forks-and-hangs": (HUNG, ""),
    "prints-lines": (CLEAN, ""),
    "prints-300-megabytes": (CLEAN, ""),
    "prints-for-ever": (HUNG, ""),
    "prints-no-newline": (CLEAN, ""),
    "says-garbage": (CRASHED, "broke the protocol"),
    "says-brackets": (CRASHED, "broke the protocol"),
    "says-a-long-line": (CRASHED, "broke the protocol"),
    "says-many-events": (FAIL, ""),
    "says-strange-progress": (CLEAN, ""),
    "constructor-exits": (REFUSED, "exited with status 0 before it sent its hello"),
    "constructor-prints": (CLEAN, ""),
    "constructor-prints-and-exits": (REFUSED, "it printed: no licence found"),
    "constructor-says-hello": (REFUSED, "ABI version 999"),
    "constructor-says-nothing": (REFUSED, "unknown type"),
    "destructor-spins": (CLEAN, ""),
    "device-spins": (HUNG, "1 of 5 blocks had finished"),
    "device-overflows": (CRASHED, "evil.cu:"),
    "device-exits": (CRASHED, "exited with status 0"),
    "device-quick-exits": (CRASHED, "exited with status 7"),
    "device-aborts": (CRASHED, "signal 6"),
    "device-null": (CRASHED, "null pointer"),
    "device-jumps": (CRASHED, "address 0x1234"),
    "device-throws": (CRASHED, "signal 6"),
    "device-killed": (CRASHED, "signal 9"),
    "device-traps": (CRASHED, "illegal instruction"),
    "device-sleeps": (HUNG, "1 of 5 blocks had finished"),
    "device-forks": (CLEAN, ""),
    "device-scribbles": (CRASHED, ""),
    "plan-says-much": (DECLINED, "evil: www"),
    "plan-says-escapes": (DECLINED, "red"),
    "plan-says-nonsense": (REFUSED, "before it sent its plan"),
    "plan-is-huge": (DECLINED, "kv splits"),
    "plan-is-negative": (DECLINED, "expected 1..1024 rows"),
    "plan-wants-all-memory": (DECLINED, "a workspace of 18446744073709551615 bytes"),
    "plan-wants-a-terabyte": (REFUSED, "workspace_bytes"),
    "plan-promises-nothing": (DECLINED, "error limit"),
    "launch-does-nothing": (FAIL, "never"),
    "launch-says-much": (CRASHED, "www"),
    "launch-says-escapes": (CRASHED, "red"),
    "launch-says-nonsense": (CRASHED, "signal 11"),
    "launch-huge-grid": (CRASHED, "a grid of (4000000000,60000,60000) blocks"),
    "launch-huge-block": (CRASHED, "at most 1024"),
    "launch-huge-shared": (CRASHED, "dynamic shared memory"),
    "launch-no-threads": (CRASHED, "is empty"),
    "writes-its-inputs": (CRASHED, "signal 11"),
}
SLOW = {  # how long a debuggee has
    "constructor-spins": (REFUSED, "did not send its hello within 120 s"),
    "plan-spins": (REFUSED, "did not send its plan within 30 s"),
}
SCENARIO = """[scenario]
kernel = {kernel}
limit = {limit}
backend = cpu
[shape]
heads = {heads}
q_len = {length}
head_dim = 16
dtype = f32
"""
executions = failures = 0


def processes_with(word):
    """(pid, command line) of processes whose environment holds the word; none of the dead has one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "environ").read_bytes():
                    found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ")))
            except OSError:
                pass
    return found


def ended(word, limit_s=10):
    """Processes with the word that are still there when those that were killed have had time to go."""
    until = time.monotonic() + limit_s
    while (left := processes_with(word)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="attnscope-evil-")
        cls.folder = Path(cls.holder.name)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def scenario(self, length=40, heads=1, limit=600, kernel=ROOT / "tests/faults/evil.cu"):
        path = self.folder / f"{length}-{heads}-{limit}.ini"
        path.write_text(SCENARIO.format(kernel=kernel, limit=limit, length=length, heads=heads), encoding="utf-8")
        return str(path)

    def environment(self, **more):
        # Descendants are found by it, whatever they do to their groups.
        return dict(os.environ, ATTNSCOPE_TEST_RUN=str(self.folder), **more)

    def start(self, *arguments, **more):
        return subprocess.Popen([ATTNSCOPE, *arguments], env=self.environment(**more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder,
                                preexec_fn=self.hear_signals)

    @staticmethod
    def hear_signals():
        """Under nohup SIGHUP is ignored, and what is ignored stays so."""
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def run_it(self, *arguments, limit_s=180, **more):
        """(status, output, the largest resident set of it and its children in KiB)"""
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen([ATTNSCOPE, *arguments], env=self.environment(**more), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, cwd=self.folder)
            until = time.monotonic() + limit_s
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > until:
                    process.kill()
                    process.wait()
                    self.fail(f"it does not end within {limit_s} s")
                time.sleep(0.01)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            return process.returncode, out.read().decode("utf-8", "replace"), usage.ru_maxrss

    def nothing_left(self):
        self.assertEqual(ended(f"ATTNSCOPE_TEST_RUN={self.folder}"), [])


class Evil(Case):
    def test_every_kernel_ends_in_its_word(self):
        global executions, failures
        self.assertEqual(self.run_it("run", self.scenario())[0], 0, "the kernel itself is correct")
        for name, ((word, status), words) in {**WANTED, **(SLOW if ALL else {})}.items():
            with self.subTest(name):
                executions += 1
                failures += 1
                scenario = self.scenario(limit=1 if "HUNG" in word else 600)
                got, output, rss = self.run_it("run", scenario, EVIL=name)
                self.assertEqual(got, status, output[-2000:])
                verdicts = [line.split()[-1] for line in output.splitlines() if line.startswith("evil  (")]
                if word:
                    self.assertIn(" ".join(verdicts), word.split(), output[-2000:])
                else:
                    self.assertEqual(verdicts, [], output[-2000:])
                self.assertTrue(words in output, output[-2000:])
                stands = [line for line in output.splitlines() if line.startswith("event: stands: block (")]
                for block in {line.split(")")[0] for line in stands}:  # what keeps the others waiting comes first
                    goes = [" runs" in line or "for a value" in line for line in stands if line.startswith(block)]
                    self.assertEqual(goes, sorted(goes, reverse=True), output[-2000:])
                self.assertLess(rss, RSS_KIB_MAX)
                self.nothing_left()
                failures -= 1

    def test_lines_of_a_constructor_are_in_the_log(self):
        output = self.run_it("show", self.scenario(), "--view", "log", EVIL="constructor-prints")[1]
        self.assertIn("hello from a constructor", output)

    def test_the_log_says_how_much_there_was(self):
        output = self.run_it("show", self.scenario(), "--view", "log", EVIL="prints-300-megabytes")[1]
        self.assertIn("the kernel printed 300 MiB; the first 16.0 MiB are kept", output)

    def test_the_log_says_what_was_left_running(self):
        output = self.run_it("show", self.scenario(), "--view", "log", EVIL="forks-daemons")[1]
        self.assertIn("the kernel left 5 processes running; they were killed", output)


class Killed(Case):
    """attnscope is ended in the middle of something."""

    def slow_compiler(self, body, *names):
        """A folder for PATH whose compilers (g++) answer like the real ones, but compile as `body` says."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for name in names or ("g++",):
            real = shutil.which(name)
            (folder / name).write_text(f'#!/bin/sh\ncase " $* " in *" -c "*) ;; *) exec {real} "$@";; esac\n'
                                       f"{body.format(real=real)}\n", encoding="ascii")
            (folder / name).chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    def wait_for(self, pattern, process):
        until = time.monotonic() + 60
        while not list(self.folder.glob(pattern)):
            self.assertIsNone(process.poll(), "it ended too early")
            self.assertLess(time.monotonic(), until, f"no {pattern}")
            time.sleep(0.01)

    def building(self, cache):
        process = self.start("run", self.scenario(), ATTNSCOPE_CACHE=str(self.folder / cache),
                             PATH=self.slow_compiler("sleep 60 & sleep 60"))
        self.wait_for(f"{cache}/work.*", process)
        time.sleep(0.2)
        return process

    def test_a_signal_during_a_build_leaves_no_compiler_and_no_folder(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                process = self.building(number.name)
                process.send_signal(number)
                output = process.communicate(timeout=30)[0].decode()
                self.assertEqual(process.returncode, -number)
                self.assertEqual(output.endswith("attnscope: stopped\n"), number == signal.SIGINT, output)
                self.assertEqual(list(self.folder.glob(f"{number.name}/work.*")), [])
                self.nothing_left()

    def test_an_interrupt_during_a_second_run_leaves_what_the_first_one_says(self):
        words = (str(ROOT / "scenarios/bugs/m-l-shared-by-two-rows.ini"), "--set", "scenario.checks=no")
        slow = self.folder / "slow"
        own = {"ATTNSCOPE_CACHE": str(self.folder / "again"),
               "PATH": self.slow_compiler(f'[ -e {slow} ] && sleep 60; exec {{real}} "$@"', "g++", "clang++")}
        first = self.run_it("run", *words, "--no-retry", **own)
        slow.touch()
        process = self.start("run", *words, **own)
        self.wait_for("again/work.*", process)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=30)[0].decode()
        self.assertEqual(process.returncode, 1, output)
        self.assertIn("m is wrong in 72 of 256 elements: no known cause", output)
        self.assertEqual(output.splitlines()[-1], first[1].splitlines()[-1])
        self.nothing_left()

    def test_the_next_build_removes_the_folder_of_one_that_was_killed(self):
        process = self.building("killed")
        process.kill()
        process.communicate(timeout=30)
        left = list(self.folder.glob("killed/work.*"))
        self.assertEqual(len(left), 1)
        os.utime(left[0], (1, 1))  # older than a folder that is about to be locked
        status, output, _ = self.run_it("run", self.scenario(), ATTNSCOPE_CACHE=str(self.folder / "killed"))
        self.assertEqual(status, 0, output)
        self.assertEqual(list(self.folder.glob("killed/work.*")), [], f"{left}: {os.listdir(left[0]) if left[0].exists() else None}")
        for pid, _ in processes_with(f"ATTNSCOPE_TEST_RUN={self.folder}"):
            os.kill(pid, signal.SIGKILL)  # the compiler of the one that was killed; a real one ends by itself

    def test_a_compiler_that_leaves_something_running(self):
        path = self.slow_compiler('sleep 60 &\nexec {real} "$@"')
        status, output, _ = self.run_it("run", self.scenario(), ATTNSCOPE_CACHE=str(self.folder / "behind"), PATH=path)
        self.assertEqual(status, 0, output)
        self.nothing_left()

    def test_a_signal_during_a_run_takes_the_kernel_and_its_daemons(self):
        scenario = self.scenario()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("run", scenario, EVIL="forks-and-hangs")
            until = time.monotonic() + 60
            while len(processes_with(f"ATTNSCOPE_TEST_RUN={self.folder}")) < 7 and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(number)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, -number)
            self.nothing_left()

    def test_killed_it_leaves_no_kernel_that_never_said_hello(self):
        for name in ("constructor-spins", "plan-spins"):
            process = self.start("run", self.scenario(), EVIL=name)
            until = time.monotonic() + 60
            while len(processes_with("ATTNSCOPE_STARTED=" + str(process.pid))) < 1 and time.monotonic() < until:
                time.sleep(0.02)
            process.kill()
            process.communicate(timeout=30)
            self.nothing_left()

    def test_a_save_is_whole_or_not_at_all(self):
        global executions, failures
        target, source = self.folder / "saved/x.safetensors", self.folder / "source.safetensors"
        target.parent.mkdir(exist_ok=True)
        scenario = self.scenario(1000, 2)
        began = time.monotonic()
        self.assertEqual(self.run_it("run", scenario, "--save", str(source), limit_s=300)[0], 0)
        took = time.monotonic() - began
        generator = random.Random(7)
        for i in range(100 if ALL else 6):
            executions += 1
            failures += 1
            process = self.start("run", scenario, "--save", str(target))
            try:
                process.communicate(timeout=generator.uniform(0.5, 1.0) * took)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            self.assertIn([p.name for p in target.parent.iterdir()], ([], [target.name]), f"round {i}")
            if target.exists():
                Trace(target).check_all()
                target.unlink()
            self.nothing_left()
            failures -= 1


class Cache(Case):
    def test_a_damaged_program_is_built_anew(self):
        cache = self.folder / "damaged"
        arguments = ("run", self.scenario())
        self.assertEqual(self.run_it(*arguments, ATTNSCOPE_CACHE=str(cache))[0], 0)
        program, = [p for p in cache.iterdir() if p.name.startswith("evil-") and p.suffix != ".log"]
        whole = program.read_bytes()
        for what, damaged in (("empty", b""), ("text", b"#!/nonexistent\n"), ("cut", whole[:len(whole) // 8]),
                              ("zeros", whole[:4096] + bytes(len(whole) - 4096))):
            with self.subTest(what):
                program.write_bytes(damaged)
                status, output, _ = self.run_it(*arguments, ATTNSCOPE_CACHE=str(cache))
                self.assertEqual(status, 0, output)
                self.assertEqual(program.read_bytes(), whole)

    def test_a_cache_that_others_can_write_is_refused(self):
        cache = self.folder / "open"
        cache.mkdir()
        cache.chmod(0o777)
        status, output, _ = self.run_it("run", self.scenario(), ATTNSCOPE_CACHE=str(cache))
        self.assertEqual(status, 3)
        self.assertIn("is writable by others", output)
        self.assertEqual(list(cache.iterdir()), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder away")
    def test_a_cache_of_another_user_is_refused(self):
        cache = self.folder / "foreign"
        cache.mkdir()
        os.chown(cache, 54321, 54321)
        status, output, _ = self.run_it("run", self.scenario(), ATTNSCOPE_CACHE=str(cache))
        self.assertEqual(status, 3)
        self.assertIn("belongs to another user", output)


if __name__ == "__main__":
    if ALL:
        sys.argv.remove("--all")
    try:
        tap.main()
    finally:
        print(f"# harness: evil kernels and kills; executions {executions}; failures {failures}")
