"""The kernels of kernels/, what has to be set for those that do not take f16 and bf16 as they come, and the ways in which
they are built."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "fp8_sim": (("shape.dtype=f16",),),
    "fp8_e4m3": (("shape.dtype=e4m3", "scenario.define=MIXED=0"),
                 ("shape.dtype=f16", "shape.k_dtype=e4m3", "scenario.define=MIXED=1")),
    "block_scales": (("shape.dtype=f16", "shape.k_dtype=e4m3", "quant.scales=rows:16,dims:16"),),
    "micro_scales": (("shape.dtype=f16", "shape.k_dtype=e2m1", "quant.scales=rows:1,dims:16", "quant.scale_type=e4m3"),),
    "fp8_mma": (("shape.dtype=e4m3", "quant.scales=head"),),
    "hopper_fp8": (("shape.dtype=e4m3", "scenario.define=BLOCKS=0", "quant.scales=head"),
                   ("shape.dtype=e4m3", "scenario.define=BLOCKS=1", "quant.scales=rows:128")),
}
NEEDS = {"fp8_mma": 89, "hopper_fp8": 90, "hopper_large": 90, "hopper_small": 90}  # of the compute capability, where instructions are missing before


def kernels():
    """(path from the root, settings...) of each, once for each type that Q may have in a build of its own."""
    found = sorted((ROOT / "kernels").glob("*.cu"))
    return tuple((str(path.relative_to(ROOT)), *settings) for path in found for settings in SETTINGS.get(path.stem, ((),)))


def choices(path):
    """NAME=VALUE of the ASC_CHOICES of a kernel; one empty choice where it has none."""
    found = re.search(r"^ASC_CHOICES\((\w+), (.*)\);", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{found[1]}={value.strip()}" for value in found[2].split(",")] if found else [""]


def dtype_of(kernel, define):
    """The type of Q that a build of a kernel is tried with."""
    rows = SETTINGS.get(kernel, (("shape.dtype=f16",),))
    row = next(row for row in rows if len(rows) == 1 or f"scenario.define={define}" in row)
    return row[0].removeprefix("shape.dtype=")
