#!/usr/bin/env python3
"""Golden tests of the command line: one file NAME.case here for each.

    # what this is about
    file NAME          a file of the case's folder, with these contents
    | ...
    before COMMAND     a shell command that makes ready; it must succeed
    run COMMAND        the shell command that is tested; attnscope is in PATH, $ROOT is the repository
    terminal 80x24     run it on a terminal of that size (its output is then all in `out`, without control sequences)
    long               it takes many seconds: it is skipped but by its name, or with `make test TESTS=all`
    makes NAME         a file that the command must leave behind; any other new file is a failure
    exit STATUS
    out                expected output; `...` stands for any text, a line `...` for any lines
    | ...
    err
    | ...

`test_cli.py --update [WORD...]` writes exit, out and err anew where they differ: review the difference before committing.
Folders and times are normalized: DIR is the case's folder, ROOT the repository, TIME a duration.
"""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
LIMIT_S = 180
CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\x1b[=>78]|\x0f")
DURATION = re.compile(r"\b\d+(\.\d+)? ?(us|ms|s)\b *")
JSON_SECONDS = re.compile(r'("seconds": )[0-9.e+-]+')


class CaseError(Exception):
    pass


class Case:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        self.head = []  # lines before exit, as they stand
        self.files, self.before, self.makes = [], [], []
        self.run = self.terminal = None
        self.long = False
        self.exit, self.out, self.err = None, [], []
        body = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            word, _, rest = line.partition(" ")
            if word not in ("exit", "out", "err") and (body is not self.out and body is not self.err):
                self.head.append(line)
            if line.startswith("|"):
                if body is None:
                    raise CaseError(f"{path}:{number}: a `|` line belongs to nothing")
                body.append(line[2:])
                continue
            body = None
            if word == "file":
                body = []
                self.files.append((rest, body))
            elif word in ("before", "makes"):
                getattr(self, word).append(rest)
            elif word == "run":
                self.run = rest
            elif line == "long":
                self.long = True
            elif word == "terminal":
                self.terminal = tuple(int(part) for part in rest.split("x"))
            elif word == "exit":
                self.exit = int(rest)
            elif word in ("out", "err"):
                body = getattr(self, word)
            elif line and not line.startswith("#"):
                raise CaseError(f"{path}:{number}: unknown word `{word}`")
        if self.run is None:
            raise CaseError(f"{path}: no `run` line")

    def write(self, status, out, err):
        text = "\n".join(self.head).rstrip("\n") + f"\nexit {status}\n"
        for name, lines in (("out", out), ("err", err)):
            text += f"{name}\n" + "".join(f"| {line}".rstrip() + "\n" for line in lines)
        self.path.write_text(text, encoding="utf-8")


def normalize(text, folder):
    for path, name in ((str(folder), "DIR"), (os.path.realpath(folder), "DIR"), (str(BUILD), "BUILD"), (str(ROOT), "ROOT")):
        text = text.replace(path, name)
    text = JSON_SECONDS.sub(r"\1TIME", text)
    return [DURATION.sub("TIME ", line).rstrip() for line in text.splitlines()]


def matches(expected, got):
    pattern = ""
    for line in expected:
        line = line.rstrip()
        if line == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\n]*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def run_plain(command, folder, environment):
    with subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise CaseError(f"still running after {LIMIT_S} s") from None
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def run_on_terminal(command, folder, environment, size):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        time.sleep(0.05)  # the parent sets the size first
        os.execvpe("sh", ["sh", "-c", command], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    data, end = b"", time.monotonic() + LIMIT_S
    while True:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)
            raise CaseError(f"still running after {LIMIT_S} s")
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the other side has closed
                break
            if not piece:
                break
            data += piece
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return status, CONTROL.sub("", data.decode(errors="replace")).replace("\r", ""), ""


def run_case(case, update):
    """None, or what is wrong as lines."""
    folder = Path(tempfile.mkdtemp(prefix="attnscope-cli-"))
    environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", ROOT=str(ROOT), LC_ALL="C.UTF-8",
                       TERM="xterm-256color")
    try:
        for name, lines in case.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        for command in case.before:
            status, out, err = run_plain(command, folder, environment)
            if status != 0:
                return [f"`{command}` ended with {status}", *out.splitlines(), *err.splitlines()]
        there = {path for path in folder.rglob("*")}
        if case.terminal:
            status, out, err = run_on_terminal(case.run, folder, environment, case.terminal)
        else:
            status, out, err = run_plain(case.run, folder, environment)
        new = sorted(str(path.relative_to(folder)) for path in set(folder.rglob("*")) - there)
        out, err = normalize(out, folder), normalize(err, folder)
        wrong = []
        if new != sorted(case.makes):
            wrong.append(f"left behind {new}, expected {sorted(case.makes)}")
        differs = status != case.exit or not matches(case.out, out) or not matches(case.err, err)
        if differs and update:
            case.write(status, out, err)
            print(f"# {case.name}: written anew")
        elif differs:
            wrong += [f"$ {case.run}", f"exit status {status}, expected {case.exit}"]
            for name, expected, got in (("out", case.out, out), ("err", case.err, err)):
                if not matches(expected, got):
                    wrong += [f"{name}, expected:", *(f"  {line}" for line in expected), "got:", *(f"  {line}" for line in got)]
        return wrong or None
    except CaseError as error:
        return [str(error)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    words = sys.argv[1:]
    update = words[:1] == ["--update"]
    words = words[1:] if update else words
    paths = [path for path in sorted(HERE.glob("*.case")) if not words or any(word in path.stem for word in words)]
    print(f"1..{len(paths)}", flush=True)
    failed = 0
    for number, path in enumerate(paths, 1):
        try:
            case = Case(path)
            if case.long and not words and not tap.takes_all():
                print(f"ok {number} - {path.stem} # SKIP takes long: with TESTS=all")
                continue
            wrong = run_case(case, update)
        except CaseError as error:
            wrong = [str(error)]
        failed += wrong is not None
        print(f"{'not ok' if wrong else 'ok'} {number} - {path.stem}")
        for line in wrong or []:
            print(f"# {line}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
