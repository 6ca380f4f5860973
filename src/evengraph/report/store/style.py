"""Style sheet and script of the page of experiments."""

from evengraph.report.page import STYLE as SHARED

_OWN = """
:root { --light: 38%; }
@media (prefers-color-scheme: dark) { :root { --light: 66%; } }
@media print { :root { --light: 38%; } }
.filters { display: flex; flex-wrap: wrap; gap: .75rem 1rem; margin-top: 1rem; }
.filters label { display: grid; grid-template-columns: minmax(0, 1fr); gap: .2rem;
  font-size: .85rem; color: var(--muted);
  min-width: 0; max-width: 100%; }
.filters select, .filters input { font: inherit; font-size: .95rem; color: var(--ink);
  background: var(--page); border: 1px solid var(--muted); border-radius: .45rem;
  padding: .4rem .6rem; min-height: 2.4rem; max-width: 100%; }
.filters select:focus-visible, .filters input:focus-visible, .sortable button:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px; }
.sortable { width: 100%; }
.sortable thead th { padding: 0; width: auto; }
.sortable button { all: unset; box-sizing: border-box; width: 100%; padding: .5rem .7rem;
  cursor: pointer; text-align: inherit; white-space: nowrap; color: var(--muted); }
.sortable button:hover { color: var(--ink); }
.sortable [aria-sort] button { color: var(--ink); font-weight: 600; }
.sortable [aria-sort=ascending] button::after { content: " \\2191"; }
.sortable [aria-sort=descending] button::after { content: " \\2193"; }
.sortable td:nth-child(1), .sortable th:nth-child(-n+2), .sortable td:nth-child(10),
.sortable th:nth-child(10) { text-align: left; }
main, header, footer { max-width: 84rem; }
.tall { max-height: 38rem; overflow-y: auto; }
.tall thead th { position: sticky; top: 0; z-index: 1; background: var(--surface); }
@media (max-width: 42rem) {
  .sortable :is(th, td):nth-child(4), .sortable :is(th, td):nth-child(5),
  .sortable :is(th, td):nth-child(n+7) { display: none; }
  .sortable tbody :is(th, td), .sortable button { padding-left: .3rem; padding-right: .3rem; }
  .sortable tbody :is(th, td):nth-child(-n+2) { white-space: normal; overflow-wrap: break-word; }
}
.sortable tbody th { position: static; padding: .5rem .7rem; font-weight: 500; }
.sortable tbody tr:hover { background: var(--page); }
.above { color: var(--colour-3); }
.below { color: var(--rare); }
h2, h3, summary, .facts { overflow-wrap: anywhere; }
.panels { grid-template-columns: repeat(auto-fill, minmax(min(23rem, 100%), 1fr)); }
.dots { list-style: none; margin: .5rem 0 0; padding: 0; font-size: .875rem; }
.dots li { display: grid; align-items: center; column-gap: .7rem;
  grid-template-columns: 8.6rem minmax(0, 1fr) 2.8rem; border-radius: .3rem; }
.dots .name { line-height: 1.15; overflow-wrap: anywhere; }
.dots .value { text-align: right; color: var(--muted); }
.dots .strong .value, .dots .strong .name { color: var(--ink); font-weight: 650; }
.dots .row { width: 100%; height: 22px; }
.dots .scale { width: 100%; height: 1.4rem; }
.dots .seed { stroke-opacity: .55; }
.dots .paper { stroke: var(--ink); stroke-width: 2; stroke-dasharray: none; }
.dots .strong circle.mean { fill: var(--rare); }
.dots .strong .whisker { stroke: var(--rare); }
.dots .marked { background: var(--band); }
.tick.middle { text-anchor: middle; }
.tick.end { text-anchor: end; }
.curves { height: 12rem; }
.curves .band { fill: var(--band); }
.curves .curve { stroke: var(--accent); stroke-width: 2; stroke-opacity: 1; }
.curves .point circle { fill: var(--accent); stroke: var(--surface); stroke-width: 1.5; }
.curves .point:hover circle { fill: var(--rare); }
.map { width: 100%; max-width: 44rem; height: min(34rem, 90vw); margin-top: .6rem; }
.map .train { stroke: var(--ink); stroke-width: 1.5; }
.map circle:hover { r: 6px; stroke: var(--ink); }
.panels.wide { grid-template-columns: minmax(0, 1fr); }
.switch { display: flex; gap: .5rem; margin-top: .4rem; }
.switch button { font: inherit; font-size: .85rem; color: var(--ink); background: var(--page);
  border: 1px solid var(--muted); border-radius: .45rem; padding: .3rem .7rem; cursor: pointer; }
.switch button[aria-pressed=true] { background: var(--band); border-color: var(--accent); }
[hidden] { display: none !important; }
@media print { .filters { display: none; } .sortable { font-size: .75rem; }
  .tall { max-height: none; overflow: visible; } .tall thead th { position: static; }
  .figures :is(th, td) { padding: .15rem !important; white-space: normal !important; }
  .figures { font-size: .7rem; } .sortable button { padding: 0; white-space: normal; }
  .switch { display: none; }
  h2, h3 { break-after: avoid; } }
"""

