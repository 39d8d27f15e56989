"""A saved trace with other texts or bytes in it: what the tests of hostile input are made of."""

import json
import struct


def read(path):
    """(header, data) of a safetensors file; the header's metadata are texts, those of JSON still to be read."""
    raw = path.read_bytes()
    n, = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + n]), raw[8 + n:]


def write(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def entry(header, key):
    """The JSON of one metadata entry."""
    return json.loads(header["__metadata__"]["attnscope." + key])


def set_entry(header, key, value):
    header["__metadata__"]["attnscope." + key] = json.dumps(value)
