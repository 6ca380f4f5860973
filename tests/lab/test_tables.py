"""The web page of a store, its plots, and its tables as CSV: snapshots, and names that bite.

After a wanted change, UPDATE_SNAPSHOTS=1 writes the snapshots again; read the difference.
"""

import base64
import csv
import hashlib
import io
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from command_line import call
from evengraph.lab.pages import (
    curve_panel,
    dots_panel,
    gaps_panel,
    render_overview,
    some_values,
    write_report,
)
from evengraph.lab.results import MANY, difference_text, table_csv
from evengraph.lab.store import Store
from evengraph.report.page import copy_script
from made_up import FEW, STEP, make_results, published, spread
from page_tree import parse_page
from snapshots import check_snapshot

METRIC = "balanced_accuracy"
SNAPSHOTS = Path(__file__).parent / "snapshots"
HOSTILE = "</title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' &amp;"


SHOWN = ("href", "class", "data-method", "title")


def page_lines(node):
    """What a page shows, one line each."""
    if isinstance(node, str):
        yield from [node.strip()] if node.strip() else []
        return
    if node.tag in ("td", "th", "li", "a", "tr"):
        words = (f"{name}={value}" for name, value in node.attributes.items() if name in SHOWN)
        yield f"<{' '.join([node.tag, *words])}>"
    for child in node.children if node.tag not in ("style", "script") else ():
        yield from page_lines(child)


def overview(*arguments):
    """The page as a tree, and its lines."""
    page = parse_page(render_overview(*arguments))
    return page, list(page_lines(page))


def test_snapshots(experiments):
    check_snapshot(SNAPSHOTS / "tables.csv", table_csv(experiments))
    _, lines = overview(experiments, {"command": "evengraph report x.sqlite"})
    check_snapshot(SNAPSHOTS / "page.txt", "\n".join(lines) + "\n")


def test_names_of_others_do_not_break_csv_and_signs_are_right():
    label = 'a,b|c "d"<i>\n\x1b'
    results = make_results({("cora-step", label): spread(60.0, range(3), "x")})
    (line,) = csv.DictReader(io.StringIO(table_csv([results])))
    assert line["method"] == label
    assert table_csv([]).strip() == ""
    assert [difference_text(value) for value in (-0.04, 0.0, -0.06)] == ["+0.0", "+0.0", "-0.1"]


# The web page.


