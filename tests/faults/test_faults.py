#!/usr/bin/env python3
"""attnscope where the system fails: every allocation, every call of the system, every limit, one at a time.

Whatever fails, it says what it says without the failure, or it ends with status 3 (a call of the system: 2 where a file
cannot be read) and a line that says so: never another verdict, another finding, a crash or a wait without end. Each run
is on one processor, so that the order of calls is the same every time.

As a test a sample of all calls, a fixed step apart; `test_faults.py --full` takes all of them.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
CACHE = Path(os.environ.get("ATTNSCOPE_CACHE", ROOT / "build/cache")).resolve()
PROGRAM = Path(os.environ.get("ATTNSCOPE", BUILD / "attnscope")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

WATCHDOG_S = 60
ENOMEM, EINTR, EIO, ENOSPC, EMFILE, EAGAIN = 12, 4, 5, 28, 24, 11
VERDICT = re.compile(r"\b(CLEAN|FAIL|SUSPECT|CRASHED|HUNG|CANCELLED|UNJUDGED|ERROR)\b")
TIME = re.compile(r"\d[\d.]* (s|ms|us)\b|\d\d:\d\d:\d\d")  # of a run that is made anew, of the day
CULPRIT, CLEAN, HUNG = (f"tests/recorded/{name}.safetensors" for name in ("double-scale", "clean-wmma", "hung"))
LIVE = ("run", "kernels/v2b_scalar.cu", "--shape", "1,1,64,64", "--backend", "cpu")
COMMANDS = [("run", CULPRIT), ("run", CLEAN), ("run", HUNG), ("run", "--json", CULPRIT), ("diff", CULPRIT, CULPRIT),
            ("check", CULPRIT), ("open", "--text", CULPRIT), LIVE]
VIEWS = ("overview", "map", "tile", "operands", "row", "state", "onset", "mask", "compare", "formats", "whatif", "bias",
         "errors")
COMMANDS += [("show", "--view", view, CULPRIT) for view in VIEWS]
SAMPLES = {"memory": 4, "io": 2}  # calls that fail of each command, as a test
LAST, LAST_STEP = 100, 9  # and of those in which a view is made: the last ones of `show`
WORKER = [f"cannot start a worker: {os.strerror(code)}" for code in (ENOMEM, EAGAIN)]  # no stacks, no thread
LOADER = "error while loading shared libraries"


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, TIME.sub("TIME", out), err


def run(command, environment=(), limits=()):
    """status: None where the watchdog had to end it."""
    def before():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for what, most in limits:
            resource.setrlimit(what, (most, most))
    try:
        done = subprocess.run([PROGRAM, *command], cwd=ROOT, env=dict(os.environ, **dict(environment)),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=WATCHDOG_S, check=False,
                              preexec_fn=before)
    except subprocess.TimeoutExpired:
        return Result(None, "", "")
    return Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def wrong(command, right, got, statuses):
    """What is wrong with a run under failure, or ""."""
    if got.status is None:
        return f"no end after {WATCHDOG_S} s"
    if got.status < 0:
        return f"killed by signal {-got.status}"
    if got.status == right.status and got.out == right.out:
        return ""
    if got.status == 127 and LOADER in got.err:
        return ""
    if got.status not in statuses:
        return f"status {got.status} with other output than without the failure"
    others = set(VERDICT.findall(got.out)) - set(VERDICT.findall(right.out)) - {"UNJUDGED", "ERROR"}
    if others:
        return f"another verdict: {', '.join(sorted(others))}"
    findings = [line for line in got.out.splitlines() if line.startswith("finding") and line not in right.out]
    if findings:
        return f"another finding: {findings[0]}"
    said = [line for line in got.err.splitlines() if line.startswith("attnscope: ")]
    # check says so in its table.
    if not said and "ERROR" not in got.out and right.status != 3:
        return "it does not say why"
    return ""


def printing(folder):
    """Every command, as it prints: what the sweeps run, and the others."""
    others = [("--help",), ("--version",), ("list",), ("docs", "man"), ("docs", "commands"), ("run", "--help"),
              ("diff", "--json", CULPRIT, CLEAN), ("check", "--json", CULPRIT), ("check", LIVE[1], "--time", "1"),
              ("bench", LIVE[1], "--shape", "1,1,64,64"), ("profile", LIVE[1], "--shape", "1,1,64,64"),
              ("run", "-o", f"{folder}/kept", *LIVE[1:])]
    return COMMANDS + others


class Faults:
    """Runs under failure and what was wrong with them. full: every call, else some."""

    def __init__(self, library, full):
        self.library, self.full = library, full
        self.runs, self.failures = 0, []

    def environment(self, kind, at, code, on, program=PROGRAM):
        given = {"LD_PRELOAD": str(self.library), "FAULT_PROGRAM": str(program), "FAULT_KIND": kind,
                 "FAULT_ERRNO": str(code), "FAULT_AT": str(at)}
        if on:
            given["FAULT_ON"] = "1"
        if at < 0:
            given["FAULT_COUNT"] = "1"
        return given

    def figures(self, part):
        """For docs/truth.md."""
        return f"# harness: {NAMES[part]}; executions {self.runs}; failures {len(self.failures)}"

    def note(self, command, how, why):
        self.runs += 1
        if why:
            self.failures.append(f"{' '.join(command)}: {how}: {why}")

    def sweep(self, kind, command, code, on, statuses):
        """Lets the calls of a command fail, one run each (on: and all behind it)."""
        right = run(command, self.environment(kind, -1, code, False))
        counted = re.search(r"^FAULT_CALLS (\d+)$", right.err, re.MULTILINE)
        if not counted:
            sys.exit(f"the preload did not count the calls of {' '.join(command)}: {right.err}")
        n = int(counted[1])
        step = 1 if self.full else max(1, n // SAMPLES[kind])
        # Not the same calls of every command.
        calls = set(range(0 if self.full else (COMMANDS.index(command) * 17 + code) % step, n, step))
        if command[0] == "show" and kind == "memory":
            calls |= set(range(max(0, n - LAST) + (COMMANDS.index(command) + on) % LAST_STEP, n, LAST_STEP))
        for at in sorted(calls):
            got = run(command, self.environment(kind, at, code, on))
            how = f"{kind} call {at} of {n}{' and all behind it' if on else ''}, errno {code}"
            self.note(command, how, wrong(command, right, got, statuses))

    def memory(self):
        for command in COMMANDS:
            for on in (False, True):
                self.sweep("memory", command, ENOMEM, on, (3,))
            print(f"# memory: {' '.join(command)}", flush=True)  # the runner limits silence

    def io(self):
        for command in COMMANDS:
            for code in (EINTR, EIO, ENOSPC, EMFILE):
                self.sweep("io", command, code, False, (2, 3))

    def debuggee(self):
        """The kernel's process: it says nothing of its own calls at the end, so that there is no count of them."""
        right, said = run(LIVE), set()
        # On one processor it starts three threads, of which one is a worker.
        for kind, most, step in (("io", 40, 1), ("memory", 400, 1 if self.full else 23), ("worker", 8, 1)):
            for at in range(0, most, step):
                got = run(LIVE, self.environment(kind, at, ENOMEM, False, f"{CACHE}/"))
                self.note(LIVE, f"{kind} call {at} of the debuggee", wrong(LIVE, right, got, (3,)))
                if kind == "worker" and "UNJUDGED" in got.out:
                    said |= {text for text in WORKER if text in got.err}
        self.failures += [f"none is UNJUDGED with '{text}'" for text in WORKER if text not in said]

    def stdout(self):
        """A disk that is full when something is printed: one line says so, and no verdict comes of it."""
        with tempfile.TemporaryDirectory() as folder:
            for command in printing(folder):
                right = run(command, self.environment("stdout", -1, ENOSPC, False))
                n = int(re.search(r"^FAULT_CALLS (\d+)$", right.err, re.MULTILINE)[1])
                which = range(n) if self.full else sorted({0, n - 1})
                for at, on in [(at, False) for at in which] + [(0, True)]:
                    got = run(command, self.environment("stdout", at, ENOSPC, on))
                    said = [line for line in got.err.splitlines() if line.startswith("attnscope: ")]
                    why = ("no end" if got.status is None else
                           f"status {got.status}" if got.status not in ({3, right.status} - {0, 1}) else
                           f"{len(said)} lines on stderr" if len(said) != 1 else "")
                    self.note(command, f"write {at} of {n} to stdout{' and all behind it' if on else ''}", why)

    def ladder(self, what, name, steps, commands, statuses):
        for command in commands:
            right = run(command)
            for most in steps:
                got = run(command, (), [(what, most)])
                self.note(command, f"{name} {most}", wrong(command, right, got, statuses))

    def limits(self):
        MiB = 1 << 20
        if "asan" not in str(BUILD):  # its shadow is larger than any of these
            address = [n * MiB for n in ((*range(8, 64), *range(64, 400, 8)) if self.full else (24, 46, 96, 250, 350))]
            self.ladder(resource.RLIMIT_AS, "RLIMIT_AS", address, [("run", CULPRIT), ("show", CLEAN), LIVE], (3,))
        self.ladder(resource.RLIMIT_NOFILE, "RLIMIT_NOFILE", range(3, 24, 1 if self.full else 5),
                    [("run", CULPRIT), LIVE], (2, 3))
        with tempfile.TemporaryDirectory() as folder:
            save = (*LIVE, "--save", f"{folder}/saved.safetensors")
            self.ladder(resource.RLIMIT_FSIZE, "RLIMIT_FSIZE", [1 << n for n in range(0, 22, 1 if self.full else 5)],
                        [save], (2, 3))
            for left in os.listdir(folder):
                if left != "saved.safetensors":
                    self.failures.append(f"{' '.join(save)}: RLIMIT_FSIZE leaves {left}")


