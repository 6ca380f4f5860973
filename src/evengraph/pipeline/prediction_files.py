"""Predictions of a graph on disk, written to a file block by block."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.errors import MissingPackageError
from evengraph.disk.models import DiskGraph
from evengraph.disk.open import check_encoder
from evengraph.metrics.binary import flagged
from evengraph.pipeline.table_model import TableModel
from evengraph.tables.cells import import_pandas

SUFFIXES = (".csv", ".parquet", ".npy")
ID = "id"

Write = Callable[[slice, Any, Tensor], None]
"""Takes the rows of a block, its table and its probabilities, (n, C)."""


def write_predictions(
    model: TableModel,
    disk: DiskGraph,
    path: str | Path,
    *,
    calibrated: bool = False,
    only_unlabelled: bool = False,
) -> dict[str, int]:
    """Predict nodes of a graph on disk into a file, which is written completely or not at all.

    A .csv or .parquet file has the columns of `TableModel.predict`, without those of committees;
    a .npy file holds the probabilities alone, float32, (N, C).

    Returns:
        How many nodes are predicted in each class; `flagged` counts those, if there is a threshold.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"The file must end in {', '.join(SUFFIXES)}, got {path}.")
    check_encoder(disk.packed, model.info.encoder)
    names, calibrator = model.classes_, model.info.calibrator
    if calibrated and calibrator is None:
        raise ValueError("This model has no calibrator: it was not saved by TableModel.")
    counts = np.zeros(len(names) + 1, np.int64)
    chosen = np.asarray(disk.packed.y) < 0 if only_unlabelled else np.ones(disk.x.shape[0], bool)
    with _writer(path, (int(chosen.sum()), len(names))) as write:
        for rows, every in disk.predict(model.method_):
            raw = every[torch.from_numpy(chosen[rows])]
            shown = calibrator(raw) if calibrated and calibrator is not None else raw
            table = _table(model, np.asarray(disk.packed.ids[rows])[chosen[rows]], raw, shown)
            counts[:-1] += np.bincount(shown.argmax(1), minlength=len(names))
            counts[-1] += int(table.get("flagged", np.zeros(1)).sum())
            write(rows, table, shown)
    result = dict(zip(names, counts[:-1].tolist(), strict=True))
    return result | ({"flagged": int(counts[-1])} if model.info.threshold is not None else {})


def _table(
    model: TableModel, ids: NDArray[Any], raw: Tensor, shown: Tensor
) -> dict[str, NDArray[Any]]:
    """The columns of a block."""
    top, best = shown.max(1)
    kinds = [int(name) for name in model.classes_] if model.info.integer_labels else model.classes_
    table = {model.info.columns.id or ID: ids, "class": np.array(kinds)[best.numpy()]}
    table["probability"] = top.numpy()
    for name, column in zip(model.classes_, shown.T, strict=True):
        table[f"p_{name}"] = column.numpy()
    if model.info.threshold is not None:  # which was chosen before calibration
        positive, value = model.info.threshold
        table["flagged"] = flagged(raw[:, positive], value).numpy()
    return table


@contextmanager
def _writer(path: Path, shape: tuple[int, int]) -> Iterator[Write]:
    """Yield a function that appends a block; the file is renamed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    opened = {".csv": _csv, ".parquet": _parquet, ".npy": _npy}[path.suffix.lower()]
    try:
        with opened(Path(name), shape) as write:
            yield write
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def _csv(path: Path, shape: tuple[int, int]) -> Iterator[Write]:
    pandas = import_pandas()
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(rows: slice, table: dict[str, NDArray[Any]], probabilities: Tensor) -> None:
            frame, options = pandas.DataFrame(table), {"index": False, "lineterminator": "\n"}
            frame.to_csv(file, header=rows.start == 0, float_format="%.6f", **options)

        yield write


@contextmanager
def _parquet(path: Path, shape: tuple[int, int]) -> Iterator[Write]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingPackageError("pyarrow is not installed; try: pip install pyarrow.") from None
    writers: list[Any] = []

    def write(rows: slice, table: dict[str, NDArray[Any]], probabilities: Tensor) -> None:
        content = pa.table(table)
        if not writers:
            writers.append(pq.ParquetWriter(path, content.schema))
        writers[0].write_table(content)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


@contextmanager
def _npy(path: Path, shape: tuple[int, int]) -> Iterator[Write]:
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)

        def write(rows: slice, table: dict[str, NDArray[Any]], probabilities: Tensor) -> None:
            file.write(probabilities.float().contiguous().numpy().tobytes())

        yield write
