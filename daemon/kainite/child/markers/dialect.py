"""The ``markers`` dialect as shard children speak it (T stage): records out as messages, deltas back. Without I/O.

Theory of operation
===================

The child knows nothing of shards and checkpoints. This state machine answers KCL's actions in its place.

====================  =======================================================================================
initialize, leaseLost  done at once
processRecords         each record's payload is a message for :class:`~kainite.child.markers.exchange.Exchange`;
                       each message of an answer becomes an emit line; done when all messages are answered
shutdownRequested      a checkpoint of all answered records
shardEnded             a checkpoint of the shard's end
====================  =======================================================================================

Turns are those of every dialect (:data:`kainite.child.turns.TURNS`).

Events come in this order: the rejections of records that are not sent; for each request :class:`Send` (several for a
worker-driven batch), its emit lines and rejections, and its checkpoint, if it has one; then the call's checkpoint, and
ActionDone.

Invariants
==========

* No part of an answer comes out before its EOP. No checkpoint passes a record that is neither answered nor rejected.
* A record is sent, or rejected with a cause, or the conversation breaks: no record is passed over in silence.
* A message that is not a delta rejects its own unit alone, because each message has an emit line of its own.
* Memory is bounded: all answers of a call together have at most ``max_emitted`` bytes.
* When a child dies, its call is dropped as a whole: its records are delivered again, the answered ones too, and nothing
  that was emitted for them was durable (:mod:`kainite.worker.call_rules`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from kainite.base.errors import MessageRefusedError
from kainite.base.position import Position
from kainite.base.record import Pieces
from kainite.child.events import (
    Action,
    ActionDone,
    CheckpointRequested,
    Emitted,
    Event,
    ProtocolViolation,
    Rejected,
    Send,
    Span,
)
from kainite.child.markers.emit_line import emit_line
from kainite.child.markers.exchange import MAX_ANSWER, Answer, Exchange, Violation, bad_message
from kainite.child.markers.records import RecordMessage, read_records
from kainite.child.turns import TURNS, Turn, TurnMove
from kainite.settings import CheckpointAt, MarkersSettings, OnBadMessage, OnEmptyAnswer

_SHOWN = 2_000


class MarkersDialect:
    """One conversation with one child. See the module's theory of operation.

    Args:
        settings: markers, batches and policies.
        clock: seconds, for checkpoints at intervals.
        max_emitted: most bytes of emit lines that one call may bring.
    """

    def __init__(
        self,
        settings: MarkersSettings,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_emitted: int = MAX_ANSWER,
    ) -> None:
        self.turn = Turn.OURS
        self.action: Action | None = None
        self.has_answered = False
        self._settings = settings
        self._markers = settings.markers
        self._exchange = Exchange(self._markers, settings.batching, batch_size=settings.batch_size)
        self._clock = clock
        self._checkpointed_at = clock()
        self._events: deque[Event] = deque()
        self._records: list[RecordMessage] = []  # the records that were sent or will be
        self._last: Position | None = None  # the last of the call's records, rejected ones included
        self._emitted = 0
        self._max_emitted = max_emitted

    @property
    def held(self) -> int:
        """Returns how many bytes of the child's output :meth:`next_event` has not looked at."""
        return self._exchange.held

    @property
    def under_way(self) -> Span | None:
        """Returns the records that were sent and are not answered."""
        indices = self._exchange.under_way
        return Span(self._records[indices[0]].position, self._records[indices[-1]].position) if indices else None

    def initialize(self, shard_id: str, sequence: str | None, sub: int | None) -> bytes:
        """Starts ``initialize``; sends nothing, because the child got its parameters when it was started."""
        return self._start(Action.INITIALIZE, ActionDone(Action.INITIALIZE))

    def process_records(self, line: Pieces) -> Pieces:
        """Starts with what is made by :func:`~kainite.child.markers.records.render_records`."""
        self._start(Action.PROCESS_RECORDS)
        records = read_records(line)
        self._last = records[-1].position if records else None
        self._records, self._emitted = [], 0
        messages = [message for record in records if (message := self._message(record)) is not None]
        if messages:
            self._exchange.send(messages)
        else:
            self._finish()
        return ()

    def lease_lost(self) -> bytes:
        return self._start(Action.LEASE_LOST, ActionDone(Action.LEASE_LOST))

    def shard_ended(self) -> bytes:
        return self._start(Action.SHARD_ENDED, CheckpointRequested(None), ActionDone(Action.SHARD_ENDED))

    def shutdown_requested(self) -> bytes:
        done = ActionDone(Action.SHUTDOWN_REQUESTED)
        return self._start(Action.SHUTDOWN_REQUESTED, CheckpointRequested(None), done)

    def reply(self, request: CheckpointRequested, error: str | None = None) -> bytes:
        """Takes the reply; sends nothing. The next checkpoint makes up for one that was not stored."""
        if (self.turn, TurnMove.REPLY) not in TURNS:
            raise ValueError(f"nobody asked for a reply in {self}")
        self.turn = TURNS[self.turn, TurnMove.REPLY]
        return b""

    def receive(self, data: bytes) -> None:
        """Takes what the child wrote, in any chunking."""
        self._exchange.receive(data)

    def receive_eof(self) -> None:
        """Does nothing: the end of the process follows the end of its output, and says how it ended."""

    def next_event(self) -> Event | None:
        """Returns what happened next; None until more input, a reply or the next action comes."""
        while self.turn in (Turn.OURS, Turn.THEIRS):
            if self._events:
                return self._handed_out(self._events.popleft())
            match self._exchange.next_event():
                case None:
                    return None
                case Send() as send:
                    return send
                case Answer() as answer:
                    self._answered(answer)
                case Violation(reason):
                    self._events.append(ProtocolViolation(reason))
        return None

    def _message(self, record: RecordMessage) -> bytes | None:
        """Returns the message for a record; rejects the record and returns None where there is none."""
        span = Span(record.position, record.position)
        if record.cause is not None:
            self._events.append(Rejected(span, record.cause, record.payload[:_SHOWN]))
            return None
        try:
            message = self._markers.message(record.payload)
        except MessageRefusedError as error:
            self._bad(span, str(error), record.payload)
            return None
        self._records.append(record)
        return message

    def _start(self, action: Action, *events: Event) -> bytes:
        if (self.turn, TurnMove.START) not in TURNS:
            raise ValueError(f"{action} cannot be started in {self}")
        self.turn, self.action = TURNS[self.turn, TurnMove.START], action
        self._events.extend(events)
        return b""

    def _handed_out(self, happened: Event) -> Event:
        match happened:
            case ActionDone():
                self.turn = TURNS[self.turn, TurnMove.STATUS]
            case CheckpointRequested():
                self.turn = TURNS[self.turn, TurnMove.CHECKPOINT]
            case ProtocolViolation():
                self.turn = Turn.BROKEN
        return happened

    def _answered(self, answer: Answer) -> None:
        self.has_answered = True
        self._emitted += sum(map(len, answer.messages))
        if self._emitted > self._max_emitted:
            self._events.append(ProtocolViolation(f"emitted more than {self._max_emitted} bytes for one call"))
            return
        records = self._records[answer.first : answer.first + answer.count]
        span = Span(records[0].position, records[-1].position)
        for message in answer.messages:
            if (cause := bad_message(message)) is None:
                self._events.append(Emitted(emit_line(message)))
            else:
                self._bad(span, cause, _payloads(records))
        if not answer.messages and self._settings.on_empty_answer is OnEmptyAnswer.REPORT:
            self._bad(span, "answered by nothing (markersOnEmptyAnswer=report)", _payloads(records))
        if answer.first + answer.count == len(self._records):
            self._finish()
        elif self._is_due(CheckpointAt.ANSWER):
            self._checkpoint(span.last)

    def _finish(self) -> None:
        """Ends a call in which everything is answered: with its checkpoint, then ActionDone."""
        if self._last is not None and self._is_due(CheckpointAt.ANSWER, CheckpointAt.CALL):
            self._checkpoint(self._last)
        self._events.append(ActionDone(Action.PROCESS_RECORDS))

    def _is_due(self, *policies: CheckpointAt) -> bool:
        policy, interval = self._settings.checkpoint, self._settings.checkpoint_interval
        return policy in policies or (
            policy is CheckpointAt.INTERVAL and self._clock() - self._checkpointed_at >= interval
        )

    def _checkpoint(self, position: Position) -> None:
        self._checkpointed_at = self._clock()
        self._events.append(CheckpointRequested(str(position.sequence), position.sub))

    def _bad(self, span: Span, said: str, payload: bytes) -> None:
        cause = " ".join(said.split())[:_SHOWN]
        if self._settings.on_bad_message is OnBadMessage.FAIL:
            self._events.append(ProtocolViolation(f"cannot go on: {span}: {cause} (markersOnBadMessage=fail)"))
        else:
            self._events.append(Rejected(span, cause, payload[:_SHOWN]))

    def __repr__(self) -> str:
        return f"<MarkersDialect {self.turn.name} {self.action} {self._exchange!r}>"


def _payloads(records: Sequence[RecordMessage]) -> bytes:
    return b"".join(record.payload[:_SHOWN] for record in records)[:_SHOWN]
