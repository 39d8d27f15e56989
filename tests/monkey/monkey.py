#!/usr/bin/env python3
"""A monkey at the terminal: random keys, clicks, commands, resizes and signals for attnscope, on recorded traces, on runs
of small kernels, on the unit tests' hand-made sessions.

It fails where the program crashes, where a sanitizer says something (leaks at the end of each session included), where
it takes no key any more, does not leave when it is told to, leaves the terminal or a process behind. Everything comes
from the seed: `--seed S --session N` plays one session again. What was sent is in the log that a failure names."""

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from inputs import Monkey  # noqa: E402
from terminal import PATIENCE_S, Failure, Terminal  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FIRST_RUN_S = 20
VERDICT = re.compile(b"FAIL|CLEAN|CRASHED|HUNG|SUSPECT|ERROR|UNJUDGED|CANCELLED|expected|opened last")
TERMINALS = [("xterm-256color", 5), ("screen-256color", 1), ("xterm", 1), ("vt100", 1), ("linux", 1), ("xterm-mono", 1)]
FIXTURES = ["plain", "clean", "busy", "event", "commands", "light", "ascii", "keys"]
SCENARIOS = ["small", "wmma", "codes", "nan-row", "crashes-in-one-q-tile", "hang", "s-before-mask", "two-mistakes"]
EDITORS_WORK = """#!/bin/sh
# In turns a mistake, one that does not compile, and the kernel as it was: few builds, all of them cached. Never a file
# outside of this folder.
while [ $# -gt 1 ]; do shift; done
case $1 in "${0%/*}"/k.cu) ;; *) exit 0 ;; esac
n=$(($(cat "$0.n" 2>/dev/null || echo 0) + 1))
echo $n >"$0.n"
cp "$0.cu" "$1.new" && mv "$1.new" "$1"
case $((n % 4)) in
1) sed -i 's/s\\[i\\] \\*= p.scale;/s[i] *= p.scale * p.scale;/' "$1" ;;
2) sed -i 's/s\\[i\\] \\*= p.scale;/s[i] *= p.scal;/' "$1" ;;
3) exit 3 ;;
esac
"""


def subjects(build, folder):
    """(name, command line) of all that can be opened."""
    program = str(build / "attnscope")
    found = [(path.stem, [program, str(folder / "tests/recorded" / path.name)])
             for path in sorted((ROOT / "tests/recorded").glob("*.safetensors"))]
    found += [(name, [program, f"tests/session/{name}.ini"]) for name in SCENARIOS]
    found += [("edited", [program, "edited.ini"]),
              ("kernel", [program, "kernels/v2c_wmma.cu", "--shape", "1,2,100,64"]),
              ("checked", [program, "--checks", "tests/session/small.ini"]),
              ("no file", [program])]
    tests = build / "tests/test_screen"
    if tests.exists():
        found += [(f"fixture {mode}", [str(tests), "child", mode]) for mode in FIXTURES]
    return found


def furnish(folder):
    """What the program opens, in a folder of its own: whatever is saved and edited stays there."""
    for part in ("kernels", "tests/recorded", "tests/session"):
        shutil.copytree(ROOT / part, folder / part)
    shutil.copy(ROOT / "kernels/ladder.cuh", folder)
    shutil.copy(ROOT / "kernels/v2b_scalar.cu", folder / "k.cu")
    shutil.copy(ROOT / "kernels/v2b_scalar.cu", folder / "vi.cu")
    (folder / "edited.ini").write_text("[scenario]\nkernel = k.cu\nbackend = cpu\n[shape]\nheads = 1\nq_len = 128\n"
                                       "head_dim = 64\n", encoding="utf-8")
    (folder / "vi").write_text(EDITORS_WORK, encoding="utf-8")
    (folder / "vi").chmod(0o755)


