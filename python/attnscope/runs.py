"""A run: its verdict, what was found, its values, its screens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from attnscope import arrays, safetensors
from attnscope.programs import Error, call, error_of, program

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Place:
    """A tile; kv_tile is 0 for channels that exist once per q tile."""

    channel: str
    batch: int
    head: int
    q_tile: int
    kv_tile: int = 0

    def __str__(self) -> str:
        return f"{self.channel}[b{self.batch},h{self.head},q{self.q_tile},k{self.kv_tile}]"


@dataclass(frozen=True)
class Finding:
    """What is wrong with a stage: one line, its cause (None: not known), where it begins, the probe's file and line."""

    text: str
    channel: str
    cause: Optional[str]
    first: Optional[Place]
    row: int
    col: int
    file: Optional[str]
    line: Optional[int]

    def __str__(self) -> str:
        where = f", {self.file}:{self.line}" if self.file else ""
        return f"{self.text} (first at {self.first} row {self.row} column {self.col}{where})"


class Clean:
    """Whether a run is clean; its text says what is wrong, so that `assert run.clean` fails with it."""

    def __init__(self, clean: bool, text: str):
        self._clean, self._text = clean, text

    def __bool__(self) -> bool:
        return self._clean

    def __repr__(self) -> str:
        return self._text


def _place(json_place: Optional[Mapping[str, Any]]) -> Optional[Place]:
    if not json_place:
        return None
    return Place(json_place["channel"], json_place["batch"], json_place["head"], json_place["q_tile"],
                 json_place.get("kv_tile") or 0)


def _finding(json_finding: Mapping[str, Any]) -> Finding:
    site = json_finding.get("site") or {}
    return Finding(json_finding["text"], json_finding["channel"], json_finding.get("cause"),
                   _place(json_finding.get("first")), json_finding.get("row", 0), json_finding.get("col", 0),
                   site.get("file"), site.get("line"))


