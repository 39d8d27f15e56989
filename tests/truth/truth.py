#!/usr/bin/env python3
"""How often attnscope is right: every mistake of scenarios/bugs and scenarios/blind and random runs of correct kernels on
the CPU, into docs/truth.md; with --long ten thousand of the latter alone.

Everything follows from seeds that the page names. Exits 1 where the goal is missed: stage and tile always right, of
mistakes with a name 95 in 100 named, no wrong cause, no false alarm.

A scenario of scenarios/blind is a mistake that was written down before it was run, by somebody who had not looked at the
names of causes: the comment at its top says what it is, [expect] states stage and tile and no cause. Names that would be
right, if there are any, were added after it had been run, as a comment `; accepted: NAME, NAME`.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/truth.md"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
from kernels import choices, kernels  # noqa: E402

LEAST_CAUSES = 0.95
RUNS = 150  # random ones of each row of correct()
FIRST_SEED = 901  # of the first row; the next row has the next one
OTHER_SEED = 101  # of the scenarios' inputs, beside the seed in their files
# Mistakes that show on some inputs only, and why: these run with their own seed alone.
OWN_INPUTS = {"fp8-exponent-overflow": "a score has to be 11.1 above all of the first tile for its weight to overflow",
              "largest-not-largest-magnitude": "which tensor has its largest magnitude below 0 in the first tile is chance"}

# A kernel of all features, whose runs draw from them at once: the ways it is built in, a row each.
ALL_KERNEL = "tests/everything/everything.cu"
ALL_WAYS = ("", "P_F16=1", "P_DROPPED=1", "DROP_WEIGHTS=1", "DROP_WEIGHTS=1 P_DROPPED=1", "P_F16=1 P_DROPPED=1",
            "P_F16=1 DROP_WEIGHTS=1", "P_F16=1 DROP_WEIGHTS=1 P_DROPPED=1")
ALL_RUNS, FIRST_ALL_SEED = 250, 2001

# Without scenarios/bugs: chunks of runs, each with a seed of its own, from kernel to kernel.
LONG_RUNS, LONG_CHUNK, FIRST_LONG_SEED = 10000, 25, 500001

# Mistakes written down before they were run, once; what was found of them then.
TRIAL = {"date": "2026-11-22", "commit": "5dcdfe6", "mistakes": 85, "stage": (83, 83), "tile": (82, 82), "event": (7, 7),
         "named": 28, "unnamed": 6, "wrong": 0}

# The short form: a scenario of each stage, and one of two mistakes; some kernels.
SHORT_SCENARIOS = ("k-row-off-by-one", "v-holds-k", "mma-causal-off-by-one", "m-half-row", "alpha-inverted", "mslk-242",
                   "l-alpha-forgotten", "u-last-key-dropped", "lse-base-2", "two-mistakes")
SHORT_KERNELS = (("kernels/v2b_scalar.cu", ()), ("kernels/fp16_mma.cu", ("scenario.define=WS=2",)),
                 ("kernels/fp8_e4m3.cu", ("shape.dtype=e4m3",)), ("kernels/split_kv.cu", ()))
SHORT_RUNS = 10
SHORT_BLIND = 4


def correct():
    """Rows of correct kernels: (path, settings that win over the random ones)."""
    rows = []
    for path, *settings in kernels():
        if "ASC_SUPPORTS(SCALE_TYPES)" in (ROOT / path).read_text(encoding="utf-8"):
            settings = []  # drawn
        is_built = any(setting.startswith("scenario.define=") for setting in settings)
        rows += [(path, (*settings, *((f"scenario.define={choice}",) if choice else ())))
                 for choice in ([""] if is_built else choices(path))]
    return rows


def all_at_once(build):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda way: random_runs(build, ALL_RUNS, way[0], ALL_KERNEL,
                                                     (f"scenario.define={way[1]}",) if way[1] else ()),
                             enumerate(ALL_WAYS, FIRST_ALL_SEED)))


def random_runs(build, runs, seed, path, settings):
    """A row of the page: what was judged, and the commands of the runs that were not clean."""
    text = (ROOT / path).read_text(encoding="utf-8")
    own = [option for option, has in (("--sequences", "kernel.sequences"), ("--values", "ASC_SUPPORTS(V_IN_K)"),
                                      ("--rope", "ASC_SUPPORTS(ROPE)"), ("--masks", "ASC_SUPPORTS(SCORE_MOD)"),
                                      ("--blocks", "ASC_SUPPORTS(SCALE_DIMS)"), ("--formats", "ASC_SUPPORTS(SCALE_TYPES)")) if has in text]
    if path == ALL_KERNEL:
        own = ["--all"]
    done = subprocess.run([build / "tests/random_runs", "--small", *own, str(runs), str(seed), path, *settings], cwd=ROOT,
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


def said(result):
    """Whether anything says what the mistake is: a name, a rule, kv tiles that were never visited, or an event that is not
    just a NaN on its way."""
    return (any(finding["causes"] or "rule" in finding or finding["channel"] == "loop" for finding in result["findings"]) or
            any(event["kind"] != "fp-invalid" for event in result["events"]))


def wrong_names(result, stated):
    """Names of findings that have none of those that the scenario states."""
    return sorted(name for of in named(result).values() if not set(of) & set(stated) for name in of)


def check(build, path, settings):
    """What `attnscope check` says of a scenario."""
    command = [build / "attnscope", "check", "--json", path.relative_to(ROOT)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    try:
        result = json.loads(done.stdout)[0]
        result["parts"]["stage"]
    except (ValueError, KeyError, IndexError):
        sys.exit(f"truth: {path.relative_to(ROOT)} was not run:\n{done.stdout}")
    return result


def scenario(build, path, settings):
    """What a scenario must show, and whether it did."""
    result = check(build, path, settings)
    parts = result["parts"]
    stated = [name.strip() for name in result["expect"].get("cause", "").split(",") if name.strip() not in ("", "none")]
    wrong = wrong_names(result, stated + accepted_names(path.read_text(encoding="utf-8")))
    return {"name": path.stem, "kernel": Path(result["run"]["kernel"]).stem, "seed": settings, "stated": stated,
            "stage": parts["stage"], "tile": parts["tile"], "finding": parts["finding"], "wrong": wrong, "said": said(result),
            "why": "" if result["as_expected"] else result["why"]}


def blind_paths():
    return sorted((ROOT / "scenarios/blind").glob("*.ini"))


def accepted_names(text):
    """Names that are true of a scenario's mistake, though it need not get them: "; accepted: NAME, NAME"."""
    return [name.strip() for line in re.findall(r"^;\s*accepted:(.*)$", text, re.MULTILINE)
            for name in line.split(",") if name.strip()]


