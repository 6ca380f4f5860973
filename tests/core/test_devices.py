import pytest
import torch

from evengraph.core.machine import pick_device, pick_rank_device
from evengraph.training.ranks import Ranks


def test_devices():
    assert pick_device("cpu") == pick_device(torch.device("cpu")) == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    for name in ("gpu", "mps", "cuda:99", torch.device("meta")):
        with pytest.raises(ValueError, match="cuda"):
            pick_device(name)


def test_processes_of_a_machine_need_a_gpu_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert pick_rank_device("auto", Ranks()).type == "cuda"
    two = Ranks(0, 2, here=2)
    assert pick_rank_device("auto", two).type == "cpu"
    assert pick_rank_device("cpu", two).type == "cpu"
    with pytest.raises(ValueError, match=r"device must be cpu for 2 processes on a machine with 1"):
        pick_rank_device("cuda", two)
