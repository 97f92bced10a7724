"""``kainite leases reset``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from kainite.base.checkpoint import LATEST, SHARD_END, Checkpoint
from kainite.base.errors import KainiteError, LeaseTableError, StreamError
from kainite.cli.observed_leases import lease_table, observe_until_decided, stream_of
from kainite.cli.options import properties_option
from kainite.cli.terminal import stdout
from kainite.cli.times import epoch_seconds
from kainite.kinesis.client import StreamClient
from kainite.kinesis.start_position import StartAt
from kainite.leases.administration.report import LeaseRow, Pulse, ShardState, short
from kainite.leases.administration.reset import CheckpointChange, apply, parse_position, plan, select
from kainite.leases.administration.seek_to_timestamp import SeekResult, checkpoint_before
from kainite.leases.administration.shard_reading import patiently
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import Settings, load


@click.command("reset")
@properties_option
@click.option("--to", metavar="POSITION", help="TRIM_HORIZON, LATEST, or the sequence number of the last done record.")
@click.option("--at", metavar="TIME", help="Deliver records from this time on again: ISO 8601 (UTC), or epoch seconds.")
@click.option("--shard", "shard_ids", multiple=True, metavar="ID", help="Only this shard; may be repeated.")
@click.option("--force", is_flag=True, help="Reset even while workers run: they lose the leases and take them again.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def reset(properties: Path, to: str | None, at: str | None, shard_ids: tuple[str, ...], force: bool, yes: bool) -> int:
    """Sets checkpoints, so that shards are read from another position on.

    Stop the workers first. The command refuses while a worker holds a lease; to find out, it observes the leases for
    up to the failover time. With --force the workers lose the leases, and for a moment two children may read a shard.

    Finished shards are read again as far as the stream still has them. A time becomes the number of the last record
    before it, shard by shard. Java workers understand it too. Finding it reads some records.

    \b
    Examples:
      kainite leases reset -p app.properties --to TRIM_HORIZON
      kainite leases reset -p app.properties --at 2026-11-21T08:00:00Z
      kainite leases reset -p app.properties --to LATEST --shard shardId-000000000003 --yes
      kainite leases reset -p app.properties --to 4964…0226 --shard shardId-000000000003
    """
    wanted = _wanted(to, at, shard_ids)
    if not yes and not interactive():
        raise click.UsageError("there is no terminal to ask for confirmation: add --yes")
    settings = load(properties, needs=("applicationName", "streamName"))
    table, stream = lease_table(settings), stream_of(settings)
    everything = select(table.scan(), shard_ids, table.name)
    if not force:
        scan, rows = observe_until_decided(
            table, settings, settings.leases.failover + 1
        )  # 1 s more, or the last scan comes too early
        _refuse_live(rows, {lease.key for lease in everything})
    else:
        scan = table.scan()
    chosen = select(scan, shard_ids, table.name)
    changes = plan(
        scan,
        chosen,
        stream.list_shards(),
        lambda shard_id: _seek(stream, shard_id, wanted),
        everything=not shard_ids,
    )
    return _carry_out(table, settings, changes, force=force, yes=yes)


def interactive() -> bool:
    """Returns whether somebody can be asked."""
    return sys.stdin.isatty()


def _wanted(to: str | None, at: str | None, shard_ids: tuple[str, ...]) -> Checkpoint | float:
    """Returns the position or the time to reset to; exactly one of the two must be given."""
    if (to is None) == (at is None):
        raise click.UsageError("give either --to POSITION or --at TIME")
    try:
        wanted = parse_position(to) if to is not None else _until_now(at or "")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--to" if to else "--at") from error
    if isinstance(wanted, Checkpoint) and wanted.position is not None and len(shard_ids) != 1:
        raise click.UsageError("a sequence number belongs to one shard: name it with --shard")
    return wanted


def _until_now(text: str) -> float:
    seconds = epoch_seconds(text)
    if seconds > time.time():
        raise ValueError(f"{text!r} does not lie between 1970 and now; for new records only, use --to LATEST")
    return seconds


def _seek(stream: StreamClient, shard_id: str, wanted: Checkpoint | float) -> SeekResult:
    if not isinstance(wanted, Checkpoint):
        return checkpoint_before(stream, shard_id, wanted)
    if wanted.position is not None:
        start = StartAt("AT_SEQUENCE_NUMBER", wanted.sequence)
        try:
            patiently(stream, "GetShardIterator", lambda: stream.iterator(shard_id, start))
        except StreamError as error:
            raise StreamError(f"shard {shard_id} does not have the sequence number {wanted}: {error}") from error
    return SeekResult(wanted, followed=True)


def _refuse_live(rows: tuple[LeaseRow, ...], chosen: set[str]) -> None:
    held = [row for row in rows if row.shard in chosen and row.pulse in (Pulse.FRESH, Pulse.SILENT, Pulse.UNKNOWN)
            and row.state is not ShardState.FINISHED]  # fmt: skip
    if held:
        owners = sorted({str(row.owner) for row in held})
        raise LeaseTableError(
            f"{len(held)} of these leases are renewed by {', '.join(owners)}: stop the workers first, or take the "
            "leases from them with --force"
        )


def _carry_out(
    table: LeaseTable, settings: Settings, changes: tuple[CheckpointChange, ...], *, force: bool, yes: bool
) -> int:
    console = stdout()
    console.print(_planned(changes))
    needed = [change for change in changes if change.needed]
    if not needed:
        console.print("Nothing to change.")
        return 0
    for line in _consequences(settings, needed):
        console.print(Text(line))
    if not yes:
        click.confirm(f"Reset {len(needed)} of {len(changes)} shards?", abort=True)
    refused = 0
    try:
        for change, done in apply(table, needed, force=force):
            refused += not done
            made = f"{change.before or 'no lease'} → {change.after}"
            said = made if done else "not reset: its lease was written since it was read"
            console.print(Text(f"{change.shard.id}: {said}"))
    except KainiteError:
        console.print(Text("interrupted: run the command again to finish", style="bold red"))
        raise
    return 1 if refused else 0


def _planned(changes: tuple[CheckpointChange, ...]) -> Table:
    table = Table(header_style="bold")
    for name in ("Shard", "Owner", "From", "To", "Note"):
        table.add_column(name, overflow="fold")
    for change in changes:
        owner = change.lease.owner if change.lease else None
        before = "no lease" if change.before is None else short(change.before)
        after = short(change.after) if change.needed else ""
        row = (change.shard.id, owner or "", before, after, change.note)
        table.add_row(*map(Text, row), style=None if change.needed else "dim")
    return table


def _consequences(settings: Settings, needed: list[CheckpointChange]) -> Iterator[str]:
    if not settings.log.enabled:
        return
    yield (
        "unitsOfWork is on: the serialization log stores how far it has collected each shard. Records up to that "
        "position are only delivered again; what they emit is recognised and not collected twice."
    )
    if any(change.after == LATEST for change in needed):
        yield (
            "A shard at LATEST goes on at the position up to which the log has collected it; a shard without one at "
            "the log's beginning. To leave out records that the log does not have, give a time (--at)."
        )
    if any(_skips(change) for change in needed):
        yield "Records that are skipped are never collected: units of work that they belong to stay incomplete."


def _skips(change: CheckpointChange) -> bool:
    return change.before is not None and change.before != SHARD_END and change.before < change.after
