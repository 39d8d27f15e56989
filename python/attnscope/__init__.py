"""attnscope: run a fused attention kernel, or read a saved trace, and ask what is wrong.

>>> import attnscope
>>> run = attnscope.run("kernels/v2b_scalar.cu", shape=(1, 1, 64, 64), backend="cpu")
>>> run.verdict
'CLEAN'

The program does the work; this package starts it and reads what it writes. docs/python.md has examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnscope.programs import Error, program
from attnscope.runs import Clean, Finding, Place, Run, load, run

__all__ = ["Clean", "Error", "Finding", "Place", "Run", "capture", "load", "program", "run"]

if TYPE_CHECKING:
    from attnscope.capturing import capture


def __getattr__(name: str) -> Any:
    """`attnscope.capture` is loaded when it is first asked for: it needs libattnscope-capture."""
    if name != "capture":
        raise AttributeError(f"module 'attnscope' has no attribute {name!r}")
    from attnscope.capturing import capture

    return capture
