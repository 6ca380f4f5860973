"""Load the page from disk in a real browser, where one is installed."""

import json
import re
import subprocess

import pytest
from chromium import BROWSER

from evengraph.report import write_page

WIDTHS = (390, 1440)

# frames of a given width, since a headless window cannot be made as narrow as a telephone
# and how far tables stick out of their boxes
WRAPPER = """<!doctype html><body>{frames}<pre id="found"></pre><script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map((frame) => {{
    const root = frame.contentDocument.documentElement;
    const boxes = [...root.querySelectorAll("[aria-label='Results per seed']")];
    const over = boxes.map((one) => one.scrollWidth - one.clientWidth);
    return [root.clientWidth, root.scrollWidth, root.querySelectorAll("h1").length, over];
  }});
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome found")
def test_nothing_overflows_sideways(make, of_two, tmp_path):
    long_name = "Averylongnamewithoutanyspace" * 6
    write_page(make([long_name, "b", "c"], classes=3, rare=1, epochs=600), tmp_path / "few.html")
    write_page(make(classes=40, rare=20, epochs=600), tmp_path / "many.html")
    write_page(of_two, tmp_path / "two.html")
    frames = "".join(
        f'<iframe src="{name}.html" style="border:0;width:{width}px;height:900px"></iframe>'
        for name in ("few", "many", "two")
        for width in WIDTHS
    )
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(WRAPPER.format(frames=frames), encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
        "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom", wrapper.as_uri(),
    ]  # fmt: skip
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', dumped)
    assert found is not None
    measured = json.loads(found.group(1))
    assert [one[:3] for one in measured] == [
        [width, width, 1] for _ in range(3) for width in WIDTHS
    ]
    assert [one[3] for one in measured if one[0] == max(WIDTHS)] == [[0]] * 3
