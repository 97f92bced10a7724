"""Carries an operation out that a command stands for, and says what has become of it."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.base.errors import LogRequestError
from kainite.cli.terminal import say
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import TIMEOUT_S, Operations
from kainite.operations.inbox import this_person
from kainite.operations.operation import OwnersOperation
from kainite.settings import load

timeout_option = click.option(
    "--timeout", default=TIMEOUT_S, show_default=True, metavar="SECONDS", help="How long to wait for the answer."
)


def carry_out(properties: Path, operation: OwnersOperation, why: str, timeout: float) -> None:
    """Has the log's owner carry an operation out, and says what it has answered.

    Raises:
        LogRequestError: it was refused.
        LogUnavailableError: no answer came in time.
    """
    operations = Operations(load(properties, needs=("applicationName",)))
    outcome = operations.carry_out(operation, this_person(), why, timeout=timeout)
    if outcome.result is OperationResult.REFUSED:
        raise LogRequestError(outcome.sentence)
    say(outcome.sentence)
