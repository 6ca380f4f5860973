"""The order of stages and what they report; what they write is in test_pack.py."""

from tables_on_disk import make_tables, write

from evengraph.disk import pack


def test_every_stage_reports_its_progress(tmp_path):
    nodes, edges = make_tables()
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")
    reports = []
    pack(paths[0], tmp_path / "graph", edges=paths[1], progress=lambda *r: reports.append(r))
    stages = list(dict.fromkeys(stage for stage, _ in reports))
    assert stages == [
        "reading nodes",
        "reading ids",
        "writing ids",
        "linking edges",
        "sorting edges",
        "reading classes",
        "fitting encoders",
        "encoding features",
        "writing checksums",
    ]
    assert ("encoding features", 1.0) in reports


def test_nothing_but_the_arrays_is_left(tmp_path):
    nodes, edges = make_tables()
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    names = {path.name for path in packed.path.iterdir()}
    assert names == {f"{name}.npy" for name in packed.header["arrays"]} | {"graph.json"}
