import io

from rich.console import Console

from evengraph.disk.inspection import packed_view


def method(name, memory, seconds, *, on_disk=False, fits=True):
    return {"method": name, "title": name.title(), "on_disk": on_disk, "memory": memory,
            "seconds": seconds, "fits": fits}  # fmt: skip


INSPECTION = {
    "name": "big [bold]",
    "num_nodes": 10_000_000,
    "num_edges": 100_000_000,
    "num_features": 64,
    "class_names": ["rare", "common"],
    "class_counts": [10_000, 1_000_000],
    "mean_degree": 20.0,
    "largest_degree": 5000,
    "isolated": 3,
    "homophily": 0.81,
    "sampled_edges": 1234,
    "disk": 4 * 2**30,
    "free_memory": 8 * 2**30,
    "cores": 2,
    "epochs": 300,
    "methods": [
        method("small", 2**30, 30.0),
        method("both", 2**30, 7200.0, on_disk=True),
        method("large", 2**40, 50_000.0, on_disk=True),
        method("huge", 2**40, 1.0, fits=False),
        method("slow", None, None, fits=None),
    ],
}


def test_size_classes_and_methods_are_shown():
    file = io.StringIO()
    Console(file=file, width=80).print(packed_view(INSPECTION))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert lines[0].startswith("big [bold]  10,000,000 nodes · 100,000,000 edges")
    assert "degree: mean 20.0 · max 5,000 · isolated 3" in lines[1]
    assert "4.0 GiB on disk · 8.0 GiB of memory free" in lines[2]
    assert [line.split() for line in lines[5:8]] == [
        ["common", "1,000,000", "10.00%"],
        ["rare", "10,000", "0.10%"],
        ["unlabelled", "8,990,000"],
    ]
    assert "Neighbours share a class on 81% of 1,234 sampled edges." in lines
    rows = [" ".join(line.split()) for line in lines]
    assert "Small in memory 1.0 GiB 30 s" in rows
    assert "Both in memory, or on disk 1.0 GiB 2.0 h" in rows
    assert "Large on disk any 13.9 h" in rows
    assert "time: about, for 300 epochs on 2 cores" in rows
    assert "Too large for this machine: Huge." in rows
    assert "Not measured: Slow." in rows
    assert max(map(len, lines)) <= 80
