"""Cases that coverage guides: what reaches new lines of the library is varied further.

    pip install atheris
    python -m attack.fuzz.guided --cases 100000 --record record

libFuzzer varies a short string of bytes, from which the mutations of a reader take their
decisions; bytes that have run out are followed by random ones. Cases, failures and the strings
worth varying are stored per reader, so that the same command goes on where it was ended.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.simplefilter("ignore")

try:
    import atheris
except ImportError:
    sys.exit("Coverage-guided cases need atheris: pip install atheris")

with atheris.instrument_imports(include=["evengraph"]):
    from attack.fuzz.__main__ import summary
    from attack.fuzz.decisions import Decisions
    from attack.fuzz.readers import READERS
    from attack.fuzz.record import rounds
    from attack.fuzz.running import Result, prepared, run_process

LENGTH = 96


def explore(reader, cases, corpus, result, seed=0):
    """Run guided cases of a reader, and add them to a result."""
    corpus.mkdir(parents=True, exist_ok=True)
    end = result.total + cases
    with prepared(reader) as samples, result.timed():
        while (left := end - result.total) > 0:
            seed += 1

            def work(run, left=left, seed=seed):
                _fuzz(run, left, corpus, seed)

            run_process(reader, samples, work, result)
    return result


def _fuzz(run, cases, corpus, seed):
    """Does not return: libFuzzer ends the process."""
    known = len(list(corpus.iterdir())) + 1  # run again first, and not counted
    count = 0

    def one(content):
        nonlocal count
        count += 1
        if count > known:
            run(content.hex(), Decisions(content))

    os.dup2(2, 1)
    flags = {"runs": cases + known, "max_len": LENGTH, "len_control": 0, "seed": seed}
    flags |= {"rss_limit_mb": 0, "malloc_limit_mb": 0, "handle_segv": 0, "handle_abrt": 0}
    flags |= {"handle_bus": 0, "handle_fpe": 0, "handle_ill": 0, "timeout": 3600, "verbosity": 0}
    flags |= {"exact_artifact_path": os.devnull}
    atheris.Setup([sys.argv[0], *(f"-{k}={v}" for k, v in flags.items()), str(corpus)], one)
    atheris.Fuzz()


def main(arguments=None):
    """Run rounds until every reader has its cases; returns 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m attack.fuzz.guided", description=__doc__)
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="default: all")
    parser.add_argument("--cases", type=int, default=1000, help="cases per reader")
    parser.add_argument("--record", type=Path, default=Path("guided"), help="folder to go on in")
    parser.add_argument("--input", help="run one case again, of --reader, given in hexadecimal")
    options = parser.parse_args(arguments)
    if options.input is not None:
        return _repeat(options.reader[0], bytes.fromhex(options.input))

    def run(reader, cases, result):
        explore(reader, cases, options.record / reader.name, result, seed=result.total)

    readers = [READERS[name] for name in options.reader or READERS]
    results = rounds(readers, options.cases, options.record, run)
    for result in results:
        print(summary(result))
    return int(any(result.failures for result in results))


def _repeat(name, content):
    result = Result(name)
    with prepared(READERS[name]) as samples:
        run_process(
            READERS[name], samples, lambda run: run(content.hex(), Decisions(content)), result
        )
    print(dict(result.counts), result.failures)
    return int(bool(result.failures))


if __name__ == "__main__":
    sys.exit(main())
