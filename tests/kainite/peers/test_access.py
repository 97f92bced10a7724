"""What settings of the service come to: where to listen, who may connect, who this process is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogProtocolError, SettingsError
from kainite.base.redaction import forget
from kainite.peers.access import LOOPBACK, access_of
from kainite.peers.connection.hello import Hello
from kainite.peers.connection.introduction import Introduction
from kainite.settings import ServiceSettings


def test_without_settings_everybody_on_the_host_may_connect() -> None:
    access = access_of(ServiceSettings())
    assert (access.listen, access.advertise, access.owner_tls, access.client_tls) == (LOOPBACK, None, None, None)
    access.secrets.judge(Hello((5,), None))
    assert access.introduce("w") == Introduction("w")


def test_the_first_user_of_the_file_is_who_this_process_is_and_all_may_connect(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("ann:the first\nbob:the second\n")
    path.chmod(0o600)
    try:
        access = access_of(ServiceSettings(listen=Address("127.0.0.1", 7070), secret_file=path))
    finally:
        forget()
    assert access.introduce("w") == Introduction("w", "ann", "the first")
    assert "the first" not in repr(access)
    access.secrets.judge(Hello((5,), Introduction("x", "bob", "the second").as_message()))
    with pytest.raises(LogProtocolError, match="user or secret"):
        access.secrets.judge(Hello((5,), "x"))


def test_a_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="logSecretFile"):
        access_of(ServiceSettings(secret_file=tmp_path / "none"))
