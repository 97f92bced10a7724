"""The log that the settings name: its table, and its partition."""

from __future__ import annotations

import sys
from pathlib import Path

from kainite.cli.opened_log import opened_log
from kainite.settings import load


def test_table_and_partition_are_those_of_the_settings(tmp_path: Path, moto_endpoint: str) -> None:
    path = tmp_path / "app.properties"
    path.write_text(
        f"applicationName=app\nstreamName=s\nexecutableName={sys.executable}\nregionName=us-east-1\n"
        f"dynamoDBEndpoint={moto_endpoint}\nlogTableName=the-log\nlogPartition=7\n"
    )
    store, partition = opened_log(load(path))

    store.create()
    assert partition == "7"
    assert store.read_head(partition) is None
