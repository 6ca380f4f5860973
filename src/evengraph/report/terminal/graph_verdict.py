"""Whether the graph helps, over several splits."""

from __future__ import annotations

import re
from collections.abc import Sequence

SCORES = re.compile(r"([0-9.]+) with it and ([0-9.]+) without it")
HELPS = "The graph helps"
FEWEST = 3


def graph_verdict(summaries: Sequence[Sequence[str]]) -> str:
    """What all splits say together where one of them could not tell; empty if they disagree.

    Args:
        summaries: What a method says about each split, in lines.
    """
    ahead = [_graph_is_ahead(" ".join(lines)) for lines in summaries]
    unclear = any("is unclear" in line for lines in summaries for line in lines)
    if len(ahead) < FEWEST or not unclear or None in ahead or len(set(ahead)) > 1:
        return ""
    which, verdict = ("with", "helps") if ahead[0] else ("without", "does not help")
    return (
        f"On the validation nodes of all {len(ahead)} splits the best model {which} the graph is "
        f"ahead: most likely it {verdict}, though one split alone cannot tell."
    )


def _graph_is_ahead(text: str) -> bool | None:
    """Whether the best model with the graph is ahead of the best without; None if equal."""
    if HELPS in text:
        return True
    scores = SCORES.search(text)
    if scores is None or scores[1] == scores[2]:
        return None
    return float(scores[1]) > float(scores[2])
