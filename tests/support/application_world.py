"""An owner of applications' partitions in this process, wire-level clients, programs that use it, and a bad network."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from kainite.base.address import Address
from kainite.base.end_listening import end_listening
from kainite.base.errors import LogUnavailableError
from kainite.log.contract import LogStore
from kainite.log.format.entry import ReqId
from kainite.owner.mount import Mount, mount
from kainite.peers.connection.core import Limits
from kainite.peers.connection.frames import HEADER_SIZE, MESSAGE, WALTZ_HELLO, encode_frame
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.server import LogServer, serving
from kainite.settings import LogSettings
from kainite.store.memory import MemoryStore
from kainite.waltz.client import ApplicationLog, Owner, connected
from kainite.waltz.context import Transaction
from kainite.waltz.partition import ApplicationPartition, application_partition
from kainite.waltz.service import Applications
from kainite.waltz.wire import messages as m
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.versions import WALTZ
from support.doors import EVERYBODY, SECRET

SETTINGS = LogSettings(table="log", owner="w1", put_interval=0.0, lease=30.0, heartbeat=5.0)
LIMIT_S = 30.0


class World:
    """A server whose partition 0 is owned, for a while, by an :class:`ApplicationPartition`."""

    def __init__(self, service: Applications, server: LogServer[WaltzMessage], store: LogStore) -> None:
        self.service = service
        self.server = server
        self.store = store
        self.partition: ApplicationPartition | None = None
        self._owned: contextlib.AsyncExitStack | None = None

    @property
    def owned(self) -> ApplicationPartition:
        assert self.partition is not None
        return self.partition

    async def own(self) -> None:
        """Takes partition 0 over from its owner."""
        await self.disown()
        self._owned = contextlib.AsyncExitStack()
        opened = ApplicationPartition.open(self.store, SETTINGS, taken_over(self.store))
        self.partition = await self._owned.enter_async_context(opened)
        self.service.owns(0, self.partition)

    async def disown(self) -> None:
        if self._owned is not None:
            self.service.owns_no_more(0, "the test takes it")
            self.partition = None
            await self._owned.aclose()
            self._owned = None

    async def find(self) -> Owner:
        """Finds the owner, as HEAD would name it."""
        if self.partition is None:
            raise LogUnavailableError("nobody owns partition 0")
        return Owner(self.server.address, self.partition.generation, SECRET)

    async def stored(self) -> list[bytes]:
        """Returns the data of all durable transactions."""
        batches = self.store.read_batches(application_partition("0", 0), 0, strong=True)
        return [entry.data for batch in batches for entry in batch.entries]


def waltz_frame(version: int, message: WaltzMessage) -> bytes:
    """Returns a message as a frame."""
    return encode_frame(MESSAGE, version, WALTZ.encode(version, message))


def taken_over(store: LogStore) -> Mount:
    """Mounts partition 0; its present owner counts as dead, whatever it does."""
    clock = iter((0.0, 1e6))
    from kainite.owner.mount import LeaseWatch

    name = application_partition("0", 0)
    watch = LeaseWatch(lambda: next(clock))
    head = store.read_head(name)
    if head is not None:
        watch.remaining(head)
    return mount(store, name, "w1", SETTINGS.lease, watch)


@contextlib.asynccontextmanager
async def world(store: LogStore | None = None, limits: Limits | None = None) -> AsyncIterator[World]:
    """Runs a server, and owns partition 0."""
    service = Applications()
    async with serving(service, Address("127.0.0.1", 0), door=EVERYBODY, limits=limits) as server:
        found = World(service, server, store or MemoryStore())
        await found.own()
        try:
            yield found
        finally:
            await found.disown()


class RawClient:
    """A client on the level of messages.

    Args:
        reader, writer: its socket.
        client: its id.
        generation: that it means.
        version: that it speaks.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: int, generation: int, version: int
    ) -> None:
        self._reader, self._writer = reader, writer
        self._client, self.generation, self._version = client, generation, version
        self._sequence = 0

    def next_id(self, partition: int = 0) -> ReqId:
        self._sequence += 1
        return ReqId(self._client, self.generation, partition, self._sequence)

    def send(self, *messages: WaltzMessage) -> None:
        self._writer.write(b"".join(waltz_frame(self._version, message) for message in messages))

    async def next(self) -> WaltzMessage:
        async with asyncio.timeout(LIMIT_S):
            header = await self._reader.readexactly(HEADER_SIZE)
            body = await self._reader.readexactly(int.from_bytes(header[3:]))
        return decode_hello(body) if header[:1] == b"H" else WALTZ.decode(self._version, body)  # type: ignore[return-value]

    async def greet(self) -> None:
        self._writer.write(encode_hello(WALTZ_HELLO, Hello((self._version,), "raw")))
        hello = await self.next()
        assert isinstance(hello, Hello)

    async def mount(self, mark: int, connection: int = 0, partition: int = 0) -> tuple[list[int], m.MountState]:
        """Mounts; returns the ids that were fed before the answer, and the answer."""
        req_id = self.next_id(partition)
        self.send(m.MountRequest(req_id, mark, connection))
        fed: list[int] = []
        while not isinstance(message := await self.next(), m.MountResponse):
            assert isinstance(message, m.FeedData)
            fed.append(message.transaction_id)
        assert message.req_id == req_id
        return fed, message.state

    def append(
        self,
        mark: int,
        write: Sequence[int] = (),
        read: Sequence[int] = (),
        append: Sequence[int] = (),
        data: bytes = b"data",
        header: int = 0,
    ) -> ReqId:
        req_id = self.next_id()
        self.send(m.AppendRequest(req_id, mark, tuple(write), tuple(read), tuple(append), header, data))
        return req_id

    async def flush(self) -> tuple[list[m.LockFailure], int]:
        """Returns the lock failures of all appends so far, and the mark."""
        self.send(m.FlushRequest(self.next_id()))
        failures: list[m.LockFailure] = []
        while not isinstance(message := await self.next(), m.FlushResponse):
            assert isinstance(message, m.LockFailure), message
            failures.append(message)
        return failures, message.transaction_id

    async def is_cut(self) -> bool:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await self.next()
        return True

    def close(self) -> None:
        self._writer.transport.abort()


