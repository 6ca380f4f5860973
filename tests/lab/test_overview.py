import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from contrasts import DARK, LIGHT, colours, contrast
from evengraph.lab import pages as overview
from evengraph.lab.pages import SCRIPT, STYLE, render_overview, write_overview
from evengraph.lab.results import compare_with_others, rank_methods
from evengraph.metrics import HEADLINE
from evengraph.report.node_pictures import MAP_SCRIPT
from evengraph.report.page import STYLE as SHARED
from made_up import FEW, PUBMED, STEP, make_results, spread

METRIC = HEADLINE[0]
HOSTILE = "</title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' &amp;"


@pytest.fixture(scope="module")
def page(experiments):
    return render_overview(experiments)


@pytest.fixture
def tree(page, parse):
    return parse(page)


def table_rows(tree):
    (table,) = [node for node in tree.all("table") if node.attributes.get("id") == "all"]
    return table.all("tbody")[0].all("tr")


def numbers(row):
    return [cell.attributes.get("data-value") for cell in row.all("td")]


def test_the_page_is_one_document(page, tree):
    assert page.startswith("<!doctype html>\n")
    assert tree.all("html")[0].attributes["lang"] == "en"
    assert tree.all("title")[0].text == "Comparison · Ablation · Sensitivity"
    assert len(tree.all("main")) == len(tree.all("h1")) == 1
    levels = [int(node.tag[1]) for node in tree.walk() if re.match(r"h\d$", node.tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    names = [node.attributes["id"] for node in tree.walk() if "id" in node.attributes]
    assert len(names) == len(set(names))


def test_facts_count_what_is_shown(experiments, tree):
    keys = {row.job.key for results in experiments for cell in results.cells for row in cell.rows}
    facts = [node.text for node in tree.all("ul", "facts")[0].all("li")]
    assert facts == [
        f"{len(keys)} runs",
        "3 settings",
        "8 methods and variants",
        "device cpu",
        "commit 0123abc",
    ]
    assert tree.all("footer")[0].text == "evengraph · 2026-11-05 to 2026-11-24"


def test_every_method_has_a_line_in_every_set_up(experiments, tree):
    sections = {node.all("h2")[0].text: node for node in tree.all("section")}
    for results in experiments[:2]:
        for panel in sections[results.title].all("figure"):
            titles = {results.setting_title(setup): setup for setup in results.settings}
            if panel.all("h3")[0].text not in titles:  # the map
                continue
            setup = titles[panel.all("h3")[0].text]
            found = [
                n.attributes["data-method"]
                for n in panel.all("li")
                if "data-method" in n.attributes
            ]
            cells = [cell for cell in results.cells if cell.setting == setup]
            if results.kind == "ablation":
                cells = [cell for cell in cells if not cell.selected]
            assert found == [cell.label for cell in cells]
    titles = [[n.text for n in sections[b.title].all("h3")] for b in experiments]
    first = experiments[0]
    assert titles[0][:3] == [first.setting_title(setup) for setup in first.settings]
    assert titles[0][3:] == [f"Map of one run of Uni-GNN: {first.setting_title(STEP)}"]
    second = experiments[1]
    wanted = [second.setting_title(setup) for setup in second.settings]
    assert titles[1:] == [wanted, ["alpha", "K"]]


def test_the_table_has_a_row_for_each_cell(experiments, tree):
    rows = table_rows(tree)
    cells = [(results, cell) for results in experiments for cell in results.cells]
    for row, (results, cell) in zip(rows, cells, strict=True):
        values = [cell.mean(METRIC), None, cell.published(METRIC), None]
        ends = cell.interval(METRIC)
        values[1] = None if ends is None else ends[0]
        values[3] = None if values[2] is None else values[0] - values[2]
        values += [cell.mean(HEADLINE[1]), cell.mean(HEADLINE[2]), len(cell.rows)]
        found = numbers(row)
        assert found[0] is found[-1] is None
        for text, value in zip(found[1:-1], values, strict=True):
            if value is None:
                assert text is None
            else:
                assert float(text) == pytest.approx(value, abs=6e-5)
        label = cell.label if cell.value is None else f"{cell.label} = {cell.value}"
        assert row.all("th")[0].text == label
        texts = [one.text for one in row.all("td")]
        assert texts[0] == results.setting_title(cell.setting)
        assert texts[-1] == results.title
        deviation = "" if len(cell.rows) == 1 else f" ({cell.deviation(METRIC):.1f})"
        assert texts[1] == f"{cell.mean(METRIC):.1f}{deviation}"
        assert texts[2] == ("–" if ends is None else f"{ends[0]:.1f} to {ends[1]:.1f}")
        assert row.attributes["data-experiment"] == results.title
        assert row.attributes["data-dataset"] == cell.dataset
        assert row.attributes["data-label"] == cell.label
        assert ("title" in row.attributes) == bool(cell.selected)


def test_gaps_to_the_paper_say_on_which_side(tree):
    for row in table_rows(tree):
        gap = row.all("td")[4]
        if gap.text == "–":
            assert not gap.kinds & {"above", "below"}
            continue
        value = float(gap.attributes["data-value"])
        assert gap.text == f"{value:+.1f}"
        assert gap.kinds == {"above" if value >= 0 else "below"}


def test_the_best_of_a_set_up_is_bold(experiments, tree):
    places = [(results.title, cell.setting) for results in experiments for cell in results.cells]
    means = [cell.mean(METRIC) for results in experiments for cell in results.cells]
    for row, place, mean in zip(table_rows(tree), places, means, strict=True):
        best = max(m for p, m in zip(places, means, strict=True) if p == place)
        assert bool(row.all("td")[1].all("b")) == (mean == best)


def test_filters_offer_every_value_once(experiments, tree):
    found = {
        node.attributes["data-filter"]: [o.attributes["value"] for o in node.all("option")]
        for node in tree.all("select")
    }
    labels = list(dict.fromkeys(cell.label for results in experiments for cell in results.cells))
    assert found == {
        "experiment": ["", "Comparison", "Ablation", "Sensitivity"],
        "dataset": ["", "cora", "pubmed"],
        "label": ["", *labels],
    }
    for name in ("select", "input"):
        inside = [one for label in tree.all("label") for one in label.all(name)]
        assert inside == tree.all(name)
    words = [label.all("span")[0].text for label in tree.all("label")]
    assert words == ["Experiment", "Data set", "Method", "Search"]


def test_every_column_has_a_button(tree):
    (head,) = tree.all("table", "sortable")[0].all("thead")
    columns = head.all("th")
    assert [one.attributes["scope"] for one in columns] == ["col"] * 10
    buttons = [column.all("button")[0].attributes for column in columns]
    assert [int(button["data-column"]) for button in buttons] == list(range(10))
    for row in table_rows(tree):
        assert len(row.all("td")) + len(row.all("th")) == 10


def details(tree, title):
    for node in tree.all("details"):
        if node.all("summary")[0].text.startswith(title):
            rows = node.all("tbody")[0].all("tr")
            return [[c.text for c in row.walk() if c.tag in ("th", "td")] for row in rows]
    return None


def test_ranks_tests_and_choices_can_be_unfolded(experiments, tree):
    ranks = rank_methods(experiments[0], METRIC)
    found = details(tree, "Mean rank")
    assert [row[:2] for row in found] == [
        [label, f"{ranks[label]:.1f}"] for label in ("Uni-GNN", "LTE4G", "Re-weight", "GCN")
    ]
    tests = compare_with_others(experiments[0], "Uni-GNN", METRIC)
    found = details(tree, "Uni-GNN against the other methods")
    wanted = [(experiments[0].setting_title(t.setting), t.against, t.gaps.mean) for t in tests]
    assert [row[:3] for row in found] == [
        [f"{setting}, {against}", "20", f"{mean:+.1f}"] for setting, against, mean in wanted
    ]
    assert [row[4:] for row in found] == [[f"{t.p:.2g}", f"{t.corrected:.2g}"] for t in tests]
    assert details(tree, "Hyperparameters selected on validation")[0] == [
        f"{experiments[0].setting_title(STEP)}, Uni-GNN",
        "alpha = 2, clusters_per_class = 20",
    ]


def test_the_criterion_of_selection_is_named(experiments, page):
    assert "selected by mean Macro-F1 on validation nodes only" in page
    cells = [
        replace(cell, rows=[replace(r, outcome={**r.outcome, "criterion": "mean x"}) for r in rows])
        for cell, rows in ((cell, cell.rows) for cell in experiments[0].cells)
    ]
    other = replace(experiments[0], cells=cells)
    assert "selected by mean Macro-F1 or mean x on" in render_overview([experiments[1], other])


def test_one_setting_is_singular(experiments, parse):
    page = parse(render_overview([experiments[2]]))
    facts = [fact.text for fact in page.all("ul", "facts")[0].all("li")]
    assert facts[1:3] == ["1 setting", "3 methods and variants"]


def test_ranks_say_over_how_many_set_ups(tree):
    assert details(tree, "Mean rank over 2 settings") is not None


def test_pictures_are_named_or_hidden(tree):
    inner = {id(one) for node in tree.all("svg") for one in node.all("svg")[1:]}
    for node in tree.all("svg"):
        if id(node) not in inner:
            named = node.attributes.get("role") == "img" and node.attributes.get("aria-label")
            assert named or node.attributes.get("aria-hidden") == "true"


def test_nothing_is_asked_from_outside(page, tree):
    assert not re.search(r"https?:|//[a-z]", page, re.IGNORECASE)
    for node in tree.walk():
        assert node.tag not in {"iframe", "img", "object", "embed", "base", "form"}
        assert not {"src", "srcset", "xlink:href", "action"} & set(node.attributes)
        assert node.attributes.get("href", "data:,") in ("data:,", "tables.csv") or (
            node.attributes["href"].startswith("#")
        )
        assert not [name for name in node.attributes if name.startswith("on")]
    styles = "".join(node.text for node in tree.all("style"))
    assert not re.search(r"url\(|@import", styles)


def test_the_policy_allows_the_one_script_alone(tree):
    (policy,) = [n for n in tree.all("meta") if "http-equiv" in n.attributes]
    assert policy.attributes["http-equiv"] == "Content-Security-Policy"
    rules = dict(rule.split(" ", 1) for rule in policy.attributes["content"].split("; "))
    (script,) = tree.all("script")
    assert script.text == SCRIPT + MAP_SCRIPT
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "script-src": f"'sha256-{digest}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    # what stands before the policy is not bound by it
    head = tree.all("head")[0].children
    assert head.index(policy) == 1


@pytest.mark.parametrize("draws", ["comparison", "ablation", "sensitivity"])
def test_everything_is_escaped(experiments, parse, draws):
    results = next(results for results in experiments if results.kind == draws)
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
    text = render_overview([replace(results, title=HOSTILE, name=HOSTILE, cells=cells)])
    tree = parse(text)
    assert len(tree.all("script")) == 1
    assert not tree.all("img")
    assert tree.all("title")[0].text == HOSTILE
    assert tree.all("h2")[1].text == HOSTILE
    assert [row.attributes["data-dataset"] for row in table_rows(tree)] == [HOSTILE] * len(cells)
    assert text.count("<script") == text.count("</script") == 1


def test_without_seeds_enough_there_are_no_tests(experiments, parse):
    tree = parse(render_overview([experiments[0].with_selection_seeds()]))
    assert details(tree, "Uni-GNN against the other methods") is None


def test_a_single_run_makes_a_page(parse):
    tree = parse(render_overview([make_results({("cora-step", "GCN"): {5: 60.0}})]))
    assert len(table_rows(tree)) == 1
    assert numbers(table_rows(tree)[0])[2] is None
    assert not tree.all("div", "highlights")
    assert tree.all("footer")[0].text == "evengraph · 2026-11-05"


def test_without_published_results_nothing_speaks_of_the_paper(parse):
    values = {("cora-step", "GCN"): {5: 60.0, 6: 61.0}, ("cora-step", "MLP"): {5: 50.0, 6: 52.0}}
    tree = parse(render_overview([make_results(values)]))
    (table,) = tree.all("table", "sortable")
    heads = [node.text for node in table.all("thead")[0].all("th")]
    assert "paper" not in heads
    assert "difference" not in heads
    assert all(len(row.all("td")) + 1 == len(heads) for row in table_rows(tree))
    texts = [node.text for node in (*tree.all("dt"), *tree.all("li"), *tree.all("summary"))]
    assert not [text for text in texts if "paper" in text.lower() or "publish" in text]
    assert "Holds or significant, uncorrected only, not significant" in texts  # of other tables


def test_settings_that_read_the_same_keep_their_names(experiments):
    cells = experiments[0].cells
    other = [replace(cell, setting=f"{cell.setting}-raw") for cell in cells]
    titles = replace(experiments[0], cells=[*cells, *other])
    assert titles.setting_title(STEP).endswith(f"({STEP})")
    assert experiments[0].setting_title(STEP) == "Cora, 3 minority classes at 10%"
    assert experiments[0].setting_title("nowhere") == "nowhere"


def test_contents_lead_to_the_sections(experiments, tree):
    (contents,) = tree.all("nav", "contents")
    links = {node.attributes["href"]: node.text for node in contents.all("a")}
    ids = {f"#{node.attributes['id']}" for node in tree.all("section") if "id" in node.attributes}
    assert set(links) <= ids
    assert list(links.values()) == [*(one.title for one in experiments), "All results"]


def test_every_method_can_be_highlighted_by_a_button(experiments, tree):
    groups = [group.all("button") for group in tree.all("div", "highlights")]
    found = [button.attributes["data-highlight"] for group in groups for button in group]
    assert found == [*experiments[0].labels, *experiments[1].labels]


def test_every_panel_names_its_metric(tree):
    panels = [node for node in tree.all("figure") if node.all("ul", "dots")]
    names = {node.all("span", "axis-title")[0].text for node in panels}
    assert names == {"balanced accuracy, %", "points of balanced accuracy"}


def test_the_command_is_on_the_page(experiments, parse):
    tree = parse(render_overview(experiments, {"command": "evengraph report x.sqlite"}))
    assert [node.text for node in tree.all("code")] == ["evengraph report x.sqlite"]
    assert "clipboard" in tree.all("script")[0].text


def test_a_quick_ablation_makes_a_page(experiments, parse):
    cells = [replace(cell, selected={}) for cell in experiments[1].cells]
    tree = parse(render_overview([replace(experiments[1], cells=cells)]))
    assert len(table_rows(tree)) == len(cells)


def test_curves_share_one_scale(experiments, parse):
    tree = parse(render_overview([experiments[2]]))
    ticks = [
        [(n.text, n.attributes["y"]) for n in picture.all("text") if n.attributes["y"] != "100%"]
        for picture in tree.all("svg", "curves")
    ]
    assert len(ticks) == 2
    assert len(ticks[0]) > 2
    assert ticks[0] == ticks[1]


def test_curves_of_two_set_ups_stay_apart(experiments, parse):
    other = [replace(cell, setting=PUBMED) for cell in experiments[2].cells]
    tree = parse(render_overview([replace(experiments[2], cells=[*experiments[2].cells, *other])]))
    assert max(line.attributes["d"].count("L") for line in tree.all("path", "curve")) == 3


def test_assets_begin_and_end_as_valid_css():
    """A rule that does not parse takes the next one with it, silently."""
    rules = re.sub(r"/\*.*?\*/", "", STYLE, flags=re.DOTALL).strip()
    assert rules.startswith(".filters {")
    assert rules.count("{") == rules.count("}")
    assert not re.search(r"^[<=>]{7}", STYLE + SCRIPT, flags=re.MULTILINE)


def test_the_same_boards_give_the_same_page(experiments, page):
    assert render_overview(experiments) == page


# Writing.


def test_writing_replaces_the_old_page(experiments, page, tmp_path):
    path = tmp_path / "deep" / "index.html"
    write_overview(experiments, path)
    path.write_text("old", encoding="utf-8")
    write_overview(experiments, path)
    assert path.read_text(encoding="utf-8") == page
    assert list(path.parent.iterdir()) == [path]


def test_a_name_that_is_not_unicode_can_be_written(tmp_path):
    results = make_results({("cora-step", "GCN"): spread(60.0, FEW, "x")})
    write_overview([replace(results, title="broken \ud800 name")], tmp_path / "index.html")
    assert "broken " in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("where", ["render_overview", "os.replace"])
def test_a_failure_leaves_the_old_page_alone(experiments, tmp_path, monkeypatch, where):
    path = tmp_path / "index.html"
    path.write_text("old", encoding="utf-8")

    def fail(*_):
        raise RuntimeError("no luck")

    if where == "render_overview":
        monkeypatch.setattr(overview, "render_overview", fail)
    else:
        monkeypatch.setattr("os.replace", fail)
    with pytest.raises(RuntimeError, match="no luck"):
        write_overview(experiments, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


# Style sheet and script.


THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def colour_of(kind):
    """The name of the colour that a class of text has."""
    return re.search(rf"\.{kind} {{ color: var\(--([\w-]+)\); }}", STYLE).group(1)


@THEMES
def test_figures_above_and_below_the_paper_reach_aa_contrast(theme):
    found = colours(theme)
    for kind in ("above", "below"):
        for ground in ("surface", "page"):  # a row under the pointer is of the page's colour
            assert contrast(found[colour_of(kind)], found[ground]) >= 4.5, (kind, ground)


@THEMES
def test_text_on_a_marked_line_reaches_aa_contrast(theme):
    found = colours(theme)
    assert ".dots .marked { background: var(--band); }" in SHARED
    for text in ("ink", "muted"):
        assert contrast(found[text], found["band"]) >= 4.5, text
