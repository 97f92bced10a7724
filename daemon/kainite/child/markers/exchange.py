"""The daemon's side of the T and L stages (docs/protocol.md, *Markers*): messages out, answers back. Without I/O.

Theory of operation
===================

:meth:`Exchange.send` takes messages; :meth:`Exchange.next_event` returns what to write and what was answered. One
*request* is in flight at a time: one message, or one batch.

::

    IDLE --SEND--> READY --ASK--> ASKED --ANSWERED--> READY
                                  ASKED --ANSWERED_LAST--> IDLE
                                  ASKED --ONE_MORE--> READY (worker-driven: one more message, or EOB)
    any --Violation--> BROKEN, for good

==============  =====================  ==============================================================
batching        a request              answered by
==============  =====================  ==============================================================
single          a message              messages, EOP
supervisor      up to N messages, EOB  messages, EOP
worker          a message              BNC: one more, or EOB when there are none; or messages, EOP
==============  =====================  ==============================================================

Decisions on what the original protocol leaves open (docs/protocol.md, *Decisions*):

* Output counts only when its EOP is there: a worker that dies leaves no half answer.
* Bytes between the last EOM and EOP are a message. An EOM right after EOP or BNC is no message.
* An empty batch is EOB, answered by EOP. Without batches nothing is asked.
* EOB is written once for a batch, never twice in a row. A worker that writes BNC after N messages gets EOB.
* A marker that the batching does not use is part of the data, in both directions. Alone it is a violation.
* All other output, all output that nobody asked for, and EOB from a worker are violations.

Memory is bounded: a message of ``max_message`` bytes, and ``max_answer`` bytes of an answer that has no EOP yet.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.markers import USED, Batching, Mark, Markers
from kainite.child.events import Send
from kainite.child.markers.framing import MAX_MESSAGE, MarkedPiece, Scanner
from kainite.child.markers.misread import why_unasked

MAX_ANSWER: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request.

    Attributes:
        first: index of the request's first message among the messages of :meth:`Exchange.send`.
        count: how many messages the request had.
        messages: the messages that the worker wrote.
    """

    first: int
    count: int
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """The worker broke the protocol; ``reason`` says how, as the rest of a sentence about the worker."""

    reason: str


ExchangeEvent: TypeAlias = Send | Answer | Violation


class _ExchangeState(Enum):
    IDLE = auto()  # every message is answered
    READY = auto()  # the next bytes may be written
    ASKED = auto()  # the worker has to answer
    BROKEN = auto()


class _ExchangeMove(Enum):
    SEND = auto()
    ASK = auto()
    ONE_MORE = auto()  # BNC
    ANSWERED = auto()  # EOP, and messages are left
    ANSWERED_LAST = auto()  # EOP after the last message


_TRANSITIONS: Final = {
    (_ExchangeState.IDLE, _ExchangeMove.SEND): _ExchangeState.READY,
    (_ExchangeState.READY, _ExchangeMove.ASK): _ExchangeState.ASKED,
    (_ExchangeState.ASKED, _ExchangeMove.ONE_MORE): _ExchangeState.READY,
    (_ExchangeState.ASKED, _ExchangeMove.ANSWERED): _ExchangeState.READY,
    (_ExchangeState.ASKED, _ExchangeMove.ANSWERED_LAST): _ExchangeState.IDLE,
}


