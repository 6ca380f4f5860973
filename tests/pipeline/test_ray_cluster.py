"""A Ray cluster that may be there already, or not be installed."""

import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest

from evengraph.pipeline.executor import connected_ray


def fake_ray(monkeypatch, *, running):
    calls = []
    ray = SimpleNamespace(
        is_initialized=lambda: running,
        init=lambda **options: calls.append(options),
        shutdown=lambda: calls.append("shutdown"),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray, calls


def test_a_new_cluster_ends_with_the_block(monkeypatch):
    ray, calls = fake_ray(monkeypatch, running=False)
    with suppress(OSError), connected_ray() as found:
        assert found is ray
        raise OSError
    assert calls[0]["include_dashboard"] is False
    assert calls[1:] == ["shutdown"]


def test_a_cluster_elsewhere_keeps_its_settings_and_an_open_connection_stays(monkeypatch):
    _, calls = fake_ray(monkeypatch, running=False)
    with connected_ray("there:1"):
        assert calls[0]["address"] == "there:1"
        assert "include_dashboard" not in calls[0]
    _, calls = fake_ray(monkeypatch, running=True)
    with connected_ray():
        pass
    assert calls == []


def test_a_cluster_that_does_not_start_is_one_line(monkeypatch):
    def init(**options):
        raise Exception("The node timed out.\nMore.")

    ray, _ = fake_ray(monkeypatch, running=False)
    ray.init = init
    with pytest.raises(OSError, match=r"^Ray did not start: The node timed out\.$"):
        connected_ray().__enter__()
