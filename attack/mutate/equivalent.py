"""Mutants that change nothing that can be seen: module, line of source, change."""

SQUARE = "0 becomes 1"
EQUIVALENT = {
    # the matrix is square
    (
        "ops/attention.py",
        "return EdgeList(*propagation.entries, None, propagation.shape[0])",
        SQUARE,
    ),
    (
        "ops/synthesis.py",
        "sums = (cls(looped, seeds) @ ones)[: looped.shape[0]].squeeze(1)",
        SQUARE,
    ),
    (
        "ops/propagate.py",
        'looped = (matrix + sp.identity(matrix.shape[0], format="csr")).astype(np.float64)',
        SQUARE,
    ),
    # both are of the same length
    (
        "metrics/evaluation.py",
        "for low, nodes, right in zip(EDGES, counts, hits, strict=True)",
        "True becomes False",
    ),
    (
        "fast/device_graphs.py",
        "per_row, columns, weights = (torch.cat(parts) for parts in zip(*blocks, strict=True))",
        "True becomes False",
    ),
    # a factor does not change which threshold is best
    (
        "metrics/binary.py",
        "value = 2 * hits / (hits + false_alarms + points.positives)",
        "2 becomes 3",
    ),
    # what is divided is zero, or there is nothing to divide
    (
        "ops/attention.py",
        "return shares / take(torch.where(total > 0, total, 1.0), edges.targets)",
        "1.0 becomes 2.0",
    ),
    (
        "fast/device_graphs.py",
        "return _scaled(matrix, 1 / torch.where(degree > 0, degree, 1.0), dtype)",
        "1.0 becomes 2.0",
    ),
    # how much is computed at a time
    ("ops/neighbours.py", "AT_ONCE = 2**24  # cosines in memory", "24 becomes 25"),
    (
        "ops/neighbours.py",
        "BLOCK_ENTRIES = 2**24  # similarities in memory at a time",
        "Pow becomes Mult in 2 ** 24",
    ),
    (
        "ops/sparse.py",
        "BLOCK = 2048  # rows of 64 numbers that stay in the cache of one core",
        "2048 becomes 2049",
    ),
    # the limit of columns is far above both
    (
        "tables/read.py",
        "check_columns(table.shape[1] if table.ndim == 2 else 1, str(path))",
        "1 becomes 2",
    ),
    # where the search for the only optimum begins
    (
        "metrics/calibration.py",
        "start = np.array([1.0, *([0.0] * num_classes)])",
        "1.0 becomes 2.0",
    ),
    # the same number modulo 2**32, of which 32 bits are taken
    ("ops/sparse.py", "bits = torch.where(rank >= 0, rank, -(2**31) - rank)", "sign dropped"),
    # a positive factor for each row does not change the order of its entries
    (
        "ops/neighbours.py",
        "likeness = (x[block] / length[block].unsqueeze(1)) @ x.t() / length  # (block, N)",
        "Div becomes Mult in x[block] / length[block].unsqueeze(1)",
    ),
    # confidences are at most 1: any factor above 1 keeps classes apart
    (
        "ops/pseudo.py",
        "key = torch.where(eligible, labels.double() * 2 - confidence.double(), torch.inf)",
        "2 becomes 3",
    ),
    # read for the validation score alone, which has returned before
    (
        "metrics/selection.py",
        "return batched_stopping_scores(on, labels, logits, mask, labels.new_full((1,), -1))[0]",
        "sign dropped",
    ),
    # the matrix is square
    ("fast/device_graphs.py", "size, columns = matrix.shape[0], matrix.col_indices()", SQUARE),
    (
        "ops/structural.py",
        'self.looped = (matrix + sp.identity(matrix.shape[0], np.float32, format="csr")).tocsr()',
        SQUARE,
    ),
    # both are of the same length
    (
        "ops/neighbours.py",
        "for part, mine in zip(x.split(rows), lists.split(rows), strict=True):",
        "True becomes False",
    ),
    # a limit above all numbers of walks keeps every entry, whatever it is
    ("fast/thinning.py", "low, high = 0, max(int(most), 1)", "1 becomes 2"),
    # how much is read or compared at a time
    ("tables/read.py", "while part := file.read(2**24):", "Pow becomes Mult in 2 ** 24"),
    (
        "ops/synthesis.py",
        "few = labels.numel() ** 2 <= BLOCK_ENTRIES",
        "LtE becomes Lt in labels.numel() ** 2 <= BLOCK_ENTRIES",
    ),
    # below any number of hits, of which there are some
    (
        "metrics/binary.py",
        "value = torch.where(allowed, hits, -1.0)",
        "1.0 becomes 2.0",
    ),
    # a deep copy holds the same
    ("tables/read.py", "nodes = nodes.copy(deep=False)", "False becomes True"),
    # a leaf points to itself, whatever its threshold
    (
        "ops/trees.py",
        'np.where(leaf, 0.0, every["num_threshold"]).astype(np.float64),',
        "0.0 becomes 1.0",
    ),
    # the interval is as short as rounding after 60 halvings
    ("metrics/calibration.py", "for _ in range(60):", "60 becomes 61"),
}
