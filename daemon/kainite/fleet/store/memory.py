"""A coordination table in memory, for tests."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kainite.base.errors import FleetError
from kainite.fleet.model.records import HistoryLine, Lead, Picture, Record, Subject
from kainite.fleet.store.contract import MOST_CHANGES, CheckRecord, FleetCommit, PutRecord, RecordChange
from kainite.fleet.store.items import LEAD, key_of, picture_of, record_of, stamped, text_of


@dataclass(frozen=True, slots=True)
class _StoredRecord:
    version: str
    text: str


class MemoryFleetStore:
    """Keeps records as text, as the table in DynamoDB does, so that no two readers share an object."""

    def __init__(self) -> None:
        self._items: dict[str, _StoredRecord] = {}
        self._events: list[HistoryLine] = []
        self._writes = 0
        self._lock = threading.Lock()

    def create(self) -> None:
        """Does nothing: there is a table."""

    def read(self) -> Picture:
        with self._lock:
            return picture_of(record for key in self._items if (record := self._record(key)) is not None)

    def commit(self, commit: FleetCommit) -> bool:
        if (number := len(commit.changes) + len(commit.events)) > MOST_CHANGES:
            raise FleetError(f"a commit has {number} changes and events: a store takes {MOST_CHANGES}")
        with self._lock:
            if not all(self._holds(change) for change in commit.changes) or not self._leads(commit.led):
                return False
            for change in commit.changes:
                self._make(change)
            self._events += map(stamped, commit.events)
            return True

    def history(self, subject: Subject, name: str, limit: int) -> tuple[HistoryLine, ...]:
        with self._lock:
            found = [event for event in self._events if (event.subject, event.name) == (subject, name)]
        return tuple(reversed(found))[:limit]

    def _record(self, key: str) -> Record | None:
        return record_of(key, self._items[key].version, self._items[key].text)

    def _holds(self, change: RecordChange) -> bool:
        stored = self._items.get(key_of(change.record))
        return (stored.version if stored else "") == change.record.version

    def _leads(self, led: Lead | None) -> bool:
        if led is None:
            return True
        lead = self._record(LEAD) if LEAD in self._items else None
        return isinstance(lead, Lead) and lead.generation == led.generation and bool(lead.worker)

    def _make(self, change: RecordChange) -> None:
        key = key_of(change.record)
        if isinstance(change, CheckRecord):
            return
        if not isinstance(change, PutRecord):
            del self._items[key]
            return
        self._writes += 1
        self._items[key] = _StoredRecord(str(self._writes), text_of(change.record))
