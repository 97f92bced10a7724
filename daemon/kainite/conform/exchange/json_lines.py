"""Drives a child through a case's steps in one of the ``json-lines`` dialects.

The dialect is the daemon's own state machine. The driver adds what a daemon has no use for: it holds back the end of a
request and the reply to a checkpoint request, and looks whether the child writes meanwhile.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

from kainite.base.record import Pieces
from kainite.child.events import Action, ActionDone, CheckpointRequested, Emitted, Event, ProtocolViolation, SkippedLine
from kainite.child.json_lines.dialect import JsonLines
from kainite.child.json_lines.misread import why_unreadable
from kainite.child.turns import Turn
from kainite.conform.cases.case import ScriptedCall, Withheld
from kainite.conform.exchange.checkpoint_answers import AnsweredCheckpoint, CheckpointAnswers
from kainite.conform.exchange.child_run import LATE_S, AnswerLimits, ChildGone, ChildRun
from kainite.conform.exchange.delta_check import DeltaCheck
from kainite.conform.exchange.step_result import Reaction, StepResult
from kainite.conform.exchange.transcript import shown
from kainite.kinesis.read.record_batch import Render

SHARD: Final = "shardId-000000000000"
MOST_CHECKPOINTS: Final = 100
MOST_TIMEOUTS: Final = 6
"""The limit of a whole call, as a multiple of the limit of one message."""


class JsonLinesDriver:
    """The driver of one child.

    Args:
        child: the child.
        dialect: takes the child's output.
        render: makes a ``processRecords`` line.
        limits: the limits for each message of the child.
        held: the part that is held back, for ``limits.hold`` seconds.
    """

    def __init__(
        self, child: ChildRun, dialect: JsonLines, render: Render, limits: AnswerLimits, held: Withheld | None = None
    ) -> None:
        self._child = child
        self._dialect = dialect
        self._render = render
        self._limits = limits
        hold = limits.hold or 0.0
        self._hold_request = hold if held is Withheld.REQUESTS else 0.0
        self._hold_reply = hold if held is Withheld.REPLIES else 0.0
        self._granting = CheckpointAnswers()
        self._began = 0.0
        self._asked: list[AnsweredCheckpoint] = []
        self._junk: list[str] = []
        self._heard: list[str] = []  # lines since the last request or message that are no messages
        self._emitted = 0
        self._deltas = DeltaCheck()

    async def ask(self, call: ScriptedCall) -> StepResult:
        """Makes one call, and reads until the child has answered it, or will never answer it."""
        self._asked, self._junk, self._emitted, self._began = [], [], 0, self._child.now()
        self._heard.clear()
        if self._spoke_unasked():
            return self._result(call, Reaction.EARLY, self._child.transcript.last_heard())
        self._granting.deliver(call)
        try:
            return await self._request_and_serve(call)
        except ChildGone as gone:
            return self._result(call, Reaction.GONE, gone.told(call.action.value))

    def given(self) -> Counter[bytes]:
        """Returns all deltas and ends of the child, and how often each was given."""
        return self._deltas.given()

    @property
    def settled(self) -> bool:
        """Tells whether the checkpoint covers all records, so that none of them is delivered again."""
        return self._granting.settled

    async def idle(self) -> StepResult | None:
        """Returns a result when the child writes something after its last answer."""
        try:
            spoke = await self._child.until(lambda: self._spoke_unasked() or None, self._hold_request)
        except ChildGone:
            return None  # other cases try how a child ends
        return StepResult("", Reaction.EARLY, self._child.transcript.last_heard()) if spoke else None

    async def _request_and_serve(self, call: ScriptedCall) -> StepResult:
        request = self._request(call)
        if request is None:
            return self._result(call, Reaction.LEFT_OUT)
        if self._hold_request:
            early = await self._child.write_held(request, self._next, self._hold_request)
            if early is not None:
                return self._result(call, Reaction.EARLY, self._child.transcript.last_heard())
        else:
            self._child.write(request)
        self._began = self._child.now()
        return await self._served(call)

    async def _served(self, call: ScriptedCall) -> StepResult:
        hasty = False
        while len(self._asked) < MOST_CHECKPOINTS and self._seconds() < MOST_TIMEOUTS * self._limits.timeout:
            match await self._child.until(self._next, self._limits.timeout):
                case None:
                    return await self._silent(call)
                case ActionDone():
                    return self._result(call, Reaction.HASTY if hasty else Reaction.ANSWERED)
                case ProtocolViolation(reason):
                    return self._result(call, Reaction.VIOLATED, reason)
                case Emitted(line):
                    self._emitted += 1
                    self._deltas.emitted(line)
                    hasty = False
                case CheckpointRequested() as request:
                    hasty = await self._reply(call, request)
        return self._result(call, Reaction.ENDLESS)

    async def _reply(self, call: ScriptedCall, request: CheckpointRequested) -> bool:
        """Replies to a checkpoint request; returns whether the child went on before it had the reply."""
        held = await self._child.until(lambda: self._dialect.held or None, self._hold_reply)
        asked = self._granting.answer(call, request, len(self._asked))
        self._asked.append(asked)
        self._child.write(self._dialect.reply(request, asked.error))
        return bool(held)

    async def _silent(self, call: ScriptedCall) -> StepResult:
        """Returns the result for a child that does not answer; one that answers at its input's end did not flush."""
        waited = self._seconds()
        self._child.transcript.happened(f"no answer in {waited:.1f} s")
        if self._heard:
            return self._result(call, Reaction.UNREADABLE, why_unreadable(self._heard))
        self._child.end_input()
        try:
            late = await self._child.until(self._next, LATE_S)
        except ChildGone:
            late = None
        return self._result(call, Reaction.SILENT if late is None else Reaction.FLUSHED_LATE, f"{waited:.0f} s")

    def _request(self, call: ScriptedCall) -> bytes | None:
        match call.action:
            case Action.INITIALIZE:
                return self._dialect.initialize(SHARD, call.start, call.sub)
            case Action.PROCESS_RECORDS:
                line = self._render(call.records, call.behind)
                return b"".join(
                    self._dialect.process_records(_with_unknown_field(line) if call.unknown_field else line)
                )
            case Action.LEASE_LOST:
                return self._dialect.lease_lost()
            case Action.SHARD_ENDED:
                return self._dialect.shard_ended()
            case Action.SHUTDOWN_REQUESTED:
                return self._dialect.shutdown_requested()

    def _next(self) -> Event | None:
        while isinstance(happened := self._dialect.next_event(), SkippedLine):
            self._heard.append(happened.text)
            self._junk.append(shown(happened.text.encode(), 100))
        if happened is not None:
            self._heard.clear()
        return happened

    def _spoke_unasked(self) -> bool:
        """Tells whether the child has written a message when it was not its turn."""
        return self._dialect.turn is not Turn.THEIRS and (self._next() is not None or self._dialect.held > 0)

    def _seconds(self) -> float:
        return self._child.now() - self._began

    def _result(self, call: ScriptedCall, reaction: Reaction, detail: str = "") -> StepResult:
        return StepResult(call.action.value, reaction, detail, self._seconds(), tuple(self._asked), self._emitted,
                     self._deltas.taken(), tuple(self._junk))  # fmt: skip


def _with_unknown_field(line: Pieces) -> Pieces:
    message = json.loads(b"".join(line))
    for record in message["records"]:
        record["encryptionType"] = "NONE"
    return (json.dumps(message, separators=(",", ":")).encode() + b"\n",)
