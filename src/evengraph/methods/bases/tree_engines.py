"""Libraries that grow boosted trees: scikit-learn, LightGBM and XGBoost behind one function.

All of them give trees as node tables in the form of scikit-learn, so that what is stored and
evaluated does not depend on the library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.errors import MissingPackageError
from evengraph.ops.trees import coarsen

BINS = 255  # distinct values of a column; scikit-learn takes minutes to bin weighted rows

Engine = Literal["sklearn", "lightgbm", "xgboost"]
PACKAGES: dict[str, tuple[str, str]] = {
    "sklearn": ("scikit-learn", "'evengraph[tables]'"),
    "lightgbm": ("LightGBM", "lightgbm"),
    "xgboost": ("XGBoost", "xgboost"),
}
"""Name of each library, and what pip installs it from."""

NODE = np.dtype(
    [
        ("value", "f8"),  # of inner nodes before shrinkage, of leaves after it
        ("feature_idx", "i8"),
        ("num_threshold", "f8"),  # values up to it go left
        ("left", "i8"),
        ("right", "i8"),
        ("is_leaf", "u1"),
    ]
)
"""What the rest reads of a node of scikit-learn."""


class TreeParams(NamedTuple):
    """What the trees may be like; the names are those of `Boosting`."""

    learning_rate: float
    weight_decay: float
    leaves: int
    smallest_leaf: int


class Grown(NamedTuple):
    """Node tables of trees, round by round and class by class, and the logits before any tree.

    The losses are those before any tree, after one round and so on, where a list that is not empty
    asks for them.
    """

    tables: list[Any]
    baseline: NDArray[np.float64]
    losses: list[float]


def grower(
    engine: Engine, x: Tensor, labels: Tensor, weights: Tensor, params: TreeParams
) -> Callable[[int], Grown]:
    """A function that takes a number of rounds, larger each time, and returns all trees so far.

    Shapes:
        x: (n, F)
        labels, weights: (n,); each class occurs
    """
    library = import_engine(engine)
    y, w = labels.cpu().numpy(), weights.cpu().numpy()
    if engine == "sklearn":
        return _sklearn(coarsen(x, BINS).double().cpu().numpy(), y, w, params)
    baseline = start_logits(y, w)
    rows, start, grown = x.cpu().numpy(), np.tile(baseline, (len(y), 1)), Grown([], baseline, [])
    if engine == "lightgbm":
        settings = lightgbm_settings(params, baseline)
        start = start.squeeze(1 if baseline.size == 1 else ())
        data = library.Dataset(rows, y, weight=w, init_score=start, params=settings)
        return partial(grow_lightgbm, library.Booster(settings, data), params, grown)
    data = library.DMatrix(rows, y, weight=w, base_margin=start)
    model = library.Booster(xgboost_settings(params, baseline), [data])
    return partial(grow_xgboost, model, data, grown)


def import_engine(engine: Engine) -> Any:
    """The library; raises MissingPackageError where it is not installed."""
    package, source = PACKAGES[engine]
    try:
        return import_module(engine)
    except ImportError:
        raise MissingPackageError(
            f"{package} is not installed; try: pip install {source}."
        ) from None


def _sklearn(x: Any, y: Any, weights: Any, params: TreeParams) -> Callable[[int], Grown]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        learning_rate=params.learning_rate,
        l2_regularization=params.weight_decay,
        max_leaf_nodes=params.leaves,
        max_bins=BINS,
        min_samples_leaf=params.smallest_leaf,
        early_stopping=False,
        warm_start=True,
        random_state=0,
    )

    def grow(rounds: int) -> Grown:
        model.set_params(max_iter=rounds)
        model.fit(x, y, sample_weight=weights)
        tables = [tree.nodes for trees in model._predictors for tree in trees]
        return Grown(tables, model._baseline_prediction.flatten(), [])

    return grow


def lightgbm_settings(params: TreeParams, baseline: NDArray[np.float64]) -> dict[str, Any]:
    """Parameters of LightGBM, for its data set and its trees."""
    return {
        **_objective(baseline, "binary", "multiclass"),
        "learning_rate": params.learning_rate,
        "lambda_l2": params.weight_decay,
        "num_leaves": params.leaves,
        "min_data_in_leaf": params.smallest_leaf,
        "max_bin": BINS,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "boost_from_average": False,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }


def grow_lightgbm(model: Any, params: TreeParams, grown: Grown, rounds: int) -> Grown:
    """Add trees to a model of LightGBM.

    Args:
        model: The booster.
        params: What the trees may be like.
        grown: What there is so far; trees and losses are added in place.
        rounds: How many there are to be.
    """
    tables, outputs = grown.tables, grown.baseline.size
    before = len(tables) // outputs
    for _ in range(rounds - before):
        model.update()
        if grown.losses:
            grown.losses.append(float(model.eval_train()[0][2]))
    trees = model.dump_model(start_iteration=before)["tree_info"]
    tables.extend(lightgbm_table(tree["tree_structure"], params) for tree in trees)
    # where nothing is left to split, no tree is added
    tables.extend([_leaf()] * (rounds * outputs - len(tables)))
    return grown


def xgboost_settings(params: TreeParams, baseline: NDArray[np.float64]) -> dict[str, Any]:
    """Parameters of XGBoost."""
    return {
        **_objective(baseline, "binary:logistic", "multi:softprob"),
        "learning_rate": params.learning_rate,
        "lambda": params.weight_decay,
        "max_leaves": params.leaves,
        "max_depth": 0,
        "grow_policy": "lossguide",
        "tree_method": "hist",
        "min_child_weight": params.smallest_leaf / 4,  # the most that a node of two classes adds
        "max_bin": BINS,
        "verbosity": 0,
    }


def grow_xgboost(model: Any, data: Any, grown: Grown, rounds: int) -> Grown:
    """Add trees to a model of XGBoost; arguments are those of `grow_lightgbm`, and its data."""
    before = len(grown.tables) // grown.baseline.size
    for index in range(before, rounds):
        model.update(data, index)
        if grown.losses:
            grown.losses.append(float(model.eval(data).rpartition(":")[2]))
    content = json.loads(model[before:rounds].save_raw("json"))
    trees = content["learner"]["gradient_booster"]["model"]["trees"]
    grown.tables.extend(xgboost_table(tree) for tree in trees)
    return grown


def start_logits(y: Any, weights: Any) -> NDArray[np.float64]:
    """Logits by the classes' shares of the weight; two classes have one, for the second."""
    logs: NDArray[np.float64] = np.log(np.bincount(y, weights) / weights.sum())
    return logs - logs.mean() if logs.size > 2 else logs[1:] - logs[:1]


