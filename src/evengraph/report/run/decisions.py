"""Sections on decisions: results at other base rates, and the model that is used from now on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evengraph.report import page
from evengraph.report.base_rates import base_rate_rows, describe_threshold, has_costs
from evengraph.report.formatting import decimals, integer, percentage
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import items, lookup, number, part


def base_rate_section(result: Mapping[str, Any]) -> Markup:
    """What the threshold and the ranking would give at other base rates; nothing without them."""
    rows = base_rate_rows(result)
    if not rows:
        return Markup("")
    heads = ["if it is", "alarms per 1,000", "precision, %", "AP, %"]
    heads += ["cost per 1,000"] if has_costs(result) else []
    table = _table("Other base rates", heads, [(n, map(decimals, values)) for n, values in rows])
    text = (
        "What the same threshold and ranking would give if the rarer class had another share of "
        f"the nodes (AP is its average precision). {describe_threshold(result)}"
    )
    return page.section("Other base rates", tag("p", text), table)


def model_section(result: Mapping[str, Any]) -> Markup:
    """The model that predicts: what it was trained on, and what abstaining gains."""
    model = part(result, "model")
    if not model:
        return Markup("")
    parts = [tag("p", _origin(model))]
    levels = [level for level in items(model, "abstention") if isinstance(level, Mapping)]
    if levels:
        text = (
            "It may leave its least certain nodes undecided (predict --abstain). On its "
            f"{integer(model.get('validation'))} held-out nodes, where the balanced error is the "
            "mean over classes:"
        )
        heads = ["undecided", "error, %", "balanced error, %", "confidence from"]
        parts += [tag("p", text), _table("Abstention", heads, map(_level, levels))]
    return page.section("The saved model", *parts)


def _origin(model: Mapping[str, Any]) -> str:
    """Which model it is, and whether it was trained again."""
    seed, reason = model.get("seed", "?"), model.get("reason", "the best on validation")
    start = f"This is the model of seed {seed}{f', {reason}' if reason else ''}."
    train, before = (number(lookup(model, "refit", name)) for name in ("train", "train_before"))
    if train is None or before is None:
        return f"{start} It is used as it was tested."
    return (
        f"{start} Once tested, it was trained again with the test labels added, on "
        f"{integer(train)} labels instead of {integer(before)}; the results above are from "
        "before. Labels that were held out decided when to stop, the threshold and the calibration."
    )


def _level(level: Mapping[str, Any]) -> tuple[str, list[str]]:
    coverage = number(level.get("coverage"))
    undecided = None if coverage is None else 1 - coverage
    errors = (number(level.get(name)) for name in ("error", "balanced_error"))
    cells = [decimals(None if error is None else 100 * error) for error in errors]
    return percentage(undecided, 1), [*cells, decimals(level.get("confidence"), 3)]


def _table(caption: str, heads: Sequence[str], rows: Iterable[tuple[str, Iterable[str]]]) -> Markup:
    cells = [tag("th", text, scope="col") for text in heads]
    lines = [
        tag("tr", tag("th", name, scope="row"), *(tag("td", value) for value in values))
        for name, values in rows
    ]
    return page.table(caption, cells, lines, "figures")
