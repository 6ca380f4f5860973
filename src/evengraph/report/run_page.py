"""Sections on classes: recall per class, and the confusion matrix with its frequent errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evengraph.core.untrusted import average, items, lookup, number, part
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.report import node_map, page
from evengraph.report import result as captions
from evengraph.report.charts import (
    COLOURS,
    bar,
    curve,
    dot_row,
    line_plot,
    percent,
    strip,
    swatch,
    thin,
    ticks,
)
from evengraph.report.markup import (
    DASH,
    Markup,
    decimals,
    integer,
    metric_value,
    percentage,
    plural,
    plus_minus,
    signed,
    tag,
)
from evengraph.report.node_map import map_section
from evengraph.report.page import Link, changed_params, copy_script, origin_section, page_links
from evengraph.report.result import (
    ClassRow,
    base_rate_rows,
    class_rows,
    confusion,
    curve_section,
    describe_threshold,
    has_costs,
    is_two_class,
    runs,
    shares,
    two_class_cards,
    verdict,
)

MOST_CLASSES = 300
"""Of which a confusion matrix is drawn: more take minutes, and nobody can read them."""


def recall_section(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """Training nodes and recall of each class."""
    reference = number(lookup(result, "mean", "balanced_accuracy"))
    largest = max((row.count or 0.0 for row in rows), default=0.0)
    lines = []
    for row in rows:
        recall, size = decimals(average(row.recalls)), integer(row.count)
        size_bar = bar(f"{row.name}: {size} training nodes", row.count or 0.0, largest)
        axis = recall_row(row, reference)
        lines.append(page.class_row(row.name, size, size_bar, axis, recall, row.minority))
    text = "Classes are sorted by their number of training nodes."
    if number(lookup(result, "imbalance", "minority")) is None:
        text += " A minority class has fewer than half the training nodes of the largest class."
    marks = _recall_marks(rows, reference, several=len(runs(result)) > 1)
    columns = ("training nodes", "test recall, %")
    return page.class_section("Recall per class, head to tail", text, marks, columns, lines)


def scores_section(rows: Sequence[ClassRow]) -> Markup:
    """Precision, recall and F1 of each class, averaged over seeds; nothing without predictions."""
    if not any(value is not None for row in rows for value in row.precisions):
        return Markup("")
    heads = [tag("th", text, scope="col") for text in ("class", "precision", "recall", "F1")]
    lines = []
    for row in rows:
        values = (average(column) for column in (row.precisions, row.recalls, row.f1s))
        cells = (tag("td", decimals(value)) for value in values)
        lines.append(tag("tr", _class_name(row, "row"), *cells))
    title = "Precision, recall and F1 per class"
    text = "Means over seeds in percent, for the most likely class of each test node."
    return page.section(title, tag("p", text), page.table(title, heads, lines, "figures"))


def recall_row(row: ClassRow, reference: float | None) -> Markup:
    """Draw the recall of one class: one dot per seed, their range and their mean."""
    values = [value for value in row.recalls if value is not None]
    if not values:
        return dot_row(f"{row.name}: recall undefined", None, reference=reference)
    label = f"{row.name}: mean recall {decimals(average(values))}"
    span = (min(values), max(values)) if len(values) > 1 else None
    if span is not None:
        label += f", from {decimals(span[0])} to {decimals(span[1])}"
    if (f1 := average(row.f1s)) is not None:
        label += f"; mean F1 {decimals(f1)}"
    points = values if span else ()
    return dot_row(label, average(values), span=span, points=points, reference=reference)


def _recall_marks(
    rows: Sequence[ClassRow], reference: float | None, *, several: bool
) -> list[Markup]:
    entries = []
    for rare, word in ((False, "majority"), (True, "minority")):
        if group := [average(row.recalls) for row in rows if row.minority is rare]:
            text = plural(len(group), f"{word} class", f"{word} classes")
            recall = tag("b", f"mean recall {decimals(average(group))}")
            entry = tag("span", f"{text}, ", recall)
            entries.append(tag("li", swatch("bar"), entry, class_="rare" if rare else None))
    if several:
        entries.append(tag("li", swatch("whisker mean"), "mean and range over seeds"))
        entries.append(tag("li", swatch("seed"), "one seed"))
    if reference is not None:
        text = f"balanced accuracy {decimals(reference)}"
        entries.append(tag("li", swatch("reference"), text))
    return entries


def confusion_section(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """Confusion matrix summed over seeds, and the most frequent errors."""
    counts = confusion(result, rows) if len(rows) <= MOST_CLASSES else []
    if not counts:
        text = "This result has no confusion matrix."
        if len(rows) > MOST_CLASSES:
            text = f"A matrix of more than {MOST_CLASSES} classes is not drawn."
        return page.section("Confusion matrix", tag("p", text, class_="quiet"))
    dense = len(rows) > page.DENSE
    text = (
        f"Test nodes summed over {plural(len(runs(result)), 'seed')}. Rows are shaded by their "
        "share of the true class, so that rare classes show as clearly as common ones."
    )
    text += " An empty cell is zero." if dense else ""
    ramp = tag("div", "0%", tag("i"), "100% of the true class", class_="ramp", aria_hidden="true")
    return page.section(
        "Confusion matrix",
        tag("p", text),
        tag("div", _matrix(rows, counts, dense), _frequent_errors(rows, counts), class_="beside"),
        ramp,
        kind="long" if dense else None,
    )


def _matrix(rows: Sequence[ClassRow], counts: Sequence[Sequence[float]], dense: bool) -> Markup:
    """True classes down, predicted classes across, each row shaded by its shares."""
    corner = tag("td", tag("span", "true ↓"), tag("span", "predicted →"), class_="corner")
    lines = []
    for true, line in zip(rows, counts, strict=True):
        cells = [_class_name(true, "row")]
        for guess, count, share in zip(rows, line, shares(line), strict=True):
            kinds = {"hit": guess is true, "strong": share >= page.FLIP, "none": count == 0}
            of = f"{integer(count)} of {integer(sum(line))} ({percentage(share, 1)})"
            cells.append(
                tag(
                    "td",
                    "" if dense and count == 0 else integer(count),
                    style=f"--share:{share:.3f}",
                    class_=" ".join(kind for kind, applies in kinds.items() if applies) or None,
                    title=f"{true.name}, predicted as {guess.name}: {of}",
                )
            )
        lines.append(tag("tr", *cells))
    heads = [corner, *(_class_name(row, "col") for row in rows)]
    kind = "matrix dense" if dense else "matrix"
    return page.table("Confusion matrix, counts of test nodes", heads, lines, kind)


def _class_name(row: ClassRow, scope: str) -> Markup:
    kind = "rare" if row.minority else None
    return tag("th", tag("span", row.name), scope=scope, class_=kind, title=row.name)


def _frequent_errors(rows: Sequence[ClassRow], counts: Sequence[Sequence[float]]) -> Markup:
    """The five largest shares of a true class predicted as another, worst first."""
    pairs = [
        (share, true, guess)
        for true, line in zip(rows, counts, strict=True)
        for guess, share in zip(rows, shares(line), strict=True)
        if share > 0 and guess is not true
    ]
    # sorting is stable, so equal shares stay in the order of the page
    lines = [
        tag(
            "li",
            tag("span", tag("b", true.name), " predicted as ", guess.name),
            tag("b", percentage(share, 1)),
            class_="rare" if true.minority else None,
        )
        for share, true, guess in sorted(pairs, key=lambda pair: -pair[0])[:5]
    ]
    if not lines:
        return Markup("")
    heading = tag("h3", "Most frequent errors, share of the true class")
    return tag("aside", heading, tag("ol", *lines, class_="mixed"))


def summary_section(result: Mapping[str, Any]) -> Markup:
    """What the method says about what it did, per seed; nothing if it says nothing.

    Of several seeds, the first and the last line are shown: what was chosen, and whether the graph
    helps. Those between them are folded: what was rejected.
    """
    blocks, folded = [], []
    for run in runs(result):
        lines = [line for line in items(run, "summary") if isinstance(line, str)]
        if lines and len(runs(result)) > 1:
            name = tag("b", f"Seed {run.get('seed', '?')}:")
            ends, middle = [*lines[:1], *lines[1:][-1:]], lines[1:-1]
            blocks.append(tag("p", name, f" {' '.join(ends)}"))
            folded += [tag("p", name, f" {' '.join(middle)}")] if middle else []
        else:
            blocks += [tag("p", line) for line in lines]
    if folded:
        blocks.append(tag("details", tag("summary", "What was rejected"), *folded))
    return page.section("What was selected", *blocks) if blocks else Markup("")


def agreement_section(result: Mapping[str, Any]) -> Markup:
    """Share of correct predictions by the agreement of a committee; nothing without one."""
    bands: dict[float, tuple[float, float]] = {}
    for run in runs(result):
        for band in items(run, "agreement"):
            low, nodes, hits = (number(lookup(band, key)) for key in ("from", "nodes", "correct"))
            if low is not None and nodes:
                before = bands.get(low, (0.0, 0.0))
                bands[low] = before[0] + nodes, before[1] + (hits or 0.0)
    if not bands:
        return Markup("")
    edges = sorted(bands, reverse=True)
    largest = max(nodes for nodes, _ in bands.values())
    overall = 100 * sum(hits for _, hits in bands.values()) / sum(n for n, _ in bands.values())
    rows = []
    for index, low in enumerate(edges):
        nodes, hits = bands[low]
        name = _name(low, edges[index - 1] if index else None)
        share = 100 * hits / nodes
        size = bar(f"{name}: {integer(nodes)} test nodes", nodes, largest)
        axis = dot_row(f"{name}: {decimals(share)}% correct", share, reference=overall)
        rows.append(page.class_row(name, integer(nodes), size, axis, decimals(share), rare=False))
    text = (
        "The model is a committee: each prediction comes with the share of its members’ votes, by "
        "weight, for the predicted class. Where members disagree, expect more errors. "
        f"The dashed line is the accuracy on all test nodes, {decimals(overall)}%."
    )
    columns = ("test nodes", "correct, %")
    return page.class_section("Agreement and accuracy", text, [], columns, rows)


def _name(low: float, high: float | None) -> str:
    """Such as `75 to 95% agree`."""
    if high is None:
        return f"{100 * low:g}% or more agree"
    return f"{100 * low:g} to {100 * high:g}% agree" if low else f"below {100 * high:g}% agree"


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """History of one quantity for one seed."""

    seed: str
    values: list[float | None]  # one per epoch
    best: tuple[int, float] | None  # epoch whose weights were restored, and its value
    colour: str  # CSS class

    def best_caption(self, digits: int) -> str:
        """State the best epoch; empty if it is unknown."""
        if self.best is None:
            return ""
        return f" best {decimals(self.best[1], digits)} at epoch {integer(self.best[0])}"


def curves_section(result: Mapping[str, Any]) -> Markup:
    """Validation score and training loss of each seed."""
    score, loss = _curves(result, "score"), _curves(result, "loss")
    if not score and not loss:
        text = "This result has no training history."
        return page.section("Learning curves", tag("p", text, class_="quiet"))
    panels = [_panel(score, f"Validation {_criterion(result)}, %", 1)] if score else []
    panels += [_panel(loss, "Training loss", 3)] if loss else []
    text = "One line per seed. The ring marks the epoch whose weights were restored and evaluated."
    stages = max((number(run.get("stages")) or 1 for run in runs(result)), default=1)
    if stages > 1:
        text = (
            f"One line per seed, for the main one of {stages:.0f} stages of training. The ring "
            "marks the epoch whose weights were restored; the metrics are those of the complete "
            "method."
        )
    legend = _legend(score or loss, 1 if score else 3)
    drawn = tag("div", *panels, class_="panels")
    return page.section("Learning curves", tag("p", text), legend, drawn)


def _criterion(result: Mapping[str, Any]) -> str:
    """What the validation scores are; older results do not say it, they are Macro-F1."""
    names = {str(run.get("criterion") or "Macro-F1") for run in runs(result)}
    return names.pop() if len(names) == 1 else "score"


def _curves(result: Mapping[str, Any], key: str) -> list[_Curve]:
    """The histories of `key` that have anything to draw."""
    finished = runs(result)
    lines = []
    for index, run in enumerate(finished):
        values = [number(value) for value in items(run, "history", key)]
        epoch = number(run.get("best_epoch"))  # from zero, as the history
        value = None if epoch is None else lookup(values, int(epoch))
        best = None if epoch is None or value is None else (int(epoch), value)
        colour = f"colour-{index if len(finished) <= COLOURS else 0}"
        if any(value is not None for value in values):
            seed = str(run.get("seed", index))
            lines.append(_Curve(seed=seed, values=values, best=best, colour=colour))
    return lines


def _panel(lines: Sequence[_Curve], title: str, digits: int) -> Markup:
    """One plot, with tooltips of so many digits."""
    points = [thin(line.values) for line in lines]
    known = [value for series in points for _, value in series]
    low, high = _padded(min(known), max(known))
    last = max(max(len(line.values) for line in lines) - 1, 1)

    def x(epoch: float) -> float:
        return 100 * epoch / last

    def y(value: float) -> float:
        return 100 * (high - value) / (high - low)

    paths, marks = [], []
    for line, series in zip(lines, points, strict=True):
        caption = line.best_caption(digits)
        end = f"epoch {integer(series[-1][0])}: {decimals(series[-1][1], digits)}"
        tooltip = f"seed {line.seed},{caption or ' no best epoch'}; {end}"
        paths.append(curve([(x(e), y(v)) for e, v in series], tooltip, f"curve {line.colour}"))
        if line.best is not None:
            left, top = percent(x(line.best[0])), percent(y(line.best[1]))
            drop = {"x1": left, "x2": left, "y1": top, "y2": "100%"}
            ring = tag("title", f"seed {line.seed},{caption}")
            marks.append(tag("line", **drop, class_=f"drop {line.colour}"))
            marks.append(tag("circle", ring, cx=left, cy=top, r=5, class_=f"best {line.colour}"))
    plot = line_plot(
        f"{title} against epoch for {', '.join('seed ' + line.seed for line in lines)}",
        paths,
        marks,
        rows=[(y(value), f"{value:g}") for value in ticks(low, high, 4)],
        # epochs are integers, also for a short history
        columns=[(x(e), integer(e)) for e in ticks(0, last, 4) if e == int(e)],
        axis="epoch",
        kind="curves many" if len(lines) > COLOURS else "curves",
    )
    return tag("figure", tag("figcaption", tag("h3", title)), plot)


def _legend(lines: Sequence[_Curve], digits: int) -> Markup:
    """Name each line with its best epoch; of many lines only their number."""
    names = [(tag("b", f"seed {one.seed}"), one.best_caption(digits), one.colour) for one in lines]
    if len(lines) > COLOURS:
        text = f"{len(lines)} seeds, one line each; the ring marks the best epoch"
        names = [(Markup(""), text, "colour-0")]
    return page.legend(
        tag("li", swatch("curve best"), tag("span", name, text), class_=colour)
        for name, text, colour in names
    )


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = (high - low) * 0.05 or max(abs(high) * 0.05, 0.5)
    # the axis of values that stay above zero does not go below it
    return (low - pad if low < 0 else max(low - pad, 0.0)), high + pad


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


def render_page(result: Mapping[str, Any], *, links: Sequence[Link] = ()) -> str:
    """Render the content of a result.json as HTML.

    The page is self-contained. Its only script copies commands. Values that are missing, null or
    NaN show as a dash. `links` are other files beside the page.
    """
    rows = class_rows(result)
    metrics = [METRICS[key] for key in captions.metric_names(result) if key in METRICS]
    main = tag(
        "main",
        _headline(result),
        summary_section(result),
        curve_section(result),
        recall_section(result, rows),
        scores_section(rows),
        agreement_section(result),
        curves_section(result),
        confusion_section(result, rows),
        map_section(result),
        _seeds(result),
        base_rate_section(result),
        model_section(result),
        origin_section(result, links, changed=_changed(result)),
        _settings(result),
        page.glossary("What the metrics mean", {m.heading: m.meaning for m in metrics}),
    )
    created = result.get("created")
    moment = captions.timestamp(created)
    dated = [] if moment is None else [tag("time", moment, datetime=str(created))]
    footer = page.footer(result.get("evengraph"), *dated)
    title = f"{captions.title(result)}, {captions.imbalance(result)}"
    body = (_header(result, links), main, footer)
    style, script = (node_map.STYLE, node_map.SCRIPT) if part(result, "map") else ("", "")
    return page.html_page(title, *body, style=style, script=script + copy_script(result))


def result_sections(result: Mapping[str, Any]) -> list[Markup]:
    """Headline metrics and recall per class."""
    return [_headline(result), recall_section(result, class_rows(result))]


def write_page(result: Mapping[str, Any], path: Path, *, links: Sequence[Link] = ()) -> None:
    """Write the page of a result.json atomically; an older page at `path` is replaced."""
    page.write_html(render_page(result, links=links), path)


def _changed(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]] | None:
    """Parameters that differ from the defaults; None if that was not recorded."""
    values = changed_params(part(result, "method"))
    return None if values is None else {"": values}


def _header(result: Mapping[str, Any], links: Sequence[Link] = ()) -> Markup:
    """Title, the result in words, the idea of the method and the size of the graph."""
    summary = part(result, "method").get("summary")
    stopped = [str(run.get("seed", "?")) for run in runs(result) if run.get("interrupted") is True]
    caption = tag("span", captions.imbalance(result))
    parts = [
        tag("h1", captions.title(result), tag("span", ", ", class_="unseen"), caption),
        verdict(result, class_rows(result)),
        tag("p", "Method: ", summary, class_="lead")
        if isinstance(summary, str) and summary
        else "",
        page.facts([*captions.facts(result), ("", captions.seeds(result))]),
    ]
    if stopped:
        text = f"Training was interrupted for seed {', '.join(stopped)}: results are preliminary."
        parts.append(tag("p", text, class_="notice"))
    if not runs(result):
        parts.append(tag("p", "This result has no finished run.", class_="notice"))
    parts += [tag("p", text, class_="notice") for text in _notes(result)]
    return tag("header", *parts, page_links(links))


def _notes(result: Mapping[str, Any]) -> list[str]:
    """What went otherwise than expected in the fits, each sentence once, with its seeds."""
    seeds: dict[str, dict[str, None]] = {}
    for run in runs(result):
        for note in items(run, "notes"):
            seeds.setdefault(str(note), {})[str(run.get("seed", "?"))] = None
    return [
        f"{'Seed' if len(which) == 1 else 'Seeds'} {', '.join(which)}: {note}"
        for note, which in seeds.items()
    ]


def _headline(result: Mapping[str, Any]) -> Markup:
    """Cards with mean and standard deviation of the paper's metrics."""
    heading = tag("h2", "Headline metrics in percent", class_="unseen")
    marks = [("seed", "one seed"), ("tick", "mean")] if len(runs(result)) > 1 else []
    if part(result, "paper"):
        marks.append(("band paper", "mean and standard deviation in the paper"))
    entries = page.legend(tag("li", swatch(kind), text) for kind, text in marks)
    two = is_two_class(result) and not part(result, "paper")
    cards = two_class_cards(result) if two else [_card(result, key) for key in HEADLINE]
    return tag("section", heading, *cards, entries, class_="cards")


