"""Make the pictures of the docs from stored runs: `python docs/pictures.py` (needs Chromium).

`report.png` is the top of the page of `results/shops-run.json`, and `report-dark.png` the same for
dark pages. The digest of the page is stored beside them, so that a test notices when the page has
changed and the pictures have not. `explain.svg` is drawn from `results/shops-explain.json`, what
the saved model of that run says about a shop.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

from evengraph.report.node_pictures import draw_explanation
from evengraph.report.run_page import write_page

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "results" / "shops-run.json"
PICTURES = {False: ROOT / "docs" / "report.png", True: ROOT / "docs" / "report-dark.png"}
DIGEST = ROOT / "docs" / "report.digest"
EXPLAINED = ROOT / "results" / "shops-explain.json"
EXPLANATION = ROOT / "docs" / "explain.svg"
NODES = ROOT / "examples" / "shops" / "nodes.csv"
WIDTH, HEIGHT = 1120, 1200  # pixels


def page(folder: Path) -> Path:
    """Write the page of the stored run."""
    path = folder / "report.html"
    write_page(json.loads(RUN.read_text(encoding="utf-8")), path)
    return path


def digest(path: Path) -> str:
    """Return a digest of what the page shows."""
    text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
    return hashlib.sha256(text.encode()).hexdigest()


def explanation() -> str:
    """Draw the stored explanation."""
    stored = json.loads(EXPLAINED.read_text(encoding="utf-8"))["explanation"]
    with NODES.open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    return draw_explanation(stored, ids)


def main() -> int:
    """Take the pictures, and store the digest of the page; draw the explanation."""
    sys.path.insert(0, str(ROOT / "tests"))
    from chromium import Chromium

    EXPLANATION.write_text(explanation(), encoding="utf-8")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        path = page(Path(name))
        browser = Chromium(Path(name) / "profile")
        for dark, picture in PICTURES.items():
            browser.open(path, width=WIDTH, height=HEIGHT, dark=dark)
            shot = browser.send("Page.captureScreenshot")["data"]
            picture.write_bytes(base64.b64decode(shot))
        browser.close()
        DIGEST.write_text(digest(path) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
