"""One view of a result, a comparison and an inspection, for terminal, pages and notebooks.

The classes read the content of result.json, comparison.json and inspect.json, and hold the numbers
and sentences that are shown. A file may be old or damaged: what is missing is None or left out.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
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
    name = str(protocol.get("name") or "")
    minority, ratio = number(protocol.get("minority")), number(protocol.get("ratio"))
    if not name:
        return "imbalance not recorded"
    words = _PROTOCOLS.get(name, f"{name} imbalance")
    if name in ("step", "publicstep") and minority is not None and ratio is not None:
        classes = plural(int(minority), "minority class", "minority classes")
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


def timestamp(created: object) -> str | None:
    """Format an ISO time stamp for readers."""
    if not isinstance(created, str) or not created:
        return None
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    zone = "" if moment.tzinfo is None else " UTC"
    moment = moment.astimezone(UTC) if zone else moment
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def duration(seconds: float) -> str:
    """Format seconds for readers."""
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def minority_classes(protocol: Content, counts: Sequence[float | None]) -> set[int]:
    """The smallest classes, as many as the split protocol says, or those below half the largest."""
    known = sorted((count, -index) for index, count in enumerate(counts) if count is not None)
    if not known or known[0][0] == known[-1][0]:
        return set()
    if (wanted := number(protocol.get("minority"))) is not None:
        return {-index for _, index in known[: max(int(wanted), 0)]}
    return {-index for count, index in known if count < known[-1][0] / 2}


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
        row = [max(number(lookup(matrix, index, k)) or 0.0, 0.0) for k in range(len(matrix))]
        column = [max(number(lookup(line, index)) or 0.0, 0.0) for line in matrix]
        return cls(row[index] if index < len(row) else 0.0, math.fsum(row), math.fsum(column))

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
    count: float | None  # training nodes
    minority: bool
    pooled: Hits


RANKING = "positive_average_precision"
IN_USE = " (in use)"  # of a threshold
FEW = 20  # test nodes of a class in a split, below which its scores are called uncertain


class ResultView:
    """The content of a result.json: the runs of one method."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.runs = [run for run in items(content, "runs") if isinstance(run, Mapping)]
        self.method, self.paper = part(content, "method"), part(content, "paper")
        self.protocol = part(content, "imbalance")
        name = self.method.get("title") or self.method.get("name") or "A method"
        self.title = f"{name} on {dataset_title(lookup(content, 'dataset', 'name'))}"
        # whether it has a ranking of the rarer of two classes
        self.is_two_class = number(lookup(content, "mean", RANKING)) is not None

    @property
    def seeds(self) -> str:
        """The seeds, shortened if there are many."""
        names = [str(seed) for seed in items(self.content, "seeds")]
        names = names or [str(run.get("seed", "?")) for run in self.runs]
        shown = names if len(names) <= 10 else [*names[:3], "…", names[-1]]
        words = f"{'seed' if len(names) == 1 else 'seeds'} {', '.join(shown)}"
        return words if names else "no seed"

    @property
    def facts(self) -> list[tuple[str, str]]:
        fields = part(self.content, "dataset")
        pairs = [
            (integer(fields[key]), key.removeprefix("num_"))
            for key in ("num_nodes", "num_edges", "num_features", "num_classes")
            if number(fields.get(key)) is not None
        ]
        seconds = sum(number(run.get("seconds")) or 0.0 for run in self.runs)
        return [*pairs, *([(duration(seconds), "of training")] if seconds > 0 else [])]

    @property
    def metrics(self) -> dict[str, str]:
        """Names and headings: known metrics in the order of `METRICS`, then others."""
        keys = dict.fromkeys(part(self.content, "mean"))
        keys |= {key: None for run in self.runs for key in part(run, "metrics")}
        known = {key: metric.heading for key, metric in METRICS.items() if key in keys}
        return known | {key: str(key).replace("_", " ") for key in keys if key not in known}

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
        counts = [number(count) for count in items(self.content, "class_counts")]
        total = number(lookup(self.content, "dataset", "num_classes"))
        # a result without counts still has classes; an absurd number must not make a million rows
        counts += [None] * (min(int(total or 0), 1000) - len(counts))
        rare = minority_classes(self.protocol, counts)
        rows = []
        for index, count in enumerate(counts):
            named = lookup(self.content, "dataset", "class_names", index)
            name = (named.strip() if isinstance(named, str) else "") or f"class {index}"
            rows.append(ClassScores(index, name, count, index in rare, self.pooled([index])))
        return sorted(rows, key=lambda row: (row.count is None, -(row.count or 0.0), row.index))

    @cached_property
    def confusion(self) -> list[list[float]]:
        """Confusion matrices of all runs, summed, in the order of `classes`; empty without any."""
        matrices = self._matrices

        def count(true: int, guess: int) -> float:
            values = (number(lookup(matrix, true, guess)) or 0.0 for matrix in matrices)
            return math.fsum(max(value, 0.0) for value in values)

        order = [row.index for row in self.classes] if matrices else []
        return [[count(true, guess) for guess in order] for true in order]

    @cached_property
    def _matrices(self) -> list[Sequence[Any]]:
        """Confusion matrices of the runs; of two classes at the threshold, as `predict` decides."""
        found = list[Sequence[Any]]()
        for run in self.runs:
            matrix = items(run, "decision", "confusion") or items(run, "confusion_matrix")
            found += [matrix] if matrix else []
        return found

    def pooled(self, classes: Sequence[int]) -> Hits:
        """The nodes of some classes in all test sets; a hit has its own class predicted."""
        each = [Hits.of(matrix, index) for matrix in self._matrices for index in classes]
        hits, size, guessed = (math.fsum(one[place] for one in each) for place in range(3))
        distinct = number(self.content.get("distinct"))
        return Hits(hits, size, guessed, max(distinct or 1 / max(len(self.runs), 1), 1e-6))

    @property
    def tests(self) -> int:
        return int(number(self.content.get("splits")) or len(self.runs))

    @property
    def positive(self) -> ClassScores | None:
        """The class to find: of two the positive one, of more the only minority class."""
        index = number(self.content.get("positive"))
        if index is None:
            index = number(lookup(self.runs, 0, "decision", "positive"))
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
        nodes, size, share = (
            number(lookup(self.content, "decision", "ranking", key))
            for key in ("nodes", "positives", "share")
        )
        chosen = [r for r in items(self.content, "decision", "options") if lookup(r, "chosen")]
        flagged, found = (number(lookup(chosen, 0, key)) for key in ("flagged", "found"))
        if not (nodes and size and share and flagged) or abs(share - size / nodes) < 1e-6:
            return []
        right = min(found or 0.0, flagged)
        value, ends = Hits(right, size, flagged).share(flagged - right, flagged)
        between = "" if ends is None else f" ({ends[0]:.0f}% to {ends[1]:.0f}%)"
        return [
            f"These counts are of labels as collected: if {percentage(share, 1)} of all nodes are "
            f"of {name}, {value:.0f}% of the alarms{between} would be false."
        ]

    @property
    def interval(self) -> Interval | None:
        """Ends of the 95% interval of average precision on the test nodes, in percent."""
        low, high = (average(number(lookup(r, "interval", k)) for r in self.runs) for k in (0, 1))
        mean = self.score(RANKING).mean
        if low is None or high is None or mean is None:
            return None
        scale = max(self.pooled([]).weight * self.tests, 1.0) ** 0.5  # of the mean of several sets
        return mean - (mean - low) / scale, mean + (high - mean) / scale

    @property
    def average_precision(self) -> list[str]:
        """That of the positive class with its interval, and of which nodes, beside chance.

        Over all held-out nodes; of results before version 0.3 the mean over test sets.
        """
        ranking, one = part(self.content, "decision", "ranking"), self.positive
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
        for row in items(self.content, "decision", "options"):
            names = ("threshold", "flagged", "found", "positives", "cost")
            value, flagged, found, size, cost = (number(lookup(row, name)) for name in names)
            if None in (value, flagged, found, size):
                continue
            hits = Hits(found or 0.0, size or 0.0, flagged or 0.0)
            cells = [decimals(value, 3), integer(flagged), integer(found)]
            cells += [integer((size or 0.0) - (found or 0.0)), hits.precision]
            mark = IN_USE if lookup(row, "chosen") is True else ""
            rows.append(
                [f"{lookup(row, 'rule')}{mark}", *cells, *([] if cost is None else [integer(cost)])]
            )
        return rows

    @property
    def threshold(self) -> str:
        """The threshold of the model, what it did, and why those of the tests are others."""
        text = str(lookup(self.content, "decision", "words"))
        options = items(self.content, "decision", "options")
        prices = [number(lookup(row, "cost")) for row in options]
        used = [p for p, row in zip(prices, options, strict=True) if lookup(row, "chosen")]
        if used and used[0] is not None and any(p is not None and p < used[0] for p in prices):
            text += (
                " With costs it follows from the probabilities: one that was cheaper on these "
                "nodes may be luck."
            )
        found = [number(lookup(run, "decision", "threshold")) for run in self.runs]
        shown = ", ".join(dict.fromkeys(f"{one:.3g}" for one in found if one is not None))
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
        idea, title = self.method.get("summary"), str(self.method.get("title") or "The model")
        if self.summaries:
            return selected(title, self.summaries[0][1])
        return f"Method: {idea}" if isinstance(idea, str) and idea else ""

    @property
    def summaries(self) -> list[tuple[str, list[str]]]:
        """What the method says about what it did, in lines per seed."""
        return [
            (str(run.get("seed", "?")), lines)
            for run in self.runs
            if (lines := [line for line in items(run, "summary") if isinstance(line, str)])
        ]

    @property
    def notes(self) -> list[str]:
        """What went otherwise than expected in the fits, each sentence once, with its seeds."""
        seeds: dict[str, dict[str, None]] = {}
        for run in self.runs:
            for note in items(run, "notes"):
                seeds.setdefault(str(note), {})[str(run.get("seed", "?"))] = None
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
    "On these nodes": "Significant for the labelled nodes of this graph, with an interval that "
    "does not allow for shared nodes; less certain for other nodes.",
    "ECE": "Expected calibration error: how far confidence is from accuracy, as predicted and "
    "after calibration on held-out nodes.",
}
_STRENGTH = {"clear": "significant", "here": "on these nodes", "noise": "not significant"}


