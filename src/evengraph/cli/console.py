"""What commands print on: consoles, errors, notes, help; of several processes the first prints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from shlex import join, quote
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from evengraph.cli.options import ADVANCED, BENCHMARKS, EVERYDAY, FLAGS, GENERAL, PANELS
from evengraph.core.errors import ArgumentError
from evengraph.core.text import make_console

if TYPE_CHECKING:
    from evengraph.training.ranks import Ranks

out: Console = make_console(highlight=False, emoji=False)
err: Console = make_console(stderr=True, highlight=False, emoji=False)


def print_sentence(markup: str, console: Console = out) -> None:
    """Print a sentence: on a terminal broken between words, in a file as one line."""
    console.print(markup, soft_wrap=not console.is_terminal)


def print_notes(notes: Iterable[str], console: Console = out) -> None:
    """Print sentences of less importance, one per line."""
    for note in notes:
        text = escape(note)
        print_sentence(text if note.startswith("Warning: ") else f"[dim]{text}[/]", console)


def print_written(*paths: Path, console: Console = out) -> None:
    """Print the paths of files that were written."""
    for path in paths:
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)


def print_error(error: Exception, prefix: str = "") -> None:
    """Print an error in one line, with the option that fixes it."""
    hint = ""
    if isinstance(error, ArgumentError):
        flag = FLAGS.get(error.argument, f"--{error.argument}")
        hint = f" Option: {flag} {quote(error.value) if error.value else ''}"
    kind = "Out of memory" if isinstance(error, MemoryError) else type(error).__name__
    message = str(error).strip() or f"{kind}."  # Python leaves some empty, and some without a file
    if isinstance(error, OSError) and error.filename and error.strerror:
        message = f"{error.filename}: {error.strerror}."
    message = message.replace("\n", "\\n")  # a path may hold a newline
    print_sentence(f"[red]Error:[/] {escape(prefix + message + hint.rstrip())}", err)


LINE_EVERY = 5.0  # seconds


class StageLines:
    """Prints each stage; where its share is known, every few seconds, and how long it took."""

    def __init__(self) -> None:
        self.stage, self.started, self.printed = "", 0.0, 0.0

    def __call__(self, stage: str, share: float | None) -> None:
        """Take the share of a stage that is done; None for one that has begun."""
        now = monotonic()
        if stage != self.stage:
            self.stage, self.started, self.printed = stage, now, now
        seconds = f"{now - self.started:.0f} s"
        if share is None:
            print_notes([stage], err)
        elif share >= 1:
            print_notes([f"{stage}: done in {seconds}"], err)
            self.stage = ""
        elif now - self.printed >= LINE_EVERY:
            self.printed = now
            print_notes([f"{stage}: {share:.0%}, {seconds}"], err)


_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def remember(arguments: Sequence[str]) -> None:
    _ARGUMENTS.set(tuple(arguments))


def typed_command(*more: str) -> str:
    """The command that is running, with other words at its end, quoted so that it can be pasted."""
    return join(["evengraph", *_ARGUMENTS.get(), *more])


def words_without(*options: str) -> list[str]:
    """The words of the command that is running, without some options and their values."""
    words, rest = list[str](), iter(_ARGUMENTS.get())
    for word in rest:
        if word in options:
            next(rest, None)
        elif word.partition("=")[0] not in options:
            words.append(word)
    return words


MANY = 12  # options of a command whose help is in parts


class _PlainFlags:
    """Flags without a value: some versions of typer write `--help <bool>`."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters in the order of the help, everyday ones first; flags have no value."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        many = len(params) > MANY

        def place(param: Any) -> tuple[int, int]:
            known = [EVERYDAY.index(name) for name in param.opts if name in EVERYDAY]
            if many and param.param_type_name == "option":
                panel = getattr(param, "rich_help_panel", None)
                if not known and panel != BENCHMARKS:
                    panel = ADVANCED
                param.rich_help_panel = panel or GENERAL
            return PANELS.index(getattr(param, "rich_help_panel", None)), min(
                known, default=len(EVERYDAY)
            )

        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":
                param.metavar = param.metavar or param.name.upper()
        return sorted(params, key=place)


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """Several commands."""


_CURRENT: ContextVar[tuple[Ranks, Path] | None] = ContextVar("ranks", default=None)


@contextmanager
def launched_ranks(arguments: Sequence[str]) -> Iterator[None]:
    """Join the processes that torchrun has started; the others but the first print nothing."""
    if os.environ.get("WORLD_SIZE", "1") == "1":  # torch is not imported
        yield
        return
    from evengraph.training.ranks import joined_ranks

    with TemporaryDirectory() as scratch, joined_ranks() as ranks:
        if not ranks.is_alone and [*arguments, ""][0] not in ("run", "predict"):
            raise ValueError("Several processes are for run and predict; start others only once.")
        out.quiet = err.quiet = ranks.rank > 0
        _CURRENT.set((ranks, Path(scratch)))
        yield


def current_ranks() -> Ranks:
    from evengraph.training.ranks import ALONE

    current = _CURRENT.get()
    return ALONE if current is None else current[0]


def own_folder(folder: Path, name: str) -> Path:
    """Where this process writes to: for all but the first a folder that is removed at the end."""
    current = _CURRENT.get()
    return folder if current is None or current[0].rank == 0 else current[1] / name


def speaks_for_all(error: Exception) -> bool:
    """Whether this process is the one to print an error that others may have as well."""
    current = _CURRENT.get()
    if current and (store := current[0].store):
        with suppress(RuntimeError):  # the process that holds the store may be gone
            if int(store.add(f"{type(error).__name__}: {error}", 1)) > 1:
                return False
    err.quiet = False
    return True
