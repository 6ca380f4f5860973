"""Read the tensors of a .pt file that others wrote, in torch's safe mode, as NumPy arrays."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from evengraph.core.arrays import csr_matrix
from evengraph.core.errors import first_line
from evengraph.core.limits import LimitError, check_unpacked

PICKLE_BYTES = 2**26  # old files begin with their pickle
SCALARS = (bool, int, float, str, type(None))


def read_torch(path: Path, keys: Collection[str]) -> dict[str, Any]:
    """The parts of a `Data` or a dict with these keys: arrays, SciPy matrices, numbers, lists."""
    parts = {key: value for key, value in _load(path).items() if key in keys and value is not None}
    # a tensor may repeat its values, in no space at all
    size = sum(
        part.numel() * part.element_size() for part in parts.values() if torch.is_tensor(part)
    )
    check_unpacked(size, path.stat().st_size, str(path), "write it with torch.save after clone()")
    return {key: _as_array(value, f"{path}: {key}") for key, value in parts.items()}


def _load(path: Path) -> dict[str, Any]:
    from torch_geometric.data import Data
    from torch_geometric.data import data as module
    from torch_geometric.data.storage import GlobalStorage

    names = ("DataEdgeAttr", "DataTensorAttr")  # not in every version
    classes = [getattr(module, name) for name in names if hasattr(module, name)]
    safe_globals = getattr(torch.serialization, "safe_globals", lambda classes: nullcontext())
    try:
        _check_zip(path)
        _check_quantized(path)
        with safe_globals([Data, GlobalStorage, *classes]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that torch then rejects
            content = torch.load(path, map_location="cpu", weights_only=True)
            parts = content.to_dict() if isinstance(content, Data) else content
    except LimitError:
        raise
    except Exception as error:  # of a damaged file, of any kind
        if _is_zip(path) and "GLOBAL" in str(error):
            raise ValueError(
                f"{path} holds objects that torch's safe mode rejects; "
                "write it again with torch.save(data.to_dict(), path)."
            ) from None
        safe_mode = "weights_only" in str(error) or isinstance(error, KeyError)
        reason = "it was not written by torch.save, or holds more than tensors"
        reason = reason if safe_mode else first_line(error)
        raise ValueError(f"{path} cannot be read as a torch file: {reason}.") from None
    if not isinstance(parts, dict) or "edge_index" not in parts:
        raise ValueError(
            f"{path} must hold a Data or a dict with edge_index, got {type(content).__name__}."
        )
    return parts


def _is_zip(path: Path) -> bool:
    """Whether torch reads a file as zip, which it has written since 2020."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _check_zip(path: Path) -> None:
    if _is_zip(path):
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(item.file_size for item in archive.infolist())
        check_unpacked(unpacked, path.stat().st_size, str(path), "write it with torch.save")


def _check_quantized(path: Path) -> None:
    """Raise for quantized tensors: torch takes memory for any shape that they state."""
    content: IO[bytes] = path.open("rb")
    if _is_zip(path):
        content.close()
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("data.pkl")]
            content = io.BytesIO(b"".join(archive.read(name) for name in names))
    with content as file:
        if b"_rebuild_qtensor" in file.read(PICKLE_BYTES):
            raise LimitError(f"{path} holds a quantized tensor; write it after dequantize().")


def _as_array(value: Any, name: str) -> Any:
    """A tensor as an array; numbers and flat lists as they are; everything else is an error."""
    if torch.is_tensor(value):
        return _from_tensor(value, name)
    if isinstance(value, SCALARS):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, SCALARS) for item in value):
        return list(value)
    raise ValueError(f"{name} must be a tensor or a list of values, got {type(value).__name__}.")


def _from_tensor(tensor: Tensor, name: str) -> Any:
    kind = _unusual_kind(tensor)
    if kind:
        raise ValueError(f"{name} must be a dense or sparse tensor of numbers, got {kind}.")
    try:
        tensor = tensor.detach()
        return _numbers(tensor) if _is_dense(tensor) else _from_sparse(tensor)
    except (TypeError, RuntimeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read: {first_line(error)}.") from None


def _is_dense(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_nested


def _unusual_kind(tensor: Tensor) -> str:
    """What a tensor is that holds no plain numbers; empty for any other."""
    kinds = {
        "a nested one": tensor.is_nested,
        "a quantized one": tensor.is_quantized,
        "one without data": tensor.is_meta,
        "complex numbers": tensor.is_complex(),
    }
    return next((kind for kind, applies in kinds.items() if applies), "")


def _numbers(tensor: Tensor) -> Any:
    """The values of a dense tensor; NumPy has no bfloat16 and no float8."""
    floats = (torch.float16, torch.float32, torch.float64)
    if tensor.is_floating_point() and tensor.dtype not in floats:
        tensor = tensor.float()
    return tensor.resolve_neg().numpy()


def _from_sparse(tensor: Tensor) -> Any:
    """A sparse tensor as a SciPy CSR matrix, its indices checked: torch loads them unchecked."""
    if tensor.dim() != 2 or tensor.dense_dim():
        raise ValueError(f"a sparse tensor must have two dimensions, got {tensor.dim()}")
    if tensor.layout == torch.sparse_csr:
        parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
    elif tensor.layout == torch.sparse_coo:
        tensor._coalesced_(True)  # adding up repeats would trust the indices
        (rows, columns), values = tensor.indices(), tensor.values()
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < tensor.shape[0]:
            raise ValueError(f"a row must lie between 0 and {tensor.shape[0] - 1}")
        order = torch.argsort(rows, stable=True)
        counts = torch.bincount(rows, minlength=tensor.shape[0])
        start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        parts = start, columns[order], values[order]
    else:
        raise ValueError(f"the layout {tensor.layout} is not supported; to_sparse_csr() is")
    start, columns, values = (_numbers(part) for part in parts)
    matrix = csr_matrix((values, columns, start, np.array(tensor.shape)), "sparse")
    matrix.sum_duplicates()
    return matrix
