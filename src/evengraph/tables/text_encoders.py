"""Encoders of long text: TF-IDF of common words, or of words hashed into buckets.

Buckets mix words, and in trials on generated texts lost far more than rare words left out, so they
only serve where few words are common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evengraph.core.arrays import sorted_unique
from evengraph.tables.cells import canonical_names, import_pandas, is_empty
from evengraph.tables.entries import Entries
from evengraph.tables.number_encoders import UselessColumnError

MIN_CELLS = 5
"""Cells that must hold a word for it to be saved: a rarer word may be a name."""
MIN_WORDS, MAX_WORDS = 10, 1000
MAX_ENTRIES = 50_000_000
"""Bound of rows times words, since features are dense; never below the number of buckets."""
SAMPLED_CELLS = 50_000
"""How many cells choose the words."""
TEXT_BUCKETS = 256


@dataclass(frozen=True, kw_only=True)
class Words:
    """Long text: TF-IDF of the most common words, unit length; empty cells are all 0.

    Words of fewer than five cells are not stored: a name or an address among them would be saved
    with the model.
    """

    column: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Choose the words and compute the inverse document frequency of each."""
        sample = values.iloc[:: max(len(values) // SAMPLED_CELLS, 1)]
        rows, words = _words(sample)
        encoded = words.dictionary_encode()
        codes, names = encoded.indices.to_numpy(), encoded.dictionary.to_numpy(zero_copy_only=False)
        in_cells = sorted_unique(rows * len(names) + codes) % len(names)
        cells = np.bincount(in_cells, minlength=len(names))
        occurrences = np.bincount(codes, minlength=len(names))
        common = np.flatnonzero(cells >= MIN_CELLS)
        if not len(common):
            raise UselessColumnError("no word occurs in five cells")
        most = max(min(MAX_WORDS, MAX_ENTRIES // len(values)), TEXT_BUCKETS)
        common = common[np.lexsort((names[common], -occurrences[common]))][:most]
        common = common[np.argsort(names[common])]
        idf = np.log((1 + len(sample)) / (1 + cells[common])) + 1  # as scikit-learn smooths it
        return cls(
            column=str(values.name),
            words=tuple(map(str, names[common])),
            idf=tuple(map(float, idf)),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}: {word}" for word in self.words)

    def transform(self, values: Any, table: str) -> Entries:
        """The features of every row, (N, words)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, words = _words(values)
        codes = pc.index_in(words, value_set=pa.array(self.words, pa.large_string()))
        known = codes.is_valid().to_numpy(zero_copy_only=False)
        where = rows[known], codes.drop_null().to_numpy()
        counts = sp.coo_matrix((np.ones(len(where[0])), where), (len(values), len(self.words)))
        return _weighted(counts.tocsr(), self.idf)


@dataclass(frozen=True, kw_only=True)
class Text:
    """Long text: TF-IDF of words hashed into buckets, unit length; empty cells are all 0."""

    column: str
    idf: tuple[float, ...]

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Compute the inverse document frequency of each bucket."""
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = _bucket_counts(values, TEXT_BUCKETS)
        if not counts.nnz:
            raise UselessColumnError("it holds no words")
        idf = TfidfTransformer().fit(counts).idf_
        return cls(column=str(values.name), idf=tuple(float(value) for value in idf))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}#{bucket}" for bucket in range(len(self.idf)))

    def transform(self, values: Any, table: str) -> Entries:
        """The features of every row, (N, buckets)."""
        return _weighted(_bucket_counts(values, len(self.idf)), self.idf)


def fit_text(values: Any, table: str) -> Words | Text:
    """TF-IDF of words, or of buckets where too few words are common enough to be saved."""
    try:
        words = Words.fit(values, table)
    except UselessColumnError:
        return Text.fit(values, table)
    return words if len(words.words) >= MIN_WORDS else Text.fit(values, table)


def _cells(values: Any) -> NDArray[Any]:
    return np.where(is_empty(values), "", canonical_names(values))


def _words(values: Any) -> tuple[NDArray[np.int64], Any]:
    """The words of a column, and the row of each."""
    from evengraph.tables.text_column import TextColumn

    text = TextColumn.of(values)
    if text is None:  # other values than text, or halves of surrogate pairs, which Arrow refuses
        clean = [str(cell).encode("utf-8", "replace").decode() for cell in _cells(values)]
        text = TextColumn.of(import_pandas().Series(clean, dtype=object))
    assert text is not None
    return text.words()


def _bucket_counts(values: Any, buckets: int) -> Any:
    """Number of words of each bucket in every cell, sparse, (N, buckets)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=buckets, alternate_sign=False, norm=None)
    return hashing.transform(_cells(values))


def _weighted(counts: Any, idf: tuple[float, ...]) -> Entries:
    """Counts times inverse document frequencies, in rows of unit length."""
    from sklearn.preprocessing import normalize

    weighted = counts.multiply(np.array(idf)[None])
    unit = normalize(weighted.tocsr()).astype(np.float32).tocoo()
    return Entries(unit.shape, unit.row, unit.col, unit.data)
