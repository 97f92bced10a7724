"""Decides requests to the owner (``kainite uow retry``, ``kainite uow discard``) on the log's state.

A request is ``{"action": "retry" | "discard", "uow": NAME, "by": WHO}``; in place of its name the unit's transaction id
may be given, unless a unit is called so. With ``target`` it is about the unit's part in this one of several targets,
which must have failed there: no apply job tries it. Many units are selected by a filter (:mod:`kainite.owner.bulk`).
Its answer is written after the log entry that carries it out, which stands in one batch with the record of who asked,
and why (:mod:`kainite.owner.recording`). A request whose answer was lost is recognised by its id
and answered again without being carried out twice.

A failed unit is discarded at once: no apply job tries it. Any other unit may be in a task of the apply job at this
moment, so the owner only appends that it is to be discarded. The apply job carries that out:

=========================  ==========================  =========================================================
after the step             the log shows the unit as   a crash
=========================  ==========================  =========================================================
request in the inbox       in progress, or blocked     the next owner decides it
DISCARDING appended        discarding                  the next owner answers again; the apply job reads it
apply job has read it      discarding                  as above: the next apply job finds it in the folded log
the fence is closed        discarding                  no task applies the unit any more, and acknowledgements of
                                                       unresolved units stay: the next apply job closes its own
                                                       fence and finds the same acknowledgement, or none
outcome in P:outcomes      discarding                  read back by the next apply job, copied by the next owner
outcome copied             discarded, or committed     none
=========================  ==========================  =========================================================

The apply job decides by the target alone: an acknowledgement means committed, none means discarded. It tries no unit
between the step of reading and that of closing (:mod:`kainite_spark.driver.job`). A target that does not answer delays
the decision, which no restart forgets.

The retry of a misfit is decided on its deltas as they were just judged anew (:mod:`kainite.owner.refit`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.chains import Chains
from kainite.log.state.corrections import correction_of
from kainite.log.state.folded import FoldedLog
from kainite.log.state.unit_state import UnitState
from kainite.uow.signing import SignedDeltas

OK = "ok"
ASKED = "asked"
"""The result of a discard that the apply job carries out; to ask again tells whether it has."""

REFUSED = "refused"
_ID: Final = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class RequestDecision:
    """The outcome to append (None for a refusal) and the answer."""

    outcome: Outcome | None
    answer: Mapping[str, str]


def decide(
    state: FoldedLog, request_id: str, request: Mapping[str, str], judged: SignedDeltas | None = None
) -> RequestDecision:
    """Decides one request on the present state; never raises, because anybody may have written the request.

    Args:
        state: the folded log.
        request_id: the request's id.
        request: the request.
        judged: the unit's deltas as they were just judged again, if the unit is a misfit.
    """
    if request_id in state.answered:
        return RequestDecision(None, {"result": OK, "message": "done before"})
    unit = unit_asked(state, request)
    if unit is None:
        return _refuse(f"no unit {request.get('uow')!r} is failed or in progress; see kainite log show")
    return decide_on(state, unit, request, judged)


def decide_on(
    state: FoldedLog, unit: UnitState, request: Mapping[str, str], judged: SignedDeltas | None = None
) -> RequestDecision:
    """Decides a request on one unresolved unit; arguments as :func:`decide`."""
    if (target := request.get("target", "")) and (why := _not_alone(state, unit, target)):
        return _refuse(why)
    match request.get("action"):
        case "retry":
            return _retry(state, unit, request, judged)
        case "discard" if target:
            return _discard_part(unit, request, target)
        case "discard":
            return _discard(state, unit, request)
        case action:
            return _refuse(f"unknown action {action!r}")


def unit_asked(state: FoldedLog, request: Mapping[str, str]) -> UnitState | None:
    """Returns the unresolved unit that a request is about; None when there is none."""
    name = request.get("uow", "")
    unit = state.find(name)
    return state.units.get(int(name)) if unit is None and _ID.fullmatch(name) else unit


def _retry(
    state: FoldedLog, unit: UnitState, request: Mapping[str, str], judged: SignedDeltas | None
) -> RequestDecision:
    if unit.malformed:
        return _refuse(
            f"unit {unit.uow} can never be applied ({unit.cause}); discard it, and send it again, corrected, "
            "under another name: its own is taken"
        )
    if unit.status is not UnitStatus.FAILED:
        return _refuse(f"unit {unit.uow} is {unit.status}, not failed" + _waits(state, unit))
    if unit.obstacle is not None:
        return _refuse(f"unit {unit.uow} cannot be applied yet: {unit.obstacle}; it goes on collecting, or discard it")
    if (correction := correction_of(state, unit)) is not None:
        return _refuse(
            f"unit {unit.uow} has a correction, {correction.uow} (id {correction.tid}), which is "
            f"{_everywhere(state, correction)} and may be applied already. When it is, {unit.uow} is discarded; if it "
            f"fails, retry {unit.uow} then"
        )
    if unit.fault is not None and judged is None:
        return _refuse(
            f"unit {unit.uow} cannot be judged now ({unit.cause}): the target's catalogue has not been read; "
            "retry it later"
        )
    if judged is not None and judged.misfits:
        return _refuse(
            f"unit {unit.uow} does not fit the target's catalogue ({judged.misfits[0][1]}); migrate the target, write "
            "catalogueFile again if one is used, and retry it"
        )
    outcome = Outcome(unit.tid, UnitStatus.IN_PROGRESS, cause=f"retried by {request.get('by', 'somebody')}")
    failed = request.get("target") or ", ".join(state.targets.with_status(unit.tid, UnitStatus.FAILED))
    where = f" in {failed}" if failed else ""
    return RequestDecision(outcome, {"result": OK, "message": f"unit {unit.uow} will be applied again{where}"})


def _not_alone(state: FoldedLog, unit: UnitState, target: str) -> str | None:
    """Returns why a unit's part in one target cannot be decided on by itself; None where it can."""
    parts = state.targets.units.get(unit.tid, {})
    if not state.targets.assignment:
        return "units have one status in all targets here (targetCommit), or there is one target: leave --target out"
    if target not in parts:
        return f"unit {unit.uow} has no part in {target}, but in {', '.join(parts) or 'no target yet'}"
    if parts[target].status is not UnitStatus.FAILED:
        return (
            f"the part of unit {unit.uow} in {target} is {parts[target].status}, not failed; without --target a discard"
            " gives up whatever is not applied yet"
        )
    if unit.malformed or unit.fault is not None or unit.obstacle is not None:
        return f"no target has tried unit {unit.uow} ({unit.cause}): decide on it as a whole, without --target"
    return None


