"""What the figures mean, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from evengraph.inspection.edges import Components, Degrees, Edges
from evengraph.inspection.features import Features
from evengraph.inspection.labels import Homophily, Labels
from evengraph.inspection.leaks import Leak
from evengraph.inspection.reach import Reach
from evengraph.methods import METHODS

LEVELS = ("warning", "note", "good")

EQUAL = 1.5  # largest class over smallest: up to here classes count as equal
UNEQUAL = 3.0  # from here plain accuracy misleads
VERY_UNEQUAL = 10.0
FEW_LABELS = 5  # fewer labelled nodes of a class than this are hardly an example
FEW_EDGES = 30  # fewer edges than this between labelled nodes say nothing about neighbours
HELPFUL = 0.3  # adjusted homophily from which neighbours are a good guide
MISLEADING = 0.1  # and below which they are none
LONELY = 0.25  # a class whose neighbours are less often of its own than this
NEAR_HOPS = 2  # what a graph network of the usual depth sees
OUT_OF_REACH = 0.25  # share of the nodes too far from a class that makes it under-reached
MANY_CUT_OFF = 0.05  # share of the nodes without a neighbour, or in parts without a label
MANY_DUPLICATES = 0.01  # share of the nodes that repeat another
FEW_KINDS = 0.5  # from here nodes are alike because the features are few
MOST_LEAKS = 5  # more than this are told together

HETEROPHILY_METHODS = ",".join(name for name, kind in METHODS.items() if kind.suits_heterophily)
"""Methods to compare on GraphSAGE where neighbours differ in class."""
BASELINE = next(kind.title for kind in METHODS.values() if kind.role == "baseline")
HIGHLIGHT = next(kind.title for kind in METHODS.values() if kind.role == "highlight")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence about a graph.

    Args:
        level: "warning", "note" or "good".
        topic: What it is about.
        text: The sentence.
    """

    level: str
    topic: str
    text: str


def find(
    *,
    labels: Labels,
    homophily: Homophily,
    edges: Edges,
    degrees: Degrees,
    components: Components,
    reach: Reach,
    features: Features,
    leaks: Sequence[Leak],
) -> tuple[Finding, ...]:
    """All findings, the gravest first."""
    num_nodes = labels.num_labelled + labels.num_unlabelled
    found = [
        *_about_leaks(leaks, features),
        *_about_classes(labels),
        *_about_neighbours(homophily, labels),
        *_about_reach(reach, labels),
        *_about_parts(degrees, components, num_nodes),
        *_about_edges(edges),
        *_about_features(features, num_nodes),
    ]
    return tuple(sorted(found, key=lambda finding: LEVELS.index(finding.level)))


def recommend(
    labels: Labels,
    homophily: Homophily,
    reach: Reach,
    leaks: Sequence[Leak],
    label: str | None = None,
) -> tuple[str, ...]:
    """What to do, in a few sentences; `label` is the label column of a table, if there is one."""
    sentences = []
    bad = [leak.column for leak in leaks if leak.kind != "id"]
    if bad:
        sentences.append(f"First leave out {_listed(bad)}.")
    if sum(count > 0 for count in labels.labelled) < 2:
        return (*sentences, "Label nodes of at least two classes before training anything.")
    unequal = labels.ratio is not None and labels.ratio >= UNEQUAL
    far = reach.nodes > 0 and max(_far(reach)) >= OUT_OF_REACH
    adjusted = homophily.adjusted if homophily.edges >= FEW_EDGES else None
    if adjusted is not None and adjusted < MISLEADING:
        sentences.append(
            "Compare on GraphSAGE, which keeps a node apart from its neighbours, with trees and an "
            f"MLP ({_command(label)} --methods {HETEROPHILY_METHODS} --set backbone=sage)."
        )
    elif unequal or far:
        reasons = ["unequal classes"] * unequal + ["far-off nodes"] * far
        compared = [kind.title for kind in METHODS.values() if kind.compared_by_default]
        *others, last = [title for title in compared if title != BASELINE]
        sentences.append(
            f"There are {' and '.join(reasons)}: compare {', '.join(others)} and {last}, with "
            f"{BASELINE} as the baseline ({_command(label)})."
        )
    else:
        sentences.append(f"A plain {BASELINE} may well be enough; compare {HIGHLIGHT} with it.")
    if unequal:
        share = percent(max(labels.labelled) / labels.num_labelled)
        text = "Judge by balanced accuracy or Macro-F1: always guessing the largest class would"
        sentences.append(f"{text} already be right for {share} of the labelled nodes.")
    return tuple(sentences)


