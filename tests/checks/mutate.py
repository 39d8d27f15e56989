#!/usr/bin/env python3
"""Takes each barrier, wait and initialization out of each kernel in turn and says how that is caught.

A mutant is a kernel without one of its statements, or of those of a header beside it, in each variant that its
ASC_CHOICES offer. Whether it does harm is decided without the checks: it is run on a few small shapes in several orders
of lanes and warps, and O or LSE that differ from the kernel's own in any run, or a run that does not end well, are harm.
The checks then must report it, else it is missed, which is an error; and so is a report on a kernel that is whole. A
mutant that no order harms and the checks do not report is redundant, or is not reached at all in these runs, which of a
header is not said; one that they report and no order harms is a race by CUDA's rules that this executor does not show. A
register that nobody has set may hold anything: where values are looked at it holds NaN.

  tests/checks/mutate.py [--build DIR] [--only N] [--write] [KERNEL...]

--only N: of each variant no more than N mutants, evenly chosen. --write: the rows of these kernels in docs/checks.md
become what was found.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

from kernels import choices  # noqa: E402

# Tails, a group of query heads, several kv tiles and less than one.
SHAPES = ("1,2,1,70,200,64", "1,1,1,65,130,64", "shape.causal=bottom-right", "1,1,1,20,40,64")
# And what a kernel's own stages need: tiles that come round again, and q tiles of a block, of three multiprocessors.
PERSISTENT = ("1,1,1,130,600,64", "shape.causal=bottom-right", "1,7,1,20,200,64")
MORE = {"hopper_small": ("1,1,1,64,700,64",), "hopper_large": PERSISTENT, "hopper_fp8": PERSISTENT}
ORDERS = "ascending,descending," + ",".join(f"shuffled:{seed}" for seed in range(6))
CHECKED_ORDERS = "ascending,descending"
MARK = re.compile(r"(<!-- mutants -->\n)(.*?)(<!-- /mutants -->\n)", re.S)
# What orders accesses or completes copies: a statement of its own. Of a lambda or a macro's argument the call within.
SYNC = re.compile(
    r"\b(wait|arrive|arrive_and_expect|release|fence_\w+|barriers_are_there|wgmma_\w+(?:<\d+>)?|cluster_(?:arrive|wait)"
    r"|(?:give|take)_registers<[\w:]+>|\w+_meets|__syncthreads|__syncwarp|__pipeline_commit|__pipeline_wait_prior|copy_commit|copy_wait(?:<\d+>)?"
    r"|cp_async_\w+|named_\w+|barrier_\w+(?:<[\w:]+>)?|\w+_meet)\s*\([^;{}]*\);"
)
ZERO = r"(?:-INFINITY|0(?:\.0f)?|make_uint4\((?:0|zeros), (?:0|zeros), (?:0|zeros), (?:0|zeros)\))"
# A store of a constant into shared memory, or of the index tile that a fragment's map is loaded from.
STORE = re.compile(r"^\s*(?:\*reinterpret_cast<\w+ \*>\([^;=]*\)|(?:s[ml]|strip|scores|tables)(?:\[[^;=\]]*\])+)\s*="
                   rf"\s*(?:{ZERO}|static_cast<float>\(e / 16[^;]*);")
# Registers that begin with a constant; masks do not: `s[i] = -INFINITY`.
REGISTERS = re.compile(rf"^\s*(?:float (?=[^;]*= )(?:\w+(?:\[[^;=\]]*\])*(?: = (?:{ZERO}|\{{\}}))?(?:, )?)+;"
                       rf"|[mlu](?:\[[^;=\]]*\])+ = {ZERO};|wmma::fill_fragment\([^;]*\);)")


def shapes_of(kernel):
    return *SHAPES, *MORE.get(kernel, ())


def without(statement, pattern):
    """What stands there instead: in a checked build, in one whose values are looked at, in one that ends there."""
    if pattern is not REGISTERS:
        return ";", ";", "__trap();"
    unset = re.sub(rf" = (?:{ZERO}|\{{\}})", "", statement) if statement.startswith("float") else ";"
    nan = re.sub(ZERO, "NAN", statement).replace(" = {}", "")
    for array in re.findall(r"(\w+)(?:\[[^;=\]]*\])+ = \{\}", statement):
        nan += f" for (unsigned at = 0; at < sizeof {array} / 4; at++) reinterpret_cast<float *>({array})[at] = NAN;"
    return unset, nan, f"{statement} __trap();"


def mutants(source):
    """(line number, what is taken out, and the text with each of without() in its place)."""
    lines = source.splitlines(keepends=True)
    for at, line in enumerate(lines):
        code = line.split("//")[0]
        # The declaration of a helper is no call of it; probes are no part of the kernel.
        if re.match(r"\s*(?:template|__device__|static|#|asm|ASC_)", code):
            continue
        for pattern in (SYNC, STORE, REGISTERS):
            found = pattern.search(code)
            if not found:
                continue
            statement = found.group(0).strip()
            begin = code.index(statement)
            texts = []
            for instead in without(statement, pattern):
                changed = lines.copy()
                changed[at] = code[:begin] + instead + code[begin + len(statement):].rstrip("\n") + "\n"
                texts.append("".join(changed))
            yield at + 1, statement, *texts
            break


def files(kernel):
    """The kernel, and the headers beside it that it includes."""
    found = [kernel]
    for file in found:
        beside = [kernel.parent / name for name in re.findall(r'^#include "(\w+\.cuh)"', file.read_text(), re.M)]
        found += [header for header in beside if header.exists() and header not in found]
    return found


class Run:
    """What run_checked printed."""

    def __init__(self, build, kernel, define, checks, orders):
        command = [build / "run_checked", "-o", orders, *(["-c"] if checks else ["-p"]),
                   *(["-D", define] if define else []), kernel, *shapes_of(kernel.stem)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=1800, env={**os.environ, "ATTNSCOPE_SMS": "3"})
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"mutate.py: {' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
        self.lines = done.stdout.splitlines()
        # A sentence about a failure names threads and addresses, which differ from run to run.
        self.values = [line if line.startswith("output") else "failed" for line in self.lines
                       if line.startswith(("output", "failed"))]
        self.events = [line.split()[1:4] for line in self.lines if line.startswith("event")]

    def caught(self):
        """"race (120, 98), ...": each kind with its first lines. That a NaN is first computed needs no checks; it is told
        where nothing else is."""
        first = {}
        kinds = {event[0] for event in self.events}
        for kind, at, other in self.events:
            if kind.startswith("fp-") and not all(other.startswith("fp-") for other in kinds):
                continue
            places = [place.rsplit(":", 1) for place in (at, other)]
            first.setdefault(kind, ", ".join(f"{Path(file).name}:{n}" if file.endswith(".cuh") else n
                                             for file, n in places if n != "0"))
        return ", ".join(f"{kind} ({lines})" if lines else kind for kind, lines in first.items())


def judge(build, folder, kernel, define, whole, mutant):
    """A row of the table, None where a header's statement is not reached, and 1 if the mutant is missed."""
    file, line, statement, unset, nan, trap = mutant
    name, at = kernel.stem, f"{line}" if file == kernel else f"{file.name}:{line}"
    own = Path(folder) / f"{name}-{file.name}-{line}-{define or 'x'}"
    own.mkdir()
    for each in files(kernel):
        shutil.copy(each, own)
    path, changing = own / kernel.name, own / file.name
    changing.write_text(nan)
    plain = Run(build, path, define, False, ORDERS)
    changing.write_text(unset)
    checked = Run(build, path, define, True, CHECKED_ORDERS)
    changed = plain.values != whole.values
    caught = checked.caught()
    missed = changed and not caught
    verdict = "**missed**" if missed else caught
    if not verdict:
        changing.write_text(trap)
        reached = Run(build, path, define, False, "ascending").values.count("failed")
        if not reached and file != kernel:
            return None, 0
        verdict = "redundant" if reached else "not reached"
    n = sum(a != b for a, b in zip(plain.values, whole.values))
    values = f"change in {n} of {len(whole.values)}" if changed else "stay"
    return f"| `{' '.join(filter(None, (name, define)))}` | {at} | `{statement}` | {values} | {verdict} |", missed


