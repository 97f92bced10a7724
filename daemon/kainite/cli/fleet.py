"""``kainite fleet``: who does which duty, and the wishes of an operator."""

from __future__ import annotations

import getpass
import shlex
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from kainite.aws import clients as aws
from kainite.base.errors import FleetError
from kainite.cli.fleet_views import duty_rows, event_rows, shown, worker_rows
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json, stdout
from kainite.duties.declared import work_of
from kainite.duties.model.records import Command, Kind, Restart, Subject
from kainite.duties.operator import Operator
from kainite.duties.store.contract import FleetStore
from kainite.duties.store.dynamodb import DynamoDBFleetStore
from kainite.settings import load

F = TypeVar("F", bound=Callable[..., Any])

WATCH_S = 2.0

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group("fleet")
def fleet() -> None:
    """Shows and steers what runs exactly once somewhere in the fleet.

    \b
    Examples:
      kainite fleet duties -p app.properties
      kainite fleet workers -p app.properties
      kainite fleet stop -p app.properties extract
      kainite fleet move -p app.properties extract host-2

    Exit code: 0 when it is done or asked for, 1 when there is no such duty or worker, or it makes no sense now.
    """


@fleet.command("workers")
@properties_option
@_json
def workers(properties: Path, as_json: bool) -> None:
    """Lists the workers with their status, and who leads.

    \b
    Examples:
      kainite fleet workers -p app.properties
      kainite fleet workers -p app.properties --json
    """
    rows = worker_rows(_store(properties).read())
    _print(rows, as_json=as_json)


@fleet.command("duties")
@properties_option
@_json
def duties(properties: Path, as_json: bool) -> None:
    """Lists the duties with their status, their worker and their last error.

    \b
    Examples:
      kainite fleet duties -p app.properties
      kainite fleet duties -p app.properties --json
    """
    _print(duty_rows(_store(properties).read()), as_json=as_json)


@fleet.command("watch")
@properties_option
@click.option("--every", type=click.FloatRange(min=0.1), default=WATCH_S, show_default=True, metavar="SECONDS")
def watch(properties: Path, every: float) -> None:
    """Shows the duties again and again, until Ctrl-C.

    \b
    Examples:
      kainite fleet watch -p app.properties
      kainite fleet watch -p app.properties --every 10
    """
    from rich.live import Live

    store = _store(properties)
    if not sys.stdout.isatty():
        while True:
            stdout().print(shown(duty_rows(store.read())))
            time.sleep(every)
    with Live(console=stdout(), auto_refresh=False) as live:
        while True:
            live.update(shown(duty_rows(store.read())), refresh=True)
            time.sleep(every)


@fleet.command("history")
@properties_option
@click.argument("subject", type=click.Choice([each.value for each in Subject]))
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Only the last N lines.")
@_json
def history(properties: Path, subject: str, name: str | None, limit: int, as_json: bool) -> None:
    """Prints what happened to a worker, a duty or the leader: when, who, and why.

    \b
    Examples:
      kainite fleet history -p app.properties duty extract
      kainite fleet history -p app.properties leader --limit 10
    """
    if name is None and subject != Subject.LEADER:
        raise click.UsageError(f"name the {subject}")
    events = _store(properties).history(Subject(subject), name or "leader", limit)
    if as_json:
        say_json([asdict(event) for event in events], indent=True)
    else:
        stdout().print(shown(event_rows(events)))


