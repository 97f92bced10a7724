"""Dispatches a correction that a person has made from a failed unit: ``kainite uow correct``.

The request is ``{"action": "correct", "uow": NAME, "name": NEW, "deltas": JSON, "by": WHO, "why": WHY}``. The deltas
are judged as a child's emitted lines are (:mod:`kainite.uow.admission`), by the target's catalogue as it is now. The
correction comes into the log as a whole: one UNIT entry behind all others, of kind ``correction``, without a shard. It
replaces the failed unit as any correction does (:mod:`kainite.log.state.corrections`).

It is refused, and nothing is appended, where

* the unit is not failed, or a correction of it is under way;
* the name is one that the log knows, or keeps for stand-ins: a unit under a used name counts as a copy;
* a delta cannot be read, does not fit the catalogue, or comes twice;
* it does not certainly write a row of the failed unit: the unit would stay failed;
* units go in the order of numbers or of commit times, of which a person's correction has none.

The request ``check-correction``, with the same fields, is judged in the same way and appends nothing: for a person who
has edited deltas, and has not confirmed them yet.

=========================  ==========================================  ================================================
after the step             the log has                                 a crash
=========================  ==========================================  ================================================
request in the inbox       nothing                                     the next owner judges it
batch appended             the correction, its record, and the id of   the next owner answers again. Copies of the
                           the request among the answered ones         request find the name used
=========================  ==========================================  ================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from kainite.base.errors import DeltaError, LogRequestError
from kainite.log.collecting.unit_entries import note_scheme
from kainite.log.format.entry import EntryKind, OperationKind, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.corrections import correction_of, replaces
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.unit_state import UnitState
from kainite.owner.recording import record
from kainite.owner.requests import OK, refusal, unit_asked
from kainite.settings import Isolation, UowEnd, UowOrder, UowSettings
from kainite.uow import exact_json
from kainite.uow.admission import Admission
from kainite.uow.delta import UnitKind, uow_of
from kainite.uow.fragment import Fragment
from kainite.uow.scheme import Comparisons
from kainite.uow.signing import Signing

CORRECT: Final = "correct"
CHECK: Final = "check-correction"

_KEPT: Final = ("missing:", "number:", "reserved:", "repair-")
"""Names that begin so are for units that stand in for others, and for repairs."""


def correct(
    journal: Journal, request_id: str, request: Mapping[str, str], rules: UowSettings, signing: Signing | None
) -> Mapping[str, str]:
    """Writes the entries of a correction, if it is sound; returns the answer.

    Args:
        journal: gets the entries.
        request_id, request: as they stand in the inbox.
        rules: the settings by which units are collected and ordered.
        signing: judges the deltas; None where the target's catalogue is not known.
    """
    if request_id in journal.state.answered:
        return {"result": OK, "message": "done before"}
    unit, name = unit_asked(journal.state, request), request.get("name", "")
    try:
        judged = _judged(journal.state, unit, request, rules, signing)
    except (LogRequestError, DeltaError) as error:
        answer = refusal(str(error))
    else:
        _dispatch(journal, name, judged)
        behind = f"correction {name} is in the log; when it is applied, unit {unit.uow if unit else ''} is discarded"
        answer = {"result": OK, "message": behind}
        journal.write(EntryKind.STATUS, StatusMeta(requests=(request_id,)))
    about = f"unit {request.get('uow', '')} by {name}"
    record(journal, request_id, request, OperationKind.CORRECT, about, answer)
    return answer


def check(
    state: FoldedLog, request: Mapping[str, str], rules: UowSettings, signing: Signing | None
) -> Mapping[str, str]:
    """Returns what :func:`correct` would answer; the state stays as it is.

    Args:
        state: the log's.
        request, rules, signing: as of :func:`correct`.
    """
    unit = unit_asked(state, request)
    try:
        judged = _judged(state, unit, request, rules, signing)
    except (LogRequestError, DeltaError) as error:
        return refusal(str(error))
    them = f"{judged.count} deltas fit" if judged.count != 1 else "the delta fits"
    return {"result": OK, "message": f"{them} the target's catalogue"}


def _judged(
    state: FoldedLog, unit: UnitState | None, request: Mapping[str, str], rules: UowSettings, signing: Signing | None
) -> Fragment:
    """Returns the correction's deltas as they were judged.

    Raises:
        LogRequestError, DeltaError: the correction is not taken.
    """
    in_log_order = rules.order is UowOrder.ARRIVAL and rules.end is not UowEnd.WATERMARK
    if not in_log_order or rules.isolation is not Isolation.SERIALIZE:
        raise LogRequestError("units go in another order than that of the log: let the source send the correction")
    if signing is None:
        raise LogRequestError("the target's catalogue is not known here")
    if unit is None or unit.status is not UnitStatus.FAILED:
        raise LogRequestError(f"no unit {request.get('uow')!r} is failed; see kainite log show")
    if (other := correction_of(state, unit)) is not None:
        raise LogRequestError(f"unit {unit.uow} has a correction, {other.uow}, which is {other.status}")
    name = uow_of({"uow": request.get("name")})
    if name.startswith(_KEPT) or is_used(state, name):
        raise LogRequestError(f"the name {name!r} is used, and a unit under a used name counts as a copy: take another")
    fragment = admitted(name, request.get("deltas", ""), signing)
    _check_that_it_replaces(state, unit, fragment, signing)
    return fragment


def is_used(state: FoldedLog, name: str) -> bool:
    """Tells whether the log knows a unit of this name."""
    return name in state.open or name in state.recent or state.find(name) is not None


def admitted(name: str, text: str, signing: Signing) -> Fragment:
    """Returns a person's deltas as they are admitted from a child.

    Args:
        name: the name of their unit.
        text: a JSON array.
        signing: judges them.

    Raises:
        DeltaError: a delta cannot be read, does not fit the catalogue, or comes twice.
    """
    try:
        items: Any = exact_json.loads(text.encode())
    except ValueError as error:
        raise DeltaError(f"the deltas are no JSON: {error}") from error
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise DeltaError("the deltas are a JSON array of objects, one at least")
    admission = Admission(signing)
    for item in items:
        admission.feed(orjson.dumps({"deltas": [{**item, "uow": name}]}))
    (fragment,) = admission.take(name)
    bad = next(iter((*fragment.rejects, *fragment.misfits)), None)
    if bad is not None:
        raise DeltaError(f"{bad.cause}: {bad.line[:200]}")
    if fragment.ends or len(set(fragment.identities)) != len(items):
        raise DeltaError("a delta comes twice, or is none: each needs an ordinal of its own where two are equal")
    return fragment


def _check_that_it_replaces(state: FoldedLog, unit: UnitState, fragment: Fragment, signing: Signing) -> None:
    schemes = Comparisons()
    for scheme_id, scheme in {**state.schemes, signing.scheme.id: signing.scheme}.items():
        schemes.add(scheme_id, scheme)
    meta = UnitMeta("", fragment.count, kind=UnitKind.CORRECTION)
    if not replaces(UnitState.dispatched(state.next_id, meta, fragment.touched), unit, schemes):
        raise LogRequestError(
            f"it does not certainly write a row of unit {unit.uow}, which would stay failed: a correction names such a "
            "row by its primary key"
        )


def _dispatch(journal: Journal, name: str, fragment: Fragment) -> None:
    note_scheme(journal, fragment.scheme)
    meta = UnitMeta(name, fragment.count, kind=UnitKind.CORRECTION)
    journal.write(EntryKind.UNIT, meta, fragment.touched, fragment.piece, fragment.signed)
