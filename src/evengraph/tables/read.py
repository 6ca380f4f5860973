"""Tables from files: CSV, tab-separated, JSON-lines and Parquet, with complaints that name lines.

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

from evengraph.tables.cells import need_pandas

TEXT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES), ".parquet")
"""What a table's file name may end in."""

SEPARATORS = (",", ";", "\t")
LONGEST_CELL = 2**31 - 1


def read_table(path: str | Path) -> Any:
    """Read a file into a pandas DataFrame; its name is kept in `attrs["file"]`.

    The kind is told by the suffix: .csv (separated by comma, semicolon or tab, whichever the first
    line has most of), .tsv, .jsonl or .ndjson, each also with .gz, and .parquet. Text must be
    UTF-8. Cells of CSV stay text as it stands: whether 1.50 is a quantity, an id or a name is for
    those to say who know what the column is, and must not depend on the other rows of a file.
    """
    path = Path(path)
    suffix = table_suffix(path)
    if not suffix:
        raise ValueError(
            f"{path} cannot be read as a table; its name must end in {', '.join(TABLE_SUFFIXES)}."
        )
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what}.")
    if suffix == ".parquet":
        table = _read_parquet(path)
    elif suffix.startswith((".jsonl", ".ndjson")):
        table = _read_json_lines(_text(path), path)
    else:
        table = _read_csv(_text(path), path, "\t" if suffix.startswith(".tsv") else None)
    table.attrs["file"] = str(path)
    return table


def table_suffix(path: Path) -> str:
    """The suffix that tells the kind of a table; empty if it is none."""
    name = path.name.lower()
    return max((s for s in TABLE_SUFFIXES if name.endswith(s)), key=len, default="")


def _text(path: Path) -> str:
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
        raise ValueError(f"{path}, line {line} holds a zero byte: this is not a text table.")
    return text


def _read_csv(text: str, path: Path, separator: str | None) -> Any:
    separator = separator or _separator(text)
    header = _check_rows(text, path, separator)
    pandas = need_pandas()
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
    return table.apply(_with_points) if separator == ";" else table


def _separator(text: str) -> str:
    """The separator that the first line has most of, outside quotes."""
    line = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").split("\n", 1)[0])
    return max(SEPARATORS, key=line.count)


def _check_rows(text: str, path: Path, separator: str) -> list[str]:
    """The names of the columns, once every row is known to have as many cells."""
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    header: list[str] = []
    try:
        for row in rows:
            if not header:
                header = [name.strip() for name in row]
            elif len(row) != len(header) and "".join(row).strip():
                cells = f"{len(row)} cell{'s' if len(row) != 1 else ''}"
                raise ValueError(
                    f"{path}, line {rows.line_num} has {cells}, the first line has "
                    f"{len(header)}; put text that holds {_called(separator)} into quotes."
                )
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}; is a quote not closed?") from None
    named = [name for name in header if name]
    again = [name for index, name in enumerate(named) if name in named[:index]]
    if again:
        raise ValueError(f"{path} has two columns called {again[0]!r}; rename one of them.")
    return header


def _with_points(values: Any) -> Any:
    """A column of numbers with decimal commas as text with points; any other as it is."""
    full = values.dropna().str.strip()
    if not len(full) or not full.str.fullmatch(r"[+-]?\d*(,\d+)?([eE][+-]?\d+)?").all():
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
    return need_pandas().DataFrame(rows)


def _read_parquet(path: Path) -> Any:
    pandas = need_pandas()
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


def _called(separator: str) -> str:
    return {",": "a comma", ";": "a semicolon", "\t": "a tab"}[separator]
