"""Sections of the run page, from the headline metrics to the glossary."""

from collections.abc import Mapping
from typing import Any

from evengraph.metrics import HEADLINE, METRICS
from evengraph.report import page
from evengraph.report.formatting import DASH, decimals, integer, plural, plus_minus, signed
from evengraph.report.page import DENSE
from evengraph.report.run import captions
from evengraph.report.run.curves import curves, legend, panel
from evengraph.report.run.matrix import confused_pairs, matrix
from evengraph.report.run.result_reader import ClassRow, runs
from evengraph.report.svg.charts import bar, dot_row, strip, swatch
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import average, items, number, part


def header(result: Mapping[str, Any]) -> Markup:
    """Title, summary of the method and size of the graph."""
    summary = part(result, "method").get("summary")
    stopped = [str(run.get("seed", "?")) for run in runs(result) if run.get("interrupted") is True]
    caption = tag("span", captions.imbalance(result))
    parts = [
        tag("h1", captions.title(result), tag("span", ", ", class_="unseen"), caption),
        tag("p", summary, class_="lead") if isinstance(summary, str) and summary else "",
        page.facts([*captions.facts(result), ("", captions.seeds(result))]),
    ]
    if stopped:
        text = f"Training was interrupted for seed {', '.join(stopped)}: results are preliminary."
        parts.append(tag("p", text, class_="notice"))
    if not runs(result):
        parts.append(tag("p", "This result has no finished run.", class_="notice"))
    return tag("header", *parts)


def headline(result: Mapping[str, Any]) -> Markup:
    """Cards with mean and standard deviation of the paper's metrics."""
    heading = tag("h2", "Headline metrics in percent", class_="unseen")
    marks = [("seed", "one seed"), ("tick", "mean")] if len(runs(result)) > 1 else []
    if part(result, "paper"):
        marks.append(("band paper", "mean and standard deviation in the paper"))
    entries = page.legend(tag("li", swatch(kind), text) for kind, text in marks)
    cards = (_card(result, key) for key in HEADLINE)
    return tag("section", heading, *cards, entries, class_="cards")


def _card(result: Mapping[str, Any], key: str) -> Markup:
    seeds = [number(part(run, "metrics").get(key)) for run in runs(result)]
    mean, std = number(part(result, "mean").get(key)), number(part(result, "std").get(key))
    published = part(part(result, "paper"), key)
    paper = number(published.get("mean")), number(published.get("std"))
    # one seed has no deviation, and ± 0.0 would claim certainty
    unit = f"± {decimals(std)}" if len(seeds) > 1 and std is not None and mean is not None else ""
    title = METRICS[key].heading
    label = f"{title}: seeds {', '.join(decimals(value) for value in seeds)}"
    if paper[0] is not None:
        label += f"; paper {plus_minus(*paper)}"
    beside = Markup("")
    if paper[0] is not None:
        parts = [tag("span", "paper ", tag("b", plus_minus(*paper)))]
        if mean is not None:
            difference = signed(mean - paper[0])
            text = "equal" if difference == "0.0" else f"{difference} points"
            parts.append(tag("span", tag("b", text)))
        beside = tag("p", *parts, class_="against")
    elif part(result, "paper"):
        beside = tag("p", "not in the paper", class_="against")
    return page.card(title, decimals(mean), unit, strip(seeds, mean, paper, label), beside)


def classes(result: Mapping[str, Any], rows: list[ClassRow]) -> Markup:
    """Training nodes and recall of each class."""
    reference = number(part(result, "mean").get("balanced_accuracy"))
    largest = max((row.count or 0.0 for row in rows), default=0.0)
    lines = []
    for row in rows:
        recall, size = decimals(average(row.recalls)), integer(row.count)
        size_bar = bar(f"{row.name}: {size} training nodes", row.count or 0.0, largest)
        axis = recall_row(row, reference)
        lines.append(page.class_row(row.name, size, size_bar, axis, recall, row.minority))
    text = "Classes are sorted by their number of training nodes."
    if number(part(result, "imbalance").get("minority")) is None:
        text += " A minority class has fewer than half the training nodes of the largest class."
    marks = _class_marks(result, rows, reference)
    columns = ("training nodes", "test recall, %")
    return page.class_section("Recall per class, head to tail", text, marks, columns, lines)


def recall_row(row: ClassRow, reference: float | None) -> Markup:
    """Draw the recall of one class: one dot per seed, their range and their mean."""
    values = [value for value in row.recalls if value is not None]
    if not values:
        return dot_row(f"{row.name}: recall undefined", None, reference=reference)
    label = f"{row.name}: mean recall {decimals(average(values))}"
    several = len(values) > 1
    if several:
        label += f", from {decimals(min(values))} to {decimals(max(values))}"
    if (f1 := average(row.f1s)) is not None:
        label += f"; mean F1 {decimals(f1)}"
    return dot_row(
        label,
        average(values),
        span=(min(values), max(values)) if several else None,
        points=values if several else (),
        reference=reference,
    )


def _class_marks(
    result: Mapping[str, Any], rows: list[ClassRow], reference: float | None
) -> list[Markup]:
    entries = []
    for rare, word in ((False, "majority"), (True, "minority")):
        group = [average(row.recalls) for row in rows if row.minority is rare]
        if group:
            text = plural(len(group), f"{word} class", f"{word} classes")
            recall = tag("b", f"mean recall {decimals(average(group))}")
            entry = tag("span", f"{text}, ", recall)
            entries.append(tag("li", swatch("bar"), entry, class_="rare" if rare else None))
    if len(runs(result)) > 1:
        entries.append(tag("li", swatch("whisker mean"), "mean and range over seeds"))
        entries.append(tag("li", swatch("seed"), "one seed"))
    if reference is not None:
        text = f"balanced accuracy {decimals(reference)}"
        entries.append(tag("li", swatch("reference"), text))
    return entries


