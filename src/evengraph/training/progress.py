"""Progress of training: live bars on terminals, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from evengraph.core.terminal import make_console
from evengraph.training import Callback, History

LONGEST = 17  # characters of the name of a stage
LINE_EVERY = 5.0  # seconds
BAR, TIME = 20, 9  # characters of a bar, and of the time with a space on both sides


@contextmanager
def epoch_bar(title: str, visible: bool | None = None) -> Iterator[Callback | None]:
    """Yield a callback that draws a progress bar, or None if nothing is to be drawn.

    The bar fills as patience or the epochs run out, whichever comes first; a better score resets
    patience. On the right is the number of epochs left if nothing improves. A stage with a name is
    named after the title. By default it is drawn only on a terminal.
    """
    if not _is_visible(visible):
        yield None
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.fields[facts]}"), TimeElapsedColumn()
    with _progress(columns, refresh_per_second=8) as progress:
        bar = progress.add_task(title, total=None, visible=False, facts="")

        def show(history: History) -> None:
            patience, max_epochs = history.patience, history.max_epochs
            waited = history.epochs - history.first_best_epoch
            left = max(min(patience - waited, max_epochs - history.epochs), 0)
            name = f"{title}, {short}" if (short := _short(history.stage)) else title
            progress.update(
                bar,
                visible=True,
                description=name,
                total=min(patience, max_epochs),
                completed=min(patience, max_epochs) - left,
                facts=_facts(history, left, room=progress.console.width - len(name)),
            )

        yield show


def _facts(history: History, left: int, room: int) -> str:
    """What stands between bar and time; of what has no room, the present score goes first.

    Args:
        history: Epochs until now.
        left: Epochs left if nothing improves.
        room: Characters beside the title.
    """
    facts = {
        "epoch": f"epoch {history.epochs:>4}",
        "score": f"val {100 * history.score[-1]:5.1f}",
        "best": f"[green]best {100 * history.best_score:.1f} at {history.best_epoch}[/]",
        "left": f"[dim]{left} left[/]",
    }
    markup = {"best": len("[green][/]"), "left": len("[dim][/]")}
    for name in ("score", "left", "best"):
        length = sum(len(text) - markup.get(key, 0) + 1 for key, text in facts.items())
        if length <= room - BAR - TIME:
            break
        del facts[name]
    return " ".join(facts.values())


def epoch_lines(title: str, write: Callable[[str], None]) -> Callback:
    """A callback that writes a line about the epochs every few seconds, for a log."""
    started = latest = monotonic()

    def show(history: History) -> None:
        nonlocal latest
        now = monotonic()
        if now - latest < LINE_EVERY:
            return
        latest = now
        name = f"{title}, {history.stage}" if history.stage else title
        write(
            f"{name}: epoch {history.epochs}, val {100 * history.score[-1]:.1f}, best "
            f"{100 * history.best_score:.1f} at {history.best_epoch}, {now - started:.0f} s"
        )

    return show


def _short(stage: str) -> str:
    """The beginning of the name of a stage: a terminal has 80 columns."""
    return stage[:LONGEST].rstrip()


@contextmanager
def count_bar(title: str, total: int, visible: bool | None = None) -> Iterator[Callable[[], None]]:
    """Yield a function to call once per finished item; a progress bar counts them."""
    if not _is_visible(visible):
        yield lambda: None
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    left = TextColumn("[dim]left"), TimeRemainingColumn()
    with _progress((MofNCompleteColumn(), TimeElapsedColumn(), *left), 4) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def _is_visible(visible: bool | None) -> bool:
    return sys.stderr.isatty() if visible is None else visible


def _progress(columns: tuple[Any, ...], refresh_per_second: int) -> Any:
    """A bar with a title and further columns. Only drawing needs Rich, which is optional."""
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=BAR),
        *columns,
        console=make_console(stderr=True),
        transient=True,
        refresh_per_second=refresh_per_second,
    )
