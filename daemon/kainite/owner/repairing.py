"""Dispatches a repair: rows as the source had them at one point, which the target has otherwise.

The request (``kainite verify --repair``; :mod:`kainite.replicate.repair`) is ``{"action": "repair", "name": NEW,
"since": ID, "rows": COUNT, "deltas": PACKED, "by": WHO, "why": WHY}``. ``since`` is the transaction id of the first
unit that committed in the source at the point or later. Units are dispatched in the order of their commits, so the
units below ``since`` are those before the point, and the others, now and in future, those behind it. The deltas are
the state that the units below ``since`` leave of their rows, whatever the log's end is by now.

The repair comes behind all units that are in the log. That is its right place if and only if none of those from
``since`` on has touched one of its rows: then the rows are at the log's end as they were at the point. So it is
refused, and nothing is appended, where

* a unit from ``since`` on, committed or not, meets it: one writes what the other writes or reads, or their signatures
  cannot be compared. The repair would put an older value over a newer one;
* a unit below ``since`` meets it that does not go on by itself (failed, blocked, to be discarded): it would be applied
  over the repair, or the repair would wait for it;
* nothing is known of ``since``: the log has no such unit yet, or has truncated it;
* units go in another order than that of their numbers, or nobody compares signatures;
* the name is used, or a delta cannot be read, does not fit the target's catalogue, or comes twice.

Units that come behind the repair are behind the point, and those of them that touch its rows wait for it as for any
unit before them. A unit of which not all rows are known meets every repair.

Where a unit is known to be resolved, its signatures have left the owner's memory. They are read back from the log, from
``since`` on; what is not durable yet is not resolved either. Nothing is resolved between that read and the decision:
the upkeep takes outcomes and answers requests one after the other.

=========================  ==========================================  ================================================
after the step             the log has                                 a crash
=========================  ==========================================  ================================================
request in the inbox       nothing                                     the next owner judges it, on its own state
units read back            nothing                                     the same
batch appended             the repair, its record, and the id of       the next owner answers again. Copies of the
                           the request among the answered ones         request find the name used
=========================  ==========================================  ================================================

A refusal because of other units names the signatures that met (``met``), so that the other rows can be repaired.
"""

from __future__ import annotations

import re
from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import DeltaError, LogRequestError
from kainite.log.collecting.unit_entries import note_scheme
from kainite.log.contract import LogStore
from kainite.log.format.entry import EntryKind, OperationKind, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.journal import Journal
from kainite.log.state.unit_state import UnitState
from kainite.log.state.units import UnitFold
from kainite.owner.correcting import admitted, is_used
from kainite.owner.recording import record
from kainite.owner.requests import OK, refusal
from kainite.settings import Isolation, UowEnd, UowOrder, UowSettings
from kainite.uow.fragment import Fragment
from kainite.uow.scheme import Comparisons
from kainite.uow.signing import Signing
from kainite.uow.touches import Touched

REPAIR: Final = "repair"

MOST_REPAIR: Final = 16 * 2**20
"""The most bytes of a repair's deltas, as JSON."""

MOST_SINCE: Final = 500_000
"""How many entries of the log are looked at again at most: a point that is older is not worth it."""

_MOST_MET: Final = 2_000
"""The most signatures of a refusal: an answer is an item of the log's table."""

