"""evengraph explain: show where a prediction came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from evengraph.cli.console import err, out, print_sentence, print_written
from evengraph.cli.opening import check_names, check_tables
from evengraph.cli.options import OWN_FILES, Align, Columns, column_options
from evengraph.core.errors import ArgumentError

if TYPE_CHECKING:
    from rich.table import Table

    from evengraph.pipeline.explanation import Explanation


HELP = {
    "known": "The known tables, if they have moved. Default: where they were in training.",
    "new_nodes": "The new tables given to predict, if the node is new.",
    "details": "Also print the parts that add up to the logit.",
    "new_edges": "New edges table, if --new-nodes is a nodes table.",
    "new_tables": "New tables of other kinds, as --tables of predict.",
    "known_tables": "Known tables of other kinds.",
}


@column_options("id", "source", "target")
def explain(
    model: Annotated[Path, Argument(help="Folder that evengraph run --save wrote.")],
    node: Annotated[str, Argument(help="Id of the node.")],
    columns: Columns,
    data: Annotated[str | None, Option("--known", help=HELP["known"])] = None,
    new_nodes: Annotated[Path | None, Option(help=HELP["new_nodes"])] = None,
    new_edges: Annotated[str | None, Option(help=HELP["new_edges"])] = None,
    new_tables: Annotated[str | None, Option(help=HELP["new_tables"])] = None,
    align: Align = True,
    to: Annotated[Path | None, Option("--out", help="SVG file to draw to.")] = None,
    edges: Annotated[
        str | None, Option("--known-edges", help="Known edges table.", rich_help_panel=OWN_FILES)
    ] = None,
    known_tables: Annotated[
        str | None, Option(help=HELP["known_tables"], rich_help_panel=OWN_FILES)
    ] = None,
    details: Annotated[bool, Option("--details", help=HELP["details"])] = False,
) -> None:
    """Show which columns and labelled nodes a prediction rests on, and draw them."""
    check_names(model=model)
    from evengraph.core.files import write_atomic
    from evengraph.pipeline.table_model import TableModel
    from evengraph.report.node_pictures import draw_explanation
    from evengraph.tables import UnknownNodeError

    if to is not None and to.suffix.lower() != ".svg":
        raise ValueError(f"--out takes a name that ends in .svg, got {to}.")
    table_model = TableModel.load(model)
    check_tables(table_model, new_nodes, new_edges, new_tables, whose="new")
    trained_on = table_model.info.trained_on
    if data is None and (edges or known_tables) and trained_on is not None:
        data = trained_on.data
    known = check_tables(table_model, data, edges, known_tables)
    given: dict[str, Any] = {"nodes": new_nodes, "edges": new_edges, "tables": new_tables}
    try:
        with err.status("explaining"):
            explanation = table_model.explain(
                node, **given, known=known, columns=columns, align=align
            )
    except ArgumentError as error:
        if error.argument in ("tables", "edges"):
            error.argument = f"{'known' if new_nodes is None else 'new'}-{error.argument}"
        raise
    except UnknownNodeError as error:
        if new_nodes is not None:
            raise
        raise ValueError(f"{error} A new one? Name --new-nodes and --new-edges.") from None
    show_explanation(explanation, details)
    if (found := table_model.info.calibrator) is not None and not all(found.reliable):
        print_sentence(escape(found.describe(table_model.classes_)))
    if to is not None:
        write_atomic(draw_explanation(explanation.as_dict(), explanation.ids).encode(), to)
        print_written(to)


def show_explanation(explanation: Explanation, details: bool = False) -> None:
    """Print why a node has its probability: columns with their values, and labelled nodes."""
    from evengraph.report.node_pictures import neighbour_words, verdict
    from evengraph.report.terminal import plain_table

    content = explanation.as_dict()
    about = explanation.name(explanation.about)
    out.print(f"[bold]{escape(verdict(content))}[/]", soft_wrap=True)
    print_sentence(escape(neighbour_words(content)))
    if explanation.reasons:
        table = plain_table(("column", "value", "usual", ""))
        strongest = max(abs(reason.contribution) for reason in explanation.reasons)
        for reason in explanation.reasons:
            words = (reason.title, reason.value, reason.typical)
            table.add_row(*map(escape, words), _bar(reason.contribution, strongest, about))
        out.print()
        out.print(table)
    if explanation.labelled:
        out.print()
        out.print(_influences(explanation, about))
    if (check := explanation.check) is not None:
        text = f"Check: without {check.reason}, the model predicts {about} with "
        text += f"{100 * check.measured:.1f}%; its bar implies {100 * check.stated:.1f}%."
        out.print()
        print_sentence(escape(text))
    if details:
        _show_details(explanation)


def _show_details(explanation: Explanation) -> None:
    """Print the parts that the margin is the sum of, by nodes."""
    parts = {
        "the node itself": explanation.from_itself,
        "labelled nodes": explanation.from_labelled,
        "other nodes": explanation.from_unlabelled,
        "bias: what average nodes get": explanation.bias,
        f"sum: logit of {explanation.name(explanation.about)} minus that of the next class": (
            explanation.margin
        ),
    }
    out.print()
    for origin, value in parts.items():
        out.print(f"  {value:+z8.2f}  {escape(origin)}", soft_wrap=True)


def _influences(explanation: Explanation, about: str) -> Table:
    from evengraph.report.terminal import plain_table

    table = plain_table(("labelled node", "class", "steps away", ""))
    strongest = max(abs(influence.contribution) for influence in explanation.labelled)
    for influence in explanation.labelled:
        table.add_row(
            escape(influence.id),
            escape(explanation.name(influence.label)),
            "no path" if influence.distance is None else str(influence.distance),
            _bar(influence.contribution, strongest, about),
        )
    return table


def _bar(value: float, strongest: float, about: str) -> str:
    bar = "█" * max(round(10 * abs(value) / strongest), 1)
    return f"[green]{bar} for {escape(about)}[/]" if value > 0 else f"[red]{bar} against[/]"
