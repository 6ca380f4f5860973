"""Where a prediction of a kept model came from, on the command line."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from evengraph.cli.attaching import NAMES, check_tables, columns_of_model, new_graph
from evengraph.cli.console import err, out
from evengraph.methods import Method
from evengraph.pipeline.explanation import Explanation, explain
from evengraph.pipeline.loading import load_model
from evengraph.report.explain.figure import write_explanation
from evengraph.tables import TableGraph, from_frames
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.open import both_tables

New = tuple[Path | None, Path | None]


def explain_node(
    model: Path,
    node: str,
    *,
    data: str | None,
    columns: dict[str, str | None],
    new: New,
    to: Path | None,
) -> None:
    """Say where the prediction of a node came from, and draw it."""
    if to is not None and to.suffix.lower() != ".svg":
        raise ValueError(f"--out takes a name that ends in .svg, got {to}.")
    if (new[0] is None) != (new[1] is None):
        raise ValueError("--new-nodes and --new-edges go together.")
    method = load_model(model)
    check_tables(method, model)
    own = _graph(method, data, columns, new)
    names = [str(one) for one in own.ids.tolist()]
    if node not in names:
        hint = "" if new[0] is not None else " A new one? Name --new-nodes and --new-edges."
        raise ValueError(f"There is no node {node!r}; ids are like {', '.join(names[:3])}.{hint}")
    found = explain(method, own.graph, names.index(node))
    show_explanation(found, names)
    if to is not None:
        write_explanation(found.as_dict(), names, to)
        out.print(f"wrote {escape(str(to))}", soft_wrap=True)


def _graph(method: Method, data: str | None, given: dict[str, str | None], new: New) -> TableGraph:
    """The graph that a model was trained on, with new nodes below the others if there are any."""
    trained = method.extra_.get("trained_on", {})
    place, edges = data, given.get("edges")
    if data is None:
        place = trained.get("data")
        edges = edges or trained.get("columns", {}).get("edges")
    if place is None:
        raise ValueError("Name the tables that the model was trained on with --data.")
    for path in (place, edges):
        if path is not None and not Path(path).expanduser().exists():
            raise ValueError(
                f"{path} is not there; name the tables that the model was trained on with --data: "
                "a folder, or a nodes table with --edges."
            )
    columns = columns_of_model(method) | {n: given[n] for n in NAMES if given.get(n) is not None}
    with err.status(f"reading {escape(place)}"):
        known = both_tables(place, edges)
        if new[0] is not None and new[1] is not None:
            return new_graph(method, (new[0], new[1]), known, columns)[0]
        encoder = FeatureEncoder.from_dict(method.extra_["encoder"])
        return from_frames(*known, **columns, encoder=encoder)


def show_explanation(found: Explanation, ids: list[str]) -> None:
    """A few sentences and a table of the labelled nodes that counted most."""
    names = found.class_names or tuple(str(n) for n in range(len(found.probabilities)))
    out.print(
        f"[bold]{escape(ids[found.node])}[/] is [bold]{escape(names[found.predicted])}[/] with "
        f"{100 * found.probability:.1f}%"
        + (f"; next is {escape(names[found.runner_up])}." if found.runner_up is not None else ".")
    )
    total = sum(abs(part) for part in (found.own, found.from_labelled, found.from_unlabelled)) or 1
    for words, part in (
        ("its own features", found.own),
        ("features of labelled nodes", found.from_labelled),
        ("features of other nodes", found.from_unlabelled),
    ):
        side = "for" if part >= 0 else "against"
        out.print(f"  {100 * abs(part) / total:3.0f}% {side} it: {words}")
    for cluster in found.clusters:
        known = ", ".join(
            f"{count} {escape(names[place])}"
            for place, count in enumerate(cluster.labelled)
            if count
        )
        out.print(
            f"  layer {cluster.layer}: one of {cluster.size:,} nodes of a cluster, labelled among "
            f"them: {known or 'none'}"
        )
    if found.labelled:
        out.print()
        out.print(_influences(found, ids, names))


def _influences(found: Explanation, ids: list[str], names: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("labelled node", "class", "steps away", "shared clusters", "speaks"):
        table.add_column(title, no_wrap=True)
    strongest = max(abs(one.contribution) for one in found.labelled) or 1
    for one in found.labelled:
        bar = "█" * max(round(10 * abs(one.contribution) / strongest), 1)
        table.add_row(
            escape(ids[one.node]),
            escape(names[one.label]),
            "no path" if one.distance is None else str(one.distance),
            ", ".join(f"layer {layer}" for layer in one.shared_clusters) or "–",
            f"[green]for {bar}[/]" if one.contribution > 0 else f"[red]against {bar}[/]",
        )
    return table
