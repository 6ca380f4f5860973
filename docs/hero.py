"""Draw `hero.svg`, the picture of the front page: `python docs/hero.py`.

A terminal, a part of the report and the ranked accounts of next month, as the stored run of
`docs/example.py` has them. Its colours follow the colour scheme of whoever looks at it.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "hero.svg"
TRANSCRIPT = ROOT / "results" / "accounts.txt"
WIDTH, HEIGHT = 800, 372
COLUMNS = 53  # characters of the terminal, so few that they can be read at half the size
STYLE = """
  svg { --paper: #ffffff; --edge: #c9d1da; --ink: #26323f; --soft: #5b6875; --rare: #b84a00;
        --least: #1f6fb2; --bar: #d5dbe2; --term: #1d2630; --text: #dfe6ee; --dim: #9fb0c0;
        --mark: #ffb074 }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #1b232e; --edge: #3b4756; --ink: #dbe3ec; --soft: #a3b1c0; --rare: #f59a52;
          --least: #63b0f0; --bar: #435060; --term: #10161d } }
  .paper { fill: var(--paper); stroke: var(--edge) } .term { fill: var(--term) }
  text { font: 13px system-ui, sans-serif; fill: var(--ink) }
  .head { font-weight: 600; font-size: 14.5px } .soft { fill: var(--soft); font-size: 13px }
  .end { text-anchor: end } .bar { fill: var(--bar) } .rare { fill: var(--rare) }
  .least { fill: var(--least) }
  .mono { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--text);
          white-space: pre }
  .dim { fill: var(--dim) } .mark { fill: var(--mark) }
"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return a line of text."""
    kinds = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kinds} xml:space="preserve">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, radius: float = 2) -> str:
    """Return a rectangle."""
    size = f'x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="{radius:g}"'
    return f'<rect class="{kind}" {size}/>'


def sentence(output: str, start: str, end: str) -> str:
    """Return a part of what a command prints, on one line."""
    at = output.index(start)
    return re.sub(r"\s+", " ", output[at : output.index(end, at)]).strip()


def terminal(run: str, predicted: str) -> list[str]:
    """Return both commands and the first sentences that they print."""
    flagged = re.search(r"(\d+  flagged.*?)\nThe ", predicted, flags=re.S)
    assert flagged
    parts = [
        ("mono dim", "$ evengraph run examples/accounts --label kind --drop status --cost-miss 10"),
        ("mono mark", sentence(run, "Found ", "Average precision")),
        ("mono", sentence(run, "Average precision", "\n\n")),
        ("mono", sentence(run, "The graph helps", "\nseed 6")),
        ("mono dim", f"$ evengraph {predicted.partition(' --out')[0]}"),
        ("mono mark", re.sub(r"\s+", " ", flagged[1])),
    ]
    found, y = [box(0.5, 0.5, 448, HEIGHT - 1, "term", 8)], 28.0
    for kind, words in parts:
        indent = "    " if words[0] == "$" else ""
        for line in wrap(words, COLUMNS, subsequent_indent=indent, break_on_hyphens=False):
            found.append(text(16, y, line, kind))
            y += 18
        y += 9
    return found


def costs(run: str) -> list[str]:
    """Return the cost of each threshold as bars."""
    at = run.index("chosen for")
    table = run[at : run.index("\n\n", at)].replace("the lowest cost (a miss ", "the lowest cost ")
    rows = re.findall(r"^(\S.*?)  +0\.\d+ .* ([\d,]+)$", table, flags=re.M)
    rows = [(name, int(value.replace(",", ""))) for name, value in rows]
    largest, least = max(value for _, value in rows), min(value for _, value in rows)
    rows = [row for row in rows if row[0].strip() not in ("a recall of 50%", "a precision of 80%")]
    parts = [box(460.5, 0.5, 339, 180, "paper", 8), text(476, 26, "Cost by threshold", "head")]
    for place, (name, value) in enumerate(rows):
        y = 50 + 19 * place
        parts.append(text(476, y, name.strip(), "soft"))
        kind = "least" if value == least else "bar"
        parts.append(box(646, y - 11, 92 * value / largest, 13, kind))
        parts.append(text(786, y, f"{value:,}", "soft end"))
    return parts


def ranked(predicted: str) -> list[str]:
    """Return the most suspicious accounts of next month as bars."""
    flat = re.sub(r"\n {20,}", " ", predicted)
    rows = re.findall(r"^\d+ +(\S+) +(0\.\d+)  .*?(\d+ fraud(?:, \d+ honest)?)", flat, flags=re.M)
    parts = [
        box(460.5, 191.5, 339, 180, "paper", 8),
        text(476, 217, "Next month: p(fraud)", "head"),
        text(786, 217, "labelled around it", "soft end"),
    ]
    for place, (name, share, near) in enumerate(rows[:6]):
        y = 242 + 22 * place
        parts.append(text(476, y, name))
        parts.append(box(524, y - 11, 90, 13, "bar"))
        parts.append(box(524, y - 11, 90 * float(share), 13, "rare"))
        parts.append(text(622, y, f"{float(share):.0%}"))
        parts.append(text(786, y, near, "soft end"))
    return parts


def hero() -> str:
    """Return the picture."""
    transcript = TRANSCRIPT.read_text(encoding="utf-8")
    _, _, run, predicted, *_ = re.split(r"^\$ evengraph ", transcript, flags=re.M)
    parts = [*terminal(run, predicted), *costs(run), *ranked(predicted)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>Frauds found, the cost of each threshold, and next month's accounts</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


if __name__ == "__main__":
    FILE.write_text(hero(), encoding="utf-8")
