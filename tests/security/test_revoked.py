"""Certificates and secrets are replaced while connections stand: with real TLS, on the port of the log's owner.

Who was let in by a line of the file of users that is changed or gone is cut off; nobody else is disturbed.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.base.position import Position
from kainite.base.redaction import forget
from kainite.peers.access import access_of
from kainite.peers.address import OwnerAddress, from_text
from kainite.peers.client import ClientLink, linked
from kainite.peers.connection.introduction import Introduction
from kainite.peers.messages import PEERS, Message, RequestRefused, RowRequest
from kainite.peers.sharing.shared_log import SharedLog
from kainite.settings import ServiceSettings
from support.certificates import Authority
from support.log_builders import fragment
from support.log_members import LIMIT, P, members, units_of
from support.waiting import until

ASKED = RowRequest(1, 0, f"t/{P}", "orders", {"id": "1"})
BOTH = "host:daemon:secret of host\nperson:operate:secret of person\n"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[ServiceSettings]:
    authority = Authority(tmp_path, "authority")
    signed = authority.sign("host")
    users = tmp_path / "users"
    users.touch(0o600)
    users.write_text(BOTH)
    yield ServiceSettings(
        certificate_file=signed.certificate, key_file=signed.key, trust_file=authority.trust, secret_file=users
    )
    forget()


def address_of(log: SharedLog) -> OwnerAddress:
    found = from_text(log.address)
    assert found is not None
    return found


def person(secret: str = "secret of person") -> Introduction:
    return Introduction("test", "person", secret)


def put(path: Path, contents: str | bytes) -> None:
    """Puts a new file into a file's place, as a well-behaved writer does."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.touch(0o600)
    fresh.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    fresh.replace(path)


