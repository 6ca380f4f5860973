"""Files made from a store: exported runs, and a report of its experiments."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evengraph.core.errors import first_line, short
from evengraph.core.files import csv_text, write_atomic
from evengraph.core.store import Row, Store
from evengraph.report.store.experiment_results import load_experiments
from evengraph.report.store.overview import write_overview
from evengraph.report.store.tables import latex, markdown, table_csv

PARTS = ("metrics", "seconds", "together", "memory", "criterion")  # of outcomes, in every row


def export_runs(rows: Sequence[Row], path: Path) -> int:
    """Write runs as CSV, JSON or Parquet, by the suffix of the path; returns their number."""
    flat = [row.flat() for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    if path.suffix == ".csv":
        write_atomic(csv_text(flat, names).encode(), path)
    elif path.suffix == ".json":
        content = [row.flat() | {"outcome": dict(row.outcome)} for row in rows]
        write_atomic((json.dumps(content, indent=1) + "\n").encode(), path)
    elif path.suffix == ".parquet":
        try:
            import pandas

            parquet = pandas.DataFrame(flat, columns=names).to_parquet(index=False)
        except ImportError:
            message = "Parquet needs pandas and pyarrow; try: pip install 'evengraph[parquet]'."
            raise ValueError(message) from None
        write_atomic(parquet, path)
    else:
        raise ValueError(f"path must end in .csv, .json or .parquet, got {path}.")
    return len(rows)


def write_report(
    store: Store, folder: Path, content: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write every table and figure of a store; returns the paths.

    Args:
        store: Where the experiments are.
        folder: Where the files go.
        content: As `render_overview` takes it.
    """
    from evengraph.report.store.figures import figures, save  # needs matplotlib

    with _named(store):
        loaded = load_experiments(store, parts=PARTS)
        experiments = [results for results in loaded if results.cells]
    if not experiments:
        raise ValueError(f"{store.path} holds no finished experiment.")
    for results in experiments:
        if not re.fullmatch(r"[\w+ -][\w.+ -]*", results.name):  # it names files in the folder
            raise ValueError(
                f"{store.path}: the name of an experiment must hold letters, digits, dots and "
                f"dashes, got {short(results.name)}."
            )
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for results in experiments:
        names = []
        with _named(store, f", experiment {results.name}"):
            for name, figure in figures(results):
                written += save(figure, folder / name)
                names.append(name)
                del figure
                gc.collect()  # a figure is a circle of objects, and takes tens of megabytes
            for kind, text in (("md", markdown(results, names)), ("tex", latex(results))):
                write_atomic(text.encode(), folder / f"{results.name}.{kind}")
                written.append(folder / f"{results.name}.{kind}")
    with _named(store):
        write_atomic(table_csv(experiments).encode(), folder / "tables.csv")
        write_overview(experiments, folder / "index.html", content)
    return [*written, folder / "tables.csv", folder / "index.html"]


@contextmanager
def _named(store: Store, part: str = "") -> Iterator[None]:
    """Turn an error about values of another kind than was written into a line with the store."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ValueError(
            f"{store.path}{part} cannot be drawn: a result is not as it was written ({reason})."
        ) from error
