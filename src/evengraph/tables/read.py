"""Read tables from CSV, TSV, JSON-lines and Parquet files, with errors that name the line.

A cell is data and nothing else: `=1+1` is five characters of text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any

from evengraph.tables.cells import import_pandas, plural

TEXT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES), ".parquet")
"""Suffixes of files that hold a table."""

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
MAX_CELL_LENGTH = 2**31 - 1


def read_table(path: str | Path) -> Any:
    """Read a file into a pandas DataFrame, with the path in `attrs["file"]`.

    The suffix gives the format: .csv (separated by comma, semicolon or tab, whichever the first
    line has most of), .tsv, .jsonl or .ndjson, each also with .gz, and .parquet. Text must be
    UTF-8. Cells of CSV stay text: whether 1.50 is a quantity, an id or a name depends on the role
    of the column, and must not depend on the other rows of the file.
    """
    path = Path(path)
    suffix = table_suffix(path)
    if not suffix:
        raise ValueError(
            f"{path} cannot be read as a table; its name must end in {', '.join(TABLE_SUFFIXES)}."
        )
    if not path.is_file():
        reason = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {reason}.")
    if suffix == ".parquet":
        table = _read_parquet(path)
    elif suffix.startswith((".jsonl", ".ndjson")):
        table = _read_json_lines(_read_text(path), path)
    else:
        table = _read_csv(_read_text(path), path, "\t" if suffix.startswith(".tsv") else None)
    table.attrs["file"] = str(path)
    return table


def table_suffix(path: Path) -> str:
    """The suffix of a table file; empty for any other file."""
    name = path.name.lower()
    return max((s for s in TABLE_SUFFIXES if name.endswith(s)), key=len, default="")


def _read_text(path: Path) -> str:
    content = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be unpacked: {error}.") from None
    if not content.strip():
        raise ValueError(f"{path} is empty.")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{path} is UTF-16 text; save it as UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ValueError(
            f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8."
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"{path}, line {line} holds a zero byte: this is not a text file.")
    return text


def _read_csv(text: str, path: Path, separator: str | None) -> Any:
    separator = separator or _separator(text)
    header = _check_rows(text, path, separator)
    pandas = import_pandas()
    try:
        table = pandas.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            skipinitialspace=True,
            index_col=False,
            engine="c",
        )
    except pandas.errors.ParserError as error:
        reason = str(error).rpartition("C error: ")[2].strip().rstrip(".")
        raise ValueError(f"{path} cannot be read: {reason}; is a quote not closed?") from None
    table.columns = [name or f"Unnamed: {index}" for index, name in enumerate(header)]
    return table.apply(_with_decimal_points) if separator == ";" else table


def _separator(text: str) -> str:
    """The separator that the first line has most of, outside quotes."""
    line = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").split("\n", 1)[0])
    return max(SEPARATORS, key=line.count)


def _check_rows(text: str, path: Path, separator: str) -> list[str]:
    """Check that all rows have the same number of cells; return the column names."""
    csv.field_size_limit(MAX_CELL_LENGTH)
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    header: list[str] = []
    try:
        for row in rows:
            if not header:
                header = [name.strip() for name in row]
            elif len(row) != len(header) and "".join(row).strip():
                raise ValueError(
                    f"{path}, line {rows.line_num} has {plural(len(row), 'cell')}, the first line "
                    f"has {len(header)}; quote text that contains {SEPARATORS[separator]}."
                )
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}; is a quote not closed?") from None
    names = [name for name in header if name]
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    if repeated:
        raise ValueError(f"{path} has two columns called {repeated[0]!r}; rename one of them.")
    return header


def _with_decimal_points(values: Any) -> Any:
    """Replace decimal commas by points, if every cell is a number."""
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
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, line {number} must be an object such as "
                f'{{"id": 1, "age": 20}}, got {line.strip()[:40]}.'
            )
        rows.append(row)
    return import_pandas().DataFrame(rows)


def _read_parquet(path: Path) -> Any:
    pandas = import_pandas()
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty.")
    try:
        return pandas.read_parquet(path)
    except ImportError:
        raise ValueError(
            f"{path} needs pyarrow to be read: pip install 'evengraph[parquet]'."
        ) from None
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(f"{path} cannot be read as Parquet: {reason}.") from None
