#!/usr/bin/env python3
"""The guardian of device memory (engine/gpu/guardian.c) on a driver that is none (fake_cuda.c): room is made, filled as
never written, copied to a file, and what it can not do it says. tests/gpu/gpu_memory.py asks a device."""

import array
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_driver  # noqa: E402

TAKE, COPY = 0, 1
PARTS = 32
PART = "QQH6x"
ANSWER = struct.Struct("256s64s")
MIB = 1 << 20


def flat(parts):
    return [value for part in parts for value in part] + [0] * 3 * (PARTS - len(parts))


def request(operation, begin, end, beside=0, parts=(), pieces=()):
    """parts: (begin, end, pattern); pieces: (from, to, bytes)."""
    return struct.pack("=IIQQQ" + PART * PARTS + "QQQ" * PARTS, operation, len(parts or pieces), begin, end, beside,
                       *flat(parts), *flat(pieces))


def copy(*pieces):
    return request(COPY, 0, 0, pieces=pieces)


class Guardian(fake_driver.WithDriver):
    def start(self, free=1 << 30, driver=True):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = dict(os.environ, FAKE_FREE=str(free))
        if driver:
            environment["LD_LIBRARY_PATH"] = str(self.folder)
        self.process = subprocess.Popen([ROOT / "build/attnscope-device", "guard"], env=environment,
                                        preexec_fn=lambda: os.dup2(theirs.fileno(), 3), close_fds=False)
        theirs.close()
        self.addCleanup(self.process.wait)
        self.addCleanup(ours.close)
        ours.settimeout(20)
        return ours

    def ask(self, guardian, message, fd=None):
        """(failure, address)."""
        ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        guardian.sendmsg([message], ancillary)
        failure, handle = ANSWER.unpack(guardian.recv(ANSWER.size))
        return failure.split(b"\0")[0].decode(), struct.unpack_from("Q", handle)[0]

    def memory(self, address, write=None, n=0):
        """Of the device, which is the guardian's own."""
        with open(f"/proc/{self.process.pid}/mem", "r+b" if write else "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.write(write) if write else memory.read(n)

    def test_values_reach_the_file(self):
        begin, end = 1000, 1000 + 21 * MIB + 16  # neither a page's border, nor whole pieces
        guardian = self.start()
        failure, address = self.ask(guardian, request(TAKE, begin, end, parts=[(begin, begin + 64, 0x7FF5), (begin + 64, end, 0x7F7F)]))
        self.assertEqual(failure, "")
        self.assertEqual(self.memory(address, n=66), b"\xf5\x7f" * 32 + b"\x7f\x7f")
        written = os.urandom(end - begin)
        self.memory(address, written)
        for size in (begin, end + 1):  # it grows, or is there and mapped
            with self.subTest(size=size), open(self.folder / "trace", "w+b") as trace:
                trace.write(b"x" * size)
                trace.flush()
                self.assertEqual(self.ask(guardian, copy((0, begin, end - begin)), trace.fileno())[0], "")
                trace.seek(0)
                self.assertEqual(trace.read(), b"x" * begin + written + b"x" * (size > end))
        with open(self.folder / "trace", "w+b") as trace:  # pieces change places
            self.assertEqual(self.ask(guardian, copy((6 * MIB, 0, 9 * MIB), (5, 9 * MIB, 7)), trace.fileno())[0], "")
            trace.seek(0)
            self.assertEqual(trace.read(), written[6 * MIB:15 * MIB] + written[5:12])

    def memory_file(self, size):
        fd = os.memfd_create("trace", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        return fd

    def kept(self):
        """Memory files that the guardian has mapped, once it has answered whatever it was asked."""
        maps = Path(f"/proc/{self.process.pid}/maps").read_text(encoding="ascii")
        return sum("memfd:trace" in line for line in maps.splitlines())

    def test_memory_files_that_come_again(self):
        guardian = self.start()
        _, address = self.ask(guardian, request(TAKE, 0, 9 * MIB, parts=[(0, 9 * MIB, 0)]))
        files = [self.memory_file(9 * MIB + 5) for _ in range(12)]
        for turn in range(2):
            for i, fd in enumerate(files):
                with self.subTest(turn=turn, fd=fd):
                    written = os.urandom(9 * MIB)
                    self.memory(address, written)
                    self.assertEqual(self.ask(guardian, copy((0, 5, 8 * MIB), (8 * MIB, 8 * MIB + 5, MIB)), fd)[0], "")
                    self.assertEqual(os.pread(fd, 9 * MIB + 5, 0), b"\0" * 5 + written)
                    self.assertRegex(self.ask(guardian, copy())[0], "no sense")
                    self.assertEqual(self.kept(), min(turn * 12 + i, 10))
        # A piece beyond the end, which a file that is kept has not: the seal forbids it as well.
        self.assertRegex(self.ask(guardian, copy((0, MIB, 9 * MIB)), files[-1])[0], "cannot be written")
        other = self.memory_file(MIB)
        self.assertEqual(self.ask(guardian, copy((0, 0, MIB)), other)[0], "")
        self.ask(guardian, copy())
        self.assertEqual(self.kept(), 1)  # of that size alone

    def test_a_file_that_is_full(self):
        guardian = self.start()
        self.ask(guardian, request(TAKE, 0, MIB, parts=[(0, MIB, 0)]))
        with open("/dev/full", "wb", buffering=0) as full:
            self.assertEqual(self.ask(guardian, copy((0, 0, MIB)), full.fileno())[0], "cannot be written: No space left on device")

    def test_room_serves_again_and_is_filled_anew(self):
        guardian = self.start()
        whole = request(TAKE, 0, MIB, parts=[(0, MIB, 0x7FF5)])
        first = self.ask(guardian, whole)
        self.memory(first[1], b"\0" * 100)
        self.assertEqual(self.ask(guardian, whole), first)
        self.assertEqual(self.memory(first[1], n=100), b"\xf5\x7f" * 50)
        self.assertEqual(self.ask(guardian, request(TAKE, 0, 2 * MIB, parts=[(0, 2 * MIB, 0)]))[0], "")

    def test_a_tenth_of_what_is_free_stays_free(self):
        for free, beside, fits in ((10 * MIB, 0, True), (10 * MIB - 10, 0, False), (10 * MIB, 1, False), (12 * MIB, MIB, True)):
            with self.subTest(free=free, beside=beside):
                failure, _ = self.ask(self.start(free), request(TAKE, 0, 9 * MIB, beside))
                self.assertEqual(failure == "", fits, failure)
                if not fits:
                    self.assertRegex(failure, r"^9 MiB of values, \d+ MiB of device memory are free, of which a tenth stays so$")

    def test_what_makes_no_sense_is_refused(self):
        guardian = self.start()
        self.assertRegex(self.ask(guardian, request(TAKE, 5, 5))[0], "no sense")
        with open(self.folder / "trace", "w+b") as trace:
            trace.truncate(MIB)
            self.assertRegex(self.ask(guardian, copy((0, 0, MIB)), trace.fileno())[0], "no sense")  # nothing was taken
            self.ask(guardian, request(TAKE, 0, MIB, parts=[(0, MIB, 0)]))
            self.assertRegex(self.ask(guardian, copy(), trace.fileno())[0], "no sense")
            for piece in ((1, 0, MIB), (MIB + 1, 0, 0), ((1 << 64) - 8, 0, 16)):
                self.assertRegex(self.ask(guardian, copy(piece), trace.fileno())[0], "no sense")
        self.assertRegex(self.ask(guardian, copy((0, 0, MIB)))[0], "no sense")

    def test_without_a_driver_it_says_so(self):
        if not self.ask(self.start(driver=False), request(TAKE, 0, MIB))[0]:
            self.skipTest("a driver is here")
        self.assertRegex(self.ask(self.start(driver=False), request(TAKE, 0, MIB))[0], "driver")

    def test_it_ends_with_its_owner(self):
        guardian = self.start()
        guardian.close()
        self.assertEqual(self.process.wait(20), 0)


class Device(fake_driver.WithDriver):
    def says(self, **environment):
        done = subprocess.run([ROOT / "build/attnscope-device"], stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "LD_LIBRARY_PATH": str(self.folder), **environment})
        return json.loads(done.stdout)

    def test_rate_of_float64(self):
        self.assertEqual(self.says(FAKE_F32_PER_F64="64")["f32_per_f64"], 64)
        self.assertEqual(self.says()["f32_per_f64"], 0)  # a driver that does not know it


if __name__ == "__main__":
    tap.main()
