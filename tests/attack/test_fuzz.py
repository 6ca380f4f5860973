"""The short form of the attack: a few damaged files for every reader, and that it finds faults."""

import pytest
from attack.fuzz.readers import READERS, Csv
from attack.fuzz.running import attack

SLOW = {"model", "request", "schema", "calibrate"}  # they are trained first; `make attack` has them


@pytest.mark.parametrize("name", sorted(set(READERS) - SLOW))
def test_damaged_files_are_read_or_refused_in_one_line(name):
    result = attack(READERS[name], cases=12)
    assert result.failures == {}
    assert result.counts["read"] + result.counts["refused"] == 12


class Faulty(Csv):
    """Fails in a different way for every case."""

    name = "faulty"

    def change(self, stream, path):
        (path / "kind").write_text(str(stream.randrange(6)))

    def read(self, path):
        kind = (path / "kind").read_text() if (path / "kind").exists() else ""
        if kind == "0":
            raise KeyError("a traceback")
        if kind == "1":
            raise ValueError(f"two lines\nabout {path}")
        if kind == "2":
            raise ValueError("no file")
        if kind == "3":
            bytearray(3 * 2**30)
        if kind == "4":
            import ctypes

            ctypes.string_at(0)
        if kind == "5":
            raise ValueError(f"{path} is refused.")


def test_the_attack_sees_every_kind_of_fault():
    result = attack(Faulty(), cases=40)
    kinds = " ".join(result.failures)
    for kind in ("KeyError", "not one line", "no file named", "MemoryError", "killed by signal 11"):
        assert kind in kinds
    assert 0 < result.counts["refused"] < 40
