"""Mutants that once survived, by name. `python -m attack.mutate --named` tries them."""

import ast
from dataclasses import dataclass

from attack.mutate.running import SOURCES


@dataclass(frozen=True)
class NamedMutant:
    """A module with some text replaced by other text, which may be nothing."""

    name: str
    path: str
    old: str
    new: str

    @property
    def tree(self):
        source = (SOURCES / self.path).read_text()
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.path} must hold {self.old!r} once: change attack/mutate/named.py."
            )
        return ast.parse(source.replace(self.old, self.new))


NAMED = (
    NamedMutant(
        "two processes may claim one job",
        "lab/store.py",
        'base.execute("BEGIN IMMEDIATE")',
        "",
    ),
    NamedMutant(
        "a process of another user is dead",
        "lab/store.py",
        "except PermissionError:  # alive, of another user\n            pass",
        "except PermissionError:\n            return False",
    ),
    NamedMutant("claims are stale after ten days", "lab/store.py", "24 * 3600.0", "240 * 3600.0"),
    NamedMutant(
        "unlabelled nodes count as class 0",
        "splits/paper.py",
        "graph.y[graph.y >= 0]",
        "graph.y.clamp(min=0)",
    ),
    NamedMutant(
        "entries take half the memory",
        "ops/structural.py",
        "BYTES_PER_ENTRY = 8",
        "BYTES_PER_ENTRY = 4",
    ),
    NamedMutant(
        "AUROC of a class that holds every node",
        "metrics/multiclass.py",
        "area = wins / (positives * negatives)",
        "area = wins / (positives * negatives).clamp(min=1)",
    ),
    NamedMutant(
        "the output is ignored",
        "ops/semantic.py",
        "return result if output is None else output.copy_(result)",
        "return result",
    ),
    NamedMutant("input need not be contiguous", "ops/semantic.py", "x = x.contiguous()", "pass"),
    NamedMutant(
        "class and confidence share a single-precision number",
        "ops/pseudo.py",
        "labels.double() * 2 - confidence.double()",
        "labels.float() * 2 - confidence.float()",
    ),
    NamedMutant("removed nodes stay removed", "splits/paper.py", "removed[nodes] = False", "pass"),
)
