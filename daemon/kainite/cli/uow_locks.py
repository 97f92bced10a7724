"""``kainite uow locks``: which sessions hold the locks that the apply job waits for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kainite.base.errors import SettingsError
from kainite.cli.options import properties_option, target_option
from kainite.cli.terminal import say, say_json
from kainite.settings import load
from kainite.settings.targets import of_target
from kainite.targets.lock_waits import LockHolder, LockWait, read_lock_waits


@click.command("locks")
@properties_option
@target_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def locks(properties: Path, target: str | None, as_json: bool) -> None:
    """Shows which sessions in the target hold the locks that the apply job waits for now.

    The target is asked: PostgreSQL, MariaDB or MySQL. On MariaDB and MySQL the role needs the privilege PROCESS, on
    MySQL also SELECT on performance_schema.data_lock_waits. Statements are shown without their values, and those of
    other roles only where the target's role may see them (pg_read_all_stats).

    \b
    Examples:
      kainite uow locks -p app.properties
      kainite uow locks -p app.properties --json
    """
    settings = of_target(load(properties, needs=("applicationName",)), target)
    if settings.apply.target is None:
        raise SettingsError("there is no target to ask: set target")
    found = read_lock_waits(settings.apply.target)
    if as_json:
        for wait in found:
            say_json(asdict(wait))
    elif not found:
        say("the apply job waits for no lock")
    else:
        for wait in found:
            say(_shown(wait))


def _shown(wait: LockWait) -> str:
    first = f"session {wait.pid} of the apply job waits for {wait.seconds:.0f} s: {wait.statement}"
    return "\n".join([first, *(f"  behind {_holder(holder)}" for holder in wait.holders)])


def _holder(holder: LockHolder) -> str:
    parts = [f"session {holder.pid} ({holder.who})"]
    if holder.state is not None:
        parts.append(holder.state)
    if holder.seconds is not None:
        parts.append(f"its transaction is {holder.seconds:.0f} s old")
    if holder.statement is not None:
        parts.append(f"last: {holder.statement}")
    return ", ".join(parts)
