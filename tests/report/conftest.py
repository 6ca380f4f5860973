"""Fixtures of pages, and a made-up store."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chromium import BROWSER, Chromium
from made_up import fill
from samples import CORA, Node, make_result, parse_page

from evengraph.lab.results import ExperimentResults, load_experiments
from evengraph.lab.store import Store


@pytest.fixture
def result() -> dict[str, Any]:
    """Cora in seven classes and three seeds."""
    return make_result(list(CORA))


@pytest.fixture
def parse() -> Callable[[str], Node]:
    """Parse a page into nodes."""
    return parse_page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless browser with one page."""
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome found")
    found = Chromium(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def filled(tmp_path_factory) -> Store:
    """A store of three experiments, to read from."""
    return fill(Store(tmp_path_factory.mktemp("filled") / "store.sqlite"))


@pytest.fixture
def store(filled, tmp_path) -> Store:
    """The same store in a file of its own."""
    return Store(Path(shutil.copy(filled.path, tmp_path)))


@pytest.fixture(scope="session")
def experiments(filled) -> list[ExperimentResults]:
    """Its experiments: a comparison, an ablation, curves."""
    return load_experiments(filled)


@pytest.fixture(scope="session")
def comparison(experiments) -> ExperimentResults:
    """Four methods in three set-ups."""
    return experiments[0]


@pytest.fixture(scope="session")
def written(filled, tmp_path_factory) -> dict[str, Path]:
    """All that `evengraph report` writes of it, by the names of the files."""
    pytest.importorskip("matplotlib", reason="figures want matplotlib")
    from evengraph.lab.pages import write_report

    paths = write_report(filled, tmp_path_factory.mktemp("report"))
    assert len({path.name for path in paths}) == len(paths)
    return {path.name: path for path in paths}
