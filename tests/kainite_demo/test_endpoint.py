"""Gives ``kainite demo --endpoint`` addresses where nothing answers."""

from __future__ import annotations

import socket

import pytest
from click.testing import CliRunner

from kainite.base.errors import DemoError
from kainite.cli.main import main
from kainite_demo.services import running


def test_an_address_that_is_none_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["demo", "--endpoint", "localhost:4566"])

    assert result.exit_code == 2
    assert "must be an address like http://localhost:4566" in result.stderr


def test_an_address_where_nobody_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

    with pytest.raises(DemoError, match=f"no Kinesis at {address}: start it"), running(address, "kainite-demo-x"):
        pass