def told(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """Returns the fields of the event of a peer that was cut."""
    (fields,) = [record.kainite_fields for record in caplog.records if record.getMessage() == "log peer cut"]  # type: ignore[attr-defined]
    return dict(fields)


async def is_answered(link: ClientLink[Message]) -> bool:
    async with asyncio.timeout(LIMIT):
        link.send(ASKED)
        return not isinstance(await link.next(), RequestRefused)


async def is_cut(link: ClientLink[Message]) -> bool:
    with pytest.raises(LogUnavailableError):
        async with asyncio.timeout(LIMIT):
            await link.next()
    return True


async def shown_certificate(log: SharedLog, tls: ssl.SSLContext | None) -> bytes:
    """Returns the certificate that a new connection is shown."""
    address = address_of(log)
    _, writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert isinstance(shown, bytes)
        return shown
    finally:
        writer.transport.abort()


async def test_a_new_certificate_is_shown_to_new_connections_and_the_old_ones_live_on(
    settings: ServiceSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert settings.certificate_file is not None
    assert settings.key_file is not None
    assert settings.trust_file is not None
    old = ssl.PEM_cert_to_DER_cert(settings.certificate_file.read_text())
    other = tmp_path / "other"
    other.mkdir()
    successor = Authority(other, "successor")
    fresh = successor.sign("host")
    new = ssl.PEM_cert_to_DER_cert(fresh.certificate.read_text())
    async with members() as all_:
        owner = await all_.join("a", access=access_of(settings))
        mine = access_of(settings)  # of another process
        member = await all_.join("b", access=mine)
        assert await shown_certificate(owner, mine.client_tls()) == old
        # Both authorities are trusted; then the certificate changes; then the old authority is trusted no more.
        put(settings.trust_file, settings.trust_file.read_bytes() + successor.trust.read_bytes())
        trusting_both = [owner.access.held.now, mine.held.now]
        await until(lambda: owner.access.held.now is not trusting_both[0])
        await until(lambda: mine.held.now is not trusting_both[1])
        put(settings.certificate_file, fresh.certificate.read_bytes())
        put(settings.key_file, fresh.key.read_bytes())
        trusting_new = owner.access.held.now
        await until(lambda: owner.access.held.now is not trusting_new)
        await until(lambda: mine.held.now.validity == owner.access.held.now.validity)
        assert await shown_certificate(owner, mine.client_tls()) == new
        put(settings.trust_file, successor.trust.read_bytes())
        mine.held.ask()
        read_once_more = mine.held.now
        await until(lambda: mine.held.now is not read_once_more)
        assert await shown_certificate(owner, mine.client_tls()) == new
        assert member.is_reached  # over the connection of the beginning:
        assert [record.getMessage() for record in caplog.records].count("log reached") == 1
        await member.append("s0", Position(1), Position(1), [fragment("T", [1], count=1)])
    assert units_of(all_.store) == ["T"]


@pytest.mark.parametrize(
    ("now", "is_out"),
    [
        ("host:daemon:secret of host\n", True),
        ("host:daemon:secret of host\nperson:operate:another secret\n", True),
        ("host:daemon:secret of host\nperson:operate,follow:secret of person\n", True),
        (BOTH + "more:operate:a third secret\n", False),
    ],
)
async def test_the_connections_of_a_user_that_is_revoked_are_closed_and_no_others(
    settings: ServiceSettings, now: str, is_out: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert settings.secret_file is not None
    async with members() as all_:
        owner = await all_.join("a", access=access_of(settings))
        mine = access_of(settings)
        host = Introduction("test", "host", "secret of host")
        async with (
            linked(PEERS, address_of(owner), person(), tls=mine.client_tls()) as link,
            linked(PEERS, address_of(owner), host, tls=mine.client_tls()) as other,
        ):
            before = owner.access.held.now
            put(settings.secret_file, now)
            owner.access.held.ask()
            if is_out:
                assert await is_cut(link)
                assert "the user is gone from logSecretFile" in str(told(caplog)["cause"])
            else:
                await until(lambda: owner.access.held.now is not before)
                assert await is_answered(link)
            assert not await is_answered(other)  # it lacks the right, and is told so: its connection stands
        if "secret of person" not in now:
            with pytest.raises(LogProtocolError, match="does not let this process in"):
                async with linked(PEERS, address_of(owner), person(), tls=mine.client_tls()):
                    pass


async def test_a_file_that_somebody_broke_lets_nobody_else_in_and_nobody_out(settings: ServiceSettings) -> None:
    assert settings.secret_file is not None
    async with members() as all_:
        owner = await all_.join("a", access=access_of(settings))
        mine = access_of(settings)
        async with linked(PEERS, address_of(owner), person(), tls=mine.client_tls()) as link:
            settings.secret_file.write_text("eve:operate:secret of eve\n")
            settings.secret_file.chmod(0o666)  # others may write it: what they wrote counts for nothing
            await until(lambda: "may be read or changed by others" in owner.access.held.trouble)
            assert await is_answered(link)
            eve = Introduction("test", "eve", "secret of eve")
            with pytest.raises(LogProtocolError, match="does not let this process in"):
                async with linked(PEERS, address_of(owner), eve, tls=mine.client_tls()):
                    pass
            async with linked(PEERS, address_of(owner), person(), tls=mine.client_tls()) as another:
                assert await is_answered(another)


async def test_a_member_takes_up_its_new_secret_without_a_start(settings: ServiceSettings, tmp_path: Path) -> None:
    # The owner's file has the new secret first; the member is cut, and comes back when its own file has it, too.
    assert settings.secret_file is not None
    own = tmp_path / "own"
    put(own, "host:daemon:secret of host\n")
    async with members() as all_:
        owner = await all_.join("a", access=access_of(settings))
        member = await all_.join("b", access=access_of(replace(settings, secret_file=own)))
        put(settings.secret_file, "host:daemon:a new secret\n")
        await until(lambda: not member.is_reached)
        put(own, "host:daemon:a new secret\n")
        await until(lambda: member.is_reached)
        await member.append("s0", Position(1), Position(1), [fragment("T", [1], count=1)])
        assert owner.owner is not None
    assert units_of(all_.store) == ["T"]
