"""explain(): the labelled nodes and the clusters that a prediction came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.task import HIDDEN_LABEL, Task
from evengraph.methods import Method
from evengraph.nn.tracing import Contributions
from evengraph.ops.signature import feature_signatures, matching_signatures
from evengraph.pipeline.ego_graph import Surroundings, picture_of


@dataclass(frozen=True, kw_only=True)
class Influence:
    """What one labelled node gave to a prediction.

    Args:
        node: Its number.
        label: Its class.
        distance: Steps from the node that is explained; none if no path leads there.
        shared_clusters: Layers, counted from 1, in which both are in one cluster.
        contribution: Its part of the margin; above zero it speaks for the predicted class.
        along_paths: Of that, what came over structural connectivity alone.
        within_clusters: Of that, what came through shared clusters alone.
    """

    node: int
    label: int
    distance: int | None
    shared_clusters: tuple[int, ...]
    contribution: float
    along_paths: float | None
    within_clusters: float | None


@dataclass(frozen=True, kw_only=True)
class OwnCluster:
    """A cluster that the node is in.

    Args:
        layer: Counted from 1.
        cluster: Its number.
        size: How many nodes are in it.
        labelled: Of those, how many are labelled, for each class.
        contribution: What its other nodes gave through clusters alone, in any layer.
    """

    layer: int
    cluster: int
    size: int
    labelled: tuple[int, ...]
    contribution: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Where a prediction came from.

    The margin, the logit of the predicted class less that of the runner-up, is the sum of what
    the features of nodes gave (`own`, `from_labelled`, `from_unlabelled`) and of `bias`, up to
    rounding. Where no other class is possible it is the logit itself, and there is no runner-up.

    Args:
        node: Which node.
        predicted: Its class.
        runner_up: The class that came next.
        probability: Of the predicted class.
        probabilities: Of every class.
        label: The node's own label, if it is one that was learnt from.
        margin: What is taken apart.
        own: What the node's own features gave.
        from_labelled: What the other labelled nodes gave, all of them.
        from_unlabelled: What all other nodes gave.
        bias: What does not depend on any features.
        by_class: What the labelled nodes of each class gave.
        labelled: The labelled nodes that gave most, for or against.
        clusters: The clusters that the node is in, one for each layer.
        class_names: Names of the classes, if they have some.
        ids: The id of every node of the graph, if they have some; not part of `as_dict`.
        neighbourhood: A small graph around the node, for a picture: `node_id`, `edge_index`, `y`
            (-1: not labelled), `predicted`, `contribution`, `distance` (-1: no path) and, with
            clusters, `cluster` of the last layer; its first node is the node itself.
    """

    node: int
    predicted: int
    runner_up: int | None
    probability: float
    probabilities: tuple[float, ...]
    label: int | None
    margin: float
    own: float
    from_labelled: float
    from_unlabelled: float
    bias: float
    by_class: tuple[float, ...]
    labelled: tuple[Influence, ...]
    clusters: tuple[OwnCluster, ...]
    class_names: tuple[str, ...]
    ids: tuple[str, ...]
    neighbourhood: Data

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        del plain["ids"]
        for name in ("labelled", "clusters"):
            plain[name] = [asdict(one) for one in plain[name]]
        plain["neighbourhood"] = {
            name: value.tolist() if isinstance(value, Tensor) else value
            for name, value in self.neighbourhood.to_dict().items()
        }
        return plain