HUES = (210, 30, 130, 0, 275, 55, 190, 330, 90, 240)  # of the classes or clusters of a t-SNE plot

STYLE = (
    SHARED
    + _OWN
    + "".join(
        f"[data-colours=class] .k{n}, [data-colours=cluster] .m{n} "
        f"{{ fill: hsl({hue} 65% var(--light)); }}\n"
        for n, hue in enumerate(HUES)
    )
)

SCRIPT = """
(() => {
  const table = document.getElementById("all");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const filters = [...document.querySelectorAll("[data-filter]")];
  const count = document.getElementById("count");
  const value = (row, index) => {
    const cell = row.cells[index];
    const number = cell.dataset.value;
    return number === undefined ? cell.textContent : Number(number);
  };
  const order = (a, b) => {
    if (typeof a === typeof b)
      return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? 1 : -1;
  };
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const index = Number(button.dataset.column), head = heads[index];
    const numeric = rows.some((row) => row.cells[index].dataset.value !== undefined);
    const current = head.getAttribute("aria-sort");
    const next = current ? (current === "ascending" ? "descending" : "ascending")
      : numeric ? "descending" : "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const empty = (row) => numeric && row.cells[index].dataset.value === undefined;
    const sorted = [...rows].sort((a, b) => empty(a) - empty(b)
      || sign * order(value(a, index), value(b, index)));
    body.append(...sorted);
  });
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      const matches = filters.every((control) => {
        const wanted = control.value.trim().toLowerCase();
        if (!wanted) return true;
        if (control.dataset.filter === "text")
          return wanted.split(/\\s+/).every((w) => row.textContent.toLowerCase().includes(w));
        return row.dataset[control.dataset.filter].toLowerCase() === wanted;
      });
      row.hidden = !matches;
      shown += matches;
    }
    const all = rows.length;
    count.textContent = shown === all ? `${all} rows` : `${shown} of ${all} rows`;
  };
  filters.forEach((control) => control.addEventListener("input", filter));
  filter();
  const lines = [...document.querySelectorAll("[data-method]")];
  const mark = (event) => {
    const line = event.target.closest && event.target.closest("[data-method]");
    const name = line && line.dataset.method;
    lines.forEach((other) =>
      other.classList.toggle("marked", other.dataset.method === name));
  };
  document.addEventListener("pointerover", mark);
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".switch button");
    if (!button) return;
    const figure = button.closest("figure");
    figure.querySelector("svg").dataset.colours = button.dataset.colours;
    figure.querySelectorAll(".switch button").forEach((other) =>
      other.setAttribute("aria-pressed", String(other === button)));
  });
})();
"""