def what(text):
    """The comment at a scenario's top, as one line."""
    lines = re.match(r"(?:;.*\n)*", text)[0].splitlines()
    return " ".join(line.lstrip("; ").strip() for line in lines if not re.match(r";\s*accepted:", line))


def blind(build, path):
    """What was found of a mistake that was written down before it was run."""
    text = path.read_text(encoding="utf-8")
    result = check(build, path, ())
    accepted = accepted_names(text)
    names = sorted(name for of in named(result).values() for name in of if name in accepted)
    return {"name": path.stem, "kernel": Path(result["run"]["kernel"]).stem, "what": what(text), "names": names,
            "stage": result["parts"]["stage"], "tile": result["parts"]["tile"], "wrong": wrong_names(result, accepted),
            "said": said(result),
            "why": "" if result["as_expected"] else result["why"]}


def share(results, part):
    """(right, stated) of one part."""
    stated = [result for result in results if result[part] != "not stated"]
    return sum(result[part] == "right" for result in stated), len(stated)


def goal_missed(results, rows, blinds=()):
    """What the goal asks for and was not found, as lines."""
    faults = []
    for of, which in ((results, ""), (blinds, " of scenarios/blind")):
        for part in ("stage", "tile"):
            right, stated = share(of, part)
            if right != stated:
                faults.append(f"{part}{which}: {right} of {stated}")
    right, stated = share([result for result in results if result["stated"]], "finding")
    if right < LEAST_CAUSES * stated:
        faults.append(f"cause: {right} of {stated}")
    faults += [f"{result['name']}: wrong cause {' '.join(result['wrong'])}" for result in [*results, *blinds]
               if result["wrong"]]
    faults += [f"{row['kernel']}: {row['alarms']} false alarms, seed {row['seed']}" for row in rows if row["alarms"]]
    return faults


