#!/usr/bin/env python3
"""How long causes are looked for at the mission shape: of mistakes, and of noise, which has none.

tests/bench_causes.py [--build DIR] [FOLDER]: of the scenarios in FOLDER, by default the newest of those that were written
before anything was run on them."""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPE = ["shape.batch=1", "shape.heads=8", "shape.q_len=512", "shape.kv_len=512", "shape.head_dim=64"]


def causes(build, scenario):
    """Seconds from the last verdict to the finding; None: there is none at this shape."""
    done = subprocess.run([build / "tests/bench_phases", scenario, "1", *SHAPE], cwd=ROOT, capture_output=True,
                          text=True, check=False, env={**os.environ, "ATTNSCOPE_BACKEND": "cpu"})
    if done.returncode or json.loads(done.stdout)["verdict"] != "FAIL":
        return None
    return sum(taken for run in json.loads(done.stdout)["runs"] for phase, taken in run["phases"] if phase == "causes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("folder", nargs="?", type=Path,
                        default=max(ROOT.glob("scenarios/blind-20*"), key=lambda path: (len(path.name), path.name)))
    arguments = parser.parse_args()
    scenarios = sorted(arguments.folder.glob("*.ini"))
    build = arguments.build.resolve()
    taken = {scenario.stem: seconds for scenario in scenarios if (seconds := causes(build, scenario)) is not None}
    if not taken:
        raise SystemExit(f"{arguments.folder}: nothing is wrong at this shape")
    worst = max(taken, key=taken.get)
    print(f"causes at (1,8,512,64), {len(taken)} of {len(scenarios)} mistakes of {arguments.folder.name}: "
          f"median {statistics.median(taken.values()):.2f} s, worst {taken[worst]:.2f} s ({worst}); of noise in S, which "
          f"has none: {causes(build, ROOT / 'tests/search/noise.ini'):.2f} s (aims: 0.2 s and 2 s on two cores)")


if __name__ == "__main__":
    main()
