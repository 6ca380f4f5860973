"""Notes: text for people, a kind for code."""

import copy
import pickle

from evengraph.tables import Note, NoteKind


def test_a_note_is_its_text_and_has_a_kind():
    note = Note(NoteKind.UNDIRECTED, "Edges are taken as undirected.")
    assert note == f"{note}" == "Edges are taken as undirected."
    for again in (copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (again, again.kind) == (note, NoteKind.UNDIRECTED)
