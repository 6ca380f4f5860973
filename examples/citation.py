"""A citation graph: topics of papers, three of them with two labels each.

python examples/citation.py            the paper's settings, about half a minute
python examples/citation.py --epochs 5 only to see it run
"""

import argparse

import evengraph as eg


def load_graph():
    """Cora, or a generated graph of the same kind where Cora cannot be had."""
    try:
        return eg.load("cora")
    except eg.datasets.DataNotFound as reason:
        print(f"{reason} Going on with a generated graph.")
        return eg.toy()


def main(arguments=None):
    """Compare a plain GCN with Uni-GNN on one split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10_000, help="training steps at most")
    epochs = parser.parse_args(arguments).epochs

    graph = load_graph()
    # Four classes keep 20 labels, three keep 2; validation and test are equal for all.
    task = eg.splits.Step(minority=3, ratio=0.1)(graph, seed=5)
    print("labels of each class:", task.class_counts.tolist())

    for method in (eg.GCN(max_epochs=epochs), eg.UniGNN(alpha=1, max_epochs=epochs)):
        method.fit(task, seed=5)
        scores = eg.evaluate(task, method.predict_proba(task.graph))
        recalls = " ".join(f"{100 * recall:3.0f}" for recall in scores["per_class_recall"])
        balanced = 100 * scores["balanced_accuracy"]
        print(f"{method.title:8} balanced accuracy {balanced:.1f}, recall of each class {recalls}")


if __name__ == "__main__":
    main()
