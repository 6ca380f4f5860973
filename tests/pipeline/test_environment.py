import platform

import torch

from evengraph.pipeline import executor as environment


def test_it_says_where_a_run_took_place():
    here = environment.describe(torch.device("cpu"))
    assert here["python"] == platform.python_version()
    assert here["torch"] == torch.__version__
    assert here["device"].startswith("cpu")
    assert here["threads"] >= 1


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert environment.describe(torch.device("cpu"))["commit"] is None
