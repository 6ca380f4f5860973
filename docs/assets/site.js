/* A figure opens in its full size by a click, Enter or Space; Escape or another click closes it. */
const enlarge = (picture) => {
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", picture.alt || "Figure");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  const large = document.createElement("img");
  large.src = picture.src;
  large.alt = picture.alt;
  const scroll = document.createElement("div");
  scroll.tabIndex = 0;
  scroll.append(large);
  dialog.append(close, scroll);
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => { dialog.remove(); picture.parentElement.focus(); });
  document.body.append(dialog);
  dialog.showModal();
};

for (const picture of document.querySelectorAll(".md-content p img:not(.badge)")) {
  if (picture.closest("a")) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "figure";
  button.title = "Enlarge";
  picture.replaceWith(button);
  button.append(picture);
  button.addEventListener("click", () => enlarge(picture));
}

/* The theme gives its search the role of a dialog, but no name. */
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
