"""Runs LocalStack on this machine without Docker: ``python -m localstack.host --help``, from the repository's root."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from localstack.install import SetUpError, cache_folder, install
from localstack.instance import Instance

_NAME = click.option(
    "--name", default="default", show_default=True, help="The instance's name; each has its own state."
)


@click.group()
def main() -> None:
    """Runs LocalStack without Docker."""


@main.command()
@_NAME
@click.option("--port", default=4566, show_default=True, type=click.IntRange(0, 65535), help="0 for any free one.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A configuration variable of LocalStack's."
)
def start(name: str, port: int, settings: Sequence[str]) -> None:
    """Starts an instance, or finds it running, and prints its endpoint.

    Returns when the instance is healthy. The first start installs LocalStack into the user's cache folder
    (KAINITE_LOCALSTACK_CACHE names another). It exits with 1 where something is missing, and says what.

    \b
    Examples:
      python -m localstack.host start
      python -m localstack.host start --name throttled --port 0 --set KINESIS_ERROR_PROBABILITY=0.2
    """
    variables = dict(_variable(setting) for setting in settings)
    cache = cache_folder()
    with _errors_in_a_line():
        installed = install(cache, _say)
        click.echo(Instance(cache / "run" / name).start(installed, port, variables, _say))


@main.command()
@_NAME
def stop(name: str) -> None:
    """Stops an instance and removes its state."""
    with _errors_in_a_line():
        ran = Instance(cache_folder() / "run" / name).stop()
    _say("LocalStack is stopped" if ran else "no LocalStack ran")


def _variable(setting: str) -> tuple[str, str]:
    name, sign, value = setting.partition("=")
    if not sign:
        raise click.BadParameter(f"{setting} is not NAME=VALUE", param_hint="--set")
    return name, value


@contextmanager
def _errors_in_a_line() -> Iterator[None]:
    try:
        yield
    except SetUpError as error:
        sys.exit(f"kainite: {error}")


def _say(text: str) -> None:
    click.echo(f"kainite: {text}", err=True)


if __name__ == "__main__":
    main()
