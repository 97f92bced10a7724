"""TLS on real sockets, from the files that the settings name."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.peers.connection.core import Limits
from kainite.peers.connection.frames import WALTZ_HELLO
from kainite.peers.connection.hello import Hello, encode_hello
from kainite.peers.server import serving
from kainite.peers.tls import client_context, owner_context
from kainite.settings import ServiceSettings
from support.certificates import Authority
from support.doors import EVERYBODY
from support.served_peers import (
    HERE,
    Answers,
    answers_well,
    client_of,
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


def settings_of(authority: Authority, name: str) -> ServiceSettings:
    signed = authority.sign(name)
    return ServiceSettings(certificate_file=signed.certificate, key_file=signed.key, trust_file=authority.trust)


async def test_tls_with_certificates_on_both_sides(authority: Authority, tmp_path: Path) -> None:
    tls = owner_context(settings_of(authority, "owner"))
    async with serving(Answers(), HERE, door=EVERYBODY, tls=lambda: tls, limits=Limits(greeting=5)) as server:
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
    tls = owner_context(settings_of(stranger, "owner"))
    async with serving(Answers(), HERE, door=EVERYBODY, tls=lambda: tls) as server:
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
