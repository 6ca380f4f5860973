"""Every value of a saved model's JSON, replaced by one of another kind; the seal fits again."""

import json
import tempfile
import warnings
from pathlib import Path

from attack.fuzz.readers.base import NODES
from attack.fuzz.readers.models import Model
from evengraph import TableModel
from evengraph.methods.bases.saving import MAIN, seal
from evengraph.metrics.decisions import Rule

WRONG = [None, True, -1, 10**400, 1.5, "", "x" * 100_000, [], {"a": [[None]]}]
UNREAD = {"seal", "format", "evengraph", "tensors", "options"}  # or checked elsewhere
MISSING = object()


def places(content, path=()):
    """The path of every part, of long lists the first item alone."""
    yield path
    if isinstance(content, dict | list):
        keys = list(content) if isinstance(content, dict) else range(min(len(content), 1))
        for key in keys:
            yield from places(content[key], (*path, key))


def at(content, path):
    """What is at a path, or `MISSING`."""
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return content


def same(one, other):
    """Whether two values of JSON mean the same."""
    return one == other and (isinstance(one, bool) == isinstance(other, bool))


class Schemas(Model):
    """A wrong value is refused in one line, or kept: the model predicts and stores it again."""

    name = "schema"
    methods = ("gcn", "boosting", "auto", "logistic")
    longest = 400  # characters of a message

    def mutate(self, stream, samples, folder):
        self.put = None
        return super().mutate(stream, samples, folder)

    def change(self, stream, path):
        main = path / MAIN
        about = json.loads(main.read_text())
        found = [place for place in places(about) if place and not UNREAD & set(place)]
        self.wrong(path, stream.choice(found), stream.choice(WRONG))

    def wrong(self, path, place, value):
        """Put a value into the description of a model."""
        main = path / MAIN
        about = json.loads(main.read_text())
        at(about, place[:-1])[place[-1]] = value
        del about["seal"]
        main.write_text(json.dumps({**about, "seal": seal(about)}))
        self.put = place, value

    def read(self, path):
        try:
            model = TableModel.load(path)
        except ValueError as error:
            self.check(str(error).replace(str(path), ""))
            raise
        tables, curve = self._tables(path.name), model.info.decision and model.info.decision.curve
        for options in ({}, {"coverage": 0.9}, {"prior": "estimate"}):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # of what differs from training
                    assert len(model.predict(*tables, **options)) == NODES
            except (ValueError, FloatingPointError) as error:  # what the model does not offer
                self.check(str(error))
        for rule in (Rule("f1"), Rule("recall", 0.5), Rule("precision", 0.5), Rule("alerts", 0.1)):
            if curve:
                model.info.by(rule).decision.words("a")
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder, "again"))
            again = json.loads(Path(folder, "again", MAIN).read_text())
        if getattr(self, "put", None) and len(self.put[0]) > 1:  # `extra` may be somebody's own
            place, value = self.put
            kept = at(again, place)
            told = f"another meaning of {place}: {value!r:.20}"
            assert value is None or kept is MISSING or same(kept, value), told

    def check(self, message):
        """What holds for every message."""
        assert "\n" not in message, "not one line"
        assert len(message) < self.longest, "a long message"
