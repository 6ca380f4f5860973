"""Draw the figures of `paper.md`: `python docs/figures.py`.

On Cora, three classes with two labels each, where the graph can be had; else on the toy graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import evengraph as eg
from evengraph.fast.unignn import inputs_and_clusters

FOLDER = Path(__file__).parent / "figures"
# Okabe and Ito's palette, which most colour-blind people can tell apart
COLOURS = ("#9aa0a6", "#56b4e9", "#009e73", "#8c564b", "#cc79a7", "#e69f00", "#0072b2", "#b39ddb")
HIGHLIGHT = "#d55e00"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "axes.titlesize": 9,
    "figure.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "svg.hashsalt": "evengraph",  # the same results give the same file
    "svg.fonttype": "none",
}
GREY, INK = "#c3cad3", "#18202b"
DARK_GREY = "#66768c"
# Blues and greens for what helps little, orange-red for what helps most.
STEPS = (DARK_GREY, COLOURS[1], HIGHLIGHT)
SEED = 5
EARLY = 10  # epochs
LOOKS: tuple[dict[str, Any], ...] = (
    {"facecolor": DARK_GREY, "label": "labelled"},
    {"facecolor": HIGHLIGHT, "label": "pseudo-label, right"},
    {"facecolor": "white", "edgecolor": HIGHLIGHT, "hatch": "////", "label": "wrong"},
)


def find_task() -> tuple[eg.Task, str]:
    """Cora in the paper's first set-up, or the toy graph in the same manner."""
    try:
        graph, name = eg.load("cora"), "Cora"
    except eg.datasets.DataNotFound:
        graph, name = eg.toy(), "the toy graph"
    return eg.splits.Step(minority=3, ratio=0.1)(graph, seed=SEED), name


def draw_all(folder: Path, task: eg.Task, name: str, *, patience: int = 300) -> list[Path]:
    """Fit Uni-GNN once and draw every figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    model = eg.UniGNN(patience=patience).fit(task, seed=SEED, progress=False)
    draw: dict[str, Callable[[Any, eg.Task, eg.UniGNN, str], Any]] = {
        "paths": draw_paths,
        "reach": draw_reach,
        "clusters": draw_clusters,
        "pseudo": draw_pseudo,
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for stem, function in draw.items():
        with plt.rc_context(STYLE):
            figure = function(plt, task, model, name)
            path = folder / f"{stem}.svg"
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
            written.append(path)
    return written


def draw_paths(plt: Any, task: eg.Task, model: eg.UniGNN, name: str) -> Any:
    """One node and what it is joined to: by edges, and by short paths with their weights."""
    graph = task.graph
    centre = _handsome_node(graph)
    paths = eg.ops.structural_adjacency(graph.edge_index, graph.num_nodes, 3)
    start, end = int(paths.crow_indices()[centre]), int(paths.crow_indices()[centre + 1])
    near = paths.col_indices()[start:end].tolist()
    weights = dict(zip(near, paths.values()[start:end].tolist(), strict=True))
    places = _rings(graph.edge_index, centre, weights)
    kept = set(places)
    edges = [(a, b) for a, b in graph.edge_index.t().tolist() if a < b and {a, b} <= kept]
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.6))
    titles = ("the edges of the graph", "its row of A_struct, alpha = 3")
    for axis, title in zip(axes, titles, strict=True):
        _bare(axis, title)
        for a, b in edges:
            axis.plot(*zip(places[a], places[b], strict=True), color=GREY, lw=0.8, zorder=1)
    for distance, colour in enumerate((HIGHLIGHT, COLOURS[5], COLOURS[1]), start=1):
        ring = [n for n, weight in weights.items() if n in kept and round(1 / weight) == distance]
        for node in ring:
            ends = zip(places[centre], places[node], strict=True)
            axes[1].plot(*ends, color=colour, lw=2.6 / distance, alpha=0.85, zorder=2)
        for axis, fill in ((axes[0], "white"), (axes[1], colour)):
            xy = np.array([places[n] for n in ring])
            axis.scatter(*xy.T, s=26, c=fill, edgecolors=DARK_GREY, linewidths=0.8, zorder=3)
        words = f"{'1' if distance == 1 else f'1/{distance}'}: {distance} step{'s'[: distance > 1]}"
        axes[1].plot([], [], color=colour, lw=2.6 / distance, label=words)
    for axis in axes:
        axis.scatter(*places[centre], s=90, c=INK, zorder=4)
    axes[1].legend(title="weight", loc="lower right", frameon=False, fontsize=8, title_fontsize=8)
    figure.suptitle(f"A node of {name} and all that lies within three steps", fontsize=10)
    return figure


def draw_reach(plt: Any, task: eg.Task, model: eg.UniGNN, name: str) -> Any:
    """For each class, how many nodes hear of one of its labels within two layers."""
    shares = reach(task, model)
    counts = task.class_counts.tolist()
    order = sorted(range(task.num_classes), key=lambda label: -counts[label])
    figure, axis = plt.subplots(figsize=(6.4, 0.36 * len(order) + 1.3))
    names = ("two layers along edges (GCN)", "along paths, alpha = 2", "and within clusters")
    for place, label in enumerate(order):
        found = [shares[kind][label] for kind in range(3)]
        axis.plot([min(found), max(found)], [place, place], color=GREY, lw=1.5, zorder=1)
        for kind, value in enumerate(found):
            marker = "os^"[kind]
            axis.scatter(value, place, s=48, color=STEPS[kind], marker=marker, zorder=2 + kind)
    for kind, words in enumerate(names):
        axis.scatter([], [], s=48, color=STEPS[kind], marker="os^"[kind], label=words)
    ticks = [f"{_title(task, label)}, {_labels(counts[label])}" for label in order]
    axis.set_yticks(range(len(order)), ticks)
    axis.invert_yaxis()
    axis.set_xlim(-2, 102)
    axis.set_xlabel("percent of all nodes that one of its labelled nodes reaches")
    axis.grid(visible=True, axis="x")
    axis.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


def reach(task: eg.Task, model: eg.UniGNN) -> list[list[float]]:
    """Percent of nodes that a class's labels reach in two layers: edges, paths, clusters too."""
    num_nodes = task.graph.num_nodes
    edges, paths = (
        eg.ops.structural_adjacency(task.graph.edge_index, num_nodes, alpha) for alpha in (1, 2)
    )
    clusters = [model.net_.get_buffer(f"clusters_{layer}") for layer in range(2)]
    shares = []
    for matrix, used in ((edges, []), (paths, []), (paths, clusters)):
        row = []
        for label in range(task.num_classes):
            reached = task.train & (task.graph.y == label)
            for layer in range(2):
                further = reached | (matrix @ reached.float() > 0)
                if used:
                    further |= torch.isin(used[layer], used[layer][reached])
                reached = further
            row.append(100 * float(reached.float().mean()))
        shares.append(row)
    return shares


