#!/usr/bin/env python3
"""Measures attnscope on a GPU and writes docs/gpu-report.md and docs/gpu-report/.

Needs attnscope and bench_phases as make builds them ($ATTNSCOPE, $BENCH_PHASES) and nvcc. 77 and "SKIP: no CUDA device"
where there is none. All figures stay in BUILD/gpu-figures.json, which a run of --only some steps takes the others from.
Where OUT is set, figures.json and gpu-report.md go there, and docs/ stays as it is; --from FILE takes such figures over
into docs/ without measuring anything.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import bench_report  # noqa: E402
import bench_steps  # noqa: E402


def find_nvcc():
    home = os.environ.get("CUDA_HOME")
    for path in (home and f"{home}/bin/nvcc", shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if path and os.access(path, os.X_OK):
            return os.path.realpath(path)
    return None


def measure(bench, chosen, machine, keep):
    """Figures of every chosen step; keep(figures) after each, so that a run that is cut off leaves something."""
    figures = {"machine": machine}
    for name in chosen:
        begin = time.monotonic()
        try:
            figures[name] = bench_steps.STEPS[name](bench)
        except bench_steps.Skipped as error:
            print(f"{name}: SKIP: {error}", flush=True)
            continue
        except bench_steps.NotMeasured as error:
            figures[name] = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 one step's mistake must not cost the others
            traceback.print_exc()
            figures[name] = {"error": f"{type(error).__name__}: {error}"}
        said = figures[name].get("error", "measured")
        print(f"{name}: {said} ({time.monotonic() - begin:.1f} s, {bench.left():.0f} s left)", flush=True)
        keep(figures)
    return figures


def write_docs(figures, docs, kept):
    """docs/gpu-report/ and docs/gpu-report.md; what these figures and those of the file `kept` lack stays as it is."""
    folder = docs / "gpu-report"
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    figures = {**before, **figures}
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    bench_report.write_sections(figures, folder)
    (docs / "gpu-report.md").write_text(bench_report.assemble(folder), encoding="utf-8")


def write_out(figures, out):
    """Two files of these figures alone."""
    with tempfile.TemporaryDirectory() as folder:
        write_docs(figures, Path(folder), Path(folder) / "figures.json")
        shutil.copy(Path(folder) / "figures.json", out)
        shutil.copy(Path(folder) / "gpu-report.md", out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where the build's output is (default: build)")
    parser.add_argument("--limit", type=float, help="seconds in all (default: 600, quick 100; with FlashAttention 300 more)")
    parser.add_argument("--quick", action="store_true", help="two kernels, one shape, nothing that takes long")
    parser.add_argument("--only", help=f"steps, of {','.join(bench_steps.STEPS)}")
    parser.add_argument("--from", dest="source", metavar="FILE", help="take these figures over, measure nothing")
    arguments = parser.parse_args()
    docs, kept = ROOT / "docs", ROOT / arguments.build / "gpu-figures.json"
    if arguments.source:
        write_docs(json.loads(Path(arguments.source).read_text(encoding="utf-8")), docs, kept)
        return 0
    out = Path(os.environ["OUT"]) if os.environ.get("OUT") else None
    chosen = arguments.only.split(",") if arguments.only else list(bench_steps.STEPS)
    unknown = [name for name in chosen if name not in bench_steps.STEPS]
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}")
    attnscope = os.environ.get("ATTNSCOPE") or ROOT / arguments.build / "attnscope"
    bench = bench_steps.Bench(Path(attnscope).absolute(), arguments.limit or (100 if arguments.quick else 600) + 300 * any(f"FLASH_ATTENTION{n}" in os.environ for n in ("", "3")),
                              arguments.quick, find_nvcc())
    machine = bench_steps.machine(bench)
    if "error" in machine:
        print(f"SKIP: no CUDA device ({machine['error']})")
        return 77
    bench.sm = machine["sm"]
    keep = (lambda figures: write_out(figures, out)) if out else (lambda figures: write_docs(figures, docs, kept))
    figures = measure(bench, chosen, machine, keep)
    if not figures.keys() - {"machine"}:
        return 77  # all were skipped, and said so
    print(((out or docs) / "gpu-report.md").read_text(encoding="utf-8"))
    return 1 if all("error" in figures.get(name, {"error": ""}) for name in chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
