import numpy as np
import pytest
from hypothesis import given
from labelled_graphs import as_networkx, labelled_graphs

from evengraph.inspection.measures import count_labels, measure_homophily, read_edges


@given(labelled_graphs())
def test_homophily_against_counting(found):
    graph, seen = found
    labels, known = graph.y.numpy(), (seen & (graph.y >= 0)).numpy()
    number = len(graph.class_names)
    neighbours, _ = read_edges(graph.edge_index.numpy(), graph.num_nodes)
    homophily = measure_homophily(neighbours.pairs, labels, known, number)
    edges = [
        (labels[a], labels[b])
        for a, b in as_networkx(graph.edge_index, graph.num_nodes).edges
        if known[a] and known[b]
    ]
    ends = [end for edge in edges for end in edge]
    assert homophily.edges == len(edges)
    if not edges:
        assert homophily.edge is homophily.by_chance is homophily.adjusted is None
    else:
        same = sum(a == b for a, b in edges) / len(edges)
        chance = sum((ends.count(c) / len(ends)) ** 2 for c in range(number))
        assert homophily.edge == pytest.approx(same)
        assert homophily.by_chance == pytest.approx(chance)
        if len(set(ends)) > 1:
            assert homophily.adjusted == pytest.approx((same - chance) / (1 - chance))
        else:
            assert homophily.adjusted is None
    for label in range(number):
        others = [b for a, b in edges if a == label] + [a for a, b in edges if b == label]
        assert homophily.neighbours[label] == len(others)
        share = homophily.per_class[label]
        assert share == (pytest.approx(others.count(label) / len(others)) if others else None)


@given(labelled_graphs())
def test_class_sizes_against_counting(found):
    graph, seen = found
    labels, known = graph.y.tolist(), (seen & (graph.y >= 0)).tolist()
    counted = count_labels(graph.y.numpy(), np.array(known), graph.class_names)
    for label in range(len(graph.class_names)):
        pairs = list(zip(labels, known, strict=True))
        assert counted.labelled[label] == pairs.count((label, True))
        assert counted.hidden[label] == pairs.count((label, False))
    sizes = [size for size in counted.labelled if size]
    assert counted.ratio == max(sizes) / min(sizes)
    assert counted.num_labelled + counted.num_unlabelled == graph.num_nodes
    assert counted.labelled_share == sum(known) / graph.num_nodes


def test_a_large_class_makes_agreement_by_chance():
    # 0 and 1 on a ring in which the single 1 sits between two 0s
    labels = np.array([0] * 9 + [1])
    ring = np.stack([np.arange(10), (np.arange(10) + 1) % 10])
    pairs = read_edges(ring, 10)[0].pairs
    homophily = measure_homophily(pairs, labels, np.ones(10, dtype=bool), 2)
    assert homophily.edge == 0.8
    assert homophily.by_chance == pytest.approx(0.82)
    assert homophily.adjusted < 0