class Run:
    """A run that has ended, or a saved trace. `trace` is the file that holds it."""

    def __init__(self, trace: str, report: Dict[str, Any], error: str = "", folder: Any = None):
        self.trace = trace
        #: The program's report as it prints it with --json.
        self.report = report
        #: Why the run ended early; "" where it came to its end.
        self.error = error
        self._folder = folder  # removed with the run
        self._arrays: Dict[str, Dict[str, Any]] = {}

    @property
    def verdict(self) -> str:
        """The word of the screen: CLEAN, FAIL, SUSPECT, UNJUDGED, CRASHED, HUNG."""
        return str(self.report["verdict"])

    @property
    def findings(self) -> List[Finding]:
        """One for every stage that is wrong by itself, in the order of the stages."""
        return [_finding(finding) for finding in self.report.get("findings") or []]

    @property
    def first(self) -> Optional[Place]:
        """The first bad tile in the order of execution; None: none is bad."""
        return _place(self.report.get("first"))

    @property
    def clean(self) -> Clean:
        """True where the run came to its end, something was judged and nothing is wrong."""
        if self.verdict == CLEAN and not self.error:
            return Clean(True, "clean")
        texts = [str(finding) for finding in self.findings]
        texts += [self.error or self.report["run"]["status_text"]]
        texts += [fact["text"] for fact in self.report.get("facts") or []][:1]
        return Clean(False, next((text for text in texts if text), self.verdict))

    @property
    def channels(self) -> List[str]:
        """The channels that `run[...]` has."""
        stages = [name for name, stage in self.report["stages"].items() if stage["local"]["mark"] != "unrecorded"]
        return stages + list(self.report.get("values") or [])

    def _values(self, channel: str, kind: str) -> Any:
        if channel not in self._arrays:
            with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
                path = os.path.join(folder, "values.safetensors")
                call(["values", "-o", path, "--", self.trace, channel])
                file = safetensors.File(path)
                try:
                    self._arrays[channel] = {
                        name: arrays.give(file.raw(name, 0, safetensors.count(tensor["shape"])), tensor["shape"])
                        for name, tensor in file.tensors.items()}
                finally:
                    file.close()
        return self._arrays[channel][kind]

    def __getitem__(self, channel: str) -> Any:
        """What the kernel had, float64, NaN where nothing was recorded: s and p [B, H, Lq, Lkv]; m, alpha and l
        [B, H, Lq, kv tiles]; u [B, H, Lq, kv tiles, D]; q and o [B, H, Lq, D]; lse [B, H, Lq]; k and v
        [B, H, q tiles, Lkv, D]; a value of the kernel's own as s where its columns are keys, as m or u elsewhere."""
        return self._values(channel, "got")

    def want(self, channel: str, local: bool = False) -> Any:
        """The float64 reference from the inputs; local: from what this run captured upstream."""
        return self._values(channel, "want_local" if local else "want")

    def bound(self, channel: str, local: bool = False) -> Any:
        """How far rounding alone may take `run[channel]` from `run.want(channel)`."""
        return self._values(channel, "bound_local" if local else "bound")

    def save(self, path: PathLike) -> str:
        """Copies the trace there; the file appears when it is complete."""
        to = os.fspath(path)
        part = f"{to}.{os.getpid()}.part"
        try:
            shutil.copyfile(self.trace, part)
            os.replace(part, to)
        except (OSError, ValueError) as failure:
            Path(part).unlink() if os.path.exists(part) else None
            raise Error(f"{to}: cannot be written: {getattr(failure, 'strerror', None) or failure}") from None
        return to

    def screen(self, view: str = "overview", size: Tuple[int, int] = (100, 30), at: Optional[str] = None,
               ascii: bool = False) -> str:
        """A screen of the debugger as text."""
        return call(self._show(view, size, at) + (["--ascii"] if ascii else []) + ["--", self.trace], (0, 1)).stdout

    def show(self, view: str = "overview", size: Tuple[int, int] = (100, 30), at: Optional[str] = None) -> None:
        """Prints a screen."""
        print(self.screen(view, size, at), end="")

    def svg(self, view: str = "overview", size: Tuple[int, int] = (100, 30), at: Optional[str] = None) -> str:
        """A screen as a picture."""
        with tempfile.TemporaryDirectory(prefix="attnscope-") as folder:
            path = os.path.join(folder, "screen.svg")
            call([*self._show(view, size, at), "--svg", path, "--", self.trace], (0, 1))
            return Path(path).read_text(encoding="utf-8")

    @staticmethod
    def _show(view: str, size: Tuple[int, int], at: Optional[str]) -> List[str]:
        return ["show", "--view", view, "--size", "x".join(map(str, size))] + (["--at", at] if at else [])

    def open(self) -> int:
        """Opens the debugger on this terminal; its exit status."""
        return subprocess.call([program(), "open", "--", self.trace])

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, str]:
        return {"text/plain": repr(self), "image/svg+xml": self.svg()}

    def __repr__(self) -> str:
        return f"<Run {self.report['title']}: {self.verdict}>"


CLEAN = "CLEAN"


def _report(arguments: Sequence[str], file: str, timeout: Optional[float] = None) -> Tuple[Dict[str, Any], str]:
    done = call(["run", "--json", *arguments, "--", file], range(-64, 256), timeout)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise error_of(done.stderr, done.returncode) from None
    return report, "" if done.returncode in (0, 1) else str(error_of(done.stderr, done.returncode))


def load(trace: PathLike) -> Run:
    """A saved trace."""
    path = os.path.abspath(os.fspath(trace))
    safetensors.File(path).close()
    report, error = _report([], path)
    return Run(path, report, error)


LISTS = ("q_lens", "kv_lens", "cu_seqlens_q", "cu_seqlens_k", "page_table")


def _inputs(given: Mapping[str, Any], folder: str) -> List[str]:
    """The options that have the program take these arrays, written to a file in the folder."""
    tensors = {name: (arrays.numbers if name in LISTS else arrays.take)(name, array)
               for name, array in given.items() if array is not None}
    if not tensors:
        return []
    path = os.path.join(folder, "inputs.safetensors")
    safetensors.write(path, tensors)
    return [f"--{name}={path}:{name}" if name in ("q", "k", "v") else f"--set=inputs.{name}={path}:{name}"
            for name in tensors]


