"""Ready to be released: versions agree, extras are complete, the README fits a package index."""

import re
import tomllib
from pathlib import Path

from tools.package_readme import package_readme

import evengraph as eg

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_file_has_the_version():
    assert f'version: "{eg.__version__}"' in text("conda/recipe.yaml")
    assert f"\nversion: {eg.__version__}\n" in text("CITATION.cff")
    assert f"## {eg.__version__}" in text("CHANGELOG.md")


def test_all_holds_every_extra_of_users():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(re.search(r"\[(.*)\]", everything)[1].split(","))
    assert named == {name for name in extras.keys() - {"all"} if extras[name]}
    table = text("docs/install.md")
    assert all(f"| `{name}` |" in table for name in [*named, "all"])


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = text("conda/recipe.yaml").replace("pytorch_geometric", "torch_geometric")
    recipe = recipe.replace("pytorch ", "torch ")
    for requirement in PROJECT["dependencies"]:
        assert f"- {requirement.replace('>=', ' >=')}" in recipe, requirement


def test_docker_runs_the_commands_of_the_readme():
    commands = re.findall(r"^evengraph (.*)$", README, flags=re.M)
    assert len(commands) == 2
    for page in ("Dockerfile", "docs/install.md"):
        shown = text(page).replace("\\\n  ", "")  # lines that are continued
        assert all(f'-v "$PWD:/work" evengraph {command}' in shown for command in commands)
    assert 'ENTRYPOINT ["evengraph"]' in text("Dockerfile")


def test_an_index_gets_no_picture_and_no_link_that_it_cannot_follow():
    shown = package_readme(README)
    assert "](docs" not in shown
    assert "<img" not in shown
    assert "![" not in shown
    assert "Uni-GNN, its paper" in shown  # the words of links stay
    assert "labelling, large graphs" not in shown  # a list of links
    assert shown.startswith("# evengraph")
    assert package_readme("[a](https://x.org) [b](c.md#d)") == "[a](https://x.org) b"
