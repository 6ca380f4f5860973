"""The laws of the house: who imports whom, and what an import costs."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import evengraph
import house

SOURCE = Path(evengraph.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# The main house. Imports point to the same line or to a line above, never below.
LAYERS = [
    {"core"},
    {"metrics", "ops", "fast"},
    {"report"},
    {"datasets", "tables", "splits", "nn"},
    {"training"},
    {"methods"},
    {"inspection", "pipeline"},
    {"testing", "cli", "__main__"},
]
# The wings: they import the main house, which never imports them, nor does one the other.
WINGS = {"disk", "desk", "lab"}
# Doors to the wings, opened when a user asks for what is behind: the commands by their names,
# and graphs on disk by `wing("disk")`.
DOORS = {
    "cli/commands.py": {"disk", "desk", "lab"},
    "cli/inspect.py": {"disk"},
    "cli/opening.py": {"disk"},
    "cli/predict.py": {"disk"},
    "cli/run.py": {"desk", "disk"},
    "core/lazy.py": {"disk"},
    "tables/open.py": {"disk"},
}
# What methods import beyond plain mathematics: the contract calls quick forms where there are
# any, shows a method in a notebook, and writes its model card.
METHODS_BEYOND = {
    "fast": {"fitting", "method"},
    "report": {"method", "saving"},
}
# Quick forms of methods stand beside the methods, which know them by a table of names alone.
FORMS = {f"evengraph.fast.{name}" for name in ("replicas", "supervised", "unignn")}
# Adapters attach a capability to methods from outside, by name, and know their insides.
ADAPTERS = {
    "disk/learners.py",
    "fast/__init__.py",
    "fast/replicas.py",
    "fast/supervised.py",
    "fast/unignn.py",
    "pipeline/explanation.py",
    "pipeline/onnx_export.py",
    "pipeline/scorer.py",
}


def dotted(path):
    """evengraph.ops.semantic for src/evengraph/ops/semantic.py; a package has its folder's name."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


KNOWN = {dotted(module) for module in MODULES}


@cache
def imports(path):
    """Every module of ours that a file imports, wherever in it, as dotted names."""
    found = set()
    for node in ast.walk(house.tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in KNOWN else node.module)
    return {name for name in found if name and name.split(".")[0] == "evengraph"}


def room(name):
    """The second part of a dotted name; empty for the package itself."""
    return name.split(".")[1] if "." in name else ""


def layer(name):
    own = "methods" if name in FORMS else room(name)
    places = [index for index, rooms in enumerate(LAYERS) if own in rooms]
    assert places, f"{name} is in no layer: give it one here and in the style guide"
    return places[0]


