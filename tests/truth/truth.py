#!/usr/bin/env python3
"""How often attnscope is right: every bug scenario and random runs of correct kernels on the CPU, into docs/truth.md.

Everything follows from seeds that the page names. Exits 1 where the goal is missed: stage and tile always right, the
cause in 95 of 100, no wrong cause, no false alarm.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/truth.md"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
from kernels import kernels  # noqa: E402

LEAST_CAUSES = 0.95
RUNS = 130  # random ones of each row of correct()
FIRST_SEED = 901  # of the first row; the next row has the next one
OTHER_SEED = 101  # of the scenarios' inputs, beside the seed in their files
# Mistakes that show on some inputs only, and why: these run with their own seed alone.
OWN_INPUTS = {"fp8-exponent-overflow": "a score has to be 11.1 above all of the first tile for its weight to overflow"}

# The short form: a scenario of each stage, and one of two mistakes; some kernels.
SHORT_SCENARIOS = ("k-row-off-by-one", "v-holds-k", "mma-causal-off-by-one", "m-half-row", "alpha-inverted", "mslk-242",
                   "l-alpha-forgotten", "u-last-key-dropped", "lse-base-2", "two-mistakes")
SHORT_KERNELS = (("kernels/v2b_scalar.cu", ()), ("kernels/fp16_mma_ws.cu", ("scenario.define=WS=2",)),
                 ("kernels/fp8_e4m3.cu", ("shape.dtype=e4m3",)), ("kernels/split_kv.cu", ()))
SHORT_RUNS = 10


def choices(path):
    """NAME=VALUE of every ASC_CHOICES line of a kernel; one empty choice where it has none."""
    found = re.search(r"^ASC_CHOICES\((\w+), (.*)\);", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{found[1]}={value.strip()}" for value in found[2].split(",")] if found else [""]


def correct():
    """Rows of correct kernels: (path, settings that win over the random ones)."""
    return [(path, (*settings, *((f"scenario.define={choice}",) if choice else ())))
            for path, *settings in kernels() for choice in choices(path)]


def random_runs(build, runs, seed, path, settings):
    """A row of the page: what was judged, and the commands of the runs that were not clean."""
    done = subprocess.run([build / "tests/random_runs", "--small", str(runs), str(seed), path, *settings], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    sums = re.search(r"^# (\d+) runs with seed \d+, (\d+) elements judged, (\d+) runs not clean$", done.stdout,
                     re.MULTILINE)
    if not sums or int(sums[1]) != runs:
        sys.exit(f"truth: random runs of {path} did not come to their end:\n{done.stdout}")
    return {"kernel": Path(path).stem, "settings": " ".join(settings), "seed": seed, "runs": runs,
            "elements": int(sums[2]), "alarms": int(sums[3]),
            "said": [line for line in done.stdout.splitlines() if line.startswith("# run") or "attnscope run" in line]}


def named(result):
    """The causes of each finding that names any, by stage."""
    return {finding["channel"]: [cause["name"] for cause in finding["causes"]]
            for finding in result["findings"] if finding["causes"]}


def wrong_names(result, stated):
    """Names of findings that have none of those that the scenario states."""
    return sorted(name for of in named(result).values() if not set(of) & set(stated) for name in of)


def scenario(build, path, settings):
    """What a scenario must show, and whether it did."""
    command = [build / "attnscope", "check", "--json", path.relative_to(ROOT)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    try:
        result = json.loads(done.stdout)[0]
        parts = result["parts"]
    except (ValueError, KeyError, IndexError):
        sys.exit(f"truth: {path.relative_to(ROOT)} was not run:\n{done.stdout}")
    stated = [name.strip() for name in result["expect"].get("cause", "").split(",") if name.strip() not in ("", "none")]
    wrong = wrong_names(result, stated)
    return {"name": path.stem, "kernel": Path(result["run"]["kernel"]).stem, "seed": settings, "stated": stated,
            "stage": parts["stage"], "tile": parts["tile"], "finding": parts["finding"], "wrong": wrong,
            "why": "" if result["as_expected"] else result["why"]}


def share(results, part):
    """(right, stated) of one part."""
    stated = [result for result in results if result[part] != "not stated"]
    return sum(result[part] == "right" for result in stated), len(stated)


def goal_missed(results, rows):
    """What the goal asks for and was not found, as lines."""
    faults = []
    for part in ("stage", "tile"):
        right, stated = share(results, part)
        if right != stated:
            faults.append(f"{part}: {right} of {stated}")
    right, stated = share([result for result in results if result["stated"]], "finding")
    if right < LEAST_CAUSES * stated:
        faults.append(f"cause: {right} of {stated}")
    faults += [f"{result['name']}: wrong cause {' '.join(result['wrong'])}" for result in results if result["wrong"]]
    faults += [f"{row['kernel']}: {row['alarms']} false alarms, seed {row['seed']}" for row in rows if row["alarms"]]
    return faults


def macros(name, path):
    """The arguments of every NAME(...) of a table; the last one may be a string."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.findall(rf'^{name}\(([^"]*?)(?:,\s*"((?:[^"\\]|\\.)*)")?\)', text, re.MULTILINE)
    return [(*(word.strip() for word in words.split(",")), why) for words, why in found]


