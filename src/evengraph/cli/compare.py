"""evengraph compare: several methods on the same splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import err, out, print_error, print_notes, print_sentence
from evengraph.cli.opening import check_folder
from evengraph.cli.options import (
    Columns,
    Data,
    DataRoot,
    Device,
    Settings,
    column_options,
    complete_methods,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data as Graph

    from evengraph.methods import Method
    from evengraph.pipeline.comparison import Comparison
    from evengraph.pipeline.executor import Job, OnEnd, Result
    from evengraph.pipeline.sources import GraphSource
    from evengraph.splits import SplitProtocol

NUM_SPLITS = 5
PROTOCOLS = ("natural", "semisupervised")
DEFAULT_METRICS = {"semisupervised": "positive_average_precision"}


Methods = Annotated[
    str | None,
    typer.Option(
        help="Such as gcn,unignn, or all. Default: GCN and the candidates of auto.",
        autocompletion=complete_methods,
    ),
]
Splits = Annotated[
    int | None, typer.Option(help="Number of random splits. Default: 5, or 10 with semisupervised.")
]
Imbalance = Annotated[
    str | None,
    typer.Option(
        help="Split protocol: natural or, for two classes, semisupervised (20 positive and 80 "
        "negative labels). Default: your split or time column, or natural."
    ),
]
NumFolds = Annotated[
    int | None,
    typer.Option(help="Cross-validation with this many folds, instead of random splits."),
]
Train = Annotated[
    float | None, typer.Option(help="Share for training. Default: 0.1, or 0.6 for your own files.")
]
Val = Annotated[
    float | None,
    typer.Option(help="Share for validation. Default: 0.1, or 0.2 for your own files."),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        help="Metric to compare by. Default: balanced_accuracy, or positive_average_precision "
        "with semisupervised."
    ),
]
Budget = Annotated[
    int, typer.Option(help="Hyperparameter settings to try per method; validation selects one.")
]
Positive = Annotated[
    str | None, typer.Option(help="Two classes: the positive one. Default: the rarer.")
]
At = Annotated[
    int | None,
    typer.Option(help="The k of precision at k. Default: the number of positive test nodes."),
]
TimeLimit = Annotated[
    str | None, typer.Option(help="Time after which to stop, such as 90, 10m or 2h.")
]
Jobs = Annotated[int, typer.Option(help="Number of worker processes.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for comparison.html, .csv and .json, and a page per method."
    ),
]


@column_options()
def compare(
    data: Data,
    columns: Columns,
    methods: Methods = None,
    splits: Splits = None,
    imbalance: Imbalance = None,
    folds: NumFolds = None,
    train: Train = None,
    val: Val = None,
    metric: MetricName = None,
    budget: Budget = 1,
    settings: Settings = None,
    positive: Positive = None,
    at: At = None,
    time_limit: TimeLimit = None,
    jobs: Jobs = 1,
    device: Device = "auto",
    data_root: DataRoot = None,
    to: Out = None,
) -> None:
    """Run several methods on the same splits, and test which is significantly better."""
    from evengraph.cli.opening import open_data, warn_of_gaps
    from evengraph.cli.options import parse_seconds
    from evengraph.core.machine import keep_freed_memory, pick_device
    from evengraph.pipeline import comparison as library
    from evengraph.pipeline.comparison import candidates
    from evengraph.training.loop import count_bar

    keep_freed_memory()
    source = open_data(data, data_root, columns)
    shares = {name: share for name, share in (("train", train), ("val", val)) if share is not None}
    protocol, seeds = _plan_splits(source, imbalance, splits, folds, shares)
    torch_device = pick_device(device)
    seconds = None if time_limit is None else parse_seconds(time_limit)
    entries = _make_methods(methods, settings or [], source.graph)
    if to is not None:
        check_folder(to)
    warn_of_gaps(protocol(source.graph, seed=seeds[0]))
    _announce(source, entries, protocol, len(seeds), torch_device.type)
    fits = sum(len(candidates(one, budget)) for one in entries.values()) * len(seeds)
    with count_bar("comparing", fits) as count:
        comparison = library.compare(
            source.graph,
            entries,
            protocol,
            seeds=seeds,
            budget=budget,
            metric=metric or DEFAULT_METRICS.get(imbalance or "", "balanced_accuracy"),
            positive=positive,
            k=at,
            device=torch_device,
            jobs=jobs,
            time_limit=seconds,
            on_end=_progress(count),
        )
    _show(comparison)
    _write(comparison, source, entries, protocol, to)
    _exit_status(comparison, entries, seconds)


def _progress(count: Callable[[], None]) -> OnEnd:
    """Counts each fit, and prints a line for it where no bar is drawn."""
    from evengraph.core.records import Record

    def on_end(job: Job, result: Result) -> None:
        count()
        if isinstance(result, Record) and not err.is_terminal:
            err.print(f"split {job.seed}: {job.method.full_title}, {result.seconds:.0f} s")

    return on_end


def _plan_splits(
    source: GraphSource,
    imbalance: str | None,
    splits: int | None,
    folds: int | None,
    given: Mapping[str, float],
) -> tuple[SplitProtocol, list[int]]:
    """A split protocol and its seeds; a split or time column decides on the protocol."""
    from evengraph.cli.options import make_protocol
    from evengraph.core.errors import unknown
    from evengraph.pipeline.parsing import MOST_SEEDS
    from evengraph.splits import DRAWS, Folds

    if imbalance not in (None, *PROTOCOLS):
        raise ValueError(unknown("imbalance", str(imbalance), PROTOCOLS))
    if folds is not None:
        options = {"--splits": splits, "--train": given.get("train"), "--imbalance": imbalance}
        for option, value in options.items():
            if value is not None:
                raise ValueError(f"--folds decides how many splits there are; leave {option} out.")
        shares = source.default_shares("natural") | dict(given)
        shares.pop("train", None)
        return Folds(folds=folds, **shares), list(range(folds))
    if imbalance is None and source.default_split not in ("given", "bytime"):
        imbalance = "natural"
    count = DRAWS.get(imbalance or "", NUM_SPLITS) if splits is None else splits
    if not 1 <= count <= MOST_SEEDS:
        raise ValueError(f"--splits must lie between 1 and {MOST_SEEDS}, got {count}.")
    if imbalance is not None:
        shares = source.default_shares(imbalance) | dict(given)
        return make_protocol(imbalance, shares), list(range(count))
    for name in given:
        raise ValueError(f"the split or the time column decides; leave --{name} out.")
    return source.make_split(), list(range(count))


def _make_methods(names: str | None, settings: Sequence[str], graph: Graph) -> dict[str, Method]:
    """Methods with the parameters given, and defaults that suit the graph."""
    from evengraph.cli.options import parse_methods, parse_settings
    from evengraph.methods import METHODS
    from evengraph.pipeline.comparison import default_entries

    default = default_entries(graph)
    used = dict.fromkeys(type(method).__name__.lower() for method in default.values())
    labels = parse_methods(names) if names else list(used)
    params, sentences = parse_settings(labels, settings)
    print_notes(sentences)
    if not names:
        return default_entries(graph, params)
    return {
        name: METHODS[name](**{**METHODS[name].graph_defaults(graph), **params[name]})
        for name in labels
    }


def _announce(
    source: GraphSource,
    entries: dict[str, Method],
    protocol: SplitProtocol,
    splits: int,
    device: str,
) -> None:
    from evengraph.methods import Method
    from evengraph.pipeline.published import PAPER
    from evengraph.splits import Folds, Natural, SemiSupervised

    titles = ", ".join(method.full_title for method in entries.values())
    how = f"{splits} {'split' if splits == 1 else 'splits'}"
    if isinstance(protocol, Natural):
        how += f" (train={protocol.train:g}, val={protocol.val:g})"
    elif isinstance(protocol, SemiSupervised):
        how += f" ({protocol.positives} positive and {protocol.negatives} negative labels)"
    elif isinstance(protocol, Folds):
        how = f"{protocol.folds}-fold cross-validation"
    else:
        how = f"the given split, {splits} random initialisations"
    out.print(f"[bold]{escape(titles)}[/] on [bold]{escape(source.name)}[/], {how}, on {device}")
    patience = Method.patience
    if all(method.patience == patience for method in entries.values()):
        out.print(
            f"[dim]Training stops after {patience} epochs without a better validation score; the "
            f"paper uses {PAPER['patience']} (--set patience={PAPER['patience']}).[/]"
        )
    methods, graph = entries.values(), source.graph
    sentences = [method.describe_defaults(graph) for method in methods]
    sentences += [method.describe_edges(graph) for method in methods]
    for sentence in dict.fromkeys(filter(None, sentences)):
        out.print(f"[dim]{escape(sentence)}[/]")


def _show(comparison: Comparison) -> None:
    from evengraph.report.terminal import comparison_notes, comparison_tables

    content = comparison.as_dict()
    out.print()
    print_sentence(f"[bold]{escape(' '.join(comparison.verdict.sentences))}[/]")
    for table in comparison_tables(content):
        out.print()
        out.print(table)
    out.print()
    print_notes(comparison_notes(content))


def _write(
    comparison: Comparison,
    source: GraphSource,
    entries: dict[str, Method],
    protocol: SplitProtocol,
    folder: Path | None,
) -> None:
    """Write the comparison, and a page of each method."""
    from evengraph.cli.run import RunFiles
    from evengraph.pipeline.run import RunPlan, method_result

    if folder is None:
        print_notes(["Nothing was written; --out DIR writes a page, CSV and JSON."])
        return
    plan = RunPlan(
        dataset=source.name,
        graph=source.graph,
        imbalance=type(protocol).__name__.lower(),
        protocol=protocol,
        methods={one.label: entries[one.label] for one in comparison.standings},
        seeds=comparison.seeds,
    )
    files = RunFiles(folder, plan, source)
    task = protocol(source.graph, seed=comparison.seeds[-1])
    for one in comparison.standings:
        result = method_result(plan, one.label, one.records, task, comparison.environment)
        files.write(one.label, result)
    out.print(files.write_comparison(comparison), soft_wrap=True)


def _exit_status(
    comparison: Comparison, entries: dict[str, Method], time_limit: float | None
) -> None:
    """Print what is missing; the exit status is 130 after Ctrl-C, 2 after a failure."""
    for label, reason in comparison.failed.items():
        print_error(ValueError(reason), prefix=f"{entries[label].full_title} did not run: ")
    if comparison.stopped:
        done = f"{len(comparison.seeds)} of {comparison.wanted} splits are counted"
        err.print(f"{'Time ran out' if time_limit else 'Stopped'}: {done}.")
        if time_limit is None:
            raise typer.Exit(130)
    if comparison.failed:
        raise typer.Exit(2)
