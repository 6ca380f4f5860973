"""Make the pictures of the docs from stored runs: `python docs/pictures.py` (needs Chromium).

`report.png` is the top of the report of `results/accounts-run.json`, and `report-dark.png` the same
for dark pages. The digest of the report is stored beside them, so that a test notices when it has
changed and the pictures have not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

from evengraph.report.run_page import write_page

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "results" / "accounts-run.json"
PICTURES = {False: ROOT / "docs" / "report.png", True: ROOT / "docs" / "report-dark.png"}
DIGEST = ROOT / "docs" / "report.digest"
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


def main() -> int:
    """Take the pictures, and store the digest of the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from chromium import Chromium

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
