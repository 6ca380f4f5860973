from math import dist

import pytest
from evengraph.report.explain_page import path_tree, ring_numbers, ring_positions

# 0 joins 1 and 2; 3 and 4 hang on 2; 1 and 4 are joined, too; 5 has no path.
NEAR = {
    "edge_index": [[0, 1, 0, 2, 2, 3, 2, 4, 1, 4], [1, 0, 2, 0, 3, 2, 4, 2, 4, 1]],
    "distance": [0, 1, 1, 2, 2, -1],
}


def positions(distances, before):
    return ring_positions(distances, before, centre=(50.0, 50.0), radius=30)


def test_every_node_hangs_on_one_that_is_nearer():
    assert path_tree(NEAR) == {1: 0, 2: 0, 3: 2, 4: 1}


def test_a_path_that_was_left_out_is_not_made_up():
    assert path_tree({"edge_index": [[], []], "distance": [0, 3]}) == {}


def test_rings_are_distances_and_those_without_a_path_outside():
    assert ring_numbers(NEAR["distance"]) == [0, 1, 1, 2, 2, 3]
    points = positions(NEAR["distance"], path_tree(NEAR))
    far = [dist(points[0], point) for point in points]
    assert points[0] == (50, 50)
    assert far == pytest.approx([0, 10, 10, 20, 20, 30], abs=0.1)


def test_no_two_nodes_of_a_large_tree_meet():
    before = {n: (n - 1) // 3 for n in range(1, 40)}
    distances = [0] * 40
    for n, parent in before.items():
        distances[n] = distances[parent] + 1
    points = positions(distances, before)
    assert len(set(points)) == 40
    for n, parent in before.items():  # nearer to its own path than to the other side
        assert dist(points[n], points[parent]) < 25


def test_one_node_is_in_the_middle():
    assert positions([0], {}) == [(50, 50)]
