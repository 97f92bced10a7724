"""Drives an extractor through a case's steps. The extraction is the daemon's own state machine."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kainite.child.markers.exchange import Violation
from kainite.child.markers.extraction import TRY_LATER, CycleDone, Extracted, Extraction, ExtractionEvent, Unfinished
from kainite.conform.cases.case import Extract, Withheld
from kainite.conform.exchange.child_run import LATE_S, AnswerLimits, ChildGone, ChildRun
from kainite.conform.exchange.step_result import Reaction, StepResult

_ASKED: Final = "a cycle"
_AWAY: Final = " (status 75 says that the source is away: kainite extract waits for it)"


class ExtractionDriver:
    """The driver of one extractor.

    Args:
        child: the extractor.
        extraction: takes its output.
        limits: the limits for each message.
        held: whether the ends of requests are held back, for ``limits.hold`` seconds.

    Attributes:
        settled: whether none of the extractor's records will come again.
    """

    settled = True

    def __init__(
        self, child: ChildRun, extraction: Extraction, limits: AnswerLimits, held: Withheld | None = None
    ) -> None:
        self._child = child
        self._extraction = extraction
        self._limits = limits
        self._hold = (limits.hold or 0.0) if held is Withheld.REQUESTS else 0.0
        self._messages: list[bytes] = []
        self._began = 0.0

    def given(self) -> Counter[bytes]:
        """Returns nothing: an extractor gives messages, and no deltas."""
        return Counter()

    async def ask(self, step: Extract) -> StepResult:
        """Asks for a cycle, or waits for the end of a plain extractor."""
        self._messages, self._began = [], self._child.now()
        try:
            if step.request is not None:
                if (early := self._extraction.next_event()) is not None:
                    return self._result(Reaction.EARLY, self._child.transcript.last_heard() or str(early))
                if await self._say(self._extraction.request(step.request)) is not None:
                    return self._result(Reaction.EARLY, self._child.transcript.last_heard())
            return await self._listen(plain=step.request is None)
        except ChildGone as gone:
            return self._gone(gone, plain=step.request is None)

    async def idle(self) -> StepResult | None:
        """Returns a result when the extractor writes something after its last answer."""
        try:
            unasked = await self._child.until(self._next, self._hold)
        except ChildGone:
            return None
        return StepResult("", Reaction.EARLY, unasked.reason) if isinstance(unasked, Violation) else None

    async def _say(self, request: bytes) -> ExtractionEvent | None:
        if self._hold:
            return await self._child.write_held(request, self._next, self._hold)
        self._child.write(request)
        return None

    async def _listen(self, *, plain: bool) -> StepResult:
        while True:
            match await self._child.until(self._next, self._limits.timeout):
                case None:
                    return await self._silent(plain=plain)
                case Extracted(payload):
                    self._messages.append(payload)
                case CycleDone():
                    return self._result(Reaction.ANSWERED)
                case Unfinished(payload):
                    return self._result(Reaction.UNFINISHED, f"{len(payload)} bytes behind the last message")
                case Violation(reason):
                    return self._result(Reaction.VIOLATED, reason)

    async def _silent(self, *, plain: bool) -> StepResult:
        waited = f"{self._limits.timeout:.0f} s"
        self._child.transcript.happened(f"silent for {waited}")
        if plain:
            how = f"had not ended, and was silent for {waited}: a plain extractor ends when it has written all"
            return self._result(Reaction.VIOLATED, how)
        self._child.end_input()
        try:
            if await self._child.until(self._next, LATE_S) is not None:
                return self._result(Reaction.FLUSHED_LATE, waited)
        except ChildGone:
            self._child.transcript.happened("it is gone, without an answer")
        return self._result(Reaction.UNFINISHED if self._messages else Reaction.SILENT, waited)

    def _gone(self, gone: ChildGone, *, plain: bool) -> StepResult:
        if plain and self._child.status == 0:
            return self._result(Reaction.ANSWERED)
        away = _AWAY if self._child.status == TRY_LATER else ""
        return self._result(Reaction.GONE, gone.told("its run" if plain else _ASKED) + away)

    def _next(self) -> ExtractionEvent | None:
        return self._extraction.next_event()

    def _result(self, reaction: Reaction, detail: str = "") -> StepResult:
        seconds = self._child.now() - self._began
        return StepResult(_ASKED, reaction, detail, seconds, messages=tuple(self._messages))
