from command_line import call


def test_data_list_names_every_graph(capsys):
    from evengraph.datasets import DATASETS

    assert call("data", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in DATASETS)


def test_data_list_counts_each_edge_once(capsys):
    call("data", "list")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("cora "))
    assert line.split()[1:5] == ["2,708", "5,278", "1,433", "7"]
