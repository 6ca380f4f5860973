"""The model card: README.md of a saved model, from what its model.json says.

Names from users' files are written as code, which Markdown does not interpret.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from evengraph.core.text import printable
from evengraph.core.untrusted import items, lookup, number, part
from evengraph.metrics.registry import METRICS
from evengraph.metrics.significance import Interval, mean_recall_interval, share_interval
from evengraph.report.markup import decimals, integer, metric_value, percentage, plural
from evengraph.report.view import FEW, RANKING, ResultView, selected

MARK = "<!-- evengraph model card: written by save, and again by the next one -->"
LISTED = 40  # classes and columns that are named
LONGEST = 80  # characters of a name
GRAPH_SUFFIXES = (".graphml", ".npz", ".pt", ".pth")  # of files that hold nodes and edges


def model_card(
    about: Mapping[str, Any], *, title: str, counts: Sequence[int], folder: str, date: str
) -> str:
    """Describe a saved model in Markdown; `about` is its model.json, `counts` its labels."""
    extra, history = part(about, "extra"), part(part(about, "extra"), "made")
    names = [str(name) for name in items(about, "class_names")]
    names = names or [f"class {index}" for index in range(len(counts))]
    label, kinds = lookup(extra, "columns", "label"), plural(len(names), "class", "classes")
    predicts = f"{kinds} of nodes" if label is None else f"{code(label)}, {kinds}"
    shown = ", ".join(map(code, names[:LISTED])) + (" and others" if names[LISTED:] else "")
    lines = [str(line) for line in items(about, "details", "summary")]
    view = tested(extra, [code(name) for name in names], counts)
    parts = [
        MARK,
        f"# {title}: {predicts}",
        f"{selected(title, lines)} It predicts to which class a node of a graph belongs: {shown}.",
        " ".join(view.verdict),
        "## Intended use",
        "To rank and flag nodes of graphs like that of training, for people to check. A prediction "
        "is no proof: decisions about persons need a review of their own.",
        "## How to load it",
        _usage(extra, folder),
        "## Training data",
        _list(_training(about, counts)),
        *(["## Selection", _list([_untimed(line) for line in lines])] if lines else []),
        *_scores(extra, view),
        *_classes(view),
        *_calibration(extra),
        *_thresholds(view),
        "## Limits",
        _list(_limits(extra, view)),
        "## How it was made",
        _list(_made(about, history, date)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def tested(extra: Mapping[str, Any], names: Sequence[str], counts: Sequence[int]) -> ResultView:
    """What a model holds about its test, as the result of a run."""
    made, matrix = part(extra, "made"), items(extra, "confusion")
    square = all(len(items(row)) == len(matrix) == len(counts) for row in matrix)
    content = {
        "runs": [
            {"confusion_matrix": matrix if square else (), "interval": items(made, "interval")}
        ],
        "dataset": {"class_names": list(names), "num_classes": len(names)},
        "class_counts": list(counts),
        "mean": part(extra, "test"),
        "positive": lookup(extra, "decision", "positive"),
        **{name: made.get(name) for name in ("distinct", "splits")},
        "decision": {**part(extra, "decision"), "ranking": made.get("ranking")},
    }
    return ResultView(content)


def _untimed(line: str) -> str:
    """A sentence about the selection, without the time that a part of it took."""
    return re.sub(r",? in \d+ s\.$", ".", line)


def code(text: object, longest: int = LONGEST) -> str:
    """A foreign string as code: Markdown and HTML in it stay text, also in a table."""
    plain = " ".join(printable(str(text)).split()) or " "
    if len(plain) > longest:
        plain = f"{plain[: longest - 1]}…"
    ticks = max((len(run) for run in re.findall("`+", plain)), default=0)
    fence = "`" * (ticks + 1)
    space = " " if ticks else ""
    return f"{fence}{space}{plain}{space}{fence}".replace("|", "\\|")


def _usage(extra: Mapping[str, Any], folder: str) -> str:
    name = re.sub(r"[^\w.+-]", "_", folder) or "model"
    if not part(extra, "encoder"):
        lines = ("import evengraph as eg", "", f'model = eg.load_model("{name}")')
        return "\n".join(("```python", *lines, "model.predict_proba(graph)", "```"))
    suffix = PurePath(str(lookup(extra, "trained_on", "data"))).suffix.lower()
    files = [f"graph{suffix}"] if suffix in GRAPH_SUFFIXES else ["nodes.csv", "edges.csv"]
    quoted = ", ".join(f'"{file}"' for file in files)
    return (
        f"```\nevengraph predict {name} {' '.join(files)} --out predictions.csv\n```\n\n"
        f'```python\nimport evengraph as eg\n\nmodel = eg.TableModel.load("{name}")\n'
        f"model.predict({quoted})\n```"
    )


def _training(about: Mapping[str, Any], counts: Sequence[int]) -> list[str]:
    """Where the data came from, how much of it there was, and which columns were used."""
    extra = part(about, "extra")
    sizes, refit = part(extra, "counts"), part(extra, "refit")
    lines = []
    if data := str(lookup(extra, "trained_on", "data") or ""):  # its name: a path says too much
        lines.append(f"Data: {code(PurePath(data.replace(chr(92), '/')).name or data)}.")
    learnt = sum(counts) if (before := number(refit.get("train_before"))) is None else before
    text = f"Labels: {integer(learnt)} for training"
    if sizes:
        nodes, edges, test = (integer(sizes.get(name)) for name in ("nodes", "edges", "test"))
        lines.append(f"Graph: {nodes} nodes, {edges} edges.")
        held_out = number(sizes.get("validation"))
        text += f", {integer(held_out)} for validation, " if held_out else " and validation, "
        text += f"{test} for testing"
    lines.append(f"{text}.")
    if refit:
        text = f"After testing, retrained on {integer(refit.get('train'))} labels, including the "
        lines.append(f"{text}test labels; the scores below are from before.")
    if roles := part(extra, "columns"):
        features = [str(name) for name in items(roles, "features")]
        shown = ", ".join(map(code, features[:LISTED])) or "none"
        more = f" and {len(features) - LISTED} more" if features[LISTED:] else ""
        lines.append(f"Columns: {shown}{more}. All other columns are ignored.")
        named = ("id", "source", "target", "time", "edge_time", "weight", "type", "split")
        if others := [f"{role} {code(roles[role])}" for role in named if roles.get(role)]:
            lines.append(f"Roles: {', '.join(others)}.")
    else:
        lines.append(f"Features: {integer(about.get('num_features'))}.")
    return [*lines, *(str(line) for line in items(about, "uses"))]


def _scores(extra: Mapping[str, Any], view: ResultView) -> list[str]:
    known = [name for name in part(extra, "test") if name in METRICS]
    if not known:
        return []
    matrix = view.confusion
    hits = sum(row[index] for index, row in enumerate(matrix))
    ends = {RANKING: view.interval}
    if not view.is_two_class:  # decided by the largest output, as these two are
        weight = view.pooled(range(len(matrix))).weight
        weighted = [[weight * count for count in row] for row in matrix]
        shares = {
            "balanced_accuracy": mean_recall_interval(weighted),
            "accuracy": share_interval(weight * hits, weight * sum(map(sum, matrix))),
        }
        ends = {name: one and (100 * one[0], 100 * one[1]) for name, one in shares.items()}
    rows = [
        [METRICS[name].heading, metric_value(name, lookup(extra, "test", name)) + _ends(ends, name)]
        for name in known
    ]
    splits = plural(int(number(lookup(extra, "made", "splits")) or 1), "split")
    note = (
        f"In percent, on the test nodes of {splits}; a threshold is a probability. 95% intervals "
        "hold for other nodes of the same kind, not for other graphs."
        + " Accuracies, Macro-F1 and G-mean are of the more probable class; the table of classes "
        "is at the threshold." * view.is_two_class
    )
    return ["## Scores", _table(["metric", "value (95% interval)"], rows), note]


def _ends(intervals: Mapping[str, Interval | None], name: str) -> str:
    between = intervals.get(name)
    return "" if between is None else f" ({' to '.join(map(decimals, between))})"


def _classes(view: ResultView) -> list[str]:
    """Scores of each class; nothing without test predictions."""
    rows = [[row.name, *row.cells] for row in view.classes]
    return ["## Classes", _table(CLASS_HEADS, rows), CLASS_NOTE] if view.confusion else []


CLASS_HEADS = ("class", "labels", "test nodes", "precision", "recall", "F1")
CLASS_NOTE = "In percent with 95% intervals, over the nodes of all test sets."


def _calibration(extra: Mapping[str, Any]) -> list[str]:
    """What it was fitted to, what it did, and how often each probability comes true."""
    about = part(extra, "calibration")
    lines = [str(line) for line in items(about, "lines")]
    rows = []
    for row in items(about, "reliability", "after"):
        mean, share, nodes = (number(lookup(row, place)) for place in range(3))
        rows.append([percentage(mean, 1), percentage(share, 1), integer(nodes)])
    heads = ["mean probability", "came true", "held-out nodes"]
    table = [_table(heads, rows)] if rows else []
    return ["## Calibration", _list(lines), *table] if lines else []


def _thresholds(view: ResultView) -> list[str]:
    """What several thresholds did to held-out nodes; nothing without them."""
    heads, rows = view.threshold_heads, view.thresholds
    text = "On held-out nodes. `predict` uses the one marked, unless it is given another rule."
    return ["## Thresholds", text, _table(heads, rows)] if rows else []


def _limits(extra: Mapping[str, Any], view: ResultView) -> list[str]:
    lines = [
        "Every node gets one of these classes, even if it is unlike any node seen in training. "
        "`predict` warns if features, neighbours or classes differ from training.",
        "Probabilities assume the class shares of the labels, or those that were given; `predict "
        "--prior` corrects for others.",
    ]
    splits = number(lookup(extra, "made", "splits")) or 1
    few = [row.name for row in view.classes if view.confusion and row.pooled.size < FEW * splits]
    if few:
        shown = ", ".join(few[:LISTED])
        lines.append(f"Scores are uncertain for classes with fewer than {FEW} test nodes: {shown}.")
    lines.append(
        "The folder contains the indices and labels of the training nodes and what is needed to "
        "encode the columns (such as names of categories), but neither features nor edges."
    )
    return lines


def _made(about: Mapping[str, Any], made: Mapping[str, Any], date: str) -> list[str]:
    """The command, the seeds, the version and the time."""
    lines = [f"Command: {code(made['command'], 1000)}."] if made.get("command") else []
    if made:
        seeds = ", ".join(str(seed) for seed in items(made, "seeds"))
        reason = f" ({made['reason']})" if made.get("reason") else ""
        lines.append(
            f"Seeds of the splits: {seeds}; saved: the model of seed {made.get('seed')}{reason}."
        )
        lines.append(f"Training took {decimals(made.get('seconds'))} s in all splits.")
    return [*lines, f"Saved on {date} by evengraph {about.get('evengraph')}."]


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
