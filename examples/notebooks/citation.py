# %% [markdown]
# # The paper's protocol on a small citation graph
#
# Step imbalance, as in the Uni-GNN paper: some classes keep 20 labels each, the minority classes 2.
# Validation and test nodes are the same number for every class, so that a rare class counts as much
# as a common one. The graph is generated, so that nothing is downloaded; with a network,
# `eg.load("cora")` takes its place.

# %%
import evengraph as eg

# fewer than the default, to finish within a minute
EPOCHS = 300
SEEDS = [5, 6, 7]

# %%
graph = eg.toy(800, 3200, 60, 5, size_ratio=0.5)
protocol = eg.splits.Step(minority=3, ratio=0.1)
task = protocol(graph, seed=5)
task

# %% [markdown]
# ## One fit
#
# Uni-GNN joins labels, neighbours and clusters of similar nodes.

# %%
method = eg.UniGNN(alpha=1, clusters_per_class=5, max_epochs=EPOCHS)
method.fit(task, seed=5, progress=False)

# %%
scores = eg.evaluate(task, method.predict_proba(task.graph))
{name: round(100 * scores[name], 1) for name in ("balanced_accuracy", "macro_f1", "g_mean")}

# %% [markdown]
# ## Compare methods on the same splits
#
# Three seeds give three splits. If an interval includes 0, the difference may be chance.

# %%
methods = {
    "gcn": eg.GCN(max_epochs=EPOCHS),
    "reweight": eg.Reweight(max_epochs=EPOCHS),
    "unignn": eg.UniGNN(alpha=1, clusters_per_class=5, max_epochs=EPOCHS),
}
eg.compare(graph, methods, protocol, seeds=SEEDS)
