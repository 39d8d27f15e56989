#!/usr/bin/env python3
"""Kernels that come along, some or with `make test TESTS=all` each, compile with their probes for every GPU that attnscope is
for: machine code for sm_80, 86, 89 and 90 (90a where a kernel asks for it), of the instance of f16 (of e4m3, where it takes no
f16) for head_dim 64. ptxas tells what an architecture lacks, whatever it optimizes, and so little is optimized. Kernels say the
same to the compiler for each of them, so it works once; what asks for the architecture, the probes, is compiled for each."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from kernels import NEEDS, choices, dtype_of  # noqa: E402
from release_code import KERNELS, find_nvcc  # noqa: E402

ATTNSCOPE = Path(os.environ.get("ATTNSCOPE", ROOT / "build/attnscope"))
ONCE = (("80", ("80", "86", "89", "90")),)
FP8 = (("89", ("89", "90")),)
HOPPER = (("90a", ("90a",)),)
EACH = (("80", ("80",)), ("86", ("86",)), ("89", ("89",)), ("90a", ("90a",)))


def build(source, folder, architectures, options=()):
    """nvcc's words; "": it made machine code for all of them."""
    targets = [f"-gencode=arch=compute_{virtual},code=[{','.join(f'sm_{real}' for real in reals)}]"
               for virtual, reals in architectures]
    # Registers that warpgroups deal among themselves are enough in optimized code alone.
    optimized = () if architectures is HOPPER else ("-Xptxas", "-O0", "-Xcicc", "-O1")
    done = subprocess.run([find_nvcc(), "-std=c++17", "-fatbin", *targets, *optimized,
                           "--expt-relaxed-constexpr", "-diag-suppress=177,836", "-I", ROOT / "build/include", "-I",
                           ROOT / "kernels", *options, "-o", Path(folder) / "out", source],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout[-2000:] or "nothing was said" if done.returncode else ""


@unittest.skipUnless(find_nvcc(), "no nvcc here, so nothing is compiled for a GPU")
class Architectures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_what_an_architecture_lacks_is_seen(self):
        self.assertIn("requires .target sm_89", build(ROOT / "kernels/fp8_mma.cu", self.folder.name, ONCE, instance("fp8_mma", "")))

    @unittest.skipUnless((ROOT / "build/libdebuggee_gpu.a").exists(), "built without the CUDA Toolkit")
    def test_a_device_that_lacks_it_declines_the_kernel(self):
        """A tree whose device is said to be an A100."""
        root = Path(self.folder.name)
        (root / "build").mkdir()
        for name in ("engine", "probes", "VERSION", "build/include", "build/libdebuggee_gpu.a"):
            (root / name).symlink_to(ROOT / name)
        shutil.copy(ATTNSCOPE, root / "build/attnscope")
        said = {"name": "NVIDIA A100", "major": 8, "minor": 0, "driver": 13000, "multiprocessors": 108,
                "memory_bytes": 1 << 35, "shared_per_block_bytes": 166912}
        (root / "build/attnscope-device").write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\n", encoding="utf-8")
        (root / "build/attnscope-device").chmod(0o755)
        done = subprocess.run([root / "build/attnscope", "run", "kernels/fp8_mma.cu", "--backend", "gpu", "--shape", "1,1,64,64",
                               "--set", "shape.dtype=e4m3", "--set", "quant.scales=head"], cwd=ROOT, capture_output=True, text=True,
                              check=False, timeout=200)
        self.assertEqual((done.returncode, done.stderr), (2, "attnscope: kernels/fp8_mma.cu: needs sm_89 or higher, for mma "
                                                          "with FP8 floating point type: this GPU is older\n"))

    def test_probes(self):
        for mode in (1, 2):
            self.assertEqual(build(ROOT / "tests/probes/all_macros.cu", self.folder.name, EACH, [f"-DASC_MODE={mode}"]), "")


def instance(kernel, define):
    return ("-DASC_MODE=1", f"-DASC_ONLY_DTYPE=ASC_{dtype_of(kernel, define).upper()}", "-DASC_ONLY_HEAD_DIM=64",
            *((f"-D{define}",) if define else ()))


def case_of(kernel, define):
    def run(self):
        architectures = {89: FP8, 90: HOPPER}.get(NEEDS.get(kernel.stem), ONCE)
        self.assertEqual(build(kernel, self.folder.name, architectures, instance(kernel.stem, define)), "")
    return run


for each, choice in tap.sampled(((each, choice) for each in KERNELS for choice in choices(each)), 8):
    setattr(Architectures, f"test_{each.stem}_{choice}".rstrip("_"), case_of(each, choice))

if __name__ == "__main__":
    tap.main()
