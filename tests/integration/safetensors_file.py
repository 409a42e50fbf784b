"""Reads safetensors files with the standard library: a length, a JSON header, the values."""

import array
import json
import pathlib
import struct
import sys


def read_floats(file: pathlib.Path) -> tuple[dict[str, array.array], dict[str, str]]:
    """The single-precision tensors by name, and the metadata. Other tensors raise ValueError."""
    content = file.read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    data = memoryview(content)[8 + size :]
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError("{} holds {}, not F32".format(name, entry["dtype"]))
        begin, end = entry["data_offsets"]
        tensors[name] = array.array("f", bytes(data[begin:end]))
        if sys.byteorder == "big":
            tensors[name].byteswap()
    return tensors, metadata
