"""The command line: one file per command, which parses, calls one function and prints.

Torch and PyG take seconds to import, so each command imports what it needs when it runs.
"""

from typing import TYPE_CHECKING

from evengraph.core.lazy import lazy

if TYPE_CHECKING:
    from evengraph.cli.commands import app as app
    from evengraph.cli.commands import main as main
else:
    __getattr__, __dir__ = lazy(__name__, {"commands": ("app", "main")})
