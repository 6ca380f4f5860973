"""inspect_graph: measure a graph before training, and say in sentences what that means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import edge_weight
from evengraph.inspection.measures import (
    SUSPICIOUS,
    Bools,
    Components,
    Degrees,
    Edges,
    Features,
    Homophily,
    Ints,
    Labels,
    Leak,
    Matrix,
    Reach,
    component_ids,
    count_components,
    count_degrees,
    count_labels,
    leaks_in_features,
    leaks_in_table,
    measure_features,
    measure_homophily,
    measure_reach,
    read_edges,
)
from evengraph.methods import METHODS
from evengraph.methods.bases.network import NetworkMethod
from evengraph.metrics.multiclass import has_rare_class
from evengraph.metrics.registry import METRICS
from evengraph.tables.cells import plural
from evengraph.tables.columns import alike_classes, doubtful_classes


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The result of `inspect_graph`.

    `findings` are the measurements in sentences, warnings first, then notes, then good news;
    `recommendation` says what to do.
    """

    name: str
    num_nodes: int
    labels: Labels
    homophily: Homophily
    edges: Edges
    degrees: Degrees
    components: Components
    reach: Reach
    features: Features
    leaks: tuple[Leak, ...]
    findings: tuple[Finding, ...] = ()
    recommendation: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from evengraph.report.notebook import inspection_html

        return inspection_html(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The inspection as JSON-compatible values; undefined ones are None."""
        from evengraph import __version__

        content = {"schema": 1, "evengraph": __version__, **asdict(self)}
        return dict(json.loads(json.dumps(content)))  # tuples become lists


def inspect_graph(
    graph: Data,
    *,
    hops: int = 4,
    table: Any = None,
    label: str | None = None,
    id: str | None = None,
    feature_names: Sequence[str] | None = None,
) -> Inspection:
    """Measure classes, edges, reach and features of a graph, and explain the results.

    Every step is sparse and linear in nodes, edges and entries of x. Edges are read in both
    directions.

    Args:
        graph: Edges `edge_index`, labels `y` with -1 for unlabelled, and optional features `x`.
        hops: Largest distance from labelled nodes to count.
        table: The node table that x was encoded from, a pandas DataFrame; leaks are then named
            by its columns.
        label: Its label column; required with a table.
        id: Its id column.
        feature_names: One name per column of x; by default those of the graph, or numbers.

    Shapes:
        graph.x: (N, F), graph.edge_index: (2, E), graph.y: (N,)
    """
    labels, known = _labels(graph)
    names = _class_names(graph, labels)
    neighbours, edges = read_edges(_numpy(graph.edge_index), len(labels))
    component = component_ids(neighbours)
    x = _features(graph)
    features = measure_features(x, labels, known, len(names))
    leaks: list[Leak] = []
    if table is not None:
        if label is None:
            raise ValueError("label must name the label column of the table, got None.")
        leaks = leaks_in_table(table, label, id)
    if not leaks:  # a leaky column of the table would be reported again under another name
        if feature_names is None and "feature_names" in graph:
            feature_names = graph.feature_names
        named = [str(name) for name in feature_names or ()]
        named = named if len(named) == x.shape[1] else []
        leaks = leaks_in_features(x, labels, names, named)
    inspection = Inspection(
        name=str(graph.name) if "name" in graph else "",
        num_nodes=len(labels),
        labels=count_labels(labels, names),
        homophily=measure_homophily(neighbours.pairs, labels, known, len(names)),
        edges=replace(
            edges,
            weighted=edge_weight(graph) is not None,
            relations=tuple(graph.relation_names) if "relation_names" in graph else (),
        ),
        degrees=count_degrees(neighbours),
        components=count_components(component, known),
        reach=measure_reach(neighbours, labels, known, len(names), hops),
        features=features,
        leaks=tuple(leaks),
    )
    return replace(inspection, findings=find(inspection), recommendation=recommend(inspection))


def leak_warnings(graph: Data, names: Sequence[str] = ()) -> list[str]:
    """What `inspect_graph` warns of in the features, which `names` belong to, before a run."""
    leaks, features = _feature_leaks(graph, names)
    found = _about_leaks(leaks, features)
    return [capitalise(text) for level, text in found if level == "warning"]


def doubt(graph: Data, scores: Mapping[str, Any], names: Sequence[str] = ()) -> str:
    """A warning of test scores, in percent, that are too good to be taken on trust, or nothing."""
    labels, _ = _labels(graph)
    rare = has_rare_class(np.bincount(labels[labels >= 0]).tolist())
    metric = "positive_average_precision" if rare else "balanced_accuracy"
    score = scores.get(metric)
    if score is None or score < TOO_GOOD:
        return ""
    text = f"A {METRICS[metric].title} of {score:.1f} is rare in practice: check that every feature"
    leaks = [leak for leak in _feature_leaks(graph, names, NOTABLE)[0] if leak.strength is not None]
    text += " is known before the label is."
    if leaks:
        best = max(leaks, key=lambda leak: leak.strength or 0.0)
        text += f" {capitalise(_column(best))} alone removes {best.strength:.0%} of the error."
    return text


def _feature_leaks(
    graph: Data, names: Sequence[str], least: float = SUSPICIOUS
) -> tuple[list[Leak], Features]:
    (labels, known), x = _labels(graph), _features(graph)
    classes = _class_names(graph, labels)
    features = measure_features(x, labels, known, len(classes))
    return leaks_in_features(x, labels, classes, names, least), features


def _labels(graph: Data) -> tuple[Ints, Bools]:
    if graph.edge_index is None:
        raise ValueError("graph.edge_index must hold the edges; this graph has none.")
    num_nodes = graph.num_nodes
    if not num_nodes:
        raise ValueError("The graph has no nodes.")
    if graph.y is None or graph.y.shape != (num_nodes,):
        raise ValueError(f"graph.y must hold one label for each of the {num_nodes} nodes.")
    labels = _numpy(graph.y).astype(np.int64)
    if labels.min() < -1:
        raise ValueError(f"labels must be -1 for unlabelled or a class, got {labels.min()}.")
    if not (known := labels >= 0).any():
        raise ArgumentError("No node has a label.", argument="label")
    return labels, known


def _class_names(graph: Data, labels: Ints) -> list[str]:
    number = int(labels.max()) + 1
    names = graph.get("class_names") or map("class {}".format, range(number))
    names = [str(name) for name in names]
    if len(names) < number:
        raise ValueError(f"graph.class_names must hold {number} names, got {len(names)}.")
    return names


def _features(graph: Data) -> Matrix:
    x = graph.x
    if x is None:
        return np.zeros((graph.num_nodes, 0), dtype=np.float32)
    if x.layout != torch.strided or x.dim() != 2 or len(x) != graph.num_nodes:
        raise ValueError(
            f"graph.x must be a dense matrix with {graph.num_nodes} rows, "
            f"got {x.layout} of shape {tuple(x.shape)}."
        )
    if x.dtype in (torch.float16, torch.bfloat16):  # NumPy has no bfloat16 and is slow with half
        x = x.float()
    return _numpy(x)


def _numpy(tensor: Tensor) -> Matrix:
    return np.asarray(tensor.detach().cpu().numpy())


LEVELS = ("warning", "note", "good")

BALANCED = 1.5  # largest class over smallest: classes up to this ratio count as balanced
VERY_IMBALANCED = 10.0
FEW_LABELS = 5  # labelled nodes of a class; scores of fewer are unreliable
FEW_EDGES = 30  # edges between labelled nodes; fewer say nothing about homophily
HELPFUL = 0.3  # adjusted homophily from which neighbours are a good guide
MISLEADING = 0.1  # adjusted homophily below which they are not
LOW_CLASS_HOMOPHILY = 0.25  # share of a class's neighbours that are of the class
NEAR_HOPS = 2  # depth of a usual graph network
OUT_OF_REACH = 0.25  # share of nodes too far from a class that makes it under-reached
MANY_CUT_OFF = 0.05  # share of nodes without neighbours, or in components without a label
MANY_DUPLICATES = 0.01  # share of nodes with the features of another
TOO_GOOD = 95.0  # percent on test nodes that real features hardly reach
NOTABLE = 0.3  # share of the error from which a column is named as a reason
MOST_LISTED = 5  # findings of one kind; further ones are summarised
ON_EDGES = ("neighbours", "reach", "parts")  # topics of which there is nothing to say without edges
LEAK_TEXTS = {
    "copy": ("warning", "{0} is a copy of the label: remove it."),
    "label": ("warning", "{0} alone almost determines the label: remove it."),
    "class": (
        "warning",
        "{0} alone almost determines {1}: remove it unless it will be known for new nodes as well.",
    ),
    "unseen": (
        "warning",
        "{0}: {counts[0]:,} of {counts[1]:,} labelled nodes of {1} have values{values} that "
        "{counts[2]:,} of {counts[3]:,} other labelled and {counts[4]:,} of {counts[5]:,} "
        "unlabelled nodes have. It may have been filled in once the label was known: remove it "
        "unless it will be known for new nodes as well.",
    ),
    "id": ("note", "{0} has a different value in every row, like an id: remove it."),
}

Sentences = Iterator[tuple[str, str]]  # level and text


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence about a graph."""

    level: str  # "warning", "note" or "good"
    topic: str
    text: str


def find(inspection: Inspection) -> tuple[Finding, ...]:
    """All findings, warnings first."""
    labels, features, num_nodes = inspection.labels, inspection.features, inspection.num_nodes
    topics = {
        "unlabelled": _about_doubtful_classes(labels),
        "leaks": _about_leaks(inspection.leaks, features),
        "classes": _about_classes(labels),
        "labels": _about_labels(labels),
        "neighbours": _about_neighbours(inspection.homophily, labels),
        "reach": _about_reach(inspection.reach, labels),
        "parts": _about_components(inspection.degrees, inspection.components, num_nodes),
        "edges": _about_edges(inspection.edges),
        "features": _about_features(features),
        "duplicates": _about_duplicates(features, num_nodes),
    }
    findings = [
        Finding(level=level, topic=topic, text=capitalise(text))
        for topic, sentences in topics.items()
        if inspection.edges.pairs or topic not in ON_EDGES
        for level, text in sentences
    ]
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))


