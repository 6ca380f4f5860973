"""evengraph monitor: how a saved model fares on new nodes."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from evengraph.cli.console import err, out, print_notes, print_sentence, print_written
from evengraph.cli.opening import check_folder, check_names, check_tables, open_new
from evengraph.cli.options import COLUMN_HELP
from evengraph.cli.predict import HELP


def monitor(
    model: Annotated[Path, Argument(help=HELP["model"])],
    data: Annotated[Path, Argument(help=HELP["data"], metavar="NEW")],
    edges: Annotated[str | None, Argument(help=HELP["edges"])] = None,
    known: Annotated[str | None, Option(help=HELP["known"], metavar="PATH")] = None,
    known_edges: Annotated[str | None, Option(help=HELP["known_edges"])] = None,
    tables: Annotated[str | None, Option(help=COLUMN_HELP["tables"])] = None,
    known_tables: Annotated[str | None, Option(help=HELP["known_tables"])] = None,
    labels: Annotated[
        Path | None, Option(help="Table with the labels that came back: ids and classes.")
    ] = None,
    label: Annotated[str | None, Option(help="Its label column. Default: as in training.")] = None,
    time: Annotated[
        str | None, Option(help="Column of NEW with times, for alarms per period.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    to: Annotated[
        Path | None, Option("--out", help="Folder for monitor.json and monitor.html.")
    ] = None,
) -> None:
    """Compare new nodes with training: drift, alarms, labels that came back, when to refit."""
    check_names(data, model=model)
    from evengraph.core.files import write_json
    from evengraph.pipeline.predictions import monitor, read_labels
    from evengraph.pipeline.table_model import TableModel
    from evengraph.report.monitor_page import render_monitor
    from evengraph.report.page import write_html
    from evengraph.tables.open import read_nodes_table

    if to is not None:
        check_folder(to)
    table_model = TableModel.load(model)
    columns = table_model.info.columns
    before = check_tables(table_model, known, known_edges, known_tables)
    new = open_new(table_model, data, edges, before, tables=tables)
    table, name = read_nodes_table(str(data)), time or columns.time
    if time is not None and (table is None or time not in table.columns):
        raise ValueError(f"{data} has no column {time!r}.")
    times = table[name] if table is not None and name in table.columns else None
    back = None if labels is None else read_labels(labels, columns.id, label or columns.label)
    if back is not None and table_model.info.decision is None:
        raise ValueError("--labels needs a model of two classes, which flags nodes.")
    with err.status("predicting"), redirect_stdout(sys.stderr):  # a plugin may print
        content = monitor(table_model, new, times=times, labels=back)
    if json:
        out.print(dumps(content, indent=1), soft_wrap=True, markup=False)
    else:
        _show(content)
    if to is not None:
        paths = to / "monitor.json", to / "monitor.html"
        write_json(content, paths[0])
        write_html(render_monitor(content, model.resolve().name), paths[1])
        print_written(*paths, console=err if json else out)


def _show(content: dict[str, Any]) -> None:
    """Print what to do, labels that came back, alarms and drift."""
    from evengraph.report.terminal import plain_table

    print_sentence(f"[bold]{escape(' '.join(content['advice']))}[/]")
    if (found := content["labels"]) is not None:
        print_sentence(escape(f"Labels that came back: {found['words']}."))
        for text in found["ignored"]:
            print_sentence(f"Warning: {escape(text)}", err)
        if found["before"]:
            print_sentence(escape(f"On held-out nodes of training: {found['before']}."))
        if not found["unflagged"]:
            text = "Recall needs labels of nodes that were not flagged, and none came back."
            print_notes([text])
    if (alarms := content["alarms"]) is not None:
        heads = [f"alarms of {escape(alarms['class'])}", "nodes", "alarms", "share", "95% interval"]
        table = plain_table(heads[:1], heads[1:])
        for one in ({"period": "all", **alarms}, *content["periods"]):
            ends = one["interval"] or (0.0, 1.0)
            share = f"{one['alarms'] / max(one['nodes'], 1):.1%}"
            words = (f"{one['nodes']:,}", f"{one['alarms']:,}", share)
            table.add_row(escape(one["period"]), *words, f"{ends[0]:.1%} to {ends[1]:.1%}")
        if alarms.get("expected") is not None:
            table.add_row("held-out nodes of training", "", "", f"{alarms['expected']:.1%}", "")
        out.print()
        out.print(table)
    out.print()
    for sentence in content["drift"] or ["Nothing differs clearly from training."]:
        print_sentence(escape(sentence))
