from command_line import call

from evengraph.methods import METHODS


def test_methods_lists_every_method_with_its_fields(capsys):
    assert call("methods") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for word in ("clusters_per_class=10", "patience=1000", "O(E h", "Alchihabi", "Kipf"):
        assert word in shown
    for name, method in METHODS.items():
        assert f"{name} {method.title} idea" in shown
    assert call("methods", "graphens") == 0
    shown = capsys.readouterr().out
    assert "Departs:" in shown
    assert "temperature=1.0" in shown


def test_what_is_slow_says_so(capsys):
    trainings = METHODS["unreal"]().rounds + 1
    for words in (["methods"], ["methods", "unreal"]):
        assert call(*words) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"rounds + 1 networks, {trainings} by default, where GCN trains one" in said
