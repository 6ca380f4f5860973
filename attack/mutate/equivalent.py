"""Mutants that change nothing that can be seen: module, part of the name, and why."""

EQUIVALENT: list[tuple[str, str]] = []
