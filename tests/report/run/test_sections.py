from evengraph.report.run.result_reader import ClassRow
from evengraph.report.run.sections import recall_row


def row(recalls):
    return ClassRow(
        index=0, name="Theory", count=5, minority=False, recalls=recalls, f1s=[50.0, 50.0]
    )


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
