"""What the figures of an experiment show, in a sentence, for those who cannot see them."""

from __future__ import annotations

from evengraph.core.text import printable
from evengraph.report.store.canvas import METRIC
from evengraph.report.store.comparisons import best_first
from evengraph.report.store.experiment_results import ExperimentResults


def alternative_text(results: ExperimentResults, picture: str) -> str:
    """Describe a figure by the last part of its name, such as `table1-cost`."""
    kind = picture.removeprefix(f"{results.name}-")
    methods, settings = len(results.labels), len(results.settings)
    where = results.setting_title(results.settings[0]) if settings == 1 else f"{settings} settings"
    scores = f"balanced accuracy of {methods} methods in {where}, mean and 95% interval"
    texts = {
        "comparison": f"{scores}; best on average: {_best(results)}",
        "ablation": f"difference of {methods - 1} variants from {results.reference} in {where}",
        "sensitivity": f"balanced accuracy over {len(results.curves())} parameters in {where}",
        "recall": f"recall of each class, largest to smallest, in {where}",
        "confusion": f"confusion matrices of {results.baseline} and {results.highlight}",
        "cost": f"balanced accuracy of {methods} methods against seconds and memory per run",
        "map": f"t-SNE of the embeddings of {results.tsne_label}, by class and by cluster",
    }
    text = f"{results.title}: {texts.get(kind, kind)}"
    return printable(text).replace("[", "(").replace("]", ")").replace("\n", " ")


def _best(results: ExperimentResults) -> str:
    return next(iter(best_first(results, METRIC)), "none")
