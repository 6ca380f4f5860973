"""A live progress bar for training, on terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from evengraph.training import Callback, History


@contextmanager
def shown(title: str, wanted: bool | None = None) -> Iterator[Callback | None]:
    """A callback that draws a bar while the block runs, or None when nothing is to be drawn.

    The bar fills as patience or the epochs run out, whichever is nearer; a better score gives
    patience back. At its right stands how many epochs are left if nothing improves.
    """
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield None
        return
    # Rich is needed for drawing alone: the library itself works without it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("epoch {task.fields[epoch]:>5}"),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("val F1 {task.fields[score]:5.1f}"),
        TextColumn("[green]best {task.fields[best]:5.1f} at {task.fields[best_epoch]}"),
        TextColumn("[dim]stops in {task.fields[left]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, refresh_per_second=8) as progress:
        start: dict[str, Any] = {
            "epoch": 0,
            "loss": 0.0,
            "score": 0.0,
            "best": 0.0,
            "best_epoch": 0,
            "left": 0,
        }
        bar = progress.add_task(title, total=None, visible=False, **start)

        def show(history: History) -> None:
            patience, max_epochs = history.patience, history.max_epochs
            waited = history.epochs - history.first_best_epoch
            left = max(min(patience - waited, max_epochs - history.epochs), 0)
            progress.update(
                bar,
                visible=True,
                total=min(patience, max_epochs),
                completed=min(patience, max_epochs) - left,
                left=left,
                epoch=history.epochs,
                loss=history.loss[-1],
                score=100 * history.score[-1],
                best=100 * history.best_score,
                best_epoch=history.best_epoch,
            )

        yield show


@contextmanager
def counted(title: str, total: int, wanted: bool | None = None) -> Iterator[Callable[[], None]]:
    """A function to call once for each of several things done; a bar counts them."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, refresh_per_second=4) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)
