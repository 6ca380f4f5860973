"""Logistic: logistic regression on a node's features, and on means over neighbours if asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.core.threads import limited_pools
from evengraph.core.untrusted import MAX_HOPS
from evengraph.methods.bases.method import Method
from evengraph.methods.bases.saving import checked
from evengraph.metrics.multiclass import rare_class, validation_likelihood, validation_score
from evengraph.ops.context import once_per_graph
from evengraph.ops.features import Scaling, hop_table, with_log_degree
from evengraph.ops.sparse import neighbour_averages, to_scipy, weighted_adjacency

PATH = 4.0  # factor between one penalty and the next
DENSE = 0.2  # share of non-zero entries from which a table is stored as dense
ITERATIONS = 30  # per penalty, each starting at the weights of the one before
ROWS = 4_096  # rows that are scaled at a time
TIE = 1e-9  # per step: of equally good penalties the largest is selected
RANKED = 1.5  # nats of validation labels that a step may cost where nodes are ranked


@final
@dataclass(kw_only=True)
class Logistic(Method):
    """Logistic regression on a node's own features, the simplest model that ignores the graph.

    Where it scores as well as a graph network, the graph does not help. With hops it is the
    simplest model that uses the graph: a row also holds the mean of the neighbours' features, the
    mean of their means and so on; in a graph with relations also the mean in each. Columns are
    scaled: by median and quartiles where most nodes have a value of their own, by the largest
    absolute value where most are equal, so that a bag of words stays sparse and a rare word stays
    small; means are scaled to the deviation of what they are means of. The L2 penalty is selected
    by the likelihood of the validation labels; where one of two classes is rare and ranking is what
    counts, a weaker one may be less likely, by 1.5 nats per step. At the end, each bias loses the
    logarithm of its class's share, as if classes were of one size; with few labels this ranks
    better than weights.

    Args:
        hops: How far a row reaches: 0 is the node's own features, 1 adds the mean over neighbours,
            2 the mean over their means, and so on.
        degree: Add the logarithm of the node's degree to its features, and so the neighbours' mean
            of it; without hops it has no effect.

    Cost:
        O(nnz(X) C) per iteration of L-BFGS, over labelled nodes; at most 30 iterations per epoch.

    Departs:
        An epoch is one model: penalties are quartered from one per labelled node on.
        `learning_rate` and `weight_decay` have no effect. Nothing is random: seeds have no effect.

    Reference:
        Pedregosa et al., "Scikit-learn: Machine Learning in Python", JMLR 2011; its
        LogisticRegression. With hops: Frasca et al., "SIGN: Scalable Inception Graph Neural
        Networks", ICML 2020 workshop.
    """

    portfolio = tuple({"hops": hops, "degree": True, "patience": 8} for hops in (2, 0))
    selects_itself = True
    _weighted_edges = True
    separate_relations = True
    limits = {"hops": (0, MAX_HOPS)}

    max_epochs: int = 8
    patience: int = 3
    hops: int = 0
    degree: bool = False

    @property
    def uses_graph(self) -> bool:
        """Whether a row holds more than the node's own features."""
        return self.hops > 0

    @property
    def full_title(self) -> str:
        """The title, with the hops if there are any."""
        return f"{self.title} over {self.hops} hops" if self.hops else self.title

    def _fit(self, task: Task) -> None:
        nodes = (task.train | task.val).nonzero().squeeze(1)
        key = "scaling", self.degree and self.hops > 0
        self.scaling_ = once_per_graph(
            task.graph, key, lambda: Scaling.of(self._inputs(task.graph)[0])
        )
        self.select(task, nodes, *self._table(task.graph, nodes))

    def select(self, task: Task, nodes: Tensor, table: Any, factors: Tensor) -> None:
        """Fit one model per penalty to the scaled rows of labelled nodes, and keep the best.

        The factors are what each column of the table was multiplied with.
        """
        self._factors, self._shares = factors, task.class_counts.clamp(min=1).double().log()
        first = torch.zeros(self.num_classes_, factors.numel()).to(self._shares)
        first = torch.cat([first, self._shares.unsqueeze(1)], dim=1)
        self._models = [first]  # weights and biases after each epoch
        history = self._train_in_steps(self._path(task, nodes, table, self._models))
        chosen = self._use(history.best_epoch)
        # Epochs have likelihoods; this is the score of all methods.
        logits = self._outputs(task, nodes, table, chosen)
        history.best_score = float(validation_score(logits, task))

    def rewind(self, step: int) -> None:
        """Take the penalty of another epoch than validation prefers, and forget all others."""
        self._models = self._models[: max(step, 1) + 1][-1:]
        self._use(step)

    def _use(self, step: int) -> Tensor:
        step = max(step, 1)  # without any weight, no node ranks before another
        model = self._models[min(step, len(self._models) - 1)].clone()
        model[:, -1] -= self._shares
        self.weights_ = model.clone()
        self.weights_[:, :-1] *= self._factors
        return model

    def _inputs(self, graph: Data) -> tuple[Tensor, sp.csr_matrix | None]:
        """Features, with the degree if asked for, and the graph if it is used."""
        if not self.hops:
            return graph.x, None
        matrix = weighted_adjacency(graph)
        return with_log_degree(graph.x.float(), matrix) if self.degree else graph.x, matrix

    def _table(self, graph: Data, nodes: Tensor) -> tuple[Any, Tensor]:
        """Rows of some nodes, and the factor that each column was multiplied with."""
        x, matrix = self._inputs(graph)
        if matrix is None:
            return self._scaled(x[nodes]), x.new_ones(x.shape[1], dtype=torch.float64)
        averages = neighbour_averages(graph, self.hops, union=matrix)
        mean, *others = (to_scipy(average.matrix.matrix.cpu()) for average in averages)
        relations = others[self.hops - 1 :]
        table, factors = hop_table(self._scaled(x), mean, nodes.cpu().numpy(), self.hops, relations)
        if sp.issparse(table) and table.nnz > DENSE * table.shape[0] * table.shape[1]:
            table = table.toarray()
        return table, torch.from_numpy(factors).to(x.device, torch.float64)

    def _path(
        self, task: Task, nodes: Tensor, table: Any, models: list[Tensor]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Loss and score of the untrained model, then of one model per epoch."""
        graph = task.graph
        labels, train = graph.y[task.train], task.train[nodes].cpu().numpy()
        # shrinking all scores makes them more likely, yet ranks no better
        gain = -TIE if rare_class(task) is None else RANKED / int(task.val.sum())
        train_table, solver = table[train], _solver()
        for epoch in range(self.max_epochs + 1):
            if epoch:
                solver.C = PATH ** (epoch - 1) / labels.numel()
                models.append(_fitted(solver, train_table, labels))
            logits = self._outputs(task, nodes, table, models[-1])
            loss = cross_entropy(logits[task.train], labels)
            likelihood = validation_likelihood(logits, task) + gain * (epoch - self.max_epochs)
            yield loss, likelihood.exp()

    def _outputs(self, task: Task, nodes: Tensor, table: Any, model: Tensor) -> Tensor:
        """Logits of some nodes by their rows, of all others 0, (N, C)."""
        weights = model.cpu().numpy()
        values = torch.from_numpy(table @ weights[:, :-1].T + weights[:, -1])
        logits = values.new_zeros(task.graph.num_nodes, task.num_classes)
        return logits.index_copy(0, nodes.cpu(), values).to(task.graph.x.device)

    def _scaled(self, x: Tensor) -> Any:
        """Scaled features, as a sparse matrix if most entries are zero."""
        blocks = [self.scaling_(part).cpu() for part in x.split(ROWS)]
        entries = sum(int(torch.count_nonzero(block)) for block in blocks)
        if entries < DENSE * x.numel():
            return sp.vstack([sp.csr_matrix(block.numpy()) for block in blocks], format="csr")
        return torch.cat(blocks).numpy()

    def _logits(self, graph: Data) -> Tensor:
        x, matrix = self._inputs(graph)
        weights, bias = self.weights_[:, :-1].t().float(), self.weights_[:, -1].float()
        joined = torch.cat(weights.split(x.shape[1]), dim=1)  # all parts of a row are scaled alike
        products = torch.cat([self.scaling_(part) @ joined for part in x.split(ROWS)])
        terms: list[Tensor] = list(products.split(self.num_classes_, dim=1))
        if matrix is None:
            return terms[0] + bias
        averages = neighbour_averages(graph, self.hops, union=matrix)
        hops, relations = terms[: 1 + self.hops], terms[1 + self.hops :]
        total = hops.pop()
        while hops:  # the mean of a sum is the sum of the means
            total = hops.pop() + averages[0].matrix @ total
        for average, term in zip(averages[self.hops :], relations, strict=True):
            total = total + average.matrix @ term
        return total + bias

    def _state(self) -> dict[str, Tensor]:
        return {"weights": self.weights_, **self.scaling_._asdict()}

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.weights_ = checked(state, "weights", 2)
        centre, scale = checked(state, "centre", 1), checked(state, "scale", 1)
        self.scaling_ = Scaling(centre, scale, checked(state, "spread", 1, torch.bool))
        if len({part.numel() for part in self.scaling_}) > 1:
            raise ValueError("the parts of the scaling differ in length")


def _solver() -> Any:
    from sklearn.linear_model import LogisticRegression  # takes a second

    return LogisticRegression(max_iter=ITERATIONS, warm_start=True)


def _fitted(solver: Any, table: Any, labels: Tensor) -> Tensor:
    """Weights and biases of all classes, float64, (C, F + 1)."""
    with limited_pools(), warnings.catch_warnings():
        # a step that ran out of iterations is a model as well
        warnings.simplefilter("ignore")
        solver.fit(table, labels.cpu().numpy())
    coefficients, biases = torch.from_numpy(solver.coef_), torch.from_numpy(solver.intercept_)
    weights = torch.cat([coefficients, biases.unsqueeze(1)], dim=1)
    if weights.shape[0] == 1:  # of two classes, for the second
        weights = torch.cat([torch.zeros_like(weights), weights])
    return weights.to(labels.device, torch.float64)