def _command(label: str | None) -> str:
    return "evengraph compare DATA" + ("" if label is None else f" --label {quote(label)}")


def percent(share: float) -> str:
    """A share in whole percent that never claims none or all wrongly."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{100 * share:.0f}%"


def _about_leaks(leaks: Sequence[Leak], features: Features) -> list[Finding]:
    if not leaks:
        text = "No single feature gives the label away."
        return [_good("leaks", text)] if features.count else []
    words = {
        "copy": "{0} is a copy of the label: leave it out.",
        "label": "{0} tells the label almost by itself: leave it out.",
        "class": "{0} tells {1} almost by itself: leave it out unless it will be known "
        "for new nodes, too.",
        "id": "{0} has another value in every row, like an id: leave it out.",
    }
    found = []
    for kind, text in words.items():
        same = [leak for leak in leaks if leak.kind == kind]
        level = "note" if kind == "id" else "warning"
        for leak in same[:MOST_LEAKS]:
            sentence = text.format(_column(leak.column), _class(leak.class_name or ""))
            found.append(Finding(level=level, topic="leaks", text=sentence))
        if len(same) > MOST_LEAKS:
            more = f"So it is with {len(same) - MOST_LEAKS} more: "
            more += _listed([leak.column for leak in same[MOST_LEAKS:]]) + "."
            found.append(Finding(level=level, topic="leaks", text=more))
    return found


def _about_classes(labels: Labels) -> list[Finding]:
    found = []
    counts = dict(zip(labels.names, labels.labelled, strict=True))
    none = [name for name, count in counts.items() if count == 0]
    few = {name: count for name, count in counts.items() if 0 < count < FEW_LABELS}
    if none:
        text = f"No node of {_listed(none)} is labelled: no method can learn that."
        found.append(_warning("classes", text))
    if few:
        rarest = min(few.values())
        has = "has" if len(few) == 1 else "have"
        number = f"{rarest}" if rarest == max(few.values()) else f"{rarest} to {max(few.values())}"
        text = f"{_listed(list(few))} {has} only {number} labelled {_nodes(max(few.values()))}: "
        found.append(_warning("classes", f"{text}scores for so few vary widely from run to run."))
    present = {name: count for name, count in counts.items() if count > 0}
    if len(present) < 2:
        return [*found, _warning("classes", f"All labelled nodes are of {_listed(list(present))}.")]
    if labels.ratio is not None:
        low, high = min(present, key=present.__getitem__), max(present, key=present.__getitem__)
        if labels.ratio <= EQUAL:
            text = f"The classes are about equally large: {present[low]:,} to {present[high]:,}"
            found.append(_good("classes", f"{text} labelled nodes."))
        else:
            text = (
                f"The rarest, {_class(low)}, has {present[low]:,} labelled {_nodes(present[low])}, "
            )
            text += (
                f"the largest, {_class(high)}, {present[high]:,}: {_times(labels.ratio)} as many."
            )
            grave = labels.ratio >= VERY_UNEQUAL
            found.append((_warning if grave else _note)("classes", text))
    if labels.num_unlabelled:
        total = labels.num_labelled + labels.num_unlabelled
        share = percent(labels.labelled_share)
        text = f"{labels.num_labelled:,} of {total:,} nodes are labelled ({share})."
        found.append(_note("labels", text))
    return found


def _about_neighbours(homophily: Homophily, labels: Labels) -> list[Finding]:
    topic = "neighbours"
    if homophily.edges < FEW_EDGES or homophily.edge is None:
        number = homophily.edges
        edges = "edge joins" if number == 1 else "edges join"
        text = f"Only {number} {edges} two labelled nodes: too few to tell whether neighbours share"
        return [_note(topic, f"{text} a class.")]
    share = percent(homophily.edge)
    if homophily.adjusted is None or homophily.by_chance is None:
        return [_note(topic, "All edges between labelled nodes join nodes of one class.")]
    chance = percent(homophily.by_chance)
    if homophily.adjusted >= HELPFUL:
        text = f"Neighbours share a class in {share} of edges, {chance} would be chance: "
        found = [_good(topic, f"{text}the graph can help.")]
    elif homophily.adjusted >= MISLEADING:
        text = f"Neighbours share a class in {share} of edges, {chance} would be chance: "
        found = [_note(topic, f"{text}the graph may help a little; compare with an MLP.")]
    else:
        text = f"Neighbours share a class in only {share} of edges, and {chance} would be chance: "
        if homophily.edge >= 0.5:  # a large class makes for many equal ends
            text = f"Neighbours share a class in {share} of edges, but {chance} would be chance: "
        text += "a method that trusts neighbours may mislead; compare with GraphSAGE."
        return [_warning(topic, text)]
    lonely = [
        (own, name)
        for own, name, number in zip(
            homophily.per_class, labels.names, homophily.neighbours, strict=True
        )
        if own is not None and own < LONELY and number >= FEW_EDGES
    ]
    for own, name in sorted(lonely)[:MOST_LEAKS]:
        text = f"Of the neighbours of {_class(name)} only {percent(own)} are of that class: "
        found.append(_note(topic, f"{text}what tells it apart must come from features."))
    return found


def _about_reach(reach: Reach, labels: Labels) -> list[Finding]:
    if not reach.nodes:
        return []
    near = min(NEAR_HOPS, reach.hops)
    shares = dict(zip(labels.names, _far(reach), strict=True))
    present = {n: shares[n] for n, c in zip(labels.names, labels.labelled, strict=True) if c}
    worst = max(present, key=present.__getitem__)
    hops = "hop" if near == 1 else "hops"
    if present[worst] >= OUT_OF_REACH:
        text = f"{percent(present[worst])} of the unlabelled nodes are more than {near} {hops} from"
        text += f" any labelled node of {_class(worst)}: {HIGHLIGHT} is made for that."
        found = [_note("reach", text)]
    else:
        text = f"At least {percent(1 - present[worst])} of the unlabelled nodes lie within {near}"
        found = [_good("reach", f"{text} {hops} of a labelled node of every class.")]
    if reach.beyond:
        share = percent(reach.beyond / reach.nodes)
        text = f"{share} of the unlabelled nodes are more than {reach.hops} "
        text += f"{'hop' if reach.hops == 1 else 'hops'} from every labelled node ({reach.beyond:,}"
        found.append(_note("reach", f"{text}): edges tell next to nothing there."))
    return found


def _about_parts(degrees: Degrees, components: Components, num_nodes: int) -> list[Finding]:
    found = []
    if degrees.isolated:
        share = degrees.isolated_share
        text = f"{percent(share)} of the nodes have no neighbour ({degrees.isolated:,}): the graph"
        told = _warning if share >= MANY_CUT_OFF else _note
        found.append(told("parts", f"{text} does not help there."))
    elif components.count == 1:
        found.append(_good("parts", "All nodes hang together in one component."))
    if components.unlabelled:
        share = components.unlabelled_nodes / num_nodes
        text = f"{components.unlabelled:,} of {components.count:,} components hold no labelled node"
        text += f", {percent(share)} of all nodes: no path leads there from a label."
        found.append((_warning if share >= MANY_CUT_OFF else _note)("parts", text))
    return found


def _about_edges(edges: Edges) -> list[Finding]:
    found = []
    if not edges.pairs:
        found.append(_warning("edges", "There is no edge between two nodes: use an MLP."))
    if edges.repeated:
        text = f"{edges.repeated:,} edges are listed more than once; a repeat counts for nothing"
        found.append(_note("edges", f"{text} here."))
    if edges.to_itself:
        number = f"{edges.to_itself:,} edge{'s' if edges.to_itself > 1 else ''}"
        leads = "leads" if edges.to_itself == 1 else "lead"
        found.append(_note("edges", f"{number} {leads} from a node to itself."))
    if edges.directed:
        text = f"{percent(edges.one_way / edges.pairs)} of the edges are listed in one direction"
        found.append(_note("edges", f"{text} only; they are looked at in both here."))
    return found


def _about_features(features: Features, num_nodes: int) -> list[Finding]:
    if not features.count:
        return [_warning("features", "There are no features: only edges can tell nodes apart.")]
    found = []
    if features.missing:
        text = f"{features.missing:,} entries of the features are missing or infinite: fill them in"
        found.append(_warning("features", f"{text} first."))
    if features.constant:
        number = f"{features.constant:,} of {features.count - features.hashed:,} features"
        number += " that are not hashed text" if features.hashed else ""
        have = "has" if features.constant == 1 else "have"
        found.append(_note("features", f"{number} {have} the same value for every node."))
    if features.empty_nodes:
        number, have = f"{features.empty_nodes:,} nodes", "have"
        if features.empty_nodes == 1:
            number, have = "1 node", "has"
        found.append(_note("features", f"{number} {have} no feature other than zero."))
    share = features.duplicate_nodes / num_nodes
    if share >= FEW_KINDS:
        kinds = num_nodes - features.duplicate_nodes - max(features.empty_nodes - 1, 0)
        text = f"Features alone tell only {kinds:,} kinds of node apart."
        found.append(_note("duplicates", text))
    elif share >= MANY_DUPLICATES:
        text = f"{percent(share)} of the nodes have exactly the features of another: make sure that"
        found.append(_note("duplicates", f"{text} no node is listed twice."))
    if features.conflicting_nodes:
        text = f"{features.conflicting_nodes:,} labelled nodes have the same features as one of"
        found.append(_note("duplicates", f"{text} another class."))
    return found


def _far(reach: Reach) -> list[float]:
    """For each class, the share of the unlabelled nodes that are not near it."""
    near = min(NEAR_HOPS, reach.hops) - 1
    return [1 - counts[near] / reach.nodes for counts in reach.per_class]


def _column(name: str) -> str:
    return name.capitalize() if name.startswith("feature ") else f"Column {name!r}"


def _class(name: str) -> str:
    """A class in the middle of a sentence; one without a name is called class 3 already."""
    return name if name.startswith("class ") else f"class {name!r}"


def _listed(names: Sequence[str], most: int = 5) -> str:
    """'a', 'b' and 'c'; of many only the first few."""
    quoted = [repr(name) for name in names]
    if len(quoted) > most:
        return f"{', '.join(quoted[:most])} and {len(quoted) - most} more"
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _times(ratio: float) -> str:
    text = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}".removesuffix(".0")
    return f"{text} times"


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def _good(topic: str, text: str) -> Finding:
    return _finding("good", topic, text)


def _note(topic: str, text: str) -> Finding:
    return _finding("note", topic, text)


def _warning(topic: str, text: str) -> Finding:
    return _finding("warning", topic, text)


def _finding(level: str, topic: str, text: str) -> Finding:
    return Finding(level=level, topic=topic, text=text[:1].upper() + text[1:])
