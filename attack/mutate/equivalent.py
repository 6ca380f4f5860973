"""Mutants that change nothing that can be seen: module, and the end of the name."""

EQUIVALENT = [
    ("ops/attention.py", ":34 0 becomes 1"),  # the matrix is square
    ("tables/read.py", ":90 1 becomes 2"),  # the limit of columns is far above both
]
