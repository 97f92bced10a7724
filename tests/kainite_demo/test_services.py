"""The demo's Kinesis and DynamoDB: moto's, or those at an address; and what its processes see of this one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kainite.base.errors import DemoError
from kainite_demo.services import create_stream, dynamodb_client, environment, kinesis_client, moto, running
from support.names import unique
from support.names_of_all import stream_names, table_names


def test_an_address_where_nobody_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

    with pytest.raises(DemoError, match=f"no Kinesis at {address}: start it"), running(address, "kainite-demo-x"):
        pass


def tables(endpoint: str) -> list[str]:
    return table_names(dynamodb_client(endpoint))


def make_table(endpoint: str, name: str) -> None:
    dynamodb_client(endpoint).create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def test_at_an_address_only_what_is_named_after_the_run_is_deleted(moto_endpoint: str) -> None:
    name, other = unique("run"), unique("other")
    make_table(moto_endpoint, other)
    with running(moto_endpoint, name) as address:
        assert address() == moto_endpoint
        create_stream(kinesis_client(moto_endpoint), name, 2)
        make_table(moto_endpoint, f"{name}-log")

    assert other in tables(moto_endpoint)
    assert f"{name}-log" not in tables(moto_endpoint)
    assert name not in stream_names(kinesis_client(moto_endpoint))


def test_a_run_that_made_nothing_leaves_without_an_error(moto_endpoint: str) -> None:
    with running(moto_endpoint, unique("run")):
        pass


def test_moto_runs_while_the_with_lasts(tmp_path: Path) -> None:
    with moto(tmp_path / "moto.log") as address:
        endpoint = address()
        create_stream(kinesis_client(endpoint), "s", 3)
        assert (
            kinesis_client(endpoint).describe_stream_summary(StreamName="s")["StreamDescriptionSummary"][
                "OpenShardCount"
            ]
            == 3
        )

    host, _, port = endpoint.removeprefix("http://").partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


def test_a_server_that_does_not_start_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "no number")

    with moto(tmp_path / "moto.log") as address, pytest.raises(DemoError, match=r"moto's server does not start: .+"):
        address()


def test_the_processes_see_nothing_of_the_users_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    monkeypatch.setenv("LANG", "C")

    seen = environment(tmp_path)

    assert "mine" not in seen.values()
    assert (seen["LANG"], seen["TMPDIR"]) == ("C", str(tmp_path))


def test_options_of_the_users_for_sparks_jvm_hold_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xshare:auto")

    assert environment(tmp_path)["SPARK_SUBMIT_OPTS"] == f"-Djava.io.tmpdir={tmp_path} -Xshare:auto"
