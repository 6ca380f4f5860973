"""Experiments: what is planned, chosen on validation, run and stored."""

from dataclasses import replace
from functools import partial

import pytest

from evengraph.core.task import Record
from evengraph.lab import reproduce as module
from evengraph.lab.reproduce import (
    Plan,
    StoreJournal,
    check,
    experiment_content,
    known_runs,
    missing,
    reproduce,
    resolve,
    run_stored,
)
from evengraph.lab.store import Row, Store
from evengraph.methods import METHODS
from evengraph.pipeline.executor import Executor, Failure
from evengraph.pipeline.parameters import preset_for
from tiny_experiments import ended, entry, failed, figures, spec_of, toy_job, toy_setup

GRID = {"max_epochs": [1, 2, 3]}

SETUP = toy_setup()


def rows_of(table, test=None, method="gcn", **settings):
    """Rows of settings {max_epochs: validation scores of the seeds 5, 6, ...}."""
    return [
        ended(
            toy_job(method, seed, max_epochs=epochs, **settings),
            validation=score,
            test=(test or {}).get(epochs, 50.0),
        )
        for epochs, scores in table.items()
        for seed, score in enumerate(scores, 5)
    ]


def settings_of(jobs):
    return [(one.method_fields["max_epochs"], one.seed) for one in jobs]


def test_every_run_of_a_grid_is_asked_for_with_all_parameters_spelt_out():
    spec = spec_of(entry(grid=GRID | {"hidden": [8, 16]}, fields={"patience": 4}))
    asked = Plan(spec, []).missing()
    found = [(o.method_fields["max_epochs"], o.method_fields["hidden"], o.seed) for o in asked]
    assert found == [(m, h, s) for m in (1, 2, 3) for h in (8, 16) for s in (5, 6)]
    assert {one.method_fields["patience"] for one in asked} == {4}
    assert "learning_rate" in asked[0].method_fields
    assert asked[0].imbalance_fields == SETUP.fields
    assert toy_job(hidden=64).key == toy_job().key != toy_job(hidden=8).key


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ({1: (50, 50), 2: (90, 20), 3: (60, 54)}, 3),  # by the mean, not the best test
        ({1: (10, 20), 2: (40, 60), 3: (50, 50)}, 2),  # the first of equals
        ({1: (10, 10), 2: (None, 90), 3: (5, 5)}, 1),  # one run failed
        ({1: (10, 10), 2: (90, None), 3: (5, 5)}, 1),
        ({1: (None, None), 2: (0, 0), 3: (None, None)}, 2),
    ],
)
def test_the_best_mean_validation_is_chosen(scores, chosen):
    spec = spec_of(one := entry(grid=GRID))
    rows = rows_of(scores, test={1: 99.0, 2: 70.0, 3: 10.0})
    rows = [failed(r.job) if r.outcome["validation"] is None else r for r in rows]
    for order in (rows, rows[::-1]):  # whichever ended first
        plan = Plan(spec, order)
        assert plan.choice(SETUP, one) == {"max_epochs": chosen}
        assert plan.missing() == []


def test_nothing_is_chosen_while_a_run_is_missing():
    spec = spec_of(one := entry(grid=GRID, more_seeds=[8]))
    rows = rows_of({1: (10, 10), 2: (90, 90), 3: (5, 5)})
    for out in range(len(rows)):
        plan = Plan(spec, rows[:out] + rows[out + 1 :])
        assert plan.choice(SETUP, one) is None
        assert plan.missing() == [rows[out].job]
        assert plan.cells() == []


def test_if_all_failed_nothing_is_built_on_it():
    spec = spec_of(
        one := entry(grid=GRID, more_seeds=[8]),
        entry("like", like="GCN"),
        entry("vary", like="GCN", vary={"hidden": [8, 16]}),
        entry("alone", "reweight"),
    )
    rows = [failed(row.job) for row in rows_of({1: (1, 1), 2: (1, 1), 3: (1, 1)})]
    plan = Plan(spec, rows)
    assert plan.choice(SETUP, one) is None
    assert {one.method for one in plan.missing()} == {"reweight"}
    assert plan.cells() == []


