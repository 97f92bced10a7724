"""``kainite replicate cutover`` as a user runs it; the whole way is tests/docs/test_replicate_page.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.cli.main import main
from kainite.store.dynamodb import DynamoDBStore
from support.postgresql_source import source
from support.replicas import run

__all__ = ["source"]


@pytest.fixture
def file(source: SourceSlot, postgres: str, tmp_path: Path, dynamodb: Any, moto_endpoint: str) -> Path:
    values = {
        "applicationName": source.slot, "streamName": source.slot, "target": postgres,
        "extractorName": f"{PROGRAM} --source {source.url!r} --slot {source.slot} --publication changes",
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
        "unitsOfWork": "true", "dynamoDBEndpoint": moto_endpoint, "regionName": "us-east-1",
    }  # fmt: skip
    DynamoDBStore(dynamodb, f"{source.slot}-log").create()
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def cutover(file: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["replicate", "cutover", "-p", str(file), *words])
    return result.exit_code, result.output


def test_all_that_is_in_the_way_is_told_at_once_and_nothing_is_changed(source: SourceSlot, file: Path) -> None:
    code, output = cutover(file, "--json")
    found = json.loads(output)
    assert (code, found["ready"]) == (1, False)
    wrong = {finding["about"]: finding["mend"] for finding in found["findings"] if finding["verdict"] == "wrong"}
    assert wrong.keys() == {"settings", "source", "slot", "target"}
    assert wrong["settings"] == "uowOrder = dense"
    assert "SET default_transaction_read_only = on" in wrong["source"]
    with create_slot(source):
        pass
    assert run(source.url, "SELECT count(*) FROM pg_replication_slots WHERE temporary") == [(0,)]
    code, output = cutover(file, "--check")
    assert code == 1
    assert "slot" not in output
    assert "kainite replicate load -p" in output


def test_there_is_nothing_to_take_back(file: Path) -> None:
    assert cutover(file, "--undo") == (0, "the target was not cut over\n")
    code, output = cutover(file, "--undo", "--json")
    assert (code, json.loads(output)) == (0, {"undone": False})
