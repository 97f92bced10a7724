"""The messages between a member and the log's owner, on the member's side; no I/O, no clock.

The connection's Hellos are exchanged (:mod:`kainite.peers.connection.core`); the conversation begins with Join.

=========  =============================================  ======================================================
phase      waits for                                      then
=========  =============================================  ======================================================
JOINING    Joined, as long as the owner loads its state   OPEN
OPEN       answers, and questions about the reading       OPEN
ENDED      nothing: the peer broke the protocol, or does  each further call raises
           not own the log (any more)
=========  =============================================  ======================================================

Appends are sent in the order in which the caller makes them, while the bytes of unanswered appends stay within the
owner's credit; one append is always allowed. Other requests do not wait behind appends.

**What may go wrong, and why nothing is lost or doubled.** A shard's consumer makes one append at a time, and makes the
next one only when the one before is acknowledged. The owner (:mod:`kainite.owner.shard_appends`) recognises an append
by the shard's position: an append wholly behind the position is known. A new one names the position that it follows,
and begins beyond it; any other is refused: one across the position, and one that would jump over records. An append is
atomic, so after a change of owners it is either known as a whole or new as a whole.

=================================================  ====================================================================
what happens                                       why nothing is lost or doubled
=================================================  ====================================================================
the reply is lost after the append became durable  the append is made again, to this or another owner, and recognised
an append comes twice (a copy on an old            the second one is recognised: by the folded state already, while
connection)                                        the first one is still queued
the owner changes while an append is made again    the old owner's put meets the fence, so at most one of the two
                                                   becomes durable before the other is looked at
a former owner goes on (it was frozen)             it acknowledges nothing that is not durable under its own
                                                   generation, and nothing can become so. It may tell an old position,
                                                   which is too low: records are then collected again and recognised
a former holder of the shard goes on and appends   what it appends beyond the position is what the present holder would
                                                   append for the same records. The holder's append is then
                                                   recognised, or refused as not the next one: it reads on behind
                                                   it. An owner that has read the lease table since refuses it
                                                   (:mod:`kainite.peers.sharing.lease_holders`)
an append that its consumer gave up arrives later  the same
an append waits for room while the shard's         a position may be told that the append passes later: the same
position is asked
an answer comes under another number               LogProtocolError, and the connection ends
=================================================  ====================================================================
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from kainite.base.errors import KainiteError, LogAppendError, LogProtocolError, LogRequestError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.peers.connection.credit import Credit
from kainite.peers.connection.generation import OwnerGeneration
from kainite.peers.messages import (
    MAX_NUMBER,
    AppendBroken,
    Appended,
    BeginAnswer,
    BeginRequest,
    BeginStream,
    Elsewhere,
    Join,
    Joined,
    Message,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    RequestRefused,
    SentPosition,
    ShardAppend,
)

NO_READING: Final = ReadingReport(frozenset(), {})


class MemberPhase(Enum):
    JOINING = auto()
    OPEN = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class MemberName:
    """A member's identity, and the log that it means.

    Attributes:
        log: the log, as ``TABLE/PARTITION``: another application's log may have a partition of the same name.
        stream: the name of the stream that the member collects.
        worker, process: the member's worker id and its process's identity, as text.
        identity: the stream's identity; empty where it is not known.
    """

    log: str
    stream: str
    worker: str
    process: str
    identity: str = ""


class Places(NamedTuple):
    """The places of an append in its shard: as :meth:`~kainite.log.client.LogClient.append` takes them."""

    first: Position
    last: Position
    after: Position | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The owner takes requests."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The owner has answered a request: with a position, the log's beginning, nothing, or why it refuses an append."""

    number: int
    position: Position | None = None
    begun_ms: int = 0
    error: KainiteError | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The owner asks how far the shards are read, and says why reading waits (empty: reading does not wait)."""

    number: int
    backlog: str
    hold_ms: int | None = None
    awaited: bool = False


MemberHeard: TypeAlias = Opened | Answered | Asked


class MemberConversation:
    """The conversation on one connection, from its beginning.

    Args:
        name: this member's identity, and the log that it means.
        generation: the generation of the owner that HEAD named.
    """

    def __init__(self, name: MemberName, generation: int) -> None:
        self.phase = MemberPhase.JOINING
        self.schemes: set[str] = set()
        """The ids of the schemes that this side has sent."""
        self._generation = OwnerGeneration(generation)
        who = name.log, name.stream, name.worker, name.process, name.identity
        self._out: list[Message] = [Join(generation, 0, *who)]
        self._number = 0
        self._credit = Credit(0)
        self._unanswered: dict[int, int | None] = {}  # requests and the bytes that each append takes of the credit
        self._waiting: deque[ShardAppend] = deque()

    def to_send(self) -> list[Message]:
        """Returns the messages to send, and forgets them."""
        out, self._out = self._out, []
        return out

    def take(self, message: Message) -> MemberHeard:
        """Takes a message of the owner; returns its meaning.

        Raises:
            LogProtocolError: the protocol forbids the message now.
            LogUnavailableError: the peer does not own the log.
        """
        try:
            return self._joined(message) if self.phase is MemberPhase.JOINING else self._taken(message)
        except KainiteError:
            self.phase = MemberPhase.ENDED
            raise

    def append(self, shard: str, places: Places, fragments: bytes, payload: bytes, schemes: frozenset[str]) -> int:
        """Makes an append; returns its number.

        Args:
            shard, places: as in :meth:`~kainite.log.client.LogClient.append`.
            fragments, payload, schemes: the results of :func:`~kainite.peers.fragments.encode_fragments`.
        """
        number = self._next()
        first, last = SentPosition.of(places.first), SentPosition.of(places.last)
        after = None if places.after is None else SentPosition.of(places.after)
        contents = memoryview(fragments), memoryview(payload)
        self._waiting.append(ShardAppend(self._generation.value, number, shard, after, first, last, *contents))
        self.schemes |= schemes  # the append goes before every append that is made from now on
        self._send_waiting()
        return number

    def position(self, shard: str) -> int:
        """Asks for a shard's position; returns the question's number."""
        number = self._next()
        self._unanswered[number] = None
        self._out.append(PositionRequest(self._generation.value, number, shard))
        return number

    def begin(self, at_ms: int, stream: str = "") -> int:
        """Asks for the log's beginning of a stream, and proposes one; returns the question's number."""
        number = self._next()
        self._unanswered[number] = None
        generation = self._generation.value
        self._out.append(
            BeginStream(generation, number, at_ms, stream) if stream else BeginRequest(generation, number, at_ms)
        )
        return number

    def reading(self, number: int, report: ReadingReport | None) -> None:
        """Answers the owner's question ``number`` with a report."""
        told = report or NO_READING
        ages, times = (dict(told.read), dict(told.tips)), dict(told.arrived)
        self._out.append(ReadingAnswer(self._generation.value, number, told.shards, *ages, times, told.waiting))

    def _joined(self, message: Message) -> MemberHeard:
        match message:
            case Joined(generation=generation, credit=credit):
                self._generation.check(generation)
                self._credit.most_bytes = credit
                self.phase = MemberPhase.OPEN
                return Opened()
            case Elsewhere():
                raise not_the_owner(message)
            case RequestRefused(cause=cause):
                raise LogProtocolError(cause)
        raise LogProtocolError(f"a join is answered by {type(message).__name__}")

    def _taken(self, message: Message) -> MemberHeard:
        if isinstance(message, Elsewhere):
            raise not_the_owner(message)
        self._generation.check(message.generation)
        match message:
            case ReadingRequest(number=number, backlog=backlog, hold_ms=hold_ms, awaited=awaited):
                return Asked(number, backlog, hold_ms, awaited)
            case Appended(number=number):
                return self._answered(Answered(number))
            case RequestRefused(number=number, cause=cause):
                return self._answered(Answered(number, error=LogRequestError(cause)))
            case AppendBroken(number=number, cause=cause):
                return self._answered(Answered(number, error=LogAppendError(cause)))
            case PositionAnswer(number=number, place=place):
                return self._answered(Answered(number, None if place is None else place.position))
            case BeginAnswer(number=number, at_ms=at_ms):
                return self._answered(Answered(number, begun_ms=at_ms))
        raise LogProtocolError(f"an owner sent {type(message).__name__}")

    def _answered(self, answer: Answered) -> Answered:
        if answer.number not in self._unanswered:
            raise LogProtocolError(f"an answer to request {answer.number}, which was not made")
        size = self._unanswered.pop(answer.number)
        if size is not None:
            self._credit.give(size)
            self._send_waiting()
        return answer

    def _send_waiting(self) -> None:
        while self._waiting and self._credit.has_room(self._waiting[0].size):
            message = self._waiting.popleft()
            self._unanswered[message.number] = message.size
            self._credit.take(message.size)
            self._out.append(message)

    def _next(self) -> int:
        if self.phase is not MemberPhase.OPEN:
            raise LogUnavailableError("the connection to the log's owner is not open")
        self._number = self._number % MAX_NUMBER + 1
        return self._number


def not_the_owner(answer: Elsewhere) -> LogUnavailableError:
    """Returns the error of a request that was made to a process that does not own the log."""
    return LogUnavailableError(f"the process does not own the log; {answer.address or 'nobody'} does")