def test_what_is_built_on_a_choice_follows_it():
    spec = spec_of(
        entry(grid=GRID, more_seeds=[8, 9]),
        entry("like", "reweight", like="GCN", fields={"hidden": 8}, more_seeds=[8]),
        entry("vary", like="GCN", vary={"hidden": [16, 64]}, more_seeds=[9]),
        entry("change", like="GCN", fields={"max_epochs": 1}),
        entry("after", like="like"),
    )
    first = Plan(spec, [])
    assert settings_of(first.missing()) == [(e, s) for e in (1, 2, 3) for s in (5, 6)]
    rows = rows_of({1: (1, 1), 2: (3, 3), 3: (2, 2)})
    asked = Plan(spec, rows).missing()
    default = toy_job().method_fields["hidden"]
    assert default == 64
    found = {
        (o.method, o.method_fields["max_epochs"], o.method_fields["hidden"], o.seed) for o in asked
    }
    assert len(found) == len(asked)
    expected = {("gcn", 2, 64, seed) for seed in (8, 9)}
    expected |= {("reweight", 2, 8, seed) for seed in (5, 6, 8)}
    expected |= {("gcn", 2, 16, seed) for seed in (5, 6, 9)}
    expected |= {("gcn", 2, 8, seed) for seed in (5, 6)}  # like that which is like the chosen
    assert found == expected  # hidden = 64 and max_epochs = 1 have been run for the choice


def test_each_setup_has_a_choice_of_its_own():
    other = toy_setup(ratio=0.2)
    spec = spec_of(one := entry(grid=GRID, more_seeds=[8]), setups=[SETUP, other])
    rows = rows_of({1: (1, 1), 2: (3, 3), 3: (2, 2)})
    rows += [
        replace(r, job=replace(r.job, imbalance_fields=other.fields))
        for r in rows_of({1: (1, 1), 2: (3, 3), 3: (9, 9)})
    ]
    plan = Plan(spec, rows)
    assert plan.choice(SETUP, one) == {"max_epochs": 2}
    assert plan.choice(other, one) == {"max_epochs": 3}
    assert settings_of(plan.missing()) == [(2, 8), (3, 8)]


def test_presets_are_started_from():
    setup = toy_setup(dataset="cora")
    kept = preset_for("cora", "step", setup.fields, "unignn")
    spec = spec_of(
        entry("kept", "unignn", presets=True),
        entry("changed", "unignn", presets=True, fields={"alpha": 5}),
        entry("plain", "unignn"),
        setups=[setup, SETUP],
    )
    plan = Plan(spec, [])
    own = [plan.choice(setup, one) for one in spec.entries]
    assert own == [kept, kept | {"alpha": 5}, {}]
    assert plan.choice(SETUP, spec.entries[0]) == {}  # none is kept for this graph


def test_runs_that_are_shared_are_asked_for_once():
    two = spec_of(
        entry(fields={"max_epochs": 2}),
        entry("again", fields={"max_epochs": 2}),
        entry("new", fields={"max_epochs": 9}),
        name="other",
    )
    assert settings_of(Plan(two, []).missing()) == [(2, 5), (2, 6), (9, 5), (9, 6)]
    both = [spec_of(entry(grid=GRID)), two]
    asked = settings_of(missing(both, {}))
    assert asked == [(e, s) for e in (1, 2, 3, 9) for s in (5, 6)]
    rows = [ended(toy_job(max_epochs=2, seed=5)), failed(toy_job(max_epochs=9, seed=6))]
    left = settings_of(missing(both, known_runs(rows)))
    assert left == [one for one in asked if one not in ((2, 5), (9, 6))]


