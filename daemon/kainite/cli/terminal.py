"""The terminal, for commands that print tables."""

from __future__ import annotations

import sys

from rich.console import Console

WIDTH_OF_A_FILE = 200


def stdout() -> Console:
    """Returns standard output: coloured in a terminal; plain, and wide enough for a table, in a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE, highlight=False)
