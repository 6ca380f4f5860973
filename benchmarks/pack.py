"""Packing tables: time and peak memory by size, and DuckDB against Polars.

`python -m benchmarks.pack [NODES ...]` writes Parquet files of so many nodes with 64 features and
10 edges each, and packs each in a process of its own. Polars is measured if it is installed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import table

FEATURES, EDGES_PER_NODE, BLOCK = 64, 10, 1 << 19
CLASSES = (0.8, 0.15, 0.05)  # their shares
MEMORY = "2GB"

PACK = """
from evengraph.disk.packing import pack
stages = []
def show(stage, share):
    if not stages or stages[-1][0] != stage:
        stages.append((stage, perf_counter()))
packed = pack("nodes.parquet", "graph", edges="edges.parquet", memory={memory!r}, progress=show)
ends = [*(start for _, start in stages[1:]), perf_counter()]
spent = {{stage: end - start for (stage, start), end in zip(stages, ends)}}
edges = spent["linking edges"] + spent["sorting edges"]
report(edges=edges, features=spent["fitting encoders"] + spent["encoding features"])
"""

DUCKDB = """
import duckdb
c = duckdb.connect("work.duckdb")
c.execute("SET memory_limit = '1GB'; SET temp_directory = 'spill'; SET enable_progress_bar = false")
c.execute("CREATE TABLE ids AS SELECT id FROM 'nodes.parquet'")
c.execute("SET preserve_insertion_order = false")
c.execute('''CREATE TABLE links AS SELECT a.rowid::INTEGER s, b.rowid::INTEGER t FROM
    'edges.parquet' JOIN ids a ON source = a.id JOIN ids b ON target = b.id''')
q = '''SELECT s::BIGINT * {nodes} + t AS k FROM links UNION ALL
    SELECT t::BIGINT * {nodes} + s FROM links ORDER BY k'''
count = sum(batch.num_rows for batch in c.sql(q).to_arrow_reader(1 << 20))
report()
"""

POLARS = """
import polars as pl
ids = pl.scan_parquet("nodes.parquet").select("id").with_row_index("row")
links = pl.scan_parquet("edges.parquet")
for end, name in (("source", "s"), ("target", "t")):
    links = links.join(ids, left_on=end, right_on="id").rename({{"row": name}})
s, t = pl.col("s").cast(pl.Int64), pl.col("t").cast(pl.Int64)
keys = [links.select((a * {nodes} + b).alias("k")) for a, b in ((s, t), (t, s))]
pl.concat(keys).sort("k").sink_parquet("sorted.parquet")
report()
"""

FRAME = """
import json, resource
from time import perf_counter
start = perf_counter()
def report(**more):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = {"seconds": perf_counter() - start, "cpu": usage.ru_utime + usage.ru_stime}
    # ru_maxrss would count the process that started this one
    lines = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20
    print(json.dumps({**spent, "peak": peak, **more}))
