"""Networks and layers against their formulas, with dense matrices; operators of ONNX."""

import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import to_edge_index

from evengraph.core.rng import seeded
from evengraph.nn import members
from evengraph.nn.members import LENGTH, Diffusion, Members, Views, scale_of
from evengraph.nn.networks import (
    CONVS,
    LAST_CONVS,
    PYG_CONVS,
    EdgeDecoder,
    GraphClassifier,
    GraphConv,
    GraphNetwork,
    PlainNetwork,
    Reconstruction,
)
from evengraph.ops.sparse import Sparse, adjacency, neighbour_means, undirected_adjacency
from evengraph.ops.structural import structural_adjacency
from evengraph.ops.synthesis import AttachedGraph
from evengraph.ops.trees import Trees, tree_values
from evengraph.pipeline.onnx_export import OnnxGraph
from evengraph.training.loop import adam
from small_graphs import (
    dense_adjacency,
    dense_row,
    dense_structural,
    dense_symmetric,
    edge_lists,
    edges,
    normal,
    random_edges,
    small_task,
)

ADJACENCY = dense_adjacency(random_edges(9, 20), 9, undirected=True)
MATRIX = dense_row(ADJACENCY)
PROPAGATION = Sparse.from_dense(MATRIX)


def network(dropout=0.5):
    torch.manual_seed(0)
    return GraphNetwork(4, 5, 3, dropout).double()


def formula(net, x):
    encoder, conv, linear = net.encoder, net.classifier.conv, net.classifier.linear
    hidden = (MATRIX @ x @ encoder.weight + encoder.bias).relu()
    hidden = (MATRIX @ hidden @ conv.weight + conv.bias).relu()
    return hidden @ linear.weight.t() + linear.bias


def gradients(net, value):
    return torch.autograd.grad(value, list(net.parameters()), normal(*value.shape, seed=5))


@pytest.mark.parametrize("sparse", [False, True])
def test_forward_equals_the_formula(sparse):
    net, x = network(), normal(9, 4)
    value = net(Sparse.from_dense(x) if sparse else x, PROPAGATION)
    dense = formula(net, x)
    torch.testing.assert_close(value, dense)
    torch.testing.assert_close(gradients(net, value), gradients(net, dense))


def test_embed_is_relu_and_dropout():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    assert torch.equal(net.embed(first), first.relu())
    with seeded(1):
        dropped = net.embed(first, dropout=True)
    kept = dropped > 0
    assert not torch.equal(kept, first > 0)
    torch.testing.assert_close(dropped, torch.where(kept, 2 * first, 0.0))


def test_dropout_acts_twice():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    with seeded(1):
        value = net.classify(first, PROPAGATION, dropout=True)
    with seeded(1):
        embeddings = net.embed(first, dropout=True)
        expected = net.classifier(embeddings, PROPAGATION, dropout=True)
    assert torch.equal(value, expected)
    assert not torch.equal(value, net.classifier(embeddings, PROPAGATION, dropout=False))
    plain = network(dropout=0.0)
    first = plain.encoder(x, PROPAGATION)
    assert torch.equal(plain.classify(first, PROPAGATION, dropout=True), plain(x, PROPAGATION))


def test_new_nodes_that_are_not_heard_change_no_known_one():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    new = normal(2, 5, seed=9)
    ones = torch.ones(9, dtype=torch.float64)
    links = torch.tensor([3, 4]), torch.tensor([0, 1]), ones[:2]
    attached = AttachedGraph(PROPAGATION, ones, *links, 2, both_ways=False)
    value = net.classify(torch.cat([first, new]), attached)
    torch.testing.assert_close(value[:9], net(x, PROPAGATION))
    embeddings = first.relu()[[3, 4]]  # the only neighbours of the new ones
    expected = net.classifier.classify_propagated(embeddings, dropout=False)
    torch.testing.assert_close(value[9:], expected)


def plain_network(layer=GraphConv, dropout=0.5):
    torch.manual_seed(0)
    return PlainNetwork(layer, layer, 4, 5, 3, dropout).double()


