#!/usr/bin/env python3
"""Every kernel that comes along computes on the GPU what it computes in the CPU executor: masks, tiles and their order are
the same, values within both runs' bounds, S of tensor cores bit for bit. On the GPU three runs give the same bits, and a
build without probes gives those of the one with probes."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

import tap  # noqa: E402
from kernels import kernels  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
FIRST = os.environ.get("EQUALS_FIRST", "gpu")  # "cpu": the test itself is tried where there is no device
# Of each kernel a build for each type of Q; gpu_warps.py has those with specialised warps.
BUILDS = [*((ROOT / path, *(s for s in settings if s.startswith("scenario.define="))) for path, *settings in kernels()),
          *((path,) for path in sorted(ROOT.glob("docs/examples/*.cu")))]
# Shape and keys: both head dims in both types (f16, or what the kernel takes instead, and bf16), tails of q and kv, masks,
# groups, layouts, large scores.
CASES = {
    "tails": ("1,2,72,100,64",),
    "causal-groups": ("1,4,130,130,64", "shape.dtype=bf16", "shape.kv_heads=2", "shape.causal=bottom-right"),
    "top-left": ("2,2,100,70,128", "shape.causal=top-left"),
    "one-kv-head": ("1,4,65,129,128", "shape.dtype=bf16", "shape.kv_heads=1", "shape.causal=bottom-right"),
    "other-layout": ("2,3,64,96,64", "shape.layout=BLHD"),
    "large-scores": ("1,2,128,192,64", "fill.sigma=4", "shape.causal=top-left"),
}
RUNS = 3
BY_BOUNDS = "the arithmetic after the product is not declared to the bit: judged by bounds"
DECLINED = 2  # exit status of a shape that the kernel does not take


def command(*arguments):
    return subprocess.run([ATTNSCOPE, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=250, check=False)


def why_no_device():
    if FIRST == "cpu":
        return ""
    try:
        said = subprocess.run([ROOT / "build/attnscope-device"], stdout=subprocess.PIPE, text=True, check=False).stdout
        return json.loads(said).get("error", "")
    except (OSError, ValueError) as error:
        return f"attnscope-device does not answer: {error}"


class Runs:
    """One case of one build, run on both sides."""

    def __init__(self, folder, kernel, shape, *keys):
        settings = [word for key in keys for word in ("--set", key)]
        self.paths = [str(folder / f"first-{i}.safetensors") for i in range(RUNS)]
        self.cpu_path = str(folder / "cpu.safetensors")

        def run(backend, path, *more):
            return command("run", str(kernel), "--shape", shape, *settings, "--backend", backend, "--json", "--save",
                           path, *more)
        folder.mkdir(parents=True)
        self.cpu = run("cpu", self.cpu_path)
        self.first = [run(FIRST, self.paths[0], "--probes", "compare")]
        for path in self.paths[1:] if self.first[0].returncode == 0 else ():
            self.first.append(run(FIRST, path))


@unittest.skipIf(why_no_device(), why_no_device())
class GpuEqualsCpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Runs everything at once, each build before the second case of any: compilers take most of the time."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.pool = ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0))))  # contexts are made one after the other
        cls.runs = {(build, name): cls.pool.submit(Runs, Path(cls.folder.name) / str(number) / name, build[0], shape,
                                                   *build[1:], *keys)
                    for name, (shape, *keys) in CASES.items() for number, build in enumerate(BUILDS)}

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()
        cls.folder.cleanup()

    def good(self, done, backend):
        """The result of a run that came to its end and is right."""
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["verdict"], result["run"]["backend"]), ("CLEAN", backend))
        self.assertEqual(result["lost"], [])
        return result

    def every_bit_of_tensor_cores(self, result):
        """The channels whose declared product is that of a tensor core, from the operands that this run captured: all but
        those whose scaling after it is not declared to the bit, which says so."""
        declared = []
        for channel in ("s", "u"):
            core = result["stages"][channel].get("tensor_core")
            if core and core["text"] == BY_BOUNDS:
                self.assertEqual((core["off"], core["unequal"], core["exact_tiles"]), (0, 0, 0), core)
            elif core:
                declared.append(channel)
                self.assertEqual((core["off"], core["unequal"], core["exact_tiles"]), (0, 0, core["tiles"]), core)
                self.assertGreater(core["tiles"], 0)
        return declared

    def compare(self, a, b, *options):
        done = command("diff", "--json", *options, a, b)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def check(self, build, name):
        runs = self.runs[build, name].result()
        if runs.cpu.returncode == DECLINED:
            said = [run.stderr.strip().splitlines()[-1:] for run in (runs.first[0], runs.cpu)]  # after how long it compiled
            self.assertEqual((runs.first[0].returncode, said[0]), (DECLINED, said[1]))
            self.skipTest(f"{build[0].stem} declines it, on either backend: {runs.cpu.stderr.strip()}")
        cpu, first = self.good(runs.cpu, "cpu"), self.good(runs.first[0], FIRST)

        status, d = self.compare(runs.paths[0], runs.cpu_path)
        self.assertEqual((status, d["slots"]["both"], d["slots"]["reordered"]), (0, d["slots"]["all"], 0), d)
        for channel, c in d["channels"].items():
            recorded = c["recorded"]
            self.assertEqual((recorded[0], c["classes"], c["coverage"], c["nan"]), (recorded[1], 0, 0, 0), (channel, c))
        for channel in ("q", "k", "v"):
            self.assertEqual(d["channels"][channel]["same"], d["channels"][channel]["compared"], channel)

        declared = self.every_bit_of_tensor_cores(first)
        self.assertEqual(self.every_bit_of_tensor_cores(cpu), declared)
        if "s" in declared and (FIRST == "cpu" or "sm_9" in first["run"]["device"]):  # what the executor emulates
            s = d["channels"]["s"]
            self.assertEqual((s["compared"] > 0, s["same"]), (True, s["compared"]), s)

        self.assertEqual((first["probes"]["verdict"], first["probes"]["channels"]["o"]["other_bits"]), ("same", 0))
        self.assertGreater(first["probes"]["channels"]["o"]["compared"], 0)
        for i in range(1, RUNS):
            self.good(runs.first[i], FIRST)
            self.assertEqual(self.compare(runs.paths[0], runs.paths[i], "--exact")[0], 0, f"run {i}")

    def takes_most(self, build):
        """Asked of each build alone, so that no test waits for all runs."""
        taken = [name for name in CASES if self.runs[build, name].result().cpu.returncode == 0]
        self.assertGreaterEqual(len(taken), 1 if build[0].parent.name == "examples" else 2, build)


def case_of(build, name):
    return lambda self: self.check(build, name)


for each in BUILDS:
    test = "_".join(("test", each[0].stem, *each[1:]))
    setattr(GpuEqualsCpu, f"{test}_takes_most_cases", lambda self, build=each: self.takes_most(build))
    for case in CASES:
        setattr(GpuEqualsCpu, f"{test}_{case}", case_of(each, case))

if __name__ == "__main__":
    tap.main()
