"""Draw `hero.svg`, the picture of the front page: `python docs/hero.py`.

One small graph four times: few labels, paths, clusters, every node with a class. The picture is
drawn, not measured. Its colours follow the colour scheme of whoever looks at it.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

FILE = Path(__file__).with_name("hero.svg")
WIDTH, PANEL, HEIGHT = 960, 240, 250
RADIUS = 7
TITLES = ("few labels", "paths", "clusters", "every node has a class")
# centre, spread and number of nodes of each class; the last is the rare one
GROUPS = (((62, 66), 50, 15), ((178, 80), 48, 13), ((112, 172), 46, 10))
LABELLED = {0: (0, 4, 8, 11), 1: (15, 19, 23, 26), 2: (28,)}
STYLE = """
  svg { --ink: #3d4a5c; --line: #c3cad3; --none: #ffffff; --a: #1f6fb2; --b: #5b9b7d;
        --rare: #d55e00; --path: #d55e00 }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #c9d3df; --line: #4a5768; --none: #1b232e; --a: #63b0f0; --b: #7cc4a1;
          --rare: #f59a52; --path: #f59a52 } }
  text { font: 600 15px system-ui, sans-serif; fill: var(--ink); text-anchor: middle }
  line { stroke: var(--line); stroke-width: 1.4 }
  line.path { stroke: var(--path); stroke-width: 2.6 }
  line.far { stroke-width: 1.6; opacity: .75 }
  circle { fill: var(--none); stroke: var(--line); stroke-width: 1.8 }
  .c0 { fill: var(--a); stroke: var(--a) } .c1 { fill: var(--b); stroke: var(--b) }
  .c2 { fill: var(--rare); stroke: var(--rare) }
  .label { stroke: var(--ink); stroke-width: 2.6 }
  .cloud { stroke: none; opacity: .16 }
"""


def places() -> list[tuple[float, float, int]]:
    """Return x, y and class of every node: groups of points that keep their distance."""
    draw, nodes = random.Random(3), []
    for label, ((x, y), spread, count) in enumerate(GROUPS):
        found = 0
        while found < count:
            angle, far = draw.uniform(0, 2 * math.pi), spread * math.sqrt(draw.random())
            point = x + far * math.cos(angle), y + 0.9 * far * math.sin(angle)
            if all(math.dist(point, other[:2]) > 2.3 * RADIUS for other in nodes):
                nodes.append((*point, label))
                found += 1
    return nodes


def edges(nodes: list[tuple[float, float, int]]) -> list[tuple[int, int]]:
    """Join every node to its two nearest, and the groups where they are nearest."""
    pairs = set()
    for group, other in ((0, 1), (0, 2), (1, 2)):
        ends = [(a, b) for a in range(len(nodes)) for b in range(len(nodes))
                if (nodes[a][2], nodes[b][2]) == (group, other)]  # fmt: skip
        pairs.add(min(ends, key=lambda ab: math.dist(nodes[ab[0]][:2], nodes[ab[1]][:2])))
    for one, (x, y, _) in enumerate(nodes):
        near = sorted(range(len(nodes)), key=lambda n: math.dist((x, y), nodes[n][:2]))[1:3]
        pairs |= {(min(one, other), max(one, other)) for other in near}
    return sorted(pairs)


def distances(pairs: list[tuple[int, int]], start: int, count: int) -> list[int]:
    """Return the number of steps from a node to every other, or a large number."""
    steps = [99] * count
    steps[start] = 0
    for _ in range(count):
        for a, b in pairs:
            steps[a] = min(steps[a], steps[b] + 1)
            steps[b] = min(steps[b], steps[a] + 1)
    return steps


def panel(number: int, nodes: list[tuple[float, float, int]]) -> str:
    """Return one of the four graphs."""
    pairs, labelled = edges(nodes), {n for group in LABELLED.values() for n in group}
    steps = distances(pairs, LABELLED[2][0], len(nodes))
    parts = []
    if number == 2:
        parts += [f'<circle class="cloud c{label}" cx="{x}" cy="{y}" r="{spread + 15}"/>'
                  for label, ((x, y), spread, _) in enumerate(GROUPS)]  # fmt: skip
    for a, b in pairs:
        far = max(steps[a], steps[b])
        kind = {1: ' class="path"', 2: ' class="path far"'}.get(far if number == 1 else 0, "")
        (x, y, _), (u, v, _) = nodes[a], nodes[b]
        parts.append(f'<line{kind} x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}"/>')
    for node, (x, y, label) in enumerate(nodes):
        reached = number == 1 and steps[node] <= 2
        shown = number == 3 or node in labelled or (number == 2 and label == 2) or reached
        colour = 2 if reached else label
        kinds = [f"c{colour}"] * shown + ["label"] * (node in labelled)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        parts.append(f'<circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>')
    parts.append(f'<text x="{PANEL / 2:.0f}" y="{HEIGHT - 10}">{TITLES[number]}</text>')
    return f'<g transform="translate({number * PANEL} 0)">\n' + "\n".join(parts) + "\n</g>"


def hero() -> str:
    """Return the picture."""
    nodes = places()
    panels = "\n".join(panel(number, nodes) for number in range(len(TITLES)))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>A rare label travels along paths and clusters until all is filled</title>"
    return f"{head}\n{title}\n<style>{STYLE}</style>\n{panels}\n</svg>\n"


if __name__ == "__main__":
    FILE.write_text(hero(), encoding="utf-8")