def test_the_page_loads_nothing_and_copies_its_command_alone(experiments):
    text = render_overview(experiments, {"command": "evengraph report x"})
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text, re.IGNORECASE)
    nodes = list(parse_page(text).walk())
    assert not {"iframe", "img", "object", "embed", "base", "form"} & {node.tag for node in nodes}
    every = [node.attributes for node in nodes]
    for attributes in every:
        assert not {"src", "srcset", "xlink:href", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert re.match(r"#|data:,$|tables\.csv$", attributes.get("href", "#"))
    script = copy_script({"command": "evengraph report x"})
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [one["content"] for one in every if "http-equiv" in one]
    assert set(policy.split("; ")) == {
        *("default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'"),
        *("img-src data:", "base-uri 'none'", "form-action 'none'"),
    }
    ids = [one["id"] for one in every if "id" in one]
    assert len(ids) == len(set(ids))
    targets = {one["href"] for one in every if one.get("href", "").startswith("#")}
    assert targets <= {f"#{name}" for name in ids}


@pytest.mark.parametrize("kind", ["comparison", "ablation", "sensitivity"])
def test_everything_is_escaped(experiments, kind):
    results = next(one for one in experiments if one.kind == kind)
    loud = {"environment": {"device": HOSTILE}, "created": HOSTILE}
    cells = [
        replace(
            cell,
            setting=f"cora-{HOSTILE}",
            dataset=HOSTILE,
            label=f"{HOSTILE}{cell.label}",
            value=None if cell.value is None else f"{HOSTILE}{cell.value}",
            selected={HOSTILE: HOSTILE} if cell.selected else {},
            rows=[replace(row, **loud) for row in cell.rows],
        )
        for cell in results.cells
        if cell.setting == STEP
    ]
    page, lines = overview([replace(results, title=HOSTILE, name=HOSTILE, cells=cells)])
    assert not page.all("script")
    assert not page.all("img")
    assert lines[0] == HOSTILE


def test_the_criterion_of_selection_is_named(experiments):
    rows = [
        replace(r, outcome={**r.outcome, "criterion": "x"}) for r in experiments[0].cells[0].rows
    ]
    first = replace(experiments[0].cells[0], rows=rows)
    other = replace(experiments[0], cells=[first, *experiments[0].cells[1:]])
    assert "selected by mean Macro-F1 on validation nodes only" in render_overview(experiments)
    assert "selected by mean Macro-F1 or x on" in render_overview([other])


def test_without_published_results_nothing_speaks_of_the_paper():
    values = {("cora-step", "GCN"): {5: 60.0, 6: 61.0}, ("cora-step", "MLP"): {5: 50.0, 6: 52.0}}
    _, lines = overview([make_results(values)])
    assert not [line for line in lines if re.search("paper|publish", line, re.IGNORECASE)]
    _, alone = overview([make_results({("cora-step", "GCN"): {5: 60.0}})])
    assert {"1", "runs", "setting"} <= set(alone)


def test_settings_that_read_the_same_keep_their_names(comparison):
    other = [replace(cell, setting=f"{cell.setting}-raw") for cell in comparison.cells]
    titles = replace(comparison, cells=[*comparison.cells, *other])
    assert titles.setting_title(STEP).endswith(f"({STEP})")
    assert comparison.setting_title(STEP) == "Cora, 3 minority classes at 10%"
    assert comparison.setting_title("nowhere") == "nowhere"


# Plots of the page.


def find(tree, tag, kind=""):
    return [n for n in tree.iter(tag) if not kind or kind in n.get("class", "").split()]


def place(node, name):
    return float(node.get(name).removesuffix("%"))


def parse(panel):
    """The panel as a tree; all that has a place in percent lies within its picture."""
    tree = ElementTree.fromstring(f"<div>{panel}</div>")
    for node in tree.iter():
        for name in ("x1", "x2", "cx", "x", "y1", "y2", "cy"):
            if node.get(name, "").endswith("%"):
                assert 0 <= place(node, name) <= 100, (node.tag, name)
    assert "nan" not in str(panel).lower()
    return tree


def lines(tree):
    """The line of each method, by its name."""
    return {n.get("data-method"): n for n in tree.iter("li") if n.get("data-method")}


def test_all_marks_and_ticks_of_a_panel_share_one_straight_scale(comparison):
    tree = parse(dots_panel(comparison, STEP, METRIC))
    found = [(float(tick.text), place(tick, "x")) for tick in find(tree, "text", "tick")]
    assert len(found) >= 2
    for label, line in lines(tree).items():
        cell = comparison.find(STEP, label)
        (mean,), seeds = find(line, "circle", "mean"), find(line, "circle", "seed")
        (whisker,), paper = find(line, "line", "whisker"), find(line, "line", "paper")
        found.append((cell.mean(METRIC), place(mean, "cx")))
        found += zip(cell.values(METRIC), (place(seed, "cx") for seed in seeds), strict=True)
        found += zip(cell.interval(METRIC), (place(whisker, n) for n in ("x1", "x2")), strict=True)
        assert len(paper) == (cell.published(METRIC) is not None)
        found += [(cell.published(METRIC), place(dash, "x1")) for dash in paper]
    (low, left), (high, right) = min(found), max(found)
    for value, at in found:
        assert at == pytest.approx(left + (right - left) * (value - low) / (high - low), abs=0.02)


def test_the_best_and_what_is_below_for_certain_stand_out(experiments):
    def strong(panel):
        found = lines(parse(panel)).items()
        return [label for label, line in found if line.get("class") == "strong"]

    for setting in experiments[0].settings:
        assert strong(dots_panel(experiments[0], setting, METRIC)) == ["Uni-GNN"]
    for setting in experiments[1].settings:
        assert strong(gaps_panel(experiments[1], setting, METRIC)) == ["no semantic"]


@pytest.mark.parametrize(
    "values", [{5: 60.0}, {5: 0.0, 6: 100.0}, {5: 50.0, 6: 50.0}, {5: 1e-9, 6: 0.0}]
)
def test_any_spread_stays_inside(values):
    results = make_results({("cora-step", "GCN"): values}, paper=published(100.0))
    tree = parse(dots_panel(results, "cora-step", METRIC))
    assert len(find(tree, "line", "whisker")) == (len(values) > 1)


def test_differences_are_paired_by_common_seeds(experiments):
    values = {("cora-step", "all"): {5: 70.0, 6: 72.0}, ("cora-step", "part"): {6: 71.0, 9: 10.0}}
    results = make_results(values, kind="ablation")
    whole, part = results.cells
    results = replace(results, cells=[replace(whole, selected={"alpha": 1}), part])
    (line,) = lines(parse(gaps_panel(results, "cora-step", METRIC))).values()
    assert find(line, "span", "value")[0].text == "-1.0"
    assert not find(line, "line", "whisker")
    apart = [
        cell.with_seeds(FEW if cell.selected else range(8, 25)) for cell in experiments[1].cells
    ]
    assert lines(parse(gaps_panel(replace(experiments[1], cells=apart), STEP, METRIC))) == {}


def test_the_band_goes_around_the_curve(experiments):
    cells = experiments[2].curves()["K"]
    tree = parse(curve_panel("K", cells, METRIC, (60.0, 80.0)))

    def points(texts):
        return [tuple(map(float, text.replace(",", " ").split())) for text in texts]

    band = points(find(tree, "polygon", "band")[0].get("points").split())
    curve = points(find(tree, "path", "curve")[0].get("d").removeprefix("M").split("L"))
    assert len(band) == 2 * len(curve) == 8
    for (x, y), (x1, top), (x2, bottom) in zip(curve, band[:4], reversed(band[4:]), strict=True):
        assert x == x1 == x2
        assert 0 <= top <= y <= bottom <= 1000
    heights = [y for _, y in curve]
    means = [cell.mean(METRIC) for cell in cells]
    assert np.argsort(heights).tolist() == np.argsort(means)[::-1].tolist()
    parse(curve_panel("K", cells[-1:], METRIC, (means[-1], means[-1])))


def test_many_methods_stand_in_order_and_few_of_many_seeds_are_drawn():
    centres = {f"method {n}": 40 + (n * 7) % 20 for n in range(MANY + 1)}
    cells = {(STEP, label): spread(value, FEW, label, 0) for label, value in centres.items()}
    shown = list(lines(parse(dots_panel(make_results(cells), STEP, METRIC))))
    assert shown == sorted(centres, key=lambda label: -centres[label])
    few, many = [3.0, 1.0, 2.0], [float(n * 7 % 251) for n in range(251)]
    assert some_values(few) == few
    assert len(some_values(many)) == 50
    assert (some_values(many)[:2], some_values(many)[-1]) == ([0.0, 5.0], 250.0)


# Files.


# `evengraph report`.


def test_the_command_tells_what_it_wrote(copied, tmp_path, capsys):
    with closing(sqlite3.connect(copied.path)) as base, base:
        base.execute("DELETE FROM runs WHERE method_fields NOT LIKE '%alpha\": 1%'")
    assert call("report", copied.path, "--out", tmp_path / "report") == 0
    told = capsys.readouterr().out.splitlines()
    assert told == [f"wrote {tmp_path / 'report' / name}" for name in ("tables.csv", "index.html")]
    with (tmp_path / "report" / "tables.csv").open(newline="") as file:
        titles = {line["experiment"] for line in csv.DictReader(file)}
    assert titles == {"sensitivity"}  # experiments without runs are passed over
    Store(tmp_path / "empty.sqlite")
    for store, words in (
        (tmp_path / "none.sqlite", "There is no store"),
        (tmp_path / "empty.sqlite", "holds no finished experiment"),
    ):
        assert call("report", store, "--out", tmp_path / "other") == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE runs SET outcome = '{"metrics": {"macro_f1": "x"}, "validation": 1}'""",
        """UPDATE runs SET outcome = json_set(outcome, '$.metrics.balanced_accuracy', '[]')""",
        """UPDATE boards SET content = json_set(content, '$.title', 5)""",
    ],
)
def test_results_of_another_kind_are_one_line_with_the_store(copied, tmp_path, change):
    with closing(sqlite3.connect(copied.path)) as base, base:
        base.execute(change)
    with pytest.raises(ValueError, match=r"sqlite.* cannot be drawn: a result is") as caught:
        write_report(copied, tmp_path / "out")
    assert "\n" not in str(caught.value)
