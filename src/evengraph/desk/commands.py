"""evengraph suggest and evengraph desk."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from getpass import getuser
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import err, out, print_notes, print_sentence, print_written
from evengraph.cli.opening import check_names
from evengraph.cli.options import Columns, Data, column_options

if TYPE_CHECKING:
    from evengraph.desk import LearningCurve, Suggestions
    from evengraph.desk.desk import Desk
    from evengraph.desk.label_file import LabelFile
    from evengraph.desk.nodes import DeskNodes

Classes = Annotated[
    str | None,
    typer.Option(help="Further classes that nobody has labelled yet, such as honest,fraud."),
]


def _split(classes: str | None) -> list[str]:
    return [name.strip() for name in (classes or "").split(",") if name.strip()]


@column_options()
def suggest(
    data: Annotated[
        str,
        typer.Argument(
            help="A model folder that evengraph run --save wrote, or DATA as in run, with some "
            "nodes unlabelled.",
            metavar="MODEL_OR_DATA",
        ),
    ],
    columns: Columns,
    budget: Annotated[int, typer.Option(help="How many nodes to suggest.")] = 20,
    strategy: Annotated[str, typer.Option(help="default, random or uncertainty.")] = "default",
    classes: Classes = None,
    known: Annotated[
        str | None, typer.Option(help="For a model: its tables, if they have moved.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    to: Annotated[Path | None, typer.Option("--out", help="CSV file to write to.")] = None,
) -> None:
    """Suggest which nodes to label next, with reasons, and what more labels would bring."""
    check_names(data)
    from evengraph.cli.opening import check_folder, split_lists
    from evengraph.core.files import csv_text, write_atomic
    from evengraph.desk import Pool, learning_curve, suggest

    if to is not None:
        if to.suffix.lower() != ".csv":
            raise ValueError(f"--out takes a name that ends in .csv, got {to}.")
        check_folder(to.parent)
    with err.status(f"reading {escape(data)}"):
        pool = Pool.open(data, known=known, classes=_split(classes), **split_lists(columns))
    with err.status("choosing"), redirect_stdout(sys.stderr):  # a plugin may print
        found = suggest(pool, budget, strategy, seed=seed)
        expected = learning_curve(pool, seed=seed)
    if to is not None:
        write_atomic(csv_text([asdict(node) for node in found.nodes]).encode(), to)
    if json:
        content = found.as_dict() | {"curve": None if expected is None else expected.as_dict()}
        out.print(dumps(content, indent=1), soft_wrap=True, markup=False)
    else:
        _show(found)
        _show_curve(expected)
    if to is not None:
        print_written(to, console=err if json else out)


def _show(found: Suggestions) -> None:
    from evengraph.report.terminal import plain_table

    labels = ", ".join(f"{name} {count:,}" for name, count in found.labelled.items() if count)
    print_sentence(
        f"[bold]Label these {len(found.nodes)} next[/], of {found.unlabelled:,} without a label. "
        f"[dim]Labels so far: {escape(labels) or 'none'}.[/]"
    )
    if found.model:
        print_notes([f"Probabilities: {found.model}; it weighs all classes alike."])
    print_notes(found.notes)
    table = plain_table(["", "id", "why"])
    for rank, node in enumerate(found.nodes, start=1):
        table.add_row(str(rank), escape(str(node.id)), escape(node.reason))
    out.print()
    out.print(table)


def _show_curve(curve: LearningCurve | None) -> None:
    from evengraph.desk.curve import SCORED, TOO_FEW_LABELS
    from evengraph.report.terminal import plain_table

    out.print()
    if curve is None:
        print_notes([f"{TOO_FEW_LABELS} Label what is listed and ask again."])
        return
    table = plain_table(["labels"], ["balanced accuracy", "80% interval", "more than now"])
    for point in (curve.now, *curve.expected):
        more = point.labels - curve.now.labels
        table.add_row(
            f"{point.labels:,}" + (f" (+{more})" if more else " (now)"),
            f"{point.score:.0f}%",
            f"{point.low:.0f} to {point.high:.0f}",
            f"{point.gain:+.1f}" if more else "",
        )
    out.print(table)
    print_notes([SCORED])
    print_sentence(f"[bold]{escape(curve.advice)}[/]")
    print_notes(curve.unknown)


@column_options()
def desk(
    data: Data,
    columns: Columns,
    classes: Classes = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="SQLite file for the labels. Default: named after DATA and the label column."
        ),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method to train on the labels.")] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Time limit of one training run of auto, such as 30s or 5m.")
    ] = None,
    retrain_every: Annotated[
        int, typer.Option(help="Retrain after this many labels; 0 for never.", min=0, metavar="N")
    ] = 10,
    hide_guess: Annotated[
        bool, typer.Option("--hide-guess", help="Hide the model's guess until you have answered.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(help="Triage: review the suspects of a model that run --save wrote."),
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="With --model: the class to find. Default: the rarer of two.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the labelled table to a .csv or .parquet file and exit."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.", min=0, metavar="N")] = 0,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Label nodes in the browser, the most useful first, while a model learns from them."""
    check_names(data)
    from evengraph.cli.opening import split_lists
    from evengraph.cli.options import parse_seconds
    from evengraph.core.errors import unknown
    from evengraph.desk.server import import_server
    from evengraph.methods import DEFAULT_METHOD
    from evengraph.pipeline.parameters import known_method

    if find is not None and model is None:
        raise ValueError("--find goes with --model.")
    if export is None:
        import_server()  # fails before tables are read
    seconds = 0.0 if time_limit is None else parse_seconds(time_limit)
    name = known_method(method or DEFAULT_METHOD)
    with err.status(f"reading {escape(data)}"):
        from evengraph.desk.desk import Desk, Triage
        from evengraph.desk.label_file import LabelFile
        from evengraph.desk.nodes import open_for_model, open_nodes
        from evengraph.desk.training import DeskOptions
        from evengraph.pipeline.table_model import TableModel

        if model is None:
            arguments = split_lists(columns)
            nodes = open_nodes(data, arguments, classes=_split(classes))
        else:
            table_model = TableModel.load(model)
            columns.pop("label", None)  # the model knows it
            edges = columns.pop("edges", None)
            nodes, rows = open_for_model(table_model, data, edges, columns)
        stem = re.sub(r"[^\w.-]+", "_", f"{nodes.name}-{nodes.column}")
        path = labels or Path(f"{stem}.labels.sqlite")
        folder = model or path.with_name(f"{path.name.removesuffix('.sqlite')}.model")
        options = DeskOptions(
            method=name,
            time_limit=seconds,
            retrain_every=retrain_every,
            hide_guess=hide_guess,
            folder=folder.resolve(),
        )
        file = LabelFile(path, nodes.column)
    print_notes(nodes.notes, err)
    if export is not None:
        _export(nodes, file, export)
        return
    if model is None:
        made = Desk(nodes, file, options, _split(classes))
        if len(made.classes) < 2:
            raise ValueError("There must be at least two classes to label; name them: --classes.")
    else:
        threshold, known = table_model.threshold, table_model.classes_
        if find is None:
            if threshold is None:
                raise ValueError("The model has more than two classes; name the one to --find.")
            find = known[threshold.positive]
        if find not in known:
            raise ValueError(unknown("class", find, known))
        made = Triage(nodes, file, options, table_model.method_, find, rows)
    with err.status("ranking"):
        made.start()
    if not made.queue:
        made.close()  # training may have begun
        raise ValueError(f"Every node of {nodes.name} has a label already.")
    _serve(made, port, open_page and sys.stdout.isatty())


