"""One view of a result, a comparison and an inspection, for terminal, pages and notebooks.

The classes read the content of result.json, comparison.json and inspect.json as it was made just
now, and hold the numbers and sentences that are shown. Undefined metrics are None or NaN.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple, Self

from evengraph.core.untrusted import average, items, lookup, number, part
from evengraph.metrics.registry import METRICS
from evengraph.metrics.significance import (
    ENOUGH_SPLITS,
    FEWEST_SPLITS,
    Interval,
    share_interval,
)
from evengraph.report.markup import decimals, integer, percentage, plural

Content = Mapping[str, Any]

_DATASETS = {
    "cora": "Cora",
    "cora_ml": "Cora-ML",
    "cora_full": "Cora-Full",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
}
_PROTOCOLS = {
    "step": "step imbalance",
    "publicstep": "step imbalance on the public split",
    "longtail": "long-tailed imbalance",
    "natural": "natural class imbalance",
    "folds": "natural class imbalance, cross-validated",
    "given": "natural class imbalance, split by a column",
    "bytime": "natural class imbalance, split by time",
    "semisupervised": "a few labels of two classes",
}


def dataset_title(name: object) -> str:
    """Spell the name of a data set as papers do."""
    return _DATASETS.get(str(name), str(name)) if name else "a graph"


def describe_protocol(protocol: Content) -> str:
    """Describe a split protocol and the imbalance that it makes."""
    name, minority, ratio = protocol["name"], protocol.get("minority"), protocol.get("ratio")
    words = _PROTOCOLS.get(name, f"{name} imbalance")
    if name in ("step", "publicstep") and minority is not None and ratio is not None:
        classes = plural(minority, "minority class", "minority classes")
        return f"{words}: {classes} at {100 * ratio:g}%"
    if name == "longtail" and ratio is not None:
        return f"{words}: the smallest class at {100 * ratio:g}% of the largest"
    rest = ", ".join(f"{key} {value}" for key, value in protocol.items() if key != "name")
    return words if name in _PROTOCOLS or not rest else f"{words} ({rest})"


def setting_title(name: object, protocol: Content) -> str:
    """Name a data set with its split protocol, as short as it can be understood."""
    kind, ratio = str(protocol.get("name") or ""), number(protocol.get("ratio"))
    minority = number(protocol.get("minority"))
    share = "" if ratio is None else f" at {100 * ratio:g}%"
    if minority is not None:
        words = plural(int(minority), "minority class", "minority classes") + share
        words += ", public split" if kind == "publicstep" else ""
    elif kind == "longtail":
        words = f"long tail, smallest class{share}"
    else:
        words = _PROTOCOLS.get(kind, kind)
    return f"{dataset_title(name)}, {words}" if words else dataset_title(name)


def timestamp(created: str) -> str:
    """Format an ISO time stamp for readers."""
    moment = datetime.fromisoformat(created).astimezone(UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def duration(seconds: float) -> str:
    """Format seconds for readers."""
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def minority_classes(protocol: Content, counts: Sequence[float]) -> set[int]:
    """The smallest classes, as many as the split protocol says, or those below half the largest."""
    order = sorted(range(len(counts)), key=lambda index: (counts[index], -index))
    if not order or counts[order[0]] == counts[order[-1]]:
        return set()
    if (wanted := protocol.get("minority")) is not None:
        return set(order[:wanted])
    return {index for index in order if counts[index] < counts[order[-1]] / 2}


def shares(counts: Sequence[float]) -> list[float]:
    """Divide a row by its sum; a class without test nodes stays at zero."""
    total = math.fsum(counts)
    return [count / total if total > 0 else 0.0 for count in counts]


class Score(NamedTuple):
    """A metric of a result in percent."""

    name: str
    seeds: list[float | None]
    mean: float | None
    std: float | None  # None for one seed, which has no deviation
    paper: tuple[float | None, float | None]  # published mean and deviation

    @property
    def difference(self) -> float | None:
        """Mean minus the published one."""
        paper = self.paper[0]
        return None if self.mean is None or paper is None else self.mean - paper


class Hits(NamedTuple):
    """How many nodes are of a class, how many are predicted as it, and how many are both."""

    hits: float
    size: float
    guessed: float
    weight: float = 1.0  # different nodes among these, as a fraction: test sets may share some

    @classmethod
    def of(cls, matrix: Sequence[Any], index: int) -> Self:
        """Of a class in a confusion matrix."""
        row, column = matrix[index], [line[index] for line in matrix]
        return cls(row[index], sum(row), sum(column))

    def share(self, count: float, of: float) -> tuple[float | None, Interval | None]:
        """A share in percent with its 95% interval."""
        ends = share_interval(self.weight * count, self.weight * of)
        return 100 * count / of if of else None, ends and (100 * ends[0], 100 * ends[1])

    @property
    def recall(self) -> str:
        return with_interval(*self.share(self.hits, self.size))

    @property
    def precision(self) -> str:
        """Share of the nodes predicted as the class that are of it, in percent."""
        return with_interval(*self.share(self.hits, self.guessed))

    @property
    def f1(self) -> str:
        """Harmonic mean of both, in percent."""
        both = self.size + self.guessed
        return decimals(200 * self.hits / both if both else None)


@dataclass(frozen=True)
class ClassScores:
    """A class of a result, and its nodes in all runs."""

    index: int  # label in the graph
    name: str
    count: int  # training nodes
    minority: bool
    pooled: Hits

    @property
    def cells(self) -> tuple[str, ...]:
        """Training nodes, test nodes, precision, recall and F1."""
        found = self.pooled
        return integer(self.count), integer(found.size), found.precision, found.recall, found.f1


RANKING = "positive_average_precision"
IN_USE = " (in use)"  # of a threshold
FEW = 20  # test nodes of a class in a split, below which its scores are called uncertain


class ResultView:
    """The content of a result.json: the runs of one method; a saved model has parts of it."""

    def __init__(self, content: Content) -> None:
        self.content, self.runs = content, content["runs"]
        self.method, self.paper = part(content, "method"), part(content, "paper")
        self.protocol, self.decision = part(content, "imbalance"), part(content, "decision")
        # whether it has a ranking of the rarer of two classes
        self.is_two_class = number(lookup(content, "mean", RANKING)) is not None

    @property
    def title(self) -> str:
        return f"{self.method['title']} on {dataset_title(self.content['dataset']['name'])}"

    @property
    def seeds(self) -> str:
        """The seeds, shortened if there are many."""
        names = [str(seed) for seed in self.content["seeds"]]
        shown = names if len(names) <= 10 else [*names[:3], "…", names[-1]]
        return f"{'seed' if len(names) == 1 else 'seeds'} {', '.join(shown)}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        names = ("nodes", "edges", "features", "classes")
        pairs = [(integer(self.content["dataset"][f"num_{name}"]), name) for name in names]
        seconds = sum(run["seconds"] for run in self.runs)
        return [*pairs, *([(duration(seconds), "of training")] if seconds > 0 else [])]

    @property
    def metrics(self) -> dict[str, str]:
        """Names and headings, in the order of `METRICS`."""
        known = self.content["mean"]
        return {key: metric.heading for key, metric in METRICS.items() if key in known}

    def score(self, name: str) -> Score:
        """One metric, over seeds and in the paper."""
        mean, std = (number(lookup(self.content, key, name)) for key in ("mean", "std"))
        published = part(self.paper, name)
        return Score(
            name=name,
            seeds=[number(lookup(run, "metrics", name)) for run in self.runs],
            mean=mean,
            std=std if len(self.runs) > 1 and mean is not None else None,
            paper=(number(published.get("mean")), number(published.get("std"))),
        )

    @cached_property
    def classes(self) -> list[ClassScores]:
        """Every class, the largest first."""
        counts = self.content["class_counts"]
        rare = minority_classes(self.protocol, counts)
        names = self.content["dataset"]["class_names"] or map("class {}".format, range(len(counts)))
        rows = [
            ClassScores(index, name, count, index in rare, self.pooled([index]))
            for index, (name, count) in enumerate(zip(names, counts, strict=True))
        ]
        return sorted(rows, key=lambda row: (-row.count, row.index))

    @cached_property
    def confusion(self) -> list[list[float]]:
        """Confusion matrices of all runs, summed, in the order of `classes`; empty without any."""
        found = self._matrices
        order = [row.index for row in self.classes] if found else []
        return [[sum(one[true][guess] for one in found) for guess in order] for true in order]

    @cached_property
    def _matrices(self) -> list[Sequence[Any]]:
        """Confusion matrices of the runs; of two classes at the threshold, as `predict` decides."""
        each = (
            part(run, "decision").get("confusion") or run["confusion_matrix"] for run in self.runs
        )
        return [matrix for matrix in each if matrix]

    def pooled(self, classes: Sequence[int]) -> Hits:
        """The nodes of some classes in all test sets; a hit has its own class predicted."""
        each = [Hits.of(matrix, index) for matrix in self._matrices for index in classes]
        hits, size, guessed = (sum(one[place] for one in each) for place in range(3))
        distinct = number(self.content.get("distinct"))  # NaN without test nodes
        return Hits(hits, size, guessed, max(distinct or 1 / len(self.runs), 1e-6))

    @property
    def tests(self) -> int:
        return int(self.content.get("splits") or len(self.runs))

    @property
    def positive(self) -> ClassScores | None:
        """The class to find: of two the positive one, of more the only minority class."""
        index = self.content.get("positive")
        index = part(self.runs[0], "decision").get("positive") if index is None else index
        found = [r for r in self.classes if (r.minority if index is None else r.index == index)]
        return found[0] if len(found) == 1 else None

    @property
    def positive_name(self) -> str | None:
        return None if self.positive is None else self.positive.name

    @property
    def verdict(self) -> list[str]:
        """What the test says, in counts and compared with chance; nothing without scores."""
        one, rare = self.positive, [row.index for row in self.classes if row.minority]
        pooled = self.pooled([one.index] if one else rare)
        name = f"class {one.name}" if one else f"{len(rare)} minority classes"
        found = [] if not pooled.size else [self._found(pooled, name)]
        if self.is_two_class:
            ranked = f"Average precision is {' '.join(self.average_precision)}."
            return [*found, ranked, *self._in_population(name)]
        mean = self.score("balanced_accuracy").mean
        if mean is None or not self.classes:
            return found
        guess = decimals(100 / len(self.classes))
        return [*found, f"Balanced accuracy is {decimals(mean)}%; guessing gives {guess}%."]

    def _found(self, pooled: Hits, name: str) -> str:
        """Such as `Found 15 of 15 nodes of class fraud (95% interval 78% to 100%) in 3 ...`."""
        wrong, texts = pooled.guessed - pooled.hits, []
        for count, of, word in (
            (pooled.hits, pooled.size, "95% interval "),
            (wrong, pooled.guessed, ""),
        ):
            _, ends = pooled.share(count, of)
            texts.append("" if ends is None else f" ({word}{ends[0]:.0f}% to {ends[1]:.0f}%)")
        verb = "is" if wrong == 1 else "are"
        counts = f"{integer(wrong)} of {integer(pooled.guessed)} alarms {verb} false{texts[1]}"
        return (
            f"Found {integer(pooled.hits)} of {integer(pooled.size)} nodes of {name}{texts[0]} in "
            f"{plural(self.tests, 'test set')}; {counts if pooled.guessed else 'no alarms'}."
        )

    def _in_population(self, name: str) -> list[str]:
        """How many alarms would be false with the shares given, if labels have others."""
        ranking = part(self.decision, "ranking")
        chosen = [row for row in items(self.decision, "options") if row["chosen"]]
        if not ranking or not chosen or not (flagged := chosen[0]["flagged"]):
            return []
        share, size = ranking["share"], ranking["positives"]
        if abs(share - size / ranking["nodes"]) < 1e-6:
            return []
        right = chosen[0]["found"]
        value, ends = Hits(right, size, flagged).share(flagged - right, flagged)
        between = "" if ends is None else f" ({ends[0]:.0f}% to {ends[1]:.0f}%)"
        return [
            f"These counts are of labels as collected: if {percentage(share, 1)} of all nodes are "
            f"of {name}, {value:.0f}% of the alarms{between} would be false."
        ]

    @property
    def interval(self) -> Interval | None:
        """Ends of the 95% interval of average precision on the test nodes, in percent."""
        found = [run["interval"] for run in self.runs if run.get("interval")]
        mean = self.score(RANKING).mean
        if not found or mean is None:
            return None
        low, high = (fmean(ends) for ends in zip(*found, strict=True))
        scale = max(self.pooled([]).weight * self.tests, 1.0) ** 0.5  # of the mean of several sets
        return mean - (mean - low) / scale, mean + (high - mean) / scale

    @property
    def average_precision(self) -> list[str]:
        """That of the positive class with its interval, and of which nodes, beside chance.

        Over all held-out nodes; of models before version 0.3 the mean over test sets.
        """
        ranking, one = part(self.decision, "ranking"), self.positive
        value, nodes, size = (number(ranking.get(k)) for k in ("value", "nodes", "positives"))
        share = number(ranking.get("share"))
        low, high = (number(lookup(ranking, "ends", place)) for place in (0, 1))
        name = one.name if one else "positive"
        where = f"on {integer(nodes)} held-out nodes ({integer(size)} of class {name})"
        if value is None:
            value, (low, high) = self.score(RANKING).mean, self.interval or (None, None)
            total = sum(map(sum, self.confusion))
            share = one.pooled.size / total if one and total else None
            where = f"on {plural(self.tests, 'test set')}"
        ends = "" if low is None else f" (95% interval {decimals(low)} to {decimals(high)})"
        rate = "" if share is None else f"; a random ranking has {decimals(100 * share)}%"
        return [f"{decimals(value)}%{ends}", where + rate]

    @property
    def thresholds(self) -> list[list[str]]:
        """Rule, threshold, alarms, found, missed, precision and cost, the highest first."""
        rows = []
        for row in items(self.decision, "options"):
            hits = Hits(row["found"], row["positives"], row["flagged"])
            counts = hits.guessed, hits.hits, hits.size - hits.hits
            name = row["rule"] + IN_USE * row["chosen"]
            cells = [decimals(row["threshold"], 3), *map(integer, counts), hits.precision]
            rows.append([name, *cells, *([] if row["cost"] is None else [integer(row["cost"])])])
        return rows

    @property
    def threshold(self) -> str:
        """The threshold of the model, what it did, and why those of the tests are others."""
        text, options = str(self.decision.get("words")), items(self.decision, "options")
        used = [row["cost"] for row in options if row["chosen"]]
        if used and used[0] is not None and any(row["cost"] < used[0] for row in options):
            text += (
                " With costs it follows from the probabilities: one that was cheaper on these "
                "nodes may be luck."
            )
        found = [run["decision"]["threshold"] for run in self.runs if run.get("decision")]
        shown = ", ".join(dict.fromkeys(f"{one:.3g}" for one in found))
        if not shown or f"is {shown}, " in text:
            return text
        return (
            f"{text} In the tests it was {shown}, chosen without the test nodes: the model's rests "
            "on all held-out nodes."
        )

    @property
    def threshold_heads(self) -> list[str]:
        heads = ["chosen for", "from", "alarms", "found", "missed", "precision, %"]
        return [
            *heads,
            *(["cost"] if any(len(row) > len(heads) for row in self.thresholds) else []),
        ]

    @property
    def effort(self) -> tuple[str, ...]:
        """Heads of what fits took; a choice among methods has no epochs."""
        return ("seconds",) if self.summaries else ("best epoch", "epochs", "seconds")

    @property
    def chosen(self) -> str:
        """What the model is, in one line: the first words of its summary, or its idea."""
        if self.summaries:
            return selected(self.method["title"], self.summaries[0][1])
        return f"Method: {self.method['summary']}" if self.method["summary"] else ""

    @property
    def summaries(self) -> list[tuple[str, list[str]]]:
        """What the method says about what it did, in lines per seed."""
        return [(str(run["seed"]), run["summary"]) for run in self.runs if run.get("summary")]

    @property
    def notes(self) -> list[str]:
        """What went otherwise than expected in the fits, each sentence once, with its seeds."""
        seeds: dict[str, dict[str, None]] = {}
        for run in self.runs:
            for note in run.get("notes") or ():
                seeds.setdefault(note, {})[str(run["seed"])] = None
        return [
            f"{'Seed' if len(which) == 1 else 'Seeds'} {', '.join(which)}: {note}"
            for note, which in seeds.items()
        ]


def selected(title: str, summary: Sequence[str]) -> str:
    """What a model is, by the first sentence about its selection: `Auto: an average of ...`."""
    what = re.sub(r" \(validation .*", "", summary[0]).split("hose ", 1)[-1] if summary else ""
    return f"{title}{f': {what}' if what else ''}".rstrip(".") + "."


# words of a comparison and what they mean
TERMS = {
    "95% interval": "Of a mean: Student's t over splits. Of a difference: the same over the "
    "differences per split, widened for nodes that splits share (Nadeau and Bengio) and corrected "
    "for the number of comparisons (Holm).",
    "Significant": "The corrected interval of the difference excludes 0.",
    "ECE": "Expected calibration error: how far confidence is from accuracy, as predicted and "
    "after calibration on held-out nodes.",
}


class Gap(NamedTuple):
    """How far one method is behind another on the same splits, in points."""

    ahead: str  # label
    behind: str
    difference: float
    interval: Interval | None  # None with too few splits
    p: float | None
    verdict: str


class StandingView(NamedTuple):
    """A method of a comparison by the metric of the comparison."""

    label: str
    title: str
    mean: float | None
    interval: Interval | None  # None with too few splits
    splits: dict[int, float]
    paper: float | None  # published mean
    seconds: float  # per fit
    behind: Gap | None  # the best; None for the best itself

    @property
    def score(self) -> str:
        """Mean with its interval."""
        return with_interval(self.mean, self.interval)


def with_interval(value: float | None, interval: Interval | None) -> str:
    """Format a value with its interval, if there is one."""
    ends = "" if interval is None else f" ({' to '.join(map(decimals, interval))})"
    return decimals(value) + ends


class ComparisonView:
    """The content of a comparison.json: several methods on the same splits, the best first."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.methods: Sequence[Content] = content["methods"]
        self.titles = {method["label"]: method["title"] for method in self.methods}
        self.metric = METRICS[content["metric"]]
        self.num_splits = len(content["seeds"])
        self.splits = plural(self.num_splits, "split")
        self.training = duration(sum(m["seconds"] * len(m["runs"]) for m in self.methods))
        # whether an interval would be wider than any difference between methods
        self.too_few = self.num_splits < ENOUGH_SPLITS
        self.verdict = content["verdict"]["sentences"]

    @cached_property
    def gaps(self) -> dict[frozenset[str], Gap]:
        """All pairs of methods by their labels."""
        tested, gaps = self.num_splits >= FEWEST_SPLITS, {}
        for pair in self.content["pairs"]:
            verdict = "significant" if pair["significant"] else "not significant"
            if tested and not self.content["conclusive"]:  # one split, several seeds
                verdict = "cannot tell"
            elif not tested or (self.too_few and not pair["significant"]):
                verdict = "too few splits"
            both, interval = (pair["ahead"], pair["behind"]), self._interval(pair)
            p = number(pair["p"])
            gaps[frozenset(both)] = Gap(*both, pair["difference"], interval, p, verdict)
        return gaps

    @cached_property
    def standings(self) -> list[StandingView]:
        """The methods, the best first."""
        best, name, rows = self.methods[0]["label"], self.metric.name, []
        for method in self.methods:
            figure, label = method["figures"][name], method["label"]
            found = {run["seed"]: number(run["metrics"][name]) for run in method["runs"]}
            standing = StandingView(
                label=label,
                title=method["title"],
                mean=number(figure["mean"]),
                interval=self._interval(figure),
                splits={seed: value for seed, value in found.items() if value is not None},
                paper=number(lookup(method, "paper", name, "mean")),
                seconds=method["seconds"],
                behind=self.gaps.get(frozenset((best, label))),
            )
            rows.append(standing)
        return rows

    def _interval(self, ends: Content) -> Interval | None:
        low, high = number(ends["low"]), number(ends["high"])
        return None if self.too_few or low is None or high is None else (low, high)

    @property
    def recalls(self) -> list[tuple[str, float, bool, list[float | None]]]:
        """Of each class name, training nodes, whether it is rare, and recall by each method.

        The largest comes first; nodes are those of the first split.
        """
        counts, names = self.methods[0]["runs"][0]["train_counts"], self.content["classes"]
        rare, rows = minority_classes(self.content["protocol"], counts), []
        for i in sorted(range(len(names)), key=lambda index: (-counts[index], index)):
            found = [[run["per_class"]["recall"][i] for run in m["runs"]] for m in self.methods]
            means = [average(map(number, values)) for values in found]
            rows.append((names[i], counts[i], i in rare, means))
        return rows


