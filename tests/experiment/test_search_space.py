from dataclasses import asdict

import pytest

from evengraph.methods import METHODS, Boosting, Logistic, UniGNN
from evengraph.pipeline.comparison import candidates


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].selects_itself])
def test_every_method_has_the_same_number_of_settings(name):
    method = METHODS[name](patience=7)
    found = candidates(method, 12)
    assert asdict(found[0]) == asdict(method)
    assert len({repr(one) for one in found}) == 12
    assert all(type(one) is type(method) and one.patience == 7 for one in found)
    assert len({id(one) for one in found} | {id(method)}) == 13
    assert [repr(one) for one in found] == [repr(one) for one in candidates(method, 12)]
    allowed = {**method.shared_search_space, **method.search_space}
    for field in {key for one in found for key in asdict(one)}:
        values = {getattr(one, field) for one in found}
        assert values <= {getattr(method, field), *allowed.get(field, ())}


def test_a_method_that_selects_its_settings_itself_has_one():
    assert candidates(Logistic(patience=7), 12) == [Logistic(patience=7)]


def test_what_somebody_chose_stays():
    found = candidates(UniGNN(alpha=3, dropout=0.1), 40)
    assert {one.alpha for one in found} == {3}
    assert {one.dropout for one in found} == {0.1}
    assert len({one.threshold for one in found}) == 2


def test_a_small_search_space_is_tried_completely():
    method = Boosting(learning_rate=0.2, hops=2)
    found = candidates(method, 99)
    assert found[0] == method
    assert len(found) == len({str(one) for one in found}) == 12


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ValueError, match="budget must be at least 1, got 0"):
        candidates(METHODS["gcn"](), 0)
