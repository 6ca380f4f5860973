"""Members: several networks as one."""

import pytest
import torch
from torch_geometric.data import Data

from evengraph.nn import members
from evengraph.nn.members import LENGTH, Diffusion, Members, Views, scale_of
from evengraph.ops.sparse import adjacency, neighbour_means
from small_graphs import small_task


def networks(seed=0):
    torch.manual_seed(seed)
    return Members(2, 3, 5, 4, 2, dropout=0.5), torch.randn(2, 7, 5)


def test_each_member_is_a_network_of_its_own():
    net, rows = networks()
    logits = net(rows)
    assert logits.shape == (6, 7, 2)
    for member in range(6):
        view, units = member // 3, slice(4 * (member % 3), 4 * (member % 3) + 4)
        hidden = (rows[view] @ net.first[view, :, units] + net.bias[view, :, units]).relu()
        expected = hidden @ net.second[member] + net.second_bias[member]
        torch.testing.assert_close(logits[member], expected)


def test_many_rows_are_classified_in_parts(monkeypatch):
    net, rows = networks()
    expected = net(rows)
    monkeypatch.setattr(members, "ROWS", 3)
    largest = []
    monkeypatch.setattr(net, "hidden", lambda part: largest.append(part) or hidden(part))
    hidden = type(net).hidden.__get__(net)
    torch.testing.assert_close(net(rows), expected)
    assert [part.shape[1] for part in largest] == [3, 3, 1]


def test_the_penalty_is_weight_decay_per_member():
    net, _ = networks()
    decay = torch.tensor([0.1, 0.0, 2.0, 0.3, 1.0, 0.7])
    net.penalty(decay).backward()
    units = decay.repeat_interleave(4).view(2, 1, 12)
    torch.testing.assert_close(net.first.grad, net.first.detach() * units)
    torch.testing.assert_close(net.bias.grad, net.bias.detach() * units)


def test_dropout_only_when_asked():
    net, rows = networks()
    hidden = net.hidden(rows)
    assert torch.equal(net.classify(hidden), net(rows))
    assert not torch.equal(net.classify(hidden, dropout=True), net(rows))


def test_some_members_are_taken_from_another():
    (net, rows), (other, _) = networks(), networks(seed=1)
    before, wanted = net(rows), other(rows)
    which = torch.tensor([True, False, False, False, True, False])
    net.take(other, which)
    torch.testing.assert_close(net(rows), torch.where(which[:, None, None], wanted, before))


DIFFUSION = Diffusion(steps=3, teleport=0.2)


def views(graph, *names, components=3_000):
    return Views(names, graph.num_features, components, DIFFUSION, neighbours=5)


def fitted(graph, name, components=3_000):
    return views(graph, name, components=components)(graph, fit=True)[0]


def dense_adjacency(graph):
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    matrix[graph.edge_index[0], graph.edge_index[1]] = 1
    matrix = ((matrix + matrix.T) > 0).float()
    return matrix.fill_diagonal_(0)


def scaled(rows):
    centred = rows - rows.mean(0)
    return centred * LENGTH / centred.square().sum(1).mean().sqrt()


def test_the_structural_view_is_personalised_pagerank():
    graph = small_task().graph
    rows = fitted(graph, "structural")
    looped = dense_adjacency(graph) + torch.eye(graph.num_nodes)
    root = looped.sum(1) ** -0.5
    matrix, x = root[:, None] * looped * root, graph.x
    for _ in range(3):
        x = 0.8 * matrix @ x + 0.2 * graph.x
    torch.testing.assert_close(rows, scaled(x), rtol=1e-4, atol=1e-5)


def test_the_ego_view_keeps_hops_apart():
    graph = small_task().graph
    rows = fitted(graph, "ego")
    adjacency = dense_adjacency(graph)
    means = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    hops = [graph.x, means @ graph.x, means @ means @ graph.x]
    expected = torch.cat([scaled(hop) for hop in hops], dim=1) / 3**0.5
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


NAMES = pytest.mark.parametrize("name", ["structural", "semantic", "ego"])


@NAMES
@pytest.mark.parametrize("components", [4, 3_000])
def test_fitted_views_give_the_same_rows_again(name, components):
    graph = small_task().graph
    view = views(graph, name, components=components)
    rows = view(graph, fit=True)[0]
    assert rows.shape == (graph.num_nodes, view.width)
    torch.testing.assert_close(view(graph)[0], rows, rtol=1e-3, atol=1e-4)
    length = rows.square().sum(1).mean().sqrt()
    torch.testing.assert_close(length, torch.tensor(LENGTH), rtol=1e-4, atol=1e-4)


def test_views_come_in_the_order_of_their_names():
    graph = small_task().graph
    three = views(graph, "ego", "semantic", "structural")
    rows = three(graph, fit=True)
    for name, part in zip(three.names, rows, strict=True):
        alone = fitted(graph, name)
        torch.testing.assert_close(part[:, : alone.shape[1]], alone)
        assert not part[:, alone.shape[1] :].any()


@NAMES
def test_features_without_variance_are_harmless(name):
    graph = Data(x=torch.ones(6, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert fitted(graph, name).isfinite().all()


def test_relations_extend_the_ego_view_alone():
    task = small_task()
    source, target = task.graph.edge_index
    related = task.graph.clone()
    related.relation_index = torch.stack([(source > target).long(), source, target])
    related.num_relations = 2
    width = task.graph.num_features
    apart = Views(["structural", "ego"], width, 6 * width, Diffusion(5, 0.1), 5, 2)
    plain = Views(["structural", "ego"], width, 6 * width, Diffusion(5, 0.1), 5)
    ours, before = apart(related, fit=True), plain(task.graph, fit=True)
    assert torch.equal(ours[0, :, :width], before[0, :, :width])
    assert len(apart.ego) == 5
    smaller = neighbour_means(
        adjacency(related.edge_index[:, source < target], 150), related.x.device
    )
    part = apart.ego[3]
    expected = ((smaller @ related.x) @ part.basis - part.centre) * part.scale / 5**0.5
    torch.testing.assert_close(ours[1, :, 3 * width : 4 * width], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1.0, 1e25])
def test_rows_of_any_size_get_the_same_length(size):
    rows = torch.tensor([[3.0, 4.0], [0.0, 5.0]]) * size
    assert float(scale_of(rows) * size) == pytest.approx(LENGTH / 5)
    assert scale_of(torch.zeros(2, 2)) == 1
