(() => {
  const select = (block) => {
    const range = document.createRange();
    range.selectNodeContents(block);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  const copy = async (block) => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      return true;
    } catch {
      select(block);
      return document.execCommand("copy");
    }
  };
  for (const button of document.querySelectorAll(".command button")) {
    const block = button.parentElement.querySelector("code"), name = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      button.textContent = await copy(block) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => { button.textContent = name; }, 2000);
    });
  }
})();
