"""The training loop, on modules whose scores are written down beforehand."""

import math
import re
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
import rich.progress
import torch
from torch import nn
from torch.nn.functional import dropout, mse_loss

from evengraph.core.rng import seeded
from evengraph.methods import LabelPropagation
from evengraph.training import History, loop, train
from evengraph.training.loop import (
    CHECKSUM,
    LINE_EVERY,
    Checkpoint,
    count_bar,
    epoch_bar,
    epoch_lines,
)
from small_graphs import normal

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Tiny(nn.Module):
    """One weight that moves by about a tenth each step; a buffer that counts epochs."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("epoch", torch.zeros((), dtype=torch.long))


def run(scores, *, patience=100, max_epochs=None, loss=None, on_epoch=None):
    """Train with these scores, one per epoch; gives the module, its weights and the history."""
    module, weights = Tiny(), []

    def epoch():
        index = len(weights)
        module.epoch.fill_(index)
        weights.append(module.weight.item())
        score = scores[index]
        if isinstance(score, BaseException):
            raise score
        value = -module.weight.sum() if loss is None else loss(module, index)
        return value, torch.tensor(score)

    history = train(
        module,
        epoch,
        learning_rate=0.1,
        weight_decay=0.0,
        max_epochs=len(scores) - 1 if max_epochs is None else max_epochs,
        patience=patience,
        on_epoch=on_epoch,
    )
    return module, weights, history


def kept(module, weights):
    """The epoch whose weights the module holds."""
    return weights.index(module.weight.item())


def in_steps(steps, on_epoch=lambda history: None, **limits):
    """What is not trained by gradient descent."""
    method = LabelPropagation(**limits)
    method.history_, method._callbacks = [], [on_epoch]
    return method._train_in_steps(steps)


@pytest.mark.parametrize(
    ("scores", "limits", "best", "epochs"),
    [
        ([0.1, 0.5, 0.9, 0.3, 0.2], {}, 2, 4),
        # first best at 1; patience 3 allows epochs 2, 3, 4 and stops after 5
        ([0.1, 0.9, 0.9, 0.2, 0.9, 0.2, 0.9, 0.9], {"patience": 3}, 4, 5),
        ([0.4, 0.9], {"max_epochs": 0}, 0, 0),
        ([0.1, 0.8, 0.2, KeyboardInterrupt()], {}, 1, 2),
    ],
)
def test_best_weights_and_buffers_come_back(scores, limits, best, epochs):
    seen = []
    module, weights, history = run(scores, on_epoch=lambda h: seen.append(h.epochs), **limits)
    assert kept(module, weights) == module.epoch == history.best_epoch == best
    assert history.best_score == pytest.approx(scores[best])
    assert history.epochs == epochs
    assert seen == list(range(epochs + 1))
    assert history.interrupted == isinstance(scores[-1], KeyboardInterrupt)
    steps = ((torch.tensor(1.0), torch.tensor(score)) for score in scores[: len(weights)])
    if not history.interrupted:  # what is not trained by gradient descent stops alike
        limits = {"max_epochs": 100, "patience": 100} | limits
        again = in_steps(steps, on_epoch=lambda h: seen.append(h.epochs), **limits)
        assert (again.score, again.best_epoch) == (history.score, best)
        assert seen == 2 * list(range(epochs + 1))


def interrupted(score=None):
    if score is not None:
        yield torch.tensor(1.0), torch.tensor(score)
    raise KeyboardInterrupt


def test_an_interrupt_keeps_what_there_is_and_is_passed_on_if_there_is_nothing():
    history = in_steps(interrupted(0.5), max_epochs=9, patience=9)
    assert (history.interrupted, history.score) == (True, [0.5])
    with pytest.raises(KeyboardInterrupt):
        in_steps(interrupted(), max_epochs=9, patience=9)
    with pytest.raises(KeyboardInterrupt):
        run([KeyboardInterrupt()])

    def stop(history):
        if history.epochs == 2:
            raise KeyboardInterrupt

    module, weights, history = run([0.1, 0.2, 0.3, 0.4], on_epoch=stop)
    assert history.interrupted
    assert kept(module, weights) == 2


def test_entries_belong_to_the_weights_after_so_many_steps():
    module, weights, history = run([0.1, 0.2, 0.3])
    assert history.loss == pytest.approx([-weight for weight in weights])
    assert weights == pytest.approx([0, 0.1, 0.2], abs=1e-3)
    assert module.weight.item() == weights[-1]  # no step after the last score
    assert history.seconds > 0


def test_a_module_may_keep_its_weights_from_decaying():
    module = torch.nn.ModuleList([Tiny(), Tiny()])
    module[1].decays = False
    with torch.no_grad():
        for weight in module.parameters():
            weight.fill_(5.0)
    total = lambda: sum(weight.sum() for weight in module.parameters())  # noqa: E731
    zero = lambda: (0 * total(), -total().detach())  # noqa: E731
    train(module, zero, learning_rate=0.1, weight_decay=0.1, max_epochs=3, patience=9)
    assert [tiny.weight.item() for tiny in module] == pytest.approx([4.7, 5.0], abs=1e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_with_advice(value):
    def loss(module, index):
        return module.weight.sum() + (value if index == 2 else 0)

    with pytest.raises(FloatingPointError, match=f"{value} in epoch 2.*smaller learning_rate"):
        run([0.1] * 5, loss=loss)


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, needs_gpu])],
)
def test_an_epoch_that_cannot_be_recorded_is_trained_in_plain_steps(monkeypatch, device):
    """On the CPU the GPU's part is a fake; the weights are those of plain steps on both."""

    class Fails:
        def __init__(self, *parts):
            raise RuntimeError("operation not permitted when stream is capturing")

    if device == "cpu":
        monkeypatch.setattr(loop, "has_kernels", lambda device: True)
        monkeypatch.setattr(loop, "side_stream", lambda device: nullcontext("a stream"))
    monkeypatch.setattr(loop, "RecordedStep", Fails)
    weights = []
    for recordable in (False, True):
        module = nn.Linear(1, 1, bias=False).to(device)
        nn.init.ones_(module.weight)

        def epoch(module=module):
            loss = module.weight.square().sum()
            return loss, -loss.detach()

        history = train(
            module,
            epoch,
            learning_rate=0.01,
            weight_decay=0.0,
            max_epochs=2 * loop.RECORD_AFTER,
            patience=100,
            recordable=recordable,
        )
        assert history.epochs == 2 * loop.RECORD_AFTER
        weights.append(module.weight.item())
    assert weights[0] == weights[1]


