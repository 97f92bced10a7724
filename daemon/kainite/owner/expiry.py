"""Refuses what people have asked of the log so long ago that nobody expects it any more. Pure.

A request waits in the inbox while no owner is at work. One that has waited for more than :data:`EXPIRES_S` is answered
"expired" and not carried out: no unit is discarded, and no pause ends, hours after a person has given up waiting.

===========================  =======================  ==================================================================
the request                  the log                  the next owner, after a crash
===========================  =======================  ==================================================================
waits, and is young          nothing                  carries it out
was begun (many units)       its record, ``asked``    goes on with it, however old it is: some of its units are resolved
was carried out              its id is answered       answers again, however old it is
waits for too long           nothing                  refuses it
was refused as expired       its record, refused      refuses it again, with the same record: it has become older
===========================  =======================  ==================================================================

Invariant: a request whose refusal as expired is durable is never carried out, as long as the owners' clocks do not
stand further behind each other than it was late. The age is the owner's time less the asker's: the request of an asker
whose clock is behind is refused too early, and they are told; that of one whose clock is ahead expires as much later.

Records of what was done elsewhere, and what completes an operation that is under way (``forget-stream``), do not
expire; nor does a request that does not say when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kainite.log.format.entry import OperationKind, OperationResult
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.observe.check import spoken
from kainite.owner.bulk import KINDS
from kainite.owner.correcting import CORRECT
from kainite.owner.pausing import PAUSE, RESUME
from kainite.owner.recording import about_of, asked_ms, record
from kainite.owner.repairing import REPAIR
from kainite.owner.requests import refusal
from kainite.owner.skipping import SKIP

EXPIRES_S: Final = 900.0
"""Seconds: longer than an owner's restart and a change of owners take, shorter than a person remembers."""

HAND_OVER: Final = "hand-over"
EXPIRING: Final[Mapping[str, OperationKind]] = {
    **KINDS,
    CORRECT: OperationKind.CORRECT,
    REPAIR: OperationKind.REPAIR,
    SKIP: OperationKind.SKIP,
    PAUSE: OperationKind.PAUSE,
    RESUME: OperationKind.RESUME,
    HAND_OVER: OperationKind.HAND_OVER,
}
"""The operation of each action that expires."""


def has_expired(state: FoldedLog, request_id: str, request: Mapping[str, str], now_ms: int) -> bool:
    """Tells whether a request has waited for too long, and nothing of it is carried out yet."""
    asked = asked_ms(request)
    if request.get("action") not in EXPIRING or asked is None or now_ms - asked <= EXPIRES_S * 1000:
        return False
    known = state.operations.find(request_id)
    begun = known is not None and known.result in (OperationResult.ASKED, OperationResult.DONE)
    return not begun and request_id not in state.answered


def expire(journal: Journal, request_id: str, request: Mapping[str, str], now_ms: int) -> Mapping[str, str]:
    """Writes the record of a request that has expired; returns the answer."""
    waited = spoken((now_ms - (asked_ms(request) or now_ms)) / 1000)
    answer = refusal(
        f"expired: it waited {waited} for an owner of the log, more than {spoken(EXPIRES_S)}, and was not carried out; "
        "ask again if it is still wanted"
    )
    record(journal, request_id, request, EXPIRING[request["action"]], about_of(request), answer)
    return answer
