import csv
import io
import re
from dataclasses import replace

import pytest
from made_up import PUBMED, STEP, TAIL, make_results, published, spread

from evengraph.lab.results import (
    compare_variants,
    compare_with_others,
    compare_with_paper,
    rank_methods,
)
from evengraph.lab.tables import difference_text, latex, markdown, table_csv
from evengraph.metrics.registry import HEADLINE, METRICS

LOUD = "a_b|c <i>&amp;</i> **d** `e`"


def read_tables(text):
    """Every table of a Markdown text, by the words above it: lists of cells, header first."""
    found, title, table = {}, "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
            table.append([cell.strip() for cell in cells])
        elif table:
            header, rule, *rows = table
            assert rule == ["---"] + ["---:"] * (len(header) - 1)
            assert all(len(row) == len(header) for row in rows), title
            found.setdefault(title, []).append([header, *rows])
            table = []
    return found


def read_tex(text):
    """Every tabular: its columns and its lines of cells."""
    found = []
    for columns, body in re.findall(
        r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL
    ):
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        cells = [re.split(r"(?<!\\)&", line.removesuffix(r"\\")) for line in lines]
        found.append((columns, [[cell.strip() for cell in line] for line in cells]))
    return found


def shown(cell, metric):
    if len(cell.rows) == 1:
        return f"{cell.mean(metric):.1f}"
    return f"{cell.mean(metric):.1f} ({cell.deviation(metric):.1f})"


@pytest.mark.parametrize("metric", HEADLINE)
def test_means_deviations_and_the_papers_figures(comparison, metric):
    ((header, *rows),) = read_tables(markdown(comparison))[f"Cora: {METRICS[metric].title}"]
    columns = ("3 minority classes at 10%", "long tail, smallest class at 1%")
    both = [name for column in columns for name in (column, "paper", "difference")]
    assert header == ["method", *both]
    assert [row[0] for row in rows] == comparison.labels
    for label, *cells in rows:
        for setup, (figure, paper, gap) in ((STEP, cells[:3]), (TAIL, cells[3:])):
            cell = comparison.with_equal_seeds().find(setup, label)
            assert figure.strip("*") == shown(cell, metric)
            known = cell.published(metric)
            assert paper == ("" if known is None else f"{known:.1f}")
            assert gap == ("" if known is None else f"{cell.mean(metric) - known:+.1f}")


def test_figures_by_hand():
    values = {("cora-step", "GCN"): {5: 60.0, 6: 62.0, 7: 64.0}}
    results = make_results(values, paper=published(63.5))
    ((_, row),) = read_tables(markdown(results))["Cora: balanced accuracy"]
    assert row == ["GCN", "**62.0 (1.6)**", "63.5", "-1.5"]
    ((_, row),) = read_tables(markdown(results))["Cora: G-mean"]
    assert row == ["GCN", "**70.5 (1.6)**", "72.5", "-2.0"]


def test_columns_with_nothing_in_them_are_dropped(comparison):
    ((header, *rows),) = read_tables(markdown(comparison))["PubMed: balanced accuracy"]
    assert header == ["method", "1 minority class at 10%"]
    assert ["LTE4G", ""] in rows
    assert len(rows) == 4


def test_exactly_the_best_of_a_column_is_bold(experiments):
    for results in experiments[:2]:
        tables = [(k, t) for k, (t, *_) in read_tables(markdown(results)).items() if ": " in k]
        for title, (header, *rows) in tables:
            if title.split(": ")[0] not in ("Cora", "PubMed"):
                continue
            for place, name in enumerate(header[1:], start=1):
                bold = [row for row in rows if row[place].startswith("**")]
                if name in ("paper", "difference"):
                    assert not bold
                    continue
                (best,) = bold
                assert best[place].endswith("**")
                figures = [float(r[place].strip("*").split()[0]) for r in rows if r[place]]
                assert float(best[place].strip("*").split()[0]) == max(figures)


