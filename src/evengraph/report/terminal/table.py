"""The look of tables in the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rich.table import Table

from evengraph.metrics import METRICS, Metric


def plain_table(
    names: Iterable[str], values: Iterable[str] = (), *, dim: Collection[str] = (), gap: int = 2
) -> Table:
    """Start a table without rules: columns of names wrap where room is short, values never do.

    `dim` are the values in a weaker colour, `gap` is the number of spaces between columns.
    """
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in values:
        style = "dim" if name in dim else None
        table.add_column(name, justify="right", style=style, no_wrap=True)
    return table


def two_class_metrics(values: Sequence[Mapping[str, object]]) -> list[Metric]:
    """Metrics of tables about two classes, among those that there are values of.

    Recall at k is left out where it equals precision at k: where k is the number of positives.
    """
    equal = all(each.get("recall_at_k") == each.get("precision_at_k") for each in values)
    return [
        metric
        for name, metric in METRICS.items()
        if metric.column
        and (metric.binary or metric.ranking)
        and all(name in each for each in values)
        and not (name == "recall_at_k" and equal)
    ]
