from evengraph.report.result import class_rows, confusion, shares


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


def test_counts_are_summed_and_ordered_head_to_tail():
    result = two_seeds()
    assert confusion(result, class_rows(result)) == [[190, 10], [5, 3]]


def test_a_class_without_test_nodes_stays_unshaded():
    assert shares([0, 0]) == [0, 0]


def test_ragged_matrices_do_no_harm():
    result = two_seeds()
    result["runs"] = [{"confusion_matrix": [[1], None]}, {"confusion_matrix": None}]
    assert confusion(result, class_rows(result)) == [[0, 0], [0, 1]]


def test_classes_without_names_or_counts():
    rows = class_rows({"dataset": {"num_classes": 2, "class_names": [" a ", None]}})
    assert [(row.name, row.count, row.minority) for row in rows] == [
        ("a", None, False),
        ("class 1", None, False),
    ]
