"""Additions to mkdocs: links that leave `docs/`, and the lists of all methods and metrics.

Pages link to files outside `docs/`, such as `../results/readings.md`, which works in the
repository but not on a site made of `docs/` alone. Every file that a page links to is therefore
copied to the site under `repository/`, together with what it links to, and the links are rewritten.
Code is shown as a page; a link to a folder becomes plain text.

Without an address of the site, the links of `404.html` start at its own folder instead of a
server's root, so that they also work below a path and from disk.

Notebooks become pages. Guides come first in the search; results and copies are left out of it.

The line `<!-- every method -->` is replaced by a table and the reference of METHODS, and
`<!-- every metric -->` by tables of METRICS.
"""

from __future__ import annotations

import json
import re
import sys
from os.path import relpath
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")
TABLE_ROW = re.compile(r"^\|.*$", flags=re.M)  # where a value stays beside its deviation
OPTION = re.compile(r"<code>(?=[^<]*-)([^<]{2,30})</code>")  # which is not broken at a hyphen
INTERVAL = re.compile(r"\((-?[\d.]+) to (-?[\d.]+)\)")  # which stays on one line
FOLDER = "repository"
EVERY_METHOD = "<!-- every method -->"
EVERY_METRIC = "<!-- every metric -->"
CODE = {".py": "python", ".toml": "toml", ".txt": ""}
UNSEARCHED = ("repository/", "results/", "public-split", "reproduction")
FIRST = ("start", "own-data", "fraud", "disk", "methods", "train", "predict", "labelling", "errors")


def on_files(files: Files, config: Any) -> Files:
    """Add every file outside `docs/` that a page links to, and what that links to in turn."""
    docs = Path(config.docs_dir).resolve()
    root = docs.parent
    queue = [Path(file.abs_src_path) for file in files.documentation_pages()]
    seen = {path.resolve() for path in queue}
    for path in sorted((docs / "notebooks").glob("*.ipynb")):
        files.append(_notebook(path, config))
    for page in queue:
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            target = (page.parent / match[2]).resolve()
            if target in seen or not target.is_file() or target.is_relative_to(docs):
                continue
            if not target.is_relative_to(root):
                continue
            seen.add(target)
            files.append(_copy(target, root, config))
            if target.suffix == ".md":
                queue.append(target)
    return files


def _notebook(path: Path, config: Any) -> File:
    """Make a page of a notebook."""
    sys.path.insert(0, str(path.parents[2]))
    from tools.notebooks import page

    content = page(json.loads(path.read_text(encoding="utf-8")), path.stem)
    return File.generated(config, f"notebooks/{path.stem}.md", content=content)


def _uri(target: Path, root: Path) -> Path:
    """Return the path on the site of a file outside `docs/`."""
    inside = FOLDER / target.relative_to(root)
    return inside.with_name(f"{inside.name}.md") if target.suffix in CODE else inside


def _copy(target: Path, root: Path, config: Any) -> File:
    """Make a file of the site; code becomes a page."""
    uri = _uri(target, root).as_posix()
    if target.suffix not in CODE:
        return File.generated(config, uri, abs_src_path=str(target))
    text = target.read_text(encoding="utf-8")
    page = f"# {target.relative_to(root).as_posix()}\n\n````{CODE[target.suffix]}\n{text}````\n"
    return File.generated(config, uri, content=page)


def _method_entries() -> str:
    """Return a table of the methods, and what mkdocstrings needs for the reference of each."""
    from evengraph.methods import METHODS

    built_in = {name: METHODS[name] for name in METHODS if name not in METHODS.packages}
    rows = ["| name | class | idea |", "| --- | --- | --- |"]
    for name, cls in built_in.items():
        link = f"[`{cls.__name__}`][evengraph.methods.{cls.__name__}]"
        rows.append(f"| `{name}` | {link} | {(cls.__doc__ or '').strip().splitlines()[0]} |")
    entries = [f"::: evengraph.methods.{cls.__name__}" for cls in built_in.values()]
    return "\n\n".join(["\n".join(rows), *entries])


def _metric_tables() -> str:
    """Return a table of the metrics for each kind: any classes, two classes, calibration."""
    from evengraph.metrics import METRICS

    titles = ("Any number of classes", "Two classes, one of them positive", "Calibration")
    parts = []
    for kind, title in enumerate(titles):
        metrics = [m for m in METRICS.values() if kind == (2 if m.calibration else m.binary)]
        rows = [f"| {m.heading} | `{m.name}` | {m.meaning} |" for m in metrics]
        head = f"### {title}\n\n| metric | name | meaning |\n| --- | --- | --- |"
        parts.append("\n".join([head, *rows]))
    return "\n\n".join(parts)


def _unbroken(row: str) -> str:
    """Keep a value and its deviation, and the ends of an interval, on one line."""
    row = INTERVAL.sub("(\\1\u00a0to\u00a0\\2)", row)
    return row.replace(" ± ", "\u00a0±\u00a0")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links to files outside `docs/`, list the methods, weigh the page in the search."""
    if page.file.src_uri.startswith(UNSEARCHED):
        page.meta["search"] = {"exclude": True}
    elif page.file.src_uri.removesuffix(".md") in FIRST:
        page.meta["search"] = {"boost": 4}
    elif page.file.src_uri.startswith("notebooks/"):
        page.meta["search"] = {"boost": 0.5}
    if page.file.abs_src_path is None:  # code, which has no links
        return markdown
    if EVERY_METHOD in markdown:
        markdown = markdown.replace(EVERY_METHOD, _method_entries())
    if EVERY_METRIC in markdown:
        markdown = markdown.replace(EVERY_METRIC, _metric_tables())
    markdown = TABLE_ROW.sub(lambda row: _unbroken(row[0]), markdown)
    docs = Path(config.docs_dir).resolve()
    source = Path(page.file.abs_src_path).resolve()
    here = Path(page.file.src_uri).parent

    def rewrite(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        if target.is_dir():
            return match[1]
        inside = target.is_relative_to(docs)
        if inside and source.is_relative_to(docs):
            return match[0]
        uri = target.relative_to(docs) if inside else _uri(target, docs.parent)
        return f"[{match[1]}]({relpath(uri, here)}{match[3] or ''})"

    return LINK.sub(rewrite, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Keep options and names of files on one line."""
    return OPTION.sub(r'<code class="unbroken">\1</code>', html)


def on_post_build(config: Any) -> None:
    """Give the explorers the title that the navigation has, and a way back."""
    for item in config.nav[-2]["Results"]:
        ((title, file),) = item.items()
        path = Path(config.site_dir, file) if isinstance(file, str) else None
        if path is not None and path.suffix == ".html":
            text = path.read_text(encoding="utf-8")
            back = '<p><a href="../benchmarks.html">Results of evengraph</a></p>'
            text = text.replace("<h1>Experiments", f"{back}<h1>{title}", 1)
            path.write_text(text, encoding="utf-8")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Make the links of `404.html` relative, unless the address of the site is known."""
    if template_name != "404.html" or config.site_url:
        return output_content
    linked = re.sub(r'((?:href=|src=|": )")/(?!/)', r"\1", output_content)
    return linked.replace('"base": ""', '"base": "."')
