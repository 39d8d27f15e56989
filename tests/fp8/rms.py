#!/usr/bin/env python3
"""What FP8 costs: how far the output of the FP8 kernels is from attention on the inputs before they were quantized, by
granularity of the scales and by fill, as the root mean square over 20 seeds. Writes docs/fp8.md; minutes.

tests/fp8/rms.py [--build DIR] [--seeds N] [--out FILE]
"""

import argparse
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPE = ("1,8,128,256,64", "top-left")
FINEST = ("tensor", "head", "rows:64", "rows:16")
ROWS = (("fp8_sim", ("head",)), ("fp8_e4m3", FINEST), ("fp8_e4m3 MIXED=1", FINEST), ("fp8_mma", FINEST[:2]))
# Keys 128 to 255 are seen by no query, but share scales with those that are. With sigma 4 for Q and 1/4 for K scores
# are what they are with 1 and 1.
FILLS = (
    ("normal", ("fill.kind=normal",)),
    ("outliers", ("fill.kind=outliers",)),
    ("large rows of K", ("fill.k.kind=large-rows", "fill.q.sigma=4", "fill.k.sigma=0.25")),
)
PAGE = """# What FP8 costs

How far O is from attention on the inputs as they were before they became codes, in float64: the root mean square over
all elements and {seeds} seeds. Batch 1, 8 heads, 128 queries, 256 keys, head_dim 64, top-left causal mask, on the CPU.
Written by `make fp8`; `attnscope run` says the same of one run.

{table}

- *outliers*: one element in 1024 of Q, K and V is thirty times larger. *large rows of K*: key 255 of the first head is
  32768 times larger; no query sees it, but it has a part in the scale.
- **Finer scales do not help where values have one size.** e4m3 is floating point: three bits of significand wherever a
  value stands, down to a 28672nd of the largest number, 448. What differs there between granularities is chance.
- **Outliers of thirty times the size gain something.** The others lose nothing to them, for the same reason. But the
  largest value of a group becomes 448 exactly, outliers make most of the error, and in 16 rows of 64 elements there is
  about one of them.
- **Finer scales help where one part dwarfs the rest by more than e4m3 reaches down.** With one scale for the tensor,
  the large key takes the bits of K in all heads; with one for each head in its own; with blocks of rows in its block
  alone, whose other keys no query sees either.
- **u8 has one step for all values** (`fp8_sim`). Where values have one size it is finer than e4m3, with seven bits for
  the largest of them; outliers set the step for all the others.
- **Q in f16** (`fp8_e4m3 MIXED=1`) is better than codes throughout: no score has the rounding of Q in it. **P in e4m3**
  (`fp8_mma`) adds little to what Q, K and V cost already.

## Finding out for one run

The same questions, asked of any run that is open, live or saved, of your kernel or of these:

- `F`, the view *formats*: which codes occur, which values were saturated, flushed to zero or made NaN, and for each group
  that shares a scale its largest value, the bits of headroom, and the scale that would have had the least error.
  Headroom 1 means that values could be twice as large; below 0 some are saturated. `×1.54` under *best*: 1.54 times the
  scale that it has.
- `C`, *compare*: float64, a kernel that stays in f16, and this run on the same inputs, kv tile by kv tile; for an element
  of O the parts that Q, K, P, V and the rest have in its error, with the step and the key that it mostly comes from, and
  their shares in a q tile and in the run. Parts follow the dataflow on this run's own scores: P's is what its rounding did
  here, which rounding P of exact scores would not show. `o[27,32]: -0.34 in all, P -0.346, saturated at k2 (key 176: 1648
  became 448)` reads: of the error of row 27, column 32, nearly all comes from P, most of it from key 176 in kv tile 2,
  whose weight did not fit. *Changed* is what no rounding makes of a value: a mistake, such as a scale that was left out.
- `X`, *what if*: what O would err by in other formats, with a scale for the tensor, a head or N rows, or with other
  scales, predicted without running the kernel. `:whatif q=f16 rows:32 x0.5` adds a row; Enter runs one, where the
  scenario and the kernel can. The first row, `◆`, is the run's own choice: where what was measured is many times what
  that predicts, the kernel has a mistake that is no matter of formats. The predictions of the kernels above are within
  0.2 % of what they measure.

`attnscope show --view formats|compare|whatif` prints each, `run --json` has the numbers.
"""


def measure(program, kernel, scales, settings, seed):
    kernel, _, define = kernel.partition(" ")
    command = [program, "run", f"kernels/{kernel}.cu", "--json", "--backend", "cpu", "--probes", "off", "--shape",
               SHAPE[0], "--set", f"shape.causal={SHAPE[1]}", "--set", f"fill.seed={seed}"]
    if define:
        command += ["-D", define]
    if kernel != "fp8_sim":  # it has its own
        command += ["--set", "shape.k_dtype=e4m3", "--set", f"quant.scales={scales}"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexited with {done.returncode}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)["unquantized"]["rms_error"]


def over_seeds(pool, program, kernel, scales, settings, seeds):
    """The root mean square over seeds, each of as many elements."""
    errors = pool.map(lambda seed: measure(program, kernel, scales, settings, seed), range(seeds))
    return math.sqrt(sum(error * error for error in errors) / seeds)


def table(program, seeds):
    lines = ["| kernel | scales | " + " | ".join(name for name, _ in FILLS) + " |",
             "| --- | --- |" + " ---: |" * len(FILLS)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for kernel, granularities in ROWS:
            for scales in granularities:
                cells = [f"{over_seeds(pool, program, kernel, scales, settings, seeds):.3g}"
                         for _, settings in FILLS]
                lines.append(f"| {kernel} | {scales} | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where the build's output is (default: build)")
    parser.add_argument("--seeds", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--out", default="docs/fp8.md", help="the page (default: docs/fp8.md)")
    arguments = parser.parse_args()
    program = (ROOT / arguments.build).resolve() / "attnscope"
    page = PAGE.format(seeds=arguments.seeds, table=table(program, arguments.seeds))
    (ROOT / arguments.out).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
