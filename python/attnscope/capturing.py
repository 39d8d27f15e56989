"""A trace of one call of a kernel with probes, from the process that calls it: libattnscope-capture, by ctypes."""

import ctypes
import json
import os
import re
import sys
from pathlib import Path

from attnscope.programs import Error, program

_LAYOUTS = {"BHLD": (0, 1, 2), "BLHD": (0, 2, 1)}  # where batch, head and row stand
_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "e4m3",
          "float8_e5m2": "e5m2", "uint8": "u8"}
_CODES = ("e4m3", "e5m2", "u8")


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("stride", ctypes.c_int64 * 4)]


class _Tensors(ctypes.Structure):
    _fields_ = [(name, _Tensor) for name in ("q", "k", "v", "q_scale", "k_scale", "v_scale", "sink", "alibi", "bias")]


def _library():
    """Loaded once: beside the program, in a build folder or an installation. It starts that very program."""
    if not hasattr(_library, "loaded"):
        name, place = "libattnscope-capture.so", Path(os.environ.setdefault("ATTNSCOPE_PROGRAM", program())).parent
        place = next((at for at in (place / name, place.parent / "lib" / name) if at.exists()), name)
        try:
            library = ctypes.CDLL(str(place))
        except OSError as error:
            raise Error(f"{name} cannot be loaded: {error}") from None
        library.asc_capture_begin.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Tensors), ctypes.POINTER(ctypes.c_void_p),
                                              ctypes.c_char_p, ctypes.c_size_t]
        library.asc_capture_end.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Tensor), ctypes.POINTER(_Tensor),
                                            ctypes.c_char_p, ctypes.c_size_t]
        library.asc_capture_drop.argtypes = [ctypes.c_void_p]
        library.asc_capture_late.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.asc_capture_module.restype = ctypes.c_char_p
        _library.loaded = library
    return _library.loaded


def modules():
    """The files of this process that hold probes, as their compilers were given them."""
    library = _library()
    return [library.asc_capture_module(i).decode() for i in range(library.asc_capture_modules())]


def _dtype(tensor, name):
    found = _TYPES.get(re.sub(r"^.*\.", "", str(tensor.dtype)))
    if not found:
        raise Error(f"{name} is of type {tensor.dtype}; attnscope knows {', '.join(_TYPES)}")
    return found


