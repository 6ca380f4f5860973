"""Registry: plugins are added on first use, and a bad one costs one line."""

import logging
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from evengraph.core import registry
from evengraph.core.registry import Registry


class Animal:
    pass


class Cat(Animal):
    pass


class Dog(Animal):
    pass


def __getattr__(name):
    if name == "Loud":
        print("woof")
        raise GeneratorExit("bye")  # as pytest.importorskip: no Exception
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@pytest.fixture
def plugins(monkeypatch):
    """Registers entry points, all of one package, and counts how often they are read."""
    entries, reads = [], []

    def add(name, value):
        entry = EntryPoint(name, value, "zoo")
        vars(entry)["dist"] = SimpleNamespace(name="some-package")
        entries.append(entry)

    def read(group):
        reads.append(group)
        return entries

    monkeypatch.setattr(registry, "entry_points", read)
    return SimpleNamespace(add=add, reads=reads)


def table():
    return Registry("zoo", Animal, {"cat": Cat}, subclasses=True)


def test_plugins_come_after_the_built_in_entries_and_are_read_once(plugins, caplog):
    plugins.add("dog", f"{__name__}:Dog")
    zoo = table()
    assert plugins.reads == []
    assert list(zoo) == ["cat", "dog"]
    assert zoo["dog"].__name__ == "Dog"
    assert len(zoo) == 2
    assert zoo.packages == {"dog": "some-package"}
    assert plugins.reads == ["zoo"]
    assert not caplog.records


def test_it_can_be_changed_like_a_dictionary(plugins):
    zoo = table()
    zoo["dog"] = Dog
    assert dict(zoo) == {"cat": Cat, "dog": Dog}
    del zoo["dog"]
    assert "dog" not in zoo
    with pytest.raises(KeyError):
        zoo["dog"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("dog", "no_such_module:Dog", "No module named 'no_such_module'"),
        ("dog", f"{__name__}:Horse", f"module '{__name__}' has no attribute 'Horse'"),
        ("loud", f"{__name__}:Loud", "bye"),
        ("cat", f"{__name__}:Dog", "the name 'cat' is taken"),
        ("hound", f"{__name__}:Dog", "the entry point must be named 'dog'"),
        ("path", "pathlib:Path", "pathlib:Path must be a subclass of Animal"),
        ("join", "os.path:join", "os.path:join must be a subclass of Animal"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_skipped_with_one_line(
    plugins, caplog, capsys, name, value, reason
):
    plugins.add(name, value)
    with caplog.at_level(logging.WARNING):
        assert dict(table()) == {"cat": Cat}
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith(f"Ignored {name!r} from package some-package (entry point zoo): ")
    assert reason in message
    assert "\n" not in message
    assert capsys.readouterr().out == ""


def test_instances(plugins, caplog):
    plugins.add("dog", f"{__name__}:Dog")
    zoo = Registry("zoo", Animal, {"cat": Cat()})
    assert list(zoo) == ["cat"]
    assert "must be an instance of Animal" in caplog.text


def test_a_plugin_may_use_the_table_while_it_is_imported(plugins, monkeypatch):
    zoo = table()

    def load(self):
        assert list(zoo) == ["cat"]
        return Dog

    monkeypatch.setattr(EntryPoint, "load", load)
    plugins.add("dog", "anything:Dog")
    assert list(zoo) == ["cat", "dog"]


def test_a_name_that_is_missing_gets_a_suggestion(plugins):
    zoo = Registry("our.animals", Animal, {"cat": Cat, "dog": Dog}, subclasses=True)
    with pytest.raises(KeyError, match=r"^Unknown animal 'cta'. Did you mean cat\?"):
        zoo["cta"]
    assert zoo.get("cta") is None
    assert "cta" not in zoo
