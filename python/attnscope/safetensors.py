"""Reads and writes safetensors files with the standard library alone."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, BinaryIO, Dict, List, Mapping, Sequence, Tuple

from attnscope.programs import Error

BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "U8": 1,
         "I8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}
STRUCT = {"F16": "e", "F32": "f", "F64": "d", "U8": "B", "I32": "i", "I64": "q"}
HEADER_MAX = 100_000_000


def count(shape: Sequence[int]) -> int:
    n = 1
    for length in shape:
        n *= length
    return n


def _no_duplicates(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_no_duplicates)


class File:
    """A safetensors file whose header has been checked: every tensor lies in the file, without holes."""

    def __init__(self, path: "str | os.PathLike[str]"):
        self.path = os.fspath(path)
        try:
            self.file: BinaryIO = open(self.path, "rb")
        except (OSError, ValueError) as failure:
            raise Error(f"{self.path}: {getattr(failure, 'strerror', None) or failure}") from None
        try:
            self._read_header()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as failure:
            self.file.close()
            raise Error(f"{self.path}: is not a safetensors file, or is truncated: {failure}") from None

    def _read_header(self) -> None:
        size = os.fstat(self.file.fileno()).st_size
        n, = struct.unpack("<Q", self.file.read(8))
        if n > HEADER_MAX or 8 + n > size:
            raise ValueError(f"header of {n} bytes in a file of {size}")
        header = parse(self.file.read(n).decode("utf-8"))
        self.begin = 8 + n
        self.texts: Dict[str, str] = header.pop("__metadata__", {})
        if not all(isinstance(text, str) for text in self.texts.values()):
            raise ValueError("__metadata__ maps strings to strings")
        self.tensors: Dict[str, Dict[str, Any]] = header
        end = 0
        for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, after = tensor["data_offsets"]
            if begin != end:
                raise ValueError(f"hole or overlap before {name}")
            if any(not isinstance(length, int) or length < 0 for length in tensor["shape"]):
                raise ValueError(f"shape of {name}")
            if after - begin != count(tensor["shape"]) * BYTES[tensor["dtype"]]:
                raise ValueError(f"size of {name}")
            end = after
        if self.begin + end != size:
            raise ValueError("the last tensor ends with the file")

    def close(self) -> None:
        self.file.close()

    def raw(self, name: str, first: int, n: int) -> bytes:
        """The bytes of n elements from the first one on."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise Error(f"{self.path}: holds no tensor {name}")
        if first < 0 or n < 0 or first + n > count(tensor["shape"]):
            raise Error(f"{self.path}: {name} has no elements {first}, {n}")
        size = BYTES[tensor["dtype"]]
        self.file.seek(self.begin + tensor["data_offsets"][0] + first * size)
        data = self.file.read(n * size)
        if len(data) != n * size:
            raise Error(f"{self.path}: was cut while it was read")
        return data

    def values(self, name: str, first: int, n: int) -> List[Any]:
        """n elements from the first one on, as numbers; of FP8 the codes."""
        data = self.raw(name, first, n)
        dtype = self.tensors[name]["dtype"]
        if dtype == "BF16":
            return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
        return list(struct.unpack(f"<{n}{STRUCT.get(dtype, 'B')}", data))


def write(path: str, tensors: "Mapping[str, Tuple[str, Sequence[int], Any]]") -> None:
    """tensors: name to (dtype, shape, bytes). They lie in the order of falling element size, so that each is aligned."""
    order = sorted(tensors, key=lambda name: -BYTES[tensors[name][0]])
    header: Dict[str, Any] = {}
    end = 0
    for name in order:
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    try:
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name in order:
                file.write(tensors[name][2])
    except OSError as failure:
        raise Error(f"{path}: {failure.strerror}") from None
