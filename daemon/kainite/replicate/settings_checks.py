"""Looks at what lies between source and target: settings, offset file, and how long the stream keeps records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from kainite.aws import clients as aws
from kainite.base.errors import KainiteError
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.replicate.findings import CheckFinding, fine, warning, wrong
from kainite.replicate.tables import ReplicaTable
from kainite.settings import Consistency, Settings, UowOrder

BYTES_A_SECOND: Final = 10 * 2**20
"""What a load copies in a second at least, with one task: the estimate errs on the long side."""

_MARGIN: Final = 4
"""Retention must be so many times the estimate: keys, indexes and catching up come behind the rows."""


def look_at_settings(
    configured: Settings, tables: Sequence[ReplicaTable], slot_lsn: int | None
) -> Iterator[CheckFinding]:
    """Yields which settings do not fit a replica.

    Args:
        configured: the settings file.
        tables: the tables that the source publishes.
        slot_lsn: the place of the main slot; None where there is none.
    """
    begin = "…" if slot_lsn is None else format_lsn(slot_lsn)
    yield from look_between(configured, sum(table.bytes for table in tables), f'{{"lsn":"{begin}","number":0}}')


def look_between(configured: Settings, size: int, begin: str) -> Iterator[CheckFinding]:
    """Yields which settings do not fit a replica, whatever kind of database its source is.

    Args:
        configured: the settings file.
        size: the bytes of the source's tables.
        begin: an offset with which the extraction may begin, as JSON.
    """
    if not configured.log.enabled:
        yield wrong("settings", "unitsOfWork is not set: nothing is collected", "unitsOfWork = true")
    if configured.uow.order is not UowOrder.DENSE:
        yield wrong("settings", "units are not applied in the order of their commits", "uowOrder = dense")
    if configured.apply.consistency is not Consistency.PREFIX:
        yield warning("settings", "units that do not conflict are committed in any order: a reader may see a state that"
                      " the source never had", "targetConsistency = prefix")  # fmt: skip
    yield _offset_file(configured, begin)
    yield _retention(configured, size)


def _offset_file(configured: Settings, begin: str) -> CheckFinding:
    file = offset_file_of(configured)
    assert file is not None, "ends_of has looked at extractorOffsets"
    if not file.path.exists():
        command = f"kainite extract -p FILE --begin '{begin}'"
        return wrong("offset file", f"{file.path} is not there", f"{command}, or kainite replicate init --write")
    try:
        place = file.load()
    except KainiteError as error:
        return wrong("offset file", str(error), "see there")
    return fine("offset file", f"{file.path}: {place.start}")


def _retention(configured: Settings, size: int) -> CheckFinding:
    """Returns whether the stream keeps what commits during the load for long enough."""
    seconds = size / BYTES_A_SECOND
    load = f"the load takes about {_time(seconds)} at {BYTES_A_SECOND // 2**20} MiB a second"
    try:
        kinesis = aws.client("kinesis", configured.aws)
        summary = kinesis.describe_stream_summary(StreamName=configured.stream.name)["StreamDescriptionSummary"]
        hours = summary["RetentionPeriodHours"]
    except (KainiteError, BotoCoreError, ClientError) as error:
        return warning("retention", f"stream {configured.stream.name} cannot be asked ({error}); {load}",
                       "its retention must be longer")  # fmt: skip
    if hours * 3600 < _MARGIN * seconds:
        wanted = min(int(_MARGIN * seconds // 3600) + 1, 8760)
        mend = (f"aws kinesis increase-stream-retention-period --stream-name {configured.stream.name}"
                f" --retention-period-hours {wanted}")  # fmt: skip
        return wrong("retention", f"{load}, and the stream keeps records for {hours} h", mend)
    return fine("retention", f"{load}; the stream keeps records for {hours} h")


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"
