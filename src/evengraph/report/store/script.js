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
          return wanted.split(/\s+/).every((w) => row.textContent.toLowerCase().includes(w));
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
