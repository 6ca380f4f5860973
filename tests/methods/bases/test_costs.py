from evengraph.methods import METHODS
from evengraph.methods.bases.costs import TYPICAL_EPOCHS, estimate


def test_costs_grow_with_the_graph():
    small, large = (estimate("gcn", size, 20 * size, 64) for size in (1000, 10_000))
    assert 0 < 9 * small.memory < large.memory < 11 * small.memory
    assert 0 < 9 * small.seconds < large.seconds < 11 * small.seconds
    assert estimate("gcn", 1000, 20_000, 500).memory > 2 * small.memory
    assert estimate("gcn", 1000, 200_000, 64).memory > 2 * small.memory


def test_most_methods_are_measured():
    known = [name for name in METHODS if estimate(name, 1000, 20_000, 64) is not None]
    assert len(known) > 20
    assert {"gcn", "unignn", "unison", "iceberg", "mlp", "boosting"} <= set(known)
    assert estimate("nothing", 1, 1, 1) is None
    assert TYPICAL_EPOCHS > 0
