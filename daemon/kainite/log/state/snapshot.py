"""A snapshot: a folded log as bytes, the data of a CONTROL entry.

A snapshot is JSON, written and read by this module alone; ``version`` tells its forms apart. A loaded
snapshot is the state that all entries before it add up to.
"""

from __future__ import annotations

from typing import Any

import orjson

from kainite.base.errors import LogCorruptError
from kainite.base.position import Position
from kainite.log.format.entry import Fault, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.recent_units import RecentUnits
from kainite.log.state.units import OpenUnit, UnitState
from kainite.uow.delta import UnitKind
from kainite.uow.identity import join_digests, split_digests

VERSION = 1


def dump(state: FoldedLog) -> bytes:
    """Returns the state as bytes."""
    return orjson.dumps(
        {
            "version": VERSION,
            "next_id": state.next_id,
            "positions": {shard: [str(at.sequence), at.sub] for shard, at in state.positions.items()},
            "open": list(state.open.values()),
            "ready": list(state.ready.items()),
            "units": list(state.units.values()),
            "window": state.recent.window,
            "recent": state.recent.items(),
            "next_number": state.next_number,
            "through": state.through,
            "answered": list(state.answered),
        },
        default=_plain,
    )


def _plain(value: set[int] | set[bytes]) -> object:
    """Returns a set, which orjson does not serialize by itself, as a list of numbers or as text of digests."""
    if all(isinstance(member, int) for member in value):
        return sorted(value)
    return join_digests(sorted(member for member in value if isinstance(member, bytes)))


def load(data: bytes) -> FoldedLog:
    """Returns the state that :func:`dump` was given.

    Raises:
        LogCorruptError: the data is no snapshot, or has a version that this release cannot read.
    """
    try:
        fields = orjson.loads(data)
        if fields["version"] != VERSION:
            raise LogCorruptError(f"the log's snapshot has version {fields['version']}; this release reads {VERSION}")
        return _state(fields)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise LogCorruptError(f"the log's snapshot cannot be read: {error}") from error


def _state(fields: dict[str, Any]) -> FoldedLog:
    state = FoldedLog(fields["window"])
    state.next_id = fields["next_id"]
    state.positions = {shard: Position(int(number), sub) for shard, (number, sub) in fields["positions"].items()}
    state.open.update((unit["uow"], _open_unit(unit)) for unit in fields["open"])
    state.ready = dict(fields["ready"])
    state.units.update((unit["tid"], _unit(unit)) for unit in fields["units"])
    state.recent = RecentUnits(fields["window"], fields["recent"])
    state.next_number = fields["next_number"]
    state.through = fields["through"]
    state.answered = dict.fromkeys(fields["answered"])
    for unit in state.units.values():
        state.conflicts.add(unit.tid, unit.written, unit.read)
    return state


def _open_unit(fields: dict[str, Any]) -> OpenUnit:
    sets = {name: set(fields[name]) for name in ("ordinals", "written", "read")}
    digests = set(split_digests(fields.get("digests") or ""))
    return OpenUnit(**{**fields, **sets, "digests": digests, "kind": UnitKind(fields["kind"])})


def _unit(fields: dict[str, Any]) -> UnitState:
    converted = {
        "kind": UnitKind(fields["kind"]),
        "status": UnitStatus(fields["status"]),
        "written": frozenset(fields["written"]),
        "read": frozenset(fields["read"]),
        "fragments": tuple(fields["fragments"]),
        "shards": tuple(fields["shards"]),
        "fault": Fault(word) if (word := fields.get("fault")) else None,
    }
    return UnitState(**{**fields, **converted})
