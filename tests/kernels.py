"""The kernels of kernels/, and what has to be set for those that do not take f16 and bf16 as they come."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "fp8_sim": ("shape.dtype=f16",),
    "fp8_e4m3": ("shape.dtype=e4m3",),
    "fp8_mma": ("shape.dtype=e4m3", "quant.scales=head"),
    "fp8_mixed": ("shape.dtype=f16", "shape.k_dtype=e4m3"),
}


def kernels():
    """(path from the root, settings...) of each."""
    found = sorted((ROOT / "kernels").glob("*.cu"))
    return tuple((str(path.relative_to(ROOT)), *SETTINGS.get(path.stem, ())) for path in found)
