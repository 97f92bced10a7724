"""The only ways of a command to standard output and standard error.

What is printed comes from outside in part: names of tables, causes of failures, output of children. So every way hides
secrets (:mod:`kainite.base.redaction`) and shows control characters as escapes (:mod:`kainite.base.display`). A test
looks that no command writes past this module.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import orjson

from kainite.base import display
from kainite.base.redaction import redacted, redacted_tree, without_known

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_FILE = 200


def stdout() -> Console:
    """Returns standard output: coloured in a terminal; plain, and wide enough for a table, in a file or a pipe."""
    from kainite.cli.harmless_console import (
        HarmlessConsole,  # rich takes time to import, and most texts need none of it
    )

    return HarmlessConsole(width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE, highlight=False)


def say(text: str, *, err: bool = False) -> None:
    """Prints a text and a line end, on standard output or standard error."""
    click.echo(display.lines(redacted(text)), err=err)


def say_rows(text: str) -> None:
    """Prints a text with values of rows and a line end on standard output: of secrets, it hides known ones only."""
    click.echo(display.lines(without_known(text)))


def say_json(value: Any, *, indent: bool = False) -> None:
    """Prints a value as JSON, on one line unless ``indent``."""
    click.echo(display.as_json(redacted_tree(value), orjson.OPT_INDENT_2 if indent else 0))
