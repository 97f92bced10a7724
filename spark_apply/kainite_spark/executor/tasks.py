"""The two kinds of Spark tasks: one reads entries of the log, the other applies a job instance's units.

Both functions depend on their arguments alone and return the results of all their work. Spark may run them again, or
twice at once, for the same micro-batch: reading changes nothing, the target knows by its acknowledgements which units
it has, and its fence refuses a task that is too late.

Kainite's own errors are returned as data (:class:`~kainite_spark.plan.micro_batch.TaskResult`). If they
were raised, Spark would try the task three times more in new worker processes, which helps neither
with a target that is away nor with a lost fence. Only unforeseen errors are raised.
"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from kainite.aws.clients import client
from kainite.base import logs
from kainite.base.errors import KainiteError, LogCorruptError
from kainite.log.contract import LogStore
from kainite.settings import AwsSettings
from kainite.settings.credentials import Provider
from kainite.store.dynamodb import DynamoDBStore
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.assemble import assemble, in_target
from kainite_spark.executor.group_commit import GroupCounts, apply_units
from kainite_spark.plan.given_parts import unpacked
from kainite_spark.plan.micro_batch import Slice, TaskResult
from kainite_spark.plan.unit_part import UnitPart, too_large, unit_part
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Target, TargetSession
from kainite_spark.targets.fence import Fence

RoutedPart = tuple[int, UnitPart | KainiteError]
"""A job instance, and a part of one of its units or the error that kept it from being read."""


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings that tasks need; two values are equal if they belong to the same run, and have the same target.

    Attributes:
        run: the name of this run of the apply job, which no other run has.
        aws, table: the DynamoDB table of the log.
        partition: the log partition.
        target, options: the target to which units are applied, and the options for it.
        version: a number that differs for each ``target`` and ``aws`` of the run: catalogue and credentials change.
    """

    run: str
    aws: AwsSettings = field(compare=False)
    table: str = field(compare=False)
    partition: str = field(compare=False)
    target: Target = field(compare=False)
    options: ApplyOptions = field(compare=False)
    version: int = 0

    def retargeted(self, target: Target) -> Self:
        """Returns the settings with another target."""
        return replace(self, target=target, version=self.version + 1)

    def with_credentials(self, credentials: Provider) -> Self:
        """Returns the settings with AWS credentials; returns the same object if it has these credentials already."""
        if self.aws.dynamodb.credentials == (credentials,):
            return self
        dynamodb = replace(self.aws.dynamodb, credentials=(credentials,))
        return replace(self, aws=replace(self.aws, dynamodb=dynamodb), version=self.version + 1)


_SESSIONS: dict[TaskSettings, TargetSession] = {}


@functools.lru_cache(maxsize=1)
def store_of(settings: TaskSettings) -> LogStore:
    """Returns the log's store, one for each Python worker process, which Spark uses for many tasks."""
    return DynamoDBStore(client("dynamodb", settings.aws), settings.table)


def session_of(settings: TaskSettings) -> TargetSession:
    """Returns the connection to the target, one for each Python worker process; sets up the process's logging."""
    if not logging.getLogger().hasHandlers():
        logs.configure()
    if settings not in _SESSIONS:
        # A session keeps the statements that it has made from its target's catalogue.
        for outdated in list(_SESSIONS):
            _SESSIONS.pop(outdated).close()
        _SESSIONS[settings] = _target_of(settings).connect()
    return _SESSIONS[settings]


def _target_of(settings: TaskSettings) -> Target:
    """Returns the target; several targets at once decide in the log, as this process reaches it."""
    target = settings.target
    if isinstance(target, AtomicTarget):
        return target.deciding_by(Decisions(store_of(settings), settings.partition))
    return target


def read_slice(store: LogStore, partition: str, piece: Slice, most_bytes: int | None = None) -> Iterator[RoutedPart]:
    """Yields the wanted parts of a slice, each with its job instance; reads no part that came with the slice.

    Of a unit with more than ``most_bytes`` bytes of deltas the first parts alone have their deltas, the others a fault.
    If the log cannot be read, yields the error for every job instance that wanted an entry.
    """
    if piece.given is not None:
        parts = unpacked(piece.units, piece.given)
        yield from ((wanted.instance, part) for wanted, part in zip(piece.wanted, parts, strict=True))
        return
    try:
        found = _read(store, partition, piece, most_bytes, strong=False)
        if len(found) < len(piece.wanted):
            found = _read(store, partition, piece, most_bytes, strong=True)
        _all_there(partition, piece, found)
    except KainiteError as error:
        yield from ((instance, error) for instance in {wanted.instance for wanted in piece.wanted})
        return
    for wanted in piece.wanted:
        yield wanted.instance, found[wanted.entry]


def apply_parts(
    connect: Callable[[], TargetSession],
    fence: Fence,
    options: ApplyOptions,
    instance: int,
    read: Iterable[UnitPart | KainiteError],
) -> TaskResult:
    """Assembles a job instance's units and applies them on the session that ``connect`` gives."""
    parts: list[UnitPart] = []
    for part in read:
        if isinstance(part, KainiteError):
            return TaskResult(instance, (), part)
        parts.append(part)
    counts = GroupCounts()
    try:
        units = in_target(assemble(parts, options.unit_bytes), options.only)
        outcomes = apply_units(connect(), fence, units, options, instance, counts=counts)
        return TaskResult(instance, outcomes, None, counts.groups, counts.splits)
    except KainiteError as error:
        return TaskResult(instance, (), error, counts.groups, counts.splits)


def _read(
    store: LogStore, partition: str, piece: Slice, most_bytes: int | None, *, strong: bool
) -> dict[int, UnitPart]:
    held: Counter[int] = Counter()
    wanted = {entry.entry: entry for entry in piece.wanted}
    found: dict[int, UnitPart] = {}
    for first, last in piece.ranges:
        for batch in store.read_batches(partition, first, last, strong=strong):
            for tid, entry in enumerate(batch.entries, batch.first_id):
                if tid in wanted:
                    part = unit_part(wanted[tid].unit, wanted[tid].number, entry)
                    held[part.unit] += len(part.data)
                    if most_bytes is not None and held[part.unit] > most_bytes:
                        part = part._replace(data=b"", fault=too_large(most_bytes))
                    found[tid] = part
    return found


def _all_there(partition: str, piece: Slice, found: dict[int, UnitPart]) -> None:
    missing = [entry for entry in piece.wanted if entry.entry not in found]
    if missing:
        raise LogCorruptError(
            f"log partition {partition} has no entry {missing[0].entry}, which unit {missing[0].unit} needs"
        )
