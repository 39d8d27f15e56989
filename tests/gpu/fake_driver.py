"""A CUDA driver that is none (fake_cuda.c), built into a folder: a program with LD_LIBRARY_PATH there finds it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(folder):
    subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-I.", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-o",
                    folder / "libcuda.so.1", "tests/gpu/fake_cuda.c", "engine/base/tensor_core.c", "engine/base/dtype.c", "-lm"],
                   cwd=ROOT, check=True)
