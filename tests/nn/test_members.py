"""Members: several networks as one."""

import torch

from evengraph.nn import members
from evengraph.nn.members import Members


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


def test_members_do_not_share_gradients():
    net, rows = networks()
    net(rows)[1].sum().backward()
    assert net.first.grad[0, :, 4:8].any()
    net.first.grad[0, :, 4:8] = 0
    assert not net.first.grad.any()


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
