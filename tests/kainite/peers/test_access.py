"""What settings of the service come to: where to listen, who may connect, who this process is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogProtocolError, SettingsError
from kainite.base.redaction import forget
from kainite.peers.access import LOG_USER, LOOPBACK, Access, access_of, application_user
from kainite.peers.connection.hello import Hello
from kainite.peers.connection.introduction import Guest, Introduction, Key, introducing, named, new_nonce
from kainite.peers.rights import OF_THE_LOG
from kainite.settings import ServiceSettings

TOKENS = {LOG_USER: Key("token", OF_THE_LOG)}


def let_in(access: Access, who: Introduction) -> Guest:
    theirs = Hello((5,), named("owner", new_nonce()))
    hello, proof = introducing(who, new_nonce(), Hello((5,), None), theirs)
    admitted = access.door(TOKENS.get).judge(theirs, hello)
    assert admitted.proof == proof
    return admitted.guest


def test_without_settings_who_has_read_head_may_connect_on_loopback() -> None:
    access = access_of(ServiceSettings())
    assert (access.listen, access.advertise, access.owner_tls(), access.client_tls()) == (LOOPBACK, None, None, None)
    assert access.has_tokens
    assert let_in(access, access.introduce("w", LOG_USER, "token")) == Guest(LOG_USER, OF_THE_LOG)
    for who in (access.introduce("w", LOG_USER, ""), access.introduce("w", application_user(0), "token")):
        with pytest.raises(LogProtocolError, match="not known, or its proof is wrong"):
            let_in(access, who)


def test_the_first_user_of_the_file_is_who_this_process_is_and_all_may_connect(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("ann:daemon:the first\nbob:follow:the second\n")
    path.chmod(0o600)
    try:
        access = access_of(ServiceSettings(listen=Address("127.0.0.1", 7070), secret_file=path))
    finally:
        forget()
    assert not access.has_tokens
    ann = access.introduce("w", LOG_USER, "")
    assert ann == Introduction("w", "ann", "the first")
    assert "the first" not in repr(access)
    assert let_in(access, ann) == Guest("ann", frozenset({"daemon"}))
    assert let_in(access, Introduction("x", "bob", "the second")) == Guest("bob", frozenset({"follow"}))
    with pytest.raises(LogProtocolError, match="not known, or its proof is wrong"):
        let_in(access, Introduction("x", LOG_USER, "token"))  # the file takes the token's place


def test_a_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="logSecretFile"):
        access_of(ServiceSettings(secret_file=tmp_path / "none"))
