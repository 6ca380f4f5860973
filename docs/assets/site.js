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

/* The theme gives its search the role of a dialog, but no name. It calls every button to copy, and
   every folded part of the navigation, a landmark; and what scrolls cannot be reached by keys. */
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
for (const part of document.querySelectorAll(".md-nav .md-nav[aria-labelledby]")) {
  const title = part.querySelector(".md-nav__title")?.textContent.trim();
  if (!title) continue;
  part.setAttribute("aria-label", title);
  part.removeAttribute("aria-labelledby");
}
const reach = () => {
  for (const box of document.querySelectorAll(".md-code__nav")) box.role = "none";
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .notebook-output, pre > code")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
new MutationObserver(reach).observe(document.querySelector(".md-content"), { childList: true, subtree: true });
addEventListener("load", reach);
addEventListener("resize", reach);
