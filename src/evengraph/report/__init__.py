"""Pages, tables and figures of results."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evengraph.report.run_page import render_page, write_page

__all__ = ["render_page", "write_page"]

if not TYPE_CHECKING:  # on first use: commands that draw no page need not import it

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from evengraph.report import run_page as page

        return getattr(page, name)
