#!/usr/bin/env python3
"""A monkey at the terminal: random keys, clicks, commands, resizes and signals for attnscope, on recorded traces, on runs
of small kernels, on the unit tests' hand-made sessions.

It fails where the program crashes, where a sanitizer says something (leaks at the end of each session included), where
it takes no key any more, does not leave when it is told to, leaves the terminal or a process behind. Everything comes
from the seed: `--seed S --session N` plays one session again. What was sent is in the log that a failure names."""

import argparse
import ctypes
import errno
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from inputs import Monkey  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120  # for a key to be taken: a build that runs beside it on a loaded machine is no reason for more
PR_SET_CHILD_SUBREAPER = 36
SETTLED_S = 0.002
FIRST_RUN_S = 20
LEAVING_S = 5
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


class Failure(Exception):
    """What is wrong with the program."""


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


def keeper(argv, env, folder, slave, report):
    """The shell's part: the program in a group of its own in the foreground, back in it whenever it has stopped. What it
    leaves behind becomes this process's child. Never returns."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(slave, os.getpid())
        for number in (signal.SIGTTOU, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for fd in (0, 1):
            os.dup2(slave, fd)
        os.dup2(os.open(f"{folder}/stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        os.chdir(folder)
        os.execve(argv[0], argv, env)
    try:
        os.setpgid(job, job)
    except OSError:
        pass  # it has done so itself, and is another program by now
    os.write(report, json.dumps({"pid": job}).encode() + b"\n")
    stops = 0
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        stops += 1
        os.tcsetpgrp(slave, os.getpgrp())
        os.tcsetpgrp(slave, job)
        os.killpg(job, signal.SIGCONT)
    left = survivors()
    os.write(report, json.dumps({"status": status, "stops": stops, "left": left}).encode() + b"\n")
    os._exit(0)


def survivors():
    """Names of the processes that are still there two seconds after the program: a debuggee ends by itself then."""
    until = time.monotonic() + 2
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if pid == 0 and time.monotonic() > until:
            break
        if pid == 0:
            time.sleep(0.02)
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
        found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        os.kill(int(pid), signal.SIGKILL)
    return found


class Terminal:
    """A program on a pseudo-terminal. Nobody reads the screen: that a frame is drawn is what counts."""

    def __init__(self, argv, env, folder, cols, rows):
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.resize(cols, rows)
        self.before = termios.tcgetattr(self.slave)
        reports, report = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            try:
                keeper(argv, env, folder, self.slave, report)
            finally:
                os._exit(99)
        os.close(report)
        self.reports, self.said, self.shown, self.sent, self.slowest = reports, b"", b"", b"", 0.0
        self.has_verdict, self.killed_by = False, 0
        os.set_blocking(reports, False)
        self.pid = self.report(0, 20)["pid"]

    def report(self, number, limit_s=0.0):
        """The keeper's line, or None if it has not come."""
        until = time.monotonic() + limit_s
        while True:
            try:
                self.said += os.read(self.reports, 65536)
            except BlockingIOError:
                pass
            lines = self.said.split(b"\n")[:-1]
            if len(lines) > number:
                return json.loads(lines[number])
            if time.monotonic() >= until:
                return None
            self.drain(0.01)

    def drain(self, wait_s=0.0):
        """Takes what the program has written; 1 if there was something."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return 0
        try:
            self.shown = self.shown[-20:] + os.read(self.master, 65536)
        except OSError as error:
            if error.errno not in (errno.EIO, errno.EAGAIN):
                raise
        self.has_verdict = self.has_verdict or bool(VERDICT.search(self.shown))
        return 1

    def resize(self, cols, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def send(self, text):
        self.sent = (self.sent + text)[-200:]
        while text and not self.ended():
            try:
                text = text[os.write(self.master, text):]
            except BlockingIOError:
                self.drain(0.01)

    def unread(self):
        return struct.unpack("i", fcntl.ioctl(self.slave, termios.FIONREAD, b"\0\0\0\0"))[0]

    def sleeps(self):
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 1
        return text.rpartition(")")[2].split()[0] == "S"

    def ended(self):
        return self.report(1) is not None

    def settle(self):
        """Until the program has taken all that was typed and waits for more."""
        began = time.monotonic()
        while not self.ended():
            waited = time.monotonic() - began
            # Without raw mode an editor has the terminal, or the program is on its way out: what is sent is lost.
            if not self.drain(SETTLED_S) and self.sleeps() and (not self.unread() if self.is_raw() else waited > LEAVING_S):
                break
            if waited > PATIENCE_S:
                os.kill(self.pid, signal.SIGABRT)  # the sanitizer says where it was
                self.report(1, 20)
                raise Failure(f"no key was taken for {PATIENCE_S} s")
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        return took

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def close(self):
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            self.report(1, 20)
        os.waitpid(self.keeper, 0)
        for fd in (self.master, self.slave, self.reports):
            os.close(fd)


def leave(terminal, chance):
    """Ends a session in one of the ways there are; the wait status that is right."""
    way = chance.random()
    if way < 0.2:
        number = chance.choice((signal.SIGTERM, signal.SIGHUP))
        os.kill(terminal.pid, number)
        terminal.killed_by = number
        if terminal.report(1, PATIENCE_S) is None:
            raise Failure(f"{number.name} does not end it")
        return (3, 0)
    for _ in range(60):
        # Out of a prompt, a name that is typed, a mark that waits for its letter; work under way is stopped first.
        terminal.send(b"\x1b" if way < 0.8 else b"\x03")
        terminal.settle()
        terminal.send(b"\x1b")
        terminal.settle()
        terminal.send(b"q" if way < 0.8 else b"\x03")
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
        while not self.terminal.has_verdict and time.monotonic() < until and not self.terminal.ended():
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
