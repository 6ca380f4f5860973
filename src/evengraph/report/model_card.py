"""The model card: README.md of a saved model, from what its model.json says.

Names from users' files are written as code, which Markdown does not interpret.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from evengraph.core.text import printable
from evengraph.core.untrusted import items, lookup, number, part
from evengraph.metrics.registry import METRICS
from evengraph.metrics.significance import Interval, mean_recall_interval, share_interval
from evengraph.report.markup import DASH, decimals, integer, metric_value, plural

MARK = "<!-- evengraph model card: written by save, and again by the next one -->"
FEW = 20  # test nodes of a class, below which its scores are called uncertain
LISTED = 40  # classes and columns that are named
LONGEST = 80  # characters of a name
GRAPH_SUFFIXES = (".graphml", ".npz", ".pt", ".pth")  # of files that hold nodes and edges


def model_card(
    about: Mapping[str, Any], *, title: str, counts: Sequence[int], folder: str, date: str
) -> str:
    """Describe a saved model in Markdown; `about` is its model.json, `counts` its labels."""
    extra = part(about, "extra")
    names = [str(name) for name in items(about, "class_names")]
    names = names or [f"class {index}" for index in range(len(counts))]
    label, kinds = lookup(extra, "columns", "label"), plural(len(names), "class", "classes")
    predicts = f"{kinds} of nodes" if label is None else f"{code(label)}, {kinds}"
    shown = ", ".join(map(code, names[:LISTED])) + (" and others" if names[LISTED:] else "")
    summary = f"{title} predicts to which class a node of a graph belongs: {shown}."
    score, interval = balanced_accuracy(extra)
    between = "" if interval is None else f" (95% interval {interval_text(interval)})"
    if score is not None:
        summary += f" On test nodes its balanced accuracy was {decimals(score)}%{between}."
    parts = [
        MARK,
        f"# {title}: {predicts}",
        summary,
        "## How to load it",
        _usage(extra, folder),
        "## Training data",
        _list(_training(about, counts, date)),
        *_scores(extra),
        *_classes(extra, names, counts),
        *_calibration(extra, names),
        "## Limits",
        _list(_limits(extra, names)),
    ]
    return "\n\n".join(parts) + "\n"


def code(text: object) -> str:
    """A foreign string as code: Markdown and HTML in it stay text, also in a table."""
    plain = " ".join(printable(str(text)).split()) or " "
    if len(plain) > LONGEST:
        plain = f"{plain[: LONGEST - 1]}…"
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
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


def _training(about: Mapping[str, Any], counts: Sequence[int], date: str) -> list[str]:
    """Where the data came from, how much of it, when, and for how long."""
    extra = part(about, "extra")
    sizes, refit = part(extra, "counts"), part(extra, "refit")
    lines = []
    if data := lookup(extra, "trained_on", "data"):
        lines.append(f"Data: {code(data)}.")
    learnt = sum(counts) if (before := number(refit.get("train_before"))) is None else before
    text = f"Labels: {integer(learnt)} for training"
    if sizes:
        nodes, edges, held_out, test = (
            integer(sizes.get(name)) for name in ("nodes", "edges", "validation", "test")
        )
        lines.append(f"Graph: {nodes} nodes, {edges} edges.")
        text += f", {held_out} for validation, {test} for testing"
    lines.append(f"{text}.")
    if refit:
        text = f"Retrained after testing on {integer(refit.get('train'))} labels, including the "
        lines.append(f"{text}test labels; the scores below are from before.")
    if roles := part(extra, "columns"):
        features = [str(name) for name in items(roles, "features")]
        shown = ", ".join(map(code, features[:LISTED])) or "none"
        more = f" and {len(features) - LISTED} more" if features[LISTED:] else ""
        lines.append(f"Columns: {shown}{more}.")
        named = ("id", "source", "target", "time", "weight", "type", "split")
        if others := [f"{role} {code(roles[role])}" for role in named if roles.get(role)]:
            lines.append(f"Roles: {', '.join(others)}.")
    else:
        lines.append(f"Features: {integer(about.get('num_features'))}.")
    seconds = sum(number(stage.get("seconds")) or 0.0 for stage in items(about, "history"))
    by = f"evengraph {about.get('evengraph')}"
    return [*lines, f"Saved on {date} by {by}; training took {seconds:.1f} s."]


def _scores(extra: Mapping[str, Any]) -> list[str]:
    tested = {name: number(value) for name, value in part(extra, "test").items()}
    known = {name: value for name, value in tested.items() if name in METRICS}
    if not known:
        return []
    matrix = _matrix(extra)
    hits = sum(row[index] for index, row in enumerate(matrix))
    intervals = {
        "balanced_accuracy": mean_recall_interval(matrix),
        "accuracy": share_interval(hits, sum(map(sum, matrix))),
    }
    rows = [
        [METRICS[name].heading, metric_value(name, value), interval_text(intervals.get(name))]
        for name, value in known.items()
    ]
    note = (
        "In percent, on test nodes of one split; a threshold is a probability. Intervals hold for "
        "other nodes of the same kind, not for other splits or graphs."
    )
    return ["## Scores", _table(["metric", "value", "95% interval"], rows), note]


def _classes(extra: Mapping[str, Any], names: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Scores of each class; nothing without test predictions."""
    rows = [[code(n), *row] for n, row in zip(names, class_scores(extra, counts), strict=False)]
    heads = ["class", "training labels", "test nodes", "precision", "recall"]
    heads += ["95% interval of recall", "F1"]
    return ["## Classes", _table(heads, rows)] if rows else []


