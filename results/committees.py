"""Committees with Unison's vote, in the paper's settings: `python results/committees.py iceberg`.

Ten networks of one method on one split, from ten seeds, vote as Unison's members do. All methods
stop by one rule (`STOP`). IceBerg has the best of three learning rates on validation, as stored in
`unison.sqlite`, Uni-GNN its presets, the best of forty, and Unison its defaults. A line of
`committees.csv` is a member, by its number (of Unison the first five are structural), or one of

- `vote`, all by Unison's vote; `even`, all alike; `best`, the one that is best on validation;
- `one`, of Unison, the vote of one member per view: those with the usual weight decay;
- `structural` and `ego`, of Unison, the vote of a view's members.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.datasets import load
from evengraph.fast.replicas import Batch, Fit, train_batch
from evengraph.lab.reproduce import Plan, known_runs
from evengraph.lab.spec import Setup, read_spec
from evengraph.lab.store import Store
from evengraph.methods import IceBerg, UniGNN, Unison, fit_many
from evengraph.methods.bases.method import reset
from evengraph.methods.bases.network import pseudo_label_loss
from evengraph.methods.unison import mean_vote, vote_weights
from evengraph.metrics.multiclass import (
    batched_macro_f1,
    batched_stopping_scores,
    batched_validation_scores,
    rare_class,
    validation_score,
)
from evengraph.ops.losses import balanced_softmax
from evengraph.ops.sparse import has_kernels
from evengraph.pipeline.executor import describe
from evengraph.pipeline.parameters import parse_seeds, preset_for
from evengraph.splits import SPLITS
from evengraph.training.ranks import ALONE, validation_scores

HERE = Path(__file__).parent
STOP = {"patience": 300, "max_epochs": 1000}
MEMBERS = 10
TOGETHER = 5  # splits of a setting that are trained as one batch
HEADER = ("committee", "setting", "seed", "part", "validation", "balanced_accuracy", "macro_f1")
HEADER = (*HEADER, "epochs", "commit")


class IceBergBatch(Batch):
    """IceBerg for several runs on one graph: the mathematics of `double_balancing_epoch`."""

    def __init__(self, fits: Sequence[Fit]) -> None:
        super().__init__(fits)
        self.inputs = self.method._inputs(fits[0].task.graph)
        counts = [fit.task.class_counts for fit in fits]
        self.sizes = torch.stack(counts).float().unsqueeze(1)
        self.others = torch.stack([~fit.task.train for fit in fits])

    def network(self, method: Any) -> nn.Module:
        """The method's."""
        method.net_ = net = method._new_network()
        return net

    def class_weights(self, task: Task) -> Tensor:
        """Every labelled node counts alike."""
        counts = task.class_counts
        return torch.full_like(counts, 1 / int(counts.sum()), dtype=torch.float)

    def epoch(self) -> tuple[Tensor, Tensor]:
        """A pass for scores and pseudo-labels, and one with dropout for the loss."""
        net, layer = self.net, self.net.encoder.linear
        slots, width, _ = layer.weight.shape
        first = (self.inputs.x @ layer.weight.flatten(0, 1).t()).unflatten(1, (slots, width))
        first = first.transpose(0, 1).contiguous() + layer.bias.unsqueeze(1)
        with torch.no_grad():
            clean = self._last(net.embed(first))
            confidence, predicted = clean.softmax(2).max(2)
            known = torch.where(self.others, confidence, torch.nan)
            level = known.nanmean(1).minimum(known.nan_to_num(0.0).amax(1))
            selected = self.others & (confidence >= level.unsqueeze(1))
            score = batched_validation_scores(*self.validation(clean))
        logits = self._last(net.embed(first, dropout=True))
        on_labels = balanced_softmax(logits, self.labels, self.sizes, reduction="none")
        return (on_labels * self.weight).sum(1) + pseudo_label_loss(
            logits, predicted, selected
        ), score

    def _last(self, hidden: Tensor) -> Tensor:
        last = self.net.last.linear
        return torch.baddbmm(last.bias.unsqueeze(1), hidden, last.weight.transpose(1, 2))


def settings() -> Sequence[Setup]:
    """The fourteen of the paper."""
    return read_spec("successor").setups


@cache
def learning_rate(setting: str) -> float:
    """IceBerg's, selected on validation among three."""
    spec = read_spec("successor")
    entry = next(entry for entry in spec.entries if entry.name == "iceberg")
    rows = known_runs(Store(HERE / "unison.sqlite").rows(method="iceberg"))
    setup = next(setup for setup in spec.setups if setup.name == setting)
    choice = Plan(spec, rows).choice(setup, entry)
    assert choice is not None, setting
    return float(choice["learning_rate"])


def build(name: str, setup: Setup, **fields: Any) -> Any:
    """A method as compared here."""
    if name == "iceberg":
        return IceBerg(learning_rate=learning_rate(setup.name), **STOP | fields)
    if name == "unison":
        return Unison(**STOP | fields)
    preset = preset_for(setup.dataset, setup.imbalance, setup.fields, "unignn") or {}
    return UniGNN(**preset | STOP | fields)


