"""The stylesheet of the page. Every colour is a variable, so light, dark and print share rules."""

# blue-grey for the common classes and orange for the rare ones stay apart for colour-blind eyes;
# tests/report/test_style.py holds the contrasts
LIGHT = """
  --page: #f5f6f8; --surface: #ffffff; --ink: #18202b; --muted: #566170; --line: #dde2e8;
  --common: #66768c; --rare: #b84a00; --band: #dfe9f5; --accent: #1f6fb2;
  --shade: 9 62 128; --on-weak: #000000; --on-strong: #ffffff;
  --colour-0: #1f6fb2; --colour-1: #a86f00; --colour-2: #9a3f8f;
  --colour-3: #0f7d5c; --colour-4: #4a5563; --colour-5: #c2456a;
"""

DARK = """
  --page: #0f1319; --surface: #171d25; --ink: #e7ebf0; --muted: #9ba7b6; --line: #2b3440;
  --common: #8796aa; --rare: #f59a52; --band: #24384f; --accent: #63b0f0;
  --shade: 96 161 230; --on-weak: #ffffff; --on-strong: #000000;
  --colour-0: #63b0f0; --colour-1: #e0b040; --colour-2: #d68bd0;
  --colour-3: #4cc3a0; --colour-4: #b4bfcc; --colour-5: #f5839f;
"""

_BASE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
main, header, footer { max-width: 70rem; margin: 0 auto; padding: 0 clamp(1rem, 4vw, 2.5rem); }
header { padding-top: clamp(2rem, 6vw, 4rem); }
h1, h2, h3, p, ul, ol, dl, dd, figure { margin: 0; padding: 0; }
h1 { font-size: clamp(1.8rem, 5vw, 2.75rem); line-height: 1.15; letter-spacing: -.02em;
  font-weight: 700; overflow-wrap: anywhere; }
h1 span { display: block; margin-top: .35rem; font-size: clamp(1.1rem, 2.6vw, 1.4rem);
  line-height: 1.35; letter-spacing: 0; font-weight: 400; color: var(--muted); }
h2 { font-size: 1.25rem; line-height: 1.3; letter-spacing: -.01em; }
h3 { font-size: .95rem; font-weight: 600; }
a { color: var(--accent); }
.lead { margin-top: 1rem; max-width: 44rem; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin-top: 1rem; list-style: none;
  color: var(--muted); font-size: .9rem; }
.facts b { color: var(--ink); font-weight: 600; }
.notice { margin-top: 1.25rem; padding: .7rem 1rem; border-left: 4px solid var(--rare);
  background: var(--surface); border-radius: 0 .4rem .4rem 0; }
section { margin-top: 1.25rem; padding: clamp(1.1rem, 3vw, 1.75rem); background: var(--surface);
  border: 1px solid var(--line); border-radius: .9rem; min-width: 0; }
section > p { margin-top: .3rem; max-width: 46rem; }
.quiet, section > p, .note { color: var(--muted); font-size: .9rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.legend { display: flex; flex-wrap: wrap; gap: .35rem 1.5rem; margin-top: .9rem; list-style: none;
  font-size: .875rem; color: var(--muted); }
.legend li { display: flex; align-items: baseline; gap: .5rem; }
.legend b { color: var(--ink); font-weight: 600; }
.swatch { flex: none; align-self: center; }
.scroll { overflow-x: auto; margin-top: 1.1rem; max-width: 100%; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 3px; }
footer { padding-top: 1.5rem; padding-bottom: 3rem; color: var(--muted); font-size: .875rem; }
"""

_CARDS = """
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr));
  gap: 1.25rem; margin-top: 2rem; padding: 0; background: none; border: 0; }
.card { padding: 1.25rem 1.4rem 1.1rem; background: var(--surface); border: 1px solid var(--line);
  border-radius: .9rem; min-width: 0; }
.card h3 { color: var(--muted); font-weight: 500; }
.figure { display: flex; flex-wrap: wrap; align-items: baseline; gap: .5rem;
  margin: .1rem 0 .9rem; }
.figure b { font-size: 2.75rem; line-height: 1.15; font-weight: 650; letter-spacing: -.03em; }
.figure span { font-size: 1.15rem; color: var(--muted); }
.against { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .2rem .75rem;
  margin-top: .5rem; padding-top: .6rem; border-top: 1px solid var(--line); font-size: .9rem;
  color: var(--muted); }
