"""One table whose rows are linked, several tables of nodes, and calibration of a saved model."""

import json
import math
import warnings

import evengraph as eg
from attack.fuzz.mutations import mutate_json
from attack.fuzz.readers.base import Reader, check
from attack.fuzz.readers.models import Model
from attack.fuzz.readers.tables import ROWS, SMALL, frames
from evengraph.methods.bases.saving import MAIN
from evengraph.tables import open_graph

PARTS = ("calibrator", "decision", "sets", "confusion", "calibration", "counts")


def write(path, *columns):
    """Write a table; columns are functions of the row."""
    lines = [[str(column(row)) for column in columns] for row in range(ROWS)]
    path.write_text("\n".join(",".join(line) for line in [[c.__name__ for c in columns], *lines]))


def id(row):
    return row


def card(row):
    return f"c{row * 5 % 7}"


def device(row):
    return f"d{row % 3}"


def when(row):
    return f"2024-01-{row % 28 + 1:02}T{row % 24:02}:30"


def amount(row):
    return f"€ {row * 7 % 11 + 0.5:.2f}"


def merchant(row):
    return ["Café Nero", "cafe nero", "Shop 24", "Shop-24"][row % 4]


def label(row):
    return "ab"[row % 2]


class Links(Reader):
    """A table of rows that share values, with times."""

    name = "links"
    is_text = True

    def prepare(self, folder):
        write(folder / "rows.csv", id, card, device, when, amount, merchant, label)

    def mutate(self, stream, samples, folder):
        self.link = stream.choice(["card", "card,device", "card+device", "merchant", "when"])
        self.time = stream.choice([None, "when"])
        return super().mutate(stream, samples, folder)

    def read(self, path):
        link = getattr(self, "link", "card")
        check(open_graph(path, link=link, time=getattr(self, "time", None), label="label"))


class Kinds(Reader):
    """Labelled accounts, devices and cards in a table each, and what connects them."""

    name = "kinds"
    is_text = True

    def prepare(self, folder):
        (folder / "bank").mkdir()
        write(folder / "bank" / "nodes.csv", id, card, amount, label)
        write(folder / "bank" / "device.csv", device, merchant, when)
        lines = [f"{row},{device(row)}" for row in range(ROWS)]
        (folder / "bank" / "edges.csv").write_text("\n".join(["id,device", *lines]))
        text = (folder / "bank" / "device.csv").read_text().splitlines()
        (folder / "bank" / "device.csv").write_text("\n".join(text[:4]))  # ids are distinct

    def read(self, path):
        nodes, edges, devices = (path / f"{name}.csv" for name in ("nodes", "edges", "device"))
        try:
            check(open_graph(nodes, edges=edges, tables=devices, label="label"))
        except (ValueError, OSError) as error:  # any of the three tables may be named
            if not any(name in str(error) for name in ("nodes", "edges", "device")):
                raise
            raise ValueError(f"{path.name}: {error}") from error


class Calibration(Model):
    """What a model stores of probabilities, thresholds and sets, and predictions by each."""

    name = "calibrate"
    methods = ("logistic",)

    def prepare(self, folder):
        model = eg.TableModel(eg.Logistic(hops=1)).fit(*self._tables(""), progress=False)
        model.save(folder / "logistic")

    @staticmethod
    def _tables(name):
        return frames(frozenset(SMALL["number"]))

    def change(self, stream, path):
        main = path / MAIN
        about = json.loads(main.read_text())
        part = stream.choice(PARTS)
        about["extra"][part] = mutate_json(stream, about["extra"][part])
        self._seal(stream, about, path / about["tensors"]["file"], main)

    def read(self, path):
        model, nodes = eg.TableModel.load(path), self._tables("")
        options = [{}, {"calibrated": False}]
        options += [{"alerts": 3}] * (model.info.decision is not None)
        options += [{"prior": "estimate"}] * bool(model.info.calibrator.shares)
        options += [{"coverage": 0.8}] * bool(model.info.sets)
        for some in options:
            with warnings.catch_warnings():  # an estimate may be doubtful
                warnings.simplefilter("ignore", UserWarning)
                found = model.predict(*nodes, **some)
            shares = found[[c for c in found if c.startswith(("p_", "score_"))]]
            assert all(math.isclose(total, 1, abs_tol=1e-4) for total in shares.sum(axis=1))
            assert not found["class"].isna().any()
