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

from evengraph.data.values import EMPTY_NUMBERS, need_pandas

TEXT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES), ".parquet")
"""What a table's file name may end in."""

SEPARATORS = (",", ";", "\t")
LONGEST_EXACT = 2**53
_WHOLE = r"[+-]?\d+"


def read_table(path: str | Path) -> Any:
    """Read a file into a pandas DataFrame; its name is kept in `attrs["file"]`.

    The kind is told by the suffix: .csv (separated by comma, semicolon or tab, whichever the first
    line has most of), .tsv, .jsonl or .ndjson, each also with .gz, and .parquet. Text must be
    UTF-8. In CSV, a column is numbers when every cell is one and none begins with a zero (007 is
    an id); true and false are booleans; the rest is text as it stands.
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
    comma = separator == ";"
    return pandas.DataFrame({name: _converted(table[name], comma) for name in table.columns})


def _separator(text: str) -> str:
    """The separator that the first line has most of, outside quotes."""
    line = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").split("\n", 1)[0])
    return max(SEPARATORS, key=line.count)


def _check_rows(text: str, path: Path, separator: str) -> list[str]:
    """The names of the columns, once every row is known to have as many cells."""
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


def _converted(values: Any, decimal_comma: bool) -> Any:
    """A column of text as numbers or booleans where every cell is one."""
    pandas = need_pandas()
    text = values.str.strip()
    gone = (text.isna() | text.str.lower().isin(EMPTY_NUMBERS)).to_numpy(bool)
    full = text[~gone]
    if not len(full) or full.str.match(r"[+-]?0\d").any():
        return values
    if full.str.lower().isin(("true", "false")).all():
        truth = text.str.lower() == "true"
        return truth.astype(bool) if not gone.any() else truth.astype(object).where(~gone, None)
    if decimal_comma and full.str.fullmatch(r"[+-]?\d*(,\d+)?([eE][+-]?\d+)?").all():
        full = full.str.replace(",", ".")
    found = pandas.to_numeric(full, errors="coerce")
    if found.isna().any():
        return values
    # whole numbers that a float would round are names, not quantities
    floats = found.dtype.kind != "i" or bool(gone.any())
    if floats and full.str.fullmatch(_WHOLE).all() and (found.abs() > LONGEST_EXACT).any():
        return values
    return found.reindex(values.index) if gone.any() else found


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