def test_methods_that_are_level_are_all_bold():
    figures = {5: 60.0, 6: 62.0}
    values = {("cora-step", label): figures for label in ("one", "two")}
    values["cora-step", "three"] = {5: 61.0, 6: 60.0}
    ((_, *rows),) = read_tables(markdown(make_results(values)))["Cora: balanced accuracy"]
    assert [row[1].startswith("**") for row in rows] == [True, True, False]


def test_graphs_of_one_set_up_each_share_a_table():
    places = ("cora-natural-0.1", "pubmed-natural-0.1")
    results = make_results({(place, "GCN"): spread(60.0, range(5, 8), place) for place in places})
    found = read_tables(markdown(results))
    ((header, row),) = found["All data sets: balanced accuracy"]
    assert header == ["method", "Cora", "PubMed"]
    assert row[0] == "GCN"
    assert row[1:] == [f"**{shown(results.find(p, 'GCN'), HEADLINE[0])}**" for p in places]
    assert "Made up: All data sets: balanced accuracy" in latex(results)
    values = {("cora-1", "GCN"): {5: 1.0, 6: 2.0}, ("cora-2", "GCN"): {5: 1.0, 6: 2.0}}
    ((header, _),) = read_tables(markdown(make_results(values)))["Cora: balanced accuracy"]
    assert header == ["method", "cora-1, step imbalance", "cora-2, step imbalance"]


def test_many_methods_stand_in_order_and_a_long_table_is_folded():
    centres = {f"method {n}": 40 + (n * 7) % 19 for n in range(60)}
    values = {("cora-1", one): spread(value, range(5, 15), one) for one, value in centres.items()}
    results = make_results(values)
    results = replace(
        results, cells=[replace(results.cells[0], selected={"a": 1}), *results.cells[1:]]
    )
    text = markdown(results)
    ((_, *rows),) = read_tables(text)["Cora: balanced accuracy"]
    figures = [float(row[1].strip("*").split()[0]) for row in rows]
    assert figures == sorted(figures, reverse=True)
    assert '<details markdown="1"><summary>59 rows</summary>' in text
    assert "<details" not in markdown(replace(results, cells=results.cells[:20]))


def test_words_name_the_seeds(experiments):
    assert "over 3 seeds" in markdown(experiments[0])  # those that all methods have
    assert "over 20 seeds" in markdown(experiments[1])
    assert markdown(experiments[0]).startswith("# Comparison\n")


def test_curves_have_a_table_each(experiments):
    text = read_tables(markdown(experiments[2]))
    tables = [table for name in ("alpha", "K") for table in text[name]]
    assert [table[0][0] for table in tables] == ["alpha", "K"]
    for table, cells in zip(tables, experiments[2].curves().values(), strict=True):
        for row, cell in zip(table[1:], cells, strict=True):
            ends = cell.interval("balanced_accuracy")
            between = "" if ends is None else f"{ends[0]:.1f} to {ends[1]:.1f}"
            figures = [shown(cell, "balanced_accuracy"), between, f"{cell.mean('macro_f1'):.1f}"]
            assert row == [str(cell.value), str(len(cell.rows)), *figures]
    assert tables[1][-1][1:4] == [
        "1",
        f"{experiments[2].curves()['K'][-1].mean(HEADLINE[0]):.1f}",
        "",
    ]


def test_ranks_are_in_order(comparison):
    tables = read_tables(markdown(comparison))
    ((table),) = next(tables[title] for title in tables if title.startswith("Mean rank"))
    assert table[0] == ["method", "bAcc", "Macro-F1", "G-mean"]
    assert [row[0] for row in table[1:]] == ["Uni-GNN", "LTE4G", "Re-weight", "GCN"]
    for label, *ranks in table[1:]:
        even = comparison.with_equal_seeds()
        assert ranks == [f"{rank_methods(even, metric)[label]:.1f}" for metric in HEADLINE]


def test_ranks_say_over_how_many_set_ups(comparison):
    assert "## Mean rank over 2 settings" in markdown(comparison)


def test_no_ranks_where_no_set_up_is_whole():
    values = {("cora-a", "one"): {5: 60.0}, ("cora-b", "two"): {5: 61.0}}
    assert "Mean rank" not in markdown(make_results(values))


