"""Many columns of 0 and 1."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from evengraph.tables import FeatureEncoder
from evengraph.tables import feature_encoder as indicators

EDGES = torch.tensor([[0, 1], [1, 0]])
BITS = (np.random.default_rng(0).random((40, 60)) < 0.2).astype(int)


def frame(bits=BITS):
    table = pd.DataFrame(bits, columns=[f"f{i}" for i in range(60)])
    table["age"] = range(40)
    return table


def fitted(table):
    return FeatureEncoder.fit(table, list(table.columns), edge_index=EDGES)


@pytest.mark.parametrize("dtype", [int, float, bool, str])
def test_they_stay_as_they_are_with_one_note(dtype):
    table = frame(BITS.astype(dtype))
    encoder = fitted(table)
    assert encoder.notes == ("60 columns of 0 and 1 (f0, f1, ...) as 0/1 features.",)
    assert encoder.names == ("age", *(f"f{i}" for i in range(60)))
    assert encoder.transform(table)[:, 1:].tolist() == BITS.tolist()
    assert encoder.hashed.tolist() == [False] * 61
    same = FeatureEncoder.from_dict(json.loads(json.dumps(encoder.as_dict())))
    assert torch.equal(same.transform(frame()), encoder.transform(table))


def test_empty_cells_and_constant_columns():
    table = frame(BITS.astype(str).astype(object))
    table["f0"], table["f1"] = "0", [None, "1", " 0"] + ["true"] * 37
    encoder = fitted(table)
    assert "59 columns of 0 and 1 (f0, f1, ...)" in encoder.notes[0]
    assert encoder.notes[0].endswith("features; constant ones left out: 1.")
    assert encoder.transform(table)[:3, 1].tolist() == [0, 1, 0]


def test_few_are_numbers():
    encoder = fitted(frame()[["f0", "f1", "age"]])
    assert (encoder.indicators, len(encoder.columns)) == ((), 3)
    lists = frame().assign(tags=[["a"], ["b"]] * 20, f5=2)
    assert "f5" not in fitted(lists).indicators
    assert len(fitted(lists).indicators) == 59


def test_the_most_frequent_within_the_memory(monkeypatch):
    monkeypatch.setattr(indicators, "MAX_BYTES", 40 * 4 * 7)
    encoder = fitted(frame())
    assert len(encoder.indicators) == 7
    others = BITS.sum(0)[[i for i in range(60) if f"f{i}" not in encoder.indicators]]
    assert min(BITS[:, int(name[1:])].sum() for name in encoder.indicators) >= others.max()
    assert encoder.notes[0].endswith("less frequent ones left out to save memory: 53.")


def test_a_bad_new_cell():
    new = frame().astype({"f7": object})
    new.loc[2, "f7"] = "x"
    for check in (fitted(frame()).transform, fitted(frame()).check_rows):
        with pytest.raises(ValueError, match="column 'f7', row 3 holds 'x'; expected 0, 1 or an"):
            check(new)
