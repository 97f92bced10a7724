"""Messages to systemd arrive on a real socket, and a missing one is no reason to fail."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kainite.base import service_manager
from support.names import unique


@pytest.mark.parametrize("abstract", [False, True])
def test_messages_come_in_one_datagram(abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = unique("notify") if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if abstract else name)
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if abstract else name)

        service_manager.tell(service_manager.READY, service_manager.status("reads\nstream s"))

        assert manager.recv(1000) == b"READY=1\nSTATUS=reads stream s"


@pytest.mark.parametrize("address", ["", "vsock:1:2", "/nowhere/at/all"])
def test_without_a_service_manager_nobody_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)

    service_manager.tell(service_manager.READY)


def test_a_long_cause_is_cut() -> None:
    assert len(service_manager.status("x" * 10_000)) < 400
