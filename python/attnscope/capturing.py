"""A trace of one call of a kernel with probes, from the process that calls it: libattnscope-capture, by ctypes."""

from __future__ import annotations

import ctypes
import json
import operator
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from attnscope.programs import Error, program

if TYPE_CHECKING:
    from attnscope.runs import Run

_LAYOUTS = {"BHLD": (0, 1, 2), "BLHD": (0, 2, 1), "THD": (None, 1, 0)}  # where batch, head and row stand
_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "e4m3",
          "float8_e5m2": "e5m2", "float4_e2m1fn_x2": "e2m1", "uint8": "u8", "int8": "s8"}
_CODES = ("e4m3", "e5m2", "e2m1", "u8", "s8")
_SCALES = {"float8_e4m3fn": "e4m3", "float8_e8m0fnu": "e8m0"}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("stride", ctypes.c_int64 * 4)]


class _Tensors(ctypes.Structure):
    _fields_ = [(name, _Tensor) for name in ("q", "k", "v", "q_scale", "k_scale", "v_scale", "sink", "alibi", "bias", "mask")]


_loaded: Any = None


def _library() -> Any:
    """Loaded once: beside the program, in a build folder or an installation. It starts that very program."""
    global _loaded
    if _loaded is None:
        name, place = "libattnscope-capture.so", Path(os.environ.setdefault("ATTNSCOPE_PROGRAM", program())).parent
        beside = next((str(at) for at in (place / name, place.parent / "lib" / name) if at.exists()), name)
        try:
            library = ctypes.CDLL(beside)
        except OSError as error:
            raise Error(f"{name} cannot be loaded: {error}") from None
        library.asc_capture_begin.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Tensors), ctypes.POINTER(ctypes.c_void_p),
                                              ctypes.c_char_p, ctypes.c_size_t]
        library.asc_capture_end.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Tensor), ctypes.POINTER(_Tensor),
                                            ctypes.c_char_p, ctypes.c_size_t]
        library.asc_capture_drop.argtypes = [ctypes.c_void_p]
        library.asc_capture_late.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.asc_capture_module.restype = ctypes.c_char_p
        _loaded = library
    return _loaded


def _dtype(tensor: Any, name: str) -> str:
    found = _TYPES.get(re.sub(r"^.*\.", "", str(tensor.dtype)))
    if not found:
        raise Error(f"{name} is of type {tensor.dtype}; attnscope knows {', '.join(_TYPES)}")
    return found


def _halves(tensor: Any, kind: Optional[str]) -> Any:
    """Two codes of e2m1 in a byte, the first in its low half, as a byte each; any other tensor as it is."""
    if kind != "e2m1":
        return tensor
    import torch
    codes = tensor.view(torch.uint8)
    return torch.stack((codes & 15, codes >> 4), -1).flatten(-2)


def _numbers(scale: Any, scale_type: Optional[str]) -> Any:
    """Scales as numbers: of bytes, the bits of scale_type, what they stand for."""
    import torch
    if scale_type is None or getattr(scale, "dtype", None) not in (torch.uint8, getattr(torch, "float8_e8m0fnu", None)):
        return scale
    codes = scale.view(torch.uint8)
    return codes.view(torch.float8_e4m3fn).float() if scale_type == "e4m3" else torch.exp2(codes.float() - 127)


def _pointer(tensor: Any, name: str, keep: List[Any]) -> _Tensor:
    """Of a CUDA tensor; keep holds what must live as long."""
    if not getattr(tensor, "is_cuda", False):
        raise Error(f"{name} must be a tensor on a CUDA device")
    tensor = tensor.detach()
    if tensor.dim() and tensor.stride(-1) != 1 and tensor.shape[-1] != 1:
        tensor = tensor.contiguous()
    keep.append(tensor)
    strides = list(tensor.stride())
    return _Tensor(tensor.data_ptr(), (ctypes.c_int64 * 4)(*strides, *[0] * (4 - len(strides))))


def _list(of: Any) -> List[Any]:
    return of.tolist() if hasattr(of, "tolist") else list(of)


def _lengths(name: str, lens: Any, ends: Any) -> Optional[List[int]]:
    """A list of whole numbers, or None where all sequences are of one length."""
    if lens is not None and ends is not None:
        raise Error(f"lengths of {name} are given twice: as lengths and as cu_seqlens")
    if ends is not None:
        ends = _list(ends)
        lens = [end - begin for begin, end in zip(ends, ends[1:])]
    return None if lens is None else [int(length) for length in _list(lens)]


