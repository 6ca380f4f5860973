import pytest
import torch

from evengraph.core.devices import pick_device


def test_devices():
    assert pick_device("cpu") == pick_device(torch.device("cpu")) == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    for name in ("gpu", "mps", "cuda:99", torch.device("meta")):
        with pytest.raises(ValueError, match="cuda"):
            pick_device(name)
