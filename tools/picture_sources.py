"""What the pictures of the docs are drawn from, so that a test notices when one is stale.

A script that draws a picture calls `record`, which stores a digest of the picture's sources in
`docs/pictures.json`. A picture is stale if its sources have another digest by now.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "pictures.json"
# Picture or folder of pictures: the command that draws it, and the files that it is drawn from.
SOURCES = {
    "figures": ("python docs/figures.py", ("docs/figures.py",)),
    "growth.svg": (
        "python -m benchmarks.growth --draw",
        ("results/growth.csv", "benchmarks/growth.py"),
    ),
    **dict.fromkeys(
        ("labelling.svg", "labelling-ap.svg"),
        (
            "python results/draw_labelling.py",
            ("results/labelling.csv", "results/draw_labelling.py"),
        ),
    ),
    "desk": (
        "python -m tools.desk_pictures",
        (
            "src/evengraph/desk/*.css",
            "src/evengraph/desk/*.js",
            "tools/desk_pictures.py",
            "src/evengraph/desk/pages.py",
        ),
    ),
}


def digest(name: str) -> str:
    """Digest what a picture is drawn from."""
    found = hashlib.sha256()
    for pattern in SOURCES[name][1]:
        for path in sorted(ROOT.glob(pattern)):
            found.update(path.read_text(encoding="utf-8").encode())
    return found.hexdigest()


def recorded() -> dict[str, str]:
    """Return the digests at the time when the pictures were drawn."""
    stored: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored


def record(name: str) -> None:
    """Note that a picture has just been drawn."""
    stored = {**recorded(), name: digest(name)}
    FILE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
