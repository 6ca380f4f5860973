"""Notebooks of the documentation: run examples/notebooks and write docs/notebooks.

    python -m tools.notebooks

A notebook is a Python file with cells as `# %%` and text as `# %% [markdown]`, which editors and
jupytext open. It is run here without Jupyter: the outputs are what a cell prints, and the last
expression as text and HTML. Each becomes an .ipynb file,
which the documentation shows as a page.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "examples" / "notebooks"
PAGES = ROOT / "docs" / "notebooks"
CELL = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)
LONGEST = 2000  # characters of an output as text
FOLDER = re.compile(r"/[\w./-]*/(tmp\w+)")  # temporary ones differ from run to run


def read_cells(path: Path) -> list[tuple[str, str]]:
    """Kind and text of each cell of a file."""
    _, *pieces = CELL.split(path.read_text(encoding="utf-8"))
    cells = []
    for mark, text in zip(pieces[::2], pieces[1::2], strict=True):
        if mark:
            lines = (line.removeprefix("#").removeprefix(" ") for line in text.strip().splitlines())
            cells.append(("markdown", "\n".join(lines)))
        else:
            cells.append(("code", text.strip()))
    return cells


def run_cells(
    cells: Sequence[tuple[str, str]], settings: Mapping[str, Any] | None = None
) -> list[list[dict[str, Any]]]:
    """Outputs of each cell; `settings` replace what the first cell of code sets."""
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs, is_first = [], True
    for kind, text in cells:
        if kind == "markdown":
            outputs.append([])
            continue
        outputs.append(_run(text, names))
        if is_first:
            names |= settings or {}
        is_first = False
    return outputs


def _run(text: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    body = ast.parse(text).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := _clean(printed.getvalue()):
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(text)})
    if value is not None:
        plain = _clean(repr(value))
        plain = plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"
        data = {"text/plain": _lines(plain)}
        if (html := getattr(value, "_repr_html_", None)) is not None:
            data["text/html"] = _lines(_clean(html()))
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return outputs


def notebook(
    cells: Sequence[tuple[str, str]], outputs: Sequence[list[dict[str, Any]]]
) -> dict[str, Any]:
    """The content of an .ipynb file."""
    content = []
    for number, ((kind, text), shown) in enumerate(zip(cells, outputs, strict=True)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": _lines(text)}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": shown}
        content.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def page(content: Mapping[str, Any], name: str) -> str:
    """The page of a notebook in Markdown, with its outputs."""
    parts = []
    for cell in content["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_shown(output) for output in cell.get("outputs", ())]
    title, *rest = parts
    note = f"[Download this notebook]({name}.ipynb)"
    return "\n\n".join((title, note, *rest)) + "\n"


def _shown(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]).rstrip())
    data = output["data"]
    if "text/html" not in data:
        return _fenced("".join(data["text/plain"]))
    html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
    return f'<div class="notebook-output">\n{html.strip()}\n</div>'


def _fenced(text: str) -> str:
    """A block of text in Markdown, which may hold blocks itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _clean(text: str) -> str:
    """Without addresses in memory and temporary folders."""
    return FOLDER.sub(r"/tmp", re.sub(r" at 0x[0-9a-f]+", "", text))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run every notebook and write its files."""
    PAGES.mkdir(exist_ok=True)
    for path in sorted(SOURCES.glob("*.py")):
        cells = read_cells(path)
        content = notebook(cells, run_cells(cells))
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (PAGES / f"{path.stem}.ipynb").write_text(text, encoding="utf-8")
        print(f"wrote {(PAGES / path.stem).relative_to(ROOT)}.ipynb")


if __name__ == "__main__":
    main()
