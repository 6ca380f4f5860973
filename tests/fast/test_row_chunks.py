"""The chunks that rows are cut into: every entry in one of them, and each of them in its place."""

from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.fast import row_chunks
from evengraph.fast.row_chunks import chunk_rows, chunk_rows_fixed

LONGEST = 4


@pytest.fixture(scope="module", autouse=True)
def short_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_chunks, "CHUNK_ENTRIES", LONGEST)
        yield


row_lengths = st.lists(st.integers(0, 3 * LONGEST + 1), max_size=8)


def pointers_of(lengths, dtype=torch.int32):
    return torch.tensor([0, *lengths], dtype=dtype).cumsum(0).to(dtype)


def evenly(lengths):
    return chunk_rows_fixed(pointers_of(lengths), sum(lengths))


def entries_by_goal(found):
    """The entries of each piece, by the row or (below zero) the place in scratch memory."""
    ends = zip(found.starts.tolist(), found.stops.tolist(), strict=True)
    goals = found.targets.tolist()
    assert len(set(goals)) == len(goals)
    return {goal: list(range(*end)) for goal, end in zip(goals, ends, strict=True)}


def entries_by_row(found):
    """The entries that end up in each row, in the order in which they are added."""
    by_goal = entries_by_goal(found)
    rows = {goal: [entries] for goal, entries in by_goal.items() if goal >= 0}
    firsts = found.firsts.tolist()
    assert len(firsts) == found.rows.numel() + 1
    for number, row in enumerate(found.rows.tolist()):
        assert row not in rows
        rows[row] = [by_goal[-1 - place] for place in range(*firsts[number : number + 2])]
    return rows


def check(found, lengths):
    pointers = pointers_of(lengths).tolist()
    rows = entries_by_row(found)
    assert sorted(rows) == list(range(len(lengths)))
    for row, parts in rows.items():
        assert list(chain(*parts)) == list(range(pointers[row], pointers[row + 1]))
    starts, stops = found.starts, found.stops
    assert bool((starts >= 0).all() & (starts <= stops).all() & (stops <= pointers[-1]).all())
    assert bool((stops - starts <= LONGEST).all())
    scratch = sorted(-1 - goal for goal in found.targets.tolist() if goal < 0)
    assert scratch == list(range(found.scratch))
    assert found.firsts[0] == 0
    assert all(part.dtype == torch.int32 for part in found[:5])


@given(row_lengths)
def test_every_entry_is_in_one_piece(lengths):
    wide = pointers_of(lengths, torch.int64)
    cut, found = chunk_rows(pointers_of(lengths)), evenly(lengths)
    check(cut, lengths)
    check(found, lengths)
    spare = int(found.firsts[-1])
    assert not torch.cat([found.starts[spare:], found.stops[spare:]]).any()
    for one, other in ((cut, chunk_rows(wide)), (found, chunk_rows_fixed(wide, sum(lengths)))):
        assert all(map(torch.equal, one[:5], other[:5]))  # pointers of either width


@given(row_lengths)
def test_only_long_rows_are_cut(lengths):
    found = chunk_rows(pointers_of(lengths))
    long = [row for row, length in enumerate(lengths) if length > LONGEST]
    assert found.rows.tolist() == long
    parts = [-(-lengths[row] // LONGEST) for row in long]
    assert found.firsts.diff().tolist() == parts
    assert found.scratch == found.firsts[-1] == sum(parts)
    sizes = (found.stops - found.starts).tolist()
    assert len(sizes) == len(lengths) - len(long) + sum(parts)
    assert sizes == sorted(sizes, reverse=True)


@given(row_lengths, st.data())
def test_evenly_depends_on_the_size_alone(lengths, data):
    ends = sorted(
        data.draw(st.lists(st.integers(0, sum(lengths)), min_size=len(lengths)))[: len(lengths)]
    )
    other = torch.tensor([0, *ends]).diff().tolist()
    if other:
        other[-1] += sum(lengths) - sum(other)
    ours, theirs = evenly(lengths), evenly(other)
    check(theirs, other)
    assert [part.shape for part in ours[:5]] == [part.shape for part in theirs[:5]]
    assert ours.scratch == theirs.scratch == len(lengths) + sum(lengths) // LONGEST
    assert torch.equal(ours.targets, theirs.targets)