def learning_curves(result: Mapping[str, Any]) -> Markup:
    """Validation score and training loss of each seed."""
    score, loss = curves(result, "score"), curves(result, "loss")
    heading = tag("h2", "Learning curves")
    if not score and not loss:
        text = "This result has no training history."
        return tag("section", heading, tag("p", text, class_="quiet"))
    panels = [panel(score, "Validation Macro-F1, %", 1)] if score else []
    panels += [panel(loss, "Training loss", 3)] if loss else []
    text = "One line per seed. The ring marks the epoch whose weights were restored and evaluated."
    stages = max((number(run.get("stages")) or 1 for run in runs(result)), default=1)
    if stages > 1:
        text = (
            f"One line per seed, for the main stage of the method’s {stages:.0f}. The ring marks "
            "the epoch whose weights were restored; the metrics are those of the complete method."
        )
    names = legend(score or loss, 1 if score else 3)
    return tag(
        "section", heading, tag("p", text), names, tag("div", *panels, class_="panels")
    )  # fmt: skip


def confusion_matrix(result: Mapping[str, Any], rows: list[ClassRow]) -> Markup:
    """Confusion matrix and the most frequent errors."""
    text = (
        f"Test nodes summed over {plural(len(runs(result)), 'seed')}. Rows are shaded by their "
        "share of the true class, so that rare classes show as clearly as common ones."
    )
    if len(rows) > DENSE:
        text += " An empty cell is zero."
    ramp = tag("div", "0%", tag("i"), "100% of the true class", class_="ramp", aria_hidden="true")
    return tag(
        "section",
        tag("h2", "Confusion matrix"),
        tag("p", text),
        tag("div", matrix(result, rows), _frequent_errors(result, rows), class_="beside"),
        ramp,
        class_="long" if len(rows) > DENSE else None,
    )


def _frequent_errors(result: Mapping[str, Any], rows: list[ClassRow]) -> Markup:
    lines = [
        tag(
            "li",
            tag("span", tag("b", true.name), " predicted as ", guess.name),
            tag("b", f"{decimals(100 * share)}%"),
            class_="rare" if true.minority else None,
        )
        for share, true, guess in confused_pairs(result, rows)[:5]
    ]
    if not lines:
        return Markup("")
    heading = tag("h3", "Most frequent errors, share of the true class")
    return tag("aside", heading, tag("ol", *lines, class_="mixed"))


def seeds(result: Mapping[str, Any]) -> Markup:
    """Metrics of every seed; of two classes only the headline and binary ones."""
    names, omitted = captions.seed_metrics(result)
    extra = () if omitted else ("best epoch", "epochs", "seconds")
    heads = (tag("th", text, scope="col") for text in ("seed", *names.values(), *extra))
    lines = []
    for run in runs(result):
        cells = [decimals(part(run, "metrics").get(name), 2) for name in names]
        if extra:
            cells += [integer(run.get(key)) for key in ("best_epoch", "epochs")]
            cells.append(decimals(run.get("seconds")))
        stopped = " (interrupted)" if run.get("interrupted") is True else ""
        lines.append(_line(f"{run.get('seed', '?')}{stopped}", cells))
    blank = [""] * len(extra)
    # one seed has no deviation
    for key in ("mean", "std")[: len(runs(result))]:
        cells = [decimals(part(result, key).get(name), 2) for name in names]
        lines.append(_line(key, cells + blank, "sum" if key == "mean" else None))
    if paper := part(result, "paper"):
        cells = [plus_minus(part(paper, k).get("mean"), part(paper, k).get("std")) for k in names]
        lines.append(_line("paper", cells + blank))
    more = f" Not shown, but in result.json: {', '.join(omitted)}." if omitted else ""
    table = tag(
        "table",
        tag("caption", "Results per seed", class_="unseen"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *lines),
        class_="figures",
    )
    return tag(
        "section",
        tag("h2", "Results per seed"),
        tag("p", f"In percent. {DASH} stands for undefined or not published.{more}"),
        page.scroll(table, "Results per seed"),
    )


def _line(name: str, cells: list[str], kind: str | None = None) -> Markup:
    return tag(
        "tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells), class_=kind
    )


def settings(result: Mapping[str, Any]) -> Markup:
    """What is needed to run it again, folded."""
    method = part(result, "method")
    configuration = {
        "method": method.get("name"),
        **part(method, "fields"),
        "dataset": part(result, "dataset").get("name"),
        **{f"imbalance {key}": value for key, value in part(result, "imbalance").items()},
        "seeds": ", ".join(str(seed) for seed in items(result, "seeds")),
    }
    environment = {"evengraph": result.get("evengraph"), **part(result, "environment")}
    folded = []
    for title, values in (("Configuration", configuration), ("Environment", environment)):
        shown = {str(key): DASH if v is None else str(v) for key, v in values.items()}
        folded.append(tag("details", tag("summary", title), page.definitions(shown)))
    return tag("section", tag("h2", "Settings"), *folded)


def metric_glossary(result: Mapping[str, Any]) -> Markup:
    """One sentence per metric."""
    metrics = [METRICS[key] for key in captions.metric_names(result) if key in METRICS]
    return page.glossary("What the metrics mean", {m.heading: m.meaning for m in metrics})
