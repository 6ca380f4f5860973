"""`python -m attack.mutate`: change the library in one place at a time, and run its tests."""

import argparse
import ast
import json
import os
import random
import sys
import warnings
from collections import Counter
from itertools import groupby
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.simplefilter("ignore")

from attack.mutate.equivalent import EQUIVALENT  # noqa: E402
from attack.mutate.mutants import Mutant, mutants  # noqa: E402
from attack.mutate.named import NAMED  # noqa: E402
from attack.mutate.running import SOURCES, mirrors, passes, prepare  # noqa: E402

STORE = ("core/store", "core/rows", "core/store_sql", "core/claims", "core/sqlite_file")
TABLES = tuple(
    f"tables/{name}"
    for name in ("read", "open", "list_file", "graph_files", "torch_file", "entries")
)
MODULES = ("ops", "metrics", "splits", *STORE, *TABLES)


def modules(names):
    """The modules under these folders or of these names that have tests of their own."""
    for name in names:
        path = SOURCES / name
        found = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for one in (str(file.relative_to(SOURCES)) for file in found):
            if mirrors(one):
                yield one


def sample(names, count, seed):
    """Mutants drawn at random from all mutants of these modules, in the order of modules."""
    every = []
    for path in modules(names):
        every += mutants(path, (SOURCES / path).read_text())
    return sorted(random.Random(seed).sample(every, min(count, len(every))), key=lambda m: m.path)


def outcomes(drawn, known):
    """Try mutants that are not known yet; gives each name with what came of it."""
    for path, group in groupby(drawn, key=lambda mutant: mutant.path):
        unknown = [mutant for mutant in group if mutant.name not in known]
        if not unknown:
            continue
        start = sum(os.times()[:4])
        if not passes(path, ast.parse((SOURCES / path).read_text()), 300):
            print(f"{path}: left out, its tests do not pass here by themselves", flush=True)
            continue
        limit = 5 + 3 * (sum(os.times()[:4]) - start)
        for mutant in unknown:
            if not passes(path, mutant.tree, limit):
                yield mutant, "killed"
            else:
                yield mutant, "equivalent" if is_equivalent(mutant) else "survived"


def is_equivalent(mutant):
    return isinstance(mutant, Mutant) and (mutant.path, mutant.text, mutant.change) in EQUIVALENT


def main(arguments=None):
    """Run the tests against a sample of mutants; returns 1 if too few were noticed."""
    parser = argparse.ArgumentParser(prog="python -m attack.mutate", description=__doc__)
    parser.add_argument("--module", action="append", help="folder or file, such as ops")
    parser.add_argument(
        "--named", action="store_true", help="those of named.py instead of a sample"
    )
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=92.0, help="percent that must be killed")
    parser.add_argument("--record", type=Path, help="file with outcomes, to go on with")
    options = parser.parse_args(arguments)
    prepare()
    drawn = (
        NAMED if options.named else sample(options.module or MODULES, options.mutants, options.seed)
    )
    record = options.record
    known = json.loads(record.read_text()) if record and record.exists() else {}
    for mutant, outcome in outcomes(drawn, known):
        known[mutant.name] = outcome
        if outcome != "killed":
            print(f"  {outcome}: {mutant.name}", flush=True)
        if record:
            record.write_text(json.dumps(known, indent=1))
    counts = Counter(known.values())
    tried = counts["killed"] + counts["survived"]
    share = 100 * counts["killed"] / max(tried, 1)
    print(f"{tried} mutants and {counts['equivalent']} equivalent ones: ", end="")
    print(f"{counts['killed']} killed, {share:.1f}%")
    return int(share < options.least)


if __name__ == "__main__":
    sys.exit(main())
