"""The log as the white paper's table: a row a unit of work, with all its columns (seed 002)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from kainite.log.format.entry import Entry, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.store.contract import LogStore

COLLECTING = "collecting"
"""Shown as the status of a unit that is not complete: it has not entered conflict resolution yet."""


@dataclass(slots=True)
class LogRow:
    """One unit of work.

    Attributes:
        conflict: id of the unit in progress that it conflicted with when it was dispatched.
        id: its transaction id; None while it is being collected.
        uow: its name.
        queue: the shards that its deltas came through.
        instance: the job instance that applied it (the paper's ETL JI ID).
        signature: the target tables and keys that it writes, ``table(key, …)``.
        trans_in: how many deltas its source announced; None while no end has come.
        trans_out: how many of them have been collected.
        status: as :class:`~kainite.log.format.entry.UnitStatus` has it, or ``collecting``.
    """

    uow: str
    conflict: int | None = None
    id: int | None = None
    queue: list[str] = field(default_factory=list)
    instance: int | None = None
    signature: list[str] = field(default_factory=list)
    trans_in: int | None = None
    trans_out: int = 0
    status: str = COLLECTING
    number: int | None = None
    kind: str = "normal"
    cause: str | None = None
    offending: str | None = None

    @property
    def tables(self) -> set[str]:
        return {signature.partition("(")[0] for signature in self.signature}


class LogView:
    """Folds entries, with their data, into rows."""

    def __init__(self) -> None:
        self._open: dict[str, LogRow] = {}
        self._units: dict[int, LogRow] = {}

    def rows(self) -> Iterator[LogRow]:
        """Dispatched units by id, then those that are being collected."""
        yield from (self._units[tid] for tid in sorted(self._units))
        yield from self._open.values()

    def apply(self, tid: int, entry: Entry) -> None:
        match entry.meta:
            case FragmentMeta() as meta:
                self._fragment(entry, meta)
            case UnitMeta() as meta:
                self._unit(tid, entry, meta)
            case StatusMeta(outcomes=outcomes):
                for outcome in outcomes:
                    self._outcome(outcome)

    def _fragment(self, entry: Entry, meta: FragmentMeta) -> None:
        row = self._open.setdefault(meta.uow, LogRow(meta.uow))
        row.queue += [meta.shard] if meta.shard not in row.queue else []
        row.signature += signatures(entry.data)
        row.trans_out += meta.count
        row.cause = "; ".join([*filter(None, [row.cause]), *meta.causes]) or None
        row.offending = row.offending or meta.offending
        if meta.end_count is not None:
            row.trans_in, row.number, row.kind = meta.end_count, meta.number, meta.unit_kind

    def _unit(self, tid: int, entry: Entry, meta: UnitMeta) -> None:
        row = self._open.pop(meta.uow, None) or LogRow(meta.uow)
        row.signature += signatures(entry.data)
        row.id, row.conflict, row.queue = tid, meta.conflict, list(meta.shards)
        row.trans_in, row.trans_out = row.trans_in if meta.cause else meta.count, meta.count
        row.number, row.kind = meta.number, meta.kind
        row.status = UnitStatus.FAILED if meta.cause else UnitStatus.IN_PROGRESS
        row.cause, row.offending = meta.cause, meta.offending
        self._units[tid] = row

    def _outcome(self, outcome: Outcome) -> None:
        row = self._units.get(outcome.tid)
        if row is not None:
            row.status, row.cause = outcome.status, outcome.cause
            row.instance = row.instance if outcome.instance is None else outcome.instance


def read_rows(store: LogStore, partition: str, first_id: int | None = None) -> list[LogRow]:
    """All rows from ``first_id``, or from the log's low-water mark, to the tail."""
    if first_id is None:
        head = store.read_head(partition)
        first_id = head.low_water_mark if head else 0
    view = LogView()
    for batch in store.read_batches(partition, first_id, strong=True):
        for tid, entry in enumerate(batch.entries, batch.first_id):
            if tid >= first_id:  # the batch that holds the first may begin before it
                view.apply(tid, entry)
    return list(view.rows())


def signatures(data: bytes) -> list[str]:
    """``table(key)`` of each delta in an entry's data, each once, in order."""
    deltas: list[dict[str, Any]] = orjson.loads(data) if data else []
    shown = (
        f"{delta['table']}({', '.join(str(value) for value in delta.get('key', {}).values())})" for delta in deltas
    )
    return list(dict.fromkeys(shown))
