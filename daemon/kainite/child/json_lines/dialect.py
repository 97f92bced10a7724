"""The ``json-lines`` dialects as a state machine without I/O: KCL's protocol, and its first form (``json-lines-v0``).

Theory of operation
===================

The conversation has two independent states, phase and turn. Each state is an enum with a table of transitions.

*Phase*: the child's life. It says which action may be started (:data:`PHASES`).

::

    NEW --initialize--> RUNNING --processRecords--> RUNNING
                        RUNNING --shutdownRequested--> STOPPING
                        RUNNING, STOPPING --leaseLost, shardEnded--> ENDED

*Turn*: whose turn it is (:data:`kainite.child.turns.TURNS`).

The daemon writes the bytes that a starting method or :meth:`JsonLines.reply` returns, feeds what
the child writes to :meth:`JsonLines.receive`, and calls :meth:`JsonLines.next_event` until it returns
None. Events come in the order in which the child wrote their lines.

Messages count only in the child's turn. A message that comes at another time is held until the child's next turn. KCL
does the same, because it reads a child only while it waits for an answer: so a child may write two checkpoint requests
at once. Junk lines are reported at any time.

Rules
=====

* A wrong call by the *daemon* (an action out of phase, a reply that nobody asked for) raises ``ValueError``: it is a
  defect of Kainite. A wrong line of the *child* comes out as :class:`ProtocolViolation`, once, and ends the
  conversation.
* A checkpoint request of the protocol's other form is a violation that names the form, although KCL skips it.
* The first form spells some messages otherwise and has no ``shutdownRequested``
  (:class:`~kainite.child.json_lines.messages.Spelling`); phases and turns are the same.
* Memory is bounded: one unfinished line of ``max_line`` bytes, ``max_emitted`` bytes of emit lines
  per action, and the caller stops reading while :attr:`JsonLines.held` is large.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import Final

from kainite.base.record import Pieces
from kainite.child.events import (
    Action,
    ActionDone,
    CheckpointRequested,
    Emitted,
    Event,
    ProtocolViolation,
    SkippedLine,
    Span,
)
from kainite.child.json_lines.messages import (
    KCL,
    Message,
    Spelling,
    Status,
    bare_line,
    initialize_line,
    parse,
    reply_line,
)
from kainite.child.json_lines.misread import of_another_form
from kainite.child.line_buffer import Line, LineBuffer
from kainite.child.turns import TURNS, Turn, TurnMove

MAX_LINE = 64 * 2**20
MAX_EMITTED = 256 * 2**20


class ChildPhase(Enum):
    """The state of the child in its life."""

    NEW = auto()
    RUNNING = auto()
    STOPPING = auto()  # it was asked shutdownRequested
    ENDED = auto()


PHASES: Final = {
    (ChildPhase.NEW, Action.INITIALIZE): ChildPhase.RUNNING,
    (ChildPhase.RUNNING, Action.PROCESS_RECORDS): ChildPhase.RUNNING,
    (ChildPhase.RUNNING, Action.SHUTDOWN_REQUESTED): ChildPhase.STOPPING,
    (ChildPhase.RUNNING, Action.LEASE_LOST): ChildPhase.ENDED,
    (ChildPhase.RUNNING, Action.SHARD_ENDED): ChildPhase.ENDED,
    (ChildPhase.STOPPING, Action.LEASE_LOST): ChildPhase.ENDED,
    (ChildPhase.STOPPING, Action.SHARD_ENDED): ChildPhase.ENDED,
}


class JsonLines:
    """One conversation with one child. See the module's theory of operation.

    Args:
        spelling: the form of the protocol.
        max_line: longest line of a child, bytes. A longer message is a violation; longer junk is cut.
        max_emitted: most bytes of emit lines that a child may write for one action.
    """

    def __init__(self, spelling: Spelling = KCL, *, max_line: int = MAX_LINE, max_emitted: int = MAX_EMITTED) -> None:
        self.phase = ChildPhase.NEW
        self.turn = Turn.OURS
        self.action: Action | None = None  # the outstanding one, or the last one
        self.held = 0  # bytes of lines that next_event has not handed out
        self.under_way: Span | None = None  # the child works on the whole call, never on a part of it
        self.has_answered = False
        self._spelling = spelling
        self._buffer = LineBuffer(max_line)
        self._lines: deque[Line] = deque()
        self._message: Message | None = None  # the first line's, parsed while it was not the child's turn
        self._emitted = 0
        self._max_emitted = max_emitted

    def initialize(self, shard_id: str, sequence: str | None, sub: int | None) -> bytes:
        """Starts ``initialize``; write the bytes returned."""
        self._start(Action.INITIALIZE)
        return initialize_line(shard_id, sequence, sub, self._spelling)

    def process_records(self, line: Pieces) -> Pieces:
        """Starts ``processRecords`` with a line rendered elsewhere, newline included."""
        self._start(Action.PROCESS_RECORDS)
        return line

    def lease_lost(self) -> bytes:
        """Starts ``leaseLost``; in the first form ``shutdown`` with ZOMBIE."""
        return self._bare(Action.LEASE_LOST)

    def shard_ended(self) -> bytes:
        """Starts ``shardEnded``; in the first form ``shutdown`` with TERMINATE."""
        return self._bare(Action.SHARD_ENDED)

    def shutdown_requested(self) -> bytes | None:
        """Starts ``shutdownRequested``; starts nothing and returns None where the form has no such action."""
        return self._bare(Action.SHUTDOWN_REQUESTED) if Action.SHUTDOWN_REQUESTED in self._spelling.names else None

    def reply(self, request: CheckpointRequested, error: str | None = None) -> bytes:
        """Answers the checkpoint request handed out last; ``error`` is a KCL exception's simple name."""
        self._move(TurnMove.REPLY)
        return reply_line(request, error, self._spelling)

    def receive(self, data: bytes) -> None:
        """Takes what the child wrote, in any chunking."""
        self._queue(self._buffer.feed(data))

    def receive_eof(self) -> None:
        """Notes that the child's output has ended: its last line needs no line end."""
        self._queue(self._buffer.end())

    def next_event(self) -> Event | None:
        """Returns what happened next; None until more input, a reply or the next action comes."""
        while self.turn is not Turn.BROKEN and self._lines:
            line = self._lines[0]
            message = self._message or parse(line.text, self._spelling)
            if message is not None and not isinstance(message, SkippedLine) and self.turn is not Turn.THEIRS:
                self._message = message
                return None
            self._message = None
            self._lines.popleft()
            self.held -= len(line.text)
            if isinstance(message, SkippedLine) and (other := of_another_form(message.text, self._spelling.sequence)):
                return self._break(other)  # otherwise child and daemon would wait for each other
            if message is not None:
                return self._event(message, line)
        return None

    def _queue(self, lines: list[Line]) -> None:
        self._lines.extend(lines)
        self.held += sum(len(line.text) for line in lines)

    def _event(self, message: Message, line: Line) -> Event:
        if line.cut and line.text.lstrip().startswith(b"{"):
            return self._break(f"wrote a message of more than {len(line.text)} bytes")
        match message:
            case Status(response_for):
                assert self.action is not None  # it is the child's turn
                asked = self._spelling.names[self.action]
                if response_for != asked:
                    return self._break(f"answered {response_for!r}, but was asked {asked!r}")
                self._move(TurnMove.STATUS)
                self.has_answered = True
                return ActionDone(self.action)
            case CheckpointRequested():
                self._move(TurnMove.CHECKPOINT)
            case Emitted(text):
                self._emitted += len(text)
                if self._emitted > self._max_emitted:
                    return self._break(f"emitted more than {self._max_emitted} bytes for one action")
            case SkippedLine(text):
                return SkippedLine(text, line.cut)
        return message

    def _bare(self, action: Action) -> bytes:
        self._start(action)
        return bare_line(action, self._spelling)

    def _start(self, action: Action) -> None:
        phase = PHASES.get((self.phase, action))
        if phase is None:
            raise ValueError(f"{action} cannot be started in {self}")
        self._move(TurnMove.START)
        self.phase, self.action, self._emitted = phase, action, 0

    def _move(self, move: TurnMove) -> None:
        turn = TURNS.get((self.turn, move))
        if turn is None:
            raise ValueError(f"{move.name} is not a move in {self}")
        self.turn = turn

    def _break(self, reason: str) -> ProtocolViolation:
        self.turn = Turn.BROKEN
        return ProtocolViolation(reason)

    def __repr__(self) -> str:
        return f"<JsonLines {self.phase.name} {self.turn.name} {self.action}>"