def macros(name, path):
    """The arguments of every NAME(...) of a table; the last one may be a string."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.findall(rf'^{name}\(([^"]*?)(?:,\s*"((?:[^"\\]|\\.)*)")?\)', text, re.MULTILINE)
    return [(*(word.strip() for word in words.split(",")), why) for words, why in found]


def cause_names():
    return {line[0]: line[1] for line in
            re.findall(r'^(?:CAUSE|RULED|DECLARED)\((\w+), "([^"]+)"', (ROOT / "engine/oracle/causes/causes.def").read_text(encoding="utf-8"),
                       re.MULTILINE)}


def same_names():
    """The part of the page that says which names count as the same."""
    names = cause_names()
    table = "tests/unit/lib/causes_same.def"
    text = "| names | where | why |\n| --- | --- | --- |\n"
    for first, second, why in macros("SAME", table):
        text += f"| `{names[first]}`, `{names[second]}` | everywhere | {why} |\n"
    for fill, first, second, why in macros("COINCIDE", table):
        text += f"| `{names[first]}`, `{names[second]}` | {fill.removeprefix('FILL_').lower().replace('_', '-')} " \
                f"inputs | {why} |\n"
    for mistake, fill, cause, why in macros("BECOMES", table):
        text += f"| `{names[cause]}` for {mistake} | {fill.removeprefix('FILL_').lower().replace('_', '-')} inputs | " \
                f"{why} |\n"
    for mistake, cause, why in macros("ALIKE", "tests/unit/lib/causes_alike.def"):
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


def of(pair):
    return f"{pair[0]} of {pair[1]}"


def percent(pair):
    return f"{of(pair)} ({round(100 * pair[0] / pair[1])} %)"


def paragraph(text):
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False) + "\n\n"


def first_run():
    """What the sixty of scenarios/blind-60 came to when they were run for the first time: its page has the figures."""
    page = (ROOT / "scenarios/blind-60/FIRST-RUN.md").read_text(encoding="utf-8")
    explained, share_of_all = re.search(r"^\| explained \| (\d+) \((\d+) %\) \|", page, re.MULTILINE).groups()
    falsely = re.search(r"^\| explained falsely[^|]*\| (\d+) \|", page, re.MULTILINE)[1]
    without = re.search(r"^Without the search (\d+) of them \((\d+) %\)", page, re.MULTILINE)
    return paragraph(f"""**Of sixty mistakes that nobody had looked at, {explained} were explained ({share_of_all} %) and
        {falsely} falsely.** They were written from `kernels/` and docs/writing-a-kernel.md alone and committed with their
        expectations before anything was run on them; [their first run](../scenarios/blind-60/FIRST-RUN.md) lists what was
        said of each and why the others are not explained. By named causes, events and left-out tiles alone it would have
        been {without[1]} ({without[2]} %): the rest are [rules](rules.md).""") + fresh()


FRESH = (("blind-20", "names of most of the sixty"),
         ("blind-20b", "what eighty mistakes written for development showed"),
         ("blind-20c", "what is shared, read at another pitch or held in some rows alone"),
         ("blind-20d", "terms that count from elsewhere, scales of what others hold, units"),
         ("blind-20e", "masks and scores by formula, RoPE, packed rows, scales of blocks"),
         ("blind-20f", "what that showed; dropout, appended keys, codes of half a byte"),
         ("blind-20g", "what that showed; descriptors of wgmma"),
         ("blind-20h", "what that showed"), ("blind-20i", "its false details, mended"),
         ("blind-20j", "what that showed"), ("blind-20k", "what that showed"), ("blind-20m", "what that showed"),
         ("blind-20n", "its false details, mended"),
         ("blind-20l", "no more than before; written before those two, run after both"),
         ("blind-20o", "what that showed"), ("blind-20p", "its false details, mended"),
         ("blind-20q", "what that showed"), ("blind-20r", "what that showed"),
         ("blind-20s", "what that showed. The author left out what earlier ones had written often"),
         ("blind-20t", "what that showed; nothing was to be left out"), ("blind-20u", "what that showed"),
         ("blind-20v", "its false details, mended"), ("blind-20w", "what that showed"),
         ("blind-20x", "what that showed, and content of O"), ("blind-20y", "what that showed"),
         ("blind-20z", "two of the mends of what that showed"),
         ("blind-20aa", "what both showed, and sixty mistakes written for development"),
         ("blind-20ab", "what that showed. The author left out what the six sets before have"),
         ("blind-20ac", "what that showed"),
         ("blind-20ad", "no more than before. The author left out what the eight sets before have"),
         ("blind-20ae", "what both showed, and sixty mistakes written for development"),
         ("blind-20af", "no more than before. The author left out what eight earlier sets have"),
         ("blind-20ag", "what that showed; races are told by the bytes that probes have recorded"),
         ("blind-20ah", "its false detail, mended"), ("blind-20ai", "its false detail, mended"),
         ("blind-20aj", "what that showed"), ("blind-20ak", "its false detail, mended"),
         ("blind-20al", "what that showed"), ("blind-20am", "nothing: the same program"),
         ("blind-20an", "what both showed"), ("blind-20ao", "what that showed"),
         ("blind-20ap", "what that showed"), ("blind-20aq", "nothing: the same program"),
         ("blind-20ar", "what both showed"), ("blind-20as", "nothing: the same program"),
         ("blind-20at", "what both showed, and a review"),
         ("blind-20au", "what it showed"), ("blind-20av", "nothing: the same program"),
         ("blind-20aw", "what both showed"), ("blind-20ax", "what it showed"))


def fresh():
    """The same of twenty at a time that were written later: their pages have the figures."""
    rows, sums = "", {"explained": 0, "not explained": 0, "explained with a false detail": 0}
    for folder, before in FRESH:
        page = (ROOT / f"scenarios/{folder}/FIRST-RUN.md").read_text(encoding="utf-8")
        found = {what: int(re.search(rf"^\| {what} \| (\d+)", page, re.MULTILINE)[1]) for what in sums}
        of_all = 100 * found["explained"] // sum(found.values())
        sums = {what: sums[what] + found[what] for what in sums}
        rows += (f"| [{folder}](../scenarios/{folder}/FIRST-RUN.md) | {before} | {found['explained']} ({of_all} %) | "
                 f"{found['explained with a false detail']} | {found['not explained']} |\n")
    total = sum(sums.values())
    return paragraph("""Twenty fresh ones at a time were written in the same way after the search had grown, from blind-20g
        on each time by another author. The figures are those of the first run:""") + f"""| twenty | what the search had grown by | explained | with a false detail | not |
