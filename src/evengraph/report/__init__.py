"""Pages, tables and figures of results."""

from typing import TYPE_CHECKING

from evengraph.core.lazy import lazy

if TYPE_CHECKING:
    from evengraph.report.run_page import render_page as render_page
    from evengraph.report.run_page import write_page as write_page
else:
    __getattr__, __dir__ = lazy(__name__, {"run_page": ("render_page", "write_page")})
