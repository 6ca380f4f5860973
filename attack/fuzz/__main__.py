"""`python -m attack.fuzz`: mutate valid files of every reader and read them."""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

warnings.simplefilter("ignore")

from attack.fuzz.readers import READERS  # noqa: E402
from attack.fuzz.record import rounds  # noqa: E402
from attack.fuzz.running import attack  # noqa: E402


def main(arguments=None):
    """Run the cases; returns 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m attack.fuzz", description=__doc__)
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="default: all")
    parser.add_argument("--cases", type=int, default=200, help="cases per reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--record", type=Path, help="folder to store results in, and to go on in")
    options = parser.parse_args(arguments)
    readers = [READERS[name] for name in options.reader or READERS]
    if options.record:
        results = rounds(readers, options.cases, options.record, partial(_go_on, options.seed))
    else:
        results = (attack(one, options.cases, options.seed, options.first) for one in readers)
    failed = 0
    for result in results:
        print(summary(result), flush=True)
        for kind, cases in result.failures.items():
            failed += len(cases)
            print(f"  {len(cases)} x {kind}: {cases[0][1]}")
            print(
                f"    python -m attack.fuzz --reader {result.name} --seed {options.seed} "
                f"--first {cases[0][0]} --cases 1"
            )
    return int(failed > 0)


def _go_on(seed, reader, cases, result):
    attack(reader, cases, seed, result.total, result)


def summary(result):
    """One line: cases, how they ended, seconds."""
    counts = result.counts
    return (
        f"{result.name:8} {result.total:7,} cases: {counts['read']:7,} read, "
        f"{counts['refused']:7,} refused, {counts['failed']:5,} failed; "
        f"{result.seconds:.0f} s of CPU"
    )


if __name__ == "__main__":
    sys.exit(main())