| --- | --- | --- | --- | --- |
{rows}| all {total} | | {percent((sums["explained"], total))} | {sums["explained with a false detail"]} | {sums["not explained"]} |

"""


def summary(results, blinds, rows):
    """The page's first table and what it proves."""
    explained = [result for result in results if result["stated"] and result["finding"] == "right"]
    runs, elements = sum(row["runs"] for row in rows), sum(row["elements"] for row in rows)
    cells = [("mistakes tried", f"{len(results)} runs", f"{len(blinds)}" if blinds else "none yet",
              f"{TRIAL['mistakes']}", "")]
    for part, words in (("stage", "right stage"), ("tile", "right tile, or line of the event")):
        cells.append((words, of(share(results, part)), of(share(blinds, part)) if blinds else "–",
                      of(TRIAL[part]) + (f", events {of(TRIAL['event'])}" if part == "tile" else ""), "all"))
    cells.append(("explained: a true cause is named", percent((len(explained), len(results))),
                  percent((sum(bool(each["names"]) for each in blinds), len(blinds))) if blinds else "–",
                  percent((TRIAL["named"], TRIAL["mistakes"])), "–"))
    cells.append(("a name, a [rule](rules.md), tiles left out or an event says what it is; not graded by hand",
                  percent((sum(each["said"] for each in results), len(results))),
                  percent((sum(each["said"] for each in blinds), len(blinds))) if blinds else "–", "–", "–"))
    cells.append(("a wrong cause is named", of((sum(bool(each["wrong"]) for each in results), len(results))),
                  of((sum(bool(each["wrong"]) for each in blinds), len(blinds))) if blinds else "–",
                  of((TRIAL["wrong"], TRIAL["mistakes"])), "0"))
    listed = [result for result in results if result["stated"]]
    text = first_run() + """| of all mistakes tried | `scenarios/bugs` | `scenarios/blind` | the trial | goal |
| --- | --- | --- | --- | --- |
"""
    text += "".join(f"| {' | '.join(row)} |\n" for row in cells)
    text += f"""
| correct kernels | found | goal |
| --- | --- | --- |
| false alarms | {sum(row["alarms"] for row in rows)} of {runs} runs, {elements} elements | 0 |

"""
    text += paragraph(f"""**What this proves.** The scenarios of `scenarios/bugs` and the names of [causes.md](causes.md) grew
        together: a bug was added with the formula that explains it, and a formula with a bug that shows it. Their share of
        explained mistakes therefore says little about a mistake that nobody has thought of yet. That of the {len(listed)}
        runs with a name {share(listed, "finding")[0]} get it (goal: 95 %) shows that nothing is lost, and no more. Stage and
        tile are found by the bounds, which know no mistake.""")
    text += paragraph(f"""What counts as evidence is what was written down before it was run. In the trial of
        {TRIAL["date"]}, at commit {TRIAL["commit"]}, {TRIAL["mistakes"]} realistic mistakes in the project's own kernels,
        none of them in `scenarios/bugs`, were written down with stage and tile first: stage {of(TRIAL["stage"])}, first tile
        {of(TRIAL["tile"])}, event {of(TRIAL["event"])}; {TRIAL["named"]} were named
        ({round(100 * TRIAL["named"] / TRIAL["mistakes"])} %), {TRIAL["unnamed"]} more were not although a name fits, and
        {TRIAL["wrong"] or "none"} got a wrong name. It cannot be had again. `scenarios/blind` can: it is for mistakes
        written by somebody who had not looked at the names{"" if blinds else ", and holds none yet"}.""")
    return text + paragraph(f"""In all three a mistake without a name in [causes.md](causes.md) counts as not explained, and
        any name for it as wrong. Of the runs of `scenarios/bugs` these are {len(results) - len(listed)}; where such a
        mistake leaves the values right, the executor's checks report it.""")


