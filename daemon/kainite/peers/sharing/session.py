"""The owner's side of a connection: takes a member's requests, and asks how far its shards are read.

=========  ==================================================  ====================================================
phase      waits for                                           then
=========  ==================================================  ====================================================
greeting   the client's Hello, and Join or Follow, for         says where the owner is, if it is not here
           GREETING_S
loading    the log's state, if this process is mounting it     keeps the connection alive
open       requests; each append in a task of its own          answers when the append is durable
ended      the client is gone, silent, too slow, or breaks     appends that are not queued yet are given up; those
           the protocol; or this process is not the owner      that are become durable or not, without an answer
           any more
=========  ==================================================  ====================================================

Bounds on what a peer can take: a frame has a greatest length, the appends that are not answered may have twice the
credit and one frame, what waits to be sent to the client at most MAX_UNSENT bytes. The credit counts compressed bytes,
so an append is decoded only when the log has room for it: at most one decoded append a connection waits for room. One
that the log has already may therefore wait for room before it is recognised.

Appends are decoded one at a time, in the order in which they came: an append may use a scheme that one before it has
brought, and a large append is decoded on a thread.

A log is one stream's. A member of another stream name is refused. Of streams of one name, only the identity tells which
is meant, and a process may not know it: ``kainite log serve`` never asks, a daemon's role may not allow the question.
So the identity is compared with the one that the log has (:meth:`~kainite.owner.owner.LogOwner.collect_from`),
which outlives owners; where it has none, the first member that knows one has it noted, durably, before it may append. A
member that knows none is taken as one of the log's stream.

A peer that begins with Follow is no member: it is sent what becomes durable (:mod:`kainite.peers.feed.session`),
from the phase *open* on, and appends nothing. One that begins with a question who holds a row is answered from memory,
once everything that the answer tells of is durable.

A report of the reading (:class:`~kainite.log.client.ReadingReport`) has ages. How long it was under way is not known;
it was written after the question that it answers was asked, so the time since the question is added to each age. A
report that was held back for an hour therefore tells of the state an hour ago, whatever clocks say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, Protocol

from kainite.base.errors import KainiteError, LogProtocolError, LogRequestError
from kainite.base.logs import event
from kainite.log.client import ReadingReport
from kainite.log.format.entry import Entry, ReqId
from kainite.log.state.folded import FoldedLog
from kainite.log.views.row_holders import Toucher, touchers
from kainite.owner.owner import LogOwner
from kainite.peers.feed.session import FeedSession
from kainite.peers.sharing import network
from kainite.peers.sharing.conversation import MAX_FRAME, MAX_NUMBER
from kainite.peers.sharing.fragments import decode_fragments
from kainite.peers.wire.feed_messages import Follow
from kainite.peers.wire.frames import Frame, FrameDecoder, keep_alive
from kainite.peers.wire.hello import Hello, common_version, decode_hello, encode_hello
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.row_messages import RowAnswer, RowRequest
from kainite.peers.wire.shard_messages import (
    VERSION,
    Elsewhere,
    Join,
    Joined,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    ShardAppend,
    ShardAppended,
    ShardRefused,
)
from kainite.peers.wire.versions import decode_message, encode_message
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.fragment import Fragment
from kainite.uow.scheme import Scheme

_logger = logging.getLogger(__name__)

CREDIT: Final = 8 * 2**20
"""Most bytes of appends that a client may have unanswered; one append of any size is always allowed."""

GREETING_S: Final = 5.0
"""Seconds in which a client must have said what it wants."""

ANSWER_S: Final = 10.0
"""Seconds after which a question who holds a row is not answered any more; who asked has read the log by then."""

ASK_EVERY_S: Final = 1.0
"""Seconds between two questions how far the shards are read; one may come between while a unit waits for the answer."""

SILENT_S: Final = 15.0
"""Seconds without a word of the client after which the connection is closed."""

MAX_UNSENT: Final = 2**20
"""Most bytes that wait to be sent to a client; one that reads no more is cut off."""

OFF_LOOP_BYTES: Final = 64 * 1024
"""From so many bytes on, an append is decoded on a thread."""

MOST_UNITS: Final = 1_000
"""Most units that an answer who holds a row tells of; where there are more, the log is read."""

QUESTIONS_KEPT: Final = 60
"""Questions that may still be answered."""


class Terms(Protocol):
    """What a session needs of the process that it belongs to."""

    log_name: str
    stream: str
    worker: str
    clients: dict[str, str]
    followers: set[FeedSession]

    @property
    def catalogue(self) -> CurrentCatalogue | None:
        """Returns the target's tables; None where they are not known here."""

    def clock(self) -> float:
        """Returns seconds since boot."""

    def observe_lags(self) -> None:
        """Tells the meter how far followers are behind."""

    @property
    def owner(self) -> LogOwner | None:
        """Returns the log's owner, if it is here and serves."""

    @property
    def is_claiming(self) -> bool:
        """Returns whether this process is about to own the log."""

    def elsewhere(self) -> str:
        """Returns the address of the log's owner as far as this process knows; empty when it does not."""


