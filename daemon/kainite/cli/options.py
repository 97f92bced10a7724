"""Command-line options that several commands have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)


def properties_option(function: F) -> F:
    """Adds ``-p FILE``: the settings file, given to the command as ``properties``."""
    return click.option(
        "-p", "--properties-file", "properties", type=_FILE, required=True, metavar="FILE", help="The settings file."
    )(function)


def target_option(function: F) -> F:
    """Adds ``--target NAME``, given to the command as ``target``: which of several targets it is about."""
    return click.option("--target", metavar="NAME", help="Of several targets (target.NAME) this one.")(function)


def why_option(function: F) -> F:
    """Adds ``--why TEXT``, given to the command as ``why``: it stands in the record of what was done."""
    return click.option(
        "--why", default="", metavar="TEXT", help="The reason, for the record: kainite log history shows it."
    )(function)


def settings_anywhere(function: F) -> F:
    """Adds ``-p FILE`` or ``FILE`` as for KCL, and each key as an option; see :func:`file_and_options`."""
    option = click.option("-p", "--properties-file", "option", type=_FILE, metavar="FILE", help="The settings file.")
    rest = click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[FILE] [--KEY VALUE]...")
    return rest(option(function))


def file_and_options(option: Path | None, rest: Sequence[str]) -> tuple[Path | None, tuple[str, ...]]:
    """Returns the file that was named, if any, and the settings on the command line.

    Raises:
        click.UsageError: two files were named; no file, option or variable gives a setting; an option is unknown, or
            lacks its value.
    """
    from kainite.base.errors import SettingsError
    from kainite.settings.loading.overrides import from_environment, from_options

    try:
        settings, positional = from_options(rest)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    named = [path for path in (option, *map(Path, positional)) if path is not None]
    if len(named) > 1:
        raise click.UsageError("two settings files are named")
    if not named and not settings and not from_environment(os.environ)[0]:
        raise click.UsageError("name one settings file: -p FILE")
    words = tuple(f"--{key}={given.text}" for key, given in settings.items())
    return (named[0] if named else None), words
