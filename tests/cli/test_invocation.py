import sys

from evengraph.cli.console import remember, typed_command


def test_the_command_can_be_pasted(monkeypatch):
    remember(["run", "my graph", "--set", "a=1"])
    assert typed_command() == "evengraph run 'my graph' --set a=1"
    assert typed_command("--save", "model") == "evengraph run 'my graph' --set a=1 --save model"
    monkeypatch.setattr(sys, "argv", ["evengraph", "inspect", "cora"])
    remember(None)
    assert typed_command() == "evengraph inspect cora"
