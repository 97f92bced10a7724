"""``kainite leases reset``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import KainiteError
from kainite.base.words import counted
from kainite.cli.observed_leases import lease_table, stream_of
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import stdout
from kainite.cli.times import epoch_seconds
from kainite.leases.administration.report import short
from kainite.leases.administration.reset import CheckpointChange, parse_position
from kainite.operations.carrying_out import Operations
from kainite.operations.checkpoints import consequences, planned
from kainite.operations.inbox import Asker, this_person
from kainite.operations.operation import ResetCheckpoints
from kainite.settings import Settings, load


@click.command("reset")
@properties_option
@click.option("--to", metavar="POSITION", help="TRIM_HORIZON, LATEST, or the sequence number of the last done record.")
@click.option("--at", metavar="TIME", help="Deliver records from this time on again: ISO 8601 (UTC), or epoch seconds.")
@click.option("--shard", "shard_ids", multiple=True, metavar="ID", help="Only this shard; may be repeated.")
@click.option("--force", is_flag=True, help="Reset even while workers run: they lose the leases and take them again.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@why_option
def reset(properties: Path, to: str | None, at: str | None, shard_ids: tuple[str, ...], force: bool, yes: bool,
          why: str) -> int:  # fmt: skip
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
    operation = ResetCheckpoints(wanted, shard_ids, force=force)
    table, stream = lease_table(settings), stream_of(settings)
    with stdout().status("observing the leases' counters …"):
        changes = planned(table, stream, settings.leases.failover, operation)
    return _carry_out(settings, operation, changes, why, yes=yes)


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


def _carry_out(
    settings: Settings, operation: ResetCheckpoints, changes: tuple[CheckpointChange, ...], why: str, *, yes: bool
) -> int:
    console = stdout()
    console.print(_planned(changes))
    needed = [change for change in changes if change.needed]
    if not needed:
        console.print("Nothing to change.")
        return 0
    for line in consequences(changes) if settings.log.enabled else ():
        console.print(Text(line))
    if not yes:
        click.confirm(f"Reset {len(needed)} of {counted(len(changes), 'shard')}?", abort=True)

    def tell(sentence: str, _bad: bool) -> None:
        console.print(Text(sentence))

    try:
        outcome = Operations(settings).reset(operation, changes, Asker(this_person(), why), tell)
    except KainiteError:
        console.print(Text("interrupted: run the command again to finish", style="bold red"))
        raise
    return 1 if outcome.refused else 0


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
