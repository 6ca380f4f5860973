"""Decisions: thresholds by cost, F1, alerts, precision or recall, and what they do; sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor

from evengraph.core.schema import Count, Share
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.significance import Interval, share_interval


class _Costs(NamedTuple):
    miss: float
    alarm: float


class Costs(_Costs):
    """What a positive node that is not flagged costs, and a negative one that is."""

    __slots__ = ()

    def __new__(cls, miss: float = 1.0, alarm: float = 1.0) -> Costs:
        """Check both; one that is not given is 1."""
        for name, value in (("miss", miss), ("alarm", alarm)):
            if not 0 < value < math.inf:
                raise ValueError(f"cost_{name} must be above 0 and finite, got {value:g}.")
        return super().__new__(cls, miss, alarm)

    @classmethod
    def of(cls, miss: float | None, alarm: float | None) -> Costs | None:
        """Costs of which one may be missing, and is 1 then; None stands for neither."""
        if miss is None and alarm is None:
            return None
        return cls(1.0 if miss is None else miss, 1.0 if alarm is None else alarm)


PRIOR_NODES = 20  # positive nodes from which on labels count more than probabilities
MAX_POINTS = 1_000  # thresholds that are kept; with as many nodes, counts are exact
SET_POINTS = 200  # quantiles of a class that are kept


class Rule(NamedTuple):
    """What a threshold is chosen for; by default the best F1."""

    goal: Literal["f1", "cost", "alerts", "precision", "recall"]
    value: float = 0.0  # share of nodes to flag, or the precision or recall wanted
    costs: Costs | None = None

    @classmethod
    def of(
        cls,
        costs: Costs | None = None,
        *,
        alerts: float | None = None,
        precision: float | None = None,
        recall: float | None = None,
    ) -> Rule:
        """The rule of whichever argument is given; at most one may be."""
        wanted = {"alerts": alerts, "precision": precision, "recall": recall}
        given = {goal: value for goal, value in wanted.items() if value is not None}
        if len(given) + (costs is not None) > 1:
            raise ValueError("costs, alerts, precision and recall exclude each other; give one.")
        for goal, value in given.items():
            if not 0 < value <= 1:
                raise ValueError(f"{goal} must be above 0 and at most 1, got {value:g}.")
            return cls(goal, value)  # type: ignore[arg-type]
        return cls("f1") if costs is None else cls("cost", costs=costs)

    @property
    def words(self) -> str:
        """Such as `the lowest cost (a miss costs 50, a false alarm 1)`."""
        if self.costs is not None:
            miss, alarm = self.costs
            return f"the lowest cost (a miss costs {miss:g}, a false alarm {alarm:g})"
        share = f"{100 * self.value:.3g}%"
        return {
            "alerts": f"flagging {share} of the nodes",
            "precision": f"a precision of {share}",
            "recall": f"a recall of {share}",
        }.get(self.goal, "the best F1")


BEST_F1 = Rule("f1")
OTHERS = (  # what reports show beside the rule in use
    BEST_F1,
    *(Rule("alerts", share) for share in (0.01, 0.05)),
    *(Rule("precision", share) for share in (0.5, 0.8)),
    *(Rule("recall", share) for share in (0.5, 0.8, 0.95)),
)


class Outcome(NamedTuple):
    """What a threshold does to labelled nodes, in counts."""

    threshold: float
    nodes: float
    positives: float
    flagged: float
    found: float  # flagged nodes that are positive

    def cost(self, costs: Costs) -> tuple[float, Interval | None]:
        """Of misses and false alarms together, with its 95% interval.

        Both numbers have Wilson's intervals, whose distances are added as if independent.

        Reference:
            Zou and Donner, "Construction of Confidence Limits about Effect Measures", Statistics in
            Medicine 2008.
        """
        wrong, negatives = self.flagged - self.found, self.nodes - self.positives
        missed = self.positives - self.found
        value = costs.miss * missed + costs.alarm * wrong
        parts = []
        for price, hits, count in (
            (costs.miss, missed, self.positives),
            (costs.alarm, wrong, negatives),
        ):
            if (ends := share_interval(hits, count)) is None:
                return value, None
            parts.append([price * (end * count - hits) for end in ends])
        below, above = (math.hypot(*gaps) for gaps in zip(*parts, strict=True))
        return value, (max(value - below, 0.0), value + above)

    def words(self, name: str, costs: Costs | None = None) -> str:
        """Such as `finds 14 of 18 nodes of class fraud (55% to 91%); 14 of 40 alarms are ...`."""
        found, flagged, positives = (
            f"{round(count):,}" for count in (self.found, self.flagged, self.positives)
        )
        ends = [
            "" if ends is None else f" ({ends[0]:.0%} to {ends[1]:.0%})"
            for ends in (share_interval(self.found, n) for n in (self.positives, self.flagged))
        ]
        text = f"finds {found} of {positives} nodes of class {name}{ends[0]}; "
        text = text if positives != "0" else f"has no node of class {name} to find; "
        right = f"{found} of {flagged} alarms {'is' if found == '1' else 'are'} right{ends[1]}"
        text += right if flagged != "0" else "it raises no alarm"
        if costs is not None:
            value, between = self.cost(costs)
            text += f"; it costs {value:,.0f}"
            text += "" if between is None else f" ({between[0]:,.0f} to {between[1]:,.0f})"
        return text


class DecisionCurve(NamedTuple):
    """What thresholds on calibrated probabilities do to held-out nodes.

    Costs alone decide a threshold if probabilities are right: alarm / (alarm + miss). For other
    rules a few positive nodes would choose one by luck. So every node counts as positive partly by
    its label and partly by its probability; the part of the label grows with the positive nodes.
    """

    nodes: float
    positives: float
    points: tuple[tuple[float, float, float, float], ...]
    """Threshold, nodes flagged, positive nodes found, and found as it is counted for the choice;
    the highest threshold first, which flags nothing."""

    @classmethod
    def of(
        cls, positive: Tensor, probabilities: Tensor, share: float | None = None
    ) -> DecisionCurve | None:
        """Of held-out nodes, (M,) each; None where one of the two classes has no node.

        `share` is that of the positive class in the population, if labels were collected unevenly:
        nodes then count so much that they have it.
        """
        count, positives = positive.numel(), int(positive.sum())
        if not 0 < positives < count:
            return None
        share = positives / count if share is None else share
        scores, order = probabilities.double().cpu().sort(descending=True, stable=True)
        truth = positive.cpu()[order].double()
        weight = count * torch.where(
            truth > 0, share / positives, (1 - share) / (count - positives)
        )
        believed = weight * (positives * truth + PRIOR_NODES * scores) / (positives + PRIOR_NODES)
        last = torch.cat([scores[1:] < scores[:-1], torch.ones(1, dtype=torch.bool)])
        rows = last.nonzero().squeeze(1)  # nodes of equal probability are flagged together
        if len(rows) > MAX_POINTS:  # denser where few are flagged
            places = torch.linspace(0, 1, MAX_POINTS, dtype=torch.double).pow(3)
            rows = rows[(places * (len(rows) - 1)).round().long().unique()]
        sums = (column.cumsum(0)[rows] for column in (weight, weight * truth, believed))
        points = torch.stack([scores[rows], *sums], 1).tolist()
        nothing = (math.nextafter(max(1.0, points[0][0]), math.inf), 0.0, 0.0, 0.0)
        return cls(count, share * count, (nothing, *map(tuple, points)))

    @property
    def counts_nodes(self) -> bool:
        """Whether the numbers, read from a file, are counts of nodes and of parts of these."""
        rows = [(0.0, found, flagged, self.nodes) for _, flagged, found, _ in self.points]
        rows += [(0.0, row[1], self.positives, self.nodes) for row in rows]
        # weights by shares are sums in single precision
        fits = all(part <= whole * 1.001 for row in rows for part, whole in pairwise(row))
        return bool(self.points) and fits and min(point[3] for point in self.points) >= 0

    def threshold(self, rule: Rule) -> float:
        """The threshold that a rule chooses; of equally good ones the highest."""
        points, total = self.points, self.points[-1][3]
        if rule.costs is not None:
            miss, alarm = rule.costs
            if self.nodes > 1:  # what is best for probabilities that are right
                return alarm / (alarm + miss)
            value = [alarm * flagged - (alarm + miss) * found for _, flagged, _, found in points]
            return points[value.index(min(value))][0]
        if rule.goal == "f1":
            value = [-2 * found / max(flagged + total, 1e-12) for _, flagged, _, found in points]
            return points[value.index(min(value))][0]
        if rule.goal == "recall":
            return next(p[0] for p in points if p[3] >= rule.value * total - 1e-9)
        if rule.goal == "alerts":
            few = [p[0] for p in points if p[1] <= rule.value * self.nodes + 1e-9]
            return few[-1] if few else points[0][0]
        precise = [p for p in points[1:] if p[3] >= rule.value * p[1]]
        best = max(points[1:] or points, key=lambda p: p[3] / max(p[1], 1e-12))
        return (precise[-1] if precise else best)[0]

    @property
    def average_precision(self) -> float:
        """Of the ranking by probability."""
        steps = zip(self.points[1:], self.points, strict=False)
        return sum((p[2] - last[2]) * p[2] / p[1] for p, last in steps) / self.positives

    def outcome(self, threshold: float) -> Outcome:
        """What a threshold did to the held-out nodes."""
        point = [p for p in self.points if p[0] >= threshold] or [self.points[0]]
        return Outcome(threshold, self.nodes, self.positives, point[-1][1], point[-1][2])


class Decision(NamedTuple):
    """From which probability of the positive class a node is flagged, why, and what that did."""

    positive: Count
    threshold: Share
    rule: Rule = BEST_F1
    curve: DecisionCurve | None = None

    @classmethod
    def choose(
        cls,
        rows: Tensor,
        labels: Tensor,
        positive: int,
        rule: Rule,
        shares: Sequence[float] | None = None,
    ) -> Decision | None:
        """By calibrated probabilities of held-out nodes, (M, C); None without both classes."""
        share = None if shares is None else shares[positive]
        curve = DecisionCurve.of(labels == positive, rows[:, positive], share)
        return None if curve is None else cls(positive, curve.threshold(rule), rule, curve)

    @property
    def outcome(self) -> Outcome | None:
        """What it did to the held-out nodes; None for models before version 0.3."""
        known = self.curve is not None and self.curve.nodes > 1
        return self.curve.outcome(self.threshold) if known and self.curve else None

    def words(self, name: str) -> str:
        """Where the threshold is, why, and what it did to held-out nodes."""
        text = f"The threshold is {self.threshold:.3g}, {self.rule.words}"
        if self.outcome is None:
            return f"{text}."
        words = self.outcome.words(name, self.rule.costs)
        return f"{text}. On {round(self.outcome.nodes):,} held-out nodes it {words}."

    def options(self) -> list[dict[str, Any]]:
        """What several thresholds would do, the highest first; this one first of equal ones."""
        if self.curve is None or self.outcome is None:
            return []
        costs = self.rule.costs
        rules = [self.rule, *OTHERS, *(Rule("cost", costs=Costs(price)) for price in (10, 50))]
        found: dict[float, dict[str, Any]] = {}
        for rule in rules if costs is None else rules[:-2]:
            value = self.threshold if rule is self.rule else self.curve.threshold(rule)
            outcome = self.curve.outcome(value)
            cost = (None, None) if costs is None else outcome.cost(costs)
            row = {
                "rule": rule.words,
                "chosen": rule is self.rule,
                **outcome._asdict(),
                "cost": cost[0],
                "cost_interval": cost[1],
            }
            found.setdefault(outcome.flagged, row)
        return [found[flags] for flags in sorted(found)]

    def as_dict(self) -> dict[str, Any]:
        """The decision as JSON can hold it."""
        rule = {**self.rule._asdict(), "costs": self.rule.costs and self.rule.costs._asdict()}
        curve = self.curve and self.curve._asdict()
        return {**self._asdict(), "rule": rule, "curve": curve, "options": self.options()}

    @staticmethod
    def of_old(flag: Mapping[str, Any], found: Mapping[str, Any] | None) -> dict[str, Any]:
        """What version 0.2 saved, as it is stored today: a threshold on what was predicted, rates.

        KeyError, TypeError or ValueError for anything else.
        """
        curve, rule = None, {}
        if found is not None:
            share, costs = found["base_rate"], found["costs"]
            points = [
                (value, share * recall + (1 - share) * wrong, share * recall, share * recall)
                for value, recall, wrong in found["points"]
            ]
            curve = {"nodes": 1, "positives": share, "points": points}
            if costs:  # otherwise the best F1
                rule = {"rule": {"goal": "cost", "costs": Costs(*costs)._asdict()}}
        return {"positive": flag["class"], "threshold": flag["from"], "curve": curve, **rule}

    def by(self, rule: Rule) -> Decision:
        """The same evidence with another rule."""
        if self.curve is None:
            raise ValueError(
                "This model does not hold what thresholds do: train and save it again."
            )
        return self._replace(threshold=self.curve.threshold(rule), rule=rule)


def share_sets(labels: Tensor, rows: Tensor) -> tuple[tuple[float, ...], ...]:
    """Quantiles of the probability of a class among its held-out nodes, for `covering`.

    Shapes:
        labels: (M,)
        rows: (M, C)
        returns: C tuples of at most SET_POINTS values, ascending
    """
    found = []
    for label in range(rows.shape[1]):
        own = rows[labels == label, label].double().sort().values
        places = torch.linspace(0, len(own) - 1, min(len(own), SET_POINTS), dtype=torch.double)
        found.append(tuple(own[places.round().long()].tolist()) if len(own) else ())
    return tuple(found)


def covering(sets: Sequence[Sequence[float]], counts: Sequence[int], coverage: float) -> Tensor:
    """Lowest probability with which each class belongs to a prediction set, (C,).

    The set holds the true class of a share `coverage` of the nodes of every class (conformal
    prediction, per class). A class with too few held-out nodes to tell is in every set.

    Reference:
        Vovk, "Conditional Validity of Inductive Conformal Predictors", ACML 2012.
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage:g}.")
    lowest = torch.zeros(len(sets), dtype=torch.double)
    for label, (values, count) in enumerate(zip(sets, counts, strict=True)):
        rank = (1 - coverage) * (count + 1) - 1  # of n + 1 exchangeable nodes, from 0
        if len(values) and rank >= 0:
            place = rank * (len(values) - 1) / max(count - 1, 1)
            low = int(place)
            high = min(low + 1, len(values) - 1)
            lowest[label] = values[low] + (place - low) * (values[high] - values[low])
    return lowest


class Decided(NamedTuple):
    """What makes decisions of what a method predicts, by nodes that were held out."""

    calibrator: Calibrator
    decision: Decision | None
    sets: tuple[tuple[Share, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        decision = self.decision and self.decision.as_dict()
        return {**self._asdict(), "calibrator": self.calibrator.as_dict(), "decision": decision}

    @classmethod
    def by(
        cls,
        rows: Tensor,
        labels: Tensor,
        positive: int | None,
        rule: Rule,
        shares: Sequence[float] | None,
    ) -> Self:
        """By predictions, (M, C), and labels, (M,)."""
        calibrator = Calibrator.fit(rows, labels, shares=shares)
        right = calibrator(rows)
        decision = positive is not None and Decision.choose(right, labels, positive, rule, shares)
        return cls(calibrator, decision or None, share_sets(labels, right))
