"""Tables of a store in Markdown, LaTeX and CSV, and its web page: snapshots, and names that bite.

After a wanted change, UPDATE_SNAPSHOTS=1 writes the snapshots again; read the difference.
"""

import base64
import csv
import hashlib
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from contrasts import DARK, LIGHT, colours, contrast
from evengraph.lab.pages import SCRIPT, STYLE, render_overview
from evengraph.lab.tables import difference_text, latex, markdown, table_csv
from evengraph.metrics.registry import HEADLINE
from evengraph.report.node_pictures import MAP_SCRIPT
from made_up import STEP, make_results, published, spread
from page_tree import parse_page
from snapshots import check_snapshot

SNAPSHOTS = Path(__file__).parent / "snapshots"
HOSTILE = "</title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' &amp;"


SHOWN = ("data-value", "data-filter", "value", "href", "class", "data-method", "title")


def page_lines(node):
    """What a page shows and sorts by, one line each."""
    if isinstance(node, str):
        yield from [node.strip()] if node.strip() else []
        return
    if node.tag in ("td", "th", "li", "select", "option", "a", "input", "tr"):
        words = (f"{name}={value}" for name, value in node.attributes.items() if name in SHOWN)
        yield f"<{' '.join([node.tag, *words])}>"
    for child in node.children if node.tag not in ("style", "script") else ():
        yield from page_lines(child)


def overview(*arguments):
    """The page as a tree, and its lines."""
    page = parse_page(render_overview(*arguments))
    return page, list(page_lines(page))


@pytest.mark.parametrize(
    "name",
    ["comparison.md", "ablation.md", "sensitivity.md", "comparison.tex", "tables.csv", "page.txt"],
)
def test_snapshots(name, experiments):
    stem, _, kind = name.partition(".")
    results = next((one for one in experiments if one.name == stem), None)
    if kind == "md":
        text = markdown(results, [f"{stem}-{stem}"])
    elif kind == "tex":
        text = latex(results)
    elif kind == "csv":
        text = table_csv(experiments)
    else:
        _, lines = overview(experiments, {"command": "evengraph report x.sqlite"})
        text = "\n".join(lines) + "\n"
    check_snapshot(SNAPSHOTS / name, text)


def test_report_files_hold_the_snapshots(filled, tmp_path):
    from evengraph.lab.pages import write_report

    pytest.importorskip("matplotlib")
    written = {path.name: path for path in write_report(filled, tmp_path)}
    assert len(written) == len(list(tmp_path.iterdir())) == 2 * 7 + 2 * 3 + 2
    text = (SNAPSHOTS / "tables.csv").read_bytes()
    assert written["tables.csv"].read_bytes() == text
    assert written["comparison.tex"].read_bytes() == (SNAPSHOTS / "comparison.tex").read_bytes()
    lines = written["comparison.md"].read_text(encoding="utf-8").splitlines()
    assert sum("![" in line for line in lines) == 5


# Tables.


def rows_below(text, title):
    """The cells of the table below a heading, its header left out."""
    lines = text.partition(f"## {title}\n\n")[2].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_values_by_hand_with_all_of_the_best_in_bold():
    values = {("cora-step", label): {5: 60.0, 6: 62.0, 7: 64.0} for label in ("GCN", "two")}
    values["cora-step", "three"] = {5: 61.0, 6: 60.0, 7: 62.0}
    text = markdown(make_results(values, paper=published(63.5)))
    best, third = ["**62.0 (1.6)**", "63.5", "-1.5"], ["61.0 (0.8)", "63.5", "-2.5"]
    rows = rows_below(text, "Cora: balanced accuracy")
    assert rows == [["GCN", *best], ["two", *best], ["three", *third]]
    row = ["GCN", "**70.5 (1.6)**", "72.5", "-2.0"]
    assert rows_below(text, "Cora: G-mean")[0] == row
    assert [difference_text(value) for value in (-0.04, 0.0, -0.06)] == ["+0.0", "+0.0", "-0.1"]


