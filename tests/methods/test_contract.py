"""The contract over the METHODS table: `evengraph.testing`, and what only our own methods keep."""

import dataclasses
import inspect
import re

import pytest

import evengraph.methods
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.network import MarginMethod, NetworkMethod
from evengraph.testing import METHOD_CHECKS, check_method
from small_graphs import QUICK, small_task

pytestmark = pytest.mark.parametrize("name", METHODS)

DETERMINISTIC = {"labelpropagation", "boosting", "logistic"}
TRAIN_ACCURACY = {"mlp": 0.7, "logistic": 0.6}  # features alone say little on the generated graph
SHARED = (Method, NetworkMethod, MarginMethod)


@pytest.mark.parametrize("rule", METHOD_CHECKS)
def test_contract(name, rule):
    check_method(
        METHODS[name],
        params=QUICK.get(name),
        deterministic=name in DETERMINISTIC,
        train_accuracy=TRAIN_ACCURACY.get(name, 0.8),
        only=rule,
    )


def test_its_parts_are_where_they_belong(name):
    method = METHODS[name]
    assert method.__module__ == f"evengraph.methods.{name}"
    assert method.__name__.lower() == name
    assert method.title.replace("-", "").replace(" ", "").lower() == name
    assert getattr(evengraph.methods, method.__name__) is method


def test_it_is_documented(name):
    method = METHODS[name]
    text = inspect.cleandoc(method.__doc__)
    sections = re.findall(r"^(Args|Shapes|Cost|Departs|Reference):$", text, flags=re.MULTILINE)
    order = ["Args", "Shapes", "Cost", "Departs", "Reference"]
    assert sections == sorted(sections, key=order.index)
    assert {"Cost", "Reference"} <= set(sections)
    shared = {
        field.name
        for base in SHARED
        if issubclass(method, base)
        for field in dataclasses.fields(base)
    }
    if issubclass(method, NetworkMethod):
        shared |= {"backbone", "network"}  # NetworkMethod documents them
    own = [field.name for field in dataclasses.fields(method) if field.name not in shared]
    arguments = (text.split("\nArgs:\n")[1].split("\n\n")[0]) if own else ""
    assert re.findall(r"^    (\w+):", arguments, flags=re.MULTILINE) == own


def test_what_it_declares_is_about_its_parameters(name):
    method = METHODS[name]
    params = {field.name for field in dataclasses.fields(method)}
    assert set(method.search_space) <= params
    assert method.tuned_params <= params
    assert set(method.graph_defaults(small_task().graph)) <= params
    for entry in method.portfolio:
        method(**entry)
