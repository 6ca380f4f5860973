from rich.console import Console

from evengraph.report.terminal import result_table


def shown(result) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(result_table(result))
    return capture.get()


def example(paper=None, value=70.0):
    metrics = {"balanced_accuracy": value, "macro_f1": 69.0, "g_mean": 80.0}
    run = {"seed": 5, "metrics": metrics, "best_epoch": 12, "epochs": 40, "seconds": 1.25}
    return {"runs": [run, run], "mean": metrics, "std": dict.fromkeys(metrics, 1.5), "paper": paper}


def test_mean_paper_and_difference():
    cell = {"mean": 72.5, "std": None}
    text = shown(example(dict.fromkeys(("balanced_accuracy", "macro_f1", "g_mean"), cell)))
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
