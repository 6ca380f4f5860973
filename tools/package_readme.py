"""The README of the package: that of the repository, as a package index can show it.

An index has neither the images of the repository nor the targets of its relative links. Images and
the section that lists the documentation are left out, and other relative links become plain text.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


def package_readme(text: str) -> str:
    """Return Markdown without images, comments and relative links."""
    text = re.sub(r"## Documentation\n.*?(?=^MIT licence)", "", text, flags=re.S | re.M)
    text = re.sub(r"<p[^>]*><img[^>]*></p>\n*|<img[^>]*> ?|<!--.*?-->\n?", "", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\) ?", "", text)
    return re.sub(r"\n{3,}", "\n\n", LINK.sub(r"\1", text)).lstrip()


class CustomMetadataHook(MetadataHookInterface):
    """Fills `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read the README of the repository."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        content = {"content-type": "text/markdown", "text": package_readme(text)}
        metadata["readme"] = content
