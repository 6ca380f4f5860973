import pytest
from rich.console import Console

from evengraph.report.terminal import (
    base_rate_table,
    comparison_table,
    method_card,
    notes,
    parameter_table,
    result_table,
    summary_table,
    two_class_table,
)

HEADLINE = ("balanced_accuracy", "macro_f1", "g_mean")


def drawn(table, **options) -> str:
    console = Console(width=80, **options)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def shown(result) -> str:
    return drawn(result_table(result))


def example(paper=None, value=70.0):
    metrics = {"balanced_accuracy": value, "macro_f1": 69.0, "g_mean": 80.0}
    run = {"seed": 5, "metrics": metrics, "best_epoch": 12, "epochs": 40, "seconds": 1.25}
    return {
        "runs": [run, run],
        "mean": metrics,
        "std": dict.fromkeys(metrics, 1.5),
        "paper": paper,
        "complete": True,
        "changed_from_paper": [],
        "dataset": {"name": "cora"},
    }


def of_method(title, **fields):
    return example(**fields) | {"method": {"title": title, "name": title.lower(), "fields": {}}}


def test_mean_paper_and_difference():
    cell = {"mean": 72.5, "std": None}
    text = shown(example(dict.fromkeys(HEADLINE, cell)))
    assert "70.0 ± 1.5" in text
    assert "−2.5" in text
    assert "+7.5" in text
    undefined = shown(example(dict.fromkeys(HEADLINE, cell), value=float("nan")))
    assert undefined.splitlines()[-1].split() == ["difference", "–", "−3.5", "+7.5"]


def test_without_the_paper():
    text = shown(example())
    assert "paper" not in text
    assert "difference" not in text


def test_an_undefined_figure_is_a_dash():
    assert "–" in shown(example(value=float("nan")))


def test_one_run_has_no_spread():
    result = example()
    result["runs"] = result["runs"][:1]
    assert "±" not in shown(result)


def test_comparison_has_ours_beside_the_papers():
    cell = {"mean": 72.5, "std": 0.4}
    first = of_method("GCN", paper=dict.fromkeys(HEADLINE, cell))
    lines = drawn(comparison_table([first, of_method("Re-weight", value=71.0)])).splitlines()
    assert lines[0].split()[:4] == ["method", "bAcc", "paper", "Macro-F1"]
    assert lines[1].split()[:3] == ["GCN", "70.0±1.5", "72.5±0.4"]
    assert lines[2].split()[:3] == ["Re-weight", "71.0±1.5", "–"]
    assert all(line.rstrip().endswith(" 2.5") for line in lines[1:])  # seconds of both runs
    assert max(map(len, lines)) <= 80


def test_long_names_and_large_values_fit():
    cell = {"mean": 100.0, "std": 10.25}
    long = of_method("A [new] method of a third party", paper=dict.fromkeys(HEADLINE, cell))
    long |= {"mean": dict.fromkeys(HEADLINE, 100.0), "std": dict.fromkeys(HEADLINE, 10.25)}
    text = drawn(comparison_table([long]))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("100.0±10.2") == 6
    assert "[new]" in text
    assert "…" not in text
    text = drawn(result_table(long))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("100.0 ± 10.2") == 6
    assert "best epoch" in text


def test_the_best_of_the_whole_runs_stands_out():
    results = [
        of_method("GCN", value=70.0),
        of_method("Re-weight", value=71.0),
        of_method("SMOTE", value=float("nan")),
        of_method("LTE4G", value=99.0) | {"complete": False},
    ]
    text = drawn(comparison_table(results), force_terminal=True)
    assert "\x1b[1m71.0±1.5" in text
    assert "\x1b[1m70.0" not in text
    assert "\x1b[1m99.0" not in text
    assert "LTE4G (stopped)" in text
    assert "paper" not in text


def test_notes_say_why_the_papers_figures_are_missing():
    plain, changed = of_method("GCN"), of_method("SMOTE") | {"changed_from_paper": ["patience"]}
    assert len(notes([plain])) == 1
    both = notes([plain, changed, changed])
    assert both[1].startswith("SMOTE, SMOTE: paper values hidden")
    assert both[1].endswith("a different patience.")
    elsewhere = changed | {"dataset": {"name": "toy"}}
    assert len(notes([elsewhere])) == 1
    assert "interrupted" in notes([plain | {"complete": False}])[1]


def test_fields_with_their_meanings():
    text = drawn(parameter_table({"hidden": 64, "dropout": 0.5}, {"hidden": "Width."}))
    assert [line.split() for line in text.splitlines()] == [
        ["hidden=64", "Width."],
        ["dropout=0.5"],
    ]


def test_a_method_in_a_few_lines():
    words = {
        "name": "gcn",
        "title": "GCN",
        "idea": "Two [graph] convolutions.",
        "reference": "Kipf",
        "cost": "O(E)",
        "edges": "with their weights",
        "fields": {"hidden": 64, "dropout": 0.5},
    }
    lines = [line.split() for line in drawn(method_card(words)).splitlines()]
    assert lines[0] == ["gcn", "GCN"]
    assert lines[1] == ["idea", "Two", "[graph]", "convolutions."]
    assert lines[-1] == ["parameters", "hidden=64,", "dropout=0.5"]