def _discard_part(unit: UnitState, request: Mapping[str, str], target: str) -> RequestDecision:
    outcome = Outcome(unit.tid, UnitStatus.DISCARDED, cause=f"discarded by {request.get('by', 'somebody')}")
    message = f"the part of unit {unit.uow} in {target} is discarded; its other targets have theirs, or will"
    return RequestDecision(outcome, {"result": OK, "message": message})


def _discard(state: FoldedLog, unit: UnitState, request: Mapping[str, str]) -> RequestDecision:
    by = f"discarded by {request.get('by', 'somebody')}"
    if unit.status is UnitStatus.FAILED and state.targets.has_only_failed(unit.tid):
        outcome = Outcome(unit.tid, UnitStatus.DISCARDED, cause=by)
        has_it = ", ".join(state.targets.with_status(unit.tid, UnitStatus.COMMITTED))
        stays = f"; its part in {has_it} is applied, and stays" if has_it else ""
        return RequestDecision(outcome, {"result": OK, "message": f"unit {unit.uow} is discarded{stays}"})
    asked = {
        "result": ASKED,
        "message": f"unit {unit.uow} is {unit.status}: before its next micro-batch the apply job discards it, unless "
        "the target has it already",
    }
    if unit.status is UnitStatus.DISCARDING:
        return RequestDecision(None, asked)
    was = f"; it was {unit.status}" + (f": {unit.cause}" if unit.cause else "")
    return RequestDecision(Outcome(unit.tid, UnitStatus.DISCARDING, cause=by + was), asked)


def _everywhere(state: FoldedLog, unit: UnitState) -> str:
    """Returns a unit's status, of several targets that in each of them."""
    parts = state.targets.units.get(unit.tid, {})
    return ", ".join(f"{part.status} in {name}" for name, part in parts.items()) or unit.status


def _waits(state: FoldedLog, unit: UnitState) -> str:
    """Returns words that name the unit at the end of a blocked unit's chain: resolving this unit resolves all."""
    if unit.status is not UnitStatus.BLOCKED or not unit.cause:
        return ""
    chains = Chains((each.tid, each.status, each.cause) for each in state.units.values())
    before = chains.before(unit.tid)
    if not before:
        return f": {unit.cause}; resolve that one"
    root = state.units.get(before[-1])
    if root is None:
        return f": it waits for id {before[-1]}, which is resolved; it goes on by itself"
    behind = len(chains.behind(root.tid))
    waits = f": it waits for unit {root.uow} (id {root.tid}), which is {root.status}"
    if root.status is not UnitStatus.FAILED:
        return f"{waits}, and goes on by itself after it"
    return f"{waits} ({root.cause}) and holds back {behind} unit{'s' * (behind != 1)}; resolve that one"


def _refuse(message: str) -> RequestDecision:
    return RequestDecision(None, refusal(message))


def refusal(message: str) -> Mapping[str, str]:
    """Returns the answer to a request that is not carried out."""
    return {"result": REFUSED, "message": message}