def percent(share: float) -> str:
    """A share in whole percent that is never rounded to 0% or 100%."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{100 * share:.0f}%"


def _about_doubtful_classes(labels: Labels) -> Sentences:
    if words := doubtful_classes(labels.names):
        text = f"Class {join_names(words)} may mean unlabelled, but counts as a class here: if it "
        yield "warning", f"{text}does, set --unlabelled first, since every number will change."
    for text in alike_classes(dict(zip(labels.names, labels.labelled, strict=True))):
        yield "warning", text


def _about_leaks(leaks: Sequence[Leak], features: Features) -> Sentences:
    if features.count and not leaks:
        yield "good", "No single feature reveals the label."
    for kind, (level, text) in LEAK_TEXTS.items():
        columns = [leak for leak in leaks if leak.kind == kind]
        for leak in columns[:MOST_LISTED]:
            words = {"values": f" ({leak.values})" if leak.values else "", "counts": leak.counts}
            yield level, text.format(_column(leak), _class(leak.class_name or ""), **words)
        if more := [leak.column for leak in columns[MOST_LISTED:]]:
            yield level, f"The same holds for {len(more)} more: {join_names(more)}."


def _column(leak: Leak) -> str:
    return leak.column if leak.column.startswith("feature ") else f"column {leak.column!r}"


def _about_classes(labels: Labels) -> Sentences:
    counts = dict(zip(labels.names, labels.labelled, strict=True))
    if missing := [name for name, count in counts.items() if count == 0]:
        yield "warning", f"No node of {join_names(missing)} is labelled: no method can learn it."
    if few := {name: count for name, count in counts.items() if 0 < count < FEW_LABELS}:
        low, high = min(few.values()), max(few.values())
        number = plural(high, "labelled node") if low == high else f"{low} to {high} labelled nodes"
        has = "has" if len(few) == 1 else "have"
        text = f"{join_names(list(few))} {has} only {number}: scores of so few vary widely between"
        yield "warning", f"{text} runs."
    present = {name: count for name, count in counts.items() if count > 0}
    if len(present) < 2:
        yield "warning", f"All labelled nodes are of {join_names(list(present))}."
    elif labels.ratio is not None:
        smallest, largest = (pick(present, key=counts.__getitem__) for pick in (min, max))
        low, high = counts[smallest], counts[largest]
        if labels.ratio <= BALANCED:
            yield "good", f"The classes are balanced: {low:,} to {high:,} labelled nodes."
            return
        ratio = f"{labels.ratio:.0f}" if labels.ratio >= 10 else f"{labels.ratio:.1f}"
        text = f"The smallest, {_class(smallest)}, has {plural(low, 'labelled node')}, the largest,"
        text += f" {_class(largest)}, has {high:,}: {ratio.removesuffix('.0')} times as many."
        yield "warning" if labels.ratio >= VERY_IMBALANCED else "note", text


def _about_labels(labels: Labels) -> Sentences:
    if labels.num_unlabelled and sum(count > 0 for count in labels.labelled) > 1:
        total = labels.num_labelled + labels.num_unlabelled
        share = percent(labels.labelled_share)
        yield "note", f"{labels.num_labelled:,} of {total:,} nodes are labelled ({share})."


def _about_neighbours(homophily: Homophily, labels: Labels) -> Sentences:
    if homophily.edges < FEW_EDGES or homophily.edge is None:
        edges = {0: "No edge joins", 1: "Only 1 edge joins"}
        text = edges.get(homophily.edges, f"Only {homophily.edges} edges join")
        text += " two labelled nodes: too few to tell whether neighbours share a class."
        yield "note", text
        return
    if homophily.adjusted is None or homophily.by_chance is None:
        yield "note", "All edges between labelled nodes join nodes of one class."
        return
    text = f"Neighbours share a class on {percent(homophily.edge)} of edges "
    text += f"({percent(homophily.by_chance)} expected by chance): "
    if homophily.adjusted < MISLEADING:
        text += "a method that relies on neighbours may mislead; compare with GraphSAGE."
        yield "warning", text
        return
    little = "the graph may help a little; compare with a model that ignores edges."
    helps = homophily.adjusted >= HELPFUL
    yield ("good", f"{text}the graph can help.") if helps else ("note", f"{text}{little}")
    classes = zip(homophily.per_class, labels.names, homophily.neighbours, strict=True)
    total = sum(homophily.neighbours)
    low = [
        (share, count / total, name)
        for share, name, count in classes
        if share is not None and share < LOW_CLASS_HOMOPHILY and count >= FEW_EDGES
    ]
    for share, chance, name in sorted(low)[:MOST_LISTED]:
        text = f"Only {percent(share)} of the neighbours of {_class(name)} are of that class "
        text += f"({percent(chance)} expected by chance): "
        yield "note", f"{text}features must tell it apart."


def _about_reach(reach: Reach, labels: Labels) -> Sentences:
    if not reach.nodes:
        return
    hops = min(NEAR_HOPS, reach.hops)
    near, layers = plural(hops, "hop"), plural(hops, "layer")
    shares = zip(far_shares(reach), labels.names, labels.labelled, strict=True)
    worst, name = max(((share, name) for share, name, count in shares if count), key=lambda p: p[0])
    if worst >= OUT_OF_REACH:
        text = f"{percent(worst)} of the unlabelled nodes are more than {near} from any labelled "
        text += f"node of {_class(name)}: a network of {layers} sees none of its labels there."
        yield "note", text
    else:
        text = f"At least {percent(1 - worst)} of the unlabelled nodes are within {near} of a "
        yield "good", f"{text}labelled node of every class."
    if reach.beyond:
        text = f"{percent(reach.beyond / reach.nodes)} of the unlabelled nodes ({reach.beyond:,}) "
        text += f"are more than {plural(reach.hops, 'hop')} from every labelled node: "
        yield "note", f"{text}edges hardly help there."


def _about_components(degrees: Degrees, components: Components, num_nodes: int) -> Sentences:
    if degrees.isolated:
        share = degrees.isolated_share
        text = f"{percent(share)} of the nodes ({degrees.isolated:,}) have no neighbours: the "
        level = "warning" if share >= MANY_CUT_OFF else "note"
        yield level, f"{text}graph does not help there."
    elif components.count == 1:
        yield "good", "The graph is connected."
    if components.unlabelled:
        share = components.unlabelled_nodes / num_nodes
        text = f"{components.unlabelled:,} of {components.count:,} components hold no labelled node"
        level = "warning" if share >= MANY_CUT_OFF else "note"
        yield level, f"{text} ({percent(share)} of all nodes): no path leads there from a label."


def _about_edges(edges: Edges) -> Sentences:
    if not edges.pairs:
        text = "There are no edges between different nodes: use a model that ignores edges."
        yield "warning", text
    if edges.repeated:
        yield "note", f"{edges.repeated:,} edges are listed more than once; repeats are ignored."
    if edges.to_itself:
        yield "note", f"{plural(edges.to_itself, 'self-loop')} ignored."
    if edges.directed:
        share = percent(edges.one_way / edges.pairs)
        text = f"{share} of the edges are listed in one direction only; this inspection reads them "
        yield "note", f"{text}in both."


def _about_features(features: Features) -> Sentences:
    if not features.count:
        yield "warning", "There are no features: only edges can tell nodes apart."
        return
    if features.missing:
        text = f"{features.missing:,} feature values are missing or infinite: fill them in first."
        yield "warning", text
    if features.constant:
        has = "has" if features.constant == 1 else "have"
        text = f"{features.constant:,} of {features.count:,} features {has} the same value"
        yield "note", f"{text} for every node."
    if features.empty_nodes:
        has = "has" if features.empty_nodes == 1 else "have"
        yield "note", f"{plural(features.empty_nodes, 'node')} {has} only zero features."


def _about_duplicates(features: Features, num_nodes: int) -> Sentences:
    share = features.duplicate_nodes / num_nodes
    if not features.count:
        return
    if share >= MANY_DUPLICATES:
        text = f"{percent(share)} of the nodes have the same features as another: check that no "
        yield "note", f"{text}node is listed twice."
    if features.conflicting_nodes:
        text = f"{features.conflicting_nodes:,} labelled nodes have the same features as a node of "
        yield "note", f"{text}another class."


def far_shares(reach: Reach) -> list[float]:
    """For each class, the share of the unlabelled nodes that are not near it."""
    near = min(NEAR_HOPS, reach.hops) - 1
    return [1 - counts[near] / reach.nodes for counts in reach.per_class]


def _class(name: str) -> str:
    """A class in the middle of a sentence; unnamed classes are already called "class 3"."""
    return name if name.startswith("class ") else f"class {name!r}"


def join_names(names: Sequence[str]) -> str:
    """'a', 'b' and 'c'; only the first few of many."""
    quoted = [repr(name) for name in names]
    if len(quoted) > MOST_LISTED:
        quoted[MOST_LISTED:] = [f"{len(quoted) - MOST_LISTED} more"]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


IMBALANCED = 3.0  # largest class over smallest: from here accuracy is misleading

# Methods to compare on GraphSAGE where neighbours differ in class, and the options that do so.
HETEROPHILY_METHODS = ",".join(name for name, kind in METHODS.items() if kind.suits_heterophily)
HETEROPHILY_OPTIONS = ("--method", HETEROPHILY_METHODS, "--set", "backbone=sage")
BASELINE = next(kind.title for kind in METHODS.values() if kind.role == "baseline")


def avoids_neighbours(inspection: Inspection) -> bool:
    """Whether neighbours mislead, so that methods must separate a node from them."""
    adjusted, edges = inspection.homophily.adjusted, inspection.homophily.edges
    return adjusted is not None and edges >= FEW_EDGES and adjusted < MISLEADING


def recommend(inspection: Inspection) -> tuple[str, ...]:
    labels, reach = inspection.labels, inspection.reach
    sentences = []
    if leaky := [leak.column for leak in inspection.leaks if leak.kind != "id"]:
        sentences.append(f"First remove {join_names(leaky)} from the features.")
    if sum(count > 0 for count in labels.labelled) < 2:
        return (*sentences, "Label nodes of at least two classes before training.")
    imbalanced = labels.ratio is not None and labels.ratio >= IMBALANCED
    far = reach.nodes > 0 and max(far_shares(reach)) >= OUT_OF_REACH
    if not inspection.edges.pairs:
        sentences.append("Without edges, use the default, which includes models of features alone.")
    elif avoids_neighbours(inspection):
        sentences.append(
            "Compare methods on GraphSAGE, which separates a node from its neighbours, including "
            "models that ignore edges; the default includes some of them."
        )
    elif imbalanced or far:
        reasons = ["classes are imbalanced"] * imbalanced
        reasons += ["many nodes are far from labels"] * far
        tried = [kind for kind in METHODS.values() if kind.portfolio]
        if has_rare_class(labels.labelled):
            tried = [kind for kind in tried if not issubclass(kind, NetworkMethod)]
        *titles, last = [kind.title for kind in tried]
        sentences.append(
            f"{capitalise(' and '.join(reasons))}: use the default, which selects among "
            f"{', '.join(titles)} and {last}, or compare them with {BASELINE}."
        )
    else:
        sentences.append(f"A plain {BASELINE} may be enough; compare it with the default.")
    if imbalanced:
        share = percent(max(labels.labelled) / labels.num_labelled)
        rare = has_rare_class(labels.labelled)
        other = "the average precision of the rarer class" if rare else "Macro-F1"
        sentences.append(
            f"Judge by balanced accuracy or {other}: always predicting the largest class would "
            f"be correct for {share} of the labelled nodes."
        )
    return tuple(sentences)
