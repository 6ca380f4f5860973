"""Members: several networks as one."""

import torch

from evengraph.nn.members import Members


def networks():
    torch.manual_seed(0)
    return Members(3, 5, 4, 2, dropout=0.5), torch.randn(7, 5)


def test_each_member_is_a_network_of_its_own():
    net, x = networks()
    logits = net(x)
    for member in range(3):
        columns = slice(4 * member, 4 * member + 4)
        hidden = (x @ net.first[:, columns] + net.bias[columns]).relu()
        expected = hidden @ net.second[member] + net.second_bias[member]
        torch.testing.assert_close(logits[member], expected)


def test_members_do_not_share_gradients():
    net, x = networks()
    net(x)[1].sum().backward()
    for columns in (slice(0, 4), slice(8, 12)):
        assert not net.first.grad[:, columns].any()
    assert net.first.grad[:, 4:8].any()


def test_the_penalty_is_weight_decay_per_member():
    net, _ = networks()
    decay = torch.tensor([0.1, 0.0, 2.0])
    net.penalty(decay).backward()
    expected = net.first.detach() * decay.repeat_interleave(4)
    torch.testing.assert_close(net.first.grad, expected)
    torch.testing.assert_close(net.bias.grad, net.bias.detach() * decay.repeat_interleave(4))


def test_dropout_only_when_asked():
    net, x = networks()
    hidden = net.hidden(x)
    assert torch.equal(net.classify(hidden), net(x))
    assert not torch.equal(net.classify(hidden, dropout=True), net(x))
