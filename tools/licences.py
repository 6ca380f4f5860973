"""Print LICENCES.md: the licence of every locked package, from its installed metadata."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("disk", "desk", "onnx", "ray")  # those that users install

PAGE = """\
# Licences

evengraph is under the MIT licence. It contains no code of the packages below; they
are installed beside it. *Core* packages are always installed, others with the extra that is named,
and *development* ones by `make install` only. `make licences` writes this page from the metadata
of the packages, in the versions of `requirements-dev.lock`.

torch's default build for Linux also installs NVIDIA's CUDA libraries (`requirements-cuda.lock`),
under NVIDIA's own licences.

| package | version | licence | needed by |
| --- | --- | --- | --- |
"""


def locked() -> list[str]:
    """Return the names in the lock, each once."""
    lock = (ROOT / "requirements-dev.lock").read_text()
    return list(dict.fromkeys(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.M)))


def licence(package: Distribution) -> str:
    """Return the licence as the package states it: expression, short text, or classifiers."""
    metadata = package.metadata
    stated = metadata.get("License-Expression") or metadata.get("License") or ""
    if stated and "\n" not in stated and len(stated) <= 200 and stated != "UNKNOWN":
        return stated
    classifiers = [line for line in metadata.get_all("Classifier", []) if "License ::" in line]
    names = [line.split(" :: ")[-1] for line in classifiers]
    return ", ".join(names) or stated.strip().split("\n")[0][:200] or "not stated"


def needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """Return the names of all packages that a package with these extras needs."""
    if (name, extras) in seen:
        return set()
    seen.add((name, extras))
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return set()
    names = {name}
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in {"", *extras}):
            wanted = canonicalize_name(requirement.name)
            names |= needed(wanted, frozenset(requirement.extras), seen)
    return names


def main() -> None:
    """Print the page."""
    core = needed("evengraph", frozenset(), set())
    parts = {extra: needed("evengraph", frozenset({extra}), set()) - core for extra in EXTRAS}
    print(PAGE, end="")
    for name in locked():
        users = ["core"] if name in core else [part for part in EXTRAS if name in parts[part]]
        try:
            package = distribution(name)
        except PackageNotFoundError:  # of another platform
            continue
        row = (name, package.version.split("+")[0], licence(package), ", ".join(users))
        print("| {} | {} | {} | {} |".format(*row[:3], row[3] or "development"))


if __name__ == "__main__":
    main()