INSIDE = [path for path in MODULES if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", INSIDE, ids=dotted)
def test_imports_point_down(path):
    own = dotted(path)
    for name in imports(path):
        if room(own) not in WINGS and room(name) not in {"", *WINGS}:
            assert layer(name) <= layer(own), f"{own} imports {name}"


def entered(path):
    """The wings that a file imports, wherever in it, names as a module, or opens by `wing`."""
    strings = {word for word in house.words(path) if word.startswith("evengraph.")}
    opened = {
        node.args[0].value
        for node in ast.walk(house.tree(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "wing"
    }
    return ({room(name) for name in imports(path) | strings} | opened) & WINGS


def test_the_main_house_enters_wings_by_their_doors_alone():
    found = {path.relative_to(SOURCE).as_posix(): entered(path) for path in INSIDE}
    others = {name: wings - {name.split("/")[0]} for name, wings in found.items()}
    assert {name: wings for name, wings in others.items() if wings} == DOORS


@pytest.mark.parametrize("path", sorted((SOURCE / "methods").rglob("*.py")), ids=dotted)
def test_what_methods_import(path):
    """The contract and plain mathematics; neither data nor one another."""
    if path == SOURCE / "methods" / "__init__.py":
        return
    allowed = {"", "core", "ops", "nn", "metrics", "training", "methods"}
    allowed |= {other for other, names in METHODS_BEYOND.items() if path.stem in names}
    for name in imports(path):
        assert room(name) in allowed, f"{dotted(path)} imports {name}"
        if room(name) == "methods" and path.parent.name != "bases" and path.stem != "auto":
            assert name.startswith("evengraph.methods.bases"), f"{dotted(path)} imports {name}"


def test_of_all_methods_only_auto_knows_the_table():
    """It takes its candidates from there, through one function that imports it late."""
    inside = (SOURCE / "methods").rglob("*.py")
    assert [path.stem for path in inside if "evengraph.methods" in imports(path)] == ["auto"]


def test_reports_import_results_alone():
    for path in (SOURCE / "report").rglob("*.py"):
        for name in imports(path):
            allowed = {"", "report", "core", "metrics"}
            assert room(name) in allowed, f"{dotted(path)} imports {name}"


def test_only_rng_sets_a_seed():
    setters = {"seed", "manual_seed", "manual_seed_all", "seed_all", "set_rng_state"}
    for path in INSIDE:
        if path.name == "rng.py":
            continue
        for node in ast.walk(house.tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if ast.unparse(node.func) == "torch.Generator().manual_seed":
                    continue  # a generator of its own, not the global state
                assert node.func.attr not in setters, f"{dotted(path)} line {node.lineno}"


def test_only_the_command_line_prints():
    for path in INSIDE:
        if "cli" in path.relative_to(SOURCE).parts:
            continue
        for node in ast.walk(house.tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{dotted(path)} line {node.lineno}"


def python(code):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )


def test_the_front_door_does_not_import_torch():
    done = python(
        "import sys, evengraph\n"
        "assert evengraph.__version__\n"
        "print([n for n in ('torch', 'torch_geometric', 'scipy', 'sklearn') if n in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_results_are_shown_without_torch():
    done = python(
        "import sys\n"
        "import evengraph.cli.commands\n"
        "import evengraph.lab.sources, evengraph.lab.pages\n"
        "from evengraph.metrics import METRICS\n"
        "print([n for n in ('torch', 'torch_geometric', 'scipy', 'sklearn') if n in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_name_at_the_front_door_is_there():
    assert all(getattr(evengraph, name) is not None for name in evengraph.__all__)
    assert set(evengraph.__all__) <= set(dir(evengraph))
    starred = {}
    exec("from evengraph import *", starred)
    assert set(evengraph.__all__) <= set(starred)
    with pytest.raises(AttributeError, match="module 'evengraph' has no attribute 'nothing'"):
        evengraph.nothing  # noqa: B018


# Words that name a method and mean something else: a convolution, a loss, a file of experiments.
OTHER_MEANINGS = {
    "lab/sources.py": {"unreal"},
    "nn/networks.py": {"gcn"},
    "ops/losses.py": {"renode", "reweight"},
}
PLAIN_WORDS = {"auto"}  # of devices and engines: the library chooses; the class is Auto


def test_no_module_outside_methods_names_a_method():
    for module, names in house.namers(SOURCE).items():
        if module in ADAPTERS:
            continue
        allowed = OTHER_MEANINGS.get(module, set()) | PLAIN_WORDS
        assert set(names) <= allowed, f"{module} names {names}"


@pytest.mark.parametrize("name", house.method_table(SOURCE))
def test_a_method_stands_on_few_classes(name):
    chain = house.chains(SOURCE)[name]
    assert len(chain) <= 1, f"between Method and {name}: {chain}"


def test_private_names_stay_in_their_module():
    uses = [use for use in house.private_uses(SOURCE) if use.partition(":")[0] not in ADAPTERS]
    assert uses == []


def test_what_a_new_one_touches():
    """A module of its own at most, and the table that lists it."""
    assert house.to_touch(SOURCE, "graphens") == ["methods/__init__.py", "methods/graphens.py"]
    assert house.to_touch(SOURCE, "photo") == ["datasets/datasets.toml"]
