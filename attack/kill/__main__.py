"""`python -m attack.kill`: kill sweeps, saves and stores at random moments."""

import argparse
import os
import random
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")  # children are forked, which threads do not survive
warnings.simplefilter("ignore")

import torch  # noqa: E402

from attack.kill.running import Tally  # noqa: E402
from attack.kill.scenarios import SCENARIOS  # noqa: E402


def attack(name, kills, seed):
    """Run one scenario in a folder of its own."""
    torch.set_num_threads(1)
    tally, started = Tally(name), perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        SCENARIOS[name](Path(folder), random.Random(f"{seed} {name}"), tally, kills)
    tally.seconds = perf_counter() - started
    return tally


def main(arguments=None):
    """Run the scenarios; returns 1 if something was lost, doubled, half-written or changed."""
    parser = argparse.ArgumentParser(prog="python -m attack.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kills per scenario")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS))
    options = parser.parse_args(arguments)
    tallies = []
    for name in options.scenario or SCENARIOS:
        tallies.append(attack(name, options.kills, options.seed))
        print(tallies[-1].line(), flush=True)
        for failure in dict.fromkeys(tallies[-1].failures):
            print(f"  {failure}")
    kills, writing = (sum(getattr(t, n) for t in tallies) for n in ("kills", "writing"))
    print(f"{kills:,} kills, {writing:,} of them while something was being written")
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
