"""Stylesheet of the page of an inspection."""

from evengraph.report.run.style import STYLE as SHARED

_OWN = """
.advice, .card .quiet, .legend li, h1, h2, h3, .facts { min-width: 0; overflow-wrap: anywhere; }
.advice { margin-top: 1rem; padding: .9rem 1.1rem; max-width: none; border-radius: .6rem;
  background: var(--band); color: var(--ink); font-size: 1rem; }
.findings { list-style: none; margin-top: 1rem; }
.findings li { display: grid; grid-template-columns: 1.5rem minmax(0, 1fr); gap: .7rem;
  padding: .6rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.findings li:first-child { border-top: 0; }
.findings .mark { width: 1.5rem; height: 1.5rem; border-radius: 50%; font-weight: 700;
  text-align: center; line-height: 1.5rem; font-size: .9rem; color: var(--surface);
  background: var(--mark); }
.warning { --mark: var(--rare); }
.note { --mark: var(--muted); }
.good { --mark: var(--colour-3); }
.findings .note { color: inherit; font-size: inherit; }
.card .quiet { margin-top: -.4rem; }
svg .hidden { fill: var(--common); fill-opacity: .3; }
.rare .hidden { fill: var(--rare); }
.bars { list-style: none; margin-top: .8rem; font-size: .875rem; }
.bars li { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr) 4.6rem; align-items: center;
  column-gap: .7rem; }
.bars .name, .bars .value { text-align: right; color: var(--muted); }
.bars .value { color: var(--ink); }
.bars .row { width: 100%; height: 1.5rem; }
.bars svg .bar { fill: var(--accent); }
.two { display: grid; gap: 1.5rem 3rem; margin-top: 1.1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
.two > * { min-width: 0; }
.two .pairs { padding: 0; align-content: start; margin-top: .8rem; }
.two ul:not([class]) { padding-left: 1.2rem; margin-top: .8rem; overflow-wrap: anywhere; }
.pairs dd { text-align: right; }
.two .pairs { grid-template-columns: minmax(0, 1fr) auto; }
svg .curve { stroke-width: 2.2; }
svg .curve.faint { stroke: var(--common); stroke-width: 1; stroke-opacity: .5; }
svg .curve.all { stroke: var(--ink); stroke-dasharray: 5 4; stroke-width: 1.5; }
svg .dot { fill: var(--colour); stroke: var(--surface); stroke-width: 1.5; }
.shares { width: 100%; border-collapse: separate; border-spacing: 2px; font-size: .875rem; }
.shares td { min-width: 3rem; height: 2rem; padding: 0 .4rem; text-align: center;
  border-radius: .25rem; color: var(--on-weak); background: rgb(var(--shade) / var(--share)); }
.shares.dense td { height: 1.45rem; font-size: .8rem; }
.shares.dense tbody tr.rare th { font-weight: 400; }
.shares td.strong { color: var(--on-strong); }
.shares th { font-weight: 500; color: var(--muted); padding: 0 .5rem .2rem; }
.shares tbody th { color: var(--ink); text-align: left; padding: 0 .6rem 0 0; line-height: 1.2;
  overflow-wrap: break-word; max-width: 14rem; }
.shares tbody tr.rare th { color: var(--rare); font-weight: 600; }
.shares .sum th { font-weight: 650; }
.ladder li {
  grid-template-columns: minmax(7rem, 15rem) 4.6rem minmax(0, 2fr) minmax(0, 3fr) 2.6rem; }
@media (max-width: 42rem) {
  .ladder li { grid-template-columns: 3.6rem minmax(0, 2fr) minmax(0, 3fr) 2rem; }
  .shares td { min-width: 2.4rem; padding: 0 .2rem; }
  .shares tbody th { max-width: 8rem; } .shares { font-size: .8rem; } }
@media print { .findings li, .bars li { break-inside: avoid; } }
"""

STYLE = SHARED + _OWN
