"""Options that several commands share."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from importlib.metadata import entry_points
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option
from typer.models import OptionInfo

from evengraph.core.errors import unknown

if TYPE_CHECKING:
    from evengraph.splits import SplitProtocol

PROTOCOL_OPTIONS = ("minority", "ratio", "train", "val", "windows")
"""Parameters of split protocols that have an option."""


def parse_methods(text: str) -> list[str]:
    """Read `gcn`, `gcn,lte4g` or `all`."""
    from evengraph.methods import METHODS
    from evengraph.pipeline.parameters import known_method

    parts = [part.strip() for part in text.split(",")]
    return list(METHODS if "all" in parts else dict.fromkeys(map(known_method, parts)))


def parse_settings(
    methods: Sequence[str], settings: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read `--set` options into parameters per method, and describe those that apply to some only.

    `METHOD.NAME=VALUE` applies to that method, `NAME=VALUE` to all methods that have the parameter.
    """
    from evengraph.methods import METHODS
    from evengraph.pipeline.parameters import known_method, parse_fields

    names = {
        method: [*(item.name for item in fields(METHODS[method])), *METHODS[method].former_params]
        for method in methods
    }
    texts: dict[str, list[str]] = {method: [] for method in methods}
    sentences = []
    # those of one method last, so that they replace what is set for all
    for setting in sorted(settings, key=lambda setting: "." in setting.partition("=")[0]):
        name, equals, value = setting.partition("=")
        owner, _, key = name.strip().rpartition(".")
        wanted = [known_method(owner)] if owner else methods
        if wanted[0] not in names:
            run = f"the methods to run: {', '.join(methods)}"
            raise ValueError(f"{wanted[0]} is not among {run}. Name it by --method.")
        having = [m for m in wanted if len(wanted) == 1 or key in names[m]]
        if not having:
            allowed = dict.fromkeys(known for method in methods for known in names[method])
            raise ValueError(unknown("parameter", key, allowed))
        for method in having:
            texts[method].append(f"{key}{equals}{value.strip()}")
            if (current := METHODS[method].former_params.get(key)) is not None:
                sentences.append(f"{key} of {METHODS[method].title} is now {current}.")
        if len(having) < len(methods):
            titles = ", ".join(METHODS[method].title for method in having)
            sentences.append(f"{texts[having[0]][-1]} applied to {titles} only.")
    return {method: parse_fields(METHODS[method], texts[method]) for method in methods}, sentences


def make_protocol(name: str, options: Mapping[str, Any]) -> SplitProtocol:
    """A split protocol by its name and the options given for it."""
    from evengraph.splits import SPLITS

    if name not in SPLITS:
        raise ValueError(unknown("split", name, SPLITS))
    allowed = [item.name for item in fields(SPLITS[name]) if item.name in PROTOCOL_OPTIONS]
    for option in options:
        if option not in allowed:
            if option == "windows":
                raise ValueError("--windows needs a split by time: name the --time-column.")
            flags = ", ".join(f"--{known}" for known in allowed) or "none"
            raise ValueError(f"{name} has no --{option}; its options: {flags}.")
    protocol: SplitProtocol = SPLITS[name](**options)
    return protocol


def parse_alerts(text: str | None) -> float | None:
    """Read a number of nodes, `50`, or a share of them, `1%` or `0.01`."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d*\.?\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if value <= 0 or (value >= 1 and (bool(match and match[2]) or value != int(value))):
        raise ValueError(f"alerts must be a number of nodes or a share, 50 or 1%, got {text!r}.")
    return value


def parse_shares(text: str, flag: str) -> dict[str, float]:
    """Read `fraud=0.02,ok=0.98`."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        raise ValueError(f"{flag} takes shares such as yes=0.1,no=0.9, got {text}.") from None