class Gap(NamedTuple):
    """How far one method is behind another on the same splits, in points."""

    ahead: str  # label
    behind: str
    difference: float
    interval: Interval | None  # the one that its verdict uses; None with too few splits
    p: float | None
    corrected_p: float | None  # allows for shared nodes and for several comparisons
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
        self.verdict = [str(text) for text in items(content, "verdict", "sentences")]

    @cached_property
    def gaps(self) -> dict[frozenset[str], Gap]:
        """All pairs of methods by their labels."""
        tested, gaps = self.num_splits >= FEWEST_SPLITS, {}
        for pair in self.content["pairs"]:
            strength, p = pair["strength"], (number(pair["p"]), number(pair["wide_p"]))
            verdict = _STRENGTH[strength]
            if tested and not self.content["conclusive"]:  # one split, several seeds
                verdict = "cannot tell"
            elif not tested or (self.too_few and strength == "noise"):
                verdict = "too few splits"
            interval = self._interval(pair, "" if strength == "here" else "wide_")
            both = pair["ahead"], pair["behind"]
            gaps[frozenset(both)] = Gap(*both, pair["difference"], interval, *p, verdict)
        return gaps

    @cached_property
    def standings(self) -> list[StandingView]:
        """The methods, the best first."""
        best, name, rows = self.methods[0]["label"], self.metric.name, []
        for method in self.methods:
            figure, label = part(method, "figures", name), method["label"]
            found = {run["seed"]: number(lookup(run, "metrics", name)) for run in method["runs"]}
            standing = StandingView(
                label=label,
                title=method["title"],
                mean=number(figure.get("mean")),
                interval=self._interval(figure),
                splits={seed: value for seed, value in found.items() if value is not None},
                paper=number(lookup(method, "paper", name, "mean")),
                seconds=number(method["seconds"]) or 0.0,
                behind=self.gaps.get(frozenset((best, label))),
            )
            rows.append(standing)
        return rows

    def _interval(self, ends: Content, prefix: str = "") -> Interval | None:
        low, high = number(ends.get(f"{prefix}low")), number(ends.get(f"{prefix}high"))
        return None if self.too_few or low is None or high is None else (low, high)

    @property
    def recalls(self) -> list[tuple[str, float, bool, list[float | None]]]:
        """Of each class name, training nodes, whether it is rare, and recall by each method.

        The largest comes first; nodes are those of the first split, in older files all labelled.
        """
        first, names = self.methods[0]["runs"][0], self.content["classes"]
        sizes = items(first, "train_counts") or items(self.content, "class_counts")
        counts = [number(size) or 0.0 for size in sizes]
        counts += [0.0] * (len(names) - len(counts))
        rare = minority_classes(self.content["protocol"], counts)
        rows = []
        for i in sorted(range(len(names)), key=lambda index: (-counts[index], index)):
            found = [[lookup(r, "per_class", "recall", i) for r in m["runs"]] for m in self.methods]
            means = [average(map(number, values)) for values in found]
            rows.append((str(names[i]), counts[i], i in rare, means))
        return rows if any(value is not None for row in rows for value in row[3]) else []


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
        self.labels = part(content, "labels")
        self.unlabelled = number(lookup(content, "reach", "nodes")) or 0.0
        self.recommendation = " ".join(map(str, items(content, "recommendation")))
        self.sizes = {
            "nodes": integer(content.get("num_nodes")),
            "edges": integer(lookup(content, "edges", "pairs")),
            "features": integer(lookup(content, "features", "count")),
        }
        # share of the unlabelled nodes within 1, 2, ... hops of any class, in percent
        self.reach = self._shares(items(content, "reach", "any_class"))

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Level (warning, note or good) and text."""
        levels = {"warning": "warning", "good": "good"}
        found = items(self.content, "findings")
        return [(levels.get(str(one.get("level")), "note"), str(one.get("text"))) for one in found]

    @cached_property
    def classes(self) -> list[ClassSummary]:
        """The classes, the largest first."""
        labelled = [number(count) or 0.0 for count in items(self.labels, "labelled")]
        ends = [number(count) or 0.0 for count in items(self.content, "homophily", "neighbours")]
        rows, names = [], items(self.labels, "names")
        for index, (name, count) in enumerate(zip(names, labelled, strict=False)):
            share = number(lookup(self.content, "homophily", "per_class", index))
            known = index < len(ends) and any(ends)
            summary = ClassSummary(
                name=str(name),
                labelled=count,
                rare=count < max(labelled) / 2,
                homophily=None if share is None else 100 * share,
                chance=100 * ends[index] / sum(ends) if known else None,
                reach=self._shares(items(self.content, "reach", "per_class", index)),
            )
            rows.append(summary)
        return sorted(rows, key=lambda row: -row.labelled)

    def _shares(self, counts: Sequence[Any]) -> list[float]:
        return [100 * (number(n) or 0.0) / self.unlabelled for n in counts if self.unlabelled]
