from command_line import call


def test_data_list_names_every_graph(capsys):
    from evengraph.datasets import DATASETS

    assert call("data", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in DATASETS)
