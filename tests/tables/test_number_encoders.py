"""Numbers with heavy tails."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.preprocessing import QuantileTransformer

from evengraph.tables import FeatureEncoder
from evengraph.tables.encoders import (
    NUM_QUANTILES,
    Log,
    Number,
    Quantile,
    as_dict,
    describe_numbers,
    fit_number,
    from_dict,
    is_heavy_tailed,
)

RNG = np.random.default_rng(0)
BODY = RNG.normal(size=1000)
TAIL = RNG.lognormal(mean=8, sigma=2, size=1000)
PATH = torch.tensor([[0, 1], [1, 0]])

KINDS = {
    "normal": (BODY, Number),
    "uniform years": (RNG.integers(1990, 2025, 1000), Number),
    "rare flag": (np.arange(1000) < 10, Number),
    "few counts": (np.minimum(TAIL // 20_000, 5), Number),
    "views": (np.floor(TAIL), Log),
    "tiny": (TAIL * 1e-12, Log),
    "huge": (TAIL * 1e200, Log),
    "smallest": (TAIL * 1e-312, Log),
    "above a million": (1e6 * (1 + TAIL), Log),
    "negative": (-TAIL, Log),
    "zeros": (np.where(np.arange(1000) % 10, 0, TAIL), Log),
    "both signs": (np.sign(BODY) * TAIL, Log),
    "offset": (1e9 + TAIL, Quantile),
    "one wild cell": (np.append(BODY, 1e9), Quantile),
    "wild cells": (np.append(BODY, [1e300, -1e300]), Quantile),
    "left tail": (1e7 - np.minimum(TAIL, 1e7 - 1), Quantile),
}


@pytest.mark.parametrize("name", KINDS)
def test_tails_choose_the_encoder(name):
    numbers, kind = KINDS[name]
    encoder = fit_number("n", numbers.astype(float))
    assert type(encoder) is kind
    values = pd.Series(numbers.astype(float), name="n")
    features = encoder.transform(values, "nodes")
    assert np.isfinite(features).all()
    assert features.mean() == pytest.approx(0, abs=1e-6)
    assert features.std() == pytest.approx(1)
    if kind is not Number:
        assert abs(features).max() < 10
        order = np.argsort(values, kind="stable")
        assert (np.diff(features[order, 0]) >= 0).all()
    assert from_dict(json.loads(json.dumps(as_dict(encoder)))) == encoder


def test_the_unit_of_measurement_does_not_matter():
    seconds = fit_number("n", TAIL).transform(pd.Series(TAIL), "")
    nanoseconds = fit_number("n", TAIL * 1e9).transform(pd.Series(TAIL * 1e9), "")
    assert nanoseconds == pytest.approx(seconds)


def test_new_and_empty_cells_of_a_logarithm():
    numbers = np.append(np.floor(TAIL), np.nan)
    encoder = fit_number("n", numbers)
    new = pd.Series([None, np.nanmedian(numbers), 0, -5, numbers[:-1].max() * 1e6, 1e308])
    empty, median, zero, negative, large, largest = encoder.transform(new, "")[:, 0]
    assert empty == median
    assert negative < zero < median < large < largest < 400


def test_quantiles_as_scikit_learn_does_it():
    numbers = np.append(np.round(BODY, 1), [1e9, 1e9])  # with ties
    encoder = fit_number("n", numbers)
    theirs = QuantileTransformer(n_quantiles=NUM_QUANTILES, output_distribution="normal")
    expected = theirs.fit_transform(numbers[:, None])[:, 0]
    inner = abs(expected) < 2.5  # beyond, ranks are cut off
    assert encoder.curve(numbers)[inner] == pytest.approx(expected[inner])
    assert abs(encoder.curve(np.array([-1e300, 1e300]))) == pytest.approx(2.807, abs=1e-3)


def test_a_small_table_leaves_few_of_its_cells_in_the_quantiles():
    numbers = np.append(BODY[:98], [1e300, -1e300])
    encoder = fit_number("n", numbers)
    assert isinstance(encoder, Quantile)
    assert len(encoder.quantiles) == 20
    assert len(set(encoder.quantiles) & set(numbers)) <= 3


def test_numbers_are_not_heavy_tailed_when_there_are_none_or_all_are_equal():
    assert not is_heavy_tailed(np.array([]))
    assert not is_heavy_tailed(np.zeros(3))


def test_one_sentence_for_all_columns():
    frame = pd.DataFrame({f"views{i}": TAIL for i in range(7)} | {"days": BODY, "rank": 1e9 + TAIL})
    encoder = FeatureEncoder.fit(frame, list(frame.columns), edge_index=PATH)
    assert encoder.notes == (
        "Logarithm of views0, views1, views2, views3, views4 and 2 more (heavy-tailed).",
        "Quantiles of rank (heavy-tailed).",
    )
    assert describe_numbers([]) == []


def test_an_encoder_saved_before_there_were_curves_gives_the_same_features():
    fields = {"column": "n", "median": 3.0, "mean": 10.0, "scale": 4.0}
    old = from_dict({"kind": "number", **fields})
    assert type(old) is Number
    assert old.transform(pd.Series([None, 2.0, 1e9]), "")[:, 0].tolist() == [-1.75, -2.0, 1e6]


PLAIN = {"column": "a", "median": 0.0, "mean": 0.0, "scale": 1.0}


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ({"kind": "number", "scale": 0}, "scale of an encoder must not be 0"),
        ({"kind": "vector", "mean": [1.0], "scale": 0.0}, "scale of an encoder must not be 0"),
        ({"kind": "log", "unit": 0.0}, "unit of an encoder must be above 0"),
        ({"kind": "quantile", "quantiles": []}, "quantiles of an encoder must not be empty"),
        ({"kind": "date", "form": "a"}, "form of dates must be one of .*, got 'a'"),
    ],
)
def test_stored_numbers_that_nothing_can_be_divided_by_are_refused(stored, told):
    fields = {"column": "a"} if stored["kind"] == "vector" else PLAIN
    with pytest.raises(ValueError, match=told):
        from_dict(fields | stored)


def test_a_column_of_the_smallest_numbers_is_scaled():
    encoder = Number.fit_numbers("a", np.array([0.0, 5e-324, 0.0]))
    assert encoder.scale > 0
