"""Arrays of the caller to bytes, and bytes to arrays, whichever libraries are there."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, List, Optional, Sequence, Tuple

from attnscope.programs import Error
from attnscope.safetensors import count

Input = Tuple[str, List[int], bytes]  # dtype of safetensors, shape, values in C order

TORCH = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3",
         "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "U8", "uint8": "U8", "int8": "I8", "bool": "BOOL"}
BUFFER = {"e": "F16", "f": "F32", "d": "F64", "B": "U8", "b": "I8", "?": "BOOL"}
TYPESTR = {"<f2": "F16", "<f4": "F32", "<f8": "F64", "|u1": "U8", "|i1": "I8", "|b1": "BOOL"}
# (code, bits) of DLPack; codes: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 and 12 float8_e4m3fn and float8_e5m2.
DLPACK = {(2, 16): "F16", (2, 32): "F32", (2, 64): "F64", (4, 16): "BF16", (0, 8): "I8", (1, 8): "U8", (6, 8): "BOOL", (10, 8): "F8_E4M3",
          (12, 8): "F8_E5M2"}
HOST = (1, 3, 11)  # devices of DLPack whose memory the CPU reads: CPU, CUDA's pinned memory and its ROCm twin


class _Tensor(ctypes.Structure):  # DLTensor and the first field of DLManagedTensor
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def _no_type(name: str, what: object, known: Sequence[str]) -> Error:
    return Error(f"{name}: has elements of type {what}; expected one of {', '.join(known)}")


def _gather(address: int, size: int, shape: Sequence[int], strides: Sequence[int]) -> bytes:
    """Elements in C order; strides in elements."""
    run = 1  # elements at the end that lie together
    dims = len(shape)
    while dims and (strides[dims - 1] == run or shape[dims - 1] == 1):
        dims -= 1
        run *= shape[dims]
    if not count(shape):
        return b""
    places = [0]
    for length, stride in zip(shape[:dims], strides[:dims]):
        places = [place + i * stride for place in places for i in range(length)]
    return b"".join(ctypes.string_at(address + place * size, run * size) for place in places)


def _dense(shape: Sequence[int]) -> List[int]:
    return [count(shape[i + 1:]) for i in range(len(shape))]


def _from_torch(name: str, tensor: Any) -> Input:
    dtype = str(tensor.dtype).replace("torch.", "")
    if dtype not in TORCH:
        raise _no_type(name, dtype, list(TORCH))
    there = tensor.detach().cpu().contiguous()
    data = ctypes.string_at(there.data_ptr(), there.numel() * there.element_size()) if there.numel() else b""
    return TORCH[dtype], list(there.shape), data


def _from_dlpack(name: str, array: Any) -> Input:
    device = int(array.__dlpack_device__()[0])
    if device not in HOST:
        if hasattr(array, "get"):  # CuPy
            return take(name, array.get())
        torch = _module("torch")
        if torch is None:
            raise Error(f"{name}: lies on a device; copying it from there needs torch")
        return _from_torch(name, torch.from_dlpack(array))
    capsule = array.__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    dtype = DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise _no_type(name, f"(code {tensor.code}, {tensor.bits} bits)", sorted(set(DLPACK.values())))
    shape = [int(tensor.shape[i]) for i in range(tensor.ndim)]
    strides = [int(tensor.strides[i]) for i in range(tensor.ndim)] if tensor.strides else _dense(shape)
    data = _gather((tensor.data or 0) + tensor.byte_offset, tensor.bits // 8, shape, strides)
    return dtype, shape, data  # the capsule, never consumed, frees what it holds


def _from_interface(name: str, array: Any) -> Input:
    facts = array.__array_interface__
    dtype = TYPESTR.get(facts["typestr"])
    if dtype is None:
        raise _no_type(name, facts["typestr"], list(TYPESTR))
    shape, size = [int(n) for n in facts["shape"]], int(facts["typestr"][2:])
    strides = facts.get("strides")
    if strides and any(stride % size for stride in strides):
        raise Error(f"{name}: its strides are no multiples of its elements")
    return dtype, shape, _gather(facts["data"][0], size, shape, [s // size for s in strides] if strides else _dense(shape))


def _from_buffer(name: str, array: Any) -> Input:
    view = memoryview(array)
    dtype = BUFFER.get(view.format.lstrip("@=<"))
    if dtype is None:
        raise _no_type(name, repr(view.format), list(BUFFER.values()))
    return dtype, list(view.shape or ()), view.tobytes()


def numbers(name: str, given: Any) -> Input:
    """Whole numbers, of one dimension or two."""
    rows = given.tolist() if hasattr(given, "tolist") else list(given)
    lines = [list(row) if isinstance(row, (list, tuple)) else [row] for row in rows]
    if not lines or len({len(line) for line in lines}) > 1 or not all(
            isinstance(x, int) and abs(x) < 2**63 for line in lines for x in line):
        raise Error(f"{name}: expected whole numbers")
    shape = [len(lines), len(lines[0])] if isinstance(rows[0], (list, tuple)) else [len(lines)]
    return "I64", shape, b"".join(x.to_bytes(8, "little", signed=True) for line in lines for x in line)


def take(name: str, array: Any) -> Input:
    """What an array holds: of torch on any device, or with DLPack, __array_interface__ or a buffer."""
    if type(array).__module__.partition(".")[0] == "torch" and hasattr(array, "data_ptr"):
        return _from_torch(name, array)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        try:
            return _from_dlpack(name, array)
        except (BufferError, RuntimeError, TypeError):  # read-only in an old numpy, or another byte order
            pass
    if hasattr(array, "__array_interface__"):
        return _from_interface(name, array)
    try:
        return _from_buffer(name, array)
    except TypeError:
        raise Error(f"{name}: expected an array (numpy, torch, DLPack or __array_interface__), found "
                    f"{type(array).__name__}") from None


def _module(name: str) -> Optional[Any]:
    import importlib

    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def give(data: bytes, shape: Sequence[int]) -> Any:
    """float64 values as a numpy array, or as a memoryview of these dimensions where there is no numpy."""
    numpy = _module("numpy")
    if numpy is not None:
        return numpy.frombuffer(data, "<f8").reshape(shape)
    flat = memoryview(data)
    return flat.cast("d", list(shape)) if count(shape) else flat.cast("d")