@fleet.command("add")
@properties_option
@click.argument("name")
@click.option("--kind", type=click.Choice([each.value for each in Kind]), default=Kind.PROGRAM.value, show_default=True)
@click.option("--command", help="The command line of a program, quoted as in a shell.")
@click.option("--settings", "own", metavar="FILE", help="The settings file of the duty, as each worker finds it.")
@click.option("--weight", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--affinity", multiple=True, metavar="WORKER|LABEL", help="Where it had better run.")
@click.option(
    "--restart", type=click.Choice([each.value for each in Restart]), default=Restart.ALWAYS.value, show_default=True
)
@click.option("--ready", metavar="TEXT", help="It runs when a line of its output has this text.")
def add(properties: Path, name: str, kind: str, command: str | None, own: str | None, weight: float,
        affinity: tuple[str, ...], restart: str, ready: str | None) -> None:  # fmt: skip
    """Adds a duty, which the fleet starts somewhere at once. Its command stands in the fleet's table: no secrets in it.

    \b
    Examples:
      kainite fleet add -p app.properties report --command "python /srv/report.py" --restart on-failure
      kainite fleet add -p app.properties orders --kind extract --settings orders.properties --affinity source-host
    """
    given: dict[str, Any] = {"kind": kind, "weight": weight, "affinity": list(affinity), "restart": restart}
    given |= {"command": shlex.split(command)} if command else {}
    given |= {"properties": own} if own else {}
    given |= {"ready": ready} if ready else {}
    _operator(properties).add(name, work_of(name, given))
    say(f"duty {name} added")


@fleet.command("remove")
@properties_option
@click.argument("name")
@_yes
def remove(properties: Path, name: str, yes: bool) -> None:
    """Removes a duty that does not run.

    \b
    Examples:
      kainite fleet remove -p app.properties report
    """
    _confirm(f"remove duty {name}?", yes=yes)
    _operator(properties).remove(name)
    say(f"duty {name} removed")


@fleet.command("enable")
@properties_option
@click.argument("name")
@click.option("--worker", is_flag=True, help="NAME is a worker's: it may be given duties again.")
def enable(properties: Path, name: str, worker: bool) -> None:
    """Lets a duty run again that was disabled.

    \b
    Examples:
      kainite fleet enable -p app.properties extract
      kainite fleet enable -p app.properties --worker host-2
    """
    operator = _operator(properties)
    if worker:
        operator.send(name, Command.ENABLE)
    else:
        operator.enable(name)
    say(f"worker {name} is asked to take duties again" if worker else f"duty {name} enabled")


@fleet.command("disable")
@properties_option
@click.argument("name")
@click.option("--worker", is_flag=True, help="NAME is a worker's: its duties go to others.")
@_yes
def disable(properties: Path, name: str, worker: bool, yes: bool) -> None:
    """Ends a duty until it is enabled, or empties a worker.

    \b
    Examples:
      kainite fleet disable -p app.properties extract
      kainite fleet disable -p app.properties --worker host-2 --yes
    """
    _confirm(f"disable {'worker' if worker else 'duty'} {name}?", yes=yes)
    operator = _operator(properties)
    if worker:
        operator.send(name, Command.DISABLE)
    else:
        operator.disable(name)
    say(f"worker {name} is asked to give its duties away" if worker else f"duty {name} disabled")


@fleet.command("start")
@properties_option
@click.argument("name")
def start(properties: Path, name: str) -> None:
    """Starts a duty that was stopped, has ended by itself, or has failed.

    \b
    Examples:
      kainite fleet start -p app.properties extract
    """
    _operator(properties).start(name)
    say(f"duty {name} will be started")


@fleet.command("stop")
@properties_option
@click.argument("name")
@click.option("--kill", is_flag=True, help="Only kill its program: its restart policy decides what follows.")
@_yes
def stop(properties: Path, name: str, kill: bool, yes: bool) -> None:
    """Stops a duty until it is started again, whoever leads or comes by then.

    \b
    Examples:
      kainite fleet stop -p app.properties extract
      kainite fleet stop -p app.properties report --kill --yes
    """
    _confirm(f"{'kill' if kill else 'stop'} duty {name}?", yes=yes)
    operator = _operator(properties)
    if kill:
        operator.kill(name)
    else:
        operator.stop(name)
    say(f"duty {name} will be {'killed' if kill else 'stopped'}")


@fleet.command("move")
@properties_option
@click.argument("name")
@click.argument("worker")
@_yes
def move(properties: Path, name: str, worker: str, yes: bool) -> None:
    """Moves a duty: it is stopped where it is, and started at the worker when that is confirmed.

    \b
    Examples:
      kainite fleet move -p app.properties extract host-2
    """
    _confirm(f"stop duty {name} and start it at {worker}?", yes=yes)
    _operator(properties).move(name, worker)
    say(f"duty {name} moves to {worker}")


@fleet.command("rebalance")
@properties_option
@_yes
def rebalance(properties: Path, yes: bool) -> None:
    """Asks the leader to even the load now, one duty after the other.

    \b
    Examples:
      kainite fleet rebalance -p app.properties
    """
    _confirm("move duties, so that the load is even?", yes=yes)
    _operator(properties).rebalance()
    say("the leader is asked to rebalance")


@fleet.command("clear-error")
@properties_option
@click.argument("name")
def clear_error(properties: Path, name: str) -> None:
    """Lets a duty be tried again that has failed too often.

    \b
    Examples:
      kainite fleet clear-error -p app.properties extract
    """
    _operator(properties).clear_error(name)
    say(f"duty {name} will be started")


@fleet.command("shut-down")
@properties_option
@click.argument("worker")
@_yes
def shut_down(properties: Path, worker: str, yes: bool) -> None:
    """Asks a worker to end gracefully: its duties and its shards go to others.

    \b
    Examples:
      kainite fleet shut-down -p app.properties host-2
    """
    _confirm(f"end worker {worker}?", yes=yes)
    _operator(properties).send(worker, Command.SHUT_DOWN)
    say(f"worker {worker} is asked to end")


def _store(properties: Path) -> FleetStore:
    settings = load(properties, needs=("applicationName",))
    return DynamoDBFleetStore(aws.client("dynamodb", settings.aws), settings.fleet.table, settings.fleet.history_days)


def _operator(properties: Path) -> Operator:
    return Operator(_store(properties), f"{getpass.getuser()}@{socket.gethostname()}")


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise FleetError("this stops something: say --yes where nobody can be asked")
    click.confirm(question, abort=True)


def _print(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        say_json(rows, indent=True)
    else:
        stdout().print(shown(rows))
