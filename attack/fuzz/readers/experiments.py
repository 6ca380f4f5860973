"""What experiments read and write: TOML files and stores."""

import sqlite3

from attack.fuzz.mutations import VALUES, WORDS
from attack.fuzz.readers.base import Reader
from evengraph.lab.reproduce import Plan
from evengraph.lab.spec import read_spec
from evengraph.lab.store import JobSpec, Row, Store


class Spec(Reader):
    """Experiments in TOML."""

    name = "spec"
    is_text = True
    text = """title = "Two methods"
draws = "comparison"
seeds = [5, 6]
map = "GCN"

[fields]
max_epochs = 3

[[setup]]
dataset = "toy"
imbalance = "step"
minority = 2
ratio = 0.1

[[setup]]
dataset = "cora"
imbalance = "natural"
train = 0.2

[[method]]
name = "gcn"
fields = { hidden = 8 }
grid = { dropout = [0.1, 0.5] }
more_seeds = "7-9"

[[method]]
name = "reweight"
label = "Ours"
like = "GCN"
grid = { dropout = [0.1, 0.9], hidden = [8, 16] }
note = "a note"

[[method]]
name = "unignn"
presets = true
vary = { alpha = [1, 2, 3] }

[quick]
seeds = [5]
setups = ["toy"]
methods = ["gcn"]
"""

    def prepare(self, folder):
        (folder / "experiment.toml").write_text(self.text)

    def read(self, path):
        for quick in (False, True):
            spec = read_spec(str(path), quick=quick)
            assert spec.setups
            list(Plan(spec, []).jobs())


class StoreFile(Reader):
    """Stores of runs."""

    name = "store"

    def prepare(self, folder):
        store = Store(folder / "store.sqlite")
        for seed in range(12):
            job = JobSpec(
                dataset="toy",
                imbalance="natural",
                imbalance_fields={"train": 0.1},
                method="gcn",
                method_fields={"hidden": 8},
                seed=seed,
            )
            metrics = {"balanced_accuracy": 50.0 + seed, "macro_f1": 40.0, "g_mean": 30.0}
            store.add(Row(job=job, outcome={"metrics": metrics, "validation": 50.0}))
        with sqlite3.connect(store.path) as base:
            base.execute("PRAGMA journal_mode = DELETE")

    def change(self, stream, path):
        if stream.random() < 0.5:
            return super().change(stream, path)
        with sqlite3.connect(path) as base:
            columns = [row[1] for row in base.execute("PRAGMA table_info(runs)")]
            value = stream.choice([*WORDS, *(v for v in VALUES[:12] if v not in (2**63, 10**400))])
            text = f"UPDATE OR IGNORE runs SET {stream.choice(columns)} = ? WHERE rowid = ?"
            try:
                base.execute(text, (value, stream.randrange(1, 13)))
            except sqlite3.Error:
                base.execute("DROP TABLE claims")
        base.close()
        return None

    def read(self, path):
        store = Store(path)
        for row in store.rows():
            row.flat()
        store.experiments()