def run(kernel: PathLike, q: Any = None, k: Any = None, v: Any = None, *, sink: Any = None, alibi: Any = None,
        bias: Any = None, mask: Any = None, q_scale: Any = None, k_scale: Any = None, v_scale: Any = None,
        q_lens: Any = None, kv_lens: Any = None, cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, page_table: Any = None,
        layout: Optional[str] = None, q_tensor_scale: Optional[float] = None, k_tensor_scale: Optional[float] = None, v_tensor_scale: Optional[float] = None,
        inputs: Optional[PathLike] = None, shape: Optional[Sequence[int]] = None,
        backend: Optional[str] = None, patch: Optional[PathLike] = None, settings: Optional[Mapping[str, object]] = None,
        define: Sequence[str] = (), include: Sequence[PathLike] = (), flags: Sequence[str] = (), checks: bool = False,
        mem: Optional[str] = None, save: Optional[PathLike] = None, timeout: Optional[float] = None) -> Run:
    """Runs a kernel (.cu) or a scenario (.ini) once and judges it.

    q, k, v: arrays [batch, heads, rows, head_dim], as numpy, torch (on the CPU or a GPU), DLPack or
    __array_interface__ have them; their shape is the problem's. sink, alibi [heads], bias and mask (0 or False hides a
    key) [batch or 1, heads or 1, q_len, kv_len] and scales of codes (one, [heads], [batch, heads], [batch, heads, groups of rows] or [batch, heads, groups of rows, parts of a row]) likewise. Codes of
    e2m1 come two in a byte, of uint8 or torch.float4_e2m1fn_x2, with settings such as {"shape.k_dtype": "e2m1"}; scales of
    e4m3 may have a factor of the tensor, k_tensor_scale. layout="BLHD": heads stand behind rows. Sequences of their own
    lengths: q_lens and kv_lens, lists or arrays [batch]; with cu_seqlens_q and cu_seqlens_k [batch + 1] the rows of all
    lie behind each other, q [rows, heads, head_dim], k and v alike; with page_table [batch, pages] and kv_lens k and v
    are [pages, page_size, kv_heads, head_dim] in the layout BLHD, else [pages, kv_heads, page_size, head_dim]. inputs: a trace
    whose problem and inputs are taken, or a file with arrays q, k, v. Without any of them inputs are made for `shape`.
    settings: keys of a scenario, such as {"shape.causal": "top-left"}. save: where the trace goes; without it, it is gone with the Run. A run that crashed is
    a Run as well: its `error` says why. What cannot be run raises Error.
    """
    path = os.fspath(kernel)
    folder = tempfile.TemporaryDirectory(prefix="attnscope-")
    trace = os.path.abspath(os.fspath(save)) if save else os.path.join(folder.name, "run.safetensors")
    options = ["--save", trace, *_inputs({"q": q, "k": k, "v": v, "sink": sink, "alibi": alibi, "bias": bias, "mask": mask, "q_scale": q_scale,
                                            "k_scale": k_scale, "v_scale": v_scale, "q_lens": q_lens, "kv_lens": kv_lens,
                                            "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
                                            "page_table": page_table}, folder.name)]
    if layout:
        options += [f"--set=inputs.layout={layout}"]
    for name, value in (("shape", shape and ",".join(map(str, shape))), ("backend", backend), ("patch", patch), ("mem", mem),
                        ("inputs", inputs)):
        if value:
            options += [f"--{name}", os.fspath(value)]
    for name, factor in (("q", q_tensor_scale), ("k", k_tensor_scale), ("v", v_tensor_scale)):
        if factor is not None:
            options += [f"--set=inputs.{name}_tensor_scale={float(factor)!r}"]
    for name, values in (("define", define), ("include", [os.fspath(folder) for folder in include]), ("flag", flags),
                         ("set", [f"{key}={value}" for key, value in (settings or {}).items()])):
        options += [f"--{name}={value}" for value in values]
    report, error = _report(options + (["--checks"] if checks else []), path, timeout)
    if not os.path.exists(trace):
        raise Error(error or f"{path}: left no trace")
    given = Path(folder.name, "inputs.safetensors")
    if given.exists():
        given.unlink()
    return Run(trace, report, error, folder)
