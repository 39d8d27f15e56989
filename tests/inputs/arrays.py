"""Files of arrays, written with the standard library: .npy, .npz, .safetensors; float16 values drawn at random."""

import io
import random
import struct
import zipfile


def draw(seed, *shape):
    """Normal values as float16 has them, flat, and the shape."""
    random.seed(seed)
    n = 1
    for length in shape:
        n *= length
    data = struct.pack(f"<{n}e", *(random.gauss(0, 1) for _ in range(n)))
    return list(struct.unpack(f"<{n}e", data)), list(shape)


def pack(values, code):
    return struct.pack(f"<{len(values)}{code}", *values)


def bf16(values):
    """Rounded toward zero: the upper halves of float32."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def npy(descr, shape, data, fortran=False, version=1, head=None):
    text = head or f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}), }}"
    width = 10 if version == 1 else 12
    text += " " * (-(len(text) + width + 1) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode("latin1") + data


def npz(arrays, packed=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as file:
        for name, data in arrays.items():
            file.writestr(f"{name}.npy", data)
    return out.getvalue()


def permuted(values, shape, order):
    """The values with their dimensions in this order."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    out, new = [], [shape[axis] for axis in order]

    def walk(axis, at):
        if axis == len(order):
            out.append(values[at])
            return
        for i in range(new[axis]):
            walk(axis + 1, at + i * strides[order[axis]])

    walk(0, 0)
    return out, new