def test_data_sets_of_one_setting_each_share_a_table():
    places = ("cora-natural-0.1", "pubmed-natural-0.1")
    results = make_results({(place, "GCN"): spread(60.0, range(5, 8), place) for place in places})
    assert "| method | Cora | PubMed |" in markdown(results)
    assert "Made up: All data sets: balanced accuracy" in latex(results)
    values = {("cora-1", "GCN"): {5: 1.0, 6: 2.0}, ("cora-2", "GCN"): {5: 1.0, 6: 2.0}}
    head = "| method | cora-1, step imbalance | cora-2, step imbalance |"
    assert head in markdown(make_results(values))


def test_many_methods_stand_in_order_and_a_long_table_is_folded():
    centres = {f"method {n}": 40 + (n * 7) % 19 for n in range(60)}
    values = {("cora-1", one): spread(value, range(5, 15), one) for one, value in centres.items()}
    results = make_results(values)
    first = replace(results.cells[0], selected={"a": 1})
    results = replace(results, cells=[first, *results.cells[1:]])
    rows = rows_below(markdown(results), "Cora: balanced accuracy")
    found = [float(row[1].strip("*").split()[0]) for row in rows]
    assert found == sorted(found, reverse=True)
    assert '<details markdown="1"><summary>59 rows</summary>' in markdown(results)
    assert "<details" not in markdown(replace(results, cells=results.cells[:20]))


def test_what_a_store_lacks_has_no_section():
    values = {("cora-a", "one"): {5: 60.0}, ("cora-b", "two"): {5: 61.0}}
    text = markdown(make_results(values))
    assert not any(word in text for word in ("Mean rank", "selected", "against"))
    assert table_csv([]).strip() == ""


def test_latex_escapes_its_signs():
    labels = [f"a{sign}b" for sign in "%_&#${}~^\\"]
    text = latex(make_results({("cora-step", one): {5: 60.0} for one in labels}))
    assert not any(label in text for label in labels)
    assert len(re.findall(r"^a\\\S+b & ", text, flags=re.M)) == len(labels) * len(HEADLINE)


def test_names_of_others_break_neither_markdown_nor_latex_nor_csv():
    label = 'a,b|c "d"<i>\n\x1b'
    values = {("cora-step", label): spread(60.0, range(3), "x")}
    results = replace(make_results(values), title="a\n\\input{b}\n# c\x1b <script>")
    text, tex = markdown(results), latex(results)
    assert text.startswith("# a\\n\\input{b}\\n# c\\x1b &lt;script>\n")
    assert '| a,b\\|c "d"&lt;i>\\n\\x1b |' in text
    assert tex.startswith("% a\\n\\input{b}\\n# c\\x1b <script>: ")
    assert "\n\\input" not in tex
    assert "\x1b" not in text + tex
    (line,) = csv.DictReader(io.StringIO(table_csv([results])))
    assert line["method"] == label


def test_every_figure_is_described(comparison):
    kinds = ("recall", "confusion", "cost", "map", "ablation", "sensitivity")
    text = markdown(comparison, [f"{comparison.name}-{kind}" for kind in kinds])
    for kind in kinds:
        (words,) = re.findall(rf"!\[(.*)\]\({comparison.name}-{kind}.svg\)", text)
        assert len(words.split()) > 5
        assert not set("[]\n") & set(words)


# The web page.


def test_the_page_loads_nothing_and_runs_one_script_alone(experiments):
    text = render_overview(experiments)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text, re.IGNORECASE)
    nodes = list(parse_page(text).walk())
    assert not {"iframe", "img", "object", "embed", "base", "form"} & {node.tag for node in nodes}
    every = [node.attributes for node in nodes]
    for attributes in every:
        assert not {"src", "srcset", "xlink:href", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert re.match(r"#|data:,$|tables\.csv$", attributes.get("href", "#"))
    digest = base64.b64encode(hashlib.sha256((SCRIPT + MAP_SCRIPT).encode()).digest()).decode()
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
    assert len(page.all("script")) == 1
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


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_numbers_above_and_below_the_paper_reach_aa_contrast(theme):
    found = colours(theme)
    for kind in ("above", "below"):
        name = re.search(rf"\.{kind} {{ color: var\(--([\w-]+)\); }}", STYLE).group(1)
        for ground in ("surface", "page"):  # a row under the pointer is of the page's colour
            assert contrast(found[name], found[ground]) >= 4.5, (kind, ground)
