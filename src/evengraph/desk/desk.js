// Keys, forms that stay on the page until they are saved, and parts that are loaded later.
"use strict";

const say = (text) => { document.getElementById("said").textContent = text; };

async function load(source, selector = "body > *") {
  const answer = await fetch(source, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.status);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector(selector);
}

// Forms. The page changes only once the server has written the answer to disk.
let sending = false;
document.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sending) return;
  sending = true;
  const form = event.target;
  const button = event.submitter;
  const fields = new URLSearchParams(new FormData(form, button));
  const target = button?.getAttribute("formaction") || form.getAttribute("action");
  try {
    const answer = await fetch(target, {
      method: "POST", body: fields, headers: { Accept: "application/json" },
    });
    if (answer.status === 403) {
      throw new Error("the desk was started again; open the address that it printed");
    }
    if (!answer.ok) throw new Error(`the desk answered ${answer.status}`);
    location.assign((await answer.json()).next);
  } catch (error) {
    const lost = error instanceof TypeError;  // of fetch: no connection
    say(`Not saved: ${lost ? "the desk does not answer; is it running?" : error.message}`);
    sending = false;
  }
});

// Keys.
const find = (name, value) =>
  [...document.querySelectorAll(`[${name}]`)].find((one) => one.getAttribute(name) === value);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "ArrowRight") find("data-move", "next")?.click();
  else if (event.key === "ArrowLeft") history.back();
  else {
    const one = find("data-key", event.key.toLowerCase());
    if (!one) return;
    event.preventDefault();
    if (one.matches("input")) one.focus();
    else one.click();
  }
});

// Parts that take a moment.
for (const part of document.querySelectorAll("[data-source]")) {
  load(part.dataset.source).then((found) => part.replaceWith(found), () => {});
}

// The side and the list, whenever something changed: others' labels, a model that is ready.
async function watch() {
  const side = document.getElementById("side");
  if (!side) return;
  try {
    const found = await load("/side");
    const changed = found?.id === "side" && found.dataset.version !== side.dataset.version;
    if (changed) await renewList();
    if (changed && !side.contains(document.activeElement)) {  // nobody is typing there
      if (side.dataset.busy && !found.dataset.busy) say("A new model has ranked the queue.");
      side.replaceWith(found);
    }
  } catch {
    // the next attempt may succeed
  }
  setTimeout(watch, document.getElementById("side").dataset.busy ? 1500 : 6000);
}
setTimeout(watch, 1500);

async function renewList() {
  const list = document.querySelector("[data-list]");
  if (!list) return;
  const found = await load(list.dataset.list, "[data-list]");
  const link = list.contains(document.activeElement) && document.activeElement.pathname;
  if (!found) return;
  list.replaceWith(found);
  if (link) [...found.querySelectorAll("a")].find((one) => one.pathname === link)?.focus();
}