def test_cells_hold_the_chosen_runs_and_no_other():
    spec = spec_of(one := entry(grid=GRID, more_seeds=[8, 9]))
    rows = rows_of({1: (1, 1), 2: (3, 3), 3: (2, 2)})
    more = [ended(toy_job(max_epochs=2, seed=8)), failed(toy_job(max_epochs=2, seed=9))]
    strange = [
        ended(toy_job(max_epochs=2, seed=7)),  # of a seed that is not asked for
        ended(toy_job("reweight", max_epochs=2)),
        ended(toy_job(max_epochs=2, setup=toy_setup(ratio=0.2))),
    ]
    (cell,) = Plan(spec, strange + rows + more).cells()
    assert (cell.setup, cell.entry, cell.value) == (SETUP, one, None)
    assert cell.settings == {"max_epochs": 2}
    assert cell.keys == [toy_job(max_epochs=2, seed=seed).key for seed in (5, 6, 8)]


def test_what_varies_has_a_cell_for_each_value():
    spec = spec_of(entry(vary={"hidden": [8, 16, 32]}, fields={"max_epochs": 2}, more_seeds=[8]))
    rows = [ended(toy_job(max_epochs=2, hidden=h, seed=s)) for h in (8, 16) for s in (5, 6, 8)]
    cells = Plan(spec, rows[:-1]).cells()
    assert [(cell.value, len(cell.keys)) for cell in cells] == [(8, 3), (16, 2)]
    assert [cell.settings for cell in cells] == [{"max_epochs": 2, "hidden": h} for h in (8, 16)]


def test_runs_of_former_versions_count():
    spec = spec_of(entry("trees", "boosting", fields={"max_epochs": 3}))
    old = []
    for job in (jobs := Plan(spec, []).missing()):
        params = {n: v for n, v in job.method_fields.items() if n not in ("hops", "columns")}
        old.append(Row(job=replace(job, method_fields={**params, "neighbours": True})))
    assert len(jobs) == len(old) > 0
    assert Plan(spec, old).missing() == []
    other = [replace(row, job=replace(row.job, method="elsewhere")) for row in old]
    assert Plan(spec, other).missing() == jobs


def test_the_sound_lte4g_of_a_former_version_is_not_the_one_of_this():
    job = toy_job("lte4g")
    old = [replace(job, method_fields={**job.method_fields, "sound": on}) for on in (False, True)]
    assert known_runs([ended(old[1])]) == {}
    assert list(known_runs(map(ended, old))) == [job.key]


def test_a_row_without_a_later_parameter_is_found(monkeypatch):
    """Its default changes nothing, so the run need not be repeated."""
    spec, later = spec_of(entry(fields={"max_epochs": 2})), ("network", "backbone")
    older = []
    for job in Plan(spec, []).missing():
        params = {name: v for name, v in job.method_fields.items() if name not in later}
        older.append(ended(replace(job, method_fields=params)))
    assert Plan(spec, older).missing() == []
    other = spec_of(entry(fields={"max_epochs": 2, "network": "plain"}))
    assert len(Plan(other, older).missing()) == 2
    former = classmethod(lambda cls, params: {"network": "plain", **params})
    monkeypatch.setattr(METHODS["gcn"], "current_params", former)  # it did something else then
    assert Plan(other, older).missing() == []
    assert len(Plan(spec, older).missing()) == 2


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


def test_rounds_go_on_until_nothing_is_missing_without_a_pause(store, monkeypatch):
    def never(seconds):
        raise AssertionError("there was something to do")

    monkeypatch.setattr(module, "sleep", never)
    spec = spec_of(
        entry(grid=GRID, more_seeds=[8]), entry("wide", like="GCN", vary={"hidden": [8]})
    )
    engine, told, rounds = Engine(store), [], []
    reproduce([spec], store, engine, on_row=told.append, on_round=rounds.append)
    assert rounds == [6, 3]
    assert len({job.key for job in engine.done}) == len(engine.done) == 9
    assert [row.job for row in told] == engine.done
    assert all(job.method_fields["max_epochs"] == 1 for job in engine.done[6:])
    before, again = store.rows(), Engine(store)
    reproduce([spec], store, again)
    assert again.done == []  # what is there is not run again
    assert store.rows() == before