def cause_names():
    return {line[0]: line[1] for line in
            re.findall(r'^CAUSE\((\w+), "([^"]+)"', (ROOT / "engine/oracle/causes.def").read_text(encoding="utf-8"),
                       re.MULTILINE)}


def same_names():
    """The part of the page that says which names count as the same."""
    names = cause_names()
    table = "tests/unit/causes_same.def"
    text = "| names | where | why |\n| --- | --- | --- |\n"
    for first, second, why in macros("SAME", table):
        text += f"| `{names[first]}`, `{names[second]}` | everywhere | {why} |\n"
    for fill, first, second, why in macros("COINCIDE", table):
        text += f"| `{names[first]}`, `{names[second]}` | {fill.removeprefix('FILL_').lower().replace('_', '-')} " \
                f"inputs | {why} |\n"
    for mistake, fill, cause, why in macros("BECOMES", table):
        text += f"| `{names[cause]}` for {mistake} | {fill.removeprefix('FILL_').lower().replace('_', '-')} inputs | " \
                f"{why} |\n"
    for mistake, cause, why in macros("ALIKE", "tests/unit/causes_alike.def"):
        text += f"| `{names[cause]}` for {mistake} | everywhere | {why} |\n"
    return text


def own_inputs():
    return " ".join(f"`{name}` has one seed: {why}." for name, why in OWN_INPUTS.items())


def verdict_words(result):
    if result["wrong"]:
        return "wrong: " + ", ".join(result["wrong"])
    if not result["stated"]:
        return {"right": "no name, right", "not stated": "no name, right"}.get(result["finding"], "wrong")
    return ", ".join(f"`{name}`" for name in result["stated"]) if result["finding"] == "right" else "not named"


