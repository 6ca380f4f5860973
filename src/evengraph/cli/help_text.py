"""Commands whose help shows no type beside a flag, which takes no value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, with flags that take no value."""
        return _without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """Several commands."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, with flags that take no value."""
        return _without_flag_types(super().get_params(ctx))


def _without_flag_types(params: list[Any]) -> list[Any]:
    """Some versions of typer write `--help <bool>`; an empty text stands for no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params
