"""The attnscope program: where it is, and one call of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import List, Optional, Sequence


class Error(Exception):
    """What attnscope cannot do, in one line; `details` is all that the program said."""

    def __init__(self, line: str, details: str = ""):
        super().__init__(line)
        self.details = details or line


Error.__module__ = "attnscope"


def _candidates() -> List[Path]:
    found = []
    tree = Path(__file__).resolve().parents[2]
    if (tree / "probes/attnscope.h").is_file():
        found.append(tree / "build/attnscope")
    try:
        files = metadata.distribution("attnscope").files or []
    except metadata.PackageNotFoundError:
        files = []
    found += [Path(str(file.locate())) for file in files if file.name == "attnscope" and file.parent.name == "bin"]
    on_path = shutil.which("attnscope")
    return found + ([Path(on_path)] if on_path else [])


def program() -> str:
    """The path of the program: of the source tree that this package lies in, of the installed wheel, or of PATH."""
    for path in _candidates():
        if os.access(path, os.X_OK):
            return os.path.realpath(path)
    raise Error("the program attnscope was found neither in a source tree (run `make`), beside this package, nor in PATH")


def error_of(text: str, status: int) -> Error:
    lines = [line[len("attnscope: "):] for line in text.splitlines() if line.startswith("attnscope: ")]
    return Error(lines[-1] if lines else f"attnscope ended with status {status} and said nothing", text)


def call(arguments: Sequence[str], allowed: Sequence[int] = (0,), timeout: Optional[float] = None) -> "subprocess.CompletedProcess[str]":
    """Runs the program without a terminal; any other exit status is an Error."""
    try:
        done = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", errors="replace", timeout=timeout, check=False,
                              env={**os.environ, "ATTNSCOPE_PROGRESS": "no"})
    except subprocess.TimeoutExpired:
        raise Error(f"attnscope {arguments[0]} did not end within {timeout:g} s") from None
    except (OSError, ValueError) as failure:
        raise Error(f"the program attnscope cannot be started: {failure}") from None
    if done.returncode not in allowed:
        raise error_of(done.stderr, done.returncode)
    return done