class Session:
    """One connection: :meth:`run`."""

    def __init__(self, terms: Terms, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._terms = terms
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder(MAX_FRAME)
        self._schemes: dict[str, Scheme] = {}
        self._decoding = asyncio.Lock()
        self._unanswered = 0
        self._unsent: list[bytes] = []
        self._asked: dict[int, float] = {}
        self._questions = 0
        self._generation = 0
        self._requests: set[asyncio.Task[None]] = set()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.worker = ""
        """The client's worker id, once it has joined."""

    @property
    def unanswered(self) -> int:
        """Returns the bytes of the client's appends that are not answered yet."""
        return self._unanswered

    async def run(self) -> None:
        """Serves the connection to its end, and closes it."""
        try:
            async with asyncio.timeout(GREETING_S):
                joined = await self._greet()
            if joined is not None:
                await self._serve(joined)
        except (OSError, TimeoutError):
            pass
        except KainiteError as error:
            event(_logger, logging.WARNING, "log client cut off", worker=self.worker, error=error)
        finally:
            self._flush()
            await network.hang_up(self._writer)

    async def _greet(self) -> Join | Follow | RowRequest | None:
        """Returns what the client wants; None when it wants nothing, or nothing that can be had here."""
        frame = await self._frame()
        if frame is None:
            return None
        hello = decode_hello(frame.body)
        self._writer.write(encode_hello(Hello((VERSION,), self._terms.worker)))
        if common_version((VERSION,), hello.versions) is None:
            return None
        self._decoder.expect_messages(VERSION)
        frame = await self._frame()
        join = None if frame is None else decode_message(VERSION, frame.body)
        if join is not None and not isinstance(join, Join | Follow | RowRequest):
            raise LogProtocolError(f"a client began with {type(join).__name__}")
        return join

    async def _serve(self, join: Join | Follow | RowRequest) -> None:
        terms = self._terms
        self.worker = _name(join)
        while terms.owner is None and terms.is_claiming:
            if self._writer.is_closing():  # the client is gone, which nobody reads here
                return
            self._writer.write(keep_alive(VERSION))
            await asyncio.sleep(ASK_EVERY_S / 10)
        owner = terms.owner
        if owner is None:
            self._send(Elsewhere(join.req_id, terms.elsewhere()))
        elif isinstance(join, Follow):
            await self._feed(join, owner)
        elif isinstance(join, RowRequest):
            async with asyncio.timeout(ANSWER_S):
                await self._say_who(join, owner)
        else:
            await self._serve_member(join, owner)

    async def _feed(self, follow: Follow, owner: LogOwner) -> None:
        """Sends the log to a follower, until it or the owner ends."""
        terms = self._terms
        self._generation = owner.generation
        if follow.log != terms.log_name:
            self._send(ShardRefused(follow.req_id, f"log {terms.log_name} is here, not {follow.log}"))
            return
        feed = FeedSession(owner, self._writer, follow, terms.observe_lags)
        terms.followers.add(feed)
        try:
            await self._first_ended(owner, (feed.send(), feed.take(self._messages())))
        finally:
            terms.followers.discard(feed)
            terms.observe_lags()

    async def _say_who(self, request: RowRequest, owner: LogOwner) -> None:
        """Answers who holds a row, where the target's tables are known here."""
        catalogue = self._terms.catalogue
        if catalogue is None or request.log != self._terms.log_name:
            self._send(Elsewhere(request.req_id, ""))
            return
        self._generation = owner.generation
        found: list[Toucher] = []

        def asked(state: FoldedLog) -> Sequence[Entry]:
            found.extend(touchers(state, catalogue.signing.catalogue, request.table, request.key))
            return ()

        try:
            await owner.write(asked)
        except LogRequestError as error:
            self._send(ShardRefused(request.req_id, str(error)))
        else:
            told = tuple(asdict(unit) for unit in found[:MOST_UNITS])
            self._send(RowAnswer(self._id(0), told, len(found)))

    async def _messages(self) -> AsyncIterator[Message]:
        while (frame := await self._frame(SILENT_S)) is not None:
            if frame.body:
                yield decode_message(VERSION, frame.body)

    async def _serve_member(self, join: Join, owner: LogOwner) -> None:
        terms = self._terms
        if (cause := self._objection(join)) is not None:
            self._send(ShardRefused(join.req_id, cause))
            return
        self._generation = owner.generation
        terms.clients[join.worker] = join.process
        try:
            if (cause := await _other_stream(join.identity, owner)) is not None:
                self._send(ShardRefused(join.req_id, cause))
                return
            self._send(Joined(self._id(0), CREDIT))
            with owner.asking(partial(self._ask_soon, owner)):
                await self._first_ended(owner, (self._take_requests(owner), self._ask(owner)))
        finally:
            if terms.clients.get(join.worker) == join.process:
                del terms.clients[join.worker]

    def _objection(self, join: Join) -> str | None:
        """Returns why a client cannot append here; None when it can."""
        terms = self._terms
        if (join.log, join.stream) != (terms.log_name, terms.stream):
            return (
                f"log {terms.log_name} collects stream {terms.stream}; worker {join.worker} has log {join.log} and "
                f"stream {join.stream}: give each stream a logPartition of its own"
            )
        # Two processes under one worker id would take each other's leases for their own.
        if join.worker == terms.worker or terms.clients.get(join.worker, join.process) != join.process:
            return f"another daemon runs under the worker id {join.worker}: give each its own workerId"
        return None

    async def _first_ended(self, owner: LogOwner, work: Iterable[Coroutine[None, None, None]]) -> None:
        """Works until the client ends the connection, breaks the protocol, or the owner ends."""
        ended = asyncio.create_task(owner.failed())
        first: list[asyncio.Future[Any]] = [*(asyncio.create_task(part) for part in work), ended, self._broken]
        try:
            done, _ = await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if ended in done:
                self._send(Elsewhere(self._id(0), self._terms.elsewhere()))
            for task in done:
                await task
        finally:
            tasks = (*first, *self._requests)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _take_requests(self, owner: LogOwner) -> None:
        async for message in self._messages():
            self._take(message, owner)

    def _take(self, message: Message, owner: LogOwner) -> None:
        match message:
            case ShardAppend():
                self._count(message.size)
                self._start(self._append(message, owner))
            case PositionRequest(req_id, shard):
                self._start(self._position(req_id, shard, owner))
            case ReadingAnswer():
                self._report(message, owner)
            case _:
                raise LogProtocolError(f"a client sent {type(message).__name__}")

    def _count(self, size: int) -> None:
        if self._unanswered > 2 * CREDIT:
            raise LogProtocolError(f"a client has {self._unanswered} bytes of appends unanswered, of at most {CREDIT}")
        self._unanswered += size

    async def _append(self, message: ShardAppend, owner: LogOwner) -> None:
        async with self._decoding:
            await owner.room()
            fragments, started_ms = await self._decoded(message)
        try:
            await owner.append(message.shard, message.first, message.last, fragments, started_ms=started_ms)
        except LogRequestError as error:
            self._send(ShardRefused(self._id(message.req_id.sequence), str(error)))
        else:
            self._send(ShardAppended(self._id(message.req_id.sequence)))
        self._unanswered -= message.size

    async def _decoded(self, message: ShardAppend) -> tuple[list[Fragment], int | None]:
        decode = partial(decode_fragments, message.fragments, message.payload, dict(self._schemes))
        fragments, schemes, started_ms = await asyncio.to_thread(decode) if message.size >= OFF_LOOP_BYTES else decode()
        self._schemes.update(schemes)
        return fragments, started_ms

    async def _position(self, req_id: ReqId, shard: str, owner: LogOwner) -> None:
        self._send(PositionAnswer(self._id(req_id.sequence), await owner.position(shard)))

    async def _ask(self, owner: LogOwner) -> None:
        while True:
            self._ask_once(owner)
            await asyncio.sleep(ASK_EVERY_S)

    def _ask_soon(self, owner: LogOwner) -> None:
        """Asks at once, unless an answer is under way: a client that is slow is not asked more often."""
        if not self._asked:
            self._ask_once(owner)

    def _ask_once(self, owner: LogOwner) -> None:
        self._questions = self._questions % MAX_NUMBER + 1
        self._asked[self._questions] = self._terms.clock()
        for old in list(self._asked)[:-QUESTIONS_KEPT]:
            del self._asked[old]
        self._send(ReadingRequest(self._id(self._questions), str(owner.backlog() or "")))

    def _report(self, answer: ReadingAnswer, owner: LogOwner) -> None:
        asked = self._asked.pop(answer.req_id.sequence, None)
        if asked is not None and answer.shards:
            told = ReadingReport(answer.shards, answer.read, answer.tips, answer.arrived, answer.started)
            owner.report(told.aged(self._terms.clock() - asked))

    def _start(self, request: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)

    async def _frame(self, limit: float | None = None) -> Frame | None:
        """Returns the next frame; None at the connection's end.

        Raises:
            TimeoutError: nothing came for ``limit`` seconds.
        """
        while (frame := self._decoder.next_frame()) is None:
            async with asyncio.timeout(limit):
                data = await self._reader.read(network.CHUNK)
            if not data:
                return None
            self._decoder.receive(data)
        return frame

    def _send(self, message: Message) -> None:
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT:
            self._writer.transport.abort()  # the reads fail, and the session ends
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(encode_message(VERSION, message))

    def _flush(self) -> None:
        """Sends the answers of one turn of the loop together: a durable batch answers many appends at once."""
        if self._unsent:
            self._writer.write(b"".join(self._unsent))
            self._unsent.clear()

    def _id(self, number: int) -> ReqId:
        return ReqId(0, self._generation, 0, number)


def _name(join: Join | Follow | RowRequest) -> str:
    """Returns what to call a client."""
    match join:
        case Join(worker=worker):
            return worker
        case Follow(name=name):
            return name
        case RowRequest():
            return "who"


async def _other_stream(identity: str, owner: LogOwner) -> str | None:
    """Returns why a member of that stream cannot append here; None when it can, and the log has the stream noted."""
    if identity and identity != owner.state.stream:
        try:
            await owner.collect_from(identity)
        except LogRequestError as error:
            return str(error)
    return None
