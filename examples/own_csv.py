"""Train on two CSV files with string ids, string labels, empty cells and one rare class.

python examples/own_csv.py             some seconds
python examples/own_csv.py --epochs 5  a quick try
"""

import argparse
import random
import tempfile
from pathlib import Path

import evengraph as eg

COUNTRIES = ("de", "fr", "pl")


def write_files(folder, *, first=0, count=800, seed=0):
    """Write shops and the trades between them: 1 in 12 is a fraud, two thirds have no label."""
    draw = random.Random(seed)
    nodes, edges = ["id,country,turnover,opened,kind"], ["source,target"]
    kinds = [
        "fraud" if draw.random() < 1 / 12 else draw.choice(["food", "tools"]) for _ in range(count)
    ]
    for number, kind in enumerate(kinds):
        name = f"shop-{first + number}"
        turnover = (
            "" if draw.random() < 0.1 else f"{draw.gauss(9 if kind == 'fraud' else 5, 2):.2f}"
        )
        country = draw.choice(COUNTRIES) if draw.random() < 0.95 else ""
        label = kind if draw.random() < 0.33 else ""
        nodes.append(f"{name},{country},{turnover},20{draw.randint(10, 23)}-05-31,{label}")
        alike = [other for other in range(number) if kinds[other] == kind]
        mates = [
            draw.choice(alike if alike and draw.random() < 0.6 else range(number))
            for _ in range(3 if number else 0)
        ]
        edges += [f"{name},shop-{first + other}" for other in dict.fromkeys(mates)]
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(edges) + "\n", encoding="utf-8")


def main(arguments=None):
    """Train on two files, save the model, and predict shops that it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300, help="maximum number of epochs")
    epochs = parser.parse_args(arguments).epochs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder / "shops")
        model = eg.TableModel(eg.UniGNN(max_epochs=epochs, patience=100))
        model.fit(folder / "shops", label="kind")
        print(*model.notes, sep="\n")
        print(f"balanced accuracy on test nodes: {model.evaluate()['balanced_accuracy']:.0f}%")
        model.save(folder / "model")

        # Next week: other shops, in files of the same form. Nothing is trained again.
        write_files(folder / "new", first=1000, count=20, seed=1)
        loaded = eg.TableModel.load(folder / "model")
        print(loaded.predict(folder / "new").head())


if __name__ == "__main__":
    main()
