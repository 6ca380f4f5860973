"""The page of one result."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.metrics import HEADLINE, METRICS
from evengraph.report import node_map, page
from evengraph.report.formatting import DASH, decimals, integer, metric_value, plus_minus, signed
from evengraph.report.node_map import map_section
from evengraph.report.origin import Link, changed_params, copy_script, origin_section, page_links
from evengraph.report.run import captions
from evengraph.report.run.classes import confusion_section, recall_section, scores_section
from evengraph.report.run.committee import agreement_section, summary_section
from evengraph.report.run.curves import curves_section
from evengraph.report.run.decisions import base_rate_section, model_section
from evengraph.report.run.result_reader import class_rows, runs
from evengraph.report.run.two_classes import curve_section, is_two_class, two_class_cards
from evengraph.report.run.verdict import verdict
from evengraph.report.svg.charts import strip, swatch
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import items, lookup, number, part


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
