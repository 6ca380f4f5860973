"""Texts that are compared with files; UPDATE_SNAPSHOTS=1 writes the files anew."""

import os


def check_snapshot(path, text):
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
