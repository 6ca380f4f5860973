"""Rehearsals: on the CPU with torch's report as a fake, on a GPU with the real one."""

import warnings

import pytest
import torch

from evengraph.training.loop import MESSAGE, waits_for_gpu


@pytest.fixture
def modes(monkeypatch):
    """Without a GPU torch has no such mode."""
    modes = [0]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    return modes


def test_reports_are_collected_and_other_warnings_pass(modes):
    def rehearse():
        with waits_for_gpu() as found:
            warnings.warn(f"called a {MESSAGE}", stacklevel=1)
            warnings.warn("another", stacklevel=1)
        return found

    with pytest.warns(UserWarning, match="another") as passed:
        found = rehearse()
    assert len(found) == len(passed) == 1
    assert modes == [0, "warn", 0]


def test_the_mode_comes_back_after_an_error(modes):
    with pytest.raises(KeyError), waits_for_gpu():
        raise KeyError
    assert modes[-1] == 0


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_torch_reports_what_waits():
    x = torch.ones(3, device="cuda")
    with waits_for_gpu() as found:
        x.sum().item()
    assert found
    with waits_for_gpu() as found:
        x.sum()
    assert not found
