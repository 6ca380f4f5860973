"""UniGNN: its loss against the equations, every ablation, the clusters over time, in both forms."""

import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from evengraph import fast
from evengraph.cli.options import parse_settings
from evengraph.fast import unignn as quick
from evengraph.lab.reproduce import job_spec, known_runs, resolve
from evengraph.lab.spec import Setup
from evengraph.lab.store import Row
from evengraph.methods import UniGNN, unignn
from evengraph.metrics.multiclass import stopping_score
from evengraph.ops.pseudo import balanced_pseudo_labels
from evengraph.pipeline.model_info import load_model
from evengraph.pipeline.parameters import renamed_params
from evengraph.testing.contract import with_graph
from small_graphs import normal, small_task


@pytest.fixture(params=["quick", "plain"])
def form(request):
    """The module that computes: the quick form, or the paper's file."""
    if request.param == "quick":
        yield quick
    else:
        with fast.off():
            yield unignn


# The loss (Eq. 8 to 14), read off the first epoch: the weights that gave it are the fitted ones.


def first_loss(**fields):
    task = small_task()
    settings = {"dropout": 0, "max_epochs": 0, "clusters_per_class": 4}
    method = UniGNN(**settings | fields).fit(task, seed=0)
    values = method.predict_proba(task.graph).double()
    return task, values, method.history_[0].loss[0]


@pytest.mark.parametrize("class_weights", [True, False])
@pytest.mark.parametrize("mean_loss", [True, False])
@pytest.mark.parametrize("keep_total", [True, False])
def test_each_class_weighs_the_same_or_each_node(form, class_weights, mean_loss, keep_total):
    fields = {"class_weights": class_weights, "mean_loss": mean_loss, "keep_total": keep_total}
    task, values, loss = first_loss(pseudo_labels="none", **fields)
    labels = task.graph.y[task.train]
    weights = 1 / torch.bincount(labels)[labels] if class_weights else torch.ones(len(labels))
    if keep_total:  # one for each of three classes
        weights = weights * 3 / weights.sum()
    each = -values[task.train].gather(1, labels[:, None]).squeeze(1).log()
    expected = (weights * each).sum() / (weights.sum() if mean_loss else 1)
    assert loss == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("which", ["balanced", "all"])
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_pseudo_labels_add_their_mean_loss(form, which, weight):
    task, values, plain = first_loss(pseudo_labels="none")
    settings = {"pseudo_labels": which, "threshold": 0.0, "pseudo_weight": weight}
    _, same_values, loss = first_loss(**settings)
    assert torch.equal(values, same_values)
    confidence = values.max(1).values
    if which == "all":
        nodes = ~task.train
    else:
        chosen = balanced_pseudo_labels(values, task.class_counts, ~task.train, 0.0)
        nodes = chosen.nodes
        counts = task.class_counts + torch.bincount(chosen.labels, minlength=3)
        assert (counts <= 10).all()
        assert nodes.numel() > 0
    expected = plain + weight * float(-confidence[nodes].log().mean())
    assert loss == pytest.approx(expected, rel=1e-5)


def test_no_node_is_confident_enough(form):
    _, _, plain = first_loss(pseudo_labels="none")
    assert first_loss(threshold=0.99)[2] == plain


# Ablations.

QUICK = {"max_epochs": 5, "clusters_per_class": 4}


def probabilities(task, seed=0, **fields):
    return UniGNN(**QUICK | fields).fit(task, seed=seed).predict_proba(task.graph)


def test_no_pseudo_labels_equals_no_weight_on_them(form):
    task = small_task()
    # without dropout, which draws other numbers when more nodes are asked for
    settings = {"dropout": 0, "threshold": 0.2}
    histories = [
        UniGNN(**QUICK | settings | fields).fit(task, seed=0).history_[0]
        for fields in ({"pseudo_labels": "none"}, {"pseudo_weight": 0.0}, {})
    ]
    assert histories[0].loss == pytest.approx(histories[1].loss, rel=1e-4)
    assert histories[0].loss != pytest.approx(histories[2].loss, rel=1e-2)


