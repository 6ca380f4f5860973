"""The console that everything is printed on: it acts upon no control character of a user's data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from evengraph.core.text import printable


def make_console(**options: Any) -> Any:
    """A console of Rich, which only printing needs, that prints foreign text as it is written."""
    return _console_type()(**options)


@cache
def _console_type() -> type[Any]:
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text

    class PrintableConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:  # before columns are measured
            return super().render_str(printable(text), **options)

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:  # of Rich itself, such as moving the cursor of a bar
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return PrintableConsole
