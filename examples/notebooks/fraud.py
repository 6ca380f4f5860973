# %% [markdown]
# # Find fraud in two tables
#
# Two tables, accounts and the payments between them, become a graph. Of 2,947 accounts that were
# checked, 251 are frauds. Everything here runs in a minute on a laptop, without a network.

# %%
import tempfile
from pathlib import Path

import pandas as pd

import evengraph as eg
from evengraph.metrics.decisions import Costs

# fewer than the default, to finish within a minute
EPOCHS = 300

# %% [markdown]
# ## The tables
#
# They are in `examples` of the repository. Replace them with your own.

# %%
here = Path.cwd()
examples = next(up / "examples" for up in (here, *here.parents) if (up / "examples").is_dir())
accounts = pd.read_csv(examples / "accounts" / "nodes.csv")
payments = pd.read_csv(examples / "accounts" / "edges.csv")
accounts.head()

# %% [markdown]
# ## Look before training
#
# `inspect_graph` warns of `status`: accounts are blocked once a fraud has been found.

# %%
graph = eg.from_frames(accounts, payments, label="kind")
eg.inspect_graph(graph.graph, table=accounts, label="kind", id="id")

# %% [markdown]
# ## Train, and see how well it does
#
# The default compares several models. A missed fraud costs ten times as much as a false alarm. The
# test scores are those of models that never saw the test labels.

# %%
model = eg.TableModel(eg.Auto(max_epochs=EPOCHS), costs=Costs(miss=10))
model.fit(accounts, payments, label="kind", drop=["status"], progress=False)

# %% [markdown]
# ## Score next month
#
# `flagged` uses the threshold with the lowest cost.

# %%
new = pd.read_csv(examples / "next-month" / "nodes.csv")
new_payments = pd.read_csv(examples / "next-month" / "edges.csv")
scored = model.predict(new, new_payments, known=examples / "accounts")
ranked = scored.sort_values("p_fraud", ascending=False)
ranked.head(10)

# %% [markdown]
# ## Why is the first unchecked account suspect?

# %%
predicted = model.predict_unlabelled()
suspect = predicted.sort_values("p_fraud", ascending=False).iloc[0]["id"]
model.explain(suspect)

# %% [markdown]
# ## Save it, with a model card

# %%
folder = Path(tempfile.mkdtemp()) / "model"
model.save(folder)
print(*(folder / "README.md").read_text().splitlines()[2:20], sep="\n")
