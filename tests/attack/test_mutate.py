"""Mutation testing itself: what it changes, and that it sees what tests notice."""

import ast

from attack.mutate.__main__ import MODULES, modules
from attack.mutate.equivalent import EQUIVALENT
from attack.mutate.mutants import mutants
from attack.mutate.named import NAMED
from attack.mutate.running import SOURCES, mirrors

SOURCE = '''
"""A module."""
LIMIT: int = 3


def clip(x, low=0):
    """Docstring with 1 < 2."""
    check(x)
    if x < low or x is None:
        raise ValueError(f"{x + 1}")
    x += 1
    return -x * LIMIT if x > 2 else True
'''


def test_every_operator_number_condition_and_call_is_changed_once():
    found = [mutant.change for mutant in mutants("clip.py", SOURCE)]
    assert "Lt becomes LtE in x < low" in found
    assert "Is becomes IsNot in x is None" in found
    assert "Mult becomes Div in -x * LIMIT" in found
    assert "the other of and/or: and" in found
    assert "3 becomes 4" in found
    assert "0 becomes 1" in found
    assert "True becomes False" in found
    assert "dropped: check(x)" in found
    assert "Add= becomes Sub=" in found
    assert found.count("condition negated") == 2
    assert "sign dropped" in found


def test_mutants_differ_in_one_place_and_leave_messages_alone():
    plain = ast.unparse(ast.parse(SOURCE))
    texts = [ast.unparse(mutant.tree) for mutant in mutants("clip.py", SOURCE)]
    assert len(set(texts)) == len(texts)
    for text in texts:
        lines = zip(plain.splitlines(), text.splitlines(), strict=True)
        assert sum(one != other for one, other in lines) == 1
        assert 'f"{x + 1}"' in text or "f'{x + 1}'" in text


def test_modules_are_those_with_tests():
    found = list(modules(MODULES))
    assert {"ops/trees.py", "splits/paper.py", "lab/store.py", "tables/read.py"} <= set(found)
    assert "ops/__init__.py" not in found


def test_a_module_is_tested_by_the_files_of_its_name():
    names = [file.name for file in mirrors("lab/store.py")]
    assert names == ["test_store.py", "test_store_processes.py", "test_store_sql.py"]
    assert [file.name for file in mirrors("ops/sparse.py")] == ["test_floats.py"]
    assert mirrors("ops/none.py") == []


def test_named_mutants_fit_the_library_of_today():
    for mutant in NAMED:
        plain = (SOURCES / mutant.path).read_text()
        assert ast.unparse(mutant.tree) != ast.unparse(ast.parse(plain))
        assert mirrors(mutant.path)


def test_lines_of_equivalent_mutants_are_there():
    for path, text, change in EQUIVALENT:
        every = mutants(path, (SOURCES / path).read_text())
        assert any((one.text, one.change) == (text, change) for one in every), (path, text)
