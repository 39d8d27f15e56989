#!/usr/bin/env python3
"""numerics_report.py TSV [--driver VERSION] [-o FILE]: the table of tests/gpu/numerics.sh as a page in Markdown."""

import argparse
import re
import sys
from pathlib import Path

HEAD = """# Numerics

What a GPU's arithmetic is, set against what attnscope takes for granted: the emulator of tensor cores
(`engine/base/tensor_core.def`) bit by bit, and the errors that the oracle's bounds (`engine/oracle/bound.h`) allow for.

"""

COMMANDS = """
```sh
tests/gpu/numerics.sh
tests/gpu/numerics_report.py build/gpu-numerics/numerics.tsv -o docs/gpu-report/numerics.md
```
"""

PRODUCTS = """
## Matrix products

Chains of one, two and four instructions with and without an accumulator, on operands of eight kinds: normal, positive, of wide
exponents, zeros and ones, subnormal, huge, with NaN and infinities, integers. `err/bound`: the largest error over the bound of
the model. The last columns are from a search over other ways of adding up: what fits every element, as (products added
at once, fraction bits kept, bits of the result), and how much of them the next arithmetic explains; 100 %: those elements tell no
difference.

"""

FUNCTIONS = """
## Functions

{arguments}. u = 2^-24. The largest error is that of normal results, relative, or absolute where it says so.
All of a bound (1) is taken by a result below 2^-126 that was flushed to zero, or by what the PTX ISA promises of a 16-bit
function.

"""

CONVERSIONS = """
## Conversions

Every code against the round-to-nearest-even of `engine/base/format.h`. A NaN must become a NaN, of whatever bits.

"""


def read(path):
    """Comment lines, and the rows as dictionaries."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    said = [line[2:] for line in lines if line.startswith("# ")]
    rows = [line.split("\t") for line in lines if not line.startswith("# ")]
    if len(said) < 2 or len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError(f"{path}: not a table of tests/gpu/numerics.sh, or not all of one")
    return said, [dict(zip(rows[0], row)) for row in rows[1:]]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]) + "\n"


def digits(number):
    return f"{float(number):.3g}"


def share(equal, n):
    """Never 100 % of anything but all."""
    return "all" if equal == n else f"{min(100 * equal / n, 99.999):.3f} %"


def largest(rows, column):
    """The row whose number in the column is largest, NaN before all; None where none has one."""
    numbers = [(float(row[column]), row) for row in rows if row[column] != "-"]
    return max(numbers, key=lambda pair: (pair[0] != pair[0], pair[0]), default=(0, None))[1]


def by_name(rows, section):
    """The rows of a section, by what they measure, in their order."""
    groups = {}
    for row in rows:
        if row["section"] == section:
            groups.setdefault(row["what"], []).append(row)
    return groups


def provenance(said, rows, driver):
    where, _, arguments = said[0].partition("; ")
    parts = [part.strip() for part in where.split(", ")]
    if driver:
        parts[2] = re.sub(r"^driver (\S+ )?for", f"driver {driver} for", parts[2])
    facts = [("GPU", ", ".join(parts[:2])), ("driver", parts[2].removeprefix("driver ")),
             ("CUDA", parts[3].removeprefix("runtime ")), ("measured", parts[4]), ("verdict", said[-1])]
    failed = [row for row in rows if row["status"] == "FAIL"]
    text = HEAD + table(("", ""), facts) + COMMANDS
    if failed:
        text += "\nWhat does not hold:\n\n" + "".join(f"- {row['what']}, {row['setting']}: {row['note']}\n" for row in failed)
    step = re.search(r"every (\d+)-th", arguments)
    return text, "All 2^32 arguments of f32" if step and step.group(1) == "1" else f"Of 2^32 arguments {arguments[18:]}"


def products(rows):
    candidates = by_name(rows, "candidate")
    lines = []
    for name, group in by_name(rows, "product").items():
        asked = [row for row in group if row["equal"] != "-"]
        worst = largest(group, "error_over_bound")
        ranks = candidates.get(name, ())
        model = {match.group(1) for row in group if (match := re.match(r"emulator (\S+) \(", row["note"]))}
        n, equal = (sum(int(row[column]) for row in asked) for column in ("elements", "equal"))
        fits = [row for row in ranks if row["equal"] == row["elements"]]
        other = [row for row in ranks if row not in fits]
        lines.append([f"`{name}`", ", ".join(sorted(model)) or "none", f"{n:,}" if n else "-", share(equal, n) if n else "-",
                      digits(worst["error_over_bound"]) if worst else "-",
                      fits[0]["note"].split(";")[0] if fits else "none",
                      "100 %" if len(fits) > 1 else f"{100 * float(other[0]['equal_share']):.3f} %" if other else "-"])
    heads = ("instruction", "model", "elements", "equal", "err/bound", "what fits", "next")
    return table(heads, lines) if lines else "Not measured.\n"


def functions(rows):
    lines = []
    for name, group in by_name(rows, "function").items():
        # Where the oracle assumes nothing, only if it assumes nothing at all: those are whole functions.
        assumed = [row for row in group if row["status"] != "info"] or group
        error, ratio = largest(assumed, "largest_error"), largest(assumed, "error_over_bound")
        if not error:
            lines.append([f"`{name}`", group[0]["note"], "-", "-", "-"])
            continue
        bound = re.match(r"bound ([^;]*)", error["note"])
        at = re.search(r"largest error at ([^;(]*)", error["note"])
        size = f"2^{float(error['log2_error']):.2f}" if error["log2_error"] != "-" else "0"
        lines.append([f"`{name}`", bound.group(1) if bound else "",
                      size + (" absolute" if error["error_is"] == "absolute" else ""),
                      at.group(1).strip() if at else "", digits(ratio["error_over_bound"])])
    return table(("function", "bound", "largest error", "at", "err/bound"), lines) if lines else "Not measured.\n"


def conversions(rows):
    lines = []
    for name, group in by_name(rows, "conversion").items():
        row = group[0]
        if row["equal"] == "-":
            lines.append([name, "-", row["note"]])
            continue
        n, equal = int(row["elements"]), int(row["equal"])
        lines.append([name, f"{n:,}", share(equal, n) + (f": {row['note']}" if equal < n else "")])
    return table(("conversion", "codes", "right"), lines) if lines else "Not measured.\n"


def page(said, rows, driver):
    text, arguments = provenance(said, rows, driver)
    return (text + PRODUCTS + products(rows) + FUNCTIONS.format(arguments=arguments) + functions(rows) + CONVERSIONS +
            conversions(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tsv", help="what tests/gpu/numerics.sh wrote")
    parser.add_argument("--driver", default="", help="the driver's version, where the table lacks it")
    parser.add_argument("-o", "--out", help="the page to write; its text from '## Findings' on is kept")
    arguments = parser.parse_args()
    try:
        text = page(*read(arguments.tsv), arguments.driver)
    except (OSError, ValueError) as error:
        sys.exit(f"numerics_report.py: {error}")
    if not arguments.out:
        print(text, end="")
        return
    out = Path(arguments.out)
    before = out.read_text(encoding="utf-8") if out.exists() else ""
    kept = before[before.index("\n## Findings\n"):] if "\n## Findings\n" in before else ""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text + kept, encoding="utf-8")


if __name__ == "__main__":
    main()
