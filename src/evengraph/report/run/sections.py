"""The parts of the page, from the headline figures to the footnotes."""

from collections.abc import Mapping
from typing import Any

from evengraph.metrics import HEADLINE, METRICS
from evengraph.report.run import words
from evengraph.report.run.curves import curves, legend, panel
from evengraph.report.run.matrix import DENSE, matrix, mixed_up
from evengraph.report.run.values import (
    DASH,
    ClassRow,
    average,
    decimals,
    items,
    number,
    part,
    plural,
    runs,
    spread,
    whole,
)
from evengraph.report.svg.charts import count_bar, recall_row, scale_row, strip, swatch
from evengraph.report.svg.markup import Markup, join, tag


def header(result: Mapping[str, Any]) -> Markup:
    """Say what was run in plain words."""
    title = f"{words.method_title(result)} on {words.dataset_title(result)}"
    summary = part(result, "method").get("summary")
    facts = [tag("li", tag("b", figure), f" {word}") for figure, word in words.facts(result)]
    facts.append(tag("li", words.seeds_words(result)))
    stopped = [str(run.get("seed", "?")) for run in runs(result) if run.get("interrupted") is True]
    parts = [
        tag(
            "h1",
            title,
            tag("span", ", ", class_="unseen"),
            tag("span", words.imbalance_words(result)),
        ),
        tag("p", summary, class_="lead") if isinstance(summary, str) and summary else "",
        tag("ul", *facts, class_="facts"),
    ]
    if stopped:
        text = f"Interrupted before the end: seed {', '.join(stopped)}. Read the figures with care."
        parts.append(tag("p", text, class_="notice"))
    if not runs(result):
        parts.append(tag("p", "This result holds no finished run.", class_="notice"))
    return tag("header", *parts)


def headline(result: Mapping[str, Any]) -> Markup:
    """Show the three figures of the papers as mean and deviation over seeds."""
    cards = (_card(result, key) for key in HEADLINE)
    heading = tag("h2", "Headline figures in percent", class_="unseen")
    return tag("section", heading, *cards, _headline_legend(result), class_="cards")


def _headline_legend(result: Mapping[str, Any]) -> Markup:
    several = len(runs(result)) > 1
    entries = [("seed", "one seed"), ("tick", "mean")] if several else []
    if part(result, "paper"):
        entries.append(("band paper", "the paper’s mean and deviation"))
    if not entries:
        return Markup("")
    return tag("ul", *(tag("li", swatch(k), text) for k, text in entries), class_="legend")


def _card(result: Mapping[str, Any], key: str) -> Markup:
    seeds = [number(part(run, "metrics").get(key)) for run in runs(result)]
    mean, std = number(part(result, "mean").get(key)), number(part(result, "std").get(key))
    published = part(part(result, "paper"), key)
    paper = number(published.get("mean")), number(published.get("std"))
    # one seed has no spread, and ± 0.0 would claim certainty
    aside = f"± {decimals(std)}" if len(seeds) > 1 and std is not None and mean is not None else ""
    label = f"{METRICS[key].heading}: seeds {', '.join(decimals(value) for value in seeds)}"
    if paper[0] is not None:
        label += f"; paper {spread(*paper)}"
    return tag(
        "article",
        tag("h3", METRICS[key].heading),
        tag("p", tag("b", decimals(mean)), tag("span", aside) if aside else "", class_="figure"),
        strip(seeds, mean, paper, label),
        _against(mean, paper, bool(part(result, "paper"))),
        class_="card",
    )


def _against(
    mean: float | None, paper: tuple[float | None, float | None], published: bool
) -> Markup:
    if paper[0] is None:
        return tag("p", "not in the paper", class_="against") if published else Markup("")
    parts = [tag("span", "paper ", tag("b", spread(*paper)))]
    if mean is not None:
        parts.append(tag("span", tag("b", words.against_words(mean - paper[0]))))
    return tag("p", *parts, class_="against")


def classes(result: Mapping[str, Any], rows: list[ClassRow]) -> Markup:
    """Set training nodes and recall side by side, a line a class, head to tail."""
    reference = number(part(result, "mean").get("balanced_accuracy"))
    largest = max((row.count or 0.0 for row in rows), default=0.0)
    head = tag(
        "li",
        tag("span", class_="name"),
        tag("span", "training nodes", class_="counts"),
        tag("span", "test recall, %"),
        class_="head",
    )
    lines = (
        tag(
            "li",
            tag("span", row.name, class_="name", title=row.name),
            tag("span", whole(row.count), class_="value"),
            count_bar(row, largest),
            recall_row(row, reference),
            tag("span", decimals(average(row.recalls)), class_="value"),
            class_="rare" if row.minority else None,
        )
        for row in rows
    )
    scale = tag("li", scale_row(), class_="axis-row", aria_hidden="true")
    text = "The commonest class stands first. What matters is how recall holds towards the tail."
    if number(part(result, "imbalance").get("minority")) is None:
        text += " Minority: fewer than half the training nodes of the largest class."
    kind = "ladder dense" if len(rows) > DENSE else "ladder"
    return tag(
        "section",
        tag("h2", "Classes, head to tail"),
        tag("p", text),
        _class_legend(result, rows, reference),
        tag("ul", head, *lines, scale, class_=kind),
        class_="long" if len(rows) > DENSE else None,
    )


def _class_legend(
    result: Mapping[str, Any], rows: list[ClassRow], reference: float | None
) -> Markup:
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
    return tag("ul", *entries, class_="legend")


