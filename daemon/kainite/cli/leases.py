"""``kainite leases``: shows who reads which shard and how far; and what changes leases."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import KainiteError, LeaseTableError
from kainite.base.liveness import Sighting
from kainite.cli.lazy_group import LazyCommand, LazyCommands
from kainite.cli.observed_leases import lease_table, observe_until_decided, rows_of, stream_of
from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json, stdout
from kainite.kinesis.named_streams import ReadableShards
from kainite.leases.administration.report import LeaseRow, Pulse, ShardState, observe_counters, short, summary, workers
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import Settings, load

WATCH_S = 5.0

_COLOURS = {
    ShardState.READING: "green",
    ShardState.EXPIRED: "red",
    ShardState.UNOWNED: "yellow",
    ShardState.HANDING_OVER: "cyan",
    ShardState.FINISHED: "dim",
}


_LAZY = {
    "reset": LazyCommand(
        "kainite.cli.leases_reset:reset", "Sets checkpoints, so that shards are read from another place."
    ),
    "restart-child": LazyCommand(
        "kainite.cli.leases_requests:restart_child", "Ends the child of a shard, and has another one started."
    ),
    "move": LazyCommand("kainite.cli.leases_requests:move", "Gives the lease of a shard to a worker."),
    "forget": LazyCommand("kainite.cli.leases_requests:forget", "Deletes the leases of a stream that was removed."),
    "stderr": LazyCommand(
        "kainite.cli.leases_stderr:stderr", "Shows the last lines that children wrote to standard error."
    ),
}


class _ShowByDefault(LazyCommands):
    """Makes ``kainite leases -p FILE`` the same as ``kainite leases show -p FILE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group("leases", cls=_ShowByDefault, lazy=_LAZY)
def leases() -> None:
    """Shows which worker reads which shard and how far; sets checkpoints, restarts children, moves leases.

    \b
    Examples:
      kainite leases -p app.properties                        the same as "leases show"
      kainite leases -p app.properties --watch --lag
      kainite leases reset -p app.properties --to TRIM_HORIZON
      kainite leases restart-child -p app.properties shardId-000000000003
      kainite leases move -p app.properties shardId-000000000003 host-2
      kainite leases forget -p app.properties payments
      kainite leases stderr -p app.properties shardId-000000000003
    """


@leases.command("show")
@properties_option
@click.option("--lag", is_flag=True, help="Measure how far each checkpoint is behind; see above for its cost.")
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS",
              help="How long to wait for counters to move, to tell live workers from dead ones.  [0]")  # fmt: skip
@click.option("--watch", type=click.FloatRange(min=0.1), is_flag=False, flag_value=WATCH_S, metavar="[SECONDS]",
              help="Repeat every so many seconds, 5 by default, until Ctrl-C.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON document; with --watch one line a round.")
def show(properties: Path, lag: bool, wait: float | None, watch: float | None, as_json: bool) -> None:
    """Prints the lease table, one row a shard, and which worker owns the log of units of work.

    KCL's lease has no timestamp, so one look does not tell a live worker from a dead one. With --wait counters are
    observed until they have moved (fresh), or for that time (silent); one that stands still for the failover time has
    expired. --watch goes on observing. "kainite status" tells which shards are read at once, where there is a log.

    --lag costs each unfinished shard one of the five GetRecords calls a second that all its readers share.

    \b
    Examples:
      kainite leases show -p app.properties
      kainite leases show -p app.properties --lag --json
      kainite leases show -p app.properties --watch 2
      kainite leases show -p app.properties --wait 10     tells live workers from dead ones
    """
    if watch is not None and wait is not None:
        raise click.UsageError("--wait cannot go with --watch, which goes on observing anyway")
    settings = load(properties, needs=("applicationName", "streamName"))
    table = lease_table(settings)
    stream = stream_of(settings) if lag else None
    if watch is None:
        _, found = observe_until_decided(table, settings, wait or 0.0, stream)
        _print(settings, found, lag=lag, as_json=as_json)
    else:
        _watch(_rounds(table, settings, watch, stream), settings, lag=lag, as_json=as_json)


