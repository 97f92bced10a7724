"""The server's shell on real sockets: peers that are slow, silent, greedy or wrong disturb nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogProtocolError, SettingsError
from kainite.log.format.entry import ReqId
from kainite.peers import server as server_module
from kainite.peers.connection.core import Limits
from kainite.peers.connection.frames import HEADER_SIZE, PEERS_HELLO, WALTZ_HELLO, keep_alive
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.connection.introduction import Introduction, Secrets
from kainite.peers.server import LogServer, serving
from kainite.peers.service import Peer
from kainite.peers.tls import client_context, owner_context
from kainite.settings import ServiceSettings
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.messages import (
    FlushRequest,
    FlushResponse,
    HighWaterMarkRequest,
    TransactionDataRequest,
    TransactionDataResponse,
)
from kainite.waltz.wire.versions import WALTZ
from support.application_world import waltz_frame
from support.certificates import Authority
from support.waiting import until

HERE = Address("127.0.0.1", 0)
REQ = ReqId(1, 2, 3, 4)
LIMIT_S = 30.0
KNOWN = encode_hello(WALTZ_HELLO, Hello((4,), "x"))
UNKNOWN = encode_hello(WALTZ_HELLO, Hello((9,), None))


class Answers:
    """A service that answers a flush when it is told to, and a data request with so many bytes."""

    codec = WALTZ

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.taken: list[WaltzMessage] = []
        self.peers: list[Peer[WaltzMessage]] = []

    async def take(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Coroutine[Any, Any, None] | None:
        self.taken.append(message)
        match message:
            case FlushRequest(req_id):
                return self._flush(peer, req_id)
            case TransactionDataRequest(req_id, size):
                return peer.send(TransactionDataResponse(req_id, size, bytes(size)))
            case HighWaterMarkRequest():
                raise LogProtocolError("no marks here")
        return None

    async def _flush(self, peer: Peer[WaltzMessage], req_id: ReqId) -> None:
        await self.go.wait()
        await peer.send(FlushResponse(req_id, 7))

    def left(self, peer: Peer[WaltzMessage]) -> None:
        self.peers.append(peer)


class Client:
    """A client of the test's own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def frame(self) -> bytes:
        async with asyncio.timeout(LIMIT_S):
            header = await self.reader.readexactly(HEADER_SIZE)
            return await self.reader.readexactly(int.from_bytes(header[3:]))

    async def message(self) -> WaltzMessage:
        return WALTZ.decode(4, await self.frame())

    async def greet(self, message: str = "test") -> Hello:
        self.writer.write(encode_hello(WALTZ_HELLO, Hello((0, 1, 2, 3, 4), message)))
        return decode_hello(await self.frame())

    def ask(self, message: WaltzMessage) -> None:
        self.writer.write(waltz_frame(4, message))

    async def is_cut(self) -> bool:
        async with asyncio.timeout(LIMIT_S):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(1 << 16):
                    pass
        return True


@contextlib.asynccontextmanager
async def client_of(server: LogServer[WaltzMessage], tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def _say_alive(client: Client) -> None:
    while True:
        client.writer.write(keep_alive(4))
        await asyncio.sleep(0.05)


async def answers_well(
    server: LogServer[WaltzMessage], tls: ssl.SSLContext | None = None, message: str = "test"
) -> None:
    async with client_of(server, tls) as client:
        assert (await client.greet(message)).versions == (0, 1, 2, 3, 4)
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)


async def test_a_peer_is_answered_and_the_service_hears_that_it_left() -> None:
    service = Answers()
    async with serving(service, HERE) as server:
        await answers_well(server)
        assert service.taken == [FlushRequest(REQ)]
    assert len(service.peers) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        encode_hello(WALTZ_HELLO, Hello((9,), None)),
        b"H\0\0\x7f\xff\xff\xff",
    ],
)
async def test_a_peer_that_sends_garbage_is_cut_and_disturbs_nobody(garbage: bytes) -> None:
    async with serving(Answers(), HERE) as server, client_of(server) as client:
        client.writer.write(garbage)
        assert await client.is_cut()
        await answers_well(server)


async def test_a_peer_of_the_other_protocol_is_told_where_to_connect() -> None:
    async with serving(Answers(), HERE) as server, client_of(server) as client:
        client.writer.write(encode_hello(PEERS_HELLO, Hello((1,), "a daemon")))
        assert decode_hello(await client.frame()).versions == (0, 1, 2, 3, 4)
        refusal = decode_hello(await client.frame())
        assert refusal.versions == ()
        assert "daemons and the apply job connect to the port of logListen" in (refusal.message or "")
        assert await client.is_cut()
        await answers_well(server)


