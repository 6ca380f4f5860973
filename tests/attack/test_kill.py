"""The short form of the attack: a few kills of all that is written, and that it finds faults."""

import os
from time import sleep

import pytest

pytest.importorskip("resource", reason="Windows has no kills and no limits")
from attack.kill.__main__ import attack
from attack.kill.scenarios import SCENARIOS

from evengraph.methods.bases import saving as model_folder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside threads


@pytest.mark.parametrize(
    "name", sorted(set(SCENARIOS) - {"sweeps", "packing"})
)  # `make attack` has them
def test_kills_and_full_disks_leave_whole_files(name):
    tally = attack(name, kills=4, seed=os.getpid())
    assert tally.failures == []
    assert tally.checks
    assert tally.kills + tally.late == (0 if name in ("readers", "full disks") else 4)


def test_the_attack_sees_a_model_that_is_written_in_place(monkeypatch):
    def careless(folder, files):
        for name in sorted(files):  # the description before the tensors
            (folder / name).write_bytes(files[name])
            sleep(0.02)

    monkeypatch.setattr(model_folder, "_write", careless)
    assert any("half a model" in failure for failure in attack("saves", 12, seed=0).failures)
