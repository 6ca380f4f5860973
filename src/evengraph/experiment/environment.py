"""The environment of a run: versions, device and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch


def describe(device: torch.device) -> dict[str, Any]:
    """Describe the environment, as stored with every result."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": version("torch_geometric"),
        "numpy": version("numpy"),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": f"{device.type} ({name})",
        "threads": torch.get_num_threads(),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of the checkout that this package runs from, if any; + if it has changes.

    EVENGRAPH_COMMIT replaces it, for copies without a history.
    """
    if commit := os.environ.get("EVENGRAPH_COMMIT"):
        return commit
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if git("ls-files", "--error-unmatch", __file__) == "":
            return None
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, or not a checkout