def environment(folder, cache, chance):
    kept = {name: value for name, value in os.environ.items()
            if name not in ("NO_COLOR", "COLORFGBG", "LINES", "COLUMNS", "TMUX")}
    names = [name for name, weight in TERMINALS for _ in range(weight)]
    kept.update(TERM=chance.choice(names), LC_ALL=chance.choice(("C.UTF-8", "C.UTF-8", "C.UTF-8", "C")),
                VISUAL=str(folder / "vi"), XDG_CONFIG_HOME=str(folder / "config"), XDG_STATE_HOME=str(folder / "state"),
                TMPDIR=str(folder), ATTNSCOPE_CACHE=str(cache), ATTNSCOPE_BACKEND="cpu",
                ASAN_OPTIONS="detect_leaks=1:handle_abort=1:detect_stack_use_after_return=1:strict_string_checks=1:"
                             "hard_rss_limit_mb=4000",
                UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1")
    if chance.random() < 0.2:
        kept["NO_COLOR"] = "1"
    if chance.random() < 0.2:
        kept["COLORFGBG"] = "0;15"
    return kept


def leave(terminal, chance):
    """Ends a session in one of the ways there are; the wait status that is right."""
    way = chance.random()
    if way < 0.2:
        number = chance.choice((signal.SIGTERM, signal.SIGHUP))
        if terminal.ended():
            return (0,)
        terminal.killed_by = number
        try:
            os.kill(terminal.pid, number)
        except ProcessLookupError:
            return (0,)
        if terminal.report(1, PATIENCE_S) is None:
            raise Failure(f"{number.name} does not end it")
        return (3, 0)
    for _ in range(60):
        # Out of a prompt, a name that is typed, a mark that waits for its letter; work under way is stopped first.
        terminal.send(b"\x1b" if way < 0.8 else b"\x03")
        terminal.settle()
        terminal.send(b"\x1b")
        terminal.settle()
        terminal.send(b"q" if way < 0.8 else b":quit\r")
        if terminal.report(1, 1) is not None:
            return (0,)
    raise Failure("it does not leave")


def check_end(terminal, expected):
    end = terminal.report(1, PATIENCE_S)
    if end is None:
        raise Failure("it does not end")
    status = end["status"]
    # Before it has taken the terminal over, and when it has given it back, a signal ends it as any program.
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if by and by != terminal.killed_by and not (by == signal.SIGINT and b"\x03" in terminal.sent):
        raise Failure(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
    if not by and os.WEXITSTATUS(status) not in expected:
        raise Failure(f"exit status {os.WEXITSTATUS(status)}")
    if end["unrestored"]:
        raise Failure("it stopped without giving the terminal back")
    if end["left"]:
        raise Failure(f"processes are left: {'; '.join(end['left'])}")
    if termios.tcgetattr(terminal.slave) != terminal.before:
        raise Failure("the terminal is not as it was")


class Session:
    """Subject, size and environment of one session, and its inputs; it starts again where an input has ended it."""

    def __init__(self, options, number, folder):
        self.chance = random.Random(f"{options.seed}/{number}")
        self.options, self.number, self.folder = options, number, folder
        self.log = open(options.logs / f"session-{number}.log", "w", encoding="utf-8")
        all_subjects = subjects(options.build, folder)
        if options.subject:
            all_subjects = [one for one in all_subjects if re.search(options.subject, one[0])]
        # In turns, so that few sessions see many of them.
        self.name, self.argv = all_subjects[(number + random.Random(options.seed).randrange(1000)) % len(all_subjects)]
        self.inputs = self.starts = self.slowest = 0
        self.terminal = None

    def note(self, text):
        self.log.write(text + "\n")
        self.log.flush()

    def start(self, monkey):
        monkey.cols, monkey.rows = self.chance.choice(((80, 24), (120, 40), (200, 60)))
        env = environment(self.folder, self.options.cache, self.chance)
        argv = list(self.argv)
        if argv[0].endswith("attnscope"):
            argv[1:1] = self.chance.choice(([], [], [], ["--ascii"], ["--background", "dark"]))
            if len(self.argv) > 1 and self.chance.random() < 0.3:
                argv += ["--view", self.chance.choice(("map", "tile", "state", "bias", "mask", "onset", "compare", "log"))]
        self.note(f"start {argv} {monkey.cols}x{monkey.rows} TERM={env['TERM']} LC_ALL={env['LC_ALL']}")
        self.terminal = Terminal(argv, env, self.folder, monkey.cols, monkey.rows)
        self.starts += 1
        self.terminal.settle()
        if self.chance.random() < 0.8:  # mostly there is something to look at
            self.await_run()

    def await_run(self):
        """Until the run is judged: no input is lost on a screen that says "compiling"."""
        until = time.monotonic() + FIRST_RUN_S
        while not VERDICT.search(self.terminal.shown) and time.monotonic() < until and not self.terminal.ended():
            self.terminal.drain(0.1)

    def play(self, step):
        if isinstance(step, bytes):
            self.terminal.send(step)
        elif step[0] == "resize":
            self.terminal.resize(step[1], step[2])
        elif step[0] == "signal":
            try:
                os.kill(self.terminal.pid, step[1])
            except ProcessLookupError:
                pass
        else:
            self.terminal.report(1, step[1])

    def run(self, n):
        monkey = Monkey(self.chance, 80, 24)
        self.start(monkey)
        while self.inputs < n:
            count, step = monkey.step()
            self.note(f"{self.inputs} {step!r}")
            self.inputs += count
            self.play(step)
            if self.chance.random() < 0.8:  # else the next one comes before this one is answered
                took = self.terminal.settle()
                if took > 1:
                    self.note(f"# that took {took:.2f} s")
            self.check_reports()
            if self.terminal.ended():
                self.end((0,))
                self.start(monkey)
        self.note("leave")
        self.end(leave(self.terminal, self.chance))

    def end(self, expected):
        self.terminal.report(1, PATIENCE_S)
        self.check_reports()
        check_end(self.terminal, (0, 2, 3) if self.name == "no file" else expected)
        self.slowest = max(self.slowest, self.terminal.slowest)
        self.terminal.close()
        self.terminal = None

    def check_reports(self):
        if any(word in self.errors() for word in ("Sanitizer", "runtime error:")):
            raise Failure("a sanitizer's report")

    def errors(self):
        path = self.folder / "stderr"
        return path.read_text(errors="replace") if path.exists() else ""

    def failed(self, why):
        """All that there is to know, as lines."""
        lines = [f"session {self.number} ({self.name}), input {self.inputs}: {why}",
                 f"again: tests/monkey/monkey.py --build {self.options.build} --seed {self.options.seed} --session "
                 f"{self.number} --inputs {self.options.inputs} --each {self.options.each}",
                 f"sent: {self.log.name}"]
        return lines + self.errors().splitlines()[-60:]


def run_session(options, number):
    """(inputs, seconds of the slowest answer, lines about a failure)"""
    with tempfile.TemporaryDirectory(prefix="attnscope-monkey-") as name:
        folder = Path(name)
        furnish(folder)
        session = Session(options, number, folder)
        said = []
        try:
            session.run(options.each)
        except Failure as failure:
            said = session.failed(str(failure))
        finally:
            if session.terminal:
                session.terminal.close()
            session.log.close()
        return session, said


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/asan", type=Path, help="which build (default: build/asan)")
    parser.add_argument("--seed", default=None, help="default: the time")
    parser.add_argument("--inputs", type=int, default=100000)
    parser.add_argument("--each", type=int, default=1000, help="inputs of a session (default: 1000)")
    parser.add_argument("--session", type=int, default=None, help="play this one alone")
    parser.add_argument("--subject", default="", help="only those whose name this expression finds")
    options = parser.parse_args(argv)
    options.build = (ROOT / options.build).resolve()
    options.seed = options.seed or str(int(time.time()))
    options.logs = options.build / "monkey"
    options.cache = options.logs / "cache"
    options.logs.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = arguments()
    print(f"seed {options.seed}, {options.inputs} inputs, sessions of {options.each}", flush=True)
    began, inputs, starts, slowest, failures = time.monotonic(), 0, 0, 0.0, 0
    numbers = range(-(-options.inputs // options.each)) if options.session is None else [options.session]
    for number in numbers:
        at = time.monotonic()
        session, said = run_session(options, number)
        inputs += session.inputs
        starts += session.starts
        slowest = max(slowest, session.slowest)
        failures += bool(said)
        print(f"session {number:3} {'FAILED' if said else 'ok    '} {session.inputs:5} inputs {session.starts:3} starts "
              f"{time.monotonic() - at:6.1f} s, slowest answer {session.slowest:5.2f} s  {session.name}", flush=True)
        print("".join(f"    {line}\n" for line in said), end="", flush=True)
    print(f"{inputs} inputs in {len(numbers)} sessions, {starts} starts, {time.monotonic() - began:.0f} s, "
          f"slowest answer {slowest:.2f} s: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
