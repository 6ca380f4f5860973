"""The training loop, on modules whose scores are written down beforehand."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from evengraph.training import History, loop, train, train_stepwise

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


def test_best_weights_and_buffers_come_back():
    module, weights, history = run([0.1, 0.5, 0.9, 0.3, 0.2])
    assert len(set(weights)) == 5
    assert kept(module, weights) == 2
    assert module.epoch == 2
    assert (history.best_epoch, history.best_score) == (2, pytest.approx(0.9))
    assert history.epochs == 4


def test_of_equal_scores_the_latest_is_kept():
    module, weights, history = run([0.5, 0.9, 0.3, 0.9, 0.1])
    assert kept(module, weights) == history.best_epoch == 3
    assert module.epoch == 3


def test_patience_counts_from_the_first_best():
    # first best at 1; patience 3 allows epochs 2, 3, 4 and stops after 5
    scores = [0.1, 0.9, 0.9, 0.2, 0.9, 0.2, 0.9, 0.9]
    module, weights, history = run(scores, patience=3)
    assert history.epochs == 5
    assert kept(module, weights) == history.best_epoch == 4


def test_an_improvement_renews_patience():
    _, _, history = run([0.1, 0.1, 0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 0.4], patience=2)
    assert history.epochs == 7
    assert history.best_epoch == 4


def test_patience_zero_stops_at_the_first_epoch_that_is_no_better():
    _, _, history = run([0.1, 0.2, 0.2, 0.9], patience=0)
    assert history.epochs == 2


def test_no_epochs_leave_the_module_as_it_was():
    module, weights, history = run([0.4, 0.9], max_epochs=0)
    assert module.weight.item() == 0
    assert len(weights) == 1
    assert history.score == [pytest.approx(0.4)]
    assert history.epochs == 0


def test_entries_belong_to_the_weights_after_so_many_steps():
    module, weights, history = run([0.1, 0.2, 0.3])
    assert history.loss == pytest.approx([-weight for weight in weights])
    assert weights == pytest.approx([0, 0.1, 0.2], abs=1e-3)
    assert module.weight.item() == weights[-1]  # no step after the last score
    assert history.seconds > 0


def test_each_epoch_is_reported():
    seen = []
    run([0.1, 0.3, 0.2], on_epoch=lambda h: seen.append((h.epochs, h.score[-1], h.best_epoch)))
    assert seen == [
        (0, pytest.approx(0.1), 0),
        (1, pytest.approx(0.3), 1),
        (2, pytest.approx(0.2), 1),
    ]


def test_weight_decay_reaches_the_weights():
    module = Tiny()
    with torch.no_grad():
        module.weight.fill_(5.0)
    zero = lambda: (0 * module.weight.sum(), module.weight.detach().neg().sum())  # noqa: E731
    train(module, zero, learning_rate=0.1, weight_decay=0.1, max_epochs=3, patience=9)
    assert module.weight.item() == pytest.approx(4.7, abs=1e-3)


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


def test_interrupt_keeps_the_best_so_far():
    module, weights, history = run([0.1, 0.8, 0.2, KeyboardInterrupt()])
    assert history.interrupted
    assert kept(module, weights) == history.best_epoch == 1
    assert module.epoch == 1
    assert history.epochs == 2


def test_interrupt_from_the_report_of_an_epoch():
    def stop(history):
        if history.epochs == 2:
            raise KeyboardInterrupt

    module, weights, history = run([0.1, 0.2, 0.3, 0.4], on_epoch=stop)
    assert history.interrupted
    assert kept(module, weights) == 2


def test_interrupt_before_anything_happened_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        run([KeyboardInterrupt()])


def test_an_undisturbed_run_is_not_interrupted():
    assert not run([0.1, 0.2])[2].interrupted


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_with_advice(value):
    def loss(module, index):
        return module.weight.sum() + (value if index == 2 else 0)

    with pytest.raises(FloatingPointError, match=f"{value} in epoch 2.*smaller learning_rate"):
        run([0.1] * 5, loss=loss)


def test_an_empty_history():
    history = History()
    assert history.epochs == 0
    assert history.best_score == -math.inf


def test_stepwise_training_stops_early():
    scores = [0.1, 0.5, 0.5, 0.2, 0.3, 0.9]
    seen = []
    history = train_stepwise(
        ((torch.tensor(1.0), torch.tensor(score)) for score in scores),
        max_epochs=100,
        patience=2,
        on_epoch=lambda history: seen.append(history.epochs),
    )
    assert history.score == pytest.approx(scores[:5])  # three epochs after the first best
    assert (history.best_epoch, history.first_best_epoch) == (2, 1)
    assert seen == [0, 1, 2, 3, 4]
    steps = ((torch.tensor(1.0), torch.tensor(score)) for score in scores)
    assert train_stepwise(steps, max_epochs=3, patience=50).epochs == 3


def test_stepwise_training_can_be_interrupted():
    def steps():
        yield torch.tensor(1.0), torch.tensor(0.5)
        raise KeyboardInterrupt

    history = train_stepwise(steps(), max_epochs=9, patience=9)
    assert history.interrupted
    assert history.score == [0.5]

    def nothing():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        train_stepwise(nothing(), max_epochs=9, patience=9)


@pytest.mark.parametrize("trouble", ["waits", "fails"])
@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, needs_gpu])],
)
def test_an_epoch_that_cannot_be_recorded_is_trained_in_plain_steps(monkeypatch, trouble, device):
    """On the CPU the GPU's part is a fake; the weights are those of plain steps on both."""

    class Fails:
        def __init__(self, *parts):
            assert trouble == "fails", "what waits for the GPU is not to be recorded"
            raise RuntimeError("operation not permitted when stream is capturing")

    if device == "cpu":
        monkeypatch.setattr(loop, "has_kernels", lambda device: True)
        monkeypatch.setattr(loop, "_side_stream", lambda device: nullcontext("a stream"))
        reports = ["called a synchronizing CUDA operation"] if trouble == "waits" else []
        monkeypatch.setattr(loop, "waits_for_gpu", lambda: nullcontext(reports))
    monkeypatch.setattr(loop, "_RecordedStep", Fails)
    weights = []
    for recordable in (False, True):
        module = nn.Linear(1, 1, bias=False).to(device)
        nn.init.ones_(module.weight)

        def epoch(module=module):
            loss = module.weight.square().sum()
            if trouble == "waits":
                loss.item()
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