def test_plain_forward_equals_the_formula():
    net, x = plain_network(), normal(9, 4)
    hidden = (MATRIX @ x @ net.encoder.weight + net.encoder.bias).relu()
    expected = MATRIX @ hidden @ net.last.weight + net.last.bias
    torch.testing.assert_close(net(x, PROPAGATION), expected)
    assert torch.equal(net.classify(net.encoder(x, PROPAGATION), PROPAGATION), net(x, PROPAGATION))


@pytest.mark.parametrize("backbone", PYG_CONVS)
def test_the_last_layer_does_not_decay(backbone):
    net = plain_network(PYG_CONVS[backbone])
    names = {id(weight): name for name, weight in net.named_parameters()}
    groups = adam(net, 0.01, 0.1).param_groups
    found = {names[id(w)]: group["weight_decay"] for group in groups for w in group["params"]}
    assert {name.split(".")[0]: decay for name, decay in found.items()} == {
        "encoder": 0.1,
        "last": 0.0,
    }


@pytest.mark.parametrize(
    ("conv", "bound"),
    [(LAST_CONVS["gcn"], (6 / 68) ** 0.5), (LAST_CONVS["sage"], 1 / 8), (GraphConv, 1 / 2)],
)
def test_layers_start_as_pygs_or_as_those_of_the_comparison(conv, bound):
    torch.manual_seed(0)
    layer = conv(64, 4)
    assert 0.9 * bound < layer.weight.abs().max().item() <= bound
    assert layer.weight.mean().abs() < 0.1 * bound
    assert layer.bias.abs().max() <= bound


def test_logits_share_one_head():
    assert LAST_CONVS["gat"](16, 8).heads == 1
    assert PYG_CONVS["gat"](16, 8).heads == 8


def test_classifier_of_what_is_already_propagated():
    torch.manual_seed(0)
    matrix = Sparse.from_dense(dense_row(dense_adjacency(random_edges(9, 20), 9)))
    x = normal(9, 4).requires_grad_()
    net = GraphClassifier(4, 5, 3, dropout=0.5).double()
    ours = net.classify_propagated(matrix @ x, dropout=False)
    theirs = net(x, matrix, dropout=False)
    torch.testing.assert_close(ours, theirs)
    over, weight = [x, *net.parameters()], normal(9, 3, seed=5)
    torch.testing.assert_close(
        torch.autograd.grad(ours, over, weight), torch.autograd.grad(theirs, over, weight)
    )
    some = torch.tensor([7, 2])
    torch.testing.assert_close(
        net.classify_propagated((matrix @ x)[some], dropout=False), theirs[some]
    )
    values = []
    for seed in (3, 3, 4):
        with seeded(seed):
            values.append(net.classify_propagated(matrix @ x, dropout=True))
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])
    assert not torch.equal(values[0], ours)


def made(kind, inputs=4, outputs=16):
    torch.manual_seed(0)
    return CONVS[kind](inputs, outputs).double()


def test_sage_is_the_formula():
    conv, x = made("sage", outputs=5), normal(9, 4)
    others, own = conv.weight[:, :5], conv.weight[:, 5:]
    torch.testing.assert_close(conv(x, PROPAGATION), MATRIX @ x @ others + x @ own + conv.bias)