class ClassSummary(NamedTuple):
    """A class of an inspected graph."""

    name: str
    labelled: float  # labelled nodes
    rare: bool  # fewer than half the labelled nodes of the largest class
    homophily: float | None  # share of its neighbours that are in the class, in percent
    chance: float | None  # that share if the ends of edges were paired at random, in percent
    reach: list[float]  # share of the unlabelled nodes within 1, 2, ... hops, in percent


class InspectionView:
    """The content of an inspect.json."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.labels = content["labels"]
        self.unlabelled = content["reach"]["nodes"]
        self.recommendation = " ".join(content["recommendation"])
        self.sizes = {
            "nodes": integer(content["num_nodes"]),
            "edges": integer(content["edges"]["pairs"]),
            "features": integer(content["features"]["count"]),
        }
        # share of the unlabelled nodes within 1, 2, ... hops of any class, in percent
        self.reach = self._shares(content["reach"]["any_class"])
        # level (warning, note or good) and text
        self.findings = [(one["level"], one["text"]) for one in content["findings"]]

    @cached_property
    def classes(self) -> list[ClassSummary]:
        """The classes, the largest first."""
        labelled, homophily = self.labels["labelled"], self.content["homophily"]
        ends, rows = homophily["neighbours"], []
        for index, (name, count) in enumerate(zip(self.labels["names"], labelled, strict=True)):
            share = homophily["per_class"][index]
            summary = ClassSummary(
                name=name,
                labelled=count,
                rare=count < max(labelled) / 2,
                homophily=None if share is None else 100 * share,
                chance=100 * ends[index] / sum(ends) if any(ends) else None,
                reach=self._shares(self.content["reach"]["per_class"][index]),
            )
            rows.append(summary)
        return sorted(rows, key=lambda row: -row.labelled)

    def _shares(self, counts: Sequence[Any]) -> list[float]:
        return [100 * n / self.unlabelled for n in counts if self.unlabelled]