def train(name: str, setup: Setup, seeds: Sequence[int], device: str) -> Iterator[str]:
    """Train a committee on each split; yields its lines."""
    graph = graph_of(setup.dataset)
    tasks = {s: SPLITS[setup.imbalance](**setup.fields)(graph, seed=s).to(device) for s in seeds}
    if name == "unison":
        for seed, task in tasks.items():
            model = build(name, setup).fit(task, seed=seed, progress=False)
            committee = model.predict_members(task.graph)
            epochs = [model.history_[0].epochs] * MEMBERS
            yield lines(name, setup, seed, task, committee.probabilities, epochs)
        return
    jobs = [(seed, number) for seed in seeds for number in range(MEMBERS)]
    methods = [build(name, setup) for _ in jobs]
    own = [seed + 1000 * number for seed, number in jobs]
    found: dict[int, dict[int, tuple[Tensor, int]]] = {seed: {} for seed in seeds}

    def keep(index: int, probabilities: Tensor) -> None:
        seed, number = jobs[index]
        found[seed][number] = probabilities, methods[index].history_[0].epochs

    if name == "iceberg" and has_kernels(torch.device(device)):
        fit_icebergs(methods, [tasks[seed] for seed, _ in jobs], own, keep)
    else:
        split_tasks = [tasks[seed] for seed, _ in jobs]
        fit_many(
            *(methods, split_tasks),
            seeds=own,
            on_fit=lambda i: keep(i, methods[i].predict_proba(split_tasks[i].graph)),
            progress=False,
        )
    for seed, members in found.items():
        probabilities, epochs = zip(*(members[n] for n in range(MEMBERS)), strict=True)
        yield lines(name, setup, seed, tasks[seed], torch.stack(probabilities), epochs)


def fit_icebergs(
    methods: Sequence[IceBerg], tasks: Sequence[Task], seeds: Sequence[int], keep: Any
) -> None:
    """Fit side by side; `keep` gets the index and the probabilities of each."""
    for method, task in zip(methods, tasks, strict=True):
        reset(method, task)
    fits = [
        Fit(method, task.hide_test_labels(), seed)
        for method, task, seed in zip(methods, tasks, seeds, strict=True)
    ]
    batch = IceBergBatch(fits)
    train_batch(batch)
    with torch.no_grad():
        for index, method in enumerate(methods):
            net: Any = method.net_
            logits = net.classify(net.encoder(*batch.inputs), batch.inputs.propagation)
            keep(index, logits.softmax(1))


def lines(
    name: str, setup: Setup, seed: int, task: Task, members: Tensor, epochs: Sequence[int]
) -> str:
    """The lines of a committee's members and of its votes, from probabilities, (M, N, C)."""
    task, members = task.to("cpu"), members.cpu()
    val = task.graph.y[task.val]
    scores = validation_scores(members[:, task.val], val, rare_class(task), ALONE)
    counts = torch.tensor(task.val_counts).clamp(min=1).float()

    def vote(which: Iterable[int]) -> Tensor:
        chosen = torch.tensor(list(which))
        return mean_vote(members[chosen], vote_weights(scores[chosen], counts))

    every, half = range(MEMBERS), MEMBERS // 2
    parts = {str(number): members[number] for number in every}
    parts |= {"vote": vote(every), "even": members.mean(0), "best": members[int(scores.argmax())]}
    if name == "unison":
        parts["one"] = vote([half // 2, half + half // 2])
        parts |= {"structural": vote(range(half)), "ego": vote(range(half, MEMBERS))}
    labels, shown = task.graph.y[task.test], torch.stack(list(parts.values()))
    labels = labels.expand(len(shown), -1)
    scored = labels, shown[:, task.test], torch.ones_like(labels, dtype=torch.bool)
    accuracies = batched_stopping_scores("accuracy", *scored, labels[:, 0])
    f1 = batched_macro_f1(labels, scored[1].argmax(2), scored[2], task.num_classes)
    commit = environment()["commit"]
    text = io.StringIO()
    for part, probabilities, *values in zip(parts, shown, accuracies, f1, strict=True):
        found = (float(validation_score(probabilities, task)), *map(float, values))
        last = epochs[int(part)] if part.isdigit() else sum(epochs)
        row = name, setup.name, seed, part, *(f"{100 * value:.2f}" for value in found), last
        csv.writer(text, lineterminator="\n").writerow([*row, commit])
    return text.getvalue()


@cache
def environment() -> dict[str, Any]:
    """What the runs depend on."""
    return describe(torch.device("cuda" if torch.cuda.is_available() else "cpu"))


@cache
def graph_of(dataset: str) -> Data:
    """A data set, read once."""
    return load(dataset)


def main() -> None:
    """Run what the file lacks, split by split; several processes may share it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("committee", choices=("iceberg", "unignn", "unison"))
    parser.add_argument("--seeds", default="30-49")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--share", default="0/1", help="part of the work, such as 0/4")
    parser.add_argument("--settings", default="", help="those whose names contain this")
    parser.add_argument("--out", type=Path, default=HERE / "committees.csv")
    options = parser.parse_args()
    if not options.out.exists():
        options.out.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    with options.out.open(encoding="utf-8", newline="") as file:
        done = {(row["committee"], row["setting"], row["seed"]) for row in csv.DictReader(file)}
    seeds = list(parse_seeds(options.seeds))
    size = 1 if options.committee == "unison" else TOGETHER
    chosen = [setup for setup in settings() if options.settings in setup.name]
    work = [
        (setup, seeds[first : first + size])
        for first in range(0, len(seeds), size)
        for setup in chosen
    ]
    share, shares = map(int, options.share.split("/"))
    for setup, some in work[share::shares]:
        left = [s for s in some if (options.committee, setup.name, str(s)) not in done]
        for text in train(options.committee, setup, left, options.device) if left else ():
            with options.out.open("a", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
