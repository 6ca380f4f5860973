"""The supply chain: the lock is complete, and what docs and metadata say of versions holds."""

import re
import tomllib
from email.message import Message
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import SimpleNamespace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import licences, lock

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def entries(path):
    """Version and hashes of each package; one that differs by Python has several."""
    found = {}
    for entry in re.split(r"\n(?=\S)", path.read_text(encoding="utf-8").strip()):
        if not entry.startswith("#"):
            name, version = re.match(r"([a-z0-9-]+)==(\S+)", entry).groups()
            hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)
            found.setdefault(name, []).append((version, hashes))
    return found


LOCKED = entries(lock.LOCK)
CUDA = entries(lock.CUDA_LOCK)
CPU = entries(lock.CPU_LOCK)


def applies(requirement, extras):
    return requirement.marker is None or any(
        requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
    )


def requirements_of(name, extras):
    """What a package asks for: ours by pyproject.toml, others by their metadata if installed."""
    if name == "evengraph":
        groups = [PROJECT["optional-dependencies"][extra] for extra in extras]
        tools = [line for group in GROUPS.values() for line in group if isinstance(line, str)]
        return [Requirement(line) for line in sum(groups, PROJECT["dependencies"] + tools)]
    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return []
    return [each for each in map(Requirement, lines) if applies(each, extras)]


def everything():
    """Every requirement of development, direct or not."""
    queue, seen = [("evengraph", ("all",))], set()
    for name, extras in queue:
        for requirement in requirements_of(name, extras):
            wanted = canonicalize_name(requirement.name)
            key = (wanted, tuple(sorted(requirement.extras)))
            if key not in seen:
                seen.add(key)
                queue.append(key)
            if wanted != "evengraph":
                yield wanted, requirement


def test_the_lock_covers_every_package_of_development():
    found = list(everything())
    assert len({name for name, _ in found}) > 100
    for name, requirement in found:
        assert name in LOCKED or name in CUDA, f"{requirement} is not locked: make lock"
        if requirement in requirements_of("evengraph", ("all",)):
            for version, _ in LOCKED[name]:
                assert version in requirement.specifier, f"{requirement}: make lock"


def test_every_entry_has_hashes_and_none_says_where_to_download():
    assert all(hashes for found in (LOCKED, CUDA) for each in found.values() for _, hashes in each)
    for path in (lock.LOCK, lock.CPU_LOCK, lock.CUDA_LOCK):
        assert not re.search(r"://|\bindex-url|find-links|\.(org|com|io)\b", path.read_text())


def test_install_takes_nothing_but_the_lock():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^\.venv/\.installed:.*\n((?:\t.*\n)+)", makefile, flags=re.M)
    assert "pip install" not in recipe
    assert re.search(r"^PIP_LOCKED := .*--no-deps$", makefile, flags=re.M)
    assert recipe.count("$(PIP_LOCKED)") == 4
    for path in (lock.LOCK, lock.CPU_LOCK, lock.CUDA_LOCK):
        assert f"$(PIP_LOCKED) --require-hashes -r {path.name}" in recipe
    assert "$(PIP_LOCKED) --no-build-isolation -e ." in recipe


def test_cuda_libraries_are_apart_and_the_cpu_build_is_known():
    text = "nvidia-x==1 \\\n    --hash=sha256:b\ntorch==2 \\\n    --hash=sha256:c\nyarl==3"
    everyone, cuda = lock.split(text)
    assert cuda == "nvidia-x==1 \\\n    --hash=sha256:b\n"
    assert everyone == "torch==2 \\\n    --hash=sha256:c\nyarl==3\n"
    assert not set(LOCKED) & set(CUDA)
    assert LOCKED["torch"][0][0] == lock.TORCH
    assert {"torch": [(f"{lock.TORCH}+cpu", [f"--hash={lock.CPU_BUILD}"])]} == CPU


def test_every_locked_package_has_its_licence_listed():
    page = (ROOT / "LICENCES.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([a-z0-9-]+) \| (\d\S*) \|", page, flags=re.M))
    elsewhere = re.findall(r"^([a-z0-9-]+)==\S+ ;", lock.LOCK.read_text(), flags=re.M)
    assert rows.keys() | set(elsewhere) == LOCKED.keys()  # some are of other platforms alone
    for name, version in rows.items():
        assert version in [locked for locked, _ in LOCKED[name]], f"{name}: make licences"
    assert "not stated" not in page


def test_a_licence_is_read_from_expression_text_or_classifier():
    def stated(**fields):
        metadata = Message()
        for key, value in fields.items():
            metadata[key.replace("_", "-")] = value
        return licences.licence(SimpleNamespace(metadata=metadata))

    classifier = "License :: OSI Approved :: BSD License"
    assert stated(License_Expression="MIT", Classifier=classifier) == "MIT"
    assert stated(License="Apache 2.0") == "Apache 2.0"
    assert stated(License="Copyright\nand a page", Classifier=classifier) == "BSD License"
    assert stated() == "not stated"


def test_docs_and_metadata_name_the_pythons_that_were_tried():
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    (sentence,) = re.findall(r"Tested with Python ([^:]*):", INSTALL)
    assert re.findall(r"3\.\d+", sentence) == classified


def test_docs_tell_of_the_lock_and_of_the_torch_in_it():
    assert "constraints" not in INSTALL
    assert f"CPU build of torch {lock.TORCH} for Python 3.11" in INSTALL
    assert (
        "[requirements-dev.lock](../requirements-dev.lock). The file pins every package" in INSTALL
    )
