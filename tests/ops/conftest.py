"""What tests of the operations share."""

import pytest
import torch


@pytest.fixture
def poisoned_memory(monkeypatch):
    """Fresh memory holds NaN: whatever a kernel forgets to write shows."""

    def poison(make):
        def made(*arguments, **options):
            memory = make(*arguments, **options)
            return memory.fill_(torch.nan) if memory.is_floating_point() else memory

        return made

    monkeypatch.setattr(torch, "empty", poison(torch.empty))
    monkeypatch.setattr(torch, "empty_like", poison(torch.empty_like))
    monkeypatch.setattr(torch.Tensor, "new_empty", poison(torch.Tensor.new_empty))
