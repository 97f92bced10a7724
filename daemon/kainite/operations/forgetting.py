"""Forgets a stream that the settings name no more: its leases are deleted at once, and the log awaits it no more.

Without this operation the leader deletes such leases after ``formerStreamLeasesMillis``; with ``uowEnd=watermark`` it
keeps those that are not read to their end, and units wait for them, until a person decides.

A plain stream (``stream.NAME.unitsOfWork = false``) that the settings name keeps its leases, which its workers renew.
The log may await it all the same: since it was added as one that carries units of work, and made plain before each
daemon had seen its leases. No report names it then, so only this operation ends that.

States: *former* (not in the settings, no lease held) → *forgotten* (no lease, not awaited). A stream that the settings
name, or of which a worker renews a lease, is not former: it is refused. A lease that is taken after the look stays,
since each is deleted by its counter. Invariant: the stream is awaited, or has its leases, until the leases are gone, so
no unit ends without it before the person's decision is recorded.

=====================================  =============================================================================
a crash                                leaves
=====================================  =============================================================================
before the first deletion              the record that it was asked for
between two deletions                  leases of other shards: with units of work the watermark waits for them
when all leases are gone, before the   the stream awaited, if it was: units wait. The request may stand in the inbox;
log has answered                       the next owner carries it out. The same command finishes the operation
=====================================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kainite.base.checkpoint import SHARD_END
from kainite.base.shard_key import StreamId
from kainite.base.words import are, counted
from kainite.leases.administration.report import Pulse, make_rows
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import OperationResult
from kainite.operations.checkpoints import observe
from kainite.operations.operation import ForgetStream, OperationOutcome, Preview

_REFUSED = OperationResult.REFUSED


def preview_forgetting(
    table: LeaseTable, operation: ForgetStream, named: Collection[str], plain: Collection[str] = ()
) -> Preview:
    """Returns what the operation would do now.

    Args:
        table: the lease table.
        operation: the stream, by its name or identifier.
        named: the identifiers of the streams that the settings name.
        plain: those of them that carry no units of work, while others do.

    Raises:
        LeaseTableError: the table cannot be read.
    """
    if stays := _plain(operation.stream, plain):
        return Preview(f"have the log await stream {stays} no more: it carries no units of work. Its leases stay")
    leases = table.scan()
    stream, refused = _former(leases, operation.stream, named)
    if refused:
        return Preview(f"nothing: {refused}", asks=False)
    its = [lease for lease in leases if lease.stream == stream]
    unread = sum(lease.checkpoint != SHARD_END for lease in its)
    left = f"; {unread} of them are not read to their end: what nobody has read there is never read" if unread else ""
    return Preview(
        f"delete {counted(len(its), 'lease')} of stream {stream}{left}. Units of work do not wait for this stream any"
        " more, and those that have a part there that was not read end without it"
    )


def delete_leases(
    table: LeaseTable, operation: ForgetStream, named: Collection[str], failover: float, plain: Collection[str] = ()
) -> tuple[str, OperationOutcome]:
    """Deletes the leases of the stream; returns its identifier, and what has become of them.

    Observes the leases for up to the failover time.

    Args:
        table, operation, named, plain: as of :func:`preview_forgetting`.
        failover: seconds after which a lease that nobody renews has expired.

    Raises:
        LeaseTableError: the table cannot be read or written; some leases may be deleted.
    """
    if stays := _plain(operation.stream, plain):
        return stays, OperationOutcome(OperationResult.DONE, f"stream {stays} carries no units; its leases stay")
    stream, refused = _former(table.scan(), operation.stream, named)
    if refused:
        return stream, OperationOutcome(_REFUSED, refused)
    scan, seen, now = observe(table, failover, failover + 1)  # 1 s more, or the last scan comes too early
    its = [lease for lease in scan if lease.stream == stream]
    rows = {row.shard: row for row in make_rows(scan, seen, {}, now, failover)}
    held = [rows[lease.key] for lease in its if lease.checkpoint != SHARD_END]
    if owners := sorted({str(row.owner) for row in held if row.pulse not in (None, Pulse.EXPIRED)}):
        said = (
            f"leases of stream {stream} are renewed by {', '.join(owners)}: give these workers the changed file first"
        )
        return stream, OperationOutcome(_REFUSED, said)
    left = [lease.key for lease in its if not table.delete_unchanged(lease)]
    if left:
        said = f"{', '.join(left)} of stream {stream} were written meanwhile, and stay: see kainite leases"
        return stream, OperationOutcome(_REFUSED, said, refused=len(left))
    return stream, OperationOutcome(
        OperationResult.DONE, f"{counted(len(its), 'lease')} of stream {stream} {are(len(its))} deleted"
    )


def _plain(asked: str, plain: Collection[str]) -> str:
    """Returns the identifier of the plain stream that is asked for; empty where none is, or more than one."""
    found = [stream for stream in plain if asked in (stream, stream.split(":")[1])]
    return found[0] if len(found) == 1 else ""


def _former(leases: Sequence[Lease], asked: str, named: Collection[str]) -> tuple[str, str]:
    """Returns the identifier of the former stream that is asked for, and why it is none; one of both is empty.

    A stream without leases, which the log may await, is found by its whole identifier alone.
    """
    if "" in named:
        return "", "this application reads one stream (streamName): it has no former ones"
    known = {lease.stream for lease in leases} | ({asked} if StreamId.parsed(asked) else set())
    found = sorted(stream for stream in known if stream and asked in (stream, stream.split(":")[1]))
    others = [stream for stream in found if stream not in named]
    if found and not others:
        return "", f"the settings name stream {found[0]}: take it out of streamNames first, on all hosts"
    if len(others) != 1:
        which = f"stream {asked} may be {' or '.join(others)}: name one" if others else f"stream {asked} has no leases"
        return "", f"{which} (account:stream:creationEpoch, as kainite leases shows before the shard)"
    return others[0], ""
