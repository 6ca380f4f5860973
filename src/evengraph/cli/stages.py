"""Progress of work on graphs on disk: a line per stage, and one every few seconds."""

from __future__ import annotations

from time import monotonic

from rich.markup import escape

from evengraph.cli.console import err

LINE_EVERY = 5.0  # seconds


class StageLines:
    """Prints how far a stage is every few seconds, and how long it took when it is done."""

    def __init__(self) -> None:
        self.stage, self.started, self.printed = "", 0.0, 0.0

    def __call__(self, stage: str, share: float) -> None:
        """See `Progress`."""
        now = monotonic()
        if stage != self.stage:
            self.stage, self.started, self.printed = stage, now, now
        seconds = now - self.started
        if share >= 1:
            self._print(f"{stage}: done in {seconds:.0f} s")
            self.stage = ""
        elif now - self.printed >= LINE_EVERY:
            self.printed = now
            self._print(f"{stage}: {share:.0%}, {seconds:.0f} s")

    def _print(self, line: str) -> None:
        err.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