def explain(
    model: Method,
    graph: Data,
    node: int,
    *,
    task: Task | None = None,
    labels: Tensor | None = None,
    ids: tuple[str, ...] = (),
    top: int = 10,
) -> Explanation:
    """Which labelled nodes, and which clusters, the prediction for a node came from.

    Gradient times input, summed over the features of each node: for the networks here, linear
    between their kinks, that is an exact account of the margin between the two likeliest classes.
    Uni-GNN's parts are told apart by their way, over structural connectivity or through shared
    clusters, with the clusters held as they are. It costs a few predictions of the graph.

    What a label did in training, through the weights, is in no node's part: an account is given
    of what the fitted network takes from the features of nodes.

    Args:
        model: A fitted method, or a loaded one.
        graph: A graph that it can predict.
        node: Whose prediction is explained.
        task: Says which nodes are labelled; they come first in the graph.
        labels: Says it instead, -1 for nodes without label. By default labelled are those that
            were so in training, where they stand in the same place with the same features.
        ids: The id of every node, to be part of the explanation.
        top: How many labelled nodes to list.

    Shapes:
        labels: int64, (N,)
    """
    bare = model.model_input(graph)
    num_nodes = graph.num_nodes
    if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < num_nodes:
        raise ValueError(f"node must lie between 0 and {num_nodes - 1}, got {node!r}.")
    if top < 0:
        raise ValueError(f"top must be at least 0, got {top}.")
    known = _labels(model, bare, task, labels).cpu()
    predicted = model.predict_proba(graph).cpu()
    order = predicted[node].argsort(descending=True, stable=True)[:2].tolist()
    direction = torch.zeros(model.num_classes_, device=bare.x.device)
    direction[order[0]] = 1
    runner_up = order[1] if len(order) > 1 and predicted[node, order[1]] > 0 else None
    if runner_up is not None:
        direction[runner_up] = -1
    parts = _on_cpu(model.contributions(bare, node, direction))
    around = Surroundings(bare.edge_index, num_nodes, node)
    others = known.clone()
    others[node] = HIDDEN_LABEL
    listed = _strongest(parts.total, others, top)
    is_labelled = others >= 0
    own, from_labelled = float(parts.total[node]), float(parts.total[is_labelled].sum())
    everything = float(parts.total.sum())
    return Explanation(
        node=node,
        predicted=order[0],
        runner_up=runner_up,
        probability=float(predicted[node, order[0]]),
        probabilities=tuple(predicted[node].tolist()),
        label=int(known[node]) if known[node] >= 0 else None,
        margin=float(parts.value),
        own=own,
        from_labelled=from_labelled,
        from_unlabelled=everything - own - from_labelled,
        bias=float(parts.value) - everything,
        by_class=tuple(float(parts.total[others == c].sum()) for c in range(model.num_classes_)),
        labelled=tuple(_influence(parts, around, node, one, int(known[one])) for one in listed),
        clusters=_clusters(parts, known, node, model.num_classes_),
        class_names=model.class_names_,
        ids=ids,
        neighbourhood=picture_of(
            around,
            listed,
            parts.total,
            y=known,
            predicted=predicted.argmax(1),
            contribution=parts.total,
            **{"cluster": parts.clusters[-1]} if parts.clusters else {},
        ),
    )


def _labels(model: Method, graph: Data, task: Task | None, labels: Tensor | None) -> Tensor:
    """Labels that were learnt from, -1 for all other nodes, (N,)."""
    num_nodes = graph.num_nodes
    found = torch.full((num_nodes,), HIDDEN_LABEL, device=graph.x.device)
    if task is not None and labels is not None:
        raise ValueError("Give a task or labels, not both.")
    if labels is not None:
        if labels.shape != (num_nodes,) or labels.is_floating_point():
            raise ValueError(f"labels must hold a whole number for each of {num_nodes} nodes.")
        if labels.numel() and not -1 <= int(labels.min()) <= int(labels.max()) < model.num_classes_:
            raise ValueError(f"labels must lie between -1 and {model.num_classes_ - 1}.")
        return labels.to(found)
    if task is not None:
        size = task.graph.num_nodes
        if size > num_nodes:
            raise ValueError(f"The task has {size} nodes, more than the {num_nodes} of the graph.")
        found[:size] = torch.where(task.train, task.graph.y, HIDDEN_LABEL).to(found)
        return found
    nodes, classes, signatures = model.labelled_
    here = nodes < num_nodes
    nodes, classes, signatures = nodes[here], classes[here], signatures[here]
    same = matching_signatures(feature_signatures(graph.x[nodes]), signatures)
    if not same.any():
        raise ValueError("No node that the model learnt from is in this graph: give labels.")
    found[nodes[same]] = classes[same]
    return found


def _on_cpu(parts: Contributions) -> Contributions:
    value, total, paths, within, clusters = parts
    return Contributions(
        value.cpu(),
        total.cpu().double(),
        None if paths is None else paths.cpu().double(),
        None if within is None else within.cpu().double(),
        tuple(one.cpu() for one in clusters),
    )


def _strongest(total: Tensor, labels: Tensor, top: int) -> list[int]:
    """Labelled nodes by the size of their part, those that gave nothing left out."""
    nodes = ((labels >= 0) & (total != 0)).nonzero().squeeze(1)
    order = total[nodes].abs().argsort(descending=True, stable=True)
    strongest: list[int] = nodes[order[:top]].tolist()
    return strongest


def _influence(
    parts: Contributions, around: Surroundings, node: int, other: int, label: int
) -> Influence:
    shared = [layer for layer, one in enumerate(parts.clusters, 1) if one[node] == one[other]]
    paths, within = parts.along_paths, parts.within_clusters
    return Influence(
        node=other,
        label=label,
        distance=around.distance(other),
        shared_clusters=tuple(shared),
        contribution=float(parts.total[other]),
        along_paths=None if paths is None else float(paths[other]),
        within_clusters=None if within is None else float(within[other]),
    )


def _clusters(
    parts: Contributions, labels: Tensor, node: int, num_classes: int
) -> tuple[OwnCluster, ...]:
    found = []
    for layer, assignment in enumerate(parts.clusters, 1):
        members = assignment == assignment[node]
        known = labels[members]
        within = parts.within_clusters
        assert within is not None
        found.append(
            OwnCluster(
                layer=layer,
                cluster=int(assignment[node]),
                size=int(members.sum()),
                labelled=tuple(torch.bincount(known[known >= 0], minlength=num_classes).tolist()),
                contribution=float(within[members].sum() - within[node]),
            )
        )
    return tuple(found)