@contextlib.asynccontextmanager
async def raw_client(
    found: World, client: int = 1, *, version: int = 4, mark: int | None = -1, connection: int = 0
) -> AsyncIterator[RawClient]:
    """Connects a client, and mounts partition 0 at ``mark`` unless it is None."""
    reader, writer = await asyncio.open_connection("127.0.0.1", found.server.address.port, limit=1 << 25)
    raw = RawClient(reader, writer, client, found.owned.generation, version)
    try:
        await raw.greet()
        if mark is not None:
            assert (await raw.mount(mark, connection))[1] is m.MountState.READY
        yield raw
    finally:
        raw.close()


@dataclass(slots=True)
class Ledger:
    """A program's state: the data of all transactions, in order. Its mark is how many there are, less one.

    Attributes:
        entries: of the transactions.
        broken: ids whose next application fails.
    """

    entries: list[bytes] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)

    async def mark(self) -> int:
        return len(self.entries) - 1

    async def apply(self, transaction: Transaction) -> None:
        data = await transaction.read()
        if transaction.id in self.broken:
            self.broken.discard(transaction.id)
            raise RuntimeError("the state's store is down")
        assert transaction.id == len(self.entries), "a transaction is applied twice, or one is left out"
        self.entries.append(data)


@contextlib.asynccontextmanager
async def program(found: World, ledger: Ledger, proxy: Proxy | None = None) -> AsyncIterator[ApplicationLog]:
    """Runs a program on partition 0, behind a proxy if there is one."""

    async def find() -> Owner:
        owner = await found.find()
        return owner if proxy is None else Owner(proxy.address, owner.generation, owner.token)

    async with connected(ApplicationLog(ledger, find, 0)) as log:
        yield log


class Proxy:
    """A TCP proxy between clients and a server that cuts, delays and throttles.

    Args:
        target: the server.
        seed: of the delays.
    """

    def __init__(self, target: Address, seed: int = 0) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = Address("", 0)
        self.chunk = 1 << 16
        """Most bytes that pass at once."""
        self.delay = 0.0
        """Most seconds for which bytes are held."""
        self.answers = True
        """Whether what the server says passes; otherwise it is lost."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        try:
            yield self
        finally:
            await end_listening(server)
            self.cut()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Cuts all connections; what was on its way is lost."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Knows a connection before its task begins, so that the test's end finds it."""
        self._writers.add(writer)
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._writers.discard(writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):  # the end of the test may cancel it
                far_reader, far_writer = await asyncio.open_connection(self._target.host, self._target.port)
                self._writers.add(far_writer)
                try:
                    await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer, answers=True))
                finally:
                    self._writers.discard(far_writer)
                    far_writer.transport.abort()
        finally:
            writer.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False) -> None:
        while data := await reader.read(self.chunk):
            if answers and not self.answers:
                continue
            if self.delay:
                await asyncio.sleep(self._random.uniform(0.0, self.delay))
            writer.write(data)
            await writer.drain()
        writer.transport.abort()