def blind_table(blinds):
    text = """## Mistakes written down before they were run

"""
    if not blinds:
        return text + "`scenarios/blind` holds none yet.\n\n"
    text += "| scenario | kernel | the mistake | stage | tile | explained by |\n| --- | --- | --- | --- | --- | --- |\n"
    for each in blinds:
        names = "wrong: " + ", ".join(each["wrong"]) if each["wrong"] else ", ".join(f"`{name}`" for name in each["names"])
        parts = [{"not stated": "–"}.get(each[part], each[part]) for part in ("stage", "tile")]
        text += f"| {each['name']} | {each['kernel']} | {each['what'].replace('|', chr(92) + '|')} | {parts[0]} | " \
                f"{parts[1]} | {names or '–'} |\n"
    return text + "\n"


def harnesses(build):
    """What each harness of faults and hostile input says of itself: (name, executions, failures, script)."""
    found = []
    for script in sorted([*(ROOT / "tests/faults").glob("test_*.py"), ROOT / "tests/fuzz/test_corpus.py"]):
        done = subprocess.run([sys.executable, script], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, errors="replace", env=dict(os.environ, BUILD=str(build)), check=False)
        lines = re.findall(r"^# harness: (.*); executions (\d+); failures (\d+)$", done.stdout, re.MULTILINE)
        if not lines or (done.returncode and not any(int(failures) for _, _, failures in lines)):
            sys.exit(f"truth: {script.relative_to(ROOT)} did not come to its end:\n{done.stdout}")
        found += [(name, int(executions), int(failures), script.relative_to(ROOT).as_posix())
                  for name, executions, failures in lines]
    return found