def _log_owner(settings: Settings) -> str | None:
    """Returns the worker that owns the application's log; None without a log, or while nobody owns it."""
    if not settings.log.enabled:
        return None
    store, partition = opened_log(settings)
    try:
        head = store.read_head(partition)
    except KainiteError as error:
        say(f"kainite: the log's owner is not known: {error}", err=True)
        return None
    return None if head is None or head.released else head.owner


def _rounds(
    table: LeaseTable, settings: Settings, interval: float, stream: ReadableShards | None
) -> Iterator[tuple[LeaseRow, ...]]:
    """Yields the rows again and again; skips a round in which the lease table does not answer."""
    seen: dict[str, Sighting[int]] = {}
    while True:
        try:
            scan = table.scan()
        except LeaseTableError as error:
            if not error.retryable:
                raise
            say(f"kainite: {error}", err=True)
        else:
            now = time.monotonic()
            seen = observe_counters(seen, scan, now)
            yield rows_of(scan, seen, now, settings, stream)
        time.sleep(interval)


def _watch(rounds: Iterator[tuple[LeaseRow, ...]], settings: Settings, *, lag: bool, as_json: bool) -> None:
    if as_json:
        for rows in rounds:
            say_json(_document(settings, rows))
    elif not sys.stdout.isatty():
        for rows in rounds:
            stdout().print(_shown(rows, _log_owner(settings), lag=lag))
    else:
        from rich.live import Live

        with Live(console=stdout(), auto_refresh=False, vertical_overflow="visible") as live:
            for rows in rounds:
                live.update(_shown(rows, _log_owner(settings), lag=lag), refresh=True)


def _print(settings: Settings, rows: tuple[LeaseRow, ...], *, lag: bool, as_json: bool) -> None:
    if as_json:
        say_json(_document(settings, rows), indent=True)
    else:
        stdout().print(_shown(rows, _log_owner(settings), lag=lag))


def _document(settings: Settings, rows: tuple[LeaseRow, ...]) -> dict[str, object]:
    return {
        "application": settings.leases.application,
        "table": settings.leases.table,
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "workers": workers(rows),
        "log_owner": _log_owner(settings),
        "leases": [asdict(row) for row in rows],
    }


def _shown(rows: tuple[LeaseRow, ...], log_owner: str | None, *, lag: bool) -> Group:
    table = Table(header_style="bold")
    for name in ("Shard", "State", "Owner", "Counter", "Checkpoint"):
        table.add_column(name, overflow="fold")
    for name in ("Switches", "Share", *(["Lag"] if lag else [])):
        table.add_column(name, justify="right")
    for name in ("Parents", "Children"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, _cells(row, lag=lag)), style=_COLOURS.get(row.state))
    owned = [] if log_owner is None else [Text(f"the log is owned by {log_owner}")]
    return Group(table, Text(summary(rows)), *owned)


def _cells(row: LeaseRow, *, lag: bool) -> list[str]:
    return [
        row.shard,
        row.state,
        _owner(row),
        _counter(row),
        short(Checkpoint(row.checkpoint, row.sub)),
        str(row.switches),
        "" if row.share is None else f"{row.share:.1%}",
        *([_lag(row)] if lag else []),
        " ".join(row.parents),
        " ".join(row.children),
    ]


def _owner(row: LeaseRow) -> str:
    owner = f"{row.checkpoint_owner} → {row.owner}" if row.checkpoint_owner else row.owner or ""
    if row.asked is not None:
        return f"{owner} ({row.asked})"
    return f"{owner} (moved there)" if row.owner is not None and row.moved_to == row.owner else owner


def _counter(row: LeaseRow) -> str:
    if row.pulse is None or row.silent_for is None:
        return ""
    return str(row.pulse) if row.pulse in (Pulse.FRESH, Pulse.UNKNOWN) else f"{row.pulse} {row.silent_for:.0f} s"


def _lag(row: LeaseRow) -> str:
    return f"{row.lag_millis} ms" if row.lag_millis is not None else row.lag_cause or ""