class Exchange:
    """One worker's conversation. See the module's theory of operation.

    Args:
        markers: the markers that both sides use.
        batching: who decides where a batch ends.
        batch_size: N: the size of a supervisor-driven batch, the maximal size of a worker-driven batch.
        max_message: longest message of the worker, bytes.
        max_answer: most bytes of the messages of one answer.

    Attributes:
        held: how many bytes of the worker's output :meth:`next_event` has not looked at.
    """

    def __init__(
        self,
        markers: Markers,
        batching: Batching,
        *,
        batch_size: int = 100,
        max_message: int = MAX_MESSAGE,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        self.held = 0
        self._markers = markers.using(USED[batching])
        self._unused = self._markers.unused()
        self._batching = batching
        self._batch_size = batch_size
        self._scanner = Scanner(self._markers, max_message)
        self._max_message = max_message
        self._max_answer = max_answer
        self._state = _ExchangeState.IDLE
        self._pieces: deque[MarkedPiece] = deque()
        self._ended = False
        self._messages: Sequence[bytes] = ()
        self._first = 0  # index of the first message of the request in flight
        self._sent = 0  # messages written so far
        self._closed = False  # the EOB of the request in flight is written
        self._pleas = 0  # BNCs in the request in flight
        self._suspect = False  # in the previous request, BNC came after a whole batch
        self._answer: list[bytes] = []
        self._answer_bytes = 0
        self._answered_before = False
        self._after_mark = False  # the last piece ended with EOP or BNC

    @property
    def under_way(self) -> range:
        """Returns the indices of the messages that were sent and are not answered."""
        return range(self._first, self._sent)

    def send(self, messages: Sequence[bytes]) -> None:
        """Begins with messages as :meth:`Markers.message` made them; :meth:`next_event` returns what to write.

        Raises:
            ValueError: earlier messages are not answered yet, or the conversation is broken.
        """
        if self._state is not _ExchangeState.IDLE:
            raise ValueError(f"messages cannot be sent in {self}")
        self._messages, self._first, self._sent = messages, 0, 0
        if messages or self._batching is not Batching.SINGLE:
            self._move(_ExchangeMove.SEND)

    def receive(self, data: bytes) -> None:
        """Takes what the worker wrote, in any chunking."""
        pieces = self._scanner.feed(data)
        self._pieces.extend(pieces)
        self.held += sum(len(piece.payload) + 1 for piece in pieces)

    def receive_eof(self) -> None:
        """Notes that the worker's output has ended: a request in flight will never be answered."""
        self._ended = True

    def next_event(self) -> ExchangeEvent | None:
        """Returns what to write, or what was answered; None until more input or more messages come."""
        while self._state is not _ExchangeState.BROKEN:
            if self._pieces:
                piece = self._pieces.popleft()
                self.held -= len(piece.payload) + 1
                if (happened := self._read(piece)) is not None:
                    return happened
            elif self._state is _ExchangeState.READY:
                return self._ask()
            else:
                return self._stuck()
        return None

    def _stuck(self) -> Violation | None:
        if self._scanner.too_long:
            return self._break(f"wrote more than {self._max_message} bytes without a marker")
        if (misplaced := self._scanner.waits_at(self._unused)) is not None:
            return self._misplaced(self._unused[misplaced])
        if self._ended and self._state is _ExchangeState.ASKED:
            return self._break("ended its output before EOP")
        return None

    def _ask(self) -> Send:
        """Returns the next message or batch of messages; EOB where the worker's batch takes no more."""
        self._move(_ExchangeMove.ASK)
        size = self._batch_size if self._batching is Batching.SUPERVISOR else 1
        # A worker may leave bad messages out of its count, so it may ask for one more after a whole batch: it gets EOB.
        if self._batching is Batching.WORKER and self._is_full():
            size = 0
        batch = self._messages[self._sent : self._sent + size]
        self._sent += len(batch)
        self._closed = self._batching is Batching.SUPERVISOR or not batch
        return Send(b"".join([*batch, self._markers.eob] if self._closed else batch))

    def _read(self, piece: MarkedPiece) -> ExchangeEvent | None:
        # The worker's ``print`` adds a line end, which reads as an EOM, after an EOP or BNC.
        noise = self._after_mark and not piece.payload and piece.mark is Mark.EOM
        self._after_mark = piece.mark is not Mark.EOM
        if noise:
            return None
        if self._state is _ExchangeState.READY and self._pleas:
            return self._break(
                f"wrote {_shown(piece)} after BNC, which asks for one more message: read that first, and write no BNC"
                f" after the message that completes a batch of {self._batch_size}"
            )
        if self._state is not _ExchangeState.ASKED:
            why = "" if self._answered_before else why_unasked(piece.payload)
            return self._break(f"wrote {_shown(piece)} while nothing was asked of it{why}")
        # A worker that waits after a BNC which nobody answers would wait for ever.
        if (misplaced := self._unused.get(piece.payload)) is not None:
            return self._misplaced(misplaced)
        if piece.mark is Mark.EOM or piece.payload:
            self._answer.append(piece.payload)
            self._answer_bytes += len(piece.payload) + 1
            if self._answer_bytes > self._max_answer:
                return self._break(f"wrote more than {self._max_answer} bytes for one answer")
        match piece.mark:
            case Mark.EOM:
                return None
            case Mark.EOP:
                return self._answered()
            case Mark.BNC:
                return self._one_more()
            case Mark.EOB:
                return self._misplaced(Mark.EOB)

    def _misplaced(self, mark: Mark) -> Violation:
        if self._state is not _ExchangeState.ASKED:
            return self._break(f"wrote {mark.name} while nothing was asked of it")
        if mark is Mark.BNC:
            return self._break(f"wrote BNC, but batching is {self._batching}")
        return self._break("wrote EOB, which is the supervisor's")

    def _answered(self) -> Answer | Violation:
        # A worker that writes BNC after the message that completes its batch does not read the EOB that it gets. The
        # next batch begins with that EOB, so the worker answers it with an EOP, which is not the answer to the request.
        if self._suspect and not self._pleas:
            return self._break(
                f"wrote EOP twice: no BNC follows the message that completes a batch of {self._batch_size}"
            )
        answer = Answer(self._first, self._sent - self._first, tuple(self._answer))
        self._suspect = self._closed and self._is_full() and self._batching is Batching.WORKER
        self._first, self._pleas, self._answered_before = self._sent, 0, True
        self._answer, self._answer_bytes = [], 0
        self._move(_ExchangeMove.ANSWERED if self._sent < len(self._messages) else _ExchangeMove.ANSWERED_LAST)
        return answer

    def _one_more(self) -> Violation | None:
        if self._closed:
            return self._break("wrote BNC after EOB")
        if self._answer:
            return self._break("wrote BNC after messages: an answer ends with EOP")
        if self._batch_size == 1:
            return self._break("wrote BNC, but a batch has one message")
        self._pleas += 1
        self._move(_ExchangeMove.ONE_MORE)
        return None

    def _is_full(self) -> bool:
        return self._sent - self._first >= self._batch_size

    def _move(self, move: _ExchangeMove) -> None:
        self._state = _TRANSITIONS[self._state, move]

    def _break(self, reason: str) -> Violation:
        self._state = _ExchangeState.BROKEN
        return Violation(reason)

    def __repr__(self) -> str:
        return f"<Exchange {self._batching} {self._state.name} {self._sent} of {len(self._messages)}>"


def bad_message(payload: bytes) -> str | None:
    """Returns the cause if a worker's message is a bad message report: a JSON object with the one key ``bad``.

    The report says that the request was bad. An answer without messages does not say so.
    """
    if b'"bad"' not in payload[:_REPORT_START]:
        return None
    try:
        match json.loads(payload):
            case {"bad": cause, **others} if not others:
                return cause if isinstance(cause, str) else json.dumps(cause)
    except (ValueError, RecursionError):
        return None
    return None


_REPORT_START: Final = 64  # a report begins with its key, perhaps after blanks


def _shown(piece: MarkedPiece) -> str:
    return f"{piece.mark.name} after {piece.payload[:200]!r}" if piece.payload else piece.mark.name