def build_library(folder):
    library = Path(folder) / "fail.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o",
                    library, ROOT / "tests/faults/fail.c"], check=True)
    return library


NAMES = {"memory": "failing memory", "io": "failing calls of the system", "stdout": "failing writes to stdout",
         "debuggee": "failing calls of the kernel's process",
         "limits": "limits on memory and files"}
PARTS = tuple(NAMES)


class Sample(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.faults = Faults(build_library(self.folder.name), False)
        run(LIVE)  # builds the kernel

    def tearDown(self):
        self.folder.cleanup()

    def check(self, part):
        if part != "limits" and "asan" in str(BUILD):
            self.skipTest("AddressSanitizer has allocations of its own")
        getattr(self.faults, part)()
        print(self.faults.figures(part))
        self.assertEqual(self.faults.failures, [])
        self.assertGreater(self.faults.runs, 10)

    def test_memory(self):
        self.check("memory")

    def test_io(self):
        self.check("io")

    def test_debuggee(self):
        self.check("debuggee")

    def test_stdout(self):
        self.check("stdout")

    def test_limits(self):
        self.check("limits")

    def test_a_verdict_that_changes_is_seen(self):
        right = Result(1, "x  FAIL\nfinding: S is wrong\n", "")
        for got in (Result(0, "x  CLEAN\n", ""), Result(3, "x  CLEAN\n", "attnscope: out of memory"),
                    Result(3, "x  FAIL\nfinding: P is wrong\n", "attnscope: out of memory"), Result(-11, "", ""),
                    Result(3, "x  FAIL\n", ""), Result(None, "", "")):
            self.assertTrue(wrong(("run", CULPRIT), right, got, (3,)))
        self.assertFalse(wrong(("run", CULPRIT), right, Result(3, "x  UNJUDGED\n", "attnscope: out of memory"), (3,)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every call: many minutes; a line of figures for each part")
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    if not arguments.full:
        return tap.main()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        library = build_library(folder)
        run(LIVE)
        for part in arguments.parts:
            faults = Faults(library, True)
            getattr(faults, part)()
            failed |= bool(faults.failures)
            print("\n".join(f"# {line}" for line in faults.failures), end="\n" if faults.failures else "")
            print(faults.figures(part), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
