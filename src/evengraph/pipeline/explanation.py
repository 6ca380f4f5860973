"""explain(): attribute a prediction to labelled nodes, columns and clusters; maps of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.task import HIDDEN_LABEL, Task
from evengraph.methods import Method
from evengraph.methods.bases.method import model_input
from evengraph.ops.features import feature_signatures, matching_signatures
from evengraph.ops.sparse import undirected_adjacency
from evengraph.pipeline.attribution import Contributions, contributions
from evengraph.pipeline.model_info import NewNodes

MAX_NODES = 40  # more make a picture unreadable
MAX_PATH = 4  # edges of the longest path that is drawn


class Distances:
    """Distances from one node to all others, with edges read in both directions."""

    def __init__(self, edge_index: Tensor, num_nodes: int, node: int) -> None:
        self.node = node
        self.matrix = undirected_adjacency(edge_index, num_nodes)
        self.steps = np.full(num_nodes, -1)  # -1: no path
        self.steps[node] = 0
        frontier = np.array([node])
        while frontier.size:
            neighbours = np.unique(self.matrix[frontier].indices)
            unvisited = neighbours[self.steps[neighbours] < 0]
            self.steps[unvisited] = self.steps[frontier[0]] + 1
            frontier = unvisited

    def to(self, other: int) -> int | None:
        """The distance to another node; None without a path."""
        return int(self.steps[other]) if self.steps[other] >= 0 else None

    def path(self, other: int) -> list[int]:
        """The nodes of a shortest path from another node, which comes first."""
        nodes = [other]
        while self.steps[nodes[-1]] > 0:
            neighbours = self.matrix[[nodes[-1]]].indices
            closer = neighbours[self.steps[neighbours] < self.steps[nodes[-1]]]
            nodes.append(int(closer.min()))
        return nodes


def ego_graph(
    distances: Distances, required: Sequence[int], weight: Tensor, **values: Tensor
) -> Data:
    """The subgraph of a node, of required nodes with the paths to them, and of near nodes.

    Near nodes lie within two steps; those with the largest absolute weight come first. `values` of
    every node are carried over to the subgraph.
    """
    steps = distances.steps
    selected = dict.fromkeys([distances.node])  # a set in order
    for other in required:
        draw_path = 0 <= steps[other] <= MAX_PATH
        selected |= dict.fromkeys(reversed(distances.path(other)) if draw_path else [other])
    close = np.flatnonzero((steps >= 0) & (steps <= 2))
    by_weight = np.argsort(-weight.abs().numpy()[close], kind="stable")
    for other in close[by_weight].tolist():
        if len(selected) >= MAX_NODES:
            break
        selected[other] = None
    nodes = torch.tensor(list(selected))
    part = distances.matrix[nodes.numpy()][:, nodes.numpy()].tocoo()
    edges = np.stack([part.row, part.col]).astype(np.int64)
    return Data(
        node_id=nodes,
        edge_index=torch.from_numpy(edges),
        num_nodes=nodes.numel(),
        distance=torch.from_numpy(steps)[nodes],
        **{name: value[nodes] for name, value in values.items()},
    )


@dataclass(frozen=True, kw_only=True)
class Influence:
    """The contribution of one labelled node to a prediction."""

    node: int  # its index
    id: str  # in the user's table; the index as text if the graph has no ids
    label: int  # its class
    distance: int | None  # edges between it and the explained node; None without a path
    shared_clusters: tuple[int, ...]  # layers, counted from 1, in which both are in one cluster
    contribution: float  # to the margin; positive values support the predicted class
    along_paths: float | None  # the part of it that came over structural connectivity alone
    within_clusters: float | None  # the part of it that came through shared clusters alone


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster that holds the explained node."""

    layer: int  # counted from 1
    cluster: int  # its index
    size: int  # number of nodes
    labelled: tuple[int, ...]  # number of labelled nodes per class
    contribution: float  # of its other nodes, through clusters alone, in any layer


