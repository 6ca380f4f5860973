"""Traits: parameters as scikit-learn's tools use them, titles."""

import dataclasses

import pytest
from sklearn.base import clone

from evengraph.methods import GCN, METHODS, UniGNN
from evengraph.methods.bases.method import changed_params
from small_graphs import small_task


@pytest.mark.parametrize("name", METHODS)
def test_clone_has_the_fields_and_is_not_fitted(name):
    method = METHODS[name](max_epochs=0, weight_decay=0.125).fit(small_task(), seed=0)
    copy = clone(method)
    assert copy is not method
    assert copy == method
    assert not copy.is_fitted
    assert copy.get_params() == dataclasses.asdict(method)


def test_params_are_set_together_or_not_at_all():
    method = UniGNN()
    assert method.set_params(alpha=3, hidden=8) is method
    assert (method.alpha, method.hidden) == (3, 8)
    with pytest.raises(ValueError, match="hidden must be at least 1, got 0"):
        method.set_params(alpha=1, hidden=0)
    with pytest.raises(ValueError, match="UniGNN has no parameter 'hiden'; it has learning_rate, "):
        method.set_params(alpha=1, hiden=4)
    assert (method.alpha, method.hidden) == (3, 8)
    assert method.set_params() is method


def test_the_backbone_is_named_unless_it_is_the_usual_one():
    assert UniGNN().full_title == "Uni-GNN"
    assert METHODS["reweight"](backbone="sage").full_title == "Re-weight on GraphSAGE"
    assert changed_params(GCN(hidden=32)) == ["hidden"]