async def test_a_peer_whose_request_is_refused_is_cut() -> None:
    async with serving(Answers(), HERE) as server, client_of(server) as client:
        await client.greet()
        client.ask(HighWaterMarkRequest(REQ))
        assert await client.is_cut()
        await answers_well(server)


@pytest.mark.parametrize(
    "sent",
    [b"", b"H", KNOWN, KNOWN + b"L\0"],
)
async def test_a_peer_that_is_silent_or_stops_midway_is_cut(sent: bytes) -> None:
    limits = Limits(greeting=0.2, silent=0.2, frame=0.2)
    async with serving(Answers(), HERE, limits=limits) as server, client_of(server) as client:
        client.writer.write(sent)
        assert await client.is_cut()


async def test_a_peer_that_says_it_is_alive_is_not_silent() -> None:
    async with (
        serving(Answers(), HERE, limits=Limits(silent=0.5)) as server,
        client_of(server) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        await client.greet()
        alive = asyncio.create_task(_say_alive(client))
        silent = [await stack.enter_async_context(client_of(server)) for _ in range(2)]
        for other in silent:  # each is cut when it was silent for the limit
            await other.greet()
            assert await other.is_cut()
        alive.cancel()
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)


async def test_a_peer_that_takes_nothing_is_cut_and_disturbs_nobody() -> None:
    service = Answers()
    async with serving(service, HERE, limits=Limits(slow=0.3)) as server, client_of(server) as client:
        await client.greet()
        for _ in range(64):
            client.ask(TransactionDataRequest(REQ, 1 << 20))
        await answers_well(server)
        await until(lambda: len(service.peers) == 2)


async def test_no_more_is_read_from_a_peer_than_its_credit_and_all_is_answered_in_the_end() -> None:
    service = Answers()
    service.go.clear()
    async with serving(service, HERE, limits=Limits(messages=5)) as server, client_of(server) as client:
        await client.greet()
        for sequence in range(20):
            client.ask(FlushRequest(ReqId(1, 2, 3, sequence)))
        await until(lambda: len(service.taken) == 5)
        await answers_with_credit(server, service)
        assert len([message for message in service.taken if message.req_id.client == 1]) == 5
        service.go.set()
        answered = [await client.message() for _ in range(20)]
        assert sorted(message.req_id.sequence for message in answered) == list(range(20))


async def answers_with_credit(server: LogServer[WaltzMessage], service: Answers) -> None:
    """Shows that another peer is answered, by a request that waits for nothing."""
    async with client_of(server) as other:
        await other.greet()
        other.ask(TransactionDataRequest(ReqId(2, 0, 0, 0), 3))
        assert await other.message() == TransactionDataResponse(ReqId(2, 0, 0, 0), 3, bytes(3))


async def test_credit_in_bytes_lets_one_large_message_pass_alone() -> None:
    service = Answers()
    async with serving(service, HERE, limits=Limits(bytes=10)) as server:
        await answers_well(server)


async def test_connections_without_a_hello_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_GREETING", 3)
    async with serving(Answers(), HERE) as server, contextlib.AsyncExitStack() as stack:
        flood = [await stack.enter_async_context(client_of(server)) for _ in range(10)]
        await answers_well(server)
        assert await flood[0].is_cut()


async def test_beyond_the_most_peers_a_connection_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_PEERS", 1)
    async with serving(Answers(), HERE) as server:
        async with client_of(server) as client:
            await client.greet()
            await until(lambda: server.peers == 1)
            async with client_of(server) as other:
                assert await other.is_cut()
        await until(lambda: server.peers == 0)
        await answers_well(server)


async def test_a_stop_sends_the_replies_under_way_and_then_closes() -> None:
    service = Answers()
    service.go.clear()
    async with contextlib.AsyncExitStack() as stack:
        async with serving(service, HERE) as server:
            client = await stack.enter_async_context(client_of(server))
            await client.greet()
            client.ask(FlushRequest(REQ))
            await until(lambda: bool(service.taken))
            asyncio.get_running_loop().call_later(0.05, service.go.set)
        assert await client.message() == FlushResponse(REQ, 7)
        assert await client.is_cut()


async def test_an_address_in_use_is_told() -> None:
    async with serving(Answers(), HERE) as server:
        said = r"logListen: cannot listen on 127\.0\.0\.1:\d+: .* need a port each"
        with pytest.raises(SettingsError, match=said):
            async with serving(Answers(), server.address):
                pass


