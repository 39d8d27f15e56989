"""pytest: the fixture `attnscope`, and the screen of a failed test's last run in its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator, List

import pytest

from attnscope import runs
from attnscope.programs import Error

_made = "_attnscope_runs"


class Attnscope:
    """run() and load() of attnscope; the traces of a test stay in its tmp_path."""

    def __init__(self, folder: Path, made: List[runs.Run]):
        self._folder, self._made = folder, made

    def run(self, kernel: runs.PathLike, *arrays: Any, **options: Any) -> runs.Run:
        options.setdefault("save", self._folder / f"run-{len(self._made)}.safetensors")
        self._made.append(runs.run(kernel, *arrays, **options))
        return self._made[-1]

    def load(self, trace: runs.PathLike) -> runs.Run:
        self._made.append(runs.load(trace))
        return self._made[-1]


@pytest.fixture
def attnscope(request: pytest.FixtureRequest, tmp_path: Path) -> Attnscope:
    """attnscope.run(...) and attnscope.load(...); write `assert run.clean`."""
    made: List[runs.Run] = []
    setattr(request.node, _made, made)
    return Attnscope(tmp_path, made)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    made: List[runs.Run] = getattr(item, _made, [])
    if report.when != "call" or not report.failed or not made:
        return
    try:
        screen = made[-1].screen()
    except Error as failure:
        screen = str(failure)
    told = f"{screen}\ntrace: {made[-1].trace}"
    if hasattr(report.longrepr, "addsection"):  # of a failed assertion: --junit-xml has it, too
        report.longrepr.addsection("attnscope", told)
    else:
        report.sections.append(("attnscope", told))
