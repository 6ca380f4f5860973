import pytest
from small_desk import truth, write_shop

import evengraph as eg
from evengraph.desk.desk import DeskOptions
from evengraph.desk.label_file import LABEL, UNKNOWN, Event, LabelFile
from evengraph.desk.nodes import open_for_model
from evengraph.desk.pages import Triage

ME = {"who": "ana", "session": "s1"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    shop = write_shop(tmp_path_factory.mktemp("tables") / "shop", labelled=40)
    return eg.TableModel("logistic").fit(shop, label="kind"), shop


@pytest.fixture
def desk(model, tmp_path):
    table_model, shop = model
    nodes, rows = open_for_model(table_model, str(shop), None, {})
    file = LabelFile(tmp_path / "labels.sqlite", "kind")
    made = Triage(
        nodes, file, DeskOptions(folder=tmp_path / "m"), table_model.method_, "fraud", rows
    )
    made.start()
    yield made
    made.close()


def test_suspects_come_by_probability_and_without_known_nodes(desk):
    assert {one.row for one in desk.queue} == set(range(40, 60))
    values = [desk.thought(one.row)["fraud"] for one in desk.queue]
    assert values == sorted(values, reverse=True)
    assert truth(desk.nodes.ids[desk.queue[0].row]) == "fraud"
    assert desk.nodes.labels[:2].tolist() == [0, 1]


def test_precision_counts_what_was_decided(desk):
    desk.file.add(Event(node="a059", label="fraud", model="another"))
    desk.refresh()
    assert desk.precision() == (0, 0, 0)
    rows = [one.row for one in desk.waiting()[:4]]
    expected = sum(desk.thought(row)["fraud"] for row in rows[:3])
    desk.answer(rows[0], LABEL, "fraud", **ME)
    desk.answer(rows[1], LABEL, "fraud", **ME)
    desk.answer(rows[2], LABEL, "honest", **ME)
    desk.answer(rows[3], UNKNOWN, **ME)
    confirmed, decided, foreseen = desk.precision()
    assert (confirmed, decided) == (2, 3)
    assert foreseen == pytest.approx(expected, abs=0.01)
    assert desk.next_row("s1", rows[3]) == desk.waiting()[0].row
    assert not desk.trainer.running


def test_tables_without_the_label_column_are_all_suspects(model, tmp_path):
    table_model, _ = model
    other = write_shop(tmp_path / "other", labelled=0, column="unused")
    nodes, rows = open_for_model(table_model, str(other), None, {})
    assert rows == list(range(60))
    assert nodes.labels.max() == -1
