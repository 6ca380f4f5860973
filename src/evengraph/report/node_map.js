(() => {
  for (const figure of document.querySelectorAll(".node-map")) {
    const frame = figure.querySelector(".frame"), picture = figure.querySelector(".map");
    const inner = picture.querySelector(".nodes"), tip = figure.querySelector(".tip");
    const dots = [...inner.querySelectorAll("circle")].map((dot) => {
      const title = dot.querySelector("title"), text = title.textContent;
      title.remove();
      return { dot, text, x: parseFloat(dot.getAttribute("cx")) / 100,
        y: parseFloat(dot.getAttribute("cy")) / 100 };
    });
    const view = { x: 0, y: 0, scale: 1 };
    const draw = () => {
      const most = 1 - 1 / view.scale;
      view.x = Math.min(Math.max(view.x, 0), most);
      view.y = Math.min(Math.max(view.y, 0), most);
      for (const side of ["width", "height"]) inner.setAttribute(side, `${100 * view.scale}%`);
      for (const axis of ["x", "y"]) inner.setAttribute(axis, `${-100 * view[axis] * view.scale}%`);
      frame.classList.toggle("zoomed", view.scale > 1);
      tip.hidden = true;
    };
    const zoom = (factor, x = 0.5, y = 0.5) => {
      const scale = Math.min(Math.max(view.scale * factor, 1), 20);
      view.x += x / view.scale - x / scale;
      view.y += y / view.scale - y / scale;
      view.scale = scale;
      draw();
    };
    const reset = () => { Object.assign(view, { x: 0, y: 0, scale: 1 }); draw(); };
    const place = (event) => {
      const box = picture.getBoundingClientRect();
      return { box, x: (event.clientX - box.left) / box.width,
        y: (event.clientY - box.top) / box.height };
    };
    let marked = null;
    const unmark = () => {
      marked?.classList.remove("near");
      marked = null;
      tip.hidden = true;
    };
    const show = (event) => {
      const { box, x, y } = place(event);
      let best = null, least = 14;
      for (const one of dots) {
        const dx = ((one.x - view.x) * view.scale - x) * box.width;
        const dy = ((one.y - view.y) * view.scale - y) * box.height;
        const distance = Math.hypot(dx, dy);
        if (distance < least) [best, least] = [one, distance];
      }
      unmark();
      if (!best) return;
      marked = best.dot;
      marked.classList.add("near");
      tip.textContent = best.text;
      tip.hidden = false;
      const left = (best.x - view.x) * view.scale * box.width;
      const top = (best.y - view.y) * view.scale * box.height;
      tip.style.left = `${Math.min(Math.max(left + 12, 0), box.width - tip.offsetWidth)}px`;
      tip.style.top = `${Math.max(top - tip.offsetHeight - 8, 0)}px`;
    };
    let drag = null;
    frame.addEventListener("pointerdown", (event) => {
      show(event);
      if (view.scale > 1) {
        drag = { ...place(event), view: { ...view } };
        frame.setPointerCapture(event.pointerId);
      }
    });
    frame.addEventListener("pointermove", (event) => {
      if (!drag) return show(event);
      const { x, y } = place(event);
      view.x = drag.view.x - (x - drag.x) / view.scale;
      view.y = drag.view.y - (y - drag.y) / view.scale;
      draw();
    });
    for (const end of ["pointerup", "pointercancel"])
      frame.addEventListener(end, () => { drag = null; });
    frame.addEventListener("pointerleave", unmark);
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== frame) return;
      event.preventDefault();
      const { x, y } = place(event);
      zoom(event.deltaY < 0 ? 1.25 : 0.8, x, y);
    }, { passive: false });
    const keys = {
      "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": reset,
      ArrowLeft: () => { view.x -= 0.15 / view.scale; draw(); },
      ArrowRight: () => { view.x += 0.15 / view.scale; draw(); },
      ArrowUp: () => { view.y -= 0.15 / view.scale; draw(); },
      ArrowDown: () => { view.y += 0.15 / view.scale; draw(); },
    };
    frame.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      const idle = view.scale === 1 && event.key.startsWith("Arrow");
      if (!act || idle || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      act();
    });
    const press = (buttons, chosen) => buttons.forEach((other) =>
      other.setAttribute("aria-pressed", String(other === chosen)));
    const colours = [...figure.querySelectorAll(".switch [data-colours]")];
    const legend = figure.querySelector(".classes");
    const classes = [...legend.querySelectorAll("button")];
    colours.forEach((button) => button.addEventListener("click", () => {
      picture.dataset.colours = button.dataset.colours;
      legend.hidden = button.dataset.colours === "cluster";
      press(colours, button);
    }));
    classes.forEach((button) => button.addEventListener("click", () => {
      const chosen = button.ariaPressed === "true" ? null : button;
      press(classes, chosen);
      picture.classList.toggle("chosen", chosen !== null);
      for (const { dot } of dots)
        dot.classList.toggle("on", dot.dataset.class === chosen?.dataset.class);
    }));
    const acts = { in: () => zoom(1.5), out: () => zoom(1 / 1.5), all: reset };
    figure.querySelectorAll("[data-zoom]").forEach((button) =>
      button.addEventListener("click", acts[button.dataset.zoom]));
    figure.querySelector(".switch").hidden = false;
  }
})();