def _pointer(tensor, name, keep):
    """Of a CUDA tensor; keep holds what must live as long."""
    if not getattr(tensor, "is_cuda", False):
        raise Error(f"{name} must be a tensor on a CUDA device")
    tensor = tensor.detach()
    if tensor.dim() and tensor.stride(-1) != 1 and tensor.shape[-1] != 1:
        tensor = tensor.contiguous()
    keep.append(tensor)
    strides = list(tensor.stride())
    return _Tensor(tensor.data_ptr(), (ctypes.c_int64 * 4)(*strides, *[0] * (4 - len(strides))))


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

    After the block `path` is a trace; `c.run` opens it as attnscope.load() does."""

    def __init__(self, q, k, v, *, br, bc, path="capture.safetensors", causal=False, scale=None, window=(-1, -1), softcap=0.0,
                 layout="BHLD", q_scale=None, k_scale=None, v_scale=None, sink=None, alibi=None, bias=None, threads=1024,
                 kv_splits=0, conventions=None, types=None, channels=None, tiles=None, memory="auto", kernel=None):
        if layout not in _LAYOUTS:
            raise Error(f"layout is {layout!r}; it must be 'BHLD' or 'BLHD'")
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            if getattr(tensor, "ndim", 0) != 4:
                raise Error(f"{name} has shape {list(getattr(tensor, 'shape', []))}; expected 4 dimensions, {layout}")
        batch, head, row = _LAYOUTS[layout]
        if tuple(k.shape[:3]) != tuple(v.shape[:3]) or k.shape[3] != q.shape[3] or k.shape[batch] != q.shape[batch]:
            raise Error(f"q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} do not belong together")
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            if not getattr(tensor, "is_cuda", False):
                raise Error(f"{name} must be a tensor on a CUDA device")
        if q.device != k.device or q.device != v.device:
            raise Error(f"q, k and v are on {q.device}, {k.device} and {v.device}; expected one device")
        kinds = [_dtype(q, "q"), _dtype(k, "k"), _dtype(v, "v")]
        causals = {False: "none", True: "bottom-right"}
        problem = dict(batch=q.shape[batch], heads=q.shape[head], kv_heads=k.shape[head], q_len=q.shape[row],
                       kv_len=k.shape[row], head_dim=q.shape[3], head_dim_v=v.shape[3], layout=layout, dtype=kinds[0], k_dtype=kinds[1],
                       v_dtype=kinds[2], causal=causals.get(causal, causal), window_left=window[0], window_right=window[1],
                       softcap=float(softcap), has_sink=int(sink is not None), has_alibi=int(alibi is not None))
        if scale is not None:
            problem["scale"] = float(scale)
        self._scales = {}
        for name, given, kind, heads in (("q", q_scale, kinds[0], q.shape[head]), ("k", k_scale, kinds[1], k.shape[head]),
                                         ("v", v_scale, kinds[2], k.shape[head])):
            if kind in _CODES:
                self._scales[name] = self._scale(given, q, heads)
            elif given is not None:
                raise Error(f"{name}_scale is given, but {name} is of type {kind}")
        if bias is not None:
            kinds_of_bias = {(False, False): "shared", (False, True): "per-head", (True, False): "per-batch", (True, True): "full"}
            problem["bias_kind"] = kinds_of_bias[bias.shape[0] > 1, bias.shape[1] > 1]
        run = {} if kernel is None else {"kernel": kernel}
        self.path = os.path.abspath(path)
        self._given = (q, k, v, sink, alibi, bias)
        types = dict(types or {})
        own = {"o": types.pop("o")} if "o" in types else {}
        self._json = json.dumps(dict(problem=problem, plan=dict(br=br, bc=bc, threads=threads, kv_splits=kv_splits),
                                     conventions=conventions or {}, types=dict(own, channels=types), run=run,
                                     capture=dict(path=self.path, memory=memory, tiles=tiles,
                                                  channels=None if channels is None else list(channels))))
        self._capture, self._o, self._lse, self.failure = None, None, None, ""

    @staticmethod
    def _scale(given, like, heads):
        """[batch, heads, groups] float32: a number, or one for each head, stands for all its places."""
        import torch
        scale = torch.as_tensor(1.0 if given is None else given, dtype=torch.float32, device=like.device)
        while scale.dim() < 3:
            scale = scale.unsqueeze(-1) if scale.dim() else scale.reshape(1, 1, 1)
        return scale.expand(like.shape[0], heads, scale.shape[2]).contiguous()

    def __enter__(self):
        import torch
        library, keep, why = _library(), [], ctypes.create_string_buffer(1280)
        q, k, v, sink, alibi, bias = self._given
        with torch.cuda.device(q.device), torch.no_grad():
            tensors = _Tensors()
            for name, tensor in (("q", q), ("k", k), ("v", v)):
                setattr(tensors, name, _pointer(tensor, name, keep))
            for name, tensor in (("sink", sink), ("alibi", alibi), ("bias", bias),
                                 *((f"{n}_scale", s) for n, s in self._scales.items())):
                if tensor is not None:
                    setattr(tensors, name, _pointer(tensor.float().contiguous(), name, keep))
            if torch.cuda.is_current_stream_capturing():
                raise Error("a CUDA graph is being captured: begin before it, or replay the graph inside")
            handle = ctypes.c_void_p()
            if library.asc_capture_begin(self._json.encode(), tensors, handle, why, len(why)):
                raise Error(why.value.decode(errors="replace"))
            self._capture = handle
        return self

    def result(self, o, lse=None):
        """The outputs, as the kernel returned them; without them those that probes of o and lse saw. Returns o."""
        self._o, self._lse = o, lse
        return o

    def late(self):
        """Binds the probes of extensions that were loaded inside of the block; returns of how many files."""
        n = _library().asc_capture_late(self._capture, 1)
        if n < 0:
            raise Error("the probes of what was loaded inside of the block cannot be bound")
        return n

    def __exit__(self, kind, value, traceback):
        import torch
        library, why, keep = _library(), ctypes.create_string_buffer(1280), []
        handle, self._capture = self._capture, None
        late = library.asc_capture_late(handle, 0)
        if late > 0:
            print(f"attnscope: loaded inside of the capture, not recorded: {', '.join(modules()[-late:])}", file=sys.stderr)
        with torch.cuda.device(self._given[0].device), torch.no_grad():
            o, lse = _Tensor(), _Tensor()
            try:
                torch.cuda.synchronize()
                failed = False
            except RuntimeError:
                failed = True
            if kind and not failed:
                library.asc_capture_drop(handle)
                return False
            if not failed and self._o is not None:
                o = _pointer(self._o, "o", keep)
            if not failed and self._lse is not None:
                lse = _pointer(self._lse.float(), "lse", keep)
            if library.asc_capture_end(handle, o, lse, why, len(why)):
                raise Error(why.value.decode(errors="replace"))
        self.failure = why.value.decode(errors="replace")
        return False

    @property
    def run(self):
        """The trace, judged: attnscope.load(path)."""
        from attnscope.runs import load
        return load(self.path)
