import subprocess
import sys
import warnings

import pytest
from command_line import UNIGNN, call

from evengraph.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "coraa"], ["coraa", "cora", "toy"]),
        (["run", "toy", "--method", "unignnn"], ["unignnn", "gcn", "unignn"]),
        (["run", "toy", "--method", "gcn,nobody"], ["nobody", "lte4g"]),
        (["run", "toy", "--method", "gcn,reweight", "--set", "alpha=2"], ["alpha", "scale"]),
        (["run", "toy", "--method", "gcn,"], ["method ''"]),
        (["run", "toy", "--method", "reweight", "--set", "minority=5"], ["minority", "5 classes"]),
        (["run", "toy", "--split", "steps"], ["steps", "longtail"]),
        (
            ["run", "toy", "--split", "natural", "--minority", "2"],
            ["--minority", "--train, --val"],
        ),
        (["run", "toy", "--set", "alpha=2"], ["Auto has no parameter alpha; unignn has it."]),
        (["run", "toy", *UNIGNN, "--set", "alfa=2"], ["alfa", "Did you mean alpha"]),
        (["run", "toy", *UNIGNN, "--set", "alpha"], ["name=value"]),
        (["run", "toy", *UNIGNN, "--set", "alpha=two"], ["alpha", "whole number", "two"]),
        (["run", "toy", *UNIGNN, "--set", "alpha=0"], ["alpha", "at least 1"]),
        (["run", "toy", *UNIGNN, "--set", "encoders=three"], ["both, structural, semantic"]),
        (["run", "toy", *UNIGNN, "--set", "class_weights=maybe"], ["true or false"]),
        (
            ["run", "toy", *UNIGNN, "--set", "clusters_per_class=900"],
            ["4500 clusters", "2000 nodes"],
        ),
        (["run", "toy", "--minority", "9"], ["minority", "0 and 4", "9"]),
        (["run", "toy", "--minority", "many"], ["--minority"]),
        (["run", "toy", "--ratio", "0.01"], ["0.05"]),
        (["run", "toy", "--ratio", "2"], ["(0, 1]"]),
        (["run", "toy", "--splits", "5;6"], ["5,6,7", "5-24"]),
        (["run", "toy", "--splits", "9-9" * 24], ["seeds", "2^32"]),
        (["run", "toy", "--splits", "0-999999999"], ["at most 1000"]),
        (["run", "toy", "--device", "tpu"], ["auto, cpu, cuda"]),
        (["run", "toy", "--split", "publicstep"], ["public split"]),
        (["run", "toy", "--no-such-option"], ["--no-such-option"]),
        (["run"], ["DATA"]),
        (["rum"], ["rum"]),
        (["methods", "gnc"], ["gcn"]),
        (["data", "fetch", "corra"], ["cora"]),
    ],
)
def test_mistakes_get_one_line_and_status_two(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call(*arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")
    for word in words:
        assert word in lines[0]
    assert not list(tmp_path.rglob("*.json"))


def test_version(capsys):
    from evengraph import __version__

    assert call("--version") == 0
    assert __version__ in capsys.readouterr().out


def test_help_does_not_wait_for_torch():
    code = (
        "import sys\n"
        "from evengraph.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "run" in done.stdout
    assert done.stdout.strip().endswith("False")


def test_without_a_word_the_help_is_shown(capsys):
    call()
    shown = capsys.readouterr()
    assert "run" in shown.out + shown.err
    assert "Error" not in shown.err


def test_what_torch_says_of_pyg_is_not_shown(monkeypatch):
    def warned(arguments):
        warnings.warn("`torch.jit.script` is deprecated. Please switch.", FutureWarning, 2)
        return 0

    monkeypatch.setattr("evengraph.cli.commands._status", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SystemExit, match="0"):
            main([])
