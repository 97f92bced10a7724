"""Pauses and resumes the apply job: requests ``{"action": "pause" | "resume", "by": WHO, "why": WHY}``.

Both are decided on the folded log, whose latest PAUSE that was carried out holds until the next RESUME
(:mod:`kainite.log.state.operations`). The record is the pause: one entry, so neither can be without the other.

=========================  ============================  ==============================================================
after the step             units                         a crash
=========================  ============================  ==============================================================
request in the inbox       are applied                   the next owner decides it
PAUSE appended             of the micro-batch that is    the next owner answers again. The apply job reads the pause
                           under way are applied         from the log, now or after its restart
apply job has read it      wait; none is tried, and the  the next apply job finds the pause in the folded log, before
                           target is left alone          it selects units
RESUME appended            wait                          the same: the apply job reads it
apply job has read it      are applied                   –
=========================  ============================  ==============================================================

The daemons go on collecting into a paused log until its backlog is full (``applyBacklogBytes``); then reading waits, as
for an apply job that is down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kainite.log.format.entry import EntryKind, OperationKind, StatusMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.recording import record
from kainite.owner.requests import OK, refusal

PAUSE: Final = "pause"
RESUME: Final = "resume"


def pause_or_resume(journal: Journal, request_id: str, request: Mapping[str, str]) -> Mapping[str, str]:
    """Writes the entries of a request, if they change anything; returns the answer."""
    state = journal.state
    if request_id in state.answered:
        return {"result": OK, "message": "done before"}
    pauses = request.get("action") == PAUSE
    answer = _paused(state) if pauses else _resumed(state)
    record(journal, request_id, request, OperationKind.PAUSE if pauses else OperationKind.RESUME, "", answer)
    journal.write(EntryKind.STATUS, StatusMeta(requests=(request_id,)))
    return answer


def _paused(state: FoldedLog) -> Mapping[str, str]:
    pause = state.operations.pause
    if pause is not None:
        return refusal(f"applying is paused already, by {pause.who}")
    return {"result": OK, "message": "applying is paused when the micro-batch that is under way has ended"}


def _resumed(state: FoldedLog) -> Mapping[str, str]:
    pause = state.operations.pause
    if pause is None:
        return refusal("applying is not paused")
    return {"result": OK, "message": f"applying goes on; it was paused by {pause.who}"}