def _card(result: Mapping[str, Any], key: str) -> Markup:
    seeds = [number(lookup(run, "metrics", key)) for run in runs(result)]
    mean, std = (number(lookup(result, name, key)) for name in ("mean", "std"))
    published = part(result, "paper", key)
    paper = number(published.get("mean")), number(published.get("std"))
    # one seed has no deviation, and ± 0.0 would claim certainty
    unit = f"± {decimals(std)}" if len(seeds) > 1 and std is not None and mean is not None else ""
    title = METRICS[key].heading
    label = f"{title}: seeds {', '.join(decimals(value) for value in seeds)}"
    against: list[str] = []
    if paper[0] is not None:
        label += f"; paper {plus_minus(*paper)}"
        against.append(tag("span", "paper ", tag("b", plus_minus(*paper))))
        if mean is not None:
            difference = signed(mean - paper[0])
            text = "equal" if difference == "0.0" else f"{difference} points"
            against.append(tag("span", tag("b", text)))
    elif part(result, "paper"):
        against.append("not in the paper")
    below = tag("p", *against, class_="against") if against else Markup("")
    return page.card(title, decimals(mean), unit, strip(seeds, mean, paper, label), below)


def _seeds(result: Mapping[str, Any]) -> Markup:
    """Metrics of every seed; of two classes only the headline and binary ones."""
    names, omitted = captions.seed_metrics(result)
    extra = () if omitted else ("best epoch", "epochs", "seconds")
    lines = []
    for run in runs(result):
        cells = [metric_value(name, lookup(run, "metrics", name), digits=2) for name in names]
        if extra:
            cells += [integer(run.get(key)) for key in ("best_epoch", "epochs")]
            cells.append(decimals(run.get("seconds")))
        stopped = " (interrupted)" if run.get("interrupted") is True else ""
        lines.append((f"{run.get('seed', '?')}{stopped}", cells))
    lines += [
        (key, [metric_value(name, lookup(result, key, name), digits=2) for name in names])
        for key in ("mean", "std")[: len(runs(result))]  # one seed has no deviation
    ]
    if paper := part(result, "paper"):
        cells = [plus_minus(*(lookup(paper, k, name) for name in ("mean", "std"))) for k in names]
        lines.append(("paper", cells))
    heads = [tag("th", text, scope="col") for text in ("seed", *names.values(), *extra)]
    rows = []
    for name, cells in lines:
        blank = [""] * (len(heads) - 1 - len(cells))
        values = (tag("td", cell) for cell in [*cells, *blank])
        kind = "sum" if name == "mean" else None
        rows.append(tag("tr", tag("th", name, scope="row"), *values, class_=kind))
    more = f" Not shown, but in result.json: {', '.join(omitted)}." if omitted else ""
    text = f"In percent. {DASH} stands for undefined or not published.{more}"
    table = page.table("Results per seed", heads, rows, "figures")
    return page.section("Results per seed", tag("p", text), table)


def _settings(result: Mapping[str, Any]) -> Markup:
    """What is needed to run it again, folded."""
    method = part(result, "method")
    configuration = {
        "method": method.get("name"),
        **part(method, "fields"),
        **_resolved(result),
        "dataset": part(result, "dataset").get("name"),
        **{f"imbalance {key}": value for key, value in part(result, "imbalance").items()},
        "seeds": ", ".join(str(seed) for seed in items(result, "seeds")),
    }
    environment = {"evengraph": result.get("evengraph"), **part(result, "environment")}
    folded = []
    for title, values in (("Configuration", configuration), ("Environment", environment)):
        shown = {str(key): DASH if v is None else str(v) for key, v in values.items()}
        folded.append(tag("details", tag("summary", title), page.definitions(shown)))
    return page.section("Settings", *folded)


def _resolved(result: Mapping[str, Any]) -> dict[str, str]:
    """Parameters whose value was left to fitting, such as `auto: 1`."""
    fields, values = part(part(result, "method"), "fields"), dict[str, list[str]]()
    for run in runs(result):
        for name, value in part(run, "resolved").items():
            values.setdefault(name, []).append(str(value))
    return {n: f"{fields.get(n)}: {', '.join(dict.fromkeys(v))}" for n, v in values.items()}
