"""``kainite log skip``."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.cli.log_control import carry_out, timeout_option
from kainite.cli.options import properties_option, why_option
from kainite.operations.operation import SkipNumbers
from kainite.uow.delta import MAX_NATURAL


@click.command("skip")
@properties_option
@click.argument("number", type=click.IntRange(0, MAX_NATURAL))
@timeout_option
@why_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def skip(properties: Path, number: int, timeout: float, why: str, yes: bool) -> None:
    """Gives up the numbers that are awaited up to NUMBER (uowOrder=dense): the units behind them go.

    One failed unit, missing:N-M, stands for them in the log, with the name of who asked. A unit that still comes with
    one of them fails, and can be retried.

    \b
    Example:
      kainite log skip -p app.properties 17
    """
    if not yes:
        click.confirm(f"No longer wait for units with numbers up to {number}?", abort=True)
    carry_out(properties, SkipNumbers(number), why, timeout)
