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
          return wanted.split(/\s+/).every((w) =>
            `${row.textContent} ${row.dataset.setting}`.toLowerCase().includes(w));
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
  const buttons = [...document.querySelectorAll("[data-highlight]")];
  let chosen = null;
  const mark = (name) => lines.forEach((line) =>
    line.classList.toggle("marked", name !== null && line.dataset.method === name));
  const choose = (name) => {
    chosen = chosen === name ? null : name;
    buttons.forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.highlight === chosen)));
    mark(chosen);
  };
  const row = (event) => event.target.closest && event.target.closest("[data-method]");
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse") mark(row(event)?.dataset.method ?? chosen);
  });
  document.addEventListener("click", (event) => {
    const line = row(event);
    if (line) choose(line.dataset.method);
  });
  buttons.forEach((button) =>
    button.addEventListener("click", () => choose(button.dataset.highlight)));
  document.querySelectorAll(".highlights").forEach((one) => { one.hidden = false; });
})();
