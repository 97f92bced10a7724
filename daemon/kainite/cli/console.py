"""``kainite console``: serves the operator's pages."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.base.address import Address, parse_address
from kainite.cli.settings_warnings import tell_warnings
from kainite.cli.terminal import say, say_rows
from kainite.settings import Settings, load


class _ListenAddress(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    name = "HOST:PORT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return parse_address(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _add_user(context: click.Context, parameter: click.Parameter, name: str | None) -> None:
    if name is None:
        return
    from kainite.console.secrets import line_of

    secret = click.prompt(f"Secret of {name}", hide_input=True, confirmation_prompt=True, err=True)
    say_rows(line_of(name, secret))
    context.exit()


@click.command("console")
@click.option("-p", "--properties-file", "files", type=click.Path(dir_okay=False, path_type=Path), required=True,
              multiple=True, metavar="FILE", help="The settings file; several for several applications.")  # fmt: skip
@click.option("--listen", type=_ListenAddress(), metavar="HOST:PORT", help="In place of consoleListen.")
@click.option("--add-user", metavar="NAME", callback=_add_user, is_eager=True, expose_value=False,
              help="Ask for a secret, print a line for consoleUsersFile, and end.")  # fmt: skip
def console(files: tuple[Path, ...], listen: Address | None) -> None:
    """Serves pages that show what an application does, and let operators act.

    Reads the log, the lease table, the fleet's table and the daemons' /health while a page is open, and nothing while
    none is. On loopback nobody logs in; consoleOperators says who may act. Where and for whom it serves, the first file
    says. Ends with Ctrl-C.

    \b
    Examples:
      kainite console -p app.properties
      kainite console -p orders.properties -p billing.properties
      kainite console -p app.properties --listen 127.0.0.1:9000
      kainite console --add-user ada >> console-users
    """
    from kainite.console.serving import serve

    applications = [(_settings(file, listen), file) for file in files]
    tell_warnings(applications[0][0])
    serve(applications, lambda url: say(f"the console is at {url}"))


def _settings(file: Path, listen: Address | None) -> Settings:
    options = (f"--consoleListen={listen}",) if listen is not None else ()
    return load(file, options, needs=("applicationName",))
