"""Quick forms: what makes the mathematics of the methods' own files quick.

A quick form is a module with functions of a method, which take it as their first argument:
`fit(method, task, seed)`, which returns whether it did the work, `logits(method, graph)` and
`batching(method)`. It has those that it makes quicker; the contract calls them in place of the
method's own. Methods know nothing of it. Without dropout, tests hold both equal; with it they draw
other random numbers.

    with evengraph.fast.off():  # run what the methods' own files say
        model.fit(task, seed=0)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

_SUPERVISED = ("GCN", "Reweight", "BalancedSoftmax", "ClassBalanced", "LogitAdjustment")
FORMS = {
    "UniGNN": "evengraph.fast.unignn",
    **dict.fromkeys((*_SUPERVISED, "PCSoftmax"), "evengraph.fast.supervised"),
}
"""The module of the quick form of a method, by the name of its class."""

_on = ContextVar("on", default=True)


@contextmanager
def off() -> Iterator[None]:
    """Fit and predict without quick forms until the end of the block."""
    token = _on.set(False)
    try:
        yield
    finally:
        _on.reset(token)


def form_of(method: object) -> Any:
    """The module of a method's quick form; None without one, or within `off()`."""
    own = type(method).__module__.startswith("evengraph.methods.")
    name = FORMS.get(type(method).__name__) if own else None
    return import_module(name) if name is not None and _on.get() else None