FAULTS_HEAD = "## Faults and hostile input\n"
FAULTS_END = "\n## "  # of the next section


def faults_section(found):
    text = FAULTS_HEAD + """
A failure: a crash, a hang, a finding of a sanitizer, a raw control character on the terminal, a wrong verdict or exit
status. `make fuzz` runs the fuzz targets on from their corpus, for hours if it is told to.

| harness | executions | failures | again |
| --- | ---: | ---: | --- |
"""
    for name, executions, failures, script in found:
        text += f"| {name} | {executions} | {failures} | `{script}` |\n"
    return text


LENGTH_HEAD = "## Long rows\n"


def long_rows(build):
    """The tables of tests/random/length.c, and whether the goal is met: all is found, and no correct run is beyond a bound."""
    done = subprocess.run([build / "tests/length"], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout, done.returncode == 0


def length_section(tables):
    return f"""{LENGTH_HEAD}
What is found in O and LSE alone, nothing else being captured, of one q tile of 64 rows, head_dim 64, normal inputs, f16,
by a kernel in plain C that computes what `kernels/fp16_mma.cu` does on an H100, with four seeds each; and 1000 correct
runs of it, on every tensor core and none, kv tiles in either order, V without a sign, peaked scores, rows of K and V that
repeat, K of one row, one-hot Q, a hundred equal largest weights. *Bound*: O or LSE is beyond its own. *Unusual*: O is within
it, but errs by more than roundings do, or in proportion to itself: no verdict, but the q tile is recorded and its stages
are judged, which are narrow. Each q tile is judged by itself, so that a mistake in all of them is found as one in a single
tile is. Again: `make length`.

From 4096 keys on a bound is the smaller one of the worst case, all roundings going the same way, and of what they come to
with a chance of less than 1e-12 in a run of 2³⁶ elements that it is more
([likely.h](../engine/oracle/likely.h): independent roundings, Azuma and Hoeffding; Higham and Mary 2019).

{tables}
"""


ALL_HEAD = "## Everything at once\n"


def table_row(row):
    return (f"| {row['kernel']} | {row['settings'] or '–'} | {row['seed']} | {row['runs']} | {row['elements']} | "
            f"{row['alarms']} |\n")


def all_section(rows):
    return f"""{ALL_HEAD}
`{ALL_KERNEL}` takes all that a problem may have ([scenarios](scenarios.md#what-a-problem-may-have)). A run draws from
all of it: sequences, pages, left padding, appended keys, widths, V in K, strides, RoPE, windows, soft caps, sinks, ALiBi,
biases, masks, formulas of scores, dropout, codes and their scales; rows are packed, kv tiles dealt in three ways. A row
again: `build/tests/random_runs --small --all {ALL_RUNS} SEED {ALL_KERNEL} SETTINGS`.

| kernel | settings | seed | runs | elements judged | false alarms |
| --- | --- | ---: | ---: | ---: | ---: |
{"".join(table_row(row) for row in rows)}| **all** | | | **{sum(row["runs"] for row in rows)}** | **{sum(row["elements"] for row in rows)}** | **{sum(row["alarms"] for row in rows)}** |

"""


def page(results, rows, everything, blinds, found, tables):
    runs, elements = sum(row["runs"] for row in rows), sum(row["elements"] for row in rows)
    text = f"""# How often it is right

Written by `make truth`, on the CPU: every scenario of `scenarios/bugs`, with the seed in its file and with seed
{OTHER_SEED}, every one of `scenarios/blind`, and random runs of correct kernels. Whatever stands here can be had again from
the seeds beside it, but for the trial.

"""
    text += summary(results, blinds, rows) + blind_table(blinds)
    text += f"""## Bugs

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
codes. A row again: `build/tests/random_runs --small {RUNS} SEED kernels/KERNEL.cu SETTINGS`,
with `--sequences`, `--values` and `--rope` behind `--small` for a kernel whose registration has `kernel.sequences`, and in
`kernel.tensors` `V_IN_K` and `ROPE`; `--blocks` and `--formats` for one with `SCALE_DIMS` and `SCALE_TYPES` there; `--masks`
for one with `SCORE_MOD` in `kernel.biases`.

| kernel | settings | seed | runs | elements judged | false alarms |
| --- | --- | ---: | ---: | ---: | ---: |
"""
    text += "".join(table_row(row) for row in rows)
    text += f"| **all** | | | **{runs}** | **{elements}** | **{sum(row['alarms'] for row in rows)}** |\n"
    text += f"\n{all_section(everything)}{faults_section(found)}\n{length_section(tables)}"
    text += """## Names that count as the same

A cause is a formula, and on some inputs two formulas give the same numbers: all that explain the values are listed then,
and any of them is right. A name that is listed beside the right one is no wrong cause; a name without the right one is.
`tests/random/cause_grid.c` grades mistakes put into a test kernel of its own by these tables.

"""
    return text + same_names()


def measure(build, short):
    begin = time.monotonic()
    results, rows = [], []
    paths = sorted((ROOT / "scenarios/bugs").glob("*.ini"))
    bugs = [(path, settings) for path in paths if not short or path.stem in SHORT_SCENARIOS
            for settings in (((),) if short or path.stem in OWN_INPUTS else ((), (f"fill.seed={OTHER_SEED}",)))]
    own = blind_paths()
    correct_ones = [(seed, path, settings) for seed, (path, settings) in enumerate(correct(), FIRST_SEED)
                    if not short or (path, settings) in SHORT_KERNELS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(lambda bug: scenario(build, *bug), bugs):
            results.append(result)
            if result["why"]:
                print(f"{result['name']} {' '.join(result['seed'])}: {result['why']}", flush=True)
        blinds = list(pool.map(lambda path: blind(build, path), own[::max(1, len(own) // SHORT_BLIND)] if short else own))
        print("".join(f"{each['name']}: {each['why']}\n" for each in blinds if each["why"]), end="", flush=True)
        for row in pool.map(lambda one: random_runs(build, SHORT_RUNS if short else RUNS, *one), correct_ones):
            rows.append(row)
            print("\n".join(row["said"]), end="\n" if row["said"] else "", flush=True)
            if not short:
                print(f"{time.monotonic() - begin:6.0f} s  {row['runs']} runs of {row['kernel']}", flush=True)
    return results, rows, blinds


def chunk(number):
    """A part of the long form: (path, settings), seed."""
    rows = correct()
    return rows[number % len(rows)], FIRST_LONG_SEED + number


def part_of(text):
    """"I/N" as two numbers."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not found or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"expected I/N such as 2/8, found '{text}'")
    return int(found[1]), int(found[2])


def long_form(build, runs, part):
    """Random runs of correct kernels and nothing else; 1 where anything was raised."""
    begin, chunks = time.monotonic(), runs // LONG_CHUNK
    first, end = (part[0] - 1) * chunks // part[1], part[0] * chunks // part[1]
    done = alarms = elements = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        def one(number):
            (path, settings), seed = chunk(number)
            return seed, random_runs(build, LONG_CHUNK, seed, path, settings)
        for count, (seed, row) in enumerate(pool.map(one, range(first, end)), 1):
            done, alarms, elements = done + row["runs"], alarms + row["alarms"], elements + row["elements"]
            print("".join(f"{line}\n" for line in row["said"]) +
                  f"{time.monotonic() - begin:6.0f} s  {count} of {end - first}: seed {seed}, {row['kernel']} "
                  f"{row['settings']}, {alarms} raised so far", flush=True)
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = cpu.ru_utime + cpu.ru_stime
    print(f"{done} random runs of correct kernels, seeds {FIRST_LONG_SEED + first} to {FIRST_LONG_SEED + end - 1}, "
          f"{elements} elements, {took:.0f} s of CPU: {alarms or 'nothing'} raised")
    return 1 if alarms or not done else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where the build's output is (default: build)")
    parser.add_argument("--short", action="store_true", help="a few of each, nothing is written")
    parser.add_argument("--faults", action="store_true", help="the table of faults and hostile input alone, into the page")
    parser.add_argument("--all", action="store_true", help="runs of everything at once alone, into the page")
    parser.add_argument("--length", action="store_true", help="the tables of long rows alone, into the page")
    parser.add_argument("--long", action="store_true", help="random runs of correct kernels alone, nothing is written")
    parser.add_argument("--runs", type=int, default=LONG_RUNS, help=f"of --long (default: {LONG_RUNS})")
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="I/N", help="of --long: the I-th of N parts")
    arguments = parser.parse_args()
    build = (ROOT / arguments.build).resolve()
    if arguments.faults:
        found = harnesses(build)
        before, _, behind = PAGE.read_text(encoding="utf-8").partition(FAULTS_HEAD)
        PAGE.write_text(before + faults_section(found) + FAULTS_END + behind.partition(FAULTS_END)[2], encoding="utf-8")
        return 1 if any(failures for _, _, failures, _ in found) else 0
    if arguments.all:
        everything = all_at_once(build)
        before, _, behind = PAGE.read_text(encoding="utf-8").partition(FAULTS_HEAD)
        PAGE.write_text(before.partition(ALL_HEAD)[0] + all_section(everything) + FAULTS_HEAD + behind, encoding="utf-8")
        print("".join(f"{line}\n" for row in everything for line in row["said"]), end="")
        return 1 if any(row["alarms"] for row in everything) else 0
    if arguments.length:
        tables, met = long_rows(build)
        before, _, behind = PAGE.read_text(encoding="utf-8").partition(LENGTH_HEAD)
        PAGE.write_text(before + length_section(tables) + FAULTS_END[1:] + behind.partition(FAULTS_END)[2],
                        encoding="utf-8")
        return 0 if met else 1
    if arguments.long:
        return long_form(build, arguments.runs, arguments.part)
    found = [] if arguments.short else harnesses(build)
    results, rows, blinds = measure(build, arguments.short)
    everything = [] if arguments.short else all_at_once(build)
    tables, met = ("", True) if arguments.short else long_rows(build)
    faults = goal_missed(results, rows + everything, blinds)
    faults += [] if met else ["long rows: a mistake is not found, or a correct run is beyond a bound"]
    faults += [f"{name}: {failures} failures" for name, _, failures, _ in found if failures]
    print("\n".join(faults) if faults else
          f"{len(results) + len(blinds)} runs of bugs, {sum(row['runs'] for row in rows)} of correct kernels: the goal is met")
    if not arguments.short:
        PAGE.write_text(page(results, rows, everything, blinds, found, tables), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
