from evengraph.report.result import class_rows, verdict


def said(result, parse):
    return parse(verdict(result, class_rows(result))).text


def test_balanced_accuracy_is_compared_with_guessing(parse):
    run = {"per_class": {"recall": [90.0, 80.0, 40.0, 20.0]}}
    result = {
        "class_counts": [20, 20, 2, 2],
        "dataset": {"class_names": ["a", "b", "c", "d"]},
        "mean": {"balanced_accuracy": 57.5},
        "runs": [run],
    }
    expected = (
        "Balanced accuracy is 57.5% on test nodes; guessing gives 25.0%. "
        "Mean recall of the 2 minority classes is 30.0%."
    )
    assert said(result, parse) == expected
    result["class_counts"] = [20, 20, 20, 2]
    assert said(result, parse).endswith("Recall of class d is 20.0%.")
    result["class_counts"] = [20, 20, 20, 20]  # none is rare
    assert said(result, parse).endswith("guessing gives 25.0%.")


def test_two_classes_are_compared_with_the_base_rate(parse):
    run = {"base_rates": [{"base_rate": 0.1, "precision": 0.33, "recall": 0.4}]}
    result = {
        "class_counts": [90, 10],
        "dataset": {"class_names": ["honest", "fraud"]},
        "mean": {"positive_average_precision": 39.0},
        "runs": [run],
    }
    expected = (
        "Average precision for class fraud is 39.0% on test nodes; a random ranking has 10.0%. "
        "At the threshold, 40.0% of class fraud is found and 33.0% of the alarms are correct."
    )
    assert said(result, parse) == expected
    result["runs"] = [{}]
    assert said(result, parse) == "Average precision for class fraud is 39.0% on test nodes."


def test_nothing_is_said_without_scores():
    rows = class_rows({"class_counts": [3, 1]})
    assert verdict({}, rows) == ""
    assert verdict({"mean": {"balanced_accuracy": 50.0}}, []) == ""
