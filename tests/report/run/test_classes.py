from evengraph.report.result import ClassRow, class_rows

from evengraph.report.page import FLIP
from evengraph.report.run_page import confusion_section, recall_row, scores_section


def row(recalls):
    return ClassRow(
        index=0,
        name="Theory",
        count=5,
        minority=False,
        recalls=recalls,
        f1s=[50.0, 50.0],
        precisions=[],
    )


def two_seeds():
    return {
        "dataset": {"class_names": ["rare", "common"]},
        "imbalance": {"name": "step", "minority": 1, "ratio": 0.1},
        "class_counts": [2, 20],
        "runs": [
            {"confusion_matrix": [[1, 3], [10, 90]]},
            {"confusion_matrix": [[2, 2], [0, 100]]},
        ],
    }


def confusion(result):
    return confusion_section(result, class_rows(result))


def test_recall_shows_range_and_mean(parse):
    tree = parse(recall_row(row([40.0, None, 80.0]), reference=70.0))
    (whisker,) = tree.all("line", "whisker")
    assert (whisker.attributes["x1"], whisker.attributes["x2"]) == ("40%", "80%")
    assert tree.all("circle", "mean")[0].attributes["cx"] == "60%"
    assert tree.all("line", "reference")[0].attributes["x1"] == "70%"
    assert tree.all("title")[0].text == (
        "Theory: mean recall 60.0, from 40.0 to 80.0; mean F1 50.0"
    )


def test_undefined_recall_draws_no_dot(parse):
    tree = parse(recall_row(row([None]), reference=None))
    assert not tree.all("circle")
    assert "undefined" in tree.all("title")[0].text


def test_shading_is_the_share_of_the_row(parse):
    tree = parse(confusion(two_seeds()))
    cells = tree.all("tbody")[0].all("td")
    assert [cell.text for cell in cells] == ["190", "10", "5", "3"]
    shares = [float(cell.attributes["style"].removeprefix("--share:")) for cell in cells]
    assert shares == [0.95, 0.05, 0.625, 0.375]
    assert ["strong" in cell.kinds for cell in cells] == [share >= FLIP for share in shares]
    assert ["hit" in cell.kinds for cell in cells] == [True, False, False, True]
    assert cells[2].attributes["title"] == "rare, predicted as common: 5 of 8 (62.5%)"
    assert [head.text for head in tree.all("thead")[0].all("th")] == ["common", "rare"]
    assert ["rare" in head.kinds for head in tree.all("th")] == [False, True, False, True]


def test_errors_are_listed_worst_first(parse):
    (errors,) = parse(confusion(two_seeds())).all("ol", "mixed")
    assert [line.text for line in errors.all("li")] == [
        "rare predicted as common62.5%",
        "common predicted as rare5.0%",
    ]
    assert ["rare" in line.kinds for line in errors.all("li")] == [True, False]


def test_a_missing_matrix_is_stated(parse):
    section = parse(confusion(two_seeds() | {"runs": [{}]}))
    assert "no confusion matrix" in section.text
    assert not section.all("table")
    assert not section.all("ol")


def test_no_list_of_errors_without_errors(parse):
    perfect = two_seeds() | {"runs": [{"confusion_matrix": [[4, 0], [0, 100]]}]}
    assert not parse(confusion(perfect)).all("aside")


def test_precision_and_f1_are_beside_recall(parse):
    run = {
        "confusion_matrix": [[90, 10], [5, 10]],
        "per_class": {"recall": [90.0, 66.7], "f1": [92.3, 57.1]},
    }
    rows = class_rows({"runs": [run], "class_counts": [50, 5]})
    lines = parse(scores_section(rows)).all("tbody")[0].all("tr")
    cells = [[cell.text for cell in line.all("td")] for line in lines]
    assert cells == [["94.7", "90.0", "92.3"], ["50.0", "66.7", "57.1"]]
    assert not scores_section(class_rows({"runs": [{}], "class_counts": [1, 2]}))


def test_no_matrix_of_a_thousand_classes_is_drawn():
    result = {"dataset": {"num_classes": 10**9}, "runs": [{"confusion_matrix": [[1]]}]}
    rows = class_rows(result)
    assert "more than 300 classes is not drawn" in confusion_section(result, rows)