PARAMS = {"learning_rate": 0.1, "weight_decay": 0.0, "max_epochs": 12, "patience": 100}


class Epochs:
    """A loss with dropout, and a count of epochs that the checkpoint has to store."""

    def __init__(self, net):
        self.net, self.x, self.count = net, normal(20, 3).float(), 0

    def __call__(self):
        self.count += 1
        loss = mse_loss(self.net(dropout(self.x)), self.x[:, :1])
        return loss, torch.tensor(float(-abs(self.count - 8)))

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def trained(checkpoint=None, stop_after=None):
    def on_epoch(history):
        if history.epochs == stop_after:
            raise RuntimeError("killed")

    with seeded(0):
        net = nn.Linear(3, 1)
        history = train(net, Epochs(net), checkpoint=checkpoint, on_epoch=on_epoch, **PARAMS)
    return history, net.weight.detach()


def test_a_killed_run_resumes_bit_by_bit(tmp_path):
    expected, weights = trained()
    path = tmp_path / "folder" / "run.pt"
    with pytest.raises(RuntimeError, match="killed"):
        trained(Checkpoint(path, every=0), stop_after=5)
    assert path.exists()
    history, again = trained(Checkpoint(path, every=0))
    assert (history.loss, history.score) == (expected.loss, expected.score)
    assert history.best_epoch == expected.best_epoch == 7
    assert torch.equal(again, weights)
    assert not path.exists()  # complete
    with pytest.raises(RuntimeError, match="killed"):
        trained(Checkpoint(path, every=1000), stop_after=5)
    assert not path.exists()  # not yet time to write


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:999] + bytes([content[999] ^ 1]) + content[1000:],
        lambda content: content[CHECKSUM:],  # as version 0.2.0 wrote it
    ],
)
def test_a_damaged_checkpoint_is_not_continued(tmp_path, damage, caplog):
    path = tmp_path / "run.pt"
    with pytest.raises(RuntimeError, match="killed"):
        trained(Checkpoint(path, every=0), stop_after=5)
    path.write_bytes(damage(path.read_bytes()))
    history, weights = trained(Checkpoint(path, every=0))
    assert torch.equal(weights, trained()[1])
    assert history.epochs == trained()[0].epochs
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} is damaged: training starts over."
    ]


def history(*scores, patience=10, max_epochs=100):
    best = max(scores)
    latest = max(index for index, score in enumerate(scores) if score == best)
    return History(
        [0.5] * len(scores),
        list(scores),
        best_epoch=latest,
        first_best_epoch=scores.index(best),
        best_score=best,
        patience=patience,
        max_epochs=max_epochs,
    )