async def test_secrets_are_judged_before_anything_else() -> None:
    service = Answers()
    async with serving(service, HERE, secrets=Secrets({"ann": "one"})) as server:
        for message in ("test", Introduction("test", "ann", "two").as_message()):
            async with client_of(server) as client:
                client.writer.write(encode_hello(WALTZ_HELLO, Hello((4,), message)) + waltz_frame(4, FlushRequest(REQ)))
                assert await client.is_cut()
        assert service.taken == []
        await answers_well(server, message=Introduction("test", "ann", "one").as_message())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


def settings_of(authority: Authority, name: str) -> ServiceSettings:
    signed = authority.sign(name)
    return ServiceSettings(certificate_file=signed.certificate, key_file=signed.key, trust_file=authority.trust)


async def test_tls_with_certificates_on_both_sides(authority: Authority, tmp_path: Path) -> None:
    tls = owner_context(settings_of(authority, "owner"))
    async with serving(Answers(), HERE, tls=tls, limits=Limits(greeting=5)) as server:
        await answers_well(server, client_context(settings_of(authority, "client")))
        stranger = Authority(tmp_path, "stranger").sign("eve")
        wrong = [
            ServiceSettings(trust_file=authority.trust),
            ServiceSettings(certificate_file=stranger.certificate, key_file=stranger.key, trust_file=authority.trust),
        ]
        for settings in wrong:
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                async with client_of(server, client_context(settings)) as client:
                    client.writer.write(encode_hello(WALTZ_HELLO, Hello((4,), "x")))
                    assert await client.is_cut()
        async with client_of(server) as plain, client_of(server):  # one speaks no TLS, one says nothing
            plain.writer.write(encode_hello(WALTZ_HELLO, Hello((4,), "x")))
            assert await plain.is_cut()
            await answers_well(server, client_context(settings_of(authority, "client")))
        assert server.peers <= 1


async def test_a_client_notices_an_owner_with_another_authority(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with serving(Answers(), HERE, tls=owner_context(settings_of(stranger, "owner"))) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            async with client_of(server, client_context(ServiceSettings(trust_file=authority.trust))):
                pass


@pytest.mark.parametrize(
    ("field", "said"),
    [("certificate_file", "logCertificateFile"), ("key_file", "logKeyFile"), ("trust_file", "logTrustFile")],
)
def test_a_file_that_is_no_certificate_is_told(authority: Authority, tmp_path: Path, field: str, said: str) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no certificate\n")
    signed = authority.sign("owner")
    files = {"certificate_file": signed.certificate, "key_file": signed.key, "trust_file": authority.trust}
    files[field] = broken
    with pytest.raises(SettingsError, match=said):
        owner_context(ServiceSettings(None, None, files["certificate_file"], files["key_file"], files["trust_file"]))


async def test_a_peer_that_waits_for_the_owners_hello_is_greeted_all_the_same() -> None:
    async with serving(Answers(), HERE) as server, client_of(server) as client:
        assert decode_hello(await client.frame()).versions == (0, 1, 2, 3, 4)
        client.writer.write(encode_hello(WALTZ_HELLO, Hello((4, 9), "late")))
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)


class Beside(Answers):
    """A service that does something beside each peer's messages."""

    def __init__(self) -> None:
        super().__init__()
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.works = 0

    async def take(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Coroutine[Any, Any, None] | None:
        peer.beside(self._work())
        return await super().take(peer, message)

    async def _work(self) -> None:
        self.works += 1
        try:
            await asyncio.shield(self.end)
        finally:
            self.works -= 1


@pytest.mark.parametrize("error", [None, LogProtocolError("it breaks")])
async def test_the_end_of_what_is_done_beside_messages_is_the_connections(error: Exception | None) -> None:
    service = Beside()
    async with serving(service, HERE) as server, client_of(server) as client:
        await client.greet()
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)
        if error is None:
            service.end.set_result(None)
        else:
            service.end.set_exception(error)
        assert await client.is_cut()


async def test_what_is_done_beside_messages_ends_with_the_peer_and_with_a_stop() -> None:
    service = Beside()
    async with contextlib.AsyncExitStack() as stack:
        async with serving(service, HERE) as server:
            client = await stack.enter_async_context(client_of(server))
            async with client_of(server) as other:
                for one in (client, other):
                    await one.greet()
                    one.ask(FlushRequest(REQ))
                    assert await one.message() == FlushResponse(REQ, 7)
                assert service.works == 2
            await until(lambda: service.works == 1)
        assert await client.is_cut()
        assert service.works == 0
    service.end.cancel()