def learning(result: Mapping[str, Any]) -> Markup:
    """Show how each seed learned."""
    score, loss = curves(result, "score"), curves(result, "loss")
    heading = tag("h2", "Learning curves")
    if not score and not loss:
        nothing = tag("p", "This result holds no history.", class_="quiet")
        return tag("section", heading, nothing)
    panels = [
        panel(lines, title, digits)
        for lines, title, digits in (
            (score, "Validation Macro-F1, %", 1),
            (loss, "Training loss", 3),
        )
        if lines
    ]
    text = "One line a seed. The ring marks the epoch whose weights were kept and scored."
    stages = max((number(run.get("stages")) or 1 for run in runs(result)), default=1)
    if stages > 1:
        text = (
            f"One line a seed: the main one of the method’s {stages:.0f} stages. The ring marks "
            "the epoch whose weights were kept; what was scored came out of all stages."
        )
    names = legend(score or loss, 1 if score else 3)
    return tag(
        "section", heading, tag("p", text), names, tag("div", *panels, class_="panels")
    )  # fmt: skip


def mistakes(result: Mapping[str, Any], rows: list[ClassRow]) -> Markup:
    """Show which class is taken for which."""
    text = (
        f"Test nodes counted over {plural(len(runs(result)), 'seed')}; each row is shaded by its "
        "share, so a rare class shows as clearly as a common one."
    )
    if len(rows) > DENSE:
        text += " An empty cell is zero."
    ramp = tag("div", "0%", tag("i"), "100% of the true class", class_="ramp", aria_hidden="true")
    return tag(
        "section",
        tag("h2", "Which class is taken for which"),
        tag("p", text),
        tag("div", matrix(result, rows), _mixed(result, rows), class_="beside"),
        ramp,
        class_="long" if len(rows) > DENSE else None,
    )


def _mixed(result: Mapping[str, Any], rows: list[ClassRow]) -> Markup:
    lines = [
        tag(
            "li",
            tag("span", tag("b", true.name), " taken for ", guess.name),
            tag("b", f"{decimals(100 * share)}%"),
            class_="rare" if true.minority else None,
        )
        for share, true, guess in mixed_up(result, rows)[:5]
    ]
    if not lines:
        return Markup("")
    heading = tag("h3", "Most frequent mistakes, share of the true class")
    return tag("aside", heading, tag("ol", *lines, class_="mixed"))


def seeds(result: Mapping[str, Any]) -> Markup:
    """List the figures of every seed; of two classes those of the rarer one and the main ones."""
    names, left = words.seed_metrics(result)
    extra = () if left else ("best epoch", "epochs", "seconds")
    heads = (tag("th", text, scope="col") for text in ("seed", *names.values(), *extra))
    lines = [_seed_line(run, list(names), spent=bool(extra)) for run in runs(result)]
    blank = [""] * len(extra)
    # one seed has no deviation
    for word, key in (("mean", "mean"), ("deviation", "std"))[: len(runs(result))]:
        cells = [decimals(part(result, key).get(name), 2) for name in names]
        lines.append(_line(word, cells + blank, "sum" if key == "mean" else None))
    if paper := part(result, "paper"):
        cells = [spread(part(paper, k).get("mean"), part(paper, k).get("std")) for k in names]
        lines.append(_line("paper", cells + blank, None))
    more = f" Not shown, but in result.json: {', '.join(left)}." if left else ""
    table = tag(
        "table",
        tag("caption", "Figures of every seed", class_="unseen"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *lines),
        class_="figures",
    )
    return tag(
        "section",
        tag("h2", "Every seed"),
        tag("p", f"In percent. {DASH} stands for undefined or not published.{more}"),
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Every seed"),
    )


def _seed_line(run: Mapping[str, Any], names: list[str], spent: bool) -> Markup:
    cells = [decimals(part(run, "metrics").get(name), 2) for name in names]
    if spent:
        cells += [whole(run.get(key)) for key in ("best_epoch", "epochs")]
        cells.append(decimals(run.get("seconds")))
    stopped = " (interrupted)" if run.get("interrupted") is True else ""
    return _line(f"{run.get('seed', '?')}{stopped}", cells, None)


def _line(name: str, cells: list[str], kind: str | None) -> Markup:
    return tag(
        "tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells), class_=kind
    )


def settings(result: Mapping[str, Any]) -> Markup:
    """Fold away what is needed to run it again."""
    method, dataset = part(result, "method"), part(result, "dataset")
    configuration = {
        "method": method.get("name"),
        **part(method, "fields"),
        "dataset": dataset.get("name"),
        **{f"imbalance {key}": value for key, value in part(result, "imbalance").items()},
        "seeds": ", ".join(str(seed) for seed in items(result, "seeds")),
    }
    machine = {"evengraph": result.get("evengraph"), **part(result, "environment")}
    return tag(
        "section",
        tag("h2", "Settings"),
        _folded("Configuration", configuration),
        _folded("Environment", machine),
    )


def _folded(title: str, values: Mapping[str, Any]) -> Markup:
    pairs = (
        join((tag("dt", str(key)), tag("dd", DASH if value is None else str(value))))
        for key, value in values.items()
    )
    return tag("details", tag("summary", title), tag("dl", *pairs, class_="pairs"))


def notes(result: Mapping[str, Any]) -> Markup:
    """Explain each metric in a sentence or two."""
    told = (
        tag("div", tag("dt", name), tag("dd", METRICS[key].meaning))
        for key, name in words.metric_names(result).items()
        if key in METRICS
    )
    return tag("section", tag("h2", "What the figures mean"), tag("dl", *told, class_="words"))
