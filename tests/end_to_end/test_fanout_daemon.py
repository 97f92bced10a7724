"""Runs ``kainite run`` with enhanced fan-out: the whole daemon, killed and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.java_kcl import Application, kill, terminate
from support.kinesis_local import client_of, kinesis_local


def test_a_daemon_that_subscribes_delivers_all_and_goes_on_after_a_kill(
    moto_endpoint: str, dynamodb: Any, tmp_path: Path
) -> None:
    with kinesis_local() as endpoint:
        client = client_of(endpoint)
        app = Application(client, dynamodb, endpoint, moto_endpoint, tmp_path, 2, {"retrievalMode": "FANOUT"})
        with app.kainite("w") as daemon:
            app.put("a", "b", "c", "d")
            app.eventually(lambda: app.payloads() >= set("abcd"), "a record that was pushed")
            kill(daemon)
        app.put("e", "f")
        with app.kainite("w") as daemon:
            app.eventually(lambda: app.payloads() >= set("abcdef"), "a record after the restart")
            app.put("g", "h")
            app.eventually(lambda: app.payloads() == set("abcdefgh"), "a record on the new subscription")
            terminate(daemon)
        assert daemon.returncode == 0
        stream = client.describe_stream_summary(StreamName=app.name)["StreamDescriptionSummary"]
        assert stream["ConsumerCount"] == 1
