"""A case's steps, asked in the markers dialect: messages for a T or L stage.

The exchange is the daemon's own state machine; this adds what a daemon has no use for: holding back the end of a
request, an EOM after EOB, and looking whether the child speaks meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.markers import Markers
from kainite.child.events import Send
from kainite.child.markers.exchange import Answer, Exchange, ExchangeEvent, Violation, bad_message
from kainite.conform.deltas import Deltas
from kainite.conform.heard import Heard, Outcome
from kainite.conform.script import Held, Messages
from kainite.conform.stage import LATE_S, Gone, Limits, Stage


class MarkersTalk:
    """One child's conversation.

    Args:
        stage: the child.
        exchange: what the stage's output goes to.
        markers, batch_size: the exchange's.
        limits: for each answer.
        held: whether the ends of requests are held back, for ``limits.hold``.
    """

    def __init__(
        self,
        stage: Stage,
        exchange: Exchange,
        markers: Markers,
        batch_size: int,
        limits: Limits,
        held: Held | None = None,
    ) -> None:
        self._stage = stage
        self._exchange = exchange
        self._markers = markers
        self._batch_size = batch_size
        self._requests = 0  # since the last answer
        self._limits = limits
        self._hold = (limits.hold or 0.0) if held is Held.REQUESTS else 0.0
        self._began = 0.0
        self._heard_before = 0  # bytes, when the last request was written
        self._slowest = 0.0
        self._messages: list[bytes] = []
        self._deltas = Deltas()
        self._batch_ended = False  # the last request ended with EOB

    async def ask(self, step: Messages) -> Heard:
        """Send the messages, and listen until all are answered or there is no hope."""
        self._messages, self._slowest, self._began = [], 0.0, self._stage.now()
        if (early := await self._unasked(0.0)) is not None:
            return early
        self._exchange.send([self._markers.message(payload) for payload in step.payloads])
        try:
            return await self._served(step)
        except Gone as gone:
            return self._heard(step, Outcome.GONE, gone.told(_asked(step)))

    async def idle(self) -> Heard | None:
        """Whether it says something after the last answer."""
        return await self._unasked(self._hold)

    async def _unasked(self, limit: float) -> Heard | None:
        try:
            unasked = await self._stage.until(self._exchange.next_event, limit)
        except Gone:
            return None  # how a child ends is tried elsewhere
        match unasked:
            case Violation(reason):
                return Heard("", Outcome.EARLY, reason)
        return None

    async def _served(self, step: Messages) -> Heard:
        answered = 0
        while answered < max(len(step.payloads), 1):
            match await self._stage.until(self._exchange.next_event, self._limits.timeout):
                case None:
                    return await self._silent(step)
                case Send(self._markers.eob) if self._requests >= self._batch_size:
                    return self._heard(step, Outcome.VIOLATED, self._one_too_many())
                case Send(data):
                    if await self._say(data, step) is not None:
                        return self._heard(step, Outcome.EARLY, self._stage.transcript.last_heard())
                case Answer(_, count, messages):
                    answered += max(count, 1)
                    self._requests = 0
                    self._take(messages)
                    self._slowest = max(self._slowest, self._stage.now() - self._began)
                case Violation(reason):
                    return self._heard(step, Outcome.VIOLATED, reason)
        return self._heard(step, Outcome.ANSWERED)

    async def _say(self, data: bytes, step: Messages) -> ExchangeEvent | None:
        self._batch_ended = data.endswith(self._markers.eob)
        self._requests += 1
        if step.eom_after_eob and self._batch_ended:
            data += self._markers.eom
        early: ExchangeEvent | None = None
        if self._hold:
            early = await self._stage.say_held(data, self._exchange.next_event, self._hold)
        else:
            self._stage.say(data)
        self._began, self._heard_before = self._stage.now(), self._stage.heard
        return early

    def _take(self, messages: Sequence[bytes]) -> None:
        self._messages += messages
        for message in messages:
            if bad_message(message) is None:
                self._deltas.answered(message)

    def _one_too_many(self) -> str:
        """The daemon lets that pass, for a worker may leave bad messages out of its count; there are none here."""
        return f"wrote BNC after {self._batch_size} good messages, which are a whole batch: answer them, and write EOP"

    async def _silent(self, step: Messages) -> Heard:
        """It does not answer: does it, after an EOM, or when its input ends?"""
        waited = self._stage.now() - self._began
        self._stage.transcript.happened(f"no answer in {waited:.1f} s")
        outcome = Outcome.SILENT if self._stage.heard == self._heard_before else Outcome.UNFINISHED
        try:
            if self._batch_ended and await self._answers_eom():
                outcome = Outcome.NEEDS_EOM
            else:
                self._stage.end_input()
                if await self._stage.until(self._exchange.next_event, LATE_S) is not None:
                    outcome = Outcome.FLUSHED_LATE
        except Gone:
            self._stage.transcript.happened("it is gone, without an answer")
        return self._heard(step, outcome, f"{waited:.0f} s")

    async def _answers_eom(self) -> bool:
        self._stage.say(self._markers.eom)
        return await self._stage.until(self._exchange.next_event, LATE_S) is not None

    def _heard(self, step: Messages, outcome: Outcome, detail: str = "") -> Heard:
        rejects = self._deltas.taken()
        return Heard(_asked(step), outcome, detail, self._slowest, rejects=rejects, messages=tuple(self._messages))


def _asked(step: Messages) -> str:
    return {0: "an empty batch", 1: "a message"}.get(len(step.payloads), f"{len(step.payloads)} messages")
