"""The page of a result.json: scores, classes, confusion and settings of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.core.untrusted import lookup, part
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.report import charts, page
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
from evengraph.report.view import (
    IN_USE,
    RANKING,
    ClassScores,
    ResultView,
    Score,
    describe_protocol,
    shares,
)

MOST_CLASSES = 300
"""Of which a confusion matrix is drawn: more take minutes, and nobody can read them."""


def write_page(result: Mapping[str, Any], path: Path, *, links: Sequence[page.Link] = ()) -> None:
    """Write the page of a result.json atomically; an older page at `path` is replaced."""
    page.write_html(render_page(result, links=links), path)


def render_page(result: Mapping[str, Any], *, links: Sequence[page.Link] = ()) -> str:
    """Render the content of a result.json as HTML.

    The page is self-contained. Its only script copies commands. Undefined metrics show as a dash.
    `links` are other files beside the page.
    """
    view = ResultView(result)
    meanings = {METRICS[k].heading: METRICS[k].meaning for k in view.metrics if k in METRICS}
    sections = [
        _cards(view),
        _class_scores(view),
        _thresholds(view),
        _likeliest(result),
        _precision_recall(view),
        _calibration(view),
        _summaries(view),
        _confusion(view),
        _seeds(view),
        _saved_model(part(result, "model")),
        page.origin_section(result),
        _settings(view),
        page.glossary("What the metrics mean", meanings),
    ]
    title = f"{view.title}, {describe_protocol(view.protocol)}"
    return page.render(result, title, _heading(view, links), sections)


def _heading(view: ResultView, links: Sequence[page.Link]) -> list[Markup]:
    """Title, the result in words, the idea of the method and the size of the graph."""
    lead = [tag("p", view.chosen, class_="lead")] if view.chosen else []
    stopped, notices = [str(run["seed"]) for run in view.runs if run["interrupted"]], view.notes
    if stopped:
        which = ", ".join(stopped)
        text = f"Training was interrupted for seed {which}: results are preliminary."
        notices = [text, *notices]
    return [
        page.headline(view.title, describe_protocol(view.protocol)),
        page.verdict(view.verdict),
        *lead,
        page.facts([*view.facts, ("", view.seeds)]),
        *(tag("p", text, class_="notice") for text in notices),
        page.page_links(links),
    ]


def _cards(view: ResultView) -> Markup:
    """Mean and standard deviation of the headline metrics, or of the ranking of two classes."""
    heading = tag("h2", "Headline metrics in percent", class_="unseen")
    two = view.is_two_class and not view.paper
    cards = _two_class_cards(view) if two else [_card(view.score(k), view) for k in HEADLINE]
    return tag("section", heading, *cards, class_="cards")


def _card(score: Score, view: ResultView) -> Markup:
    against: tuple[str, ...] = ()
    if score.paper[0] is not None:
        against = (tag("span", "paper ", tag("b", plus_minus(*score.paper))),)
        if score.difference is not None:
            points = signed(score.difference)
            text = "equal" if points == "0.0" else f"{points} points"
            against += (tag("span", tag("b", text)),)
    elif view.paper:
        against = ("not in the paper",)
    below = tag("p", *against, class_="against") if any(against) else Markup("")
    # one seed has no deviation, and ± 0.0 would claim certainty
    unit = "" if score.std is None else f"± {decimals(score.std)}"
    return page.card(METRICS[score.name].heading, decimals(score.mean), unit, below)


def _two_class_cards(view: ResultView) -> list[Markup]:
    """Average precision against chance, recall and precision at the threshold."""
    (shown, where), title = view.average_precision, METRICS[RANKING].heading
    value, _, between = shown.rstrip(")").partition("% (")
    against = tag("p", *(tag("span", text) for text in where.split("; ")), class_="against")
    cards = [page.card(title, value, between, against)]
    if (row := view.positive) is not None:
        pooled, threshold = (
            row.pooled,
            metric_value("tuned_threshold", view.score("tuned_threshold").mean),
        )
        wrong = f"{integer(pooled.hits)} of {integer(pooled.guessed)} alarms are right"
        found = f"{integer(pooled.hits)} of {integer(pooled.size)} nodes of class {row.name}"
        for title, text, below in (
            ("Precision at the threshold", pooled.precision, wrong),
            ("Recall at the threshold", pooled.recall, found),
        ):
            value, _, between = text.partition(" (")
            lines = tag("span", below), tag("span", "threshold ", tag("b", threshold))
            cards.append(
                page.card(title, value, between.rstrip(")"), tag("p", *lines, class_="against"))
            )
    return cards


def _summaries(view: ResultView) -> Markup:
    """What the method says about what it did; of several seeds, all but the ends is folded."""
    blocks, rejected = [], []
    for seed, lines in view.summaries:
        if len(view.runs) > 1:
            name, middle = tag("b", f"Seed {seed}:"), lines[1:-1]
            blocks.append(tag("p", name, f" {' '.join([*lines[:1], *lines[1:][-1:]])}"))
            rejected += [tag("p", name, f" {' '.join(middle)}")] if middle else []
        else:
            blocks += [tag("p", line) for line in lines]
    blocks += [page.folded("What was rejected", *rejected)] if rejected else []
    return page.section("What was selected", *blocks) if blocks else Markup("")


def _precision_recall(view: ResultView) -> Markup:
    """Precision against recall on the test nodes, one line per seed; nothing without it."""
    series: dict[str, list[tuple[float, float]]] = {}
    for run in view.runs:
        points = [(100 * x, 100 - 100 * y) for x, y in run.get("precision_recall") or ()]
        series |= {str(run["seed"]): points} if points else {}
    if not series:
        return Markup("")
    lines, entries, marks = [], [], []
    for place, (seed, points) in enumerate(series.items()):
        colour = f"colour-{place if len(series) <= charts.COLOURS else 0}"
        lines.append(charts.curve(points, f"seed {seed}", f"curve {colour}"))
        entries.append(tag("li", charts.swatch("curve"), f"seed {seed}", class_=colour))
    total = sum(map(sum, view.confusion))
    if (row := view.positive) is not None and total:
        rate = 100 * row.pooled.size / total
        at = f"{100 - rate:.2f}%"
        marks.append(tag("line", x2="100%", y1=at, y2=at, class_="reference"))
        entries.append(tag("li", charts.swatch("reference"), f"base rate {decimals(rate)}"))
    plot = charts.line_plot(
        "Precision against recall of the rarer class, in percent",
        lines,
        marks,
        rows=[(100 - value, str(value)) for value in charts.GRID],
        columns=[(float(value), str(value)) for value in charts.GRID],
        axis="recall, %",
    )
    text = "Precision in percent against recall, as the threshold falls from left to right."
    figure = tag("div", tag("figure", plot), class_="panels")
    shown = page.legend(entries[-charts.COLOURS - 1 :])
    return page.section("Precision-recall curve", tag("p", text), shown, figure)


def _class_scores(view: ResultView) -> Markup:
    """Precision, recall and F1 of each class in all test sets; nothing without predictions."""
    if not sum(map(sum, view.confusion)):
        return Markup("")
    lines = [
        tag("tr", _class_name(row, "row"), *(tag("td", cell) for cell in row.cells))
        for row in view.classes
    ]
    decided = "at the threshold" if view.is_two_class else "for the class decided"
    text = f"In percent with 95% intervals, {decided}, over the nodes of all test sets."
    if len(view.runs) > 1:
        text += " Intervals allow for nodes that test sets share."
    heads = ("class", "training nodes", "test nodes", "precision", "recall", "F1")
    title, kind = "Precision, recall and F1 per class", "figures rules classes"
    return page.table_section(title, text, heads, lines, kind=kind)


def _class_name(row: ClassScores, scope: str) -> Markup:
    kind = "rare" if row.minority else None
    return tag("th", tag("span", row.name), scope=scope, class_=kind, title=row.name)


def _confusion(view: ResultView) -> Markup:
    """Confusion matrix summed over seeds."""
    rows = view.classes
    counts = view.confusion if len(rows) <= MOST_CLASSES else []
    if not counts:
        many = f"A matrix of more than {MOST_CLASSES} classes is not drawn."
        text = many if len(rows) > MOST_CLASSES else "This result has no confusion matrix."
        return page.section("Confusion matrix", tag("p", text, class_="quiet"))
    dense = len(rows) > page.DENSE
    text = f"Test nodes summed over {plural(len(view.runs), 'seed')}. Rows are shaded by their "
    text += "share of the true class, so that rare classes show as clearly as common ones."
    intro = tag("p", text, " An empty cell is zero." if dense else "")
    ramp = tag("div", "0%", tag("i"), "100% of the true class", class_="ramp", aria_hidden="true")
    corner = tag("td", tag("span", "true ↓"), tag("span", "predicted →"), class_="corner")
    lines = []
    for true, line in zip(rows, counts, strict=True):
        cells = [_class_name(true, "row")]
        for guess, count, share in zip(rows, line, shares(line), strict=True):
            kinds = {"hit": guess is true, "strong": share >= page.FLIP, "none": count == 0}
            of = f"{integer(count)} of {integer(sum(line))} ({percentage(share, 1)})"
            look = " ".join(kind for kind, applies in kinds.items() if applies) or None
            share_of = {"style": f"--share:{share:.3f}", "class_": look}
            title = f"{true.name}, predicted as {guess.name}: {of}"
            text = "" if dense and count == 0 else integer(count)
            cells.append(tag("td", text, **share_of, title=title))
        lines.append(tag("tr", *cells))
    heads = [corner, *(_class_name(row, "col") for row in rows)]
    kind = "matrix dense" if dense else "matrix"
    matrix = page.table("Confusion matrix, counts of test nodes", heads, lines, kind)
    return page.section("Confusion matrix", intro, matrix, ramp, kind="long" if dense else None)


def _seeds(view: ResultView) -> Markup:
    """Metrics of every seed; of two classes only the headline and binary ones."""
    names, known = view.metrics, [METRICS[key] for key in view.metrics if key in METRICS]
    binary = any(metric.binary for metric in known)
    omitted = [m.name for m in known if binary and not (m.binary or m.headline)]
    shown = [name for name in names if name not in omitted]
    extra = () if binary else view.effort
    lines = []
    for run in view.runs:
        cells = [metric_value(name, lookup(run, "metrics", name), digits=2) for name in shown]
        if extra:
            cells += [integer(run.get(name.replace(" ", "_"))) for name in extra[:-1]]
            cells.append(decimals(run.get("seconds")))
        stopped = " (interrupted)" if run.get("interrupted") is True else ""
        lines.append((f"{run.get('period', run.get('seed', '?'))}{stopped}", cells))
    for key in ("mean", "std")[: len(view.runs)]:  # one seed has no deviation
        values = {name: lookup(view.content, key, name) for name in shown}
        lines.append((key, [metric_value(name, v, digits=2) for name, v in values.items()]))
    if view.paper:
        lines.append(("paper", [plus_minus(*view.score(name).paper) for name in shown]))
    heads = ("seed", *(names[name] for name in shown), *extra)
    rows = []
    for name, cells in lines:
        blank = [""] * (len(heads) - 1 - len(cells))
        rows.append(page.table_row(name, [*cells, *blank], "sum" if name == "mean" else None))
    left_out = ", ".join([*(names[name] for name in omitted), "epochs", "seconds"])
    more = f" Not shown, but in result.json: {left_out}." if binary else ""
    text = f"In percent. {DASH} stands for undefined or not published.{more}"
    return page.table_section("Results per seed", text, heads, rows)


def _thresholds(view: ResultView) -> Markup:
    """What several thresholds do on held-out nodes; nothing without them."""
    rows = [
        page.table_row(name, cells, "sum" if name.endswith(IN_USE) else None)
        for name, *cells in view.thresholds
    ]
    if not rows:
        return Markup("")
    nodes = integer(lookup(view.content, "decision", "options", 0, "nodes"))
    text = f"{view.threshold} The table is about these {nodes} nodes, "
    text += "each predicted by a model that had not learnt from it, with 95% intervals. Choose "
    text += "with run or predict: --cost-miss 50, --alerts 1%, --precision 0.5, --recall 0.8."
    heads = view.threshold_heads
    return page.table_section("What thresholds would do", text, heads, rows, kind="figures rules")


def _likeliest(result: Mapping[str, Any]) -> Markup:
    """The unlabelled nodes that are most likely of the class to find, and why."""
    if not (found := part(result, "likeliest")):
        return Markup("")
    rows = [
        page.table_row(one["id"], (decimals(one["probability"], 3), "; ".join(one["reasons"])))
        for one in found["nodes"]
    ]
    title, heads = f"Most likely {found['class']}", ("id", found["kind"], "reasons")
    text = "Unlabelled nodes, by the saved model; all of them are in predictions.csv."
    return page.table_section(title, text, heads, rows, kind="figures reasons")


def _calibration(view: ResultView) -> Markup:
    """How often nodes of each predicted probability are of the class, before and after."""
    about = part(view.content, "calibration")
    if not about:
        return Markup("")
    curves = {name: [row[:2] for row in rows] for name, rows in about["reliability"].items()}
    top = max([value for points in curves.values() for pair in points for value in pair])
    scale, series, entries = 100 / (top or 1.0), [], []
    for place, (name, points) in enumerate(curves.items()):
        words, kind = f"{name} calibration", f"colour-{place}"
        drawn = [(scale * x, 100 - scale * y) for x, y in points]
        series.append(charts.curve(drawn, words, f"curve {kind}"))
        entries.append(tag("li", charts.swatch("curve"), words, class_=kind))
    entries.append(tag("li", charts.swatch("reference"), "probabilities that hold"))
    marks = [(scale * value, f"{100 * value:g}") for value in charts.ticks(0, top, 4)]
    plot = charts.line_plot(
        "Share of nodes of the class against the predicted probability, in percent",
        series,
        [tag("line", x1="0%", y1="100%", x2="100%", y2="0%", class_="reference")],
        rows=[(100 - place, text) for place, text in marks],
        columns=marks,
        axis="predicted, %",
    )
    lines = [tag("p", line) for line in about["lines"]]
    figure = tag("div", tag("figure", plot), class_="panels")
    return page.section("Calibration", *lines, page.legend(entries), figure)


def _saved_model(model: Mapping[str, Any]) -> Markup:
    """The model that predicts: what it was trained on."""
    if not model:
        return Markup("")
    chosen = ", ".join(filter(None, [f"seed {model['seed']}", model["reason"]]))
    origin = f"This is the model of {chosen}."
    if (refit := model["refit"]) is None:
        origin += " It is used as it was tested."
    else:
        origin += (
            " Once tested, it was trained again with the test labels added, on "
            f"{refit['train']:,} labels instead of {refit['train_before']:,}; the results above "
            "are from before. Labels that were held out decided when to stop, the threshold and "
            "the calibration."
        )
    return page.section("The saved model", tag("p", origin))


def _settings(view: ResultView) -> Markup:
    """What is needed to run it again, folded."""
    fields = part(view.method, "fields")
    resolved: dict[str, list[str]] = {}  # of parameters whose value was left to fitting
    for run in view.runs:
        for name, value in part(run, "resolved").items():
            resolved.setdefault(name, []).append(str(value))
    configuration = {
        "method": view.method.get("name"),
        **fields,
        **{n: f"{fields.get(n)}: {', '.join(dict.fromkeys(v))}" for n, v in resolved.items()},
        "dataset": view.content["dataset"]["name"],
        **{f"imbalance {key}": value for key, value in view.protocol.items()},
        "seeds": ", ".join(map(str, view.content["seeds"])),
    }
    environment = {"evengraph": view.content["evengraph"], **view.content["environment"]}
    return page.settings(("Configuration", configuration), ("Environment", environment))
