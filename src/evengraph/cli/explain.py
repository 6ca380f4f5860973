"""evengraph explain: show where a prediction came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from evengraph.cli.console import err, out, print_written
from evengraph.cli.opening import check_names
from evengraph.cli.options import OWN_FILES, Align, Columns, column_options, former

if TYPE_CHECKING:
    from rich.table import Table

    from evengraph.pipeline.explanation import Explanation


HELP = {
    "known": "The known tables, if they have moved. Default: where they were in training.",
    "new_nodes": "The new tables given to predict, if the node is new.",
    "new_edges": "New edges table, if --new-nodes is a nodes table.",
}


@column_options("id", "source", "target")
def explain(
    model: Annotated[Path, Argument(help="Folder that evengraph run --save wrote.")],
    node: Annotated[str, Argument(help="Id of the node.")],
    columns: Columns,
    data: Annotated[str | None, Option("--known", help=HELP["known"])] = None,
    new_nodes: Annotated[Path | None, Option(help=HELP["new_nodes"])] = None,
    new_edges: Annotated[Path | None, Option(help=HELP["new_edges"])] = None,
    align: Align = True,
    to: Annotated[Path | None, Option("--out", help="SVG file to draw to.")] = None,
    edges: Annotated[
        str | None, Option("--known-edges", help="Known edges table.", rich_help_panel=OWN_FILES)
    ] = None,
    label: Annotated[str | None, former("is not needed: labels come from the model")] = None,
) -> None:
    """Show which columns, labelled nodes and clusters a prediction rests on, and draw them."""
    check_names(model=model)
    from evengraph.core.files import write_atomic
    from evengraph.pipeline.table_model import TableModel
    from evengraph.report.node_pictures import draw_explanation
    from evengraph.tables import UnknownNodeError
    from evengraph.tables.read import table_suffix

    if to is not None and to.suffix.lower() != ".svg":
        raise ValueError(f"--out takes a name that ends in .svg, got {to}.")
    if new_nodes is None and new_edges is not None:
        raise ValueError("--new-edges goes with --new-nodes, which names the table of new nodes.")
    if new_nodes is not None and new_edges is None and table_suffix(new_nodes):
        raise ValueError(f"--new-edges must name the edges table that belongs to {new_nodes}.")
    table_model = TableModel.load(model)
    trained_on = table_model.info.trained_on
    if data is None and edges is not None and trained_on is not None:
        data = trained_on.data
    known: Any = None if data is None else (data, edges)
    try:
        with err.status("explaining"):
            explanation = table_model.explain(
                node, nodes=new_nodes, edges=new_edges, known=known, columns=columns, align=align
            )
    except UnknownNodeError as error:
        if new_nodes is not None:
            raise
        raise ValueError(f"{error} A new one? Name --new-nodes and --new-edges.") from None
    show_explanation(explanation)
    if to is not None:
        write_atomic(draw_explanation(explanation.as_dict(), explanation.ids).encode(), to)
        print_written(to)


def show_explanation(explanation: Explanation) -> None:
    """Print the parts that a prediction is the sum of, by nodes, columns and clusters."""
    from evengraph.report.terminal import plain_table

    names = explanation.class_names or tuple(map(str, range(len(explanation.probabilities))))
    runner_up = explanation.runner_up
    out.print(
        f"[bold]{escape(explanation.id)}[/] is "
        f"[bold]{escape(names[explanation.predicted])}[/] with {100 * explanation.probability:.1f}%"
        + (f"; next is {escape(names[runner_up])}." if runner_up is not None else ".")
    )
    logit = f"logit of {names[explanation.predicted]}"
    if runner_up is not None:
        logit += f" minus that of {names[runner_up]}"
    known = "labelled nodes"
    if not sum(explanation.class_counts):
        known += ": no training node is in this graph"
    parts = {
        "the node itself": explanation.from_itself,
        known: explanation.from_labelled,
        "other nodes": explanation.from_unlabelled,
        "bias: what average nodes get": explanation.bias,
        f"sum: {logit}": explanation.margin,
    }
    for origin, value in parts.items():
        out.print(f"  {value:+z8.2f}  {escape(origin)}", soft_wrap=True)
    for cluster in explanation.clusters:
        labelled = ", ".join(
            f"{count} {escape(name)}"
            for name, count in zip(names, cluster.labelled, strict=True)
            if count
        )
        out.print(
            f"  layer {cluster.layer}: in a cluster of {cluster.size:,} nodes, labelled among "
            f"them: {labelled or 'none'}"
        )
    if explanation.columns:
        table = plain_table(("column", "of", "adds"))
        for part in explanation.columns:
            table.add_row(escape(part.name), escape(part.origin), f"{part.contribution:+z.2f}")
        table.add_row("all others", "", f"{explanation.other_columns:+z.2f}")
        out.print()
        out.print(table)
    if explanation.labelled:
        out.print()
        out.print(_influences(explanation, names))


def _influences(explanation: Explanation, names: tuple[str, ...]) -> Table:
    from evengraph.report.terminal import plain_table

    clusters = any(influence.shared_clusters for influence in explanation.labelled)
    heads = ("labelled node", "class", "steps away", *["shared clusters"] * clusters, "evidence")
    table = plain_table(heads)
    strongest = max(abs(influence.contribution) for influence in explanation.labelled) or 1
    for influence in explanation.labelled:
        bar = "█" * max(round(10 * abs(influence.contribution) / strongest), 1)
        shared = ", ".join(f"layer {layer}" for layer in influence.shared_clusters) or "–"
        table.add_row(
            escape(influence.id),
            escape(names[influence.label]),
            "no path" if influence.distance is None else str(influence.distance),
            *[shared] * clusters,
            f"[green]for {bar}[/]" if influence.contribution > 0 else f"[red]against {bar}[/]",
        )
    return table
