"""Results of many cases, stored per reader, so that a long run can be ended and gone on with."""

import json
from collections import Counter

from attack.fuzz.running import Result

ROUND = 5_000
"""Cases of a reader before its result is stored and the next reader has its turn."""


def rounds(readers, cases, folder, run):
    """Let `run` add cases to the stored result of every reader, until it has as many as wanted.

    `run` is given a reader, a number of cases, and the result to add them to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for goal in dict.fromkeys([*range(ROUND, cases, ROUND), cases]):
        for reader in readers:
            file = folder / f"{reader.name}.json"
            result = results[reader.name] = stored(file, reader.name)
            left = goal - result.total
            if left > 0:
                run(reader, left, result)
                store(file, result)
    return results.values()


def stored(path, name):
    """The result of earlier calls."""
    if not path.exists():
        return Result(name)
    content = json.loads(path.read_text())
    return Result(name, Counter(content["counts"]), content["failures"], content["seconds"])


def store(path, result):
    """Replace the stored result."""
    content = {"counts": result.counts, "failures": result.failures, "seconds": result.seconds}
    path.with_suffix(".new").write_text(json.dumps(content))
    path.with_suffix(".new").replace(path)
