import pytest
from looks import look
from rich.console import Console

from evengraph.report.terminal import BAR, bar, inspection_view


def drawn(found, width=80):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(inspection_view(found))
    return capture.get()


def test_classes_stand_head_to_tail_with_their_reach():
    found = look()
    lines = drawn(found).splitlines()
    assert lines[0].startswith("toy  600 nodes · 900 edges · 30 features · 4 classes")
    assert lines[1].startswith("120 labelled (20%)")
    (head,) = [place for place, line in enumerate(lines) if line.startswith("class  ")]
    assert lines[head].split() == ["class", "labelled", "same", "chance", "≤1", "≤2", "≤3", "≤4"]
    counts = [int(line.split()[2]) for line in lines[head + 1 : head + 5]]
    assert counts == sorted(found["labels"]["labelled"], reverse=True)
    place = found["labels"]["labelled"].index(counts[0])
    near = found["reach"]["per_class"][place]
    wanted = [f"{100 * count / found['reach']['nodes']:.0f}%" for count in near]
    assert lines[head + 1].split()[-4:] == wanted
    assert lines[head + 5].startswith("any class")


def test_findings_and_advice_are_all_there():
    found = look()
    text = " ".join(drawn(found).split())
    for finding in found["findings"]:
        assert finding["text"] in text
    assert "Recommendation: First remove 'topic 3' from the features." in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_lines_fit(width):
    for found in (look(), look(classes=40), look(word="[bold]" * 20)):
        lines = drawn(found, width).splitlines()
        assert max(map(len, lines)) <= width
        assert "labelled" in drawn(found, width)


def test_of_many_classes_the_smallest_are_left_out():
    text = drawn(look(classes=40))
    assert "and 20 smaller classes" in text


def test_without_unlabelled_nodes_there_are_no_hops():
    text = drawn(look(labelled=600))
    assert "≤" not in text
    assert "any class" not in text


def test_an_empty_inspection_is_drawn_too():
    assert "The graph" in drawn({})


def test_bars_end_where_they_should():
    assert bar(10, 10) == "█" * BAR
    assert bar(5, 10) == "█" * (BAR // 2)
    assert bar(1, 10**6) == "▏"
    assert bar(0, 10) == bar(0, 0) == ""


def test_weights_and_relations_stand_with_the_edges():
    found = look()
    found["edges"] |= {"weighted": True, "relations": ["card", "cash"]}
    assert "900 edges, weighted, 2 relations ·" in drawn(found).splitlines()[0]
