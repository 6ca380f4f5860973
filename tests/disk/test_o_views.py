"""Views on disk are the views in memory."""

import pytest
import torch
from torch.nn.functional import pad

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.propagation import Workspace, view_tables
from evengraph.disk.tables import PackedLinks, features
from evengraph.nn.members import Diffusion, Views

NAMES = ("structural", "semantic", "ego")


def new_views(num_features, relations=0):
    return Views(NAMES, num_features, 256, Diffusion(4, 0.1), 5, relations)


def test_views_have_the_bits_of_those_in_memory(tmp_path):
    graph, other = toy(120, 300, 8, 3), toy(90, 200, 8, 3, seed=1)
    memory, disk = new_views(8), new_views(8)
    for index, (each, fit) in enumerate(((graph, True), (other, False))):
        packed = pack_graph(each, tmp_path / str(index))
        space = Workspace(PackedLinks(packed), tmp_path / "space", 400_000)
        found = view_tables(disk, features(packed), space, fit=fit)
        expected = memory(each, fit=fit)
        assert list(found) == list(NAMES)
        for view, table in zip(expected, found.values(), strict=True):
            rows = table.read(slice(0, each.num_nodes))
            torch.testing.assert_close(pad(rows, (0, memory.width - rows.shape[1])), view)
    for name, value in memory.state_dict().items():
        torch.testing.assert_close(disk.state_dict()[name], value)


def test_relations_are_refused(tmp_path):
    packed = pack_graph(toy(60, 100, 4, 2), tmp_path / "graph")
    space = Workspace(PackedLinks(packed), tmp_path / "space", 10**6)
    with pytest.raises(ValueError, match="Relations are not available"):
        view_tables(new_views(4, relations=2), features(packed), space, fit=True)
