#!/usr/bin/env python3
"""Records the traces of tests/recorded/ on a GPU, with what is read and judged in each of them: NAME.safetensors and
NAME.expect in FOLDER, or $OUT. Later versions must read and judge them the same (tests/recorded/test_recorded.py).

    OUT=tests/recorded tests/gpu/record_traces.py
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/recorded"))

from judged import judged  # noqa: E402

MOST_BYTES = 400_000
EXAMPLE, PATCHES = "docs/examples/with_plan.cu", "tests/recorded"
CASES = (  # name, what is run, exit status, verdict
    ("clean-wmma", ("kernels/v2c_wmma.cu", "--shape", "1,1,72,100,64"), 0, "CLEAN"),
    ("clean-fp8-mma", ("kernels/fp8_mma.cu", "--shape", "1,1,72,100,64"), 0, "CLEAN"),
    ("double-scale", ("kernels/v2b_scalar.cu", "--shape", "1,1,40,100,64", "--patch",
                      "scenarios/bugs/double-scale.patch"), 1, "FAIL"),
    ("illegal-address", (EXAMPLE, "--shape", "1,1,24,100,64", "--patch", f"{PATCHES}/reads-far-outside.patch"), 3,
     "CRASHED"),
    ("hung", (EXAMPLE, "--shape", "1,1,24,100,64", "--patch", f"{PATCHES}/hangs.patch", "--set", "scenario.limit=2"), 3,
     "HUNG"),
)


def record(attnscope, folder, backend, name, run, status, verdict):
    """What is wrong with it, or ""."""
    trace = folder / f"{name}.safetensors"
    done = subprocess.run([attnscope, "run", *run, "--backend", backend, "--save", trace,
                           "--set", "capture.writers=off"], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)
    if done.returncode != status or not trace.exists():
        return f"exit status {done.returncode}, not {status}\n{done.stdout}"
    size = trace.stat().st_size
    if size > MOST_BYTES:
        return f"{size} bytes, at most {MOST_BYTES} are wanted"
    found, why = judged(attnscope, trace)
    if why:
        return why
    if found["verdict"] != verdict or found["run"]["backend"] != backend:
        return f"{found['verdict']} on {found['run']['backend']}, not {verdict} on {backend}\n{done.stdout}"
    if verdict not in ("CLEAN", "FAIL") and (found["culprits"] or not found["stamps"]):
        return f"what was recorded before the end must be right, and stamps must tell how far it came\n{done.stdout}"
    (folder / f"{name}.expect").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("OUT"), type=Path)
    parser.add_argument("--backend", default="gpu", choices=("gpu", "cpu"))
    arguments = parser.parse_args()
    if not arguments.folder:
        parser.error("no folder: state one, or set OUT")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    attnscope = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
    failed = 0
    for name, run, status, verdict in CASES:
        why = record(attnscope, arguments.folder, arguments.backend, name, run, status, verdict)
        print(f"{'FAIL' if why else 'ok  '} {name}" + (f": {why}" if why else ""), flush=True)
        failed += why != ""
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