def of_variant(build, folder, kernel, define, only):
    name = " ".join(filter(None, (kernel.stem, define)))
    whole = Run(build, kernel, define, False, ORDERS)
    checked = Run(build, kernel, define, True, CHECKED_ORDERS)
    for run in (whole, checked):
        if not run.values or "failed" in run.values:
            sys.exit(f"mutate.py: {name} does not run:\n" + "\n".join(run.lines))
    if checked.events:
        return [f"| `{name}` | | nothing | | **reported**: {checked.caught()} |"], 1
    if len(set(whole.values + checked.values)) != sum(not shape.startswith("shape.") for shape in shapes_of(kernel.stem)):
        return [f"| `{name}` | | nothing | **differ** between orders or builds | |"], 1
    all_of_them = [(file, *mutant) for file in files(kernel) for mutant in mutants(file.read_text())]
    if only and only < len(all_of_them):
        all_of_them = [all_of_them[i * len(all_of_them) // only] for i in range(only)]
    rows, missed = [], 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for row, is_missed in pool.map(lambda m: judge(build, folder, kernel, define, whole, m), all_of_them):
            missed += is_missed
            if row:
                rows.append(row)
                print(row, flush=True)
    return rows, missed


def write(rows):
    """Rows of other kernels stay as they are, those of kernels that are gone go."""
    page = ROOT / "docs/checks.md"
    text = page.read_text()
    old = [row for row in MARK.search(text).group(2).splitlines() if row.startswith("| `")]
    def kernel_of(row):
        return row.split("`")[1].split()[0]
    new = {kernel_of(row) for row in rows}
    kept = [row for row in old if kernel_of(row) not in new and (ROOT / f"kernels/{kernel_of(row)}.cu").exists()]
    rows = sorted(kept + rows, key=kernel_of)  # stable
    table = "| kernel | line | taken out | values | caught as (lines) |\n| --- | --- | --- | --- | --- |\n"
    table += "".join(row + "\n" for row in rows)
    page.write_text(MARK.sub(lambda m: m.group(1) + table + m.group(3), text))


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
            for define in choices(kernel.resolve()):
                more, bad = of_variant(arguments.build.resolve(), folder, kernel, define, arguments.only)
                rows += more
                missed += bad
            if arguments.write:
                write(rows)
    print(f"{len(rows)} mutants, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
