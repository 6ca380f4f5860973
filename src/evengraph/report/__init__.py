"""Pages, tables and figures of results."""

from evengraph.report.run.page import render_page, write_page

__all__ = ["render_page", "write_page"]
