#!/usr/bin/env python3
"""Takes each barrier, wait and initialisation out of each kernel in turn and says how that is caught.

A mutant is a kernel without one of its statements. It is run with access checks and without, in both lane orders, on a
few small shapes. O or LSE that differ from the kernel's own in any run, or a report, make it harmful; a harmful one that
the checks do not report is missed, which is an error, as is a report on a kernel that is whole. What changes no value
and is not reported was redundant.

  tests/checks/mutate.py [--build DIR] [--only N] [--write] [KERNEL...]

--only N: of each kernel no more than N mutants, evenly chosen. --write: the table goes into docs/checks.md.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHAPES = ("1,2,1,70,200,64", "1,1,1,65,130,64", "causal")
MARK = re.compile(r"(<!-- mutants -->\n).*?(<!-- /mutants -->\n)", re.S)
# What orders accesses or completes copies: a statement of its own.
SYNC = re.compile(
    r"\b(__syncthreads|__syncwarp|__pipeline_commit|__pipeline_wait_prior|copy_commit|copy_wait(?:<\d+>)?"
    r"|cp_async_\w+|named_\w+|barrier_\w+)\s*\([^;{}]*\);"
)
# A store of a constant, or of the index tile that a fragment's map is loaded from.
INIT = re.compile(r"^\s*(?:\*reinterpret_cast<\w+ \*>\(to\)|(?:s[mlp]|strip)\[[^;=]*\])\s*="
                  r"\s*(?:-INFINITY|0(?:\.0f)?|make_uint4\(0, 0, 0, 0\)|static_cast<float>\(e / 16[^;]*);")


def mutants(source):
    """(line number, what is taken out, text without it)."""
    lines = source.splitlines(keepends=True)
    for at, line in enumerate(lines):
        code = line.split("//")[0]
        for pattern in (SYNC, INIT):
            found = pattern.search(code)
            # The declaration of a helper is no call of it.
            if not found or re.match(r"\s*(?:template|__device__|static|#|asm)", code):
                continue
            statement = found.group(0).strip()
            begin = code.index(statement)
            changed = lines.copy()
            changed[at] = code[:begin] + ";" + code[begin + len(statement):].rstrip("\n") + "\n"
            yield at + 1, statement, "".join(changed)
            break


class Run:
    """What run_checked printed."""

    def __init__(self, build, kernel, checks, descending=False):
        command = [build / "run_checked", *(["-c"] if checks else []), *(["-d"] if descending else []), kernel, *SHAPES]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=900)
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"mutate.py: {' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
        self.lines = done.stdout.splitlines()
        self.values = [line for line in self.lines if line.startswith(("output", "failed"))]
        events = [line.split()[1:4] for line in self.lines if line.startswith("event")]
        self.events = [event for event in events if not event[0].startswith("fp-")]  # these need no checks

    def caught(self):
        """"race (120, 98), ...": each kind with its first lines."""
        first = {}
        for kind, at, other in self.events:
            lines = [place.rsplit(":", 1)[1] for place in (at, other)]
            first.setdefault(kind, ", ".join(n for n in lines if n != "0"))
        return ", ".join(f"{kind} ({lines})" for kind, lines in first.items())


def judge(build, folder, kernel, whole, mutant):
    """A row of the table, and 1 if the mutant is missed."""
    line, statement, text = mutant
    path = Path(folder) / f"{kernel.stem}-{line}.cu"
    path.write_text(text)
    with_checks = Run(build, path, True)
    plain = [Run(build, path, False), Run(build, path, False, descending=True)]
    changed = any(run.values != good.values for run, good in zip((with_checks, *plain), whole))
    caught = with_checks.caught()
    missed = changed and not caught
    verdict = "**missed**" if missed else caught or "redundant"
    values = "change" if changed else "stay"
    return f"| `{kernel.stem}` | {line} | `{statement}` | {values} | {verdict} |", missed


def of_kernel(build, folder, kernel, only):
    whole = [Run(build, kernel, True), Run(build, kernel, False), Run(build, kernel, False, descending=True)]
    for run in whole:
        if not run.values or any(line.startswith("failed") for line in run.values):
            sys.exit(f"mutate.py: {kernel} does not run:\n" + "\n".join(run.lines))
    if whole[0].events:
        return [f"| `{kernel.stem}` | | nothing | | **reported**: {whole[0].caught()} |"], 1
    if any(run.values != whole[0].values for run in whole):
        return [f"| `{kernel.stem}` | | nothing | **differ** between builds | |"], 1
    all_of_them = list(mutants(kernel.read_text()))
    if only and only < len(all_of_them):
        all_of_them = [all_of_them[i * len(all_of_them) // only] for i in range(only)]
    rows, missed = [], 0
    with ThreadPoolExecutor(2) as pool:
        for row, is_missed in pool.map(lambda m: judge(build, folder, kernel, whole, m), all_of_them):
            rows.append(row)
            missed += is_missed
            print(row, flush=True)
    return rows, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/tests")
    parser.add_argument("--only", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("kernels", nargs="*", type=Path)
    arguments = parser.parse_args()
    kernels = arguments.kernels or sorted((ROOT / "kernels").glob("*.cu"))
    rows, missed = [], 0
    with tempfile.TemporaryDirectory(prefix="attnscope-mutants-") as folder:
        for kernel in kernels:
            more, bad = of_kernel(arguments.build.resolve(), folder, kernel, arguments.only)
            rows += more
            missed += bad
    table = "| kernel | line | taken out | values | caught as (lines) |\n| --- | --- | --- | --- | --- |\n"
    table += "".join(row + "\n" for row in rows)
    if arguments.write:
        page = ROOT / "docs/checks.md"
        page.write_text(MARK.sub(lambda m: m.group(1) + table + m.group(2), page.read_text()))
    print(f"{len(rows)} mutants, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