"""


def write_tables(folder: Path, num_nodes: int, *, text: bool = True, labelled: float = 1.0) -> None:
    """Parquet files with ids in random order; targets of edges are drawn by popularity.

    The features have a little of their class in them, and half of the edges are within a class.

    Args:
        folder: Where to write.
        num_nodes: Rows of the nodes table.
        text: Whether ids are text, else integers.
        labelled: Share of the nodes with a label.
    """
    rng = np.random.default_rng(0)
    labels = rng.choice(len(CLASSES), num_nodes, p=CLASSES).astype(np.int8)
    make_ids = _text_ids if text else pa.array
    _write_nodes(folder / "nodes.parquet", labels, rng, make_ids, labelled)
    members = [np.flatnonzero(labels == label) for label in range(len(CLASSES))]
    type = make_ids(np.arange(1)).type
    ends = pa.schema([("source", type), ("target", type)])
    with pq.ParquetWriter(folder / "edges.parquet", ends) as file:
        for start in range(0, num_nodes, BLOCK // EDGES_PER_NODE):
            nodes = np.arange(start, min(start + BLOCK // EDGES_PER_NODE, num_nodes))
            source = np.repeat(nodes, EDGES_PER_NODE)
            popularity = rng.random(len(source)) ** 2
            target = (popularity * num_nodes).astype(np.int64)
            within = rng.random(len(source)) < 0.5
            for label, group in enumerate(members):
                chosen = within & (labels[source] == label)
                target[chosen] = group[(popularity[chosen] * len(group)).astype(np.int64)]
            file.write(pa.table([make_ids(source), make_ids(target)], ends))


def _write_nodes(
    path: Path,
    labels: np.ndarray,
    rng: np.random.Generator,
    make_ids: Callable[[np.ndarray], pa.Array],
    labelled: float,
) -> None:
    """The nodes table, in random order."""
    order = rng.permutation(len(labels))
    names = np.array(["a", "b", "c"])
    centres = rng.standard_normal((FEATURES, len(names)), dtype=np.float32)
    columns = [(f"f{index}", pa.float32()) for index in range(FEATURES)]
    fields = [("id", make_ids(order[:1]).type), *columns, ("label", pa.string())]
    with pq.ParquetWriter(path, pa.schema(fields)) as file:
        for start in range(0, len(labels), BLOCK):
            block = order[start : start + BLOCK]
            x = rng.standard_normal((FEATURES, len(block)), dtype=np.float32)
            x += 0.25 * centres[:, labels[block]]
            text = pa.array(names[labels[block]], mask=rng.random(len(block)) >= labelled)
            file.write(pa.table([make_ids(block), *map(pa.array, x), text], file.schema))


def _text_ids(numbers: np.ndarray) -> pa.Array:
    """Such as user-00000017."""
    return pa.array(np.char.add("user-", np.char.zfill(numbers.astype("U8"), 8)), pa.string())


def measure(script: str, folder: Path, num_nodes: int) -> dict[str, float]:
    """Run a script in a process of its own; it reports seconds and peak memory."""
    import json

    code = FRAME + script.format(nodes=num_nodes, memory=MEMORY)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "POLARS_MAX_THREADS": "2"},
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main(sizes: list[int]) -> None:
    packing: list[list[object]] = []
    engines: list[list[object]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder, start = Path(name), perf_counter()
            write_tables(folder, size)
            written = perf_counter() - start
            got = measure(PACK, folder, size)
            files = sum(path.stat().st_size for path in folder.glob("*.parquet")) / 2**30
            graph = sum(path.stat().st_size for path in (folder / "graph").iterdir()) / 2**30
            packing.append([f"{size:,}", files, graph, got["seconds"], got["cpu"], got["edges"],
                            got["features"], got["peak"]])  # fmt: skip
            print(f"{size:,} nodes packed in {got['seconds']:.0f} s (files in {written:.0f} s)")
            for engine, script in (("DuckDB", DUCKDB), ("Polars", POLARS)):
                if size <= 1_000_000 and (engine == "DuckDB" or _has_polars()):
                    result = measure(script, folder, size)
                    engines.append(
                        [f"{size:,}", engine, result["seconds"], result["cpu"], result["peak"]]
                    )
    header = [
        "nodes",
        "files GiB",
        "graph GiB",
        "seconds",
        "of CPU",
        "edges",
        "features",
        "peak GiB",
    ]
    table(f"Packing Parquet within {MEMORY}, {EDGES_PER_NODE} edges a node", header, packing)
    header = ["nodes", "engine", "seconds", "of CPU", "peak GiB"]
    table("Edges to row numbers, both directions, sorted", header, engines)


def _has_polars() -> bool:
    from importlib.util import find_spec

    return find_spec("polars") is not None


if __name__ == "__main__":
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, commit {commit.stdout.strip()}")
    main([int(size) for size in sys.argv[1:]] or [100_000, 1_000_000])
