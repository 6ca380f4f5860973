"""Random graphs with some labels, and the same as NetworkX sees them."""

import networkx as nx
import numpy as np
import torch
from hypothesis import strategies as st
from torch_geometric.data import Data

from small_graphs import edge_lists


@st.composite
def labelled_graphs(draw, max_nodes=12, most_classes=3):
    """Edges as they come, labels with gaps, and which of the labels may be used."""
    edge_index, num_nodes = draw(edge_lists(max_nodes))
    num_classes = draw(st.integers(1, most_classes))
    label = st.integers(-1, num_classes - 1)
    labels = draw(st.lists(label, min_size=num_nodes, max_size=num_nodes))
    labels[0] = draw(st.integers(0, num_classes - 1))  # somebody is labelled
    seen = draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes))
    seen[0] = True
    graph = Data(edge_index=edge_index, y=torch.tensor(labels), num_nodes=num_nodes)
    graph.class_names = [f"class {number}" for number in range(num_classes)]
    return graph, torch.tensor(seen)


def as_networkx(edge_index, num_nodes):
    """Without direction, repeats and self-loops."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((a, b) for a, b in np.asarray(edge_index).T.tolist() if a != b)
    return graph
