"""The short form of the attack: a few damaged files for every reader, and that it finds faults."""

import random

import pytest
from attack.fuzz.decisions import Decisions
from attack.fuzz.readers import READERS, Csv, Reader
from attack.fuzz.record import rounds, stored
from attack.fuzz.running import attack

SLOW = {"model", "result"}  # they are trained first; `make attack` has them


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


def test_the_same_seed_gives_the_same_case(tmp_path):
    samples = tmp_path / "samples"
    samples.mkdir()
    READERS["csv"].prepare(samples)
    files = []
    for name in ("one", "two"):
        path = READERS["csv"].mutate(random.Random(7), samples, tmp_path / name)
        files.append({file.name: file.read_bytes() for file in path.iterdir()})
    assert files[0] == files[1]
    assert isinstance(READERS["csv"], Reader)


def test_decisions_are_those_of_the_bytes_and_then_random_ones():
    assert Decisions(b"\x05\x00\x80").getrandbits(8) == 5
    stream = Decisions(b"\x02\x00\x80")
    assert stream.choice("abcd") == "c"
    assert stream.random() == 0.5
    assert stream.random() == random.Random(b"\x02\x00\x80").random()


def test_a_record_goes_on_where_it_was_ended(tmp_path):
    asked = []

    def run(reader, cases, result):
        asked.append((reader.name, cases))
        result.counts["read"] += cases

    readers = [READERS["csv"], READERS["npz"]]
    rounds(readers, 10, tmp_path, run)
    rounds(readers[:1], 25, tmp_path, run)
    assert asked == [("csv", 10), ("npz", 10), ("csv", 15)]
    assert stored(tmp_path / "csv.json", "csv").total == 25
