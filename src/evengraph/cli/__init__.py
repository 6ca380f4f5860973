"""The command line: one file per command, which parses, calls one function and prints.

Torch and PyG take seconds to import, so each command imports what it needs when it runs.
"""

from evengraph.cli.commands import app, main

__all__ = ["app", "main"]