@pytest.mark.parametrize(("outputs", "heads"), [(16, 8), (12, 4), (5, 1)])
def test_attention_equals_that_of_pytorch_geometric(outputs, heads):
    conv, x = made("gat", outputs=outputs), normal(9, 4)
    assert conv.heads == heads
    theirs = GATConv(4, outputs // heads, heads=heads).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(conv.weight.t())
        theirs.att_dst.copy_(conv.attention[:1])
        theirs.att_src.copy_(conv.attention[1:])
        conv.bias.normal_()
        theirs.bias.copy_(conv.bias)
    edge_index = ADJACENCY.nonzero().t().flip(0)
    torch.testing.assert_close(conv(x, PROPAGATION), theirs(x, edge_index))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", CONVS)
def test_a_convolution_projects_row_by_row_and_then_spreads(kind, sparse):
    conv, x = made(kind), normal(9, 4).relu()
    projected = conv.project(Sparse.from_dense(x) if sparse else x)
    torch.testing.assert_close(projected, torch.stack([row @ conv.weight for row in x]))
    torch.testing.assert_close(conv.propagate(projected, PROPAGATION), conv(x, PROPAGATION))


@pytest.mark.parametrize("kind", CONVS)
def test_networks_of_every_kind(kind):
    torch.manual_seed(0)
    net = GraphNetwork(4, 16, 3, 0.5, kind).double()
    conv = CONVS[kind]
    assert type(net.encoder) is conv
    assert type(net.classifier.conv) is conv
    x = normal(9, 4)
    hidden = net.encoder(x, PROPAGATION).relu()
    hidden = net.classifier.conv(hidden, PROPAGATION).relu()
    torch.testing.assert_close(net(x, PROPAGATION), net.classifier.linear(hidden))


CPU = torch.device("cpu")
NUM_NODES = 14
EDGES = random_edges(NUM_NODES, 16, seed=3)


def decoder(width=3):
    torch.manual_seed(0)
    return EdgeDecoder(width).double()


def closed_adjacency():
    return dense_adjacency(EDGES, NUM_NODES, undirected=True) + torch.eye(NUM_NODES)


def reconstruction(**limits):
    return Reconstruction(undirected_adjacency(EDGES, NUM_NODES), CPU, **limits)


def exact(scorer, embeddings):
    """The weighted squared errors of all pairs, every node joined to itself."""
    closed = closed_adjacency()
    turned = embeddings @ scorer.weight
    scores = (turned @ turned.t()).sigmoid()
    size = closed.sum()
    weight = torch.where(closed > 0, 1.0, size / (closed.numel() - size))
    return (weight * (scores - closed).square()).sum()


def test_scores_among_nodes_are_those_of_their_rows():
    scorer, embeddings = decoder(), normal(6, 3).requires_grad_()
    sources, targets = torch.tensor([0, 5, 2, 2]), torch.tensor([0, 1, 4, 4])
    ours = scorer.among(embeddings, sources, targets)
    theirs = scorer(embeddings[sources], embeddings[targets])
    turned = embeddings @ scorer.weight
    for scores in (ours, theirs):
        torch.testing.assert_close(scores, (turned @ turned.t()).sigmoid()[sources, targets])
    over, upstream = [embeddings, scorer.weight], normal(4, seed=2)
    torch.testing.assert_close(
        torch.autograd.grad(ours, over, upstream), torch.autograd.grad(theirs, over, upstream)
    )
    nobody = torch.zeros(0, dtype=torch.long)
    assert scorer.among(embeddings, nobody, nobody).shape == (0,)


@pytest.mark.parametrize("limit", [2**17, 20])
def test_random_pairs_are_edges_and_others(limit):
    loss = reconstruction(limit=limit)
    closed = closed_adjacency().flatten()
    seen = torch.zeros(2, NUM_NODES**2, dtype=torch.bool)
    expected = min(limit, int(closed.sum()))
    with seeded(0):
        for _ in range(100):
            drawn, others, is_other = loss._draw()
            assert drawn.shape == others.shape == (expected,)
            assert (closed[drawn] == 1).all()
            assert torch.equal(is_other, closed[others] == 0)
            seen[0, drawn] = True
            seen[1, others] = True
    assert torch.equal(seen[0], closed == 1)
    assert seen[1].all()


@pytest.mark.parametrize("limit", [2**17, 20])
def test_right_on_average(limit):
    scorer = decoder()
    embeddings = 1.5 * normal(NUM_NODES, 3, seed=4)
    loss = reconstruction(limit=limit)
    assert (loss.edges.numel() > limit) == (limit == 20)
    with seeded(0), torch.no_grad():
        values = torch.stack([loss(scorer, embeddings) for _ in range(3000)])
        wanted = exact(scorer, embeddings)
    assert values.std() > 0
    assert abs(values.mean() - wanted) < 4 * values.std() / 3000**0.5
    assert 4 * values.std() / 3000**0.5 < 0.02 * wanted


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_a_complete_graph_has_only_edges_to_miss(num_nodes):
    pairs = [(i, j) for i in range(num_nodes) for j in range(num_nodes)]
    loss = Reconstruction(undirected_adjacency(edges(pairs), num_nodes), CPU)
    scorer, embeddings = decoder(), normal(num_nodes, 3).requires_grad_()
    value = loss(scorer, embeddings)
    turned = embeddings @ scorer.weight
    torch.testing.assert_close(value, (1 - (turned @ turned.t()).sigmoid()).square().sum())
    (gradient,) = torch.autograd.grad(value, embeddings)
    assert torch.isfinite(gradient).all()


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
    return Views(names, graph.num_features, components, DIFFUSION)


def fitted(graph, name, components=3_000):
    return views(graph, name, components=components)(graph, fit=True)[0]


def scaled(rows):
    centred = rows - rows.mean(0)
    return centred * LENGTH / centred.square().sum(1).mean().sqrt()


def test_the_structural_view_is_personalised_pagerank():
    graph = small_task().graph
    rows = fitted(graph, "structural")
    looped = dense_adjacency(
        graph.edge_index, graph.num_nodes, undirected=True
    ).float() + torch.eye(graph.num_nodes)
    root = looped.sum(1) ** -0.5
    matrix, x = root[:, None] * looped * root, graph.x
    for _ in range(3):
        x = 0.8 * matrix @ x + 0.2 * graph.x
    torch.testing.assert_close(rows, scaled(x), rtol=1e-4, atol=1e-5)


def test_the_ego_view_keeps_hops_apart():
    graph = small_task().graph
    rows = fitted(graph, "ego")
    adjacency = dense_adjacency(graph.edge_index, graph.num_nodes, undirected=True).float()
    means = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    hops = [graph.x, means @ graph.x, means @ means @ graph.x]
    expected = torch.cat([scaled(hop) for hop in hops], dim=1) / 3**0.5
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


NAMES = pytest.mark.parametrize("name", ["structural", "ego"])


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
    both = views(graph, "ego", "structural")
    rows = both(graph, fit=True)
    for name, part in zip(both.names, rows, strict=True):
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
    apart = Views(["structural", "ego"], width, 6 * width, Diffusion(5, 0.1), 2)
    plain = Views(["structural", "ego"], width, 6 * width, Diffusion(5, 0.1))
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


@pytest.mark.parametrize("alpha", [1, 2, 3])
@given(drawn=edge_lists())
def test_a_convolution_of_pyg_over_short_paths_is_structural_propagation(alpha, drawn):
    edge_index, size = drawn
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    layer = GCNConv(3, 2, bias=False)  # Eq. 2
    x = normal(size, 3, dtype=torch.float32)
    value = layer(x, *to_edge_index(structural_adjacency(both, size, alpha)))
    expected = dense_symmetric(dense_structural(both, size, alpha)).float()
    torch.testing.assert_close(value, expected @ layer.lin(x))


@pytest.fixture
def run():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")

    def run(build, x, width):
        onnx = OnnxGraph()
        content = onnx.serialised(
            build(onnx, onnx.input("x", x.shape[1], "rows")), width, {"a": "b"}
        )
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        assert session.get_modelmeta().custom_metadata_map == {"a": "b"}
        return torch.from_numpy(session.run(["probabilities"], {"x": x.float().numpy()})[0])

    return run


def test_trees_add_to_their_columns_and_a_tree_may_be_a_leaf(run):
    trees = Trees(
        feature=torch.tensor([1, 0, 0, 0, 0, 1, 0, 0]),
        threshold=torch.tensor([0.5, 0, -0.25, 0, 0, 0, 0, 0]).double(),
        left=torch.tensor([1, 1, 3, 3, 4, 5, 6, 7]),
        right=torch.tensor([2, 1, 4, 3, 4, 5, 6, 7]),
        value=torch.tensor([0, 1, 0, 2, 4, 8, 16, 32]).double(),
        roots=torch.tensor([0, 5, 6, 7]),
    )
    x, start = normal(30, 2), torch.tensor([0.0, 0.5, -1.0]).double()
    x[0, 1], x[1, 0] = 0.5, -0.25
    targets = torch.tensor([1, 2, 1, 2])
    sums = torch.zeros(30, 3).double().index_add_(1, targets, tree_values(trees, x)) + start
    got = run(lambda onnx, rows: onnx.tree_sums(rows, trees, targets, start), x, 3)
    torch.testing.assert_close(got, sums.float())


def test_equal_models_are_equal_files():
    pytest.importorskip("onnx")

    def content():
        onnx = OnnxGraph()
        return onnx.serialised(onnx.softmax(onnx.input("x", 2, "")), 2, {"b": "1", "a": "2"})

    assert content() == content()