def test_two_classes_get_a_table_of_the_rarer_one():
    result = example()
    assert two_class_table([result]) is None
    assert not any("Rarer class" in line for line in notes([result]))
    names = ("positive_average_precision", "precision_at_k", "recall_at_1", "recall_at_5")
    for place, name in enumerate((*names, "tuned_threshold", "tuned_f1")):
        result["mean"] = {**result["mean"], name: 10.0 + place}
        result["std"] = {**result["std"], name: 1.0}
    result["mean"]["tuned_f1"] = None
    head, row = drawn(two_class_table([result])).splitlines()
    assert head.split()[2:7] == ["AP", "P@k", "R@1%", "R@5%", "threshold"]
    assert row.split() == [
        "mean",
        *(f"{10 + place}.0±1.0" for place in range(4)),
        "0.140±0.010",
        "–",
    ]
    (note,) = [line for line in notes([result]) if line.startswith("Rarer class")]
    assert "P@k is precision at k" in note
    two = [result | {"method": {"title": name, "fields": {}}} for name in ("GCN", "Trees")]
    lines = drawn(two_class_table(two)).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["GCN", "Trees"]
    assert "±" not in "".join(lines)
    result["runs"] = result["runs"][:1]
    assert "±" not in drawn(two_class_table([result]))
    assert "±" not in notes([result])[0]


def test_other_base_rates_get_a_table():
    result = example()
    assert base_rate_table(result) is None
    row = {"base_rate": 0.06, "alarms": 0.1, "precision": 0.4, "recall": 0.5}
    row["average_precision"] = 0.3
    rows = [row, {**row, "base_rate": 0.001, "precision": None}]
    result["runs"] = [{**run, "base_rates": rows} for run in result["runs"][:2]]
    result["runs"][1]["base_rates"] = [{**row, "precision": 0.6}, rows[1]]
    lines = drawn(base_rate_table(result)).splitlines()
    assert lines[1].split() == ["6%", "(test", "nodes)", "100.0", "50.0", "30.0"]
    assert lines[2].split() == ["0.1%", "100.0", "–", "30.0"]
    (note,) = [line for line in notes([result]) if line.startswith("The threshold")]
    assert "has the best F1 on validation nodes; it finds 50.0% of" in note
    for run in result["runs"]:
        run["base_rates"] = [{**one, "cost": 0.002} for one in run["base_rates"]]
    result["costs"] = {"miss": 20.0, "alarm": 1.0}
    assert drawn(base_rate_table(result)).splitlines()[1].split()[-1] == "2.0"
    (note,) = [line for line in notes([result]) if line.startswith("The threshold")]
    assert "lowest cost on validation nodes (a miss costs 20, an alarm 1)" in note


LINES = [
    "Chose [A].",
    "Rejected: Double balancing on GraphSAGE (81.0); " + "word " * 20,
    "The graph helps.",
]


def test_one_run_is_summarised_in_full():
    text = drawn(summary_table({"runs": [{"seed": 5, "summary": LINES}]}))
    lines = text.splitlines()
    assert lines[0].rstrip() == "Chose [A]."
    assert lines[-1].rstrip() == "The graph helps."
    assert max(map(len, lines)) <= 80
    assert "seed" not in text


def test_a_few_runs_are_summarised_in_full():
    runs = [{"seed": seed, "summary": LINES} for seed in (5, 6)] + [{"seed": 7}]
    lines = [line.rstrip() for line in drawn(summary_table({"runs": runs})).splitlines()]
    assert [line for line in lines if "seed" in line] == [
        "seed 5  Chose [A].",
        "seed 6  Chose [A].",
    ]
    assert lines.count("        The graph helps.") == 2
    assert max(map(len, lines)) <= 80


def test_of_many_runs_each_has_one_line():
    runs = [{"seed": seed, "summary": LINES} for seed in range(4)]
    lines = [line.rstrip() for line in drawn(summary_table({"runs": runs})).splitlines()]
    assert lines == [f"seed {seed}  Chose [A]." for seed in range(4)]


def test_most_methods_have_no_summary():
    assert summary_table(example()) is None


def test_notes_say_that_epochs_ran_out():
    result = of_method("GCN")
    result["method"]["fields"] = {"max_epochs": 40}
    assert not any("limit" in note for note in notes([result]))  # the best epoch was long before
    for run in result["runs"]:
        run["best_epoch"] = 39
    assert any("seeds 5, 5: training ended at the limit of 40 epochs" in n for n in notes([result]))
    result["method"]["fields"] = {"max_epochs": 41}
    assert not any("limit" in note for note in notes([result]))


def test_notes_have_the_recall_of_minority_classes():
    result = of_method("GCN") | {"class_counts": [20, 2, 3, 18]}
    for run, recalls in zip(result["runs"], ([90, 10, 50, 80], [90, 20, 50, 80]), strict=True):
        run["per_class"] = {"recall": recalls}
    result["runs"][0] = result["runs"][0] | {"per_class": {"recall": [90, 10, 50, 80]}}
    assert "Recall of minority classes: class 1 15.0%, class 2 50.0%." in notes([result])


@pytest.mark.parametrize("nodes", [5, 30])
def test_few_test_nodes_of_a_minority_class_are_told(nodes):
    result = of_method("GCN") | {"class_counts": [20, 2]}
    for run in result["runs"]:
        run |= {"per_class": {"recall": [90, 100]}, "confusion_matrix": [[50, 0], [0, nodes]]}
    (line,) = (note for note in notes([result]) if note.startswith("Recall of minority"))
    assert f"class 1 100.0% ({nodes} test nodes)." in line
    assert line.endswith("fewer than 20 test nodes.") == (nodes < 20)
