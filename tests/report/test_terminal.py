from rich.console import Console

from evengraph.report.terminal import comparison_table, method_card, result_table

HEADLINE = ("balanced_accuracy", "macro_f1", "g_mean")


def drawn(table, **options) -> str:
    console = Console(width=100, **options)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def shown(result) -> str:
    return drawn(result_table(result))


def example(paper=None, value=70.0):
    metrics = {"balanced_accuracy": value, "macro_f1": 69.0, "g_mean": 80.0}
    run = {"seed": 5, "metrics": metrics, "best_epoch": 12, "epochs": 40, "seconds": 1.25}
    return {"runs": [run, run], "mean": metrics, "std": dict.fromkeys(metrics, 1.5), "paper": paper}


def test_mean_paper_and_difference():
    cell = {"mean": 72.5, "std": None}
    text = shown(example(dict.fromkeys(HEADLINE, cell)))
    assert "70.0 ± 1.5" in text
    assert "-2.5" in text
    assert "+7.5" in text


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
    first = example(dict.fromkeys(HEADLINE, cell)) | {"method": {"title": "GCN"}}
    second = example(value=71.0) | {"method": {"title": "Re-weight"}}
    lines = drawn(comparison_table([first, second])).splitlines()
    assert lines[0].split() == [
        "method",
        *("bAcc", "paper", "Macro-F1", "paper"),
        "G-mean",
        *lines[0].split()[-2:],
    ]
    assert lines[1].split()[:7] == ["GCN", "70.0", "±", "1.5", "72.5", "±", "0.4"]
    assert lines[2].split()[:5] == ["Re-weight", "71.0", "±", "1.5", "–"]
    assert all(line.rstrip().endswith(" 2") for line in lines[1:])  # seconds of both runs


def test_the_best_stands_out():
    first = example(value=70.0) | {"method": {"title": "GCN"}}
    second = example(value=71.0) | {"method": {"title": "Re-weight"}}
    undefined = example(value=float("nan")) | {"method": {"title": "SMOTE"}}
    text = drawn(comparison_table([first, second, undefined]), force_terminal=True)
    assert "\x1b[1m71.0 ± 1.5" in text
    assert "\x1b[1m70.0" not in text
    assert "paper" not in text


def test_a_method_in_a_few_lines():
    words = {
        "name": "gcn",
        "title": "GCN",
        "idea": "Two [graph] convolutions.",
        "reference": "Kipf",
        "cost": "O(E)",
        "fields": {"hidden": 64, "dropout": 0.5},
    }
    lines = [line.split() for line in drawn(method_card(words)).splitlines()]
    assert lines[0] == ["gcn", "GCN"]
    assert lines[1] == ["idea", "Two", "[graph]", "convolutions."]
    assert lines[-1] == ["fields", "hidden=64,", "dropout=0.5"]
