"""A case's steps, asked in one of the ``json-lines`` dialects.

The dialect is the daemon's own state machine; this adds what a daemon has no use for: holding back the end of a request
and the answer to a checkpoint, and looking whether the child speaks meanwhile.
"""

from __future__ import annotations

import json
from typing import Final

from kainite.child.events import Action, ActionDone, CheckpointRequested, Emitted, Event, ProtocolViolation, SkippedLine
from kainite.child.json_lines.dialect import JsonLines
from kainite.child.turns import Turn
from kainite.conform.deltas import Deltas
from kainite.conform.granting import Asked, Granting
from kainite.conform.heard import Heard, Outcome
from kainite.conform.script import Call, Held
from kainite.conform.stage import LATE_S, Gone, Limits, Stage
from kainite.conform.transcript import shown
from kainite.kinesis.read.batch import Render

SHARD: Final = "shardId-000000000000"
MOST_CHECKPOINTS: Final = 100
MOST_TIMEOUTS: Final = 6
"""How many times the limit of one message a whole call may take."""


class JsonLinesTalk:
    """One child's conversation.

    Args:
        stage: the child.
        dialect: what the stage's output goes to.
        render: makes a ``processRecords`` line.
        limits: for each message of the child.
        held: what is held back, for ``limits.hold``.
    """

    def __init__(
        self, stage: Stage, dialect: JsonLines, render: Render, limits: Limits, held: Held | None = None
    ) -> None:
        self._stage = stage
        self._dialect = dialect
        self._render = render
        self._limits = limits
        hold = limits.hold or 0.0
        self._hold_request = hold if held is Held.REQUESTS else 0.0
        self._hold_reply = hold if held is Held.REPLIES else 0.0
        self._granting = Granting()
        self._began = 0.0
        self._asked: list[Asked] = []
        self._junk: list[str] = []
        self._emitted = 0
        self._deltas = Deltas()

    async def ask(self, call: Call) -> Heard:
        """Make one call, and listen until it is answered or there is no hope."""
        self._asked, self._junk, self._emitted, self._began = [], [], 0, self._stage.now()
        if self._spoke_unasked():
            return self._heard(call, Outcome.EARLY, self._stage.transcript.last_heard())
        self._granting.deliver(call)
        try:
            return await self._asked_and_heard(call)
        except Gone as gone:
            return self._heard(call, Outcome.GONE, gone.told(call.action.value))

    async def idle(self) -> Heard | None:
        """Whether it says something after the last answer."""
        try:
            spoke = await self._stage.until(lambda: self._spoke_unasked() or None, self._hold_request)
        except Gone:
            return None  # how a child ends is tried elsewhere
        return Heard("", Outcome.EARLY, self._stage.transcript.last_heard()) if spoke else None

    async def _asked_and_heard(self, call: Call) -> Heard:
        request = self._request(call)
        if request is None:
            return self._heard(call, Outcome.LEFT_OUT)
        if self._hold_request:
            early = await self._stage.say_held(request, self._next, self._hold_request)
            if early is not None:
                return self._heard(call, Outcome.EARLY, self._stage.transcript.last_heard())
        else:
            self._stage.say(request)
        self._began = self._stage.now()
        return await self._served(call)

    async def _served(self, call: Call) -> Heard:
        hasty = False
        while len(self._asked) < MOST_CHECKPOINTS and self._seconds() < MOST_TIMEOUTS * self._limits.timeout:
            match await self._stage.until(self._next, self._limits.timeout):
                case None:
                    return await self._silent(call)
                case ActionDone():
                    return self._heard(call, Outcome.HASTY if hasty else Outcome.ANSWERED)
                case ProtocolViolation(reason):
                    return self._heard(call, Outcome.VIOLATED, reason)
                case Emitted(line):
                    self._emitted += 1
                    self._deltas.emitted(line)
                    hasty = False
                case CheckpointRequested() as request:
                    hasty = await self._reply(call, request)
        return self._heard(call, Outcome.ENDLESS)

    async def _reply(self, call: Call, request: CheckpointRequested) -> bool:
        """Answer a checkpoint request; whether the child went on before it was."""
        held = await self._stage.until(lambda: self._dialect.held or None, self._hold_reply)
        asked = self._granting.answer(call, request, len(self._asked))
        self._asked.append(asked)
        self._stage.say(self._dialect.reply(request, asked.error))
        return bool(held)

    async def _silent(self, call: Call) -> Heard:
        """It does not answer: does it, when its input ends? Then it did not flush."""
        waited = self._seconds()
        self._stage.transcript.happened(f"no answer in {waited:.1f} s")
        self._stage.end_input()
        try:
            late = await self._stage.until(self._next, LATE_S)
        except Gone:
            late = None
        return self._heard(call, Outcome.SILENT if late is None else Outcome.FLUSHED_LATE, f"{waited:.0f} s")

    def _request(self, call: Call) -> bytes | None:
        match call.action:
            case Action.INITIALIZE:
                return self._dialect.initialize(SHARD, call.start, call.sub)
            case Action.PROCESS_RECORDS:
                line = self._render(call.records, call.behind)
                return self._dialect.process_records(_with_unknown_field(line) if call.unknown_field else line)
            case Action.LEASE_LOST:
                return self._dialect.lease_lost()
            case Action.SHARD_ENDED:
                return self._dialect.shard_ended()
            case Action.SHUTDOWN_REQUESTED:
                return self._dialect.shutdown_requested()

    def _next(self) -> Event | None:
        while isinstance(happened := self._dialect.next_event(), SkippedLine):
            self._junk.append(shown(happened.text.encode(), 100))
        return happened

    def _spoke_unasked(self) -> bool:
        """A message stands there, and it is not the child's turn."""
        return self._dialect.turn is not Turn.THEIRS and (self._next() is not None or self._dialect.held > 0)

    def _seconds(self) -> float:
        return self._stage.now() - self._began

    def _heard(self, call: Call, outcome: Outcome, detail: str = "") -> Heard:
        return Heard(call.action.value, outcome, detail, self._seconds(), tuple(self._asked), self._emitted,
                     self._deltas.taken(), tuple(self._junk))  # fmt: skip


def _with_unknown_field(line: bytes) -> bytes:
    message = json.loads(line)
    for record in message["records"]:
        record["encryptionType"] = "NONE"
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
