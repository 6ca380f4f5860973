"""Grow boosted trees on rows that do not fit in memory, by each of the libraries.

scikit-learn compares bins in a file. LightGBM takes rows in blocks and stores a byte per value in
memory. XGBoost does so as well, or in files where the bytes do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.errors import MissingPackageError
from evengraph.disk.propagation import RowBlocks
from evengraph.methods.bases.binned_rows import bin_rows
from evengraph.methods.bases.binned_trees import BinnedTrees, tree_grower
from evengraph.methods.bases.tree_engines import (
    BINS,
    Engine,
    Grown,
    TreeParams,
    grow_lightgbm,
    grow_xgboost,
    import_engine,
    lightgbm_settings,
    start_logits,
    start_loss,
    xgboost_settings,
)

SAMPLE = 200_000  # rows that bins are computed from, as by the libraries themselves
SMALLEST = 2**10  # rows, however little memory there is
SAMPLE_SHARE = 8  # of the memory are in this sample, in double precision
TRAINING_SHARE, VALIDATION_SHARE = 2, 4  # of the memory are in what is stored per row
NODE_BYTES = 60  # of a labelled node: its number, label, weight and signature
BYTES_SHARE = 8  # of the memory may be XGBoost's bytes; it has two copies


def streamed_grower(
    engine: Engine,
    rows: RowBlocks,
    labels: Tensor,
    weights: Tensor,
    params: TreeParams,
    memory: int,
    folder: Path,
) -> Callable[[int], Grown]:
    """As `grower`, on rows that are read in blocks; all of them are used.

    Args:
        engine: The library.
        rows: The rows, (n, F).
        labels: Their classes, (n,); each class occurs.
        weights: Their weights, (n,).
        params: What the trees may be like.
        memory: Bytes to use.
        folder: Where to write files of these rows.
    """
    library, y, w = import_engine(engine), labels.numpy(), weights.numpy()
    sample = sample_size(rows.shape[1], memory)
    if engine == "sklearn":
        tree_grower()  # an error shows before rows are read
        binned = bin_rows(rows, BINS, sample, folder / "bins")
        return BinnedTrees(binned, y, w, params, folder / "logits").grow
    baseline = start_logits(y, w)
    grown = Grown([], baseline, [start_loss(y, w, baseline)])
    if engine == "lightgbm":
        settings = lightgbm_settings(params, baseline)
        data = _lightgbm_data(library, rows, y, w, settings, baseline, sample)
        return partial(grow_lightgbm, library.Booster(settings, data), params, grown)
    in_memory = rows.shape[0] * rows.shape[1] <= memory // BYTES_SHARE
    data = _xgboost_data(library, rows, y, w, baseline, None if in_memory else folder)
    model = library.Booster(xgboost_settings(params, baseline), [data])
    return partial(grow_xgboost, model, data, grown)


def sample_size(width: int, memory: int) -> int:
    """How many rows bins are computed from."""
    return min(max(memory // (SAMPLE_SHARE * 8 * max(width, 1)), SMALLEST), SAMPLE)


def streamed_rows(engine: Engine, width: int, num_classes: int, memory: int) -> tuple[int, int]:
    """How many training and validation rows can be used within a limit of memory.

    In memory are gradients, sums of trees and numbers of rows, and the bytes of LightGBM.
    """
    each = 40 * (num_classes + 1)
    sizes = {"sklearn": 70, "lightgbm": width + each, "xgboost": each}
    training = memory // (TRAINING_SHARE * (NODE_BYTES + sizes[engine]))
    validation = memory // (VALIDATION_SHARE * (NODE_BYTES + 24 * num_classes))
    return max(training, SMALLEST), max(validation, SMALLEST)


def _lightgbm_data(
    library: Any,
    rows: RowBlocks,
    y: NDArray[Any],
    w: NDArray[Any],
    settings: dict[str, Any],
    baseline: NDArray[np.float64],
    sample: int,
) -> Any:
    """A data set of LightGBM: bins are those of a sample, then all rows are added in blocks."""

    class Blocks(library.Sequence):  # type: ignore[misc]
        batch_size = rows.size

        def __len__(self) -> int:
            return rows.shape[0]

        def __getitem__(self, index: slice) -> NDArray[Any]:
            return rows.read(index).numpy()

    bins = library.Dataset(rows.sample(sample).numpy(), params=settings).construct()
    start = np.tile(baseline, (len(y), 1)).squeeze(1 if baseline.size == 1 else ())
    about = {"weight": w, "init_score": start, "params": settings, "reference": bins}
    return library.Dataset(Blocks(), y, **about).construct()


def _xgboost_data(
    library: Any,
    rows: RowBlocks,
    y: NDArray[Any],
    w: NDArray[Any],
    baseline: NDArray[np.float64],
    folder: Path | None,
) -> Any:
    """Quantiles of XGBoost, in memory or in files of a folder."""

    class Blocks(library.DataIter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(cache_prefix=None if folder is None else str(folder / "quantiles"))
            self.blocks = iter(rows)

        def next(self, input_data: Any) -> bool:
            item = next(self.blocks, None)
            if item is None:
                return False
            index, block = item
            start = np.tile(baseline, (len(block), 1))
            values = {"label": y[index], "weight": w[index], "base_margin": start}
            input_data(data=block.numpy(), **values)
            return True

        def reset(self) -> None:
            self.blocks = iter(rows)

    if folder is None:
        return library.QuantileDMatrix(Blocks(), max_bin=BINS)
    if not hasattr(library, "ExtMemQuantileDMatrix"):
        raise MissingPackageError(
            "Rows on disk need XGBoost 3 or later; try: pip install -U xgboost."
        )
    return library.ExtMemQuantileDMatrix(Blocks(), max_bin=BINS)
