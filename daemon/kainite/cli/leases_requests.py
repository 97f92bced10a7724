"""``kainite leases restart-child``, ``move`` and ``forget``: what is done to leases after a confirmation."""

from __future__ import annotations

from pathlib import Path

import click

from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say, stdout
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import this_person
from kainite.operations.operation import ForgetStream, LeaseOperation, MoveLease, RestartChild
from kainite.settings import load

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@click.command("restart-child")
@properties_option
@click.argument("shard")
@why_option
@yes_option
def restart_child(properties: Path, shard: str, why: str, yes: bool) -> int:
    """Ends the child of a shard as a crash does, and has its daemon start another one at once.

    The next child goes on at the checkpoint: nothing is lost, and units of work are not doubled. It is no failure: no
    batch is reported as poison because of it, and no record is left out. A pause after failures ends at once, so that a
    program that was mended is tried now.

    The daemon finds the request in the lease table, a third of failoverTimeMillis later at most. A Java worker does
    not: the request is then withdrawn.

    \b
    Examples:
      kainite leases restart-child -p app.properties shardId-000000000003
      kainite leases restart-child -p app.properties shardId-000000000003 --why "hangs since 02:10" --yes
    """
    return _carry_out(properties, RestartChild(shard), why, yes=yes)


@click.command("move")
@properties_option
@click.argument("shard")
@click.argument("worker")
@why_option
@yes_option
def move(properties: Path, shard: str, worker: str, why: str, yes: bool) -> int:
    """Gives the lease of a shard to a worker, named by its workerId.

    The worker says first that it will take it; so it may be one that has no shard yet. Then the present one ends the
    child in good order, which may checkpoint, and gives the lease away. Other Kainite daemons do not take it from there
    while that worker lives. Java workers of a KCL 2 fleet may, and know no such requests themselves. In a KCL 3 fleet
    the leader alone assigns leases: there the move is refused.

    \b
    Examples:
      kainite leases move -p app.properties shardId-000000000003 host-2
      kainite leases move -p app.properties shardId-000000000003 host-2 --why "host-1 is slow" --yes
    """
    return _carry_out(properties, MoveLease(shard, worker), why, yes=yes)


@click.command("forget")
@properties_option
@click.argument("stream")
@why_option
@yes_option
def forget(properties: Path, stream: str, why: str, yes: bool) -> int:
    """Deletes the leases of a stream that streamNames has no more, at once.

    Otherwise they are deleted when none was written for formerStreamLeasesMillis; with uowEnd=watermark those of shards
    that are not read to their end stay, and units wait for them. Units of work do not wait for the stream any more: let
    its writers stop, and wait until it is read to its end, before you take it out of the file.

    The command refuses a stream that the file names, and one whose leases a worker renews: to find out, it observes
    them for up to the failover time. A stream that the file names with unitsOfWork=false keeps its leases: units of
    work do not wait for it any more, where they do since before it was set so. STREAM is a name, or
    account:stream:creationEpoch, as "kainite leases" shows it.

    \b
    Examples:
      kainite leases forget -p app.properties payments
      kainite leases forget -p app.properties 123456789012:payments:1700000000 --why "moved to orders" --yes
    """
    return _carry_out(properties, ForgetStream(stream), why, yes=yes)


def _carry_out(properties: Path, operation: LeaseOperation | ForgetStream, why: str, *, yes: bool) -> int:
    """Has an operation carried out and says what has become of it; returns 1 where it was refused."""
    operations = Operations(load(properties, needs=("applicationName",)))
    preview = operations.preview(operation)
    if preview.asks and not yes:
        say(f"This will {preview.does}.")
        click.confirm("Go on?", abort=True)
    with stdout().status("waiting for the workers …"):
        outcome = operations.carry_out(operation, this_person(), why)
    refused = outcome.result is OperationResult.REFUSED
    say(f"kainite: refused: {outcome.sentence}" if refused else outcome.sentence, err=refused)
    return 1 if refused else 0
