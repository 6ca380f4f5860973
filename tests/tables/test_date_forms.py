"""Dates in other forms than ISO 8601."""

import json

import numpy as np
import pandas as pd
import pytest

from evengraph.core.errors import ArgumentError
from evengraph.tables import from_frames
from evengraph.tables.cells import date_form, describe_dates, seconds_of
from evengraph.tables.encoders import Date, Number, as_dict, fit_column, from_dict

NOON = "2024-05-31 12:00"


def column(values, name="joined"):
    return pd.Series(values, name=name)


def epoch(*dates):
    return [pd.Timestamp(date, tz="UTC").timestamp() for date in dates]


@pytest.mark.parametrize(
    ("cells", "form", "dates"),
    [
        (["31/05/2024", "1/6/2024"], "day/month/year", ["2024-05-31", "2024-06-01"]),
        (["05/31/2024", "6/1/2024 "], "month/day/year", ["2024-05-31", "2024-06-01"]),
        (["31.05.2024 12:00", "01.06.2024"], "day/month/year", [NOON, "2024-06-01"]),
        (["03.04.2024", "05.04.2024"], "day/month/year", ["2024-04-03", "2024-04-05"]),
        (["31-05-2024 12:00:00"], "day/month/year", [NOON]),
        (["5/31/2024, 12:00:00 PM"], "month/day/year", [NOON]),
        (["05/31/2024 12:00 PM"], "month/day/year", [NOON]),
        (["2024/05/31", "2024/6/1"], "year/month/day", ["2024-05-31", "2024-06-01"]),
        (["May 31, 2024", "Jun 1, 2024"], "month in words", ["2024-05-31", "2024-06-01"]),
        (["31 May 2024", "December 1 2024"], "month in words", ["2024-05-31", "2024-12-01"]),
        (["31-May-2024 12:00"], "month in words", [NOON]),
        (["2024-05-31"], None, []),
        (["a/b", "31/05"], None, []),
        (["10.1.2.3", "1/2/34"], None, []),
        ([[1], [2]], None, []),
    ],
)
def test_forms(cells, form, dates):
    cells = column([*cells, None], name="x")
    assert date_form(cells, "t") == form
    if form is None:
        return
    seconds = seconds_of(cells, "t", form)
    assert seconds[:-1].tolist() == epoch(*dates)
    assert np.isnan(seconds[-1])


@pytest.mark.parametrize(
    ("name", "values", "form"),
    [
        ("created_at", [1_717_113_600, 1_717_200_000], "seconds since 1970"),
        ("updatedAt", ["1717113600000", "", "1717200000000"], "milliseconds since 1970"),
        ("timestamp", [1.7171136e9, np.nan, 1.7e9], "seconds since 1970"),
        ("followers", [1_717_113_600, 1_717_200_000], None),
        ("created_at", [12, 1_717_200_000], None),
        ("created_at", ["soon", "later"], None),
        ("seen_on", [None, None], None),
    ],
)
def test_seconds_and_milliseconds_by_name_and_range(name, values, form):
    assert date_form(column(values, name), "t") == form
    if form is not None:
        assert np.nanmax(seconds_of(column(values, name), "t", form)) < 1.8e9


def test_days_up_to_twelve_are_asked_about():
    cells = column(["03/04/2024", "12/12/2024"])
    with pytest.raises(
        ArgumentError, match="no cell tells day from month; set date_order"
    ) as error:
        date_form(cells, "t")
    assert error.value.argument == "date_order"
    assert date_form(cells, "t", "dmy") == "day/month/year"
    assert date_form(cells, "t", "mdy") == "month/day/year"
    assert date_form(column(["03/04/2024", "05/31/2024"]), "t", "dmy") == "month/day/year"
    with pytest.raises(ValueError, match="date_order must be dmy or mdy, got 'ymd'"):
        date_form(cells, "t", "ymd")


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        (["31/05/2024", "05/31/2024"], "'31/05/2024', day first, and '05/31/2024', month first"),
        (["31/05/2024", "May 31, 2024"], "dates in several forms"),
        (
            ["31/05/2024"] + [f"{i}/06/2024" for i in range(1, 10)] + ["soon"],
            "but also 'soon' .1 of",
        ),
    ],
)
def test_forms_that_do_not_fit_together(cells, error):
    with pytest.raises(ValueError, match=error):
        date_form(column(cells), "t")


def test_the_form_is_saved_with_the_encoder():
    cells = column(["31/05/2024", "03/04/2024", None])
    encoder = from_dict(json.loads(json.dumps(as_dict(fit_column(cells, "t")))))
    assert type(encoder) is Date
    same = fit_column(column(["2024-05-31", "2024-04-03", None]), "t")
    assert (
        encoder.transform(cells, "t").tolist()
        == same.transform(column(["2024-05-31", "2024-04-03", None]), "t").tolist()
    )
    new = column(["03/04/2024"])  # ambiguous by itself
    assert encoder.transform(new, "t")[0] == encoder.transform(cells, "t")[1]
    with pytest.raises(ValueError, match=r"row 1 holds '05/31/2024'; expected a date \(day/month"):
        encoder.transform(column(["05/31/2024"]), "t")


def test_dates_saved_before_there_were_forms():
    old = from_dict({"kind": "date", "column": "d", "median": 0.0, "mean": 0.0, "scale": 86400.0})
    assert old.transform(column(["1970-01-03", None]), "t")[:, 0].tolist() == [2, 0]


def test_times_and_notes_of_a_table():
    nodes = pd.DataFrame(
        {
            "id": range(4),
            "kind": list("abab"),
            "joined": ["31/05/2024", "01/06/2024", "", "02/06/2024"],
            "seen": ["1/2/2024", "3/4/2024", "5/6/2024", ""],
            "created_at": [1_717_113_600, 1_717_200_000, 1_717_200_001, 1_717_200_002],
        }
    )
    edges = pd.DataFrame({"from": [0, 1, 2], "to": [1, 2, 3]})
    with pytest.raises(ArgumentError, match="column 'seen' holds dates such as '1/2/2024'"):
        from_frames(nodes, edges, label="kind", time="joined")
    own = from_frames(nodes, edges, label="kind", time="joined", date_order="mdy")
    assert own.graph.time[:2].tolist() == epoch("2024-05-31", "2024-06-01")
    assert own.encoder.names == ("seen", "created_at")
    assert "Dates: seen (month/day/year), created_at (seconds since 1970)." in own.notes
    assert describe_dates({"d": ""}) == []


def test_a_number_of_any_other_name_is_a_number():
    assert type(fit_column(column([1_717_113_600, 1_717_200_000], "followers"), "t")) is Number
