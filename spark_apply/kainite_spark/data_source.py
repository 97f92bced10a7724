"""The serialization log as a Spark data source: a row for each unit of work, for queries about the log.

::

    from kainite_spark.data_source import LogDataSource

    spark.dataSource.register(LogDataSource)
    units = spark.read.format("kainite").option("properties", "app.properties").load()
    units.where("status = 'failed'").select("id", "uow", "cause").show()

=================  ================================================================================
option             meaning
=================  ================================================================================
``properties``     a settings file, which names the log; no other option is needed
``table``          the log's DynamoDB table, without a settings file
``logPartition``   the log partition; default "0"
``endpoint``       DynamoDB's endpoint; default AWS's own
``region``         the region; default boto3's
``unitsPerTask``   how many units a task reads; default 2000
=================  ================================================================================

A unit stands in the log until it is truncated; afterwards it is in the audit trail. The column ``deltas`` is a
JSON array in the source's order, or null for a unit whose deltas are truncated in part. A reader
needs no running owner of the log, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import orjson
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kainite import settings
from kainite.aws import clients as aws
from kainite.base.errors import KainiteError, SettingsError
from kainite.log.contract import LogStore
from kainite.log.state.loading import read_from_low
from kainite.log.state.unit_state import UnitState
from kainite.log.views.unit_table import LogRow, dispatched_row
from kainite.log.views.unit_times import load_units
from kainite.settings import AwsSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.executor.assemble import in_source_order
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import Slice, Wanted, ranges
from kainite_spark.plan.unit_part import UnitPart

SCHEMA = (
    "id bigint, uow string, number bigint, kind string, status string, conflict bigint, "
    "queue array<string>, instance int, cause string, count int, "
    "source_ms bigint, arrived_ms bigint, collected_ms bigint, dispatched_ms bigint, applied_ms bigint, deltas string"
)
_OPTIONS = frozenset({"properties", "table", "logpartition", "endpoint", "region", "unitspertask", "path"})
UNITS_PER_TASK = 2_000


_COLUMNS = attrgetter(
    "id", "uow", "number", "kind", "status", "conflict", "queue", "instance", "cause", "trans_out",
    "source_ms", "arrived_ms", "collected_ms", "dispatched_ms", "applied_ms",
)  # fmt: skip
"""Returns all columns of a row but ``deltas``, in the schema's order; ``trans_out`` is the column ``count``."""


@dataclass(frozen=True, slots=True)
class Log:
    """The place of a log partition."""

    aws: AwsSettings
    table: str
    partition: str

    def store(self) -> LogStore:
        return DynamoDBStore(aws.client("dynamodb", self.aws), self.table)


@dataclass
class UnitRange(InputPartition):
    """The part of the log that one task reads.

    Attributes:
        rows: the units, without their deltas.
        piece: the entries that hold the units' deltas.
        truncated: transaction ids of the units that have lost some of their deltas to truncation.
    """

    rows: tuple[LogRow, ...]
    piece: Slice
    truncated: frozenset[int]

    def __init__(self, rows: tuple[LogRow, ...], piece: Slice, truncated: frozenset[int]) -> None:
        super().__init__(rows[0].id)
        self.rows, self.piece, self.truncated = rows, piece, truncated


class LogDataSource(DataSource):
    """Implements the format of ``spark.read.format("kainite")``."""

    @classmethod
    def name(cls) -> str:
        return "kainite"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(log_of(self.options), int(self.options.get("unitsPerTask", UNITS_PER_TASK)))


class LogReader(DataSourceReader):
    """Plans a query by the log's index alone; each of its tasks then reads its own deltas."""

    def __init__(self, log: Log, units_per_task: int) -> None:
        self._log = log
        self._units_per_task = units_per_task

    def partitions(self) -> Sequence[UnitRange]:
        return plan_reading(self._log.store(), self._log.partition, self._units_per_task)

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        assert isinstance(partition, UnitRange)
        return read_rows(self._log.store(), self._log.partition, partition)


def log_of(options: Mapping[str, str]) -> Log:
    """Returns the place of the log that the options name.

    Raises:
        SettingsError: the options name no log, or an option is unknown.
    """
    given = {name.lower(): value for name, value in options.items()}
    if unknown := sorted(given.keys() - _OPTIONS):
        raise SettingsError(f"option {unknown[0]!r} is unknown to the format kainite; see kainite_spark.data_source")
    if "properties" in given:
        configured = settings.load(given["properties"], needs=("applicationName",))
        return Log(configured.aws, configured.log.table, configured.log.partition)
    if "table" not in given:
        raise SettingsError("the format kainite needs the option 'properties' (a settings file) or 'table'")
    where = AwsSettings(region=given.get("region"), dynamodb_endpoint=given.get("endpoint"))
    return Log(where, given["table"], given.get("logpartition", "0"))


def plan_reading(store: LogStore, partition: str, units_per_task: int) -> list[UnitRange]:
    """Shares all dispatched units of a log partition out to tasks; only the index is read."""
    first_id, log = read_from_low(store, partition, lambda low: (low, load_units(store, partition, low)))
    units = [(unit, dispatched_row(unit, log)) for unit in log.units.values()]
    return [_range(units[start : start + units_per_task], first_id) for start in range(0, len(units), units_per_task)]


def read_rows(store: LogStore, partition: str, units: UnitRange) -> Iterator[tuple[object, ...]]:
    """Yields the rows of some units, in log order.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    parts: dict[int, list[UnitPart]] = {}
    for _, part in read_slice(store, partition, units.piece):
        if isinstance(part, KainiteError):
            raise part
        parts.setdefault(part.unit, []).append(part)
    for row in units.rows:
        assert row.id is not None  # the unit is dispatched
        yield (*_COLUMNS(row), None if row.id in units.truncated else _json(parts[row.id]))


def _range(units: Sequence[tuple[UnitState, LogRow]], first_id: int) -> UnitRange:
    truncated = frozenset(unit.tid for unit, _ in units if unit.first_tid < first_id)
    wanted = sorted(
        Wanted(entry, unit.tid, number, 0)
        for unit, _ in units
        if unit.tid not in truncated
        for number, entry in enumerate(unit.entries)
    )
    piece = Slice(tuple(ranges([entry.entry for entry in wanted])) if wanted else (), tuple(wanted))
    return UnitRange(tuple(row for _, row in units), piece, truncated)


def _json(parts: Sequence[UnitPart]) -> str:
    in_order = sorted(parts, key=lambda part: part.number)
    deltas = in_source_order([delta for part in in_order for delta in part.deltas()])
    return orjson.dumps([delta.to_json() for delta in deltas]).decode()
