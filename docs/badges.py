"""Draw the badges of the README from what the package says of itself: `python docs/badges.py`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "badges"
LETTER, PADDING = 6.6, 8  # pixels
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#3d4a5c"/>
<path d="M{left} 0h{right}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{right}z" fill="#1f6fb2"/>
<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" text-anchor="middle">
<text x="{name_at}" y="14">{name}</text><text x="{value_at}" y="14">{value}</text></g>
</svg>
"""


def badge(name: str, value: str) -> str:
    """Return a badge with a name and a value."""
    left, right = (round(LETTER * len(text) + 2 * PADDING) for text in (name, value))
    at = {"name_at": left / 2, "value_at": left + right / 2}
    return BADGE.format(
        name=name, value=value, width=left + right, left=left, right=right - 3, **at
    )


def badges() -> dict[str, str]:
    """Return the badges by file name, with values of pyproject.toml and the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, package = settings["project"], (ROOT / "src" / "evengraph" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.+)"', package, flags=re.M)
    python = project["requires-python"].removeprefix(">=")
    assert settings["tool"]["mypy"]["strict"]
    values = {
        "version": ("version", version),
        "python": ("Python", f"{python} or newer"),
        "licence": ("licence", project["license"]),
        "types": ("typed", "mypy --strict"),
    }
    return {stem: badge(*words) for stem, words in values.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for stem, text in badges().items():
        (FOLDER / f"{stem}.svg").write_text(text, encoding="utf-8")