def page(results, rows):
    def of(pair):
        return f"{pair[0]} of {pair[1]}"
    listed = [result for result in results if result["stated"]]
    others = [result for result in results if not result["stated"]]
    runs, elements = sum(row["runs"] for row in rows), sum(row["elements"] for row in rows)
    text = f"""# How often it is right

Written by `make truth`, on the CPU: every scenario of `scenarios/bugs`, with the seed in its file and with seed
{OTHER_SEED}, and random runs of correct kernels. Whatever stands here can be had again from the seeds beside it.

| | found | goal |
| --- | --- | --- |
| right stage | {of(share(results, "stage"))} | all |
| right tile, or line of the event | {of(share(results, "tile"))} | all |
| right cause, of mistakes with a name | {of(share(listed, "finding"))} | 95 % |
| wrong cause | {sum(bool(result["wrong"]) for result in results)} of {len(results)} | 0 |
| false alarms | {sum(row["alarms"] for row in rows)} of {runs} runs, {elements} elements | 0 |

{len(others)} of the {len(results)} runs are of mistakes that have no name in [causes.md](causes.md), or that leave the
values right and are reported by the executor's checks: there a name, any name, would be a wrong cause.

## Bugs

With the first seed, with the other one: what was found of what the scenario states. A dash: it states nothing of the
kind. {own_inputs()}

| scenario | kernel | stage | tile | cause |
| --- | --- | --- | --- | --- |
"""
    by_name = {}
    for result in results:
        by_name.setdefault(result["name"], []).append(result)
    for name, both in sorted(by_name.items()):
        cells = [", ".join({"not stated": "–"}.get(result[part], result[part]) for result in both)
                 for part in ("stage", "tile")]
        words = [verdict_words(result) for result in both]
        cause = words[0] if len(set(words)) == 1 else "; ".join(words)
        text += f"| {name} | {both[0]['kernel']} | {cells[0]} | {cells[1]} | {cause} |\n"
    text += f"""
## Correct kernels

Each run is another problem: shape with tails, head groups, causal mask and its corner, layout, element type, softmax
scale, fills of Q, K and V apart (normal, uniform, outliers, large logits, one-hot, arange, zeros; three sizes), scales of
codes. A row again: `build/tests/random_runs --small {RUNS} SEED kernels/KERNEL.cu SETTINGS`.

| kernel | settings | seed | runs | elements judged | false alarms |
| --- | --- | ---: | ---: | ---: | ---: |
"""
    for row in rows:
        text += f"| {row['kernel']} | {row['settings'] or '–'} | {row['seed']} | {row['runs']} | {row['elements']} | " \
                f"{row['alarms']} |\n"
    text += f"| **all** | | | **{runs}** | **{elements}** | **{sum(row['alarms'] for row in rows)}** |\n"
    text += """
## Names that count as the same

A cause is a formula, and on some inputs two formulas give the same numbers: all that explain the values are listed then,
and any of them is right. A name that is listed beside the right one is no wrong cause; a name without the right one is.
`tests/random/cause_grid.c` grades mistakes put into a test kernel of its own by these tables.

"""
    return text + same_names()


def measure(build, short):
    begin = time.monotonic()
    results, rows = [], []
    paths = sorted((ROOT / "scenarios/bugs").glob("*.ini"))
    for path in paths:
        if short and path.stem not in SHORT_SCENARIOS:
            continue
        for settings in ((),) if short else ((), (f"fill.seed={OTHER_SEED}",)):
            if settings and path.stem in OWN_INPUTS:
                continue
            results.append(scenario(build, path, settings))
            if results[-1]["why"]:
                print(f"{path.stem} {' '.join(settings)}: {results[-1]['why']}", flush=True)
    for seed, (path, settings) in enumerate(correct(), FIRST_SEED):
        if short and (path, settings) not in SHORT_KERNELS:
            continue
        rows.append(random_runs(build, SHORT_RUNS if short else RUNS, seed, path, settings))
        print("\n".join(rows[-1]["said"]), end="\n" if rows[-1]["said"] else "", flush=True)
        if not short:
            print(f"{time.monotonic() - begin:6.0f} s  {rows[-1]['runs']} runs of {rows[-1]['kernel']}", flush=True)
    return results, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where the build's output is (default: build)")
    parser.add_argument("--short", action="store_true", help="a few of each, nothing is written")
    arguments = parser.parse_args()
    results, rows = measure((ROOT / arguments.build).resolve(), arguments.short)
    faults = goal_missed(results, rows)
    print("\n".join(faults) if faults else
          f"{len(results)} runs of bugs, {sum(row['runs'] for row in rows)} of correct kernels: the goal is met")
    if not arguments.short:
        PAGE.write_text(page(results, rows), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