def test_choices_and_tests_are_listed(comparison):
    text = markdown(comparison)
    for setup in comparison.settings:
        name = comparison.setting_title(setup)
        assert f"- {name}, Uni-GNN: alpha = 2, clusters_per_class = 20\n" in text
    title = "Uni-GNN against the other methods on the same seeds"
    ((header, *rows),) = read_tables(text)[title]
    found = compare_with_others(comparison, "Uni-GNN", "balanced_accuracy")
    assert header[-2:] == ["p", "p, corrected"]
    for row, one in zip(rows, found, strict=True):
        setting = comparison.setting_title(one.setting)
        assert row[:4] == [setting, one.against, "20", f"{one.gaps.mean:+.1f}"]
        assert row[4] == "{:+.1f} to {:+.1f}".format(*one.gaps.interval)
        assert [float(p) for p in row[5:]] == pytest.approx([one.p, one.corrected], rel=0.05)


def test_the_searched_method_stands_beside_the_paper(comparison):
    text = markdown(comparison)
    ((header, *rows),) = read_tables(text)["Uni-GNN and the paper"]
    assert header[2:7] == ["ours", "95% interval", "paper", "difference", "seeds 5, 6, 7"]
    found = compare_with_paper(comparison, "Uni-GNN", HEADLINE)
    assert [row[-1] for row in rows] == [one.verdict for one in found]
    assert [row[0] for row in rows] == [comparison.setting_title(o.cell.setting) for o in found]
    for row, one in zip(rows, found, strict=True):
        low, high = one.cell.interval(one.metric)
        mean = f"{one.cell.mean(one.metric):.1f} ({len(one.cell.rows)})"
        assert row[2:4] == [mean, f"{low:.1f} to {high:.1f}"]
        assert row[6] == f"{one.selection:.1f}"
    many = sum(one.verdict == "reached" for one in found)
    assert f"{many} of {len(rows)} published means reached" in text


def test_an_ablation_says_which_differences_hold(experiments):
    ((_, *rows),) = read_tables(markdown(experiments[1]))["Which published differences hold"]
    found = compare_variants(experiments[1], HEADLINE[0])
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        (experiments[1].setting_title(one.setting), one.gaps.label, one.verdict) for one in found
    ]
    assert [row[3] for row in rows] == [difference_text(one.gaps.mean) for one in found]


@pytest.mark.parametrize(("value", "words"), [(-0.04, "+0.0"), (0.0, "+0.0"), (-0.06, "-0.1")])
def test_zero_has_no_minus(value, words):
    assert difference_text(value) == words


def test_a_note_stands_above_its_curve(experiments):
    cells = [replace(cell, note="The paper: flat.") for cell in experiments[2].cells]
    text = markdown(replace(experiments[2], cells=cells))
    assert "## alpha\n\nThe paper: flat.\n\n| alpha |" in text


def test_without_a_choice_there_is_neither():
    values = {("cora-step", label): spread(60.0, range(9), label) for label in ("one", "two")}
    text = markdown(make_results(values))
    assert "selected" not in text
    assert "against" not in text


def test_a_loud_name_does_not_break_markdown():
    values = {("cora-step", label): spread(60.0, range(9), label) for label in ("plain", LOUD)}
    for tables in read_tables(markdown(make_results(values, selected={"alpha": 1}))).values():
        assert tables


def test_latex_is_balanced_and_even(experiments):
    for results in experiments:
        text = latex(results)
        assert text.count("{") == text.count("}")
        tables = read_tex(text)
        assert len(tables) == text.count("\\begin{tabular}") == text.count("\\end{tabular}")
        for columns, lines in tables:
            assert columns == "l" + "r" * (len(columns) - 1)
            assert {len(line) for line in lines} == {len(columns)}
        for rule in ("toprule", "midrule", "bottomrule"):
            assert text.count(f"\\{rule}\n") == len(tables)


