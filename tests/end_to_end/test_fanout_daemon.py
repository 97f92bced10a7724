"""Runs ``kainite run`` with enhanced fan-out: the whole daemon, on one stream and on two, killed and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.java_kcl import Application, kill, terminate
from support.kinesis_local import client_of, kinesis_local
from support.names import unique


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


@pytest.mark.long
def test_a_daemon_of_two_streams_subscribes_to_the_shards_of_each(
    moto_endpoint: str, dynamodb: Any, tmp_path: Path
) -> None:
    with kinesis_local() as endpoint:
        client, names = client_of(endpoint), (unique("orders"), unique("payments"))
        client.create_stream(StreamName=names[1], ShardCount=1)
        client.get_waiter("stream_exists").wait(StreamName=names[1], WaiterConfig={"Delay": 1})
        keys = {
            "retrievalMode": "FANOUT", "applicationName": unique("several"), "streamName": "",
            "streamNames": ", ".join(names),
        }  # fmt: skip
        app = Application(client, dynamodb, endpoint, moto_endpoint, tmp_path, 1, keys, names[0])

        def put(*payloads: str) -> None:
            for name, payload in zip(names, payloads, strict=True):
                client.put_record(StreamName=name, Data=payload.encode(), PartitionKey="k")

        put("a", "b")
        with app.kainite("w") as daemon:
            app.eventually(lambda: app.payloads() >= set("ab"), "a record of each stream")
            kill(daemon)
        put("c", "d")
        with app.kainite("w") as daemon:
            app.eventually(lambda: app.payloads() == set("abcd"), "a record of each stream after the restart")
            terminate(daemon)
        assert daemon.returncode == 0
        summaries = [client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"] for name in names]
        assert [stream["ConsumerCount"] for stream in summaries] == [1, 1]