@dataclass(frozen=True, kw_only=True)
class ColumnPart:
    """The contribution of one column of the features."""

    column: int  # its index
    name: str
    origin: str  # whose features: `own`, `others`, or a mean over neighbours
    contribution: float  # to the margin; positive values support the predicted class


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """The parts that a prediction is the sum of.

    The margin, the logit of the predicted class minus that of the runner-up, is the sum of the
    contributions of node features (`from_itself`, `from_labelled`, `from_unlabelled`) and of
    `bias`, up to rounding. If no other class is possible, it is the logit itself, and there is no
    runner-up. By columns, it is the sum of `columns`, `other_columns` and `bias`.

    `neighbourhood` is a small graph around the node, to draw: `node_id`, `edge_index`, `y` (-1:
    unlabelled), `predicted`, `contribution`, `distance` (-1: no path) and, with clusters, `cluster`
    of the last layer; its first node is the explained node.
    """

    node: int  # the index of the explained node; `id` is its id
    predicted: int
    runner_up: int | None  # the second most probable class
    probability: float  # of the predicted class
    probabilities: tuple[float, ...]
    label: int | None  # of the node, if it is a training node
    margin: float  # the value that is explained
    from_itself: float  # what the features of the node contribute
    from_labelled: float  # what all other labelled nodes contribute
    from_unlabelled: float
    bias: float  # what average nodes get: the biases, and the mean of the features
    by_class: tuple[float, ...]  # the contribution of the labelled nodes per class
    labelled: tuple[Influence, ...]  # those with the largest contributions, for or against
    columns: tuple[ColumnPart, ...]  # those with the largest contributions, for or against
    other_columns: float  # of all other columns, and of labels where they are spread
    clusters: tuple[Cluster, ...]  # that hold the node, one per layer
    class_names: tuple[str, ...]  # may be empty
    class_counts: tuple[int, ...]  # labelled nodes
    ids: tuple[str, ...]  # of every node of the graph; may be empty; not part of `as_dict`
    neighbourhood: Data

    @property
    def id(self) -> str:
        """The id of the explained node; its index as text if the graph has no ids."""
        return self.ids[self.node] if self.ids else str(self.node)

    def _repr_html_(self) -> str:
        """The figure, for notebooks."""
        from evengraph.report.notebook import explanation_html

        return explanation_html(self.as_dict(), self.ids)

    def as_dict(self) -> dict[str, Any]:
        """All fields but `ids` as JSON can hold them."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        del plain["ids"]
        plain["id"] = self.id
        for name in ("labelled", "columns", "clusters"):
            plain[name] = [asdict(part) for part in plain[name]]
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
    feature_names: Sequence[str] = (),
    top: int = 10,
) -> Explanation:
    """Attribute the prediction for a node to labelled nodes, columns and clusters.

    Computes gradient times input, summed over the features of each node. The networks here are
    piecewise linear, so this decomposes the margin between the two most probable classes exactly,
    into what the features of nodes add to that of average nodes, the bias. Trees give what each
    split on a node's paths adds, label propagation what each label adds, an average what its
    members give. Uni-GNN's contributions are split by whether they came over structural
    connectivity or through shared clusters, with the clusters held fixed. The cost is that of a few
    predictions.

    The influence of labels on the weights during training is not part of it: it explains what the
    fitted network takes from the features of nodes.

    Args:
        model: A fitted method.
        graph: A graph that it can predict.
        node: The index of the node to explain.
        task: The task whose training nodes are the labelled nodes; they come first in the graph.
        labels: The labels instead of a task, -1 for unlabelled nodes. By default the training
            nodes of the model that have the same index and features in this graph; another graph
            has none.
        ids: The id of every node, to be part of the explanation.
        feature_names: The names of the columns; numbers by default.
        top: The number of labelled nodes and of columns to list.

    Shapes:
        labels: int64, (N,)
    """
    bare = model_input(model, graph)
    if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < graph.num_nodes:
        raise ValueError(f"node must lie between 0 and {graph.num_nodes - 1}, got {node!r}.")
    if top < 0:
        raise ValueError(f"top must be at least 0, got {top}.")
    known = _labels(model, bare, task, labels).cpu()
    predicted = model.predict_proba(graph).cpu()
    first, *rest = predicted[node].argsort(descending=True, stable=True)[:2].tolist()
    runner_up = rest[0] if rest and predicted[node, rest[0]] > 0 else None
    direction = torch.zeros(predicted.shape[1])  # whose product with logits is the margin
    direction[first] = 1
    if runner_up is not None:
        direction[runner_up] = -1
    parts = _on_cpu(contributions(model, bare, node, direction.to(bare.x.device)))
    distances = Distances(bare.edge_index, graph.num_nodes, node)
    others = known.clone()
    others[node] = HIDDEN_LABEL
    contributing = ((others >= 0) & (parts.total != 0)).nonzero().squeeze(1)
    order = parts.total[contributing].abs().argsort(descending=True, stable=True)
    listed: list[int] = contributing[order[:top]].tolist()
    from_itself, total = float(parts.total[node]), float(parts.total.sum())
    from_labelled = float(parts.total[others >= 0].sum())
    names = feature_names or [f"feature {column}" for column in range(bare.num_features)]
    columns = _columns(parts.columns, [*names, "log degree"], top)  # which some methods add
    return Explanation(
        node=node,
        predicted=first,
        runner_up=runner_up,
        probability=float(predicted[node, first]),
        probabilities=tuple(predicted[node].tolist()),
        label=int(known[node]) if known[node] >= 0 else None,
        margin=float(parts.value),
        from_itself=from_itself,
        from_labelled=from_labelled,
        from_unlabelled=total - from_itself - from_labelled,
        bias=float(parts.value) - total,
        by_class=tuple(float(parts.total[others == c].sum()) for c in range(model.num_classes_)),
        labelled=tuple(
            _influence(parts, distances, other, int(known[other]), ids) for other in listed
        ),
        columns=columns,
        other_columns=total - sum(part.contribution for part in columns),
        clusters=_clusters(parts, known, node, model.num_classes_),
        class_names=model.class_names_,
        class_counts=tuple(int((known == c).sum()) for c in range(model.num_classes_)),
        ids=ids,
        neighbourhood=ego_graph(
            distances,
            listed,
            parts.total,
            y=known,
            predicted=predicted.argmax(1),
            contribution=parts.total,
            **{"cluster": parts.clusters[-1]} if parts.clusters else {},
        ),
    )


def _labels(model: Method, graph: Data, task: Task | None, labels: Tensor | None) -> Tensor:
    """The labels of training nodes, -1 for all other nodes, (N,)."""
    num_nodes = graph.num_nodes
    result = torch.full((num_nodes,), HIDDEN_LABEL, device=graph.x.device)
    if task is not None and labels is not None:
        raise ValueError("task and labels exclude each other, got both.")
    if labels is not None:
        if labels.shape != (num_nodes,) or labels.is_floating_point():
            raise ValueError(f"labels must hold one integer for each of the {num_nodes} nodes.")
        if labels.numel() and not -1 <= int(labels.min()) <= int(labels.max()) < model.num_classes_:
            raise ValueError(f"labels must lie between -1 and {model.num_classes_ - 1}.")
        return labels.to(result)
    if task is not None:
        size = task.graph.num_nodes
        if size > num_nodes:
            raise ValueError(f"The task has {size} nodes, more than the {num_nodes} of the graph.")
        result[:size] = torch.where(task.train, task.graph.y, HIDDEN_LABEL).to(result)
        return result
    nodes, classes, signatures = model.labelled_
    inside = nodes < num_nodes
    nodes, classes, signatures = nodes[inside], classes[inside], signatures[inside]
    same = matching_signatures(feature_signatures(graph.x[nodes]), signatures)
    result[nodes[same]] = classes[same]
    return result


def _on_cpu(parts: Contributions) -> Contributions:
    value, total, paths, within, clusters, columns = parts
    return Contributions(
        value.cpu(),
        total.cpu().double(),
        None if paths is None else paths.cpu().double(),
        None if within is None else within.cpu().double(),
        tuple(assignment.cpu() for assignment in clusters),
        {origin: values.cpu().double() for origin, values in columns.items()},
    )


def _columns(parts: Mapping[str, Tensor], names: Sequence[str], top: int) -> tuple[ColumnPart, ...]:
    """The columns with the largest contributions."""
    pairs = [
        (origin, column, float(values[column]))
        for origin, values in parts.items()
        for column in values.abs().topk(min(top, values.numel())).indices.tolist()
        if values[column] != 0
    ]
    pairs.sort(key=lambda pair: -abs(pair[2]))
    return tuple(
        ColumnPart(column=column, name=names[column], origin=origin, contribution=value)
        for origin, column, value in pairs[:top]
    )


def _influence(
    parts: Contributions, distances: Distances, other: int, label: int, ids: Sequence[str]
) -> Influence:
    node, paths, within = distances.node, parts.along_paths, parts.within_clusters
    layers = enumerate(parts.clusters, 1)
    return Influence(
        node=other,
        id=ids[other] if ids else str(other),
        label=label,
        distance=distances.to(other),
        shared_clusters=tuple(i for i, cluster in layers if cluster[node] == cluster[other]),
        contribution=float(parts.total[other]),
        along_paths=None if paths is None else float(paths[other]),
        within_clusters=None if within is None else float(within[other]),
    )


def _clusters(
    parts: Contributions, labels: Tensor, node: int, num_classes: int
) -> tuple[Cluster, ...]:
    clusters, within = [], parts.within_clusters
    for layer, assignment in enumerate(parts.clusters, 1):
        members = assignment == assignment[node]
        known = labels[members]
        assert within is not None
        clusters.append(
            Cluster(
                layer=layer,
                cluster=int(assignment[node]),
                size=int(members.sum()),
                labelled=tuple(torch.bincount(known[known >= 0], minlength=num_classes).tolist()),
                contribution=float(within[members].sum() - within[node]),
            )
        )
    return tuple(clusters)


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A node with a high probability of the positive class."""

    id: str
    probability: float
    reasons: tuple[str, ...]


