"""Saving: what of a fitted method is saved, and what is restored."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from evengraph.methods.bases.method import Method, restore_method
from evengraph.methods.bases.saving import TensorMismatchError, read_model
from small_graphs import small_task


@dataclass(kw_only=True)
class Constant(Method):
    """The same logits for every node."""

    def _fit(self, task):
        self.net_ = nn.Linear(1, 3)

    def _logits(self, graph):
        return self.net_(torch.ones(graph.num_nodes, 1))


@dataclass(kw_only=True)
class Savable(Constant):
    """One whose network can be made again."""

    def _fit(self, task):
        self.net_ = self._new_network()

    def _build_network(self):
        return nn.Linear(1, self.num_classes_)


def test_a_method_that_makes_its_network_is_saved_and_restored(tmp_path):
    task = small_task()
    method = Savable().fit(task, seed=0)
    method.save(tmp_path / "model", extra={"columns": ["a"]})
    about, tensors = read_model(tmp_path / "model")
    again = Savable()
    restore_method(again, about, tensors, torch.device("cpu"))
    assert again.is_fitted
    assert again.extra_ == {"columns": ["a"]}
    assert torch.equal(again.predict_proba(task.graph), method.predict_proba(task.graph))
    assert torch.equal(again.labelled_.nodes, method.labelled_.nodes)


def test_a_method_without_either_cannot_be_saved(tmp_path):
    method = Constant().fit(small_task(), seed=0)
    with pytest.raises(NotImplementedError, match="Constant cannot be saved"):
        method.save(tmp_path / "model")


def test_parameters_that_changed_after_fitting_are_refused(tmp_path):
    method = Savable().fit(small_task(), seed=0)
    method.patience = 3
    with pytest.raises(ValueError, match="patience changed after fitting"):
        method.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_network_larger_than_its_tensors_is_not_built(tmp_path):
    method = Savable().fit(small_task(), seed=0)
    method.save(tmp_path / "model")
    about, tensors = read_model(tmp_path / "model")
    with pytest.raises(TensorMismatchError, match="smaller than the network"):
        restore_method(Savable(), about | {"num_classes": 10**12}, tensors, torch.device("cpu"))


@pytest.mark.parametrize("loaded", [False, True])
def test_errors_of_a_loaded_model_are_one_line_and_others_are_bugs(loaded, monkeypatch):
    task = small_task()
    method = Savable().fit(task, seed=0)
    method.loaded_ = loaded
    monkeypatch.setattr(method, "_logits", lambda graph: torch.ones(4, 5) @ torch.ones(3, 2))
    with pytest.raises(ValueError if loaded else RuntimeError) as found:
        method.predict_proba(task.graph)
    if loaded:
        assert "cannot predict: the tensors of Savable do not fit" in str(found.value)
        assert "\n" not in str(found.value)


def fail_to_allocate(graph):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory")


def test_too_little_memory_is_no_damage(monkeypatch):
    task = small_task()
    method = Savable().fit(task, seed=0)
    method.loaded_ = True
    monkeypatch.setattr(method, "_logits", fail_to_allocate)
    with pytest.raises(RuntimeError, match="allocate"):
        method.predict_proba(task.graph)


@pytest.mark.parametrize("shape", [(150, 1), (150, 2), (150, 3, 1)])
def test_there_is_a_column_for_each_class(shape, monkeypatch):
    task = small_task()
    method = Savable().fit(task, seed=0)
    monkeypatch.setattr(method, "_logits", lambda graph: torch.ones(shape))
    with pytest.raises(ValueError, match="must predict 3 classes"):
        method.predict_proba(task.graph)
