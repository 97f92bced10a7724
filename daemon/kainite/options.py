"""Command-line options that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)


def properties_option(function: F) -> F:
    """``-p FILE``: the settings file, given to the command as ``properties``."""
    return click.option(
        "-p", "--properties-file", "properties", type=_FILE, required=True, metavar="FILE", help="The settings file."
    )(function)


def properties_anywhere(function: F) -> F:
    """The settings file as KCL's command line takes it: ``-p FILE`` or ``FILE``; see :func:`one_file`."""
    option = click.option("-p", "--properties-file", "option", type=_FILE, metavar="FILE", help="The settings file.")
    return click.argument("positional", type=_FILE, required=False, metavar="[FILE]")(option(function))


def one_file(option: Path | None, positional: Path | None) -> Path:
    """The one file that was named.

    Raises:
        click.UsageError: none was, or two.
    """
    named = [path for path in (option, positional) if path is not None]
    if len(named) != 1:
        raise click.UsageError("name one settings file: -p FILE" if not named else "two settings files are named")
    return named[0]