def draw_clusters(plt: Any, task: eg.Task, model: eg.UniGNN, name: str) -> Any:
    """Embeddings in the plane: by class, and clusters that labelled nodes of rare ones are in."""
    from sklearn.manifold import TSNE

    net, inputs, find = inputs_and_clusters(model, task.graph)
    with torch.no_grad():
        embeddings = net.embed(net.first_layer(inputs, find), inputs, find)
    clusters = net.get_buffer(f"clusters_{model.layers - 1}")
    counts = task.class_counts
    rare = [label for label in range(task.num_classes) if counts[label] < counts.max()][:3]
    sizes = torch.bincount(clusters)[clusters]
    known = [
        int((sizes * (task.train & (task.graph.y == label))).argmax()) for label in rare
    ]  # of the labelled nodes, the one in the largest cluster
    some = np.random.default_rng(0).permutation(task.graph.num_nodes)[:700]
    mates = torch.isin(clusters, clusters[known]).nonzero().flatten().numpy()
    shown = np.unique(np.concatenate([some, mates]))
    flat = TSNE(random_state=0, init="pca").fit_transform(embeddings[shown].numpy())
    labels, groups = task.graph.y.numpy()[shown], clusters.numpy()[shown]
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 5.0))
    _bare(axes[0], "by class")
    _bare(axes[1], "clusters around one label of each rare class")
    palette, markers = (*COLOURS[1:4], COLOURS[4], COLOURS[6], COLOURS[0], HIGHLIGHT), "os^vDPX"
    for label in range(task.num_classes):
        chosen = labels == label
        look = {"s": 9, "color": palette[label % 7], "marker": markers[label % 7], "lw": 0}
        axes[0].scatter(*flat[chosen].T, **look, label=_title(task, label))
    axes[1].scatter(*flat.T, s=7, color=GREY, lw=0)
    for place, (label, node) in enumerate(zip(rare, known, strict=True)):
        colour, marker = (HIGHLIGHT, COLOURS[6], COLOURS[2])[place], "os^"[place]
        mates = groups == int(clusters[node])
        axes[1].scatter(*flat[mates].T, s=14, color=colour, marker=marker, lw=0)
        where = flat[np.searchsorted(shown, node)]
        words = f"{_title(task, label)}: {int((clusters == clusters[node]).sum())} nodes"
        look = {"color": colour, "marker": marker, "edgecolors": INK, "linewidths": 1.2}
        axes[1].scatter(*where, s=55, **look, label=words, zorder=3)
    for axis in axes:
        _legend_below(axis)
    return figure


def _legend_below(axis: Any) -> None:
    """A legend under a panel, one entry per line, so that names are neither cut nor met."""
    axis.legend(
        loc="upper left", bbox_to_anchor=(0.0, -0.02), ncols=1, frameon=False, fontsize=9,
        markerscale=1.6, handletextpad=0.4,
    )  # fmt: skip


