"""Boosted trees of scikit-learn on bins in a file.

Its classifier needs all rows in double precision. What it grows a tree with takes bins, gradients
and second derivatives; this module computes these and adds up the trees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.core.errors import MissingPackageError
from evengraph.disk.tables import row_slices
from evengraph.methods.bases.binned_rows import BinnedRows
from evengraph.methods.bases.tree_engines import BINS, Grown, TreeParams, start_logits, start_loss


class BinnedTrees:
    """Trees that grow round by round; the logits of all rows are in a file.

    Args:
        rows: The bins.
        labels: Of the rows; each class occurs.
        weights: Of the rows.
        params: What the trees may be like.
        path: The file for the logits.

    Shapes:
        labels, weights: (n,)
    """

    def __init__(
        self,
        rows: BinnedRows,
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        params: TreeParams,
        path: Path,
    ) -> None:
        self.rows, self.labels, self.weights, self.params = rows, labels, weights, params
        baseline = start_logits(labels, weights)
        self.grown = Grown([], baseline, [start_loss(labels, weights, baseline)])
        shape = baseline.size, len(labels)
        self.logits: NDArray[Any] = np.memmap(path, np.float64, "w+", shape=shape)
        for index in row_slices(len(labels)):
            self.logits[:, index] = baseline[:, None]

    def grow(self, rounds: int) -> Grown:
        """Add trees up to a number of rounds, and return all."""
        while len(self.grown.losses) <= rounds:
            norms = self._norms()
            for output in range(len(self.logits)):
                self._add_tree(output, norms)
            self.grown.losses.append(self._loss())
        return self.grown

    def _norms(self) -> NDArray[np.float64]:
        """Logarithm of the sum over classes of exponentials, which trees of a round share, (n,)."""
        norms = np.empty(len(self.labels))
        for index in row_slices(len(norms)):
            norms[index] = _log_sum(self.logits[:, index])
        return norms

    def _add_tree(self, output: int, norms: NDArray[np.float64]) -> None:
        """Grow a tree for one output, and add its leaves to the logits."""
        logits, params = self.logits[output], self.params
        gradients, curvatures = (np.empty(len(norms), np.float32) for _ in range(2))
        positive = output if len(self.logits) > 1 else 1
        for index in row_slices(len(norms)):
            share = np.exp(logits[index] - norms[index])
            weights = self.weights[index]
            gradients[index] = weights * (share - (self.labels[index] == positive))
            curvatures[index] = weights * share * (1 - share)
        tree = tree_grower()(
            self.rows.codes,
            gradients,
            curvatures,
            n_bins=BINS + 1,  # the last one is for missing values
            n_bins_non_missing=[len(some) + 1 for some in self.rows.thresholds],
            max_leaf_nodes=params.leaves,
            min_samples_leaf=params.smallest_leaf,
            l2_regularization=params.weight_decay,
            shrinkage=params.learning_rate,
        )
        tree.grow()
        for leaf in tree.finalized_leaves:
            logits[np.asarray(leaf.sample_indices)] += leaf.value
        self.grown.tables.append(tree.make_predictor(self.rows.thresholds).nodes)

    def _loss(self) -> float:
        """Weighted mean of the cross-entropy."""
        total = 0.0
        for index in row_slices(len(self.labels)):
            logits, labels = np.array(self.logits[:, index]), self.labels[index]
            norms = _log_sum(logits)
            if len(logits) > 1:
                logits = np.take_along_axis(logits, labels[None], axis=0)
            else:
                logits *= labels
            total += float(self.weights[index] @ (norms - logits[0]))
        return total / float(self.weights.sum())


def _log_sum(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of the sum of exponentials; the first of two classes has the logit 0."""
    if len(logits) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits])
    largest = logits.max(0)
    sums: NDArray[np.float64] = largest + np.log(np.exp(logits - largest).sum(0))
    return sums


def tree_grower() -> Any:
    """Import the class of scikit-learn that grows a tree; it is private, so it may be missing."""
    try:
        from sklearn.ensemble._hist_gradient_boosting.grower import TreeGrower
    except ImportError:
        raise MissingPackageError(
            "This version of scikit-learn cannot learn from rows on disk; use engine='lightgbm' "
            "(pip install lightgbm)."
        ) from None
    return TreeGrower