def parse_seconds(text: str) -> float:
    """Read `90`, `90s`, `10m` or `2h`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"a duration must be written such as 90, 10m or 2h, got {text!r}.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def data_sets() -> list[str]:
    text = files("evengraph").joinpath("datasets", "datasets.toml").read_text(encoding="utf-8")
    plugins = entry_points(group="evengraph.datasets")
    return [*tomllib.loads(text), "toy", *(entry.name for entry in plugins)]


OWN_FILES = "Your own files"
GENERAL = "Most used"
ADVANCED = "Advanced"
BENCHMARKS = "Benchmark protocols"
PANELS = (None, OWN_FILES, GENERAL, ADVANCED, BENCHMARKS)
EVERYDAY = (
    "--edges", "--label", "--unlabelled", "--link", "--drop", "--time-column",
    "--known", "--known-edges", "--method", "--splits", "--metric", "--cost-miss", "--alerts",
    "--only-unlabelled", "--top", "--budget", "--classes", "--model", "--find", "--hide-guess",
    "--out", "--save",
)  # fmt: skip
"""Options that the help of a command with many lists first, in this order."""

Data = Annotated[
    str,
    Argument(
        help="A data set (evengraph data list), a folder with nodes.csv and edges.csv, a nodes "
        "table with --edges, a graph file (.graphml, .npz, .pt), or a packed graph.",
    ),
]
HELP = {
    "minority": "Number of minority classes.",
    "ratio": "Size of the smallest class divided by that of the largest.",
    "train": "Share of each class for training. Default: 0.1, or 0.6 for your own files.",
    "val": "Share of each class for validation. Default: 0.1, or 0.2 for your own files.",
    "set": "Set a parameter of every method that has it, or of one method: "
    "iceberg.learning_rate=0.1. May be repeated.",
    "miss": "Two classes: cost of missing a positive node. The threshold then minimises cost "
    "instead of maximising F1.",
    "alarm": "Two classes: cost of a false alarm. Default: 1.",
    "alerts": "Two classes: flag this many nodes or this share, such as 50 or 1%.",
    "precision": "Two classes: the threshold at which this share of the alarms is right.",
    "recall": "Two classes: the threshold that finds this share of the positive class.",
    "align": "In a graph without known nodes, undo shifts of whole numeric columns since training.",
    "ray": "Packed graphs: work on a Ray cluster; auto is the one that this machine belongs to.",
    "workers": "How many workers --ray starts. Default: one per host.",
    "memory": "Packed graphs: work from disk within this much memory, such as 4GB. By default this "
    "happens only if the graph does not fit, with half of the free memory.",
}


Device = Annotated[str, Option(help="auto, cpu, cuda or cuda:1.")]
Minority = Annotated[int | None, Option(help=HELP["minority"], rich_help_panel=BENCHMARKS)]
Ratio = Annotated[float | None, Option(help=HELP["ratio"], rich_help_panel=BENCHMARKS)]
Train = Annotated[float | None, Option(help=HELP["train"])]
Val = Annotated[float | None, Option(help=HELP["val"])]
Settings = Annotated[list[str] | None, Option("--set", help=HELP["set"], metavar="NAME=VALUE")]
CostMiss = Annotated[float | None, Option(help=HELP["miss"])]
CostAlarm = Annotated[float | None, Option(help=HELP["alarm"])]
Alerts = Annotated[str | None, Option(help=HELP["alerts"])]
Precision = Annotated[float | None, Option(help=HELP["precision"])]
Recall = Annotated[float | None, Option(help=HELP["recall"])]
Align = Annotated[bool, Option("--align/--no-align", help=HELP["align"])]
Memory = Annotated[str | None, Option(help=HELP["memory"], metavar="SIZE")]
Ray = Annotated[str | None, Option(help=HELP["ray"], metavar="ADDRESS")]
Workers = Annotated[int | None, Option(min=1, help=HELP["workers"], metavar="N")]

Columns = dict[str, Any]
"""The column options that the user gave, by the names of `open_graph`'s parameters."""

COLUMN_HELP = {
    "edges": "Edges table. Several, such as pays.csv,knows.csv, are edge types.",
    "tables": "Tables of other kinds of nodes, such as devices.csv,cards.csv, that edges or "
    "columns of ids lead to.",
    "label": "Label column.",
    "unlabelled": "Labels to treat as missing, such as unknown,-1.",
    "id": "Id column.",
    "source": "Column of the edges table with the source id.",
    "target": "Column of the edges table with the target id.",
    "weight": "Column of edge weights; 0 means no edge.",
    "type": "Column of edge types, which some methods aggregate separately.",
    "edge_time": "Column of edge times; a split by time hides later edges from training.",
    "link": "Columns whose equal values connect rows, such as card,device or product+month; edges "
    "are then optional.",
    "directed": "Treat outgoing and incoming edges as two relations.",
    "split": "Column that says train, val or test for each node.",
    "time": "Column of times for a split by time: train on the oldest nodes.",
    "date_order": "dmy or mdy, to read dates such as 03/04/2024.",
    "drop": "Columns to ignore, such as a,b.",
}
FLAGS = {
    "split": "--split-column",
    "time": "--time-column",
    "edge_time": "--edge-time",
    "date_order": "--date-order",
}
SWITCHES = ("directed",)


def column_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `columns` of a command by one option per column, by default all.

    Typer reads options from the signature, so the wrapper declares one with these options first.
    """
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                bool | None if name in SWITCHES else str | None,
                Option(
                    FLAGS.get(name, f"--{name}"), help=COLUMN_HELP[name], rich_help_panel=OWN_FILES
                ),
            ],
        )
        for name in names or COLUMN_HELP
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**values: Any) -> None:
            columns = {option.name: values.pop(option.name) for option in options}
            given = {name: value for name, value in columns.items() if value is not None}
            command(columns=given, **values)

        hints = get_type_hints(command, include_extras=True)
        parameters = [
            parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "columns"
        ]
        for parameter in parameters:
            option = parameter.annotation.__metadata__[0]
            if isinstance(option, OptionInfo) and option.rich_help_panel is None:
                option.rich_help_panel = GENERAL
        parameters += options
        signature = inspect.Signature(parameters, return_annotation=None)
        vars(wrapper)["__signature__"] = signature
        wrapper.__annotations__ = {n: p.annotation for n, p in signature.parameters.items()}
        return wrapper

    return decorate
