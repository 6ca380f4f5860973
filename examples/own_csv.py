"""Two CSV files of one's own: string ids, string labels, gaps, one rare class.

python examples/own_csv.py             some seconds
python examples/own_csv.py --epochs 5  only to see it run
"""

import argparse
import random
import tempfile
from pathlib import Path

import evengraph as eg
from evengraph.tables import FeatureEncoder, read_table

COUNTRIES = ("de", "fr", "pl")


def write_files(folder, *, first=0, count=400, seed=0):
    """Shops and who trades with whom; about one in twelve is a fraud, half have no label."""
    draw = random.Random(seed)
    nodes, edges = ["shop,country,turnover,opened,kind"], ["source,target"]
    kinds = [
        "fraud" if draw.random() < 1 / 12 else draw.choice(["food", "tools"]) for _ in range(count)
    ]
    for number, kind in enumerate(kinds):
        name = f"shop-{first + number}"
        turnover = (
            "" if draw.random() < 0.1 else f"{draw.gauss(9 if kind == 'fraud' else 5, 2):.2f}"
        )
        country = draw.choice(COUNTRIES) if draw.random() < 0.95 else ""
        label = kind if draw.random() < 0.5 else ""
        nodes.append(f"{name},{country},{turnover},20{draw.randint(10, 23)}-05-31,{label}")
        alike = [other for other in range(number) if kinds[other] == kind]
        mates = draw.sample(alike, min(2, len(alike)))
        edges += [f"{name},shop-{first + other}" for other in mates]
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(edges) + "\n", encoding="utf-8")


def main(arguments=None):
    """From two files to a kept model, and from that to predictions for shops it never saw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300, help="training steps at most")
    epochs = parser.parse_args(arguments).epochs
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_files(folder)
        own = eg.open_graph(folder, label="kind", id="shop")
        print("\n".join(own.notes))
        task = eg.splits.Natural(train=0.6, val=0.2)(own.graph, seed=0)
        model = eg.UniGNN(max_epochs=epochs, patience=100).fit(task, seed=0)
        scores = eg.evaluate(task, model.predict_proba(own.graph))
        found = dict(zip(own.class_names, scores["per_class_recall"], strict=True))
        print(
            "found of each class:", {name: f"{100 * share:.0f}%" for name, share in found.items()}
        )
        model.save(folder / "model", extra={"encoder": own.encoder.as_dict()})

        # Next week: other shops, in files of the same form. Nothing is trained again.
        (folder / "new").mkdir()
        write_files(folder / "new", first=1000, count=20, seed=1)
        loaded = eg.load_model(folder / "model")
        encoder = FeatureEncoder.from_dict(loaded.extra_["encoder"])
        nodes, edges = (read_table(folder / "new" / f"{name}.csv") for name in ("nodes", "edges"))
        new = eg.from_frames(nodes, edges, id="shop", encoder=encoder)
        for shop, chances in list(zip(new.ids, loaded.predict_proba(new.graph), strict=True))[:5]:
            best = int(chances.argmax())
            print(f"{shop}: {loaded.class_names_[best]} ({100 * chances[best]:.0f}%)")


if __name__ == "__main__":
    main()