def class_scores(extra: Mapping[str, Any], counts: Sequence[int]) -> list[list[str]]:
    """Labels, test nodes, precision, recall with its interval, and F1 of each class, as text."""
    matrix = _matrix(extra)
    rows = []
    for index in range(len(matrix)):
        hits, size = matrix[index][index], sum(matrix[index])
        guessed = sum(row[index] for row in matrix)
        recall, precision = _share(hits, size), _share(hits, guessed)
        f1 = _share(2 * hits, size + guessed)
        learnt = integer(counts[index]) if index < len(counts) else DASH
        cells = [decimals(precision), decimals(recall), interval_text(share_interval(hits, size))]
        rows.append([learnt, integer(size), *cells, decimals(f1)])
    return rows


def _calibration(extra: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    calibrator, errors = part(extra, "calibrator"), part(extra, "calibration")
    if not calibrator:
        return []
    value, note = number(calibrator.get("temperature")), str(calibrator.get("note") or "")
    nodes = int(number(calibrator.get("nodes")) or 0)
    validation = int(number(lookup(extra, "counts", "validation")) or 0)
    fitted = plural(nodes, "validation node")
    if 0 < validation < nodes:  # folds
        more = integer(nodes - validation)
        fitted = f"{plural(nodes, 'node')} that the single models were not trained on: "
        fitted += f"{plural(validation, 'validation node')}, and {more} that other folds held out"
    text = f"Temperature {decimals(value, 2)}, fitted to {fitted}; `predict --calibrated` uses it."
    if value == 1 and not calibrator.get("shift") and note:
        text = f"Not calibrated: {note[0].lower()}{note[1:]}"
    lines = [text]
    if errors:
        names_of = ("calibration_error", "calibrated_error")
        before, after = (decimals(errors.get(name)) for name in names_of)
        text = f"Expected calibration error on test nodes: {before}% as predicted, {after}% after"
        lines.append(f"{text} temperature scaling.")
    if flag := part(extra, "flag"):
        positive = number(flag.get("class"))
        name = lookup(names, int(positive)) if positive is not None else None
        start = decimals(flag.get("from"), 3)
        text = f"A node is flagged as {code(name)} from a probability of {start}, selected on"
        lines.append(f"{text} held-out nodes.")
    return ["## Calibration", _list(lines)]


def _limits(extra: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    lines = [
        "Every node gets one of these classes, even if it is unlike any node seen in training. "
        "`predict` warns if features, neighbours or classes differ from training.",
        "Probabilities assume the class shares of training; `predict --prior` corrects for others.",
    ]
    sizes = [sum(row) for row in _matrix(extra)]
    few = [code(name) for name, size in zip(names, sizes, strict=False) if size < FEW]
    if few:
        shown = ", ".join(few[:LISTED])
        lines.append(f"Scores are uncertain for classes with fewer than {FEW} test nodes: {shown}.")
    lines.append(
        "The folder contains the indices and labels of the training nodes and what is needed to "
        "encode the columns (such as names of categories), but neither features nor edges."
    )
    return lines


def balanced_accuracy(extra: Mapping[str, Any]) -> tuple[float | None, Interval | None]:
    """Balanced accuracy on test nodes in percent, and its interval as fractions."""
    score = number(lookup(extra, "test", "balanced_accuracy"))
    return score, mean_recall_interval(_matrix(extra))


def _matrix(extra: Mapping[str, Any]) -> list[list[float]]:
    """The confusion matrix on test nodes; empty if it was not saved or is not square."""
    rows = items(extra, "confusion")
    matrix = [[number(value) or 0.0 for value in items(rows, index)] for index in range(len(rows))]
    return matrix if all(len(row) == len(matrix) for row in matrix) else []


def _share(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else math.nan


def interval_text(interval: Interval | None) -> str:
    """Format an interval in percent; empty without one."""
    return "" if interval is None else " to ".join(decimals(100 * end) for end in interval)


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
