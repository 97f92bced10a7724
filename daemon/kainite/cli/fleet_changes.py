"""What ``kainite fleet`` changes: the wishes of an operator."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from kainite.base.errors import FleetError
from kainite.cli.fleet_views import json_option
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say, say_json
from kainite.fleet.declared import RESTARTS, work_of
from kainite.fleet.model.records import DutyKind, Restart
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import this_person
from kainite.operations.operation import (
    AddDuty,
    ChangeDuty,
    DutyChange,
    FleetOperation,
    MoveDuty,
    Rebalance,
    RemoveDuty,
    SetDormancy,
    ShutDownWorker,
)
from kainite.settings import load

_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command("add")
@properties_option
@click.argument("name")
@click.option(
    "--kind", type=click.Choice([each.value for each in DutyKind]), default=DutyKind.PROGRAM.value, show_default=True
)
@click.option("--command", help="The command line of a program, quoted as in a shell.")
@click.option("--settings", "own", metavar="FILE", help="The settings file of the duty, as each worker finds it.")
@click.option("--weight", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--affinity", multiple=True, metavar="WORKER|LABEL", help="Where it had better run.")
@click.option(
    "--restart", type=click.Choice([each.value for each in RESTARTS]), default=Restart.ALWAYS.value, show_default=True
)
@click.option("--ready", metavar="TEXT", help="It runs when a line of its output has this text.")
@click.option(
    "--set",
    "more",
    multiple=True,
    metavar="KEY=NUMBER",
    help="readyAfter, startTimeout, stopGrace, tries, ... (docs/fleet.md).",
)
@json_option
@why_option
def add(properties: Path, name: str, kind: str, command: str | None, own: str | None, weight: float,
        affinity: tuple[str, ...], restart: str, ready: str | None, more: tuple[str, ...],
        as_json: bool, why: str) -> None:  # fmt: skip
    """Adds a duty, which the fleet starts somewhere at once. Its command stands in the fleet's table: no secrets in it.

    \b
    Examples:
      kainite fleet add -p app.properties report --command "python /srv/report.py" --restart on-failure
      kainite fleet add -p app.properties slow --command /srv/slow --ready listening --set startTimeout=300
      kainite fleet add -p app.properties orders --kind extract --settings orders.properties --affinity source-host
    """
    given: dict[str, Any] = {"kind": kind, "weight": weight, "affinity": list(affinity), "restart": restart}
    given |= {"command": _words(command)} if command else {}
    given |= {"properties": own} if own else {}
    given |= {"ready": ready} if ready else {}
    given |= dict(map(_number, more))
    added = AddDuty(name, work_of(name, given))
    _change(properties, added, why, as_json=as_json, duty=name, done="added")


@click.command("remove")
@properties_option
@click.argument("name")
@_yes
@json_option
@why_option
def remove(properties: Path, name: str, yes: bool, as_json: bool, why: str) -> None:
    """Removes a duty that does not run.

    A duty that the settings declare is taken out there first, at all hosts: the next leader whose settings have it
    brings it back.

    \b
    Examples:
      kainite fleet remove -p app.properties report
    """
    _confirm(f"remove duty {name}?", yes=yes)
    _change(properties, RemoveDuty(name), why, as_json=as_json, duty=name, done="removed")


@click.command("enable")
@properties_option
@click.argument("name")
@click.option("--worker", is_flag=True, help="NAME is a worker's: it may be given duties again.")
@json_option
@why_option
def enable(properties: Path, name: str, worker: bool, as_json: bool, why: str) -> None:
    """Lets a duty run again that was disabled.

    \b
    Examples:
      kainite fleet enable -p app.properties extract
      kainite fleet enable -p app.properties --worker host-2
    """
    if worker:
        _change(properties, SetDormancy(name, dormant=False), why, as_json=as_json, worker=name, asked="enable")
    else:
        change = ChangeDuty(name, DutyChange.ENABLE)
        _change(properties, change, why, as_json=as_json, duty=name, done="enabled")


@click.command("disable")
@properties_option
@click.argument("name")
@click.option("--worker", is_flag=True, help="NAME is a worker's: its duties go to others.")
@_yes
@json_option
@why_option
def disable(properties: Path, name: str, worker: bool, yes: bool, as_json: bool, why: str) -> None:
    """Ends a duty until it is enabled, or empties a worker.

    \b
    Examples:
      kainite fleet disable -p app.properties extract
      kainite fleet disable -p app.properties --worker host-2 --yes
    """
    _confirm(f"disable {'worker' if worker else 'duty'} {name}?", yes=yes)
    if worker:
        _change(properties, SetDormancy(name, dormant=True), why, as_json=as_json, worker=name, asked="disable")
    else:
        change = ChangeDuty(name, DutyChange.DISABLE)
        _change(properties, change, why, as_json=as_json, duty=name, done="disabled")


@click.command("start")
@properties_option
@click.argument("name")
@json_option
@why_option
def start(properties: Path, name: str, as_json: bool, why: str) -> None:
    """Starts a duty that was stopped, has ended by itself, or has failed.

    \b
    Examples:
      kainite fleet start -p app.properties extract
    """
    _change(properties, ChangeDuty(name, DutyChange.START), why, as_json=as_json, duty=name, asked="start")


@click.command("stop")
@properties_option
@click.argument("name")
@click.option("--kill", is_flag=True, help="Only kill its program: its restart policy decides what follows.")
@_yes
@json_option
@why_option
def stop(properties: Path, name: str, kill: bool, yes: bool, as_json: bool, why: str) -> None:
    """Stops a duty until it is started again, whoever leads or comes by then.

    \b
    Examples:
      kainite fleet stop -p app.properties extract
      kainite fleet stop -p app.properties report --kill --yes
    """
    _confirm(f"{'kill' if kill else 'stop'} duty {name}?", yes=yes)
    change = ChangeDuty(name, DutyChange.KILL if kill else DutyChange.STOP)
    _change(properties, change, why, as_json=as_json, duty=name, asked=change.change.value)


@click.command("move")
@properties_option
@click.argument("name")
@click.argument("worker")
@_yes
@json_option
@why_option
def move(properties: Path, name: str, worker: str, yes: bool, as_json: bool, why: str) -> None:
    """Moves a duty: it is stopped where it is, and started at the worker when that is confirmed.

    \b
    Examples:
      kainite fleet move -p app.properties extract host-2
    """
    _confirm(f"stop duty {name} and start it at {worker}?", yes=yes)
    _change(properties, MoveDuty(name, worker), why, as_json=as_json, duty=name, worker=worker, asked="move")


@click.command("rebalance")
@properties_option
@_yes
@json_option
@why_option
def rebalance(properties: Path, yes: bool, as_json: bool, why: str) -> None:
    """Asks the leader to even the load now, one duty after the other.

    \b
    Examples:
      kainite fleet rebalance -p app.properties
    """
    _confirm("move duties, so that the load is even?", yes=yes)
    _change(properties, Rebalance(), why, as_json=as_json, asked="rebalance")


@click.command("clear-error")
@properties_option
@click.argument("name")
@json_option
@why_option
def clear_error(properties: Path, name: str, as_json: bool, why: str) -> None:
    """Lets a duty be tried again that has failed too often.

    \b
    Examples:
      kainite fleet clear-error -p app.properties extract
    """
    _change(properties, ChangeDuty(name, DutyChange.CLEAR_ERROR), why, as_json=as_json, duty=name, done="cleared")


@click.command("shut-down")
@properties_option
@click.argument("worker")
@_yes
@json_option
@why_option
def shut_down(properties: Path, worker: str, yes: bool, as_json: bool, why: str) -> None:
    """Asks a worker to end gracefully: its duties and its shards go to others.

    \b
    Examples:
      kainite fleet shut-down -p app.properties host-2
    """
    _confirm(f"end worker {worker}?", yes=yes)
    _change(properties, ShutDownWorker(worker), why, as_json=as_json, worker=worker, asked="shut-down")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise click.BadParameter(f"{command!r} is no command line: {error}", param_hint="--command") from error


def _number(setting: str) -> tuple[str, float]:
    key, _, value = setting.partition("=")
    try:
        return key, int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{setting!r} is not KEY=NUMBER, such as startTimeout=300", param_hint="--set"
        ) from error


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise FleetError("this stops something: say --yes where nobody can be asked")
    click.confirm(question, abort=True)


def _change(properties: Path, operation: FleetOperation, why: str, *, as_json: bool, **facts: str) -> None:
    """Carries an operation on the fleet out, and says what it has done or asked for."""
    operations = Operations(load(properties, needs=("applicationName",)))
    outcome = operations.carry_out(operation, this_person(), why)
    if outcome.result is OperationResult.REFUSED:
        raise FleetError(outcome.sentence)
    _done(outcome.sentence, as_json=as_json, **facts)


def _done(text: str, *, as_json: bool, **facts: str) -> None:
    """Says what a command has done or asked for."""
    if as_json:
        say_json(facts)
    else:
        say(text)


CHANGES = (add, remove, enable, disable, start, stop, move, rebalance, clear_error, shut_down)
