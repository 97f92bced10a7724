"""One unit of work of the log as a person looks at it: its row, its deltas, and the chains in which it waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from kainite.log.contract import LogStore
from kainite.log.format.deltas import delta_items
from kainite.log.format.entry import FragmentMeta, RefitMeta, UnitMeta
from kainite.log.state.chains import Chains
from kainite.log.state.loading import read_from_low
from kainite.log.views.unit_table import LogRow, read_present_rows

_CHAINED: Final = ("id", "uow", "status", "cause")


@dataclass(frozen=True, slots=True)
class UnitDetail:
    """A unit with its deltas, the units that it waits for, and those that wait for it.

    Attributes:
        row: the unit.
        deltas: the deltas as the log has them, in the order in which they came.
        before: the units that it waits for, the nearest first, and its root last.
        behind: the units that wait for it, directly or behind others, in the log's order.
    """

    row: LogRow
    deltas: Sequence[dict[str, Any]]
    before: Sequence[LogRow]
    behind: Sequence[LogRow]

    def as_json(self) -> dict[str, Any]:
        """Returns all fields as JSON; of the units before and behind, only their names and why they wait."""
        return {
            **asdict(self.row),
            "deltas": list(self.deltas),
            "before": [_chained(row) for row in self.before],
            "behind": [_chained(row) for row in self.behind],
        }

    def shown_deltas(self, most: int) -> list[str]:
        """Returns the first deltas, one line each."""
        return [_shown(delta) for delta in self.deltas[:most]]


def read_detail(store: LogStore, partition: str, name: str) -> UnitDetail | None:
    """Returns the unit with the given name or, if no unit has this name, transaction id; None if there is none.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    rows = read_present_rows(store, partition)
    row = next((row for row in reversed(rows) if row.uow == name), None)
    if row is None and name.isdecimal():
        row = next((row for row in rows if row.id == int(name)), None)
    if row is None:
        return None
    by_id = {each.id: each for each in rows if each.id is not None}
    chains = Chains((tid, each.status, each.cause) for tid, each in by_id.items())
    before, behind = ((), ()) if row.id is None else (chains.before(row.id), chains.behind(row.id))
    return UnitDetail(
        row,
        _deltas(store, partition, row),
        [by_id[tid] for tid in before if tid in by_id],
        [by_id[tid] for tid in behind],
    )


def _deltas(store: LogStore, partition: str, row: LogRow) -> list[dict[str, Any]]:
    """Returns the deltas of a unit; deltas that were judged again replace the first ones."""

    def read(low: int) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        for batch in store.read_batches(partition, low, strong=True):
            for tid, entry in batch.entries_from(low):
                match entry.meta:
                    case RefitMeta(unit=unit) if unit == row.id:
                        deltas = delta_items(entry)
                    case UnitMeta(uow=uow) if uow == row.uow and tid == row.id:
                        deltas += delta_items(entry)
                    case FragmentMeta(uow=uow) if uow == row.uow:
                        deltas += delta_items(entry)
        return deltas

    return read_from_low(store, partition, read)


def read_deltas_at(store: LogStore, partition: str, entries: Iterable[int], most: int) -> list[dict[str, Any]]:
    """Returns the deltas in the entries with the given ids, in order; reads no other slots.

    Args:
        store, partition: the log.
        entries: transaction ids, such as :attr:`~kainite.log.state.unit_state.UnitState.entries`.
        most: so many deltas, and what else stands in the last entry that is read, are enough.

    Raises:
        LogCorruptError: the log does not read back as written, or the deltas cannot be read.
    """
    wanted = sorted(set(entries))
    deltas: list[dict[str, Any]] = []
    while wanted and len(deltas) < most:
        for batch in store.read_batches(partition, wanted[0], wanted[0], strong=True):
            found = [tid for tid in wanted if tid <= batch.last_id]
            for tid in found:
                deltas += delta_items(batch.entries[tid - batch.first_id])
            wanted = wanted[len(found) :]
            break
        else:
            break  # the log has truncated it
    return deltas


def _chained(row: LogRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _CHAINED}


def _shown(delta: dict[str, Any]) -> str:
    parts = (f"{name} {orjson.dumps(delta[name]).decode()}" for name in ("key", "row", "before") if delta.get(name))
    ordinal = f"{delta['ordinal']}: " if delta.get("ordinal") is not None else ""
    return f"{ordinal}{delta.get('op')} {delta.get('table')} {' '.join(parts)}"