.against b { color: var(--ink); font-weight: 600; }
.cards .legend { grid-column: 1 / -1; margin: -.4rem 0 .2rem; padding: 0 .2rem; }
"""

_CHARTS = """
svg { display: block; overflow: visible; }
svg .bar { fill: var(--common); }
svg .grid { stroke: var(--line); }
svg .axis { stroke: var(--muted); stroke-opacity: .6; }
svg .tick { fill: var(--muted); font-size: .75rem; }
svg .reference { stroke: var(--muted); stroke-width: 1.5; stroke-dasharray: 3 3; }
svg .whisker { stroke: var(--common); stroke-width: 2; }
svg .seed { fill: var(--surface); stroke: var(--common); stroke-width: 1.5; }
svg circle.mean { fill: var(--common); stroke: var(--surface); stroke-width: 1.5; }
.rare .bar, .rare circle.mean { fill: var(--rare); }
.rare .whisker, .rare .seed { stroke: var(--rare); }
.strip { width: 100%; height: 44px; }
svg .band { fill: var(--band); }
.paper { stroke: var(--muted); stroke-width: 1.5; stroke-dasharray: 3 3; }
.cards svg .seed { stroke: var(--accent); }
svg line.mean { stroke: var(--accent); stroke-width: 3; stroke-linecap: round; }
.ladder { --height: 1.9rem; margin-top: 1.1rem; list-style: none; padding: 0; }
.ladder.dense { --height: 1.45rem; font-size: .875rem; }
.ladder li { display: grid; align-items: center; column-gap: .8rem;
  grid-template-columns: minmax(7rem, 15rem) 2.8rem minmax(0, 2fr) minmax(0, 3fr) 3rem; }
.ladder .name { overflow-wrap: anywhere; line-height: 1.25; padding: .15rem 0;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
.ladder .rare .name, .ladder .rare .value { color: var(--rare); font-weight: 600; }
.ladder.dense .name { display: block; white-space: nowrap; text-overflow: ellipsis; }
.ladder.dense .rare .name, .ladder.dense .rare .value { font-weight: 400; }
.ladder .value { text-align: right; }
.ladder .value + .row { width: calc(100% - .8rem); }
.ladder .row, .ladder .scale { width: 100%; height: var(--height); align-self: stretch;
  min-height: 100%; }
.ladder .head { color: var(--muted); font-size: .8rem; line-height: 1.25; align-items: end; }
.ladder .head .counts { grid-column: 2 / 4; }
.ladder .axis-row .scale { grid-column: 4; height: 1.5rem; }
.ladder .row { padding: 0; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr));
  gap: 1.5rem 2.5rem; margin-top: 1.25rem; }
.panels figure { min-width: 0; }
.plot { margin-top: .6rem; padding: .3rem .5rem 1.8rem 2.6rem; }
.curves { width: 100%; height: 15rem; }
.axis-name { text-align: center; padding-left: 2.6rem; color: var(--muted); font-size: .8rem; }
svg .curve { fill: none; stroke: var(--colour); stroke-width: 1.3; stroke-linejoin: round;
  stroke-linecap: round; vector-effect: non-scaling-stroke; stroke-opacity: .85; }
