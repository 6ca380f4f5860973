"""Tables and notes in the terminal; test_snapshots.py has them as a whole."""

import math
import re
from pathlib import Path

import pytest
from samples import compared, look, make_result, printed

from evengraph.report import terminal
from snapshots import check_snapshot

HEADLINE = ("balanced_accuracy", "macro_f1", "g_mean")


def example(title="GCN", value=70.0, paper=None, **changes):
    metrics = {"balanced_accuracy": value, "macro_f1": 69.0, "g_mean": 80.0}
    run = {"seed": 5, "metrics": metrics, "best_epoch": 12, "epochs": 40, "seconds": 1.25}
    run["confusion_matrix"] = None
    plain = {
        "runs": [dict(run), dict(run)],
        "mean": metrics,
        "std": dict.fromkeys(metrics, 1.5),
        "paper": paper and dict.fromkeys(HEADLINE, paper),
        "complete": True,
        "changed_from_paper": [],
        "dataset": {"name": "cora", "class_names": None},
        "class_counts": [20, 2],
        "method": {"title": title, "name": title.lower(), "fields": {}},
    }
    return plain | changes


def test_names_wrap_and_values_do_not():
    table = terminal.plain_table(["name"], ["first", "second"], dim={"second"})
    table.add_row("a long name", "1,234.5", "6")
    assert printed(table) == "name           first  second\na long name  1,234.5       6"
    assert printed(table, width=23).splitlines()[1:] == ["a long  1,234.5       6", "name"]
    assert [column.style for column in table.columns[1:]] == ["", "dim"]
    table = terminal.plain_table("ab", "c", gap=1)
    table.add_row("1", "2", "3")
    assert printed(table) == "a b c\n1 2 3"


def test_the_best_of_several_methods_is_bold_unless_it_was_stopped():
    results = [
        *(example(value=value) for value in (70.0, 71.0, math.nan)),
        example("LTE4G", value=99.0, complete=False),
    ]
    text = printed(*terminal.result_tables(results), force_terminal=True)
    assert "\x1b[1m71.0±1.5" in text
    assert "\x1b[1m70.0" not in text
    assert "\x1b[1m99.0" not in text
    assert "LTE4G (stopped)" in text
    assert "paper" not in text


def test_long_names_and_large_values_fit():
    wide = {"mean": dict.fromkeys(HEADLINE, 100.0), "std": dict.fromkeys(HEADLINE, 10.25)}
    long = example("A [new] method of a third party", paper={"mean": 100.0, "std": 10.25}, **wide)
    for results, value in (([long, long], "100.0±10.2"), ([long], "100.0 ± 10.2")):
        text = printed(*terminal.result_tables(results))
        assert max(map(len, text.splitlines())) <= 80
        assert text.count(value) == 6 * len(results)
        assert "…" not in text
    assert "[new]" in printed(*terminal.result_tables([long, long]))


def test_a_comparison_fits():
    content = compared(100.0, 100.0, significant=False)
    for place, method in enumerate(content["methods"]):
        method["title"] = f"A [graph] method of a third party, {place}"
        method["figures"] = {n: {"mean": 100.0, "low": 99, "high": 101} for n in method["figures"]}
    for metric in ("balanced_accuracy", "average_precision"):
        text = printed(*terminal.comparison_tables(content | {"metric": metric}))
        assert max(map(len, text.splitlines())) <= 80
        assert text.count("100.0 (99.0 to 101.0)") == 2
        assert text.count("not significant") == 1
        assert "[graph]" in text
        assert "…" not in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_inspections_fit(width):
    for found in (look(), look(classes=40), look(word="[bold]" * 20)):
        text = printed(terminal.inspection_view(found), width=width)
        assert max(map(len, text.splitlines())) <= width
        assert "labelled" in text
    assert "and 20 smaller classes" in printed(terminal.inspection_view(look(classes=40)))
    text = printed(terminal.inspection_view(look(labelled=600)))
    assert not re.search("≤|any class", text)


def test_bars_end_where_they_should():
    assert terminal.bar(10, 10) == "█" * terminal.BAR
    assert terminal.bar(5, 10) == "█" * (terminal.BAR // 2)
    assert terminal.bar(1, 10**6) == "▏"
    assert terminal.bar(0, 10) == terminal.bar(0, 0) == ""


def tables(*results):
    return printed(*terminal.result_tables(results)).splitlines()


notes = terminal.result_notes


def with_runs(*changes, **parts):
    run = example()["runs"][0]
    return example(runs=[run | change for change in changes], **parts)


def found(nodes):
    matrix = [[nodes * ((i == j) + (i > j)) for j in range(4)] for i in range(4)]
    runs = [{"confusion_matrix": matrix}] * 2
    result = with_runs(*runs, class_counts=[20, 2, 3, 18])
    return [*tables(result), *notes(result)]


CHANGED = example("SMOTE", changed_from_paper=["patience"])
TOY = {"name": "toy", "class_names": None}
MANY = make_result(classes=8, rare=7, paper=False) | {"complete": True, "changed_from_paper": []}
SUMMARY = ["Chose [A].", "Rejected: B.", "The graph helps."]
TWO = {"positive": "fraud", "classes": ["honest", "fraud"], "class_counts": [990, 1010]}
CASES = {
    "an undefined mean": tables(example(value=math.nan, paper={"mean": 72.5, "std": 1.0})),
    "a single seed": tables(with_runs({})),
    **{
        f"summaries of {count} runs": tables(
            with_runs(*({"seed": seed, "summary": SUMMARY} for seed in range(count)))
        )
        for count in (1, 2, 4)
    },
    "as in the paper": notes(example()),
    "not as in the paper": notes(CHANGED),
    "on a graph that the paper has not": notes(
        CHANGED | {"dataset": CHANGED["dataset"] | {"name": "toy"}}
    ),
    "interrupted": notes(example(complete=False)),
    **{f"classes with {nodes} test nodes": found(nodes) for nodes in (0, 5, 30)},
    "many classes": notes(MANY),
    "two methods": terminal.comparison_notes(compared(80.0, 70.0)),
    "three methods": terminal.comparison_notes(compared(80.0, 70.0, 60.0, budget=4)),
    "two classes": terminal.comparison_notes(compared(80.0, **TWO)),
}


def test_tables_and_notes_are_shown_as_before():
    lines = [line for name, shown in CASES.items() for line in (f"## {name}", *shown, "")]
    check_snapshot(Path(__file__).with_name("snapshots") / "terminal.txt", "\n".join(lines))
