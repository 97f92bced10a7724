"""Runs the demo's main job with kills, with LocalStack for AWS and properties/localstack.properties."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from support.names_of_all import table_names

ROOT = Path(__file__).parents[2]
LIMIT = 500.0
# kinesis-mock takes a millisecond or two a record.
SMALL = ("--seconds", "10", "--rate", "20", "--clients", "4", "--scale", "2", "--shards", "2")


@pytest.mark.xdist_group("spark")
def test_the_main_job_through_kills_and_nothing_is_left_on_localstack(
    endpoint: str, kinesis: Any, dynamodb: Any
) -> None:
    properties = ROOT / "properties/localstack.properties"
    command = ("-m", "kainite", "demo", "--json", "--kill", *SMALL, "--endpoint", endpoint, "-p", str(properties))

    ended = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=LIMIT, check=False)

    assert ended.returncode == 0, ended.stderr
    summary = orjson.loads(ended.stdout)
    assert summary["transactions"] > 100
    assert summary["records"] == 5 * summary["transactions"]
    assert set(summary["kills"]) == {"daemon", "apply job", "extractor"}
    streams = kinesis.list_streams()["StreamNames"]
    tables = table_names(dynamodb)
    said = re.search(r"are called (\S+)", ended.stderr)
    assert said
    # Another run may be at the same LocalStack.
    assert [name for name in [*streams, *tables] if name.startswith(said[1])] == []
