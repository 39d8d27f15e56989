#!/usr/bin/env python3
"""Machine code of kernels that are built without attnscope (ASC_MODE 0): as they are, and with every probe statement
blanked, for each architecture. It must be the same, byte for byte.

As a program: every instance of every build of every kernel for sm_80, sm_89 and sm_90; exit 0: all the same. 77: there is no nvcc.
tests/probes/test_release_code.py takes one instance and one architecture."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

from kernels import NEEDS, choices  # noqa: E402

ARCHITECTURES = ("sm_80", "sm_89", "sm_90a")
KERNELS = tuple(sorted([*(ROOT / "kernels").glob("*.cu"), *(ROOT / "docs/examples").glob("*.cu")]))
PROBE = re.compile(r"\bASC_(AT|RECORD(_[A-Z]+)*)\([^;]*;")
EM_CUDA = 190  # e_machine of a cubin


class Different(Exception):
    pass


def find_nvcc():
    home = os.environ.get("CUDA_HOME")
    return shutil.which("nvcc", path=f"{home}/bin" if home else None) or shutil.which("nvcc", path="/usr/local/cuda/bin")


def blanked(source):
    """Every line stays where it was."""
    return PROBE.sub(lambda probe: ";" + "\n" * probe.group().count("\n"), source)


def compiled(nvcc, folder, name, source, architecture, options):
    """The cubin's bytes; Different where the compiler did not make one of this kernel."""
    folder.mkdir()
    (folder / f"{name}.cu").write_text(source, encoding="utf-8")
    cubin = folder / f"{name}.cubin"
    done = subprocess.run([nvcc, "-std=c++17", f"-arch={architecture}", "-I", ROOT / "build/include", "-I", ROOT / "kernels",
                           *options, "-cubin", "-o", cubin.name, f"{name}.cu"], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode != 0 or not cubin.exists():
        raise Different(f"{name} for {architecture}: nvcc made nothing (exit status {done.returncode})\n{done.stdout}")
    code = cubin.read_bytes()
    if code[:4] != b"\x7fELF" or int.from_bytes(code[18:20], "little") != EM_CUDA:
        raise Different(f"{name} for {architecture}: nvcc made something else than machine code")
    if not re.search(rb"\0\.text\.[^\0]*" + name.encode(), code):
        raise Different(f"{name} for {architecture}: no kernel of that name is in the machine code")
    return code


def compare(kernel, architecture, options=(), nvcc=None, recording=False):
    """Raises Different with the reason. recording: a build with probes must differ, or the comparison means nothing."""
    nvcc = nvcc or find_nvcc()
    # nvcc makes a name up for an unnamed namespace, another one in each compilation.
    source = kernel.read_text(encoding="utf-8").replace("\nnamespace\n{", "\ninline namespace kernel\n{")
    without = blanked(source)
    if source.count("\n") != without.count("\n") or not PROBE.search(source) or PROBE.search(without):
        raise Different(f"{kernel.name}: its probe statements were not all found")
    with tempfile.TemporaryDirectory() as folder:
        def build(which, text, *more):
            return compiled(nvcc, Path(folder) / which, kernel.stem, text, architecture, [*options, *more])
        strict = ("-Werror", "all-warnings")
        code = build("with", source, *strict)
        if code != build("without", without, *strict):
            raise Different(f"{kernel.name} for {architecture}: probes that are off have left something behind")
        if recording and len(build("recording", source, "-DASC_MODE=1", "-DASC_BUILD=0")) <= len(code):
            raise Different(f"{kernel.name} for {architecture}: recording changes nothing")


def main():
    if not find_nvcc():
        print("SKIP: no nvcc")
        return 77
    failed = 0

    def one(item):
        kernel, define, architecture = item
        try:
            compare(kernel, architecture, [f"-D{define}"] if define else (), recording=architecture == ARCHITECTURES[-1])
        except Different as reason:
            return str(reason)
        return ""

    everything = [(kernel, define, architecture) for kernel in KERNELS for define in choices(kernel)
                  for architecture in ARCHITECTURES if int(architecture.strip("sm_a")) >= NEEDS.get(kernel.stem, 0)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (kernel, define, architecture), reason in zip(everything, pool.map(one, everything)):
            print(f"{'FAIL' if reason else 'ok  '} {kernel.name} {define or '-'} {architecture}", flush=True)
            if reason:
                print(reason)
            failed += reason != ""
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
