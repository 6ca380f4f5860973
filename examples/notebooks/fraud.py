# %% [markdown]
# # Find fraud in two tables
#
# Two tables, shops and the trades between them, become a graph. One shop in twelve is a fraud, and
# half of the shops have no label. Everything here runs in seconds on a laptop, without a network.

# %%
import random
import tempfile
from pathlib import Path

import pandas as pd

import evengraph as eg

EPOCHS = 300

# %% [markdown]
# ## The tables
#
# Replace them with your own: `pd.read_csv("nodes.csv")`, `pd.read_csv("edges.csv")`.

# %%
draw = random.Random(0)
kinds = ["fraud" if draw.random() < 1 / 12 else "honest" for _ in range(500)]
rows, trades = [], []
for number, kind in enumerate(kinds):
    rows.append(
        {
            "shop": f"shop-{number}",
            "country": draw.choice(["de", "fr", "pl"]),
            "turnover": round(draw.gauss(7 if kind == "fraud" else 5, 2), 2),
            "kind": kind if draw.random() < 0.5 else None,
        }
    )
    alike = [other for other in range(number) if kinds[other] == kind]
    for other in draw.sample(alike, min(2, len(alike))):
        trades.append({"source": f"shop-{number}", "target": f"shop-{other}"})
    trades.append({"source": f"shop-{number}", "target": f"shop-{draw.randrange(500)}"})
shops, trades = pd.DataFrame(rows), pd.DataFrame(trades)
shops.head()

# %% [markdown]
# ## Look before training

# %%
graph = eg.from_frames(shops, trades, label="kind", id="shop")
graph

# %%
eg.inspect_graph(graph.graph)

# %% [markdown]
# ## Train, and see how well it does
#
# The labelled shops are split into training, validation and test nodes. The test scores are those
# of a model that never saw the test labels; the model itself is then fitted again with all labels.

# %%
model = eg.TableModel(eg.GCN(max_epochs=EPOCHS, patience=50))
model.fit(shops, trades, label="kind", id="shop", seed=[0, 1, 2], progress=False)

# %% [markdown]
# ## Predict the shops without a label
#
# `flagged` uses a threshold on the probability of fraud that was chosen on validation nodes.

# %%
predictions = model.predict(shops, trades)
unknown = predictions[shops["kind"].isna().to_numpy()]
unknown.sort_values("p_fraud", ascending=False).head()

# %% [markdown]
# ## Why is the first of them suspect?

# %%
suspect = unknown.sort_values("p_fraud", ascending=False).iloc[0]["shop"]
model.explain(suspect)

# %% [markdown]
# ## Save it, with a model card

# %%
folder = Path(tempfile.mkdtemp()) / "model"
model.save(folder)
print(*(folder / "README.md").read_text().splitlines()[2:20], sep="\n")
