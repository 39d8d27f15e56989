#!/usr/bin/env python3
"""A kernel that goes wrong on the GPU: what is said, what is kept, and that the next run works."""

import os
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
SHAPE = "1,2,128,256,64"  # 2 q tiles, 4 kv tiles; block (1,0,0) fails at kv tile 2


def run(fault, *more, cwd=ROOT):
    environment = dict(os.environ, ATTNSCOPE_FAULT=fault)
    return subprocess.run([ATTNSCOPE, "run", str(ROOT / "tests/gpu/faults.cu"), "--shape", SHAPE, "--backend", "gpu",
                           *more], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def values_of(trace):
    """The recorded m as a function of slot, kv tile and row."""
    _, n_kv, rows = trace.tensors["channel.m"]["shape"][:3]
    return lambda slot, kv, row: trace.values("channel.m", (slot * n_kv + kv) * rows + row, 1)[0]


class Faults(unittest.TestCase):
    memory = "guard"

    def recorded(self, fault, *more):
        """Runs it and saves the trace; (what was said, the m of a slot, kv tile and row, the trace)."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.safetensors"
            done = run(fault, "--save", str(path), "--memory", self.memory, *more)
            self.assertTrue(path.exists(), done.stdout + done.stderr)
            trace = Trace(path)
            return done, values_of(trace), trace

    def check_crash(self, fault, *words, status="crashed"):
        done, m, trace = self.recorded(fault, *(["--set", "scenario.limit=2"] if fault == "hang" else []))
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 3, said)
        for word in words:
            self.assertIn(word, said)
        # The last probe of the block that failed; a bad address is noticed a little later than it is used.
        self.assertRegex(said, "kv tile [23]")
        self.assertIn("faults.cu:", said)
        self.assertEqual(trace.run["status"], status)
        slot = 1  # (0, 0, 1)
        self.assertEqual([m(slot, kt, 0) for kt in range(3)], [100.0, 101.0, 102.0])
        self.assertEqual(m(0, 3, 0), 3.0)  # other blocks went on
        return said

    def test_clean_run(self):
        done, m, _ = self.recorded("none")
        self.assertEqual([m(1, kt, 63) for kt in range(4)], [100.0, 101.0, 102.0, 103.0], done.stdout + done.stderr)
        self.assertIn("gpu NVIDIA", done.stdout)

    def test_illegal_address(self):
        self.check_crash("illegal", "faults stopped", "cudaErrorIllegalAddress")

    def test_misaligned_address(self):
        self.check_crash("misaligned", "cudaErrorMisalignedAddress")

    def test_assert(self):
        said = self.check_crash("assert", "assertion `kt != 2` failed in block (1,0,0)")
        self.assertRegex(said, r"faults\.cu:\d+")

    def test_trap(self):
        self.check_crash("trap", "faults stopped", "cudaError")

    def test_endless(self):
        self.check_crash("hang", "did not finish within 2 s", status="hung")

    def test_written_outside(self):
        done = run("overrun")
        self.assertIn("wrote outside LSE", done.stdout + done.stderr)

    def check_launch(self, fault, *words):
        done = run(fault)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_shared_memory_beyond_the_limit(self):
        self.check_launch("shared", "faults was not launched", "307200 bytes of shared memory (0 static, 307200 dynamic)",
                          "the limit for a block is")

    def test_grid_beyond_the_limit(self):
        self.check_launch("grid", "grid.y is 70000, allowed are 1 to 65535")

    def test_threads_beyond_the_limit(self):
        self.check_launch("threads", "2048 threads in a block")

    def test_out_of_memory(self):
        self.check_launch("memory", "out of memory")

    def test_killed_from_outside(self):
        environment = dict(os.environ, ATTNSCOPE_FAULT="hang")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.safetensors"
            with subprocess.Popen([ATTNSCOPE, "run", str(ROOT / "tests/gpu/faults.cu"), "--shape", SHAPE, "--backend",
                                   "gpu", "--set", "scenario.limit=60", "--save", str(path), "--memory", self.memory],
                                  cwd=ROOT, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                out, err = self.kill_until_ended(process)
            self.assertEqual(process.returncode, 3)
            self.assertIn("killed by signal 9", out + err)
            self.assertEqual(values_of(Trace(path))(1, 2, 0), 102.0)

    def kill_until_ended(self, process):
        """A debuggee that is killed before its first word is started once more: then the next one is."""
        for _ in range(8):
            child = self.debuggee_of(process.pid)
            time.sleep(2)
            os.kill(child, signal.SIGKILL)
            try:
                return process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                pass
        self.fail("the run goes on without its debuggee")

    def debuggee_of(self, pid):
        for _ in range(600):
            for each in Path(f"/proc/{pid}/task").glob("*/children"):
                for child in each.read_text().split():
                    try:
                        words = Path(f"/proc/{child}/cmdline").read_text()
                    except FileNotFoundError:  # it has ended
                        continue
                    if "faults-" in words:
                        return int(child)
            time.sleep(0.1)
        self.fail("no debuggee came up")

    def test_next_run_works(self):
        self.assertEqual(run("illegal").returncode, 3)
        self.assertIn("gpu NVIDIA", run("none").stdout)


class PinnedFaults(Faults):
    """The same where probes write into the host's memory."""
    memory = "pinned"


class LostMemory(unittest.TestCase):
    def test_of_the_kernels_process(self):
        """Its device memory is gone with its context, and nothing is made up of that."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.safetensors"
            done = run("illegal", "--memory", "device", "--save", str(path))
            self.assertEqual(done.returncode, 3)
            self.assertIn("cudaErrorIllegalAddress", done.stderr)
            self.assertIn("recorded in device memory: what was recorded is lost", done.stdout)
            self.assertNotEqual(values_of(Trace(path))(1, 0, 0), 100.0)


if __name__ == "__main__":
    tap.main()
