"""Drives a child through a case's steps in the markers dialect: messages for a transform or a loader.

The exchange is the daemon's own state machine. The driver adds what a daemon has no use for: it holds back the end of
a request, writes an EOM after EOB, and looks whether the child writes meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kainite.base.markers import Markers
from kainite.child.events import Send
from kainite.child.markers.exchange import Answer, Exchange, ExchangeEvent, Violation, bad_message
from kainite.conform.cases.case import Messages, Withheld
from kainite.conform.exchange.child_run import LATE_S, AnswerLimits, ChildGone, ChildRun
from kainite.conform.exchange.delta_check import DeltaCheck
from kainite.conform.exchange.step_result import Reaction, StepResult


class MarkersDriver:
    """The driver of one child.

    Args:
        child: the child.
        exchange: takes the child's output.
        markers, batch_size: the markers and the batch size of the exchange.
        limits: the limits for each answer.
        held: whether the ends of requests are held back, for ``limits.hold`` seconds.
        for_next_stage: the child's messages go to another stage's stream, and need not be deltas.
    """

    def __init__(
        self,
        child: ChildRun,
        exchange: Exchange,
        markers: Markers,
        batch_size: int,
        limits: AnswerLimits,
        held: Withheld | None = None,
        *,
        for_next_stage: bool = False,
    ) -> None:
        self._child = child
        self._exchange = exchange
        self._markers = markers
        self._batch_size = batch_size
        self._requests = 0  # writes to the child since its last answer
        self._limits = limits
        self._hold = (limits.hold or 0.0) if held is Withheld.REQUESTS else 0.0
        self._began = 0.0
        self._output_before = 0  # bytes, when the last request was written
        self._slowest = 0.0
        self._messages: list[bytes] = []
        self._deltas = DeltaCheck(for_next_stage=for_next_stage)
        self._batch_ended = False  # the last request ended with EOB

    async def ask(self, step: Messages) -> StepResult:
        """Sends the messages, and reads until the child has answered all, or will never answer them."""
        self._messages, self._slowest, self._began = [], 0.0, self._child.now()
        if (early := await self._unasked(0.0)) is not None:
            return early
        self._exchange.send([self._markers.message(payload) for payload in step.payloads])
        try:
            return await self._served(step)
        except ChildGone as gone:
            return self._result(step, Reaction.GONE, gone.told(_asked(step)))

    def given(self) -> Counter[bytes]:
        """Returns all deltas and ends of the child, and how often each was given."""
        return self._deltas.given()

    @property
    def settled(self) -> bool:
        """Returns True: the daemon makes the checkpoint, so none of the records is delivered again."""
        return True

    async def idle(self) -> StepResult | None:
        """Returns a result when the child writes something after its last answer."""
        return await self._unasked(self._hold)

    async def _unasked(self, limit: float) -> StepResult | None:
        try:
            unasked = await self._child.until(self._exchange.next_event, limit)
        except ChildGone:
            return None  # other cases try how a child ends
        match unasked:
            case Violation(reason):
                return StepResult("", Reaction.EARLY, reason)
        return None

    async def _served(self, step: Messages) -> StepResult:
        answered = 0
        while answered < max(len(step.payloads), 1):
            match await self._child.until(self._exchange.next_event, self._limits.timeout):
                case None:
                    return await self._silent(step)
                case Send(self._markers.eob) if self._requests >= self._batch_size:
                    return self._result(step, Reaction.VIOLATED, self._one_too_many())
                case Send(data):
                    if await self._say(data, step) is not None:
                        return self._result(step, Reaction.EARLY, self._child.transcript.last_heard())
                case Answer(_, count, messages):
                    answered += max(count, 1)
                    self._requests = 0
                    self._take(step, messages)
                    self._slowest = max(self._slowest, self._child.now() - self._began)
                case Violation(reason):
                    return self._result(step, Reaction.VIOLATED, reason)
        return self._result(step, Reaction.ANSWERED)

    async def _say(self, data: bytes, step: Messages) -> ExchangeEvent | None:
        self._batch_ended = data.endswith(self._markers.eob)
        self._requests += 1
        if step.eom_after_eob and self._batch_ended:
            data += self._markers.eom
        early: ExchangeEvent | None = None
        if self._hold:
            early = await self._child.write_held(data, self._exchange.next_event, self._hold)
        else:
            self._child.write(data)
        self._began, self._output_before = self._child.now(), self._child.output_bytes
        return early

    def _take(self, step: Messages, messages: Sequence[bytes]) -> None:
        self._messages += messages
        for message in messages if step.loading is None else ():
            if bad_message(message) is None:
                self._deltas.answered(message)

    def _one_too_many(self) -> str:
        """Returns the complaint about one BNC too many.

        The daemon accepts such a BNC, because a child may leave bad messages out of its count; here are none.
        """
        return f"wrote BNC after {self._batch_size} good messages, which are a whole batch: answer them, and write EOP"

    async def _silent(self, step: Messages) -> StepResult:
        """Returns the result for a child that does not answer; tries an EOM, and then the end of its input."""
        waited = self._child.now() - self._began
        self._child.transcript.happened(f"no answer in {waited:.1f} s")
        reaction = self._how_silent(step)
        try:
            if self._batch_ended and await self._answers_eom():
                reaction = Reaction.NEEDS_EOM
            else:
                self._child.end_input()
                if await self._child.until(self._exchange.next_event, LATE_S) is not None:
                    reaction = Reaction.FLUSHED_LATE
        except ChildGone:
            self._child.transcript.happened("it is gone, without an answer")
        return self._result(step, reaction, f"{waited:.0f} s")

    def _how_silent(self, step: Messages) -> Reaction:
        if self._child.output_bytes != self._output_before:
            return Reaction.UNFINISHED
        if self._batch_ended:
            return Reaction.IGNORES_EOB if step.payloads else Reaction.NO_EMPTY_ANSWER
        return Reaction.NO_BAD_ANSWER if step.bad else Reaction.SILENT

    async def _answers_eom(self) -> bool:
        self._child.write(self._markers.eom)
        return isinstance(await self._child.until(self._answer, LATE_S), Answer)

    def _answer(self) -> Answer | Violation | None:
        """Returns the child's answer, or how it breaks the protocol; writes nothing when a BNC asks for more."""
        while (happened := self._exchange.next_event()) is not None:
            if not isinstance(happened, Send):
                return happened
        return None

    def _result(self, step: Messages, reaction: Reaction, detail: str = "") -> StepResult:
        rejects = self._deltas.taken()
        return StepResult(
            _asked(step), reaction, detail, self._slowest, rejects=rejects, messages=tuple(self._messages)
        )


def _asked(step: Messages) -> str:
    return {0: "an empty batch", 1: "a message"}.get(len(step.payloads), f"{len(step.payloads)} messages")