def _pairs(given: Any, name: str, batch: int, heads: int, q_len: int, kv_len: int) -> Any:
    """[batch or 1, heads or 1, q_len, kv_len]; dimensions in front may be left out."""
    if given is None:
        return None
    if not getattr(given, "is_cuda", False):
        raise Error(f"{name} must be a tensor on a CUDA device")
    shape = list(given.shape)
    for _ in range(4 - len(shape)):
        given = given.unsqueeze(0)
    found = tuple(given.shape)
    if len(found) != 4 or found[0] not in (1, batch) or found[1] not in (1, heads) or found[2:] != (q_len, kv_len):
        raise Error(f"{name} has shape {shape}; expected [{batch} or 1, {heads} or 1, {q_len}, {kv_len}]")
    return given


def _per_head(given: Any, name: str, heads: int) -> None:
    if given is not None and not getattr(given, "is_cuda", False):
        raise Error(f"{name} must be a tensor on a CUDA device")
    if given is not None and tuple(given.shape) != (heads,):
        raise Error(f"{name} has shape {list(given.shape)}; expected [{heads}], one for each head")


def _window(window: Any) -> Tuple[int, int]:
    try:
        left, right = (operator.index(side) for side in window)
    except (TypeError, ValueError):
        raise Error(f"window is {window!r}; expected two numbers, keys left and right of the diagonal, -1 for no limit") from None
    return left, right