_NAME: Final = re.compile(r"repair-[0-9A-Za-z/-]{1,100}", re.ASCII)
_ID: Final = re.compile("[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class UnitsSince:
    """The units that the log has from one transaction id on, resolved ones too.

    Attributes:
        since: the transaction id.
        units: the units; empty where ``since`` is truncated, or too old.
        refused: why they were not read; empty where they were.
    """

    since: int
    units: Mapping[int, UnitState] = field(default_factory=dict)
    refused: str = ""


def packed(deltas: bytes) -> str:
    """Returns a repair's deltas, a JSON array, as a request has them."""
    return b85encode(compressed(deltas)).decode()


def read_since(store: LogStore, partition: str, request: Mapping[str, str], low: int, next_id: int) -> UnitsSince:
    """Returns the units from a repair's ``since`` on, as far as they are durable.

    Args:
        store, partition: the log.
        request: the repair.
        low: the log's low-water mark, which does not change meanwhile.
        next_id: the id of the log's next entry.

    Raises:
        LogCorruptError, LogUnavailableError: the log cannot be read.
    """
    told = request.get("since", "")
    since = int(told) if _ID.fullmatch(told) else -1
    if not low <= since < next_id:
        return UnitsSince(since, refused="the log has no unit behind the point, or has it no more: compare again")
    if next_id - since > MOST_SINCE:
        return UnitsSince(since, refused=f"the point is {next_id - since} entries of the log ago: compare again")
    fold = UnitFold(keep_resolved=True)
    for batch in store.read_batches(partition, since, data=False, strong=True):
        for tid, entry in batch.entries_from(since):
            fold.apply(tid, entry, batch.time_ms)
    return UnitsSince(since, fold.units)


def repair(
    journal: Journal,
    request_id: str,
    request: Mapping[str, str],
    rules: UowSettings,
    signing: Signing | None,
    seen: UnitsSince,
) -> Mapping[str, str]:
    """Writes the entries of a repair, if it has its right place at the log's end; returns the answer.

    Args:
        journal: gets the entries.
        request_id, request: as they stand in the inbox.
        rules: the settings by which units are collected and ordered.
        signing: judges the deltas; None where the target's catalogue is not known.
        seen: the units from the point on; no unit was resolved since they were read.
    """
    if request_id in journal.state.answered:
        return {"result": OK, "message": "done before"}
    name, about = request.get("name", ""), f"{request.get('rows', '?')} rows by unit {request.get('name', '')}"
    try:
        fragment = _judged(journal, request, rules, signing, seen)
        answer = _met(journal, fragment, signing, seen)
    except (LogRequestError, DeltaError) as error:
        answer = refusal(str(error))
    else:
        if answer is None:
            note_scheme(journal, fragment.scheme)
            meta, tid = UnitMeta(name, fragment.count), journal.state.next_id
            journal.write(EntryKind.UNIT, meta, fragment.touched, fragment.piece, fragment.signed)
            answer = {"result": OK, "message": f"unit {name} is in the log", "tid": str(tid)}
            journal.write(EntryKind.STATUS, StatusMeta(requests=(request_id,)))
    record(journal, request_id, request, OperationKind.REPAIR, about, answer)
    return answer


def _judged(
    journal: Journal, request: Mapping[str, str], rules: UowSettings, signing: Signing | None, seen: UnitsSince
) -> Fragment:
    """Returns the deltas as they were judged.

    Raises:
        LogRequestError, DeltaError: the repair is not taken, whatever other units do.
    """
    numbered = rules.order is UowOrder.DENSE and rules.end is not UowEnd.WATERMARK
    if not numbered or rules.isolation is not Isolation.SERIALIZE:
        raise LogRequestError("a repair needs uowOrder = dense and uowIsolation = serialize")
    if signing is None:
        raise LogRequestError("the target's catalogue is not known here")
    if seen.refused:
        raise LogRequestError(seen.refused)
    if seen.since not in seen.units and seen.since not in journal.state.units:
        raise LogRequestError(f"entry {seen.since} of the log is no unit")
    name = request.get("name", "")
    if not _NAME.fullmatch(name) or is_used(journal.state, name):
        raise LogRequestError(f"the name {name!r} is used, or none of a repair")
    try:
        text = decompressed(b85decode(request.get("deltas", "")), MOST_REPAIR).decode()
    except ValueError as error:
        raise DeltaError(f"the deltas cannot be read: {error}") from error
    return admitted(name, text, signing)


def _met(journal: Journal, fragment: Fragment, signing: Signing | None, seen: UnitsSince) -> Mapping[str, str] | None:
    """Returns the refusal of a repair that other units meet; None where none does."""
    assert signing is not None
    schemes = Comparisons()
    for scheme_id, scheme in {**journal.state.schemes, signing.scheme.id: signing.scheme}.items():
        schemes.add(scheme_id, scheme)
    found = [meeting for unit in _others(journal, seen) if (meeting := _meets(unit, fragment.touched, schemes))]
    if not found:
        return None
    signatures = sorted({token for meeting in found for token in meeting.signatures})[:_MOST_MET]
    first = found[0]
    why = "has touched rows of it since the point" if first.unit.tid >= seen.since else "touches rows of it"
    told = f"unit {first.unit.uow}, which is {first.unit.status}, {why}"
    by_rows = all(meeting.signatures for meeting in found)
    return {**refusal(told), "met": ",".join(map(str, signatures)) if by_rows else ""}


def _others(journal: Journal, seen: UnitsSince) -> Iterable[UnitState]:
    """Yields the units that a repair must not meet."""
    present = journal.state.units
    for tid, unit in present.items():
        if tid >= seen.since or unit.status is not UnitStatus.IN_PROGRESS:
            yield unit
    yield from (unit for tid, unit in seen.units.items() if tid not in present)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A unit that meets the repair, and by which signatures; none where these cannot be compared."""

    unit: UnitState
    signatures: frozenset[int] = frozenset()


def _meets(unit: UnitState, repair_touches: Touched, schemes: Comparisons) -> _Meeting | None:
    mine = repair_touches
    if (
        unit.fault is not None
        or schemes.parted(unit.scheme, unit.tables, mine.scheme, mine.tables)
        or (unit.unsigned and schemes.connected(mine.scheme, unit.unsigned, mine.tables))
        or (unit.scheme is None and not set(unit.tables).isdisjoint(mine.tables))
    ):
        return _Meeting(unit)
    common = (unit.written & mine.written) | (unit.written & mine.read) | (unit.read & mine.written)
    return _Meeting(unit, frozenset(common)) if common else None
