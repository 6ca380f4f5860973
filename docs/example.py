"""Run the commands of the five minutes as on a terminal of 80 columns, and keep what they print.

`python docs/example.py` writes `results/accounts.txt` (every command with its output),
`results/accounts-run.json` (the result of `run`) and `docs/explain.svg`. Pages quote parts of the
first, pictures are drawn from the others.
"""

from __future__ import annotations

import csv
import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPT = ROOT / "results" / "accounts.txt"
RESULT = ROOT / "results" / "accounts-run.json"
EXPLANATION = ROOT / "docs" / "explain.svg"
INSPECT = "inspect examples/accounts --label kind"
RUN = "run examples/accounts --label kind --drop status --cost-miss 10 --save model"
PREDICT = "predict model examples/next-month --known examples/accounts --top 20 --out scored.csv"
EXPLAIN = "explain model {} --new-nodes examples/next-month --out why.svg"

PAGES = [ROOT / "docs" / name for name in ("index.md", "start.md")]
# What follows `<!-- NAME -->` in a page: parts of the transcript, each from one text to another.
PARTS = {
    "inspect": (
        ("class      labelled", "same: neigh"),
        ("! Column 'status'", "\n! The smallest"),
        (" Neighbours share a class", "\n✓"),
    ),
    "found": (("Found ", "\nseed"),),
    "run": (("Found ", "\nclass "), ("chosen for", "\nseed 5  Ch"), ("seed 5  Ch", "\nseed 6")),
    "predict": (("  flagged: ", "\nThe threshold"), ("    id     p(f", "\n4  ")),
    "scored": (("id,class,probability", "\n\n"),),
    "explain": (
        ("%, flagged (from", "\nnight"),
        ("labelled node  class", "\n\n"),
        ("Check: ", "\nwrote"),
    ),
}


def excerpt(name: str, transcript: str) -> str:
    """Return the parts of a transcript that pages show under a name."""
    found = []
    for start, end in PARTS[name]:
        at = transcript.index(start)
        at = transcript.rfind("\n", 0, at) + 1
        found.append(transcript[at : transcript.index(end, at + len(start))].strip("\n"))
    return "\n...\n".join(found)


def filled(page: str, transcript: str) -> str:
    """Return a page with its excerpts as the transcript has them."""
    for name in PARTS:
        block = f"<!-- {name} -->\n```\n{excerpt(name, transcript)}\n```"
        page = re.sub(rf"<!-- {name} -->\n```\n.*?\n```", lambda _, b=block: b, page, flags=re.S)
    return page


def shown(command: str, folder: Path) -> str:
    """Run a command of evengraph; return what it prints on a terminal."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    words = [sys.executable, "-W", "ignore", "-m", "evengraph", *command.split()]
    process = subprocess.Popen(words, cwd=folder, stdout=theirs)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 4096):
            parts.append(part)
    except OSError:  # Linux ends a terminal with an error
        pass
    if process.wait():
        raise SystemExit(f"evengraph {command} ended with {process.returncode}.")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(parts).decode())
    lines = (line.rstrip() for line in text.replace("\r", "").strip("\n").splitlines())
    return "\n".join([f"$ evengraph {command}", *lines]) + "\n"


def main() -> None:
    """Run the commands and write their outputs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        parts = [shown(command, folder) for command in (INSPECT, RUN, PREDICT)]
        with (folder / "scored.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        lines = (folder / "scored.csv").read_text(encoding="utf-8").splitlines()
        parts.append("\n".join(["$ head -3 scored.csv", *lines[:3]]) + "\n")
        first = max(rows, key=lambda row: float(row["p_fraud"]))
        parts.append(shown(EXPLAIN.format(first["id"]), folder))
        TRANSCRIPT.write_text("\n".join(parts), encoding="utf-8")
        shutil.copy(folder / "why.svg", EXPLANATION)
        for page in PAGES:
            text = filled(page.read_text(encoding="utf-8"), "\n".join(parts))
            page.write_text(text, encoding="utf-8")
        (result,) = (folder / "runs").glob("*/result.json")
        shutil.copy(result, RESULT)


if __name__ == "__main__":
    main()
