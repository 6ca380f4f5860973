"""evengraph compare: several methods on the same splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from evengraph.cli.console import print_notes
from evengraph.cli.opening import check_names
from evengraph.cli.options import (
    BENCHMARKS,
    Columns,
    Data,
    Device,
    Settings,
    Train,
    Val,
    column_options,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data as Graph

    from evengraph.methods import Method
    from evengraph.pipeline.sources import GraphSource
    from evengraph.splits import SplitProtocol

PROTOCOLS = ("natural", "semisupervised")
DEFAULT_METRICS = {"semisupervised": "positive_average_precision"}

HELP = {
    "method": "Such as gcn,unignn, or all. Default: GCN and the candidates of auto.",
    "splits": "How many random splits, or which, such as 5,6,7. Default: 5, or 10 with "
    "semisupervised.",
    "split": "Split protocol: natural or, for two classes, semisupervised (20 positive and 80 "
    "negative labels). Default: your split or time column, or natural.",
    "folds": "Cross-validation with this many folds, instead of random splits.",
    "metric": "Metric to compare by. Default: balanced_accuracy, or positive_average_precision "
    "with semisupervised.",
    "budget": "Hyperparameter settings to try per method; validation selects one.",
    "positive": "Two classes: the positive one. Default: the rarer.",
    "time_limit": "Time after which to stop, such as 90, 10m or 2h.",
    "out": "Folder for comparison.html, .csv and .json, and a page per method.",
}


@column_options()
def compare(
    data: Data,
    columns: Columns,
    method: Annotated[str | None, Option(help=HELP["method"])] = None,
    splits: Annotated[str | None, Option(help=HELP["splits"])] = None,
    split_name: Annotated[
        str | None, Option("--split", help=HELP["split"], rich_help_panel=BENCHMARKS)
    ] = None,
    folds: Annotated[int | None, Option(help=HELP["folds"])] = None,
    train: Train = None,
    val: Val = None,
    metric: Annotated[str | None, Option(help=HELP["metric"])] = None,
    budget: Annotated[int, Option(help=HELP["budget"])] = 1,
    settings: Settings = None,
    positive: Annotated[str | None, Option(help=HELP["positive"])] = None,
    time_limit: Annotated[str | None, Option(help=HELP["time_limit"])] = None,
    jobs: Annotated[int, Option(help="Number of worker processes.")] = 1,
    device: Device = "auto",
    to: Annotated[Path | None, Option("--out", help=HELP["out"])] = None,
) -> None:
    """Run several methods on the same splits, and test which is significantly better."""
    check_names(data)
    from evengraph.cli.opening import open_data, warn_of_gaps
    from evengraph.cli.options import parse_seconds
    from evengraph.cli.training import train_methods
    from evengraph.core.machine import keep_freed_memory, pick_device
    from evengraph.pipeline.run import RunPlan, comparison_executor, comparison_plan

    keep_freed_memory()
    source = open_data(data, columns)
    shares = {name: share for name, share in (("train", train), ("val", val)) if share is not None}
    protocol, seeds = _plan_splits(source, split_name, splits, folds, shares)
    torch_device = pick_device(device)
    seconds = None if time_limit is None else parse_seconds(time_limit)
    plan = RunPlan(
        dataset=source.name,
        graph=source.graph,
        protocol=protocol,
        methods=_make_methods(method, settings or [], source.graph),
        seeds=seeds,
        budget=budget,
        metric=metric or DEFAULT_METRICS.get(split_name or "", "balanced_accuracy"),
        compares=True,
    )
    plan = comparison_plan(plan, positive)
    warn_of_gaps(plan.task(seeds[0]))
    executor = comparison_executor(torch_device, jobs, seconds)
    train_methods(plan, source, executor, folder=to)


def _plan_splits(
    source: GraphSource,
    split: str | None,
    splits: str | None,
    folds: int | None,
    given: Mapping[str, float],
) -> tuple[SplitProtocol, list[int]]:
    """A split protocol and its seeds; a split or time column decides on the protocol."""
    from evengraph.cli.options import make_protocol
    from evengraph.core.errors import unknown
    from evengraph.pipeline.parameters import parse_splits
    from evengraph.splits import DRAWS, Folds

    if split not in (None, *PROTOCOLS):
        raise ValueError(unknown("split", str(split), PROTOCOLS))
    if folds is not None:
        options = {"--splits": splits, "--train": given.get("train"), "--split": split}
        for option, value in options.items():
            if value is not None:
                raise ValueError(f"--folds decides how many splits there are; leave {option} out.")
        shares = source.default_shares("natural") | dict(given)
        shares.pop("train", None)
        return Folds(folds=folds, **shares), list(range(folds))
    usual = source.default_split
    split = split or (usual if usual in ("given", "bytime") else "natural")
    protocol = make_protocol(split, source.default_shares(split) | dict(given))
    return protocol, parse_splits(splits or str(DRAWS.get(split, 5)), 0)


def _make_methods(names: str | None, settings: Sequence[str], graph: Graph) -> dict[str, Method]:
    """Methods with the parameters given, and defaults that suit the graph."""
    from evengraph.cli.options import parse_methods, parse_settings
    from evengraph.methods import METHODS
    from evengraph.pipeline.run import default_entries

    used = (type(method).__name__.lower() for method in default_entries(graph).values())
    labels = parse_methods(names) if names else list(dict.fromkeys(used))
    params, sentences = parse_settings(labels, settings)
    print_notes(sentences)
    if not names:
        return default_entries(graph, params)
    kinds = {name: METHODS[name] for name in labels}
    return {n: kind(**{**kind.graph_defaults(graph), **params[n]}) for n, kind in kinds.items()}
