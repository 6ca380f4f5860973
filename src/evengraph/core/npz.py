"""Read arrays from .npz files that others wrote: no pickle, no bombs, no sizes on trust."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from evengraph.core.errors import first_line
from evengraph.core.limits import LimitError, check_unpacked

SUFFIX = ".npy"
VERSIONS = ((1, 0), (2, 0), (3, 0))  # of the format of an array


def read_npz(
    file: IO[bytes], name: str, wanted: Callable[[str], bool] = lambda key: True
) -> dict[str, NDArray[Any]]:
    """Read the arrays whose key is wanted; an error is a ValueError and calls the file `name`."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [item for item in archive.infolist() if item.filename.endswith(SUFFIX)]
            keys = {item.filename.removesuffix(SUFFIX): item for item in members}
            keys = {key: item for key, item in keys.items() if wanted(key)}
            unpacked, packed = sum(item.file_size for item in keys.values()), file.seek(0, 2)
            check_unpacked(unpacked, packed, name, "write it with numpy.savez, uncompressed")
            return {key: _read_array(archive, item, key) for key, item in keys.items()}
    except LimitError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        raise ValueError(f"{name} cannot be read as npz: {first_line(error)}.") from None


def _read_array(archive: zipfile.ZipFile, item: zipfile.ZipInfo, key: str) -> NDArray[Any]:
    """Read one array; its shape must agree with its size before memory is taken for it."""
    with archive.open(item) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in VERSIONS:
            raise ValueError(f"{key} has the unknown format {version[0]}.{version[1]}")
        short, long = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, in_columns, dtype = (short if version == (1, 0) else long)(stream)
        if dtype.hasobject:
            raise ValueError(f"{key} holds Python objects, which are never opened")
        if dtype.kind == "V":
            raise ValueError(f"{key} holds records, not one array of values")
        if not dtype.itemsize:  # NumPy would take a byte for each of any number of items
            raise ValueError(f"{key} holds items of no size")
        size, left = math.prod(shape) * dtype.itemsize, item.file_size - stream.tell()
        if size != left or min(shape, default=0) < 0:
            raise ValueError(f"{key} holds {left} bytes, which do not fit its shape")
        values = np.empty(math.prod(shape), dtype)
        if size and cast(io.BufferedIOBase, stream).readinto(values.view(np.uint8).data) != size:
            raise ValueError(f"{key} is cut off")
    values = values.astype(dtype.newbyteorder("="), copy=False)  # torch and pandas read no other
    return values.reshape(shape, order="F" if in_columns else "C")
