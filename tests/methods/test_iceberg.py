"""IceBerg: features propagated once, against dense products, and a plain network on them."""

import torch
from oracles import dense_propagation

from evengraph.methods import IceBerg
from small_graphs import small_task


def test_features_are_propagated_once():
    task = small_task()
    method = IceBerg(steps=3, teleport=0.2, max_epochs=0).fit(task, seed=0)
    matrix, own = dense_propagation(task.graph, "symmetric"), task.graph.x.double()
    x = own
    for _ in range(3):
        x = 0.8 * matrix @ x + 0.2 * own
    torch.testing.assert_close(method._inputs(task.graph).x.double(), x, rtol=1e-4, atol=1e-6)
    net = method.net_
    expected = net.last.linear(net.encoder.linear(x.float()).relu()).softmax(1)
    torch.testing.assert_close(method.predict_proba(task.graph), expected)


def test_without_steps_the_graph_does_not_matter():
    task = small_task()
    method = IceBerg(steps=0, max_epochs=0).fit(task, seed=0)
    alone = task.graph.clone()
    alone.edge_index = alone.edge_index[:, :0]
    torch.testing.assert_close(method.predict_proba(alone), method.predict_proba(task.graph))