def suspects(
    method: Method,
    nodes: NewNodes,
    probabilities: np.ndarray,
    *,
    positive: int,
    count: int,
    graph: Data | None = None,
) -> list[Suspect]:
    """Rank nodes by their probability of a class and explain the first."""
    if count < 1:
        raise ValueError(f"top must be at least 1, got {count}.")
    tables = nodes.tables
    graph = tables.graph if graph is None else graph
    indices = np.arange(graph.num_nodes)[nodes.rows]
    ids, names = tuple(map(str, tables.ids.tolist())), tables.encoder.names
    found = []
    for place in np.argsort(-probabilities, kind="stable")[:count].tolist():
        node = int(indices[place])
        explanation = explain(method, graph, node, ids=ids, feature_names=names)
        reasons = tuple(reasons_for(explanation, positive))
        found.append(Suspect(id=ids[node], probability=probabilities[place], reasons=reasons))
    return found


def reasons_for(explanation: Explanation, positive: int) -> list[str]:
    """What speaks for a class, in a few words each: columns, then a labelled node of the class."""
    sign = 1 if explanation.predicted == positive else -1
    parts = {column_words(part): sign * part.contribution for part in explanation.columns}
    largest = max(parts.values(), default=0.0)
    # of those that are worth the room the three largest
    strong = [name for name, value in parts.items() if value > max(0.05 * largest, 0.0)]
    reasons = sorted(strong, key=lambda name: -parts[name])[:3]
    near = [
        one
        for one in explanation.labelled
        if one.label == positive and sign * one.contribution > 0 and one.distance
    ]
    if near:
        first = max(near, key=lambda one: sign * one.contribution)
        steps = "neighbour" if first.distance == 1 else f"{first.distance} steps away"
        known = explanation.class_names[positive] if explanation.class_names else str(positive)
        reasons.append(f"{explanation.ids[first.node]} ({known}, {steps})")
    return reasons


