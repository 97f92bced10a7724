"""``kainite log skip``."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.base.errors import LogRequestError
from kainite.cli.inbox import leave, take_answer
from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option
from kainite.cli.terminal import say
from kainite.owner.requests import OK
from kainite.settings import load
from kainite.uow.delta import MAX_NATURAL


@click.command("skip")
@properties_option
@click.argument("number", type=click.IntRange(0, MAX_NATURAL))
@click.option("--timeout", default=10.0, show_default=True, metavar="SECONDS", help="How long to wait for the answer.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def skip(properties: Path, number: int, timeout: float, yes: bool) -> None:
    """Gives up the numbers that are awaited up to NUMBER (uowOrder=dense): the units behind them go.

    One failed unit, missing:N-M, stands for them in the log, with the name of who asked. A unit that still comes with
    one of them fails, and can be retried.

    \b
    Example:
      kainite log skip -p app.properties 17
    """
    store, partition = opened_log(load(properties, needs=("applicationName",)))
    if not yes:
        click.confirm(f"No longer wait for units with numbers up to {number}?", abort=True)
    asked = leave(store, partition, f"number {number}", {"action": "skip", "number": str(number)})
    answer = take_answer(store, partition, asked, 0, timeout)
    if answer["result"] != OK:
        raise LogRequestError(answer["message"])
    say(answer["message"])
