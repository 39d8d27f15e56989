"""A CUDA driver that is none (fake_cuda.c), built into a folder: a program with LD_LIBRARY_PATH there finds it."""

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class WithDriver(unittest.TestCase):
    """folder: the driver's, which the cases of a class share."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        build(cls.folder)


def build(folder):
    subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-I.", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-o",
                    folder / "libcuda.so.1", "tests/gpu/fake_cuda.c", "engine/base/tensor_core.c", "engine/base/dtype.c", "-lm"],
                   cwd=ROOT, check=True)