class capture:
    """Records the kernels with probes that run inside of a `with` block, on any stream:

        with attnscope.capture(q, k, v, br=64, bc=64, causal=True, conventions={"s_unit": "scaled"}) as c:
            o, lse = extension.forward(q, k, v)
            c.result(o, lse)

    q [batch, heads, q_len, head_dim] and k, v [batch, kv_heads, kv_len, head_dim], or with layout="BLHD" [batch, length,
    heads, head_dim]: CUDA tensors of any strides. br and bc: rows of a q tile and keys of a kv tile. causal: True
    (bottom-right), "top-left" or False; window: keys left and right of the diagonal, -1 for no limit; scale: 1 /
    sqrt(head_dim) unless it is given. conventions: what the kernel means by its values (docs/conventions.md). types: of
    channels that are not recorded as docs/writing-a-kernel.md says, and "o". channels, tiles: names, and [batch, head, q
    tile], where not everything is wanted. memory: "auto", "guard", "device" or "pinned" (docs/capture.md).

    Sequences of their own lengths: q_lens and kv_lens, or cu_seqlens_q and cu_seqlens_k, lists or tensors. layout="THD":
    q [rows of all sequences, heads, head_dim], k and v alike, with cu_seqlens of both; o as q, lse [batch, heads, longest
    q_len] or [heads, rows of all]. page_table [batch, pages]: k and v are [pages, page_size, kv_heads, head_dim], or with
    layout="BHLD" [pages, kv_heads, page_size, head_dim], and kv_lens says how many keys a sequence has.

    leftpad_k [batch]: rows of k and v before the first key of each sequence; its keys end with the rows.

    mask [batch or 1, heads or 1, q_len, kv_len]: 0 or False hides a key. score_mod: what a score becomes, as
    shape.score_mod of docs/scenarios.md says it: "s - 0.1 * abs(i - j)".

    rope: the kernel turns Q and K itself, "interleaved" or "half"; rope_dim, rope_offset and rope_base as docs/scenarios.md
    has them. The convention rope_error says how far its cosines and sines may be off, 2 ** -12 for those of f16.

    Codes: q_dtype, k_dtype, v_dtype say what the bytes of a uint8 tensor are; "e2m1": two codes in each. q_scale, k_scale, v_scale:
    as attnscope.run() takes them; scale_type "e4m3" or "e8m0" what their bytes are, where their type does not say it;
    tensor_scales such as {"k": 0.002} what scales of e4m3 are multiplied by.

    After the block `path` is a trace; `c.run` opens it as attnscope.load() does."""

    def __init__(self, q: Any, k: Any, v: Any, *, br: int, bc: int, path: Union[str, os.PathLike[str]] = "capture.safetensors",
                 causal: Union[bool, str] = False, scale: Optional[float] = None, window: Sequence[int] = (-1, -1),
                 softcap: float = 0.0, layout: str = "BHLD", q_scale: Any = None, k_scale: Any = None, v_scale: Any = None,
                 sink: Any = None, alibi: Any = None, bias: Any = None, threads: int = 1024, kv_splits: int = 0,
                 conventions: Optional[Mapping[str, Any]] = None, types: Optional[Mapping[str, str]] = None,
                 channels: Optional[Sequence[str]] = None, tiles: Optional[Sequence[Sequence[int]]] = None, memory: str = "auto",
                 kernel: Optional[str] = None, q_lens: Any = None, kv_lens: Any = None, cu_seqlens_q: Any = None,
                 cu_seqlens_k: Any = None, page_table: Any = None, mask: Any = None, score_mod: Optional[str] = None,
                 rope: Optional[str] = None, rope_dim: Optional[int] = None, rope_offset: int = 0, rope_base: float = 10000.0,
                 q_dtype: Optional[str] = None, k_dtype: Optional[str] = None, v_dtype: Optional[str] = None,
                 scale_type: Optional[str] = None, tensor_scales: Optional[Mapping[str, float]] = None, leftpad_k: Any = None,
                 dropout: float = 0.0) -> None:
        if dropout:
            raise Error("dropout is not taken yet: which weights it keeps is no tensor here")
        window = _window(window)
        stated = {"q": q_dtype, "k": k_dtype, "v": v_dtype}
        q, k, v = (_halves(tensor, stated[name] or _TYPES.get(re.sub(r"^.*\.", "", str(getattr(tensor, "dtype", "")))))
                   for name, tensor in (("q", q), ("k", k), ("v", v)))
        if layout not in _LAYOUTS:
            raise Error(f"layout is {layout!r}; it must be 'BHLD', 'BLHD' or 'THD'")
        paged, thd = page_table is not None, layout == "THD"
        for name, tensor, dims in (("q", q, 4 - thd), ("k", k, 4 - (thd and not paged)), ("v", v, 4 - (thd and not paged))):
            if getattr(tensor, "ndim", 0) != dims:
                raise Error(f"{name} has shape {list(getattr(tensor, 'shape', []))}; expected {dims} dimensions, {layout}")
        batch, head, row = _LAYOUTS[layout]
        q_lens, kv_lens = _lengths("q", q_lens, cu_seqlens_q), _lengths("k", kv_lens, cu_seqlens_k)
        if (thd and q_lens is None) or ((thd or paged) and kv_lens is None):
            raise Error(f"{'pages' if paged else 'the layout THD'}: how long the sequences are has to be given, "
                        "by q_lens and kv_lens or cu_seqlens_q and cu_seqlens_k")
        n = len(q_lens) if thd else q.shape[batch]
        if leftpad_k is not None:
            if thd or paged:
                raise Error("leftpad_k: expected the layout BHLD or BLHD, without pages")
            pads = [int(pad) for pad in _list(leftpad_k)]
            kv_lens = [k.shape[row] - pad for pad in pads] if kv_lens is None else kv_lens
            for b, (pad, length) in enumerate(zip(pads, kv_lens)):
                if pad + length != k.shape[row]:
                    raise Error(f"leftpad_k: the keys of sequence {b} end at row {pad + length} of {k.shape[row]}; a capture "
                                "takes those that end with the rows of k")
        _, kv_head, kv_row = _LAYOUTS["BLHD" if thd and paged else layout]
        for name, lens in (("q", q_lens), ("k", kv_lens)):
            if lens is not None and len(lens) != n:
                raise Error(f"there are {n} sequences of q, but {len(lens)} lengths of {name}")
        if tuple(k.shape[:-1]) != tuple(v.shape[:-1]) or k.shape[-1] != q.shape[-1] or not (
                thd or paged or k.shape[batch] == n) or (thd and (sum(q_lens) != q.shape[0] or (
                    not paged and sum(kv_lens) != k.shape[0]))):
            raise Error(f"q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not belong together")
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            if not getattr(tensor, "is_cuda", False):
                raise Error(f"{name} must be a tensor on a CUDA device")
        if q.device != k.device or q.device != v.device:
            raise Error(f"q, k and v are on {q.device}, {k.device} and {v.device}; expected one device")
        kinds = [stated[name] or _dtype(tensor, name) for name, tensor in (("q", q), ("k", k), ("v", v))]
        causals: Dict[Any, Any] = {False: "none", True: "bottom-right"}
        problem = dict(batch=n, heads=q.shape[head], kv_heads=k.shape[kv_head], q_len=max(q_lens) if thd else q.shape[row],
                       kv_len=max(1, *kv_lens) if thd or paged else k.shape[row], head_dim=q.shape[-1],
                       head_dim_v=v.shape[-1], layout=layout, dtype=kinds[0], k_dtype=kinds[1],
                       v_dtype=kinds[2], causal=causals.get(causal, causal), window_left=window[0], window_right=window[1],
                       softcap=float(softcap), has_sink=int(sink is not None), has_alibi=int(alibi is not None))
        bias, mask = (_pairs(given, name, n, problem["heads"], problem["q_len"], problem["kv_len"])
                      for name, given in (("bias", bias), ("mask", mask)))
        for name, given in (("sink", sink), ("alibi", alibi)):
            _per_head(given, name, problem["heads"])
        sequences = {name: lens for name, lens in (("q_lens", q_lens), ("kv_lens", kv_lens)) if lens is not None}
        if paged:
            pages = -(-problem["kv_len"] // k.shape[kv_row])
            table = [list(map(int, entries))[:pages] for entries in _list(page_table)]
            # Behind a sequence a table may hold anything.
            used = [-(-length // k.shape[kv_row]) for length in kv_lens]
            sequences["page_table"] = [(line[:own] + [0] * pages)[:pages] for line, own in zip(table, used)]
            problem.update(page_size=k.shape[kv_row], pages=k.shape[0])
        if leftpad_k is not None:
            problem["left_pad"] = 1
        if scale is not None:
            problem["scale"] = float(scale)
        self._scales: Dict[str, Any] = {}
        blocks: Dict[str, int] = {}
        for name, given, kind, heads in (("q", q_scale, kinds[0], problem["heads"]), ("k", k_scale, kinds[1], problem["kv_heads"]),
                                         ("v", v_scale, kinds[2], problem["kv_heads"])):
            if kind in _CODES:
                scale_type = scale_type or _SCALES.get(re.sub(r"^.*\.", "", str(getattr(given, "dtype", ""))))
                given = _numbers(given, scale_type)
                own_scale = self._scales[name] = self._scale(given, q, n, heads)
                for key, length, axis in (("scale_rows", problem["q_len" if name == "q" else "kv_len"], 2),
                                          ("scale_dims", problem["head_dim_v" if name == "v" else "head_dim"], 3)):
                    if own_scale.dim() > axis and own_scale.shape[axis] > 1:
                        blocks.setdefault(key, -(-length // own_scale.shape[axis]))
            elif given is not None:
                raise Error(f"{name}_scale is given, but {name} is of type {kind}")
        problem.update(blocks)
        if scale_type is not None:
            problem["scale_type"] = scale_type
        if scale_type == "e4m3":
            problem.update({f"{name}_tensor_scale": float((tensor_scales or {}).get(name, 1 if kind in _CODES else 0))
                            for name, kind in zip("qkv", kinds)})
        if "scale_dims" in blocks:
            self._scales = {name: s if s.dim() == 4 else s.unsqueeze(-1) for name, s in self._scales.items()}
        kinds_of_pairs = {(False, False): "shared", (False, True): "per-head", (True, False): "per-batch", (True, True): "full"}
        for name, pairs in (("bias_kind", bias), ("mask_kind", mask)):
            if pairs is not None:
                problem[name] = kinds_of_pairs[pairs.shape[0] > 1, pairs.shape[1] > 1]
        if score_mod is not None:
            problem["score_mod"] = score_mod
        if rope is not None:
            problem.update(rope=rope, rope_dim=int(rope_dim or q.shape[-1]), rope_offset=int(rope_offset), rope_base=float(rope_base))
        run = {} if kernel is None else {"kernel": kernel}
        self.path = os.path.abspath(path)
        self._given = (q, k, v, sink, alibi, bias, mask)
        types = dict(types or {})
        own = {"o": types.pop("o")} if "o" in types else {}
        self._sequences, self._problem = sequences, problem
        self._o_shape, self._o_type = [*q.shape[:-1], v.shape[-1]], own.get("o", "f16" if kinds[0] in _CODES else kinds[0])
        self._json = json.dumps(dict(problem=problem, sequences=sequences, plan=dict(br=br, bc=bc, threads=threads, kv_splits=kv_splits),
                                     conventions=conventions or {}, types=dict(own, channels=types), run=run,
                                     capture=dict(path=self.path, memory=memory, tiles=tiles,
                                                  channels=None if channels is None else list(channels))))
        self._capture: Any = None
        self._o, self._lse, self.failure = None, None, ""

    @staticmethod
    def _scale(given: Any, like: Any, batch: int, heads: int) -> Any:
        """[batch, heads, groups of rows] or with parts of a row behind, float32: a number, or one for each head, stands for
        all its places."""
        import torch
        scale = torch.as_tensor(1.0 if given is None else given, dtype=torch.float32, device=like.device)
        while scale.dim() < 3:
            scale = scale.unsqueeze(-1) if scale.dim() else scale.reshape(1, 1, 1)
        return scale.expand(batch, heads, *scale.shape[2:]).contiguous()

    def __enter__(self) -> capture:
        import torch
        library, why = _library(), ctypes.create_string_buffer(1280)
        keep: List[Any] = []
        q, k, v, sink, alibi, bias, mask = self._given
        with torch.cuda.device(q.device), torch.no_grad():
            tensors = _Tensors()
            for name, tensor in (("q", q), ("k", k), ("v", v)):
                setattr(tensors, name, _pointer(tensor, name, keep))
            for name, tensor in (("sink", sink), ("alibi", alibi), ("bias", bias),
                                 *((f"{n}_scale", s) for n, s in self._scales.items())):
                if tensor is not None:
                    setattr(tensors, name, _pointer(tensor.float().contiguous(), name, keep))
            if mask is not None:
                tensors.mask = _pointer((mask != 0).to(torch.uint8).contiguous(), "mask", keep)
            if torch.cuda.is_current_stream_capturing():
                raise Error("a CUDA graph is being captured: begin before it, or replay the graph inside")
            handle = ctypes.c_void_p()
            if library.asc_capture_begin(self._json.encode(), tensors, handle, why, len(why)):
                raise Error(why.value.decode(errors="replace"))
            self._capture = handle
        return self

    def result(self, o: Any, lse: Any = None) -> Any:
        """The outputs, as the kernel returned them; without them those that probes of o and lse saw. Returns o."""
        for name, tensor in (("o", o), ("lse", lse)):
            if tensor is not None and not getattr(tensor, "is_cuda", False):
                raise Error(f"{name} must be a tensor on a CUDA device")
        if o is not None:
            if list(o.shape) != self._o_shape:
                raise Error(f"o has shape {list(o.shape)}; expected {self._o_shape}")
            if _dtype(o, "o") != self._o_type:
                raise Error(f"o is of type {o.dtype}; this capture began with {self._o_type}: types={{\"o\": \"{_dtype(o, 'o')}\"}}")
        if lse is not None:
            batch, heads, q_len = (self._problem[name] for name in ("batch", "heads", "q_len"))
            together = [heads, sum(self._sequences.get("q_lens", [q_len] * batch))]
            if list(lse.shape) not in ([batch, heads, q_len], together):
                raise Error(f"lse has shape {list(lse.shape)}; expected {[batch, heads, q_len]} or {together}")
        self._o, self._lse = o, lse
        return o

    def late(self) -> int:
        """Binds the probes of extensions that were loaded inside of the block; returns of how many files."""
        n = int(_library().asc_capture_late(self._capture, 1))
        if n < 0:
            raise Error("the probes of what was loaded inside of the block cannot be bound")
        return n

    def _padded(self, lse: Any) -> Any:
        """[batch, heads, longest q_len] of [heads, rows of all sequences]."""
        batch, heads, q_len = (self._problem[name] for name in ("batch", "heads", "q_len"))
        if lse.dim() == 3:
            return lse
        padded, first = lse.new_full((batch, heads, q_len), float("nan")), 0
        for b, length in enumerate(self._sequences.get("q_lens", [q_len] * batch)):
            padded[b, :, :length] = lse[:, first:first + length]
            first += length
        return padded

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        import torch
        library, why = _library(), ctypes.create_string_buffer(1280)
        keep: List[Any] = []
        handle, self._capture = self._capture, None
        with torch.cuda.device(self._given[0].device), torch.no_grad():
            o, lse = _Tensor(), _Tensor()
            try:
                torch.cuda.synchronize()
                failed = False
            except RuntimeError:
                failed = True
            try:
                if kind and not failed:
                    return
                if not failed and self._o is not None:
                    o = _pointer(self._o, "o", keep)
                if not failed and self._lse is not None:
                    lse = _pointer(self._padded(self._lse.float()), "lse", keep)
                handle, ended = None, handle
                if library.asc_capture_end(ended, o, lse, why, len(why)):
                    raise Error(why.value.decode(errors="replace"))
            finally:
                library.asc_capture_drop(handle)
        self.failure = why.value.decode(errors="replace")

    @property
    def run(self) -> Run:
        """The trace, judged: attnscope.load(path)."""
        from attnscope.runs import load
        return load(self.path)