def draw_pseudo(plt: Any, task: eg.Task, model: eg.UniGNN, name: str) -> Any:
    """How many examples each class has: labels, and pseudo-labels that are right and wrong."""
    early = eg.UniGNN(max_epochs=EARLY).fit(task, seed=SEED, progress=False)
    counts = task.class_counts
    order = sorted(range(task.num_classes), key=lambda label: -int(counts[label]))
    figure, axes = plt.subplots(1, 3, figsize=(6.4, 2.9), sharey=True)
    panels = (("labels alone", None), (f"after {EARLY} epochs", early), ("in the end", model))
    for axis, (title, fitted) in zip(axes, panels, strict=True):
        right = wrong = torch.zeros_like(counts)
        if fitted is not None:
            right, wrong = pseudo_labels(task, fitted)
        heights = [counts[order], right[order], wrong[order]]
        below = torch.zeros_like(counts)
        for height, look in zip(heights, LOOKS, strict=True):
            there = height.nonzero().flatten()
            axis.bar(there, height[there], bottom=below[there], width=0.7, lw=0.8, **look)
            below = below + height
        axis.set_title(title, fontsize=9)
        axis.set_xticks(range(len(order)), [str(label) for label in order])
        axis.set_xlabel("class")
    axes[0].set_ylabel("examples")
    handles = [plt.Rectangle((0, 0), 1, 1, **look) for look in LOOKS]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


def pseudo_labels(task: eg.Task, model: eg.UniGNN) -> tuple[torch.Tensor, torch.Tensor]:
    """How many pseudo-labels of each class are right, and wrong, (C,) each."""
    chosen = eg.ops.balanced_pseudo_labels(
        model.predict_proba(task.graph), task.class_counts, ~task.train, model.threshold
    )
    good = task.graph.y[chosen.nodes] == chosen.labels
    size = task.num_classes
    return tuple(torch.bincount(chosen.labels[m], minlength=size) for m in (good, ~good))  # type: ignore[return-value]


def _handsome_node(graph: Any) -> int:
    """A node with about thirty others within three steps, few of them joined to one another."""
    paths = eg.ops.structural_adjacency(graph.edge_index, graph.num_nodes, 3)
    starts, ends = paths.crow_indices()[:-1], paths.crow_indices()[1:]
    degrees = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    able = ((ends - starts - 30).abs() <= 6) & (degrees >= 4) & (degrees <= 6)
    near = {
        node: paths.col_indices()[starts[node] : ends[node]]
        for node in able.nonzero().flatten().tolist()
    }
    if not near:
        return int((ends - starts - 30).abs().argmin())
    return min(near, key=lambda node: _joined(graph.edge_index, near[node]) / len(near[node]))


def _joined(edge_index: torch.Tensor, nodes: torch.Tensor) -> int:
    """Edges between these nodes."""
    return int(torch.isin(edge_index, nodes).all(dim=0).sum())


def _rings(
    edge_index: torch.Tensor, centre: int, weights: dict[int, float], most: int = 60
) -> dict[int, tuple[float, float]]:
    """Places on rings by distance; each node near the one through which it is reached."""
    near: dict[int, list[int]] = {}
    for a, b in edge_index.t().tolist():
        near.setdefault(a, []).append(b)
    kept = dict(sorted(weights.items(), key=lambda item: -item[1])[:most])
    children: dict[int, list[int]] = {centre: []}
    order = [centre]
    for node in order:
        for other in near.get(node, []):
            if other in kept and other not in children:
                children[node].append(other)
                children[other] = []
                order.append(other)
    width: dict[int, int] = {}
    for node in reversed(order):
        width[node] = max(1, sum(width[child] for child in children[node]))
    places, spans = {centre: (0.0, 0.0)}, {centre: (0.0, 2 * np.pi)}
    for node in order:
        low, high = spans[node]
        for child in children[node]:
            step = (high - low) * width[child] / width[node]
            spans[child] = (low, low + step)
            angle, distance = low + step / 2, round(1 / weights[child])
            places[child] = (distance * np.cos(angle), distance * np.sin(angle))
            low += step
    return places


def _bare(axis: Any, title: str) -> None:
    axis.set_title(title, fontsize=9)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for side in axis.spines.values():
        side.set_visible(False)


def _title(task: eg.Task, label: int) -> str:
    return task.class_names[label].replace("_", " ") if task.class_names else f"class {label}"


def _labels(count: int) -> str:
    return f"{count} label" if count == 1 else f"{count} labels"


def main() -> int:
    """Draw them into docs/figures."""
    task, name = find_task()
    for path in draw_all(FOLDER, task, name):
        sys.stdout.write(f"wrote {path}\n")
    sys.path.insert(0, str(FOLDER.parents[1]))
    from tools.picture_sources import record

    record("figures")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
