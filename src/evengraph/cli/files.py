"""Files that commands write: checks before, and a line for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.markup import escape


def written(path: Path) -> str:
    """The line to print for a file that is about to be written."""
    return f"{'replaced' if path.exists() else 'wrote'} {escape(str(path))}"


def check_folder(folder: Path) -> None:
    """Check that a folder can be written to, before hours of training.

    Missing folders are created and removed again, so that a run that fails leaves none behind.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".evengraph-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"Cannot write to {folder}: {error.strerror}.") from None
    finally:
        with suppress(OSError):  # another process may have put something there
            for path in missing:
                path.rmdir()


class LateErrors:
    """Errors of files that are raised once everything else has been written."""

    def __init__(self) -> None:
        self.errors: list[OSError] = []

    @contextmanager
    def later(self) -> Iterator[None]:
        """Put off an error in this block."""
        try:
            yield
        except OSError as error:
            self.errors.append(error)

    def throw(self) -> None:
        """Raise the first error, if there was one."""
        if self.errors:
            raise self.errors[0]