def start_loss(y: Any, weights: Any, baseline: NDArray[np.float64]) -> float:
    """The weighted mean of the cross-entropy before any tree."""
    logits = baseline if baseline.size > 1 else np.append(0.0, baseline)
    shares = np.bincount(y, weights) / weights.sum()
    return float(np.log(np.exp(logits).sum()) - shares @ logits)


def _objective(baseline: NDArray[np.float64], two: str, many: str) -> dict[str, Any]:
    if baseline.size == 1:
        return {"objective": two}
    return {"objective": many, "num_class": baseline.size}


def _leaf() -> NDArray[Any]:
    """A tree that adds nothing."""
    table = np.zeros(1, NODE)
    table["is_leaf"] = 1
    return table


def lightgbm_table(root: dict[str, Any], params: TreeParams) -> NDArray[Any]:
    """The nodes of a tree that LightGBM dumped; values of its inner nodes are shrunk, too."""
    nodes, rows = [root], list[tuple[float, int, float, int, int, int]]()
    while len(rows) < len(nodes):
        node = nodes[len(rows)]
        if "split_index" not in node:
            rows.append((node["leaf_value"], 0, 0.0, 0, 0, 1))
            continue
        value = node["internal_value"] / params.learning_rate
        left = len(nodes)
        rows.append((value, node["split_feature"], node["threshold"], left, left + 1, 0))
        nodes += [node["left_child"], node["right_child"]]
    return np.array(rows, NODE)


def xgboost_table(tree: dict[str, Any]) -> NDArray[Any]:
    """The nodes of a tree in XGBoost's JSON; values below the threshold go left, as float32."""
    left, right = (np.array(tree[f"{side}_children"]) for side in ("left", "right"))
    limits, leaf = np.array(tree["split_conditions"], np.float32), left < 0
    table = np.zeros(len(left), NODE)
    table["value"] = np.where(leaf, limits, np.array(tree["base_weights"], np.float32))
    table["feature_idx"] = tree["split_indices"]
    table["num_threshold"] = np.nextafter(limits, np.float32(-np.inf))
    table["left"], table["right"], table["is_leaf"] = left, right, leaf
    return table
