"""`python -m attack.mutate`: change the library in one place at a time, and run its tests."""

import argparse
import ast
import os
import random
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.simplefilter("ignore")

from attack.mutate.equivalent import EQUIVALENT  # noqa: E402
from attack.mutate.mutants import mutants  # noqa: E402
from attack.mutate.running import SOURCES, mirror, passes, prepare  # noqa: E402

MODULES = ("ops", "metrics", "splits", "core/store", "core/rows", "core/store_sql", "tables/read")


def modules(names):
    """The modules under these folders or of these names that have tests of their own."""
    for name in names:
        path = SOURCES / name
        found = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        for one in (str(file.relative_to(SOURCES)) for file in found):
            if mirror(one).exists():
                yield one


def main(arguments=None):
    """Run the tests against a sample of mutants; returns 1 if too few were noticed."""
    parser = argparse.ArgumentParser(prog="python -m attack.mutate", description=__doc__)
    parser.add_argument("--module", action="append", help="folder or file, such as ops")
    parser.add_argument("--mutants", type=int, default=5, help="per module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no more after these")
    parser.add_argument("--least", type=float, default=92.0, help="percent that must be killed")
    options = parser.parse_args(arguments)
    prepare()
    end = time.monotonic() + 60 * options.minutes
    killed, survivors, equal = 0, [], 0
    paths = list(modules(options.module or MODULES))
    random.Random(options.seed).shuffle(paths)
    for path in paths:
        if time.monotonic() > end:
            break
        source = (SOURCES / path).read_text()
        start = sum(os.times()[:4])
        if not passes(path, ast.parse(source), 300):
            print(f"{path}: left out, its tests do not pass here by themselves", flush=True)
            continue
        limit = 10 + 5 * (sum(os.times()[:4]) - start)
        stream = random.Random(f"{options.seed} {path}")
        every = list(mutants(path, source))
        for mutant in stream.sample(every, min(options.mutants, len(every))):
            if passes(path, mutant.tree, limit):
                known = any(mutant.path == p and text in mutant.name for p, text in EQUIVALENT)
                equal += known
                survivors += [] if known else [mutant.name]
                print(f"  {'equivalent' if known else 'survived'}: {mutant.name}", flush=True)
            else:
                killed += 1
        print(f"{path}: {killed} killed, {len(survivors)} survived so far", flush=True)
    tried = killed + len(survivors)
    share = 100 * killed / max(tried, 1)
    print(f"{tried} mutants and {equal} equivalent ones: {killed} killed, {share:.1f}%")
    return int(share < options.least)


if __name__ == "__main__":
    sys.exit(main())