svg .curve:hover { stroke-width: 3; stroke-opacity: 1; }
.many .drop { display: none; }
.many .best { stroke-width: 1.5; }
.many .curve { stroke-width: 1; stroke-opacity: .45; }
svg .best { fill: var(--surface); stroke: var(--colour); stroke-width: 2.5; }
svg .drop { stroke: var(--colour); stroke-dasharray: 2 4; stroke-opacity: .8; }
"""

_TABLES = """
table { border-collapse: collapse; font-size: .9rem; }
.figures { width: 100%; }
.figures th, .figures td { padding: .5rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
.figures th:first-child { text-align: left; padding-left: 0; position: sticky; left: 0;
  background: var(--surface); }
.figures thead th { color: var(--muted); font-weight: 500; vertical-align: bottom;
  white-space: normal; }
.figures th:not(:first-child) { width: 10%; }
.figures tbody th { font-weight: 500; }
.figures .sum th, .figures .sum td { font-weight: 650; border-top: 2px solid var(--line); }
.matrix { border-collapse: separate; border-spacing: 2px; font-size: .875rem; }
.matrix tbody td { min-width: 3.1rem; height: 2.75rem; padding: 0 .3rem; text-align: center;
  border-radius: .3rem; color: var(--on-weak); background: rgb(var(--shade) / var(--share)); }
.matrix tbody td.strong { color: var(--on-strong); }
.matrix tbody td.none { color: var(--muted); }
.matrix tbody td.hit { box-shadow: inset 0 0 0 1.5px var(--muted); }
.matrix th { font-weight: 500; }
.matrix th.rare { color: var(--rare); }
.matrix:not(.dense) th.rare { font-weight: 600; }
.matrix thead th { vertical-align: bottom; padding: 0 0 .4rem; }
.matrix thead span { display: inline-block; writing-mode: vertical-rl; transform: rotate(180deg);
  max-height: 13rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  line-height: 1.2; }
.matrix tbody th { position: sticky; left: 0; background: var(--surface); text-align: right;
  padding: 0 .6rem 0 0; line-height: 1.2; }
.matrix tbody th span { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; overflow-wrap: break-word; hyphens: auto; width: max-content;
  max-width: clamp(7.5rem, 22vw, 14rem); margin-left: auto; }
.matrix .corner { position: sticky; left: 0; background: var(--surface); color: var(--muted);
  vertical-align: bottom; text-align: right; padding: 0 .6rem .4rem 0; font-size: .8rem; }
.matrix .corner span { display: block; writing-mode: horizontal-tb; transform: none; }
.matrix.dense { border-spacing: 1px; font-size: .75rem; }
.matrix.dense tbody td { min-width: 1.75rem; height: 1.6rem; padding: 0 .15rem;
  border-radius: .15rem; box-shadow: inset 0 0 0 .5px var(--line); }
.matrix.dense tbody td.hit { box-shadow: inset 0 0 0 1.5px var(--muted); }
.matrix.dense tbody th span { display: block; max-width: 9rem; white-space: nowrap;
  text-overflow: ellipsis; }
.beside { display: flex; flex-wrap: wrap; gap: 1rem clamp(2rem, 5vw, 4rem); margin-top: 1.1rem; }
.beside > * { min-width: 0; max-width: 100%; }
.beside .scroll { margin-top: 0; }
.beside aside { flex: 1 1 17rem; align-self: center; }
.mixed { margin-top: .6rem; list-style: none; font-size: .9rem; }
.mixed li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 1rem;
  padding: .5rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.mixed span { color: var(--muted); }
.mixed .rare b { color: var(--rare); }
.ramp { display: flex; align-items: center; gap: .6rem; margin-top: 1rem; font-size: .8rem;
  color: var(--muted); }
.ramp i { width: 8rem; height: .7rem; border-radius: .3rem; border: 1px solid var(--line);
  background: linear-gradient(to right, rgb(var(--shade) / 0), rgb(var(--shade) / 1)); }
details { border-top: 1px solid var(--line); }
details:first-of-type { margin-top: .9rem; }
summary { padding: .8rem 0; cursor: pointer; font-weight: 600; }
.pairs { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr);
  gap: .3rem 1.5rem; padding-bottom: 1rem; font-size: .9rem; }
.pairs dt { color: var(--muted); overflow-wrap: anywhere; }
.pairs dd { overflow-wrap: anywhere; }
.words { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr));
  gap: 1rem 2.5rem; margin-top: 1rem; font-size: .9rem; }
.words dt { font-weight: 600; }
.words dd { color: var(--muted); }
"""

_NARROW = """
@media (max-width: 42rem) {
  .ladder li { grid-template-columns: 2rem minmax(0, 2fr) minmax(0, 3fr) 2.4rem;
    column-gap: .55rem; }
  .ladder .name { grid-column: 1 / -1; padding-top: .5rem; }
  .ladder .head .name { display: none; }
  .ladder .head .counts { grid-column: 1 / 3; }
  .ladder .axis-row .scale { grid-column: 3; }
  .ladder { --height: 1.45rem; }
  .matrix:not(.dense) tbody td { min-width: 2.3rem; }
  .matrix thead span { max-height: 8rem; }
}
"""

_PRINT = """
@page { margin: 14mm; }
@media print {
  :root { font-size: 80%; }
  header { padding-top: 0; }
  body { background: none; -webkit-print-color-adjust: exact;
    print-color-adjust: exact; }
  main, header, footer { max-width: none; padding-left: 0; padding-right: 0; }
  section, .card { border-radius: 0; break-inside: avoid; }
  section.long { break-inside: auto; }
  .ladder li, tr, figure { break-inside: avoid; }
  .scroll { overflow: visible; }
  .matrix tbody th, .matrix .corner, .figures th:first-child { position: static; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""

STYLE = (
    f":root {{ color-scheme: light dark;{LIGHT}}}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{{DARK}}} }}\n"
    # paper is white whatever the screen was
    f"@media print {{ :root {{ color-scheme: light;{LIGHT}}} }}\n"
    + "\n".join(f".colour-{index} {{ --colour: var(--colour-{index}); }}" for index in range(6))
    + _BASE
    + _CARDS
    + _CHARTS
    + _TABLES
    + _NARROW
    + _PRINT
)
