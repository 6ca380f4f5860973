from rich.console import Console

from evengraph.report.terminal import plain_table, two_class_metrics


def drawn(table, width):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_names_wrap_and_values_do_not():
    table = plain_table(["name"], ["first", "second"], dim={"second"})
    table.add_row("a long name", "1,234.5", "6")
    assert drawn(table, 80) == [
        "name           first  second",
        "a long name  1,234.5       6",
    ]
    assert drawn(table, 23) == [
        "name      first  second",
        "a long  1,234.5       6",
        "name",
    ]
    assert [column.style for column in table.columns[1:]] == ["", "dim"]


def test_the_gap():
    table = plain_table("ab", "c", gap=1)
    table.add_row("1", "2", "3")
    assert drawn(table, 80) == ["a b c", "1 2 3"]


def test_recall_at_k_shows_only_where_it_differs_from_precision_at_k():
    values = {"auroc": 1.0, "precision_at_k": 2.0, "recall_at_k": 2.0, "macro_f1": 3.0}
    assert [m.name for m in two_class_metrics([values])] == ["auroc", "precision_at_k"]
    other = {**values, "recall_at_k": 1.0}
    names = [metric.name for metric in two_class_metrics([values, other])]
    assert names == ["auroc", "precision_at_k", "recall_at_k"]
