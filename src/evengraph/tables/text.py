"""Text: a column of it as an Arrow array, and the encoders of long text.

Arrow runs operations on all cells in C++: 200,000 cells are parsed as numbers in 7 ms, which take
pandas 120 ms.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from evengraph.core.untrusted import sorted_unique
from evengraph.tables.cells import canonical_names, distinct_names, is_empty

# What `str.strip` removes; Arrow's own list of white space is shorter.
WHITESPACE = "".join(character for character in map(chr, range(0x3001)) if character.isspace())

DIGITS = re.compile(r"\d")
_CURRENCIES = r"(?:[€$£¥₹%]|zł|kr|EUR|USD|GBP|CHF|PLN|SEK|NOK|DKK|CZK|INR|JPY)"
CURRENCY = rf"\s*{_CURRENCIES}\s*"
_SPACE = "[ \u00a0\u202f'\u2019]"
# each with the separator of thousands and that of decimals; 0,125 may be either and is none
AMOUNTS = (
    (r"[+-]?(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?", ",", "."),
    (r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d{1,2})?", r"\.", ","),
    (rf"-?(?:\d+|[1-9]\d{{0,2}}(?:{_SPACE}\d{{3}})+)[.,]\d{{1,2}}", _SPACE, ","),
)
ANY_AMOUNT = rf"[+-]?(?:{_CURRENCIES}\s*)?[+-]?\d(?:[\d.,]|{_SPACE})*(?:\s*{_CURRENCIES})?"


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Stripped cells of a column of text; a missing cell is null, (N,). Arrays are kept."""

    cells: Any
    _words: dict[frozenset[str], NDArray[np.bool_]] = field(default_factory=dict)
    _parts: dict[frozenset[str], Self] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Any) -> Self | None:
        """A pandas column as text; None if it holds anything else, such as numbers or lists."""
        is_text = isinstance(values.dtype, pd.StringDtype)
        try:
            if is_text:
                source = values.array.__arrow_array__()
            elif pd.api.types.infer_dtype(values.astype(object)) in ("string", "empty"):
                source = pa.array(values.astype(object), from_pandas=True)
            else:
                return None
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        # a column that is asked for many times in a row is stripped and parsed once
        column: Self | None = next((text for cells, text in _LATEST if cells is source), None)
        if column is None:
            cells = source.combine_chunks() if isinstance(source, pa.ChunkedArray) else source
            column = cls(pc.utf8_trim(cells.cast(pa.large_string()), characters=WHITESPACE))
            if is_text:
                _LATEST[:] = [(source, column), *_LATEST[:1]]
        return column

    def take(self, rows: NDArray[Any]) -> Self:
        """The cells of some rows, or of a mask."""
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        return type(self)(self.cells.take(pa.array(indices)))

    def without(self, words: Iterable[str]) -> Self:
        """The cells that are neither missing nor one of these words in lower case."""
        key = frozenset(words)
        if key not in self._parts:
            kept = _bools(self.cells.is_valid()) & ~self.is_one_of(key)
            self._parts[key] = self if kept.all() else self.take(kept)
        return self._parts[key]

    def __len__(self) -> int:
        return len(self.cells)

    def first(self, rows: NDArray[np.bool_]) -> str:
        """The first cell of a mask."""
        return str(self.cells[int(rows.argmax())].as_py())

    def seconds(self, format: str) -> NDArray[np.float64]:
        """Dates in a format of strptime as seconds since 1970, NaN where there is none, (N,)."""
        dates = pc.strptime(self.cells, format=format, unit="s", error_is_null=True)
        numbers = dates.cast(pa.int64()).cast(pa.float64()).fill_null(np.nan)
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    def words(self) -> tuple[NDArray[np.int64], Any]:
        """The row of every word of two letters or more, and the word in lower case, (W,) each."""
        # the words of scikit-learn's vectorizers, which loop over cells in Python
        lower = pc.utf8_lower(pc.fill_null(self.cells, ""))
        parts = pc.split_pattern_regex(lower, r"[^\pL\pN_]+")
        words, rows = pc.list_flatten(parts), pc.list_parent_indices(parts)
        long = pc.greater(pc.utf8_length(words), 1)
        return rows.filter(long).to_numpy(zero_copy_only=False), words.filter(long)

    def is_one_of(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """Which cells are one of these words in lower case, (N,)."""
        key = frozenset(words)
        if key not in self._words:
            listed = pa.array(sorted(key), pa.large_string())
            self._words[key] = _fixed(_bools(pc.is_in(self._lower, value_set=listed)))
        return self._words[key]

    @cached_property
    def _lower(self) -> Any:
        return pc.utf8_lower(self.cells)

    def matches(self, pattern: str) -> NDArray[np.bool_]:
        """Which cells match a regular expression as a whole, (N,)."""
        return _bools(pc.match_substring_regex(self.cells, rf"\A(?:{pattern})\z"))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The cells as numbers, NaN where there is none, (N,)."""
        likely = _bools(pc.match_substring_regex(self.cells, r"\A[-+.0-9iI]"))  # or infinity
        numbers = np.full(len(self.cells), np.nan)
        try:
            cells = self.cells if likely.all() else self.take(likely).cells
            numbers[likely] = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:  # a cell is no number, or one that only pandas reads, such as +1
            codes, texts = self.take(likely).distinct
            numbers[likely] = np.asarray(pd.to_numeric(pd.Series(texts), errors="coerce"))[codes]
        if np.isnan(numbers).any() and (amounts := self._amounts()) is not None:
            numbers = amounts
        return _fixed(numbers)

    def _amounts(self) -> NDArray[np.float64] | None:
        """The cells as amounts such as € 12.50, 2,015.32 or (2 015,32); None if they are none."""
        if (
            not type(self)(self.cells.slice(0, 1000))
            .matches(rf"{ANY_AMOUNT}|\({ANY_AMOUNT}\)")
            .all()
        ):
            return None
        signed = pc.replace_substring_regex(
            self.cells, r"\A\((.*)\)\z", r"-\1"
        )  # as accounts have it
        plain = pc.replace_substring_regex(signed, CURRENCY, "")
        for pattern, thousands, decimal in AMOUNTS:
            if type(self)(plain).matches(pattern).all():
                plain = pc.replace_substring_regex(plain, thousands, "")
                number = pc.replace_substring(plain, decimal, ".").cast(pa.float64())
                return np.asarray(number.to_numpy(zero_copy_only=False))
        return None

    def two_forms(self) -> list[str]:
        """A cell of each of two forms of amounts, if every cell has one of them."""
        plain = type(self)(pc.replace_substring_regex(self.cells, CURRENCY, ""))
        forms = [plain.matches(pattern) for pattern, _, _ in AMOUNTS[:2]]
        alone = [forms[0] & ~forms[1], forms[1] & ~forms[0]]
        found = all(form.any() for form in alone) and (forms[0] | forms[1]).all()
        return [self.first(form) for form in alone] if found else []

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The index of every cell among the distinct texts, -1 if missing, (N,), and the texts."""
        encoded = self.cells.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        texts = encoded.dictionary.to_numpy(zero_copy_only=False)
        return _fixed(codes.astype(np.int64)), _fixed(texts)

    def num_words(self) -> NDArray[np.int64]:
        """The number of words in every cell, (N,)."""
        codes, texts = self.distinct
        counts = pc.count_substring_regex(pa.array(texts, pa.large_string()), r"\S+")
        return np.append(counts.to_numpy(zero_copy_only=False), 0)[codes].astype(np.int64)

    @cached_property
    def lists(self) -> list[Any] | None:
        """The list in every cell of JSON; None if a cell is no list."""
        brackets = self.matches(r"(?s)\[.*\]").all()
        return parse_json(self.cells.to_pylist()) if brackets else None

    @cached_property
    def list_separator(self) -> str | None:
        """What separates the items if cells are lists, "" for JSON; None if they are no lists.

        Separated lists share items: splitting them gives fewer distinct items than there are
        distinct cells, of three words or fewer.
        """
        if self.lists is not None:
            return ""
        for separator in (";", "|", ","):
            if pc.mean(pc.match_substring(self.cells, separator)).as_py() < 0.1:
                continue
            prose = r",\s|[0-9],[0-9]"  # a comma before a space or between digits, as in 1,5
            if separator == "," and pc.any(pc.match_substring_regex(self.cells, prose)).as_py():
                continue
            cells = self.cells.unique()
            items = type(self)(pc.list_flatten(pc.split_pattern(cells, separator)).unique())
            if len(items.cells) < len(cells) and items.num_words().mean() <= 3:
                return separator
        return None

    def split(self, separator: str) -> tuple[NDArray[np.int64], Any]:
        """The number of items in every cell, (N,), and all items, as a pandas column of text."""
        lists = pc.split_pattern(self.cells, separator)
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        return lengths.astype(np.int64), pc.list_flatten(lists).to_pandas()


_LATEST: list[tuple[Any, Any]] = []  # the last two columns, with the cells that they came from


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _bools(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def parse_json(texts: Sequence[str]) -> list[Any] | None:
    """Lists from JSON, or from Python's notation, which pandas writes; None if one is no list."""
    joined = f"[{','.join(texts)}]"  # all at once, not one by one
    try:
        lists = json.loads(joined)
    except (ValueError, RecursionError):
        try:
            lists = ast.literal_eval(joined)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    # a cell such as [1],[2] is not one list but two
    same = len(lists) == len(texts) and all(isinstance(item, list) for item in lists)
    return lists if same else None


class UselessColumnError(ValueError):
    """A column that carries no information; the message is the reason."""


class MixedAmountsError(UselessColumnError):
    """A column of amounts in two forms, which only the user can make one."""


class Entries(NamedTuple):
    """Features of one column of a table, (N, F), as its entries other than 0."""

    shape: tuple[int, int]
    rows: NDArray[Any]  # (E,), no pair of row and column twice
    columns: NDArray[Any]
    values: NDArray[Any] | float = 1.0  # (E,), or one number for all


def fill(features: NDArray[np.float32], parts: Iterable[Entries | NDArray[Any]]) -> None:
    """Write parts, (N, .) each, side by side into an array of zeros, (N, F)."""
    start = 0
    for part in parts:
        stop = start + part.shape[1]
        if isinstance(part, Entries):
            features[part.rows, start + part.columns] = part.values
        else:
            features[:, start:stop] = part
        start = stop


MIN_CELLS = 5  # that must hold a word for it to be saved: a rarer word may be a name
MIN_WORDS, MAX_WORDS, TEXT_BUCKETS = 10, 1000, 256
MAX_ENTRIES = 50_000_000  # rows times words, since features are dense
SAMPLED_CELLS = 50_000  # which choose the words


@dataclass(frozen=True, kw_only=True)
class Words:
    """Long text: TF-IDF of the most common words, unit length; empty cells are all 0."""

    column: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.idf):
            raise ValueError("idf must be a number for each word")

    @classmethod
    def fit(cls, values: Any) -> Self:
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
        chosen = tuple(map(str, names[common]))
        return cls(column=str(values.name), words=chosen, idf=tuple(map(float, idf)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}: {word}" for word in self.words)

    def transform(self, values: Any, table: str) -> Entries:
        """The features of every row, (N, words)."""
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
    def fit(cls, values: Any) -> Self:
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


GRAM_BUCKETS, GRAM_FEATURES = 512, 30
LANGUAGE = 0.25  # bits that a letter tells of the next; none in random ids, one or two in words
LETTERS = 26


@dataclass(frozen=True, kw_only=True)
class Grams:
    """Names, addresses and other short text of many values: pieces of three and four letters.

    They are counted in buckets by a hash, in rows of unit length, and projected onto the leading
    directions of the column; so spellings of one name are close. Digits count as one digit. The
    projection is all that is stored.
    """

    column: str
    projection: tuple[float, ...]  # (GRAM_BUCKETS x features), row by row

    def __post_init__(self) -> None:
        if len(self.projection) % GRAM_BUCKETS:
            raise ValueError(f"projection must be rows of {GRAM_BUCKETS} numbers")

    @classmethod
    def fit(cls, values: Any, cells: TextColumn) -> Self | None:
        """Find the directions; None if the text is no language, as ids are, or always the same."""
        _, texts = cells.distinct
        texts = np.unique(_spelling(texts[:: max(len(texts) // SAMPLED_CELLS, 1)]))
        if len(texts) <= GRAM_FEATURES or not _is_language(texts):
            return None
        counts = _gram_counts(texts)
        vectors = np.linalg.eigh((counts.T @ counts).toarray())[1][:, : -GRAM_FEATURES - 1 : -1]
        vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), range(GRAM_FEATURES)])
        scale = (counts @ vectors).std(axis=0).max()  # one for all: the leading ones matter most
        numbers = np.round(vectors / scale, 3).ravel().tolist()
        return cls(column=str(values.name), projection=tuple(numbers))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        count = len(self.projection) // GRAM_BUCKETS
        return tuple(f"{self.column}~{index}" for index in range(count))

    def transform(self, values: Any, table: str) -> NDArray[np.float64]:
        """The features of every row, (N, F)."""
        codes, texts = distinct_names(values)
        texts = np.array([*_spelling(texts), ""], dtype=object)  # -1, missing, reads the last
        matrix = np.array(self.projection).reshape(GRAM_BUCKETS, -1)
        return np.asarray((_gram_counts(texts) @ matrix)[codes])


def _spelling(texts: Any) -> NDArray[Any]:
    return np.array([DIGITS.sub("0", str(text).lower()) for text in texts], dtype=object)


def _gram_counts(texts: Any) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    options = {"analyzer": "char_wb", "ngram_range": (3, 4), "n_features": GRAM_BUCKETS}
    return HashingVectorizer(alternate_sign=False, **options).transform(texts)


def _is_language(texts: Any) -> bool:
    """Whether a letter tells of the next: counted in every second text, tested in the others."""
    ends = zip(texts[0], texts[-1], strict=False)  # of texts in order: what they share, all share
    start = next((place for place, (a, b) in enumerate(ends) if a != b), 0)
    counts, texts = [], [text[start:] for text in texts]
    for half in (texts[::2], texts[1::2]):
        letters = np.frombuffer("\n".join(half).encode("ascii", "replace"), np.uint8) - ord("a")
        both = (letters[:-1] < LETTERS) & (letters[1:] < LETTERS)
        pairs = letters[:-1][both].astype(np.int64) * LETTERS + letters[1:][both]
        counts.append(np.bincount(pairs, minlength=LETTERS**2).reshape(LETTERS, LETTERS))
    seen, tested = counts[0] + 0.1, counts[1]
    if tested.sum() < len(texts) / 2:  # hardly any two letters together
        return False
    gain = np.log2(seen / seen.sum(1, keepdims=True) / (seen.sum(0) / seen.sum()))
    return float((gain * tested).sum() / tested.sum()) > LANGUAGE


def fit_text(values: Any) -> Words | Text:
    """TF-IDF of words, or of buckets where too few words are common enough to be saved."""
    try:
        words = Words.fit(values)
    except UselessColumnError:
        return Text.fit(values)
    return words if len(words.words) >= MIN_WORDS else Text.fit(values)


def _cells(values: Any) -> NDArray[Any]:
    return np.where(is_empty(values), "", canonical_names(values))


def _words(values: Any) -> tuple[NDArray[np.int64], Any]:
    text = TextColumn.of(values)
    if text is None:  # other values than text, or halves of surrogate pairs, which Arrow refuses
        clean = [str(cell).encode("utf-8", "replace").decode().strip() for cell in _cells(values)]
        text = TextColumn(pa.array(clean, pa.large_string()))
    return text.words()


def _bucket_counts(values: Any, buckets: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=buckets, alternate_sign=False, norm=None)
    return hashing.transform(_cells(values))


def _weighted(counts: Any, idf: tuple[float, ...]) -> Entries:
    from sklearn.preprocessing import normalize

    weighted = counts.multiply(np.array(idf)[None])
    unit = normalize(weighted.tocsr()).astype(np.float32).tocoo()
    return Entries(unit.shape, unit.row, unit.col, unit.data)
