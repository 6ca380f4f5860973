from evengraph.report.page import FLIP
from evengraph.report.run.matrix import confused_pairs, matrix
from evengraph.report.run.result_reader import class_rows


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


def test_shading_is_the_share_of_the_row(parse):
    result = two_seeds()
    tree = parse(matrix(result, class_rows(result)))
    cells = tree.all("tbody")[0].all("td")
    assert [cell.text for cell in cells] == ["190", "10", "5", "3"]
    found = [float(cell.attributes["style"].removeprefix("--share:")) for cell in cells]
    assert found == [0.95, 0.05, 0.625, 0.375]
    assert ["strong" in cell.kinds for cell in cells] == [share >= FLIP for share in found]
    assert ["hit" in cell.kinds for cell in cells] == [True, False, False, True]
    assert cells[2].attributes["title"] == "rare, predicted as common: 5 of 8 (62.5%)"
    assert [head.text for head in tree.all("thead")[0].all("th")] == ["common", "rare"]
    assert ["rare" in head.kinds for head in tree.all("th")] == [False, True, False, True]


def test_errors_are_listed_worst_first():
    result = two_seeds()
    found = confused_pairs(result, class_rows(result))
    assert [(share, true.name, guess.name) for share, true, guess in found] == [
        (0.625, "rare", "common"),
        (0.05, "common", "rare"),
    ]


def test_a_missing_matrix_is_stated():
    result = two_seeds() | {"runs": [{}]}
    assert "no confusion matrix" in matrix(result, class_rows(result))
    assert confused_pairs(result, class_rows(result)) == []
