from functools import partial

import pytest

from evengraph.lab import reproduce as module
from evengraph.lab.reproduce import Plan, check, experiment_content, missing, reproduce, run_stored
from evengraph.lab.store import Store
from evengraph.pipeline.executor import Executor
from tiny_experiments import ended, entry, failed, figures, spec_of, toy_job, toy_setup

GRID = {"max_epochs": [1, 2, 3]}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


class Engine:
    """Ends every job at once; the fewer epochs, the better."""

    def __init__(self, store, fails=()):
        self.store, self.fails, self.done = store, fails, []

    def __call__(self, jobs, on_row):
        for job in jobs:
            self.done.append(job)
            bad = job.key in self.fails
            row = failed(job) if bad else ended(job, 90.0 - job.method_fields["max_epochs"])
            self.store.add(row)
            on_row(row)


def test_rounds_go_on_until_nothing_is_missing(store):
    spec = spec_of(
        entry(grid=GRID, more_seeds=[8]), entry("wide", like="GCN", vary={"hidden": [8]})
    )
    engine, told, rounds = Engine(store), [], []
    reproduce([spec], store, engine, on_row=told.append, on_round=rounds.append)
    assert rounds == [6, 3]
    assert len({job.key for job in engine.done}) == len(engine.done) == 9
    assert [row.job for row in told] == engine.done
    assert all(job.method_fields["max_epochs"] == 1 for job in engine.done[6:])
    assert missing([spec], store) == []


def test_what_is_there_is_not_run_again(store):
    spec = spec_of(entry(grid=GRID))
    reproduce([spec], store, Engine(store))
    before = store.rows()
    again = Engine(store)
    reproduce([spec], store, again)
    assert again.done == []
    assert store.rows() == before


def test_what_failed_is_not_run_again_by_itself(store):
    spec = spec_of(entry(grid=GRID, more_seeds=[8]))
    bad = toy_job(max_epochs=1)
    engine = Engine(store, fails={bad.key})
    reproduce([spec], store, engine)
    assert [job.key for job in engine.done].count(bad.key) == 1
    assert engine.done[-1].method_fields["max_epochs"] == 2  # the next best has more seeds
    store.forget("failed")
    again = Engine(store)
    reproduce([spec], store, again)
    assert [(job.method_fields["max_epochs"], job.seed) for job in again.done] == [(1, 5), (1, 8)]


def test_experiments_share_their_runs(store):
    specs = [
        spec_of(entry(grid=GRID)),
        spec_of(entry(fields={"max_epochs": 2}), name="other"),
        spec_of(entry(grid=GRID, more_seeds=[6, 8]), name="more"),
    ]
    engine = Engine(store)
    reproduce(specs, store, engine)
    assert len(engine.done) == len({job.key for job in engine.done}) == 7


def test_while_another_process_is_at_the_rest_it_waits(store, monkeypatch):
    spec = spec_of(entry(grid=GRID))
    slept, calls = [], []

    def idle(jobs, on_row):
        calls.append(len(jobs))
        assert len(calls) < 9, "it does not wait"

    def elsewhere(seconds):  # another process ends two runs in the meantime
        slept.append(seconds)
        for job in missing([spec], store)[:2]:
            store.add(ended(job))

    monkeypatch.setattr(module, "sleep", elsewhere)
    reproduce([spec], store, idle)
    assert calls == [6, 4, 2]
    assert slept == [module.WAIT] * 3


def test_it_does_not_wait_between_rounds(store, monkeypatch):
    def never(seconds):
        raise AssertionError("there was something to do")

    monkeypatch.setattr(module, "sleep", never)
    engine, rounds = Engine(store), []
    spec = spec_of(entry(grid=GRID, more_seeds=[8]))
    reproduce([spec], store, engine, on_round=rounds.append)
    assert rounds == [6, 1]
    assert len(engine.done) == 7


def test_ctrl_c_goes_through_and_the_rest_can_be_done_later(store):
    spec = spec_of(entry(grid=GRID, more_seeds=[8]))

    def stop(row):
        if len(store.rows()) == 3:
            raise KeyboardInterrupt

    first, second = Engine(store), Engine(store)
    with pytest.raises(KeyboardInterrupt):
        reproduce([spec], store, first, on_row=stop)
    assert len(store.rows()) == 3
    reproduce([spec], store, second)
    assert len(first.done) == 3
    assert len({job.key for job in first.done + second.done}) == len(first.done + second.done) == 7


def test_a_real_experiment_chooses_and_is_the_same_again(tmp_path):
    spec = spec_of(
        one := entry(grid={"max_epochs": [1, 12]}, more_seeds=[8]),
        entry("narrow", "reweight", like="GCN", fields={"hidden": 8}),
    )
    found = []
    for name in ("first", "second"):
        store = Store(tmp_path / f"{name}.sqlite")
        reproduce([spec], store, partial(run_stored, store=store.path, executor=Executor()))
        plan = Plan(spec, store.rows())
        assert plan.missing() == []
        found.append(figures(store.rows()))
    assert found[0] == found[1]
    assert len(found[0]) == 4 + 1 + 2
    means = {
        epochs: sum(
            plan.known[toy_job(max_epochs=epochs, seed=s).key].outcome["validation"] for s in (5, 6)
        )
        for epochs in (1, 12)
    }
    assert plan.choice(toy_setup(), one) == {"max_epochs": max(means, key=means.get)}


def test_a_stored_experiment_holds_the_role_of_each_method_but_of_no_variant(store):
    entries = entry(), entry("Uni-GNN", "unignn"), entry("mine", "unignn"), entry("SMOTE", "smote")
    spec = spec_of(*entries)
    for job in missing([spec], store):
        store.add(ended(job))
    cells = experiment_content(spec, store)["cells"]
    assert [(cell["label"], cell["role"]) for cell in cells] == [
        ("GCN", "baseline"),
        ("Uni-GNN", "highlight"),
        ("mine", ""),
        ("SMOTE", ""),
    ]


# Checks before anything is trained.


def test_what_can_be_set_up_passes():
    check([spec_of(entry()), spec_of(entry(), setups=[toy_setup("natural")])])


def test_a_split_that_cannot_be_made_is_found_out_at_once():
    specs = [spec_of(entry()), spec_of(entry(), setups=[toy_setup(minority=9)], name="other")]
    with pytest.raises(ValueError, match=r"^toy-step-9-0\.1 cannot be set up: .*minority"):
        check(specs)


def test_setups_of_one_name_are_all_looked_at():
    setups = [toy_setup(test_per_class=5000), toy_setup()]
    assert setups[0].name == setups[1].name
    with pytest.raises(ValueError, match="cannot be set up"):
        check([spec_of(entry(), setups=setups)])
