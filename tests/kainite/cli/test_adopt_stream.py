"""``kainite log adopt-stream``: a log that collects another stream from now on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kainite.base.position import Position
from kainite.log.state.loading import load_state
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from support.log_builders import fragment
from support.log_cli import LogWorld
from support.names import unique
from support.owned_log import owned_log


async def test_another_stream_is_adopted_when_no_daemon_has_the_log(
    dynamodb: Any, kinesis: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    name, stream, properties = unique("log"), unique("stream"), tmp_path / "app.properties"
    kinesis.create_stream(StreamName=stream, ShardCount=1)
    properties.write_text(
        f"streamName = {stream}\napplicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
        f"kinesisEndpoint = {moto_endpoint}\nunitsOfWork = true\nlogTableName = {name}\n"
    )
    store = DynamoDBStore(dynamodb, name)
    settings = LogSettings(table=name, owner="w", enabled=True, put_interval=0, poll=0.02)
    async with owned_log(store, settings, UowSettings()) as owner:
        world = LogWorld(properties, name, store, owner)
        await owner.collect_from("another stream")
        await owner.append("shard-0", Position(1), Position(1), [fragment("T", [1], count=1)])
        status, _, errors = await world.kainite("log", "adopt-stream", "--yes")
        assert status == 1
        assert "is held by w" in errors
    status, output, errors = await world.kainite("log", "adopt-stream", "--yes", "--why", "it was lost")
    assert status == 0, errors
    assert f"stream/{stream} made " in output
    state = load_state(store, "0", names=True)
    assert (state.positions, "T" in state.recent) == ({}, True)
    assert f"stream/{stream} made " in str(state.stream)
    (noted,) = state.operations.all()
    assert (noted.what, noted.why, noted.result, noted.about) == ("adopt a stream", "it was lost", "done", state.stream)
