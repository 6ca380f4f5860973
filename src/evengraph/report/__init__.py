"""What a finished run looks like: one self-contained HTML page."""

from evengraph.report.run.page import render_page, write_page

__all__ = ["render_page", "write_page"]