def test_what_failed_is_not_run_again_by_itself(store):
    spec = spec_of(entry(grid=GRID, more_seeds=[8]))
    bad = toy_job(max_epochs=1)
    engine, again = Engine(store, fails={bad.key}), Engine(store)
    reproduce([spec], store, engine)
    assert [job.key for job in engine.done].count(bad.key) == 1
    assert engine.done[-1].method_fields["max_epochs"] == 2  # the next best has more seeds
    store.forget("failed")
    reproduce([spec], store, again)
    assert settings_of(again.done) == [(1, 5), (1, 8)]


def test_while_another_process_is_at_the_rest_it_waits(store, monkeypatch):
    spec = spec_of(entry(grid=GRID))
    slept, calls = [], []

    def idle(jobs, on_row):
        calls.append(len(jobs))
        assert len(calls) < 9, "it does not wait"

    def elsewhere(seconds):  # another process ends two runs in the meantime
        slept.append(seconds)
        for job in missing([spec], known_runs(store.rows()))[:2]:
            store.add(ended(job))

    monkeypatch.setattr(module, "sleep", elsewhere)
    reproduce([spec], store, idle)
    assert calls == [6, 4, 2]
    assert slept == [module.WAIT] * 3


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

    def total(epochs):
        keys = [toy_job(max_epochs=epochs, seed=seed).key for seed in (5, 6)]
        return sum(plan.known[key].score for key in keys)

    assert plan.choice(toy_setup(), one) == {"max_epochs": max((1, 12), key=total)}


def test_a_stored_experiment_holds_the_role_of_each_method_but_of_no_variant(store):
    entries = entry(), entry("Uni-GNN", "unignn"), entry("mine", "unignn"), entry("SMOTE", "smote")
    spec = spec_of(*entries)
    known = known_runs(map(ended, missing([spec], {})))
    roles = [(c["label"], c["role"]) for c in experiment_content(spec, known)["cells"]]
    assert roles == [("GCN", "baseline"), ("Uni-GNN", "highlight"), ("mine", ""), ("SMOTE", "")]


def test_a_split_that_cannot_be_made_is_found_out_at_once():
    check([spec_of(entry()), spec_of(entry(), setups=[toy_setup("natural")])])
    specs = [spec_of(entry()), spec_of(entry(), setups=[toy_setup(minority=9)], name="other")]
    with pytest.raises(ValueError, match=r"^toy-step-9-0\.1 cannot be set up: .*minority"):
        check(specs)
    setups = [toy_setup(test_per_class=5000), toy_setup()]  # of one name
    assert setups[0].name == setups[1].name
    with pytest.raises(ValueError, match="cannot be set up"):
        check([spec_of(entry(), setups=setups)])


OUTCOME = {
    *("metrics", "per_class", "confusion_matrix", "validation", "best_epoch", "epochs"),
    *("seconds", "stages", "class_counts", "together", "criterion"),
}


@pytest.fixture
def journal(tmp_path):
    return StoreJournal(tmp_path / "store.sqlite", "cpu")


def test_a_row_holds_no_more_than_it_did(tmp_path):
    rows = []
    path = tmp_path / "store.sqlite"
    run_stored([toy_job(max_epochs=2)], rows.append, store=path, executor=Executor())
    (row,) = Store(path).rows()
    assert set(row.outcome) == OUTCOME
    assert rows[0].outcome == row.outcome


def test_a_saved_result_can_be_recovered(journal):
    done, failed, open_ = (resolve(toy_job(max_epochs=1, seed=seed)) for seed in (5, 6, 7))
    assert journal.claim([done, failed, open_]) == [done, failed, open_]
    record = Record(
        seed=5,
        metrics={"macro_f1": 50.0},
        per_class={"f1": [50.0]},
        confusion_matrix=[[1]],
        history={"loss": [1.0]},
        validation=40.0,
        best_epoch=1,
        epochs=1,
        seconds=0.5,
        class_counts=[3],
    )
    journal.save(done, record)
    journal.save(failed, Failure(reason="no", kind="ValueError"))
    again = journal.recover(done)
    assert again.as_dict() == {**record.as_dict(), "history": {}}
    assert journal.recover(failed) == Failure(reason="ValueError: no")
    assert journal.recover(open_) is None
    assert journal.claim([done, failed, open_]) == [open_]
