"""`python -m benchmarks`: print every benchmark."""

from benchmarks import epoch, pieces, semantic

for benchmark in (semantic, epoch, pieces):
    benchmark.main()
