"""Draw `hero.svg`, the picture of the front page: `python docs/hero.py`.

A terminal, a part of the report and the ranked accounts of next month, as the stored run of
`docs/example.py` has them. Its colours follow the colour scheme of whoever looks at it.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "hero.svg"
TRANSCRIPT = ROOT / "results" / "accounts.txt"
WIDTH, HEIGHT = 960, 400
STYLE = """
  svg { --paper: #ffffff; --edge: #c9d1da; --ink: #26323f; --soft: #5b6875; --rare: #c2410c;
        --bar: #d5dbe2; --term: #1d2630; --text: #dfe6ee; --dim: #9fb0c0; --mark: #ffb074 }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #1b232e; --edge: #3b4756; --ink: #dbe3ec; --soft: #a3b1c0; --rare: #ff9a5c;
          --bar: #435060; --term: #10161d } }
  .paper { fill: var(--paper); stroke: var(--edge) } .term { fill: var(--term) }
  text { font: 13px system-ui, sans-serif; fill: var(--ink) }
  .head { font-weight: 600; font-size: 14px } .soft { fill: var(--soft); font-size: 12px }
  .end { text-anchor: end } .bar { fill: var(--bar) } .rare { fill: var(--rare) }
  .mono { font: 11.4px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--text);
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


def terminal(run: str) -> list[str]:
    """Return the command and the head of what it prints."""
    found, classes = run.index("Found "), run.index("class   test nodes")
    first = run[found : run.index("\n\n", found)].splitlines()
    scores = run[run.index("seed  ", found) : run.index("\n\npositive")].splitlines()
    table = run[classes : run.index("\n\n", classes)].splitlines()
    command = [
        "$ evengraph run examples/accounts --label kind \\",
        "    --drop status --cost-miss 10",
    ]
    lines = [*command, "", *first, "", *scores, "", *table]
    parts = [box(0.5, 0.5, 560, HEIGHT - 1, "term", 8)]
    for row, line in enumerate(lines):
        is_rare = line.startswith(("Found", "alarms are", "fraud "))
        kind = "mono mark" if is_rare else "mono dim" if row < 2 else "mono"
        parts.append(text(16, 30 + 17.5 * row, line, kind))
    return parts


def costs(run: str) -> list[str]:
    """Return the cost of each threshold as bars."""
    at = run.index("chosen for")
    table = run[at : run.index("\n\n", at)].replace("the lowest cost (a miss ", "the lowest cost ")
    rows = re.findall(r"^(\S.*?)  +0\.\d+ .* ([\d,]+)$", table, flags=re.M)
    values = [int(value.replace(",", "")) for _, value in rows]
    parts = [
        box(576.5, 0.5, 383, 193, "paper", 8),
        text(592, 24, "Report: cost by threshold", "head"),
    ]
    for place, ((name, shown), value) in enumerate(zip(rows, values, strict=True)):
        y = 46 + 17 * place
        kind = "rare" if value == min(values) else "bar"
        parts.append(text(592, y, name.strip(), "soft"))
        parts.append(box(752, y - 10, 150 * value / max(values), 11, kind))
        parts.append(text(946, y, shown, "soft end"))
    return parts


def ranked(predicted: str) -> list[str]:
    """Return the most suspicious accounts of next month as bars."""
    rows = re.findall(r"^\d+ +(\S+) +(0\.\d+)  .*?around it (.*?)(?: \(|;)", predicted, flags=re.M)
    rows = [(name, share, near.strip(" (") or "") for name, share, near in rows][:7]
    parts = [box(576.5, 205.5, 383, 194, "paper", 8)]
    parts.append(text(592, 229, "Next month: probability of fraud", "head"))
    for place, (name, share, near) in enumerate(rows):
        y = 253 + 21 * place
        parts.append(text(592, y, name))
        parts.append(box(640, y - 11, 110, 13, "bar"))
        parts.append(box(640, y - 11, 110 * float(share), 13, "rare"))
        parts.append(text(760, y, f"{float(share):.0%}"))
        parts.append(text(946, y, f"near it: {near}", "soft end"))
    return parts


def hero() -> str:
    """Return the picture."""
    transcript = TRANSCRIPT.read_text(encoding="utf-8")
    _, _, run, predicted, *_ = re.split(r"^\$ evengraph ", transcript, flags=re.M)
    parts = [*terminal(run), *costs(run), *ranked(predicted)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>Frauds found, the cost of each threshold, and next month's accounts</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


if __name__ == "__main__":
    FILE.write_text(hero(), encoding="utf-8")