def _export(nodes: DeskNodes, file: LabelFile, path: Path) -> None:
    from evengraph.desk.label_file import Answers
    from evengraph.desk.nodes import labelled_table, write_table

    answers = Answers(file.events())
    write_table(labelled_table(nodes, answers), path)
    print_written(path)
    inside = sum(id in nodes.rows for id in answers.labels())
    strange = len(answers.labels()) - inside
    lost = f"; {strange:,} are of nodes that the table does not have" if strange else ""
    print_sentence(f"{inside:,} labels from {escape(str(file.path))}{lost}")


def _serve(made: Desk, port: int, open_page: bool) -> None:
    import webbrowser

    from evengraph.desk.server import Access, free_socket, serve

    try:
        who = getuser()  # the page can change it
    except (OSError, KeyError):  # a container without users
        who = "somebody"
    listener = free_socket(port)
    access = Access(listener.getsockname()[1], who)
    print_sentence(f"labels: {escape(str(made.file.path))}, {len(made.answers.all()):,} so far")
    out.print(f"desk:   {access.address}", soft_wrap=True)
    print_notes(["Ctrl-C stops it; every answer is saved at once."], err)
    if open_page:
        webbrowser.open(access.one_time_address())
    serve(made, access, listener)


def serve(
    model: Annotated[Path, typer.Argument(help="A model folder that evengraph run --save wrote.")],
    known: Annotated[
        str | None,
        typer.Option(help="Known folder or nodes table. Default: the tables of training."),
    ] = None,
    known_edges: Annotated[
        str | None, typer.Option(help="Edges table, if --known is a nodes table.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.", min=0, metavar="N")] = 8750,
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token of requests. Default: a new one, which is printed."),
    ] = None,
    queue: Annotated[int, typer.Option(help="Requests that may wait.", min=1, metavar="N")] = 32,
) -> None:
    """Score new nodes by HTTP: JSON in, probabilities, flags and reasons out."""
    from secrets import token_urlsafe
    from threading import Event, Thread

    from evengraph.desk.server import HOST, free_socket, impatient_server, import_server
    from evengraph.desk.service import Limits, Service, make_app

    import_server()  # fails before tables are read
    token = token_urlsafe(24) if token_file is None else token_file.read_text().strip()
    if len(token) < 16 or not token.isascii():
        raise ValueError(f"{token_file} must hold a token of at least 16 ASCII characters.")
    if known is None and known_edges is not None:
        raise ValueError("--known-edges goes with --known, which names the nodes table.")
    with err.status("reading"):
        tables = None if known is None else (known, known_edges)
        service = Service(model, tables, Limits(queue=queue))
    listener = free_socket(port, host)
    port = listener.getsockname()[1]
    names = (f"{HOST}:{port}", f"localhost:{port}") if host == HOST else ()
    out.print(f"page:   http://{host}:{port}/?token={token}", soft_wrap=True, markup=False)
    out.print(f"header: Authorization: Bearer {token}", soft_wrap=True, markup=False)
    if service.served.scorer.whole:
        titles = escape(", ".join(service.served.scorer.whole))
        print_notes([f"Slow: {titles} need the whole graph for every request."], err)
    print_notes(["Ctrl-C stops it; a model that replaces this one is loaded."], err)
    stop = Event()
    Thread(target=service.watch, args=(stop,), daemon=True).start()
    try:
        with suppress(KeyboardInterrupt):
            impatient_server(make_app(service, token, names)).run(sockets=[listener])
    finally:
        stop.set()
