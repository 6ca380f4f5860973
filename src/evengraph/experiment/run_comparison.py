"""compare_results(): the methods of a run compared as `compare` compares them."""

from __future__ import annotations

from dataclasses import replace

import torch

from evengraph.experiment.comparison import conclude, split_overlap
from evengraph.experiment.comparison_result import Comparison
from evengraph.experiment.environment import describe
from evengraph.experiment.run import RunPlan, RunResults
from evengraph.metrics.binary import positive_class


def compare_results(
    plan: RunPlan, outcome: RunResults, device: torch.device | str = "cpu"
) -> Comparison | None:
    """Compare methods on the seeds that all have; None without any.

    Args:
        plan: What was run.
        outcome: What it gave.
        device: Where it was trained.
    """
    seeds = [{record.seed for record in one.records} for one in outcome.standings]
    common = [seed for seed in plan.seeds if seeds and all(seed in own for own in seeds)]
    if not common:
        return None
    standings = [
        replace(one, records=[record for record in one.records if record.seed in common])
        for one in outcome.standings
    ]
    graph = plan.protocol(plan.graph, seed=common[0]).graph  # step and longtail reorder classes
    counts = torch.bincount(graph.y[graph.y >= 0].cpu())
    return conclude(
        standings,
        plan.methods,
        graph,
        plan.protocol,
        metric="balanced_accuracy",
        overlap=split_overlap(plan.graph, plan.protocol, common),
        positive=positive_class(counts) if len(counts) == 2 else None,
        seeds=common,
        wanted=len(plan.seeds),
        budget=1,
        failed={name: failure.reason for name, failure in outcome.failed.items()},
        stopped=len(common) < len(plan.seeds),
        environment=describe(torch.device(device)),
    )
