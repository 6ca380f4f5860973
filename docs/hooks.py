"""Links that leave `docs/` work on the site, too.

The Markdown of this repository links to files beside `docs/`, as `../results/readings.md`, and is
read as files there. mkdocs knows the folder `docs/` alone. So every file that a page links to is
brought into the site under `repository/`, pages with all that they link to themselves, and the
links are turned to where it then is. Code becomes a page that shows it; a link to a folder becomes
plain words.
"""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")
PLACE = "repository"
CODE = {".py": "python", ".toml": "toml", ".txt": ""}


def on_files(files: Files, config: Any) -> Files:
    """Bring in every file outside that a page links to, and what that links to in turn."""
    docs = Path(config.docs_dir).resolve()
    root = docs.parent
    waiting = [Path(file.abs_src_path) for file in files.documentation_pages()]
    known = {path.resolve() for path in waiting}
    for page in waiting:
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            goal = (page.parent / match[2]).resolve()
            if goal in known or not goal.is_file() or goal.is_relative_to(docs):
                continue
            if not goal.is_relative_to(root):
                continue
            known.add(goal)
            files.append(_brought(goal, root, config))
            if goal.suffix == ".md":
                waiting.append(goal)
    return files


def _uri(goal: Path, root: Path) -> Path:
    """Where a file outside is on the site."""
    inside = PLACE / goal.relative_to(root)
    return inside.with_name(f"{inside.name}.md") if goal.suffix in CODE else inside


def _brought(goal: Path, root: Path, config: Any) -> File:
    """A file for the site; code is put on a page."""
    uri = _uri(goal, root).as_posix()
    if goal.suffix not in CODE:
        return File.generated(config, uri, abs_src_path=str(goal))
    text = goal.read_text(encoding="utf-8")
    page = f"# {goal.relative_to(root).as_posix()}\n\n````{CODE[goal.suffix]}\n{text}````\n"
    return File.generated(config, uri, content=page)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links to where their files are on the site."""
    if page.file.abs_src_path is None:  # code, which has no links
        return markdown
    docs = Path(config.docs_dir).resolve()
    real = Path(page.file.abs_src_path).resolve()
    here = Path(page.file.src_uri).parent

    def turned(match: re.Match[str]) -> str:
        goal = (real.parent / match[2]).resolve()
        if goal.is_dir():
            return match[1]
        inside = goal.is_relative_to(docs)
        if inside and real.is_relative_to(docs):
            return match[0]
        uri = goal.relative_to(docs) if inside else _uri(goal, docs.parent)
        return f"[{match[1]}]({relpath(uri, here)}{match[3] or ''})"

    return LINK.sub(turned, markdown)
