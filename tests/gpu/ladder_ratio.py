#!/usr/bin/env python3
"""Times the kernels of kernels/ against those of another folder, both without probes, in random turn.

ladder_ratio.py OLD [KERNEL[=NAME]...]: OLD holds KERNEL.cu, or NAME.cu, and the headers as they were. One line for each
kernel, choice of its macro and shape: the medians of both and their ratio. Exit 1: a ratio is above --most. 77: there is no nvcc
or no CUDA device."""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {"2,8,2048,128": 2, "1,8,512,64": 50}  # launches between two events
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

from kernels import choices  # noqa: E402



def build(nvcc, program, kernel, define):
    subprocess.run([nvcc, "-O3", "-std=c++17", "-arch=native", f"-I{kernel.parent}", "-I.", "-Ibuild/include",
                    "--expt-relaxed-constexpr", "-diag-suppress=177", "-DASC_MODE=0",
                    *([f"-D{define}"] if define else []), f'-DKERNEL="{kernel}"', "-o", program,
                    "tests/gpu/plain_main.cu"], cwd=ROOT, check=True)
    return program


def measure(program, shape):
    done = subprocess.run([program, shape, "20", str(SHAPES[shape])], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program.name} {shape}: {done.stderr.strip()}")
    return json.loads(done.stdout)["events"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=float, default=1.02)
    arguments = parser.parse_args()
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    smi = shutil.which("nvidia-smi")
    if not nvcc or not smi or subprocess.run([smi, "-L"], capture_output=True, check=False).returncode:
        print("SKIP: no nvcc or no CUDA device")
        return 77
    asked = dict(kernel.partition("=")[::2] for kernel in arguments.kernels)
    rungs = []  # (kernel, choice of its macro, source of each side)
    for path in sorted((ROOT / "kernels").glob("*.cu")):
        old = arguments.old.resolve() / f"{asked.get(path.stem) or path.stem}.cu"
        if (not asked or path.stem in asked) and old.exists():
            rungs += [(path.stem, define, {"old": old, "new": path}) for define in choices(path)]
    if not rungs:
        parser.error(f"{arguments.old} holds no kernel of that name")
    worse = 0
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {(name, define, side): pool.submit(build, nvcc, Path(folder) / f"{side}-{name}-{define}", source, define)
                    for name, define, sources in rungs for side, source in sources.items()}
            programs = {key: job.result() for key, job in jobs.items()}
        for name, define, _ in rungs:
            for shape in SHAPES:
                times = {"old": [], "new": []}
                for _ in range(arguments.rounds):
                    for side in random.sample(("old", "new"), 2):
                        times[side].append(measure(programs[name, define, side], shape))
                old, new = (statistics.median(times[side]) for side in ("old", "new"))
                worse += new > arguments.most * old
                print(f"{name} {define or '-'} ({shape}): old {1e6 * old:.1f} us, "
                      f"new {1e6 * new:.1f} us, ratio {new / old:.3f}", flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