def test_latex_has_the_figures_of_markdown(comparison):
    in_tex = iter(read_tex(latex(comparison)))
    for dataset in ("Cora", "PubMed"):
        for metric in HEADLINE:
            title = f"{dataset}: {METRICS[metric].title}"
            ((header, *rows),) = read_tables(markdown(comparison))[title]
            _, (head, *lines) = next(in_tex)
            assert [name.replace("\\%", "%") for name in head] == header
            bold = [[re.sub(r"\*\*(.*)\*\*", r"\\textbf{\1}", cell) for cell in r] for r in rows]
            assert lines == bold


def test_latex_escapes_percent_and_underscore():
    values = {("cora-step_3", "100%_sure"): spread(60.0, range(3), "x")}
    for _, (header, row) in read_tex(latex(make_results(values))):
        assert header == ["method", r"cora-step\_3, step imbalance"]
        assert row[0] == r"100\%\_sure"


@pytest.mark.parametrize("sign", ["&", "#", "$", "{", "}", "~", "^", "\\"])
def test_latex_escapes_its_other_signs(sign):
    values = {("cora-step", f"a{sign}b"): spread(60.0, range(3), "x")}
    (_, (_, row)), *_ = read_tex(latex(make_results(values)))
    assert len(row) == 2
    assert row[0] != f"a{sign}b"


def test_latex_has_no_empty_lines(experiments):
    for _, (_, *lines) in read_tex(latex(experiments[2])):
        assert all(any(line[1:]) for line in lines)


def test_csv_has_a_line_for_each_cell(experiments):
    lines = list(csv.DictReader(io.StringIO(table_csv(experiments))))
    cells = [(results, cell) for results in experiments for cell in results.cells]
    assert len(lines) == len(cells) == 25
    for line, (results, cell) in zip(lines, cells, strict=True):
        names = [line[name] for name in ("experiment", "setup", "method", "varies", "value")]
        value = "" if cell.value is None else str(cell.value)
        assert names == [results.name, cell.setting, cell.label, cell.varies or "", value]
        assert int(line["seeds"]) == len(cell.rows)
        for metric in HEADLINE:
            assert float(line[metric]) == pytest.approx(cell.mean(metric), abs=6e-4)
            assert float(line[f"{metric}_std"]) == pytest.approx(cell.deviation(metric), abs=6e-4)
            ends, paper = cell.interval(metric), cell.published(metric)
            written = [line[f"{metric}_low"], line[f"{metric}_high"]]
            if ends is None:
                assert written == ["", ""]
            else:
                assert [float(end) for end in written] == pytest.approx(list(ends), abs=6e-4)
            written = [line[f"{metric}_paper"], line[f"{metric}_difference"]]
            if paper is None:
                assert written == ["", ""]
            else:
                gap = cell.mean(metric) - paper
                assert [float(one) for one in written] == pytest.approx([paper, gap], abs=6e-4)
        chosen = "alpha = 2, clusters_per_class = 20" if cell.selected else ""
        assert line["chosen"] == chosen


def test_csv_keeps_a_loud_name():
    label = 'a,b "c"\nd|e'
    results = make_results({("cora-step", label): spread(60.0, range(3), "x")})
    (line,) = csv.DictReader(io.StringIO(table_csv([results])))
    assert line["method"] == label


def test_csv_of_nothing_is_a_header_without_names():
    assert table_csv([]).strip() == ""


def test_a_missing_graph_leaves_the_others(comparison):
    cells = [cell for cell in comparison.cells if cell.setting == PUBMED]
    results = replace(comparison, cells=cells)
    assert "PubMed: balanced accuracy" in read_tables(markdown(results))
    assert "cora" not in markdown(results) + latex(results)


def test_a_title_is_one_line_of_text_in_markdown_and_latex():
    values = {("cora-step", "b<i>\n\x1b"): spread(60.0, range(3), "x")}
    results = replace(make_results(values), title="a\n\\input{b}\n# c\x1b <script>")
    text, tex = markdown(results), latex(results)
    assert text.startswith("# a\\n\\input{b}\\n# c\\x1b &lt;script>\n")
    assert "| b&lt;i>\\n\\x1b |" in text
    assert tex.startswith("% a\\n\\input{b}\\n# c\\x1b <script>: ")
    assert "\n\\input" not in tex
    assert "\x1b" not in text + tex
