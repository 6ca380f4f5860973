"""Something like fraud: few users of many matter, and only so many can be looked at.

reddit-user has 10,984 users and communities, of which 366 users were banned in the end. It is a
hard graph: compare average precision with the share of the class, which is what chance gives.

python examples/fraud.py               a few minutes on two cores
python examples/fraud.py --epochs 5    only to see it run
"""

import argparse

import evengraph as eg
from evengraph.metrics.binary import best_threshold, f1_at, flagged, precision_at


def load_graph():
    """The reddit-user graph, or a generated one with a class of one in fifty."""
    try:
        return eg.load("reddit-user")
    except eg.datasets.DataNotFound as reason:
        print(f"{reason} Going on with a generated graph.")
        return eg.toy(num_classes=2, size_ratio=0.02)


def main(arguments=None):
    """Train on half of the users, choose a threshold on a quarter, report on the last quarter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=500, help="training steps at most")
    parser.add_argument("--nodes", type=int, default=50, help="users that can be looked at")
    options = parser.parse_args(arguments)

    graph = load_graph()
    task = eg.splits.Natural(train=0.5, val=0.25)(graph, seed=0)
    rare = int(task.class_counts.argmin())
    is_rare = graph.y == rare
    print(f"{int(is_rare.sum())} of {graph.num_nodes} nodes are of the class that matters")

    training = {"max_epochs": options.epochs, "patience": 100}
    for method in (eg.GCN(**training), eg.Auto(max_epochs=options.epochs)):
        method.fit(task, seed=0)
        probabilities = method.predict_proba(task.graph)
        chance = probabilities[:, rare]
        scores = eg.evaluate(task, probabilities, positive=rare)

        # The threshold is chosen on validation nodes and only then used on test nodes.
        threshold = best_threshold(is_rare[task.val], chance[task.val])
        alarms = int(flagged(chance[task.test], threshold).sum())
        at_k = precision_at(is_rare[task.test], chance[task.test], options.nodes)
        print(f"{method.title}")
        print(f"  average precision {100 * scores['positive_average_precision']:.1f}%")
        print(f"  of the {options.nodes} likeliest users {100 * at_k:.0f}% are right")
        print(f"  found with 1% false alarms: {100 * scores['recall_at_1']:.0f}%")
        f1 = 100 * f1_at(is_rare[task.test], chance[task.test], threshold)
        print(f"  threshold {threshold:.3f} (from validation): {alarms} alarms, F1 {f1:.1f}%")


if __name__ == "__main__":
    main()