@pytest.mark.parametrize(
    "fields",
    [
        {"share_embeddings": False},
        {"pseudo_labels": "none"},
        {"alpha": 1},
        {"encoders": "semantic"},
        {"encoders": "structural"},
        {"pseudo_labels": "all", "threshold": 0.0},
        {"recluster_every": 1},
        {"class_weights": False},
        {"cluster_starts": 10},
        {"mean_loss": True},
        {"unit_rows": True},
        {"stop_on": "loss"},
    ],
)
def test_every_ablation_and_reading_changes_the_outcome(form, fields):
    task = small_task()
    whole = {"alpha": 2, "threshold": 0.3, "max_epochs": 30, "patience": 5}
    full = probabilities(task, **whole)
    assert not torch.allclose(probabilities(task, **whole | fields), full, atol=1e-4)


def test_structural_alone_never_clusters(form, monkeypatch):
    monkeypatch.setattr(form, "kmeans", None)
    monkeypatch.setattr(quick, "semantic_propagate", None)
    assert torch.isfinite(probabilities(small_task(), encoders="structural")).all()


def test_semantic_alone_knows_no_paths(form):
    task = small_task()
    near = probabilities(task, encoders="semantic", alpha=1)
    assert torch.equal(near, probabilities(task, encoders="semantic", alpha=3))


# Clusters.


@pytest.fixture
def clusterings(form, monkeypatch):
    """Every call of k-means: epochs seen before it, width of the rows, start and outcome."""
    calls, real = [], form.kmeans

    def spy(x, k, seed, *, start=None, **options):
        found = real(x, k, seed, start=start, **options)
        last = None if start is None else start.clone()
        calls.append((len(epochs), x.shape[1], last, found.clone()))
        return found

    epochs = []
    monkeypatch.setattr(form, "kmeans", spy)
    return calls, epochs


@pytest.mark.parametrize(
    ("fields", "expected"),  # epoch and width: 64 features, or embeddings of width 2 x 8
    [
        ({"recluster_every": 3}, [(0, 64), (0, 16), (3, 16), (6, 16)]),
        ({"recluster_every": 0, "layers": 3}, [(0, 64), (0, 16), (0, 16)]),
        ({"recluster_every": 1, "layers": 1}, [(0, 64)]),
    ],
)
def test_clustered_at_the_start_and_every_so_many_epochs(clusterings, fields, expected):
    calls, epochs = clusterings
    settings = {"max_epochs": 7, "clusters_per_class": 4, "hidden": 8}
    method = UniGNN(**settings | fields)
    method.fit(small_task(), seed=0, on_epoch=lambda history: epochs.append(history.epochs))
    assert [call[:2] for call in calls] == expected
    starts, found = [call[2] for call in calls], [call[3] for call in calls]
    assert [start is None for start in starts] == [epoch == 0 for epoch, _ in expected]
    for place in range(2, len(expected) if fields["recluster_every"] else 0):
        assert torch.equal(starts[place], found[place - 1])  # from the clusters before


def test_restored_clusters_belong_to_the_best_epoch(form, monkeypatch):
    scores = iter([0.1, 0.2, 0.9, 0.3, 0.2, 0.1])
    monkeypatch.setattr(form, "stopping_score", lambda *args: torch.tensor(next(scores)))
    found = []

    def roll(x, k, seed, *, start=None, **options):  # other clusters each time
        found.append((torch.arange(x.shape[0]) + len(found)) % k)
        return found[-1]

    monkeypatch.setattr(form, "kmeans", roll)
    task = small_task()
    method = UniGNN(max_epochs=5, clusters_per_class=4, recluster_every=1).fit(task, seed=0)
    assert method.history_[0].best_epoch == 2
    assert len(found) == 7  # the features, then six epochs
    assert torch.equal(method.net_.clusters_0, found[0])
    assert torch.equal(method.net_.clusters_1, found[3])
    # and the answer is that of these clusters
    with torch.no_grad():
        inputs = method._inputs(task.graph)
        expected = method._forward(inputs, lambda layer, _: found[3 * layer]).softmax(1)
    torch.testing.assert_close(method.predict_proba(task.graph), expected, rtol=0, atol=1e-6)


def test_the_best_epoch_is_what_a_shorter_run_ends_with(form, monkeypatch):
    """Weights, clusters and all: stop at the best epoch, or go on and come back to it."""
    answers = []
    for max_epochs in (4, 9):
        scores = iter([0.1, 0.2, 0.3, 0.4, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5])
        monkeypatch.setattr(form, "stopping_score", lambda *args, s=scores: torch.tensor(next(s)))
        answers.append(probabilities(small_task(), max_epochs=max_epochs, recluster_every=2))
    assert torch.equal(*answers)


