"""The serialization log as a Spark data source: a row a unit of work, for whoever wants to look at it in Spark.

::

    from kainite_spark.source import LogDataSource

    spark.dataSource.register(LogDataSource)
    units = spark.read.format("kainite").option("properties", "app.properties").load()
    units.where("status = 'failed'").select("id", "uow", "cause").show()

=================  ================================================================================
option             meaning
=================  ================================================================================
``properties``     a settings file: it names the log, and nothing else is needed
``table``          the log's DynamoDB table, without a settings file
``logPartition``   the log partition; "0" where it is not given
``endpoint``       of DynamoDB, where it is not AWS's own
``region``         where it is not boto3's default
``unitsPerTask``   how many units a task reads, 2000 where it is not given
=================  ================================================================================

Units stand in the log until they are truncated; what they were then is in the audit trail. ``deltas`` is a
JSON array in the source's order, or null for a unit whose deltas are truncated in part. Reading
asks the log's owner nothing, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kainite import settings
from kainite.aws import clients as aws
from kainite.base.errors import KainiteError, SettingsError
from kainite.log.format.entry import Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.store.contract import LogStore
from kainite.log.store.dynamodb import DynamoDBStore
from kainite.settings import AwsSettings
from kainite_spark.executor.assemble import UnitPart, in_source_order, read_deltas
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import Slice, Wanted, ranges

SCHEMA = (
    "id bigint, uow string, number bigint, kind string, status string, conflict bigint, "
    "queue array<string>, instance int, cause string, count int, deltas string"
)
_OPTIONS = frozenset({"properties", "table", "logpartition", "endpoint", "region", "unitspertask", "path"})
UNITS_PER_TASK = 2_000


class UnitRow(NamedTuple):
    """All columns of a unit but its deltas (:class:`~kainite.log.views.unit_table.LogRow`).

    ``size`` is the column ``count``.
    """

    id: int
    uow: str
    number: int | None
    kind: str
    status: str
    conflict: int | None
    queue: list[str]
    instance: int | None
    cause: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Log:
    """Where a log partition is."""

    aws: AwsSettings
    table: str
    partition: str

    def store(self) -> LogStore:
        return DynamoDBStore(aws.client("dynamodb", self.aws), self.table)


@dataclass
class UnitRange(InputPartition):
    """What one task reads: units, the entries that hold their deltas, and who has lost some of them."""

    rows: tuple[UnitRow, ...]
    piece: Slice
    truncated: frozenset[int]

    def __init__(self, rows: tuple[UnitRow, ...], piece: Slice, truncated: frozenset[int]) -> None:
        super().__init__(rows[0].id)
        self.rows, self.piece, self.truncated = rows, piece, truncated


class LogDataSource(DataSource):
    """``spark.read.format("kainite")``."""

    @classmethod
    def name(cls) -> str:
        return "kainite"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(log_of(self.options), int(self.options.get("unitsPerTask", UNITS_PER_TASK)))


class LogReader(DataSourceReader):
    """Plans on the index alone, then reads the deltas task by task."""

    def __init__(self, log: Log, units_per_task: int) -> None:
        self._log = log
        self._units_per_task = units_per_task

    def partitions(self) -> Sequence[UnitRange]:
        return plan_reading(self._log.store(), self._log.partition, self._units_per_task)

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        assert isinstance(partition, UnitRange)
        return read_rows(self._log.store(), self._log.partition, partition)


def log_of(options: Mapping[str, str]) -> Log:
    """Where the options say that the log is.

    Raises:
        SettingsError: they do not say it, or an option is unknown.
    """
    given = {name.lower(): value for name, value in options.items()}
    if unknown := sorted(given.keys() - _OPTIONS):
        raise SettingsError(f"option {unknown[0]!r} is unknown to the format kainite; see kainite_spark.data_source")
    if "properties" in given:
        configured = settings.load(given["properties"])
        return Log(configured.aws, configured.log.table, configured.log.partition)
    if "table" not in given:
        raise SettingsError("the format kainite needs the option 'properties' (a settings file) or 'table'")
    where = AwsSettings(region=given.get("region"), dynamodb_endpoint=given.get("endpoint"))
    return Log(where, given["table"], given.get("logpartition", "0"))


def plan_reading(store: LogStore, partition: str, units_per_task: int) -> list[UnitRange]:
    """All units of a log partition, shared out to tasks; only the index is read."""
    head = store.read_head(partition)
    low = head.low_water_mark if head else 0
    metas: dict[int, UnitMeta] = {}
    latest: dict[int, Outcome] = {}
    for batch in store.read_batches(partition, low, data=False, strong=True):
        for tid, entry in enumerate(batch.entries, batch.first_id):
            if isinstance(entry.meta, UnitMeta) and tid >= low:
                metas[tid] = entry.meta
            elif isinstance(entry.meta, StatusMeta):
                latest |= {outcome.tid: _merged(latest.get(outcome.tid), outcome) for outcome in entry.meta.outcomes}
    tids = list(metas)
    shares = [tids[start : start + units_per_task] for start in range(0, len(tids), units_per_task)]
    return [_range({tid: metas[tid] for tid in share}, latest, low) for share in shares]


def read_rows(store: LogStore, partition: str, units: UnitRange) -> Iterator[tuple[object, ...]]:
    """The rows of some units, in log order.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    parts: dict[int, list[UnitPart]] = {}
    for _, part in read_slice(store, partition, units.piece):
        if isinstance(part, KainiteError):
            raise part
        parts.setdefault(part.unit, []).append(part)
    for row in units.rows:
        yield (*row, None if row.id in units.truncated else _json(parts[row.id]))


def _merged(before: Outcome | None, now: Outcome) -> Outcome:
    """The later outcome; who applied the unit stays known."""
    instance = now.instance if now.instance is not None or before is None else before.instance
    return Outcome(now.tid, now.status, instance, now.cause)


def _range(metas: Mapping[int, UnitMeta], latest: Mapping[int, Outcome], low: int) -> UnitRange:
    truncated = frozenset(tid for tid, meta in metas.items() if any(fragment < low for fragment in meta.fragments))
    wanted = sorted(
        Wanted(entry, tid, number, 0)
        for tid, meta in metas.items()
        if tid not in truncated
        for number, entry in enumerate((*meta.fragments, tid))
    )
    piece = Slice(tuple(ranges([entry.entry for entry in wanted])) if wanted else (), tuple(wanted))
    return UnitRange(tuple(_row(tid, meta, latest.get(tid)) for tid, meta in metas.items()), piece, truncated)


def _row(tid: int, meta: UnitMeta, outcome: Outcome | None) -> UnitRow:
    born = UnitStatus.FAILED if meta.cause else UnitStatus.IN_PROGRESS
    now = outcome or Outcome(tid, born, None, meta.cause)
    return UnitRow(
        tid, meta.uow, meta.number, meta.kind.value, now.status.value, meta.conflict,
        list(meta.shards), now.instance, now.cause, meta.count,
    )  # fmt: skip


def _json(parts: Sequence[UnitPart]) -> str:
    in_order = sorted(parts, key=lambda part: part.number)
    deltas = in_source_order([delta for part in in_order for delta in read_deltas(part.data)])
    return orjson.dumps([delta.to_json() for delta in deltas]).decode()