@pytest.fixture
def updates(monkeypatch):
    seen = []
    monkeypatch.setattr(
        rich.progress.Progress, "update", lambda self, bar, **fields: seen.append(fields)
    )
    return seen


@pytest.mark.parametrize(
    "bar", [lambda **v: epoch_bar("GCN", **v), lambda **v: count_bar("fit", 3, **v)]
)
def test_a_bar_on_a_terminal_unless_unwanted(monkeypatch, bar):
    drawn = []
    monkeypatch.setattr(rich.progress.Progress, "start", lambda self: drawn.append(self))
    with bar():
        pass
    assert not drawn
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with bar(visible=False):
        pass
    assert not drawn
    with bar():
        assert len(drawn) == 1


def test_the_bar_fills_and_waits_after_a_better_score(updates):
    scores = [0.1, 0.5, 0.2, 0.3, 0.6, 0.1, 0.1, 0.1, 0.1]
    with epoch_bar("GCN", visible=True) as show:
        for count in range(2, len(scores) + 1):
            show(history(*scores[:count], patience=4))
    shares = [fields["completed"] / fields["total"] for fields in updates]
    assert shares == pytest.approx([1 / 5, 2 / 5, 3 / 5, 3 / 5, 5 / 8, 6 / 8, 7 / 8, 1])
    facts = updates[3]["facts"]
    assert "epoch    4" in facts
    assert "best 60.0 at 4" in facts


def test_a_stage_without_a_name_is_counted_and_starts_anew(updates):
    with epoch_bar("GCN", visible=True) as show:
        for scores in ([0.1, 0.5, 0.4], [0.2, 0.3]):
            show(history(*scores, patience=4))
    assert [fields["description"] for fields in updates] == ["GCN", "GCN, stage 2"]
    assert updates[1]["completed"] == pytest.approx(1 / 5)


def test_the_bar_counts_stages_and_never_shrinks(updates):
    with epoch_bar("GCN", visible=True) as show:
        for done, scores in ((0.0, [0.1, 0.5, 0.4]), (0.2, [0.2]), (0.2, [0.3, 0.4]), (0.6, [0.1])):
            show(replace(history(*scores, patience=4), done=done))
    assert [fields["completed"] for fields in updates] == [0.0, 0.2, 0.2, 0.6]


def test_a_stage_with_a_name_is_named(updates):
    with epoch_bar("seed 5", visible=True) as show:
        for stage in ("", "Double balancing on GraphSAGE", "Logistic"):
            show(replace(history(0.5), stage=stage))
    titles = [fields["description"] for fields in updates]
    assert titles == ["seed 5", "seed 5, Double balancing", "seed 5, Logistic"]
    steps = []
    with pytest.MonkeyPatch.context() as patch, count_bar("fitting", 3, visible=True) as count:
        patch.setattr(rich.progress.Progress, "advance", lambda self, bar: steps.append(bar))
        count()
        count()
    assert len(steps) == 2


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("stage", ["", "Double balancing on GraphSAGE"])
def test_bar_and_time_are_whole_in_a_narrow_terminal(width, stage, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    with epoch_bar("seed 5", visible=True) as show:
        show(replace(history(*[0.5] * 1500, patience=2000, max_epochs=5000), stage=stage))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    line = next(line for line in re.split(r"[\r\n]+", plain) if "epoch" in line)
    assert line.count("━") + line.count("╸") + line.count("╺") >= 15
    assert "0:00:0" in line
    assert ("val" in line) == (width == 120)


def test_lines_are_written_every_few_seconds_and_name_the_stage(monkeypatch):
    clock, lines = [0.0], []
    monkeypatch.setattr(loop, "monotonic", lambda: clock[0])
    show = epoch_lines("seed 5", lines.append)
    show(history(0.25))
    assert not lines
    clock[0] = LINE_EVERY
    show(history(0.25, 0.5))
    clock[0] += LINE_EVERY / 2
    show(history(0.25, 0.5, 0.4))
    clock[0] += LINE_EVERY / 2
    show(replace(history(0.25, 0.5, 0.4), stage="Logistic"))
    assert lines == [
        "seed 5: epoch 1, val 50.0, best 50.0 at 1, 5 s",
        "seed 5, Logistic: epoch 2, val 40.0, best 50.0 at 1, 10 s",
    ]
    clock[0] += LINE_EVERY
    show(history(-1.0, -1.0))  # of members that are scored when training ends
    assert lines[2] == "seed 5: epoch 1, 15 s"
    clock[0] += LINE_EVERY
    show(replace(history(0.5), stage="Boosting"))
    assert lines[3] == "seed 5, Boosting: 20 s"