def test_a_new_graph_takes_the_nearest_trained_cluster(form):
    task = small_task()
    method = UniGNN(**QUICK).fit(task, seed=0)
    clusters, x = method.net_.clusters_0, task.graph.x
    means = torch.stack([x[clusters == k].mean(0) for k in range(method.num_clusters)])
    state = method._state()
    torch.testing.assert_close(state["means.0"], means)
    shifted = task.graph.clone()
    shifted.x = x[torch.randperm(150, generator=torch.Generator().manual_seed(0))]
    found = method._known_or_nearest(shifted)(0, shifted.x)
    distance = torch.cdist(shifted.x.double(), means.double())
    torch.testing.assert_close(
        distance.gather(1, found[:, None]).squeeze(1), distance.min(1).values, rtol=1e-5, atol=1e-4
    )
    assert torch.equal(method._known_or_nearest(task.graph)(0, x), clusters)


def test_too_many_clusters_are_refused(form):
    message = "clusters_per_class=60 makes 180 clusters of 150 nodes; use a smaller one"
    with pytest.raises(ValueError, match=message):
        UniGNN(clusters_per_class=60).fit(small_task(), seed=0)
    alone = UniGNN(clusters_per_class=50, max_epochs=0)  # one for every node
    assert alone.fit(small_task(), seed=0).num_clusters == 150


# Ctrl-C.


@pytest.mark.parametrize("stop_at", [0, 3])
def test_ctrl_c_leaves_the_best_model_so_far(form, monkeypatch, stop_at):
    """In the middle of a clustering; before the first epoch there is nothing to keep."""
    real, calls = form.kmeans, []

    def stop(*args, **options):
        calls.append(args)
        if len(calls) > stop_at:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(form, "kmeans", stop)
    task, method = small_task(), UniGNN(max_epochs=50, clusters_per_class=4, recluster_every=2)
    if not stop_at:
        with pytest.raises(KeyboardInterrupt):
            method.fit(task, seed=0)
        assert not method.is_fitted
        return
    assert method.fit(task, seed=0).history_[0].interrupted
    values = method.predict_proba(task.graph)
    monkeypatch.setattr(form, "kmeans", real)
    assert torch.equal(values, probabilities(task, max_epochs=3, recluster_every=2))


def complete_graph(size):
    pairs = (torch.ones(size, size) - torch.eye(size)).nonzero().T
    return Data(x=normal(size, 4, dtype=torch.float32), edge_index=pairs, num_nodes=size)


def test_alpha_is_one_where_two_steps_reach_too_much():
    dense, sparse = (complete_graph(unignn.MAX_TWO_STEP_PATHS + n) for n in (2, 1))
    assert (unignn._auto_alpha(dense), unignn._auto_alpha(sparse)) == (1, 2)
    assert UniGNN.graph_defaults(dense) == {"patience": 100}


@pytest.mark.parametrize(("paths", "number"), [(0, 1), (10**6, 2)])
def test_auto_is_the_same_as_the_number_that_it_stands_for(paths, number, monkeypatch):
    monkeypatch.setattr(unignn, "MAX_TWO_STEP_PATHS", paths)
    task = small_task()
    auto, fixed = (UniGNN(alpha=a, **QUICK).fit(task, seed=1) for a in ("auto", number))
    assert (auto.alpha, auto.alpha_, fixed.alpha_) == ("auto", number, number)
    assert torch.equal(auto.predict_proba(task.graph), fixed.predict_proba(task.graph))


def test_a_saved_model_keeps_its_alpha(tmp_path, monkeypatch):
    monkeypatch.setattr(unignn, "MAX_TWO_STEP_PATHS", 10**6)
    task = small_task()
    model = UniGNN(max_epochs=3, clusters_per_class=4).fit(task, seed=1)
    model.save(tmp_path / "model")
    monkeypatch.setattr(unignn, "MAX_TWO_STEP_PATHS", 0)
    loaded = load_model(tmp_path / "model")
    assert (loaded.alpha, loaded.alpha_) == ("auto", 2)
    bigger = with_graph(task, edge_index=complete_graph(150).edge_index).graph
    assert torch.equal(loaded.predict_proba(bigger), model.predict_proba(bigger))


