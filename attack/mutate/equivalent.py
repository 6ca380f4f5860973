"""Mutants that change nothing that can be seen: module, line of source, change."""

EQUIVALENT = {
    (  # the matrix is square
        "ops/attention.py",
        "return EdgeList(*propagation.entries, None, propagation.shape[0])",
        "0 becomes 1",
    ),
    (  # the limit of columns is far above both
        "tables/read.py",
        "check_columns(table.shape[1] if table.ndim == 2 else 1, str(path))",
        "1 becomes 2",
    ),
}
