"""The kernels of kernels/, and what has to be set for those that do not take f16 and bf16 as they come."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "fp8_sim": ("shape.dtype=f16",),
    "fp8_e4m3": ("shape.dtype=e4m3",),
    "fp8_mma": ("shape.dtype=e4m3", "quant.scales=head"),
    "fp8_mixed": ("shape.dtype=f16", "shape.k_dtype=e4m3"),
}
NEEDS = {"fp8_mma": 89}  # of the compute capability, where instructions are missing before


def kernels():
    """(path from the root, settings...) of each."""
    found = sorted((ROOT / "kernels").glob("*.cu"))
    return tuple((str(path.relative_to(ROOT)), *SETTINGS.get(path.stem, ())) for path in found)


def dtype_of(kernel):
    """The type of Q that a kernel is tried with."""
    types = [setting.removeprefix("shape.dtype=") for setting in SETTINGS.get(kernel, ()) if "shape.dtype=" in setting]
    return types[0] if types else "f16"