# Readings of what the paper leaves open.


def test_the_mean_loss_changes_two_weights_only(form):
    """Adam does not see the scale of a loss: dividing by C is C times both other terms."""
    task, classes = small_task(), 3
    settings = {"dropout": 0.0, "threshold": 0.2, "max_epochs": 12, "clusters_per_class": 4}
    mean = UniGNN(**settings, mean_loss=True, weight_decay=1e-3)
    equal = UniGNN(**settings, pseudo_weight=classes, weight_decay=classes * 1e-3)
    values = [m.fit(task, seed=2).predict_proba(task.graph) for m in (mean, equal)]
    torch.testing.assert_close(*values, rtol=1e-3, atol=1e-4)


def test_training_stops_by_what_was_asked_for(form):
    task = small_task()
    for on in ("score", "loss", "accuracy"):
        model = UniGNN(**QUICK, stop_on=on).fit(task, seed=0)
        logits = model.predict_proba(task.graph).log()
        expected = float(stopping_score(on, logits, task))
        assert model.history_[0].best_score == pytest.approx(expected, rel=1e-5)


def test_unit_rows_hold_for_another_graph(form):
    task = small_task()
    model = UniGNN(max_epochs=3, clusters_per_class=4, unit_rows=True).fit(task, seed=1)
    longer = task.graph.clone()
    longer.x = torch.cat([longer.x, 5 * longer.x[:1]])  # another length, the same direction
    clusters = model._known_or_nearest(longer)(0, longer.x)
    assert clusters[-1] == clusters[0]


def test_readings_of_former_versions_are_translated():
    assert UniGNN.current_params({"alpha": 2}) == {"alpha": 2}
    assert UniGNN.current_params({"readings": " "}) == {}
    both = {"mean_loss": True, "unit_rows": True}
    assert UniGNN.current_params({"readings": "mean-loss, unit-rows"}) == both
    for text, on in (("stop-on-loss", "loss"), ("stop-on-accuracy", "accuracy")):
        assert renamed_params(UniGNN, {"readings": text, "alpha": 1}) == {"alpha": 1, "stop_on": on}
    with pytest.raises(ValueError, match=r"some of mean-loss, .* got 'mean'"):
        UniGNN.current_params({"readings": "mean"})


def test_readings_of_commands_experiments_and_stores():
    params, sentences = parse_settings(["unignn"], ["readings=unit-rows, mean-loss"])
    assert params == {"unignn": {"unit_rows": True, "mean_loss": True}}
    assert sentences == ["readings of Uni-GNN is now mean_loss, unit_rows and stop_on."]
    setup = Setup(dataset="toy", imbalance="natural", fields={})
    new, same = (
        job_spec(setup, "unignn", settings, 5)
        for settings in ({"mean_loss": True}, {"readings": "mean-loss"})
    )
    assert new.key == same.key
    stored = {k: v for k, v in new.method_fields.items() if k not in UniGNN.tuned_params}
    old = dataclasses.replace(new, method_fields={**stored, "readings": "mean-loss"})
    assert list(known_runs([Row(job=old)])) == [new.key]
    assert resolve(old).method == UniGNN(mean_loss=True)


def test_more_pairs_than_memory_are_refused():
    method = UniGNN(alpha=2, memory_limit=10_000)
    with pytest.raises(
        MemoryError, match=r"at alpha=2 .* Use a smaller alpha or raise memory_limit"
    ):
        method.fit(small_task(), seed=0)


def test_a_saved_alpha_that_nobody_could_wait_for_is_refused(tmp_path):
    model = UniGNN(max_epochs=1, clusters_per_class=4).fit(small_task(), seed=1)
    model.alpha_ = 2**63 - 1
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="model is damaged: alpha must be at most 100"):
        load_model(tmp_path / "model")


def test_means_from_a_file_must_be_those_of_its_clusters():
    model = UniGNN(max_epochs=1, clusters_per_class=2, hidden=4).fit(small_task(), seed=0)
    state = model._state()
    state["means.0"] = torch.cat([state["means.0"]] * 2)
    with pytest.raises(ValueError, match="means of clusters in every layer"):
        model._load_state(state)