def column_words(part: ColumnPart) -> str:
    """A column, and whose it is unless it is the node's own."""
    if part.origin == "own":
        return part.name
    return f"{part.name} ({'neighbourhood' if part.origin == 'others' else part.origin})"


MOST_NODES = 3000  # of a picture that is still readable


def place_nodes(method: Method, task: Task, probabilities: Tensor) -> dict[str, Any]:
    """Lay nodes out by t-SNE of their embeddings, or of the probabilities without any.

    Classes are the true ones, also of test nodes: nothing is learnt from the picture.
    """
    probabilities = probabilities.cpu()
    embeddings, clusters = probabilities.clamp(min=1e-6).log(), None
    if hasattr(method, "embeddings"):
        embeddings, clusters = method.embeddings()
    step = -(-task.graph.num_nodes // MOST_NODES)
    nodes = torch.arange(0, task.graph.num_nodes, step)
    from sklearn.manifold import TSNE  # takes a second

    layout = TSNE(init="pca", perplexity=min(30, (nodes.numel() - 1) / 3), random_state=0)
    plane = torch.from_numpy(layout.fit_transform(embeddings.cpu()[nodes].numpy()))
    plane = plane - plane.amin(0)
    plane = 100 * plane / plane.amax(0).clamp(min=1e-9)
    return {
        "x": [round(value, 2) for value in plane[:, 0].tolist()],
        "y": [round(value, 2) for value in plane[:, 1].tolist()],
        "classes": task.graph.y.cpu()[nodes].tolist(),
        "predicted": probabilities.argmax(1)[nodes].tolist(),
        "clusters": None if clusters is None else clusters.cpu()[nodes].tolist(),
        "train": task.train.cpu()[nodes].tolist(),
        "class_names": list(task.class_names),
        "of": "embeddings" if hasattr(method, "embeddings") else "probabilities",
    }
