# %% [markdown]
# # A method of your own
#
# A method is a dataclass with two functions: `_fit` learns from a task whose test labels are
# hidden, `_logits` scores every node. Splits, seeds, early stopping, scores, saving and comparisons
# are the same for all methods.

# %%
from dataclasses import dataclass
from typing import final

from torch.nn.functional import cross_entropy

import evengraph as eg
from evengraph.metrics import validation_score
from evengraph.nn import GraphNetwork
from evengraph.ops.sparse import propagation_matrix, sparsify, undirected_adjacency

EPOCHS = 200


# %% [markdown]
# ## Label smoothing on two graph convolutions


# %%
@final
@dataclass(kw_only=True)
class Smoothed(eg.Method):
    """Cross-entropy with label smoothing on two graph convolutions.

    Args:
        smoothing: Share of the target that is spread evenly over all classes.
        hidden: Width of both layers.
    """

    limits = {"smoothing": "fraction", "hidden": 1}

    smoothing: float = 0.1
    hidden: int = 64

    def _fit(self, task):
        labels, inputs = task.graph.y[task.train], self._inputs(task.graph)
        self.net_ = self._new_network()

        def epoch():
            logits = self.net_(*inputs)
            loss = cross_entropy(logits[task.train], labels, label_smoothing=self.smoothing)
            return loss, validation_score(logits.detach(), task)

        self._train(self.net_, epoch)

    def _logits(self, graph):
        return self.net_(*self._inputs(graph))

    def _build_network(self):
        return GraphNetwork(self.num_features_, self.hidden, self.num_classes_, dropout=0.0)

    def _inputs(self, graph):
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        return sparsify(graph.x.float()), propagation_matrix(matrix, graph.x.device)


# %%
graph = eg.toy(500, 2000, 40, 4, size_ratio=0.2)
protocol = eg.splits.Natural(train=0.2, val=0.2)
method = Smoothed(smoothing=0.2, max_epochs=EPOCHS).fit(protocol(graph, seed=0), seed=0)
method

# %% [markdown]
# ## Is it better than GCN?

# %%
methods = {"smoothed": Smoothed(max_epochs=EPOCHS), "gcn": eg.GCN(max_epochs=EPOCHS)}
eg.compare(graph, methods, protocol, seeds=range(5))

# %% [markdown]
# ## Does it keep the contract?
#
# The same checks as for every built-in method: probabilities sum to one, the same seed gives the
# same result, test labels have no influence. `check_method(Smoothed)` runs all of them.

# %%
from evengraph.testing import METHOD_CHECKS, check_method

for rule in list(METHOD_CHECKS)[:3]:
    check_method(Smoothed, only=rule)
    print(rule, "holds")
