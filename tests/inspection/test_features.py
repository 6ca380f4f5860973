import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evengraph.inspection import measures as module
from evengraph.inspection.measures import measure_features

VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.5, np.nan, np.inf])


def measure(x, labels=None):
    labels = np.zeros(len(x), dtype=np.int64) if labels is None else np.array(labels)
    return measure_features(x, labels, labels >= 0, int(labels.max(initial=0)) + 1)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float32, shape, elements=VALUES)
    ),
    st.sampled_from([2, 5, 1000]),
)
def test_features_against_a_loop(x, chunk):
    before, module.CHUNK_ENTRIES = module.CHUNK_ENTRIES, chunk
    try:
        found, columns = measure(x)
    finally:
        module.CHUNK_ENTRIES = before
    rows = [tuple("nan" if v != v else v + 0.0 for v in row) for row in x.tolist()]
    full = [row for row in rows if any(value != 0 for value in row)]
    assert found.count == x.shape[1]
    assert found.density == pytest.approx(np.count_nonzero(x) / x.size)
    assert found.missing == (~np.isfinite(x)).sum()
    assert found.empty_nodes == len(rows) - len(full)
    assert found.duplicate_nodes == len(full) - len(set(full))
    constant = [np.isfinite(column).all() and len(set(column.tolist())) == 1 for column in x.T]
    assert found.constant == sum(constant)
    for place, column in enumerate(x.T):
        known = column[np.isfinite(column)]
        if len(known):
            assert (columns.low[place], columns.high[place]) == (known.min(), known.max())
            assert columns.mean[place] == pytest.approx(known.mean(), abs=1e-5)
            assert columns.variance[place] == pytest.approx(known.var(), abs=1e-5)


def test_empty_buckets_of_words_are_no_constant_features():
    x = np.array([[0.0, 1, 0], [0, 2, 0]])
    labels = np.array([0, 1])
    hashed = np.array([False, True, True])
    found, _ = measure_features(x, labels, labels >= 0, 2, hashed)
    assert (found.count, found.hashed, found.constant) == (3, 2, 1)
    assert measure(x)[0].constant == 2


def test_duplicates_of_another_class_are_told():
    x = np.array([[1.0, 2], [1, 2], [1, 2], [3, 4], [3, 4], [5, 6]])
    found, _ = measure(x, [0, 1, -1, 0, 0, 1])
    assert found.duplicate_nodes == 3
    assert found.conflicting_nodes == 2


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.bool_])
def test_other_kinds_of_numbers(kind):
    found, columns = measure(np.array([[0, 1], [1, 1], [1, 1]], dtype=kind))
    assert (found.constant, found.duplicate_nodes, found.missing) == (1, 1, 0)
    assert columns.high.tolist() == [1, 1]


def test_no_features_at_all():
    found, _ = measure(np.zeros((4, 0), dtype=np.float32))
    assert found.count == found.constant == found.empty_nodes == found.duplicate_nodes == 0
    assert found.density is None
