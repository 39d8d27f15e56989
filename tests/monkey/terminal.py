"""A program on a pseudo-terminal, with a shell's job control, and what it leaves behind when it ends."""

import ctypes
import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path

PATIENCE_S = 120  # for a key to be taken: a build that runs beside it on a loaded machine is no reason for more
SETTLED_S = 0.002
LEAVING_S = 5
KEPT_BYTES = 200000
PR_SET_CHILD_SUBREAPER = 36
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\x1b[=>78M]|\x0f")


class Failure(Exception):
    """What is wrong with the program."""


def keeper(argv, env, folder, slave, report):
    """The shell's part: the program in a group of its own in the foreground, back in it whenever it has stopped. What it
    leaves behind becomes this process's child. Never returns."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = termios.tcgetattr(slave)
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
    signal.signal(signal.SIGHUP, lambda *_: os.killpg(job, signal.SIGHUP))  # as shells do
    stops = unrestored = 0
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        stops += 1
        unrestored += termios.tcgetattr(slave) != before
        os.tcsetpgrp(slave, os.getpgrp())
        os.tcsetpgrp(slave, job)
        os.killpg(job, signal.SIGCONT)
    left = survivors()
    os.write(report, json.dumps({"status": status, "stops": stops, "unrestored": unrestored, "left": left}).encode() + b"\n")
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
            os.close(self.master)
            try:
                keeper(argv, env, folder, self.slave, report)
            finally:
                os._exit(99)
        os.close(report)
        self.reports, self.said, self.shown, self.sent, self.slowest = reports, b"", b"", b"", 0.0
        self.killed_by = 0
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
            self.shown = (self.shown + os.read(self.master, 65536))[-KEPT_BYTES:]
        except OSError as error:
            if error.errno not in (errno.EIO, errno.EAGAIN):
                raise
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

    def has(self, text):
        """Whether the text has been written since the last forget(); attributes in between do not count."""
        return text.encode() in CONTROL.sub(b"", self.shown)

    def wait(self, text, limit_s=PATIENCE_S):
        """Until it has the text."""
        until = time.monotonic() + limit_s
        while not self.has(text):
            if self.ended() or time.monotonic() > until:
                raise Failure(f"waited in vain for '{text}'")
            self.drain(0.05)

    def forget(self):
        self.shown = b""

    def close(self):
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            self.report(1, 20)
        os.waitpid(self.keeper, 0)
        for fd in (self.master, self.slave, self.reports):
            os.close(fd)
