import sys

import pytest
import torch

from evengraph.pipeline import executor as memory
from evengraph.pipeline.executor import PeakMemory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the memory of a process")
def test_the_peak_is_measured_although_it_is_freed():
    with PeakMemory(torch.device("cpu")) as peak:
        block = torch.ones(64 * 2**20 // 4)  # 64 MiB
        del block
    assert 0.05 < peak.gib < 1


def test_a_system_that_does_not_tell(monkeypatch):
    monkeypatch.setattr(memory, "_process_memory", lambda name: None)
    with PeakMemory(torch.device("cpu")) as peak:
        pass
    assert peak.gib is None
