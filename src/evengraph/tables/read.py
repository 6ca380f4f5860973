"""Read tables from CSV, TSV, JSON-lines and Parquet files, with errors that name the line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from evengraph.core.errors import first_line, one_line_errors
from evengraph.core.untrusted import (
    CELL_BYTES,
    FREE_BYTES,
    NUMBER_BYTES,
    LimitError,
    check_columns,
    check_table,
    check_unpacked,
)
from evengraph.tables.cells import plural

TEXT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES), ".parquet")
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
MAX_CELL_LENGTH = 2**31 - 1
MAX_HEADER_LENGTH = 2**22
BATCH = 2**17  # rows
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@one_line_errors()
def read_table(path: str | Path) -> Any:
    """Read a file into a pandas DataFrame, with the path in `attrs["file"]`.

    The suffix gives the format: .csv (separated by comma, semicolon, tab or bar, whichever the
    first line has most of), .tsv, .jsonl or .ndjson, each also with .gz, and .parquet. Text must be
    UTF-8. Cells of CSV stay text: whether 1.50 is a quantity, an id or a name depends on the role
    of the column, and must not depend on the other rows of the file.
    """
    path = Path(path)
    suffix = table_suffix(path)
    reject_spreadsheet(path)
    if not suffix:
        ends = ", ".join(TABLE_SUFFIXES)
        raise ValueError(f"{path} cannot be read as a table; its name must end in {ends}.")
    if not path.is_file():
        reason = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {reason}.")
    status = path.stat()
    # a file that changed just now is read again: the clock of a file system is coarse
    parse = _parse if time.time() - status.st_mtime >= 2 else _parse.__wrapped__
    return parse(path, suffix, path.resolve(), status.st_mtime_ns, status.st_size).copy()


@lru_cache(maxsize=4)  # the tables of a known graph and of new nodes
def _parse(path: Path, suffix: str, resolved: Path, changed: int, size: int) -> Any:
    text = "" if suffix == ".parquet" else _read_text(path)
    check_table(text.count("\n"), max(map(text.count, SEPARATORS)), size, str(path))
    if suffix == ".parquet":
        table = _read_parquet(path)
    elif suffix.startswith((".jsonl", ".ndjson")):
        table = _read_json_lines(text, path)
    else:
        table = _read_csv(text, path, "\t" if suffix.startswith(".tsv") else None)
    check_columns(table.shape[1], str(path))
    table.attrs["file"] = str(path)
    return table


def reject_spreadsheet(path: Path) -> None:
    """Raise an error for a file of Excel or LibreOffice: it may hold several tables, or none."""
    if path.suffix.lower() in (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"):
        raise ValueError(f"{path} is a spreadsheet; save its sheet as CSV (UTF-8).")


def table_suffix(path: Path) -> str:
    """The suffix of a table file; empty for any other file."""
    name = path.name.lower()
    return max((s for s in TABLE_SUFFIXES if name.endswith(s)), key=len, default="")


def _read_text(path: Path) -> str:
    content = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        packed, unpacked = len(content), bytearray()
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                while part := file.read(2**24):
                    unpacked += part
                    check_unpacked(len(unpacked), packed, str(path), "unpack it first")
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be unpacked: {error}.") from None
        content = bytes(unpacked)
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16 text; save it as UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{content[error.start]:02x} is not UTF-8 text"
        raise ValueError(f"{path}, line {line}: {wrong}; save the file as UTF-8.") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"{path}, line {line} holds a zero byte: this is not a text file.")
    return text


def _read_csv(text: str, path: Path, separator: str | None) -> Any:
    """Read CSV with Arrow where it reads it as Python's csv module does, otherwise with pandas.

    Arrow takes a tenth of the time of pandas and checks rows on the way, but does not say where an
    error is: any error is raised by the slow way.
    """
    separator = separator or _separator(text)
    header = _read_header(text, path, separator)
    table = None
    # quotes after a space and quotes not closed are read differently, and so are blank lines in a
    # file of one column
    plain = f'{separator} "' not in text and text.count('"') % 2 == 0
    if plain and len(header) > 1 and "\n" not in "".join(header):
        table = _read_plain_csv(text.lstrip("\r\n "), separator, len(header))
    if table is None:
        table = _read_any_csv(text, path, separator)
    table.columns = header
    return table.apply(_with_decimal_points) if separator == ";" else table


def csv_header(path: Path) -> tuple[str, list[str]]:
    """Separator and column names of a CSV or TSV file; only its beginning is read."""
    suffix = table_suffix(path)
    try:
        with gzip.open(path) if suffix.endswith(".gz") else path.open("rb") as file:
            content = file.read(MAX_HEADER_LENGTH)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}.") from None
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    text = content.decode("utf-8-sig", "replace").lstrip("\r\n ")
    separator = "\t" if suffix.startswith(".tsv") else _separator(text)
    return separator, _read_header(text, path, separator)


def _read_plain_csv(text: str, separator: str, num_columns: int) -> Any:
    """A table without oddities, read with Arrow; None if Arrow cannot read it."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    names = [str(index) for index in range(num_columns)]
    content = text.encode()
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            # one block, since rows must not straddle two
            read_options=arrow_csv.ReadOptions(
                column_names=names, skip_rows=1, block_size=min(len(content) + 1, MAX_CELL_LENGTH)
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.large_string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if f"{separator} " in text:  # spaces after a separator do not belong to the cell
        trimmed = [compute.utf8_ltrim(column, characters=" ") for column in table.columns]
        cells = [compute.if_else(compute.equal(column, ""), None, column) for column in trimmed]
        table = pa.table(cells, names=names)
    return table.to_pandas()


def _read_any_csv(text: str, path: Path, separator: str) -> Any:
    width = 0
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    with _csv_errors(rows, path):
        for row in rows:
            if not width:
                width = len(row)
            elif len(row) != width and "".join(row).strip():
                raise ValueError(
                    f"{path}, line {rows.line_num} has {plural(len(row), 'cell')}, the first line "
                    f"has {width}; quote text that contains {SEPARATORS[separator]}."
                )
    try:
        return pd.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            skipinitialspace=True,
            index_col=False,
            engine="c",
        )
    except pd.errors.ParserError as error:
        reason = str(error).rpartition("C error: ")[2].strip().rstrip(".")
        raise ValueError(f"{path} cannot be read: {reason}; is a quote not closed?") from None


def _separator(text: str) -> str:
    line = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").split("\n", 1)[0])
    return max(SEPARATORS, key=line.count)


def _read_header(text: str, path: Path, separator: str) -> list[str]:
    csv.field_size_limit(MAX_CELL_LENGTH)
    lines = (match[0] for match in re.finditer(r"[^\n]*\n|[^\n]+", text))  # without a copy of all
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    with _csv_errors(rows, path):
        header = [name.strip() for name in next((row for row in rows if row), [])]
    check_columns(len(header), str(path))
    for name, count in Counter(filter(None, header)).items():
        if count > 1:
            raise ValueError(f"{path} has two columns called {name!r}; rename one of them.")
    return [name or f"Unnamed: {index}" for index, name in enumerate(header)]


@contextmanager
def _csv_errors(rows: Any, path: Path) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}; is a quote not closed?") from None


def _with_decimal_points(values: Any) -> Any:
    cells = values.dropna().str.strip()
    if not len(cells) or not cells.str.fullmatch(r"[+-]?\d*(,\d+)?([eE][+-]?\d+)?").all():
        return values
    return values.str.replace(",", ".")


def _read_json_lines(text: str, path: Path) -> Any:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if SURROGATE.search(line):
                json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:  # the one of encode is a ValueError
            raise ValueError(f"{path}, line {number} is not JSON: {first_line(error)}.") from None
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, line {number} must be an object such as "
                f'{{"id": 1, "age": 20}}, got {line.strip()[:40]}.'
            )
        rows.append(row)
    return pd.DataFrame(rows)


def _read_parquet(path: Path) -> Any:
    check_parquet(path)
    from pyarrow.parquet import ParquetFile

    with _parquet_errors(path), ParquetFile(path) as file:
        return file.read().to_pandas()  # as a data set, 20,000 columns would take a GiB of buffers


def check_parquet(path: Path) -> None:
    """Raise ValueError for a file that unpacks to too much: few bytes may repeat a long text.

    Columns of text are read as codes of distinct values, a batch at a time.
    """
    packed = path.stat().st_size
    if not packed:
        raise ValueError(f"{path} is empty.")
    from pyarrow import parquet, types

    with _parquet_errors(path):
        about = parquet.read_metadata(path)
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        check_unpacked(size, packed, str(path), "write it without compression")
        check_columns(about.num_columns, str(path))
        check_table(about.num_rows, about.num_rows * about.num_columns, packed, str(path))
        chunks = [group.column(i) for group in groups for i in range(about.num_columns)]
        fields = about.schema.to_arrow_schema()
        names = [item.name for item in fields if not types.is_primitive(item.type)]
        unpacked = NUMBER_BYTES * about.num_rows * (len(fields) - len(names))
        check_unpacked(unpacked, packed, str(path), "save it as CSV, uncompressed")
        texts = {part.path_in_schema for part in chunks if part.physical_type == "BYTE_ARRAY"}
        rows = BATCH
        if shared := [part for part in chunks if "DELTA_BYTE_ARRAY" in part.encodings]:  # no codes
            texts -= {part.path_in_schema for part in shared}
            rows = FREE_BYTES // max(part.total_uncompressed_size for part in shared)
        with parquet.ParquetFile(path, read_dictionary=sorted(texts)) as file:
            for batch in file.iter_batches(min(max(rows, 1), BATCH), columns=names):
                unpacked += sum(map(_unpacked_size, batch.columns))
                check_unpacked(unpacked, packed, str(path), "save it as CSV, uncompressed")


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (LimitError, MemoryError):
        raise
    except Exception as error:  # of Arrow, for damaged files, of many kinds
        reason = " ".join(str(error).split())[:120]
        raise ValueError(f"{path} cannot be read as Parquet: {reason}.") from None


def _unpacked_size(values: Any) -> int:
    """Bytes of an Arrow array as cells of a table, at most."""
    from pyarrow import compute, types

    size = CELL_BYTES * len(values)
    if types.is_dictionary(values.type):
        lengths = compute.binary_length(values.dictionary).take(values.indices)
        return size + (compute.sum(lengths).as_py() or 0)
    if types.is_nested(values.type):
        parts = values.flatten()
        return size + sum(map(_unpacked_size, parts if types.is_struct(values.type) else [parts]))
    return size + int(values.nbytes)
