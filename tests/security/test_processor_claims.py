"""A record processor says that its deltas are of another shard or position: the daemon's call alone decides."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import Fault, FragmentMeta, Meta, PositionMeta, UnitMeta
from support import shared_host
from support.shared_host import LIMIT, has_log, log_rows, put, running, unit_line
from support.waiting import eventually

MINE, OTHERS = "shardId-000000000000", "shardId-000000000001"
FAR = "9" * 56
OF_OTHERS = 2**127
"""A hash key in the second one of two shards."""

CLAIMS: Mapping[str, Any] = {
    "shard": OTHERS, "shardId": OTHERS, "partition": "9", "logPartition": "9", "position": FAR, "sequence": FAR,
    "sequenceNumber": FAR, "subSequenceNumber": 7, "worker": "evil",
}  # fmt: skip

PROCESSOR = """
import base64, json, os, sys
folder, far = sys.argv[1], sys.argv[2]
for line in sys.stdin:
    asked = json.loads(line)
    for record in asked.get("records", ()):
        print(base64.b64decode(record["data"]).decode(), flush=True)
        print(json.dumps({"action": "checkpoint", "sequenceNumber": far, "subSequenceNumber": 0}), flush=True)
        with open(folder + "/answers", "a") as answers:
            answers.write(sys.stdin.readline())
    print(json.dumps({"action": "status", "responseFor": asked["action"]}), flush=True)
"""


@pytest.fixture
def application(moto_endpoint: str, open_folder: Path) -> dict[str, str]:
    """Gives the settings of an application with two shards, whose record processor asks for a far checkpoint."""
    (open_folder / "processor.py").write_text(PROCESSOR)
    command = f"{sys.executable} {open_folder / 'processor.py'} {open_folder} {FAR}"
    return shared_host.application(moto_endpoint, open_folder, shards=2) | {"executableName": command}


def metas(application: Mapping[str, str]) -> list[Meta]:
    if not has_log(application):
        return []
    return [entry.meta for batch in log_rows(application).read_batches("0", 0, strong=True) for entry in batch.entries]


def units(application: Mapping[str, str]) -> dict[str, UnitMeta]:
    return {meta.uow: meta for meta in metas(application) if isinstance(meta, UnitMeta)}


def envelope(claims: Mapping[str, Any]) -> bytes:
    """Returns an emit line of a sound unit, with claims beside its deltas."""
    return json.dumps({**json.loads(unit_line("T-1", 1, "one")), **claims}).encode()


def delta_with(field: str, value: object) -> bytes:
    """Returns an emit line of a unit whose delta makes a claim."""
    line = json.loads(unit_line(f"claims {field}", 2, "two"))
    line["deltas"][0][field] = value
    return json.dumps(line).encode()


@pytest.mark.timeout(180)
def test_shard_and_position_are_those_of_the_daemons_call(application: dict[str, str], open_folder: Path) -> None:
    put(application, envelope(CLAIMS))
    for field, value in CLAIMS.items():
        put(application, delta_with(field, value))
    with running("run", application, open_folder):
        eventually(lambda: len(units(application)) == 1 + len(CLAIMS), LIMIT)
        found = units(application)
        assert (found["T-1"].shards, found["T-1"].fault) == ((MINE,), None)
        assert {found[f"claims {field}"].fault for field in CLAIMS} == {Fault.MALFORMED}
        assert {found[f"claims {field}"].cause for field in CLAIMS} == {
            f"unknown field {field!r} in a delta" for field in CLAIMS
        }
        told = metas(application)
        assert {meta.shard for meta in told if isinstance(meta, PositionMeta | FragmentMeta)} == {MINE}
        assert max(meta.position.sequence for meta in told if isinstance(meta, PositionMeta)) < int(FAR)
        # The other shard's records count as new, whatever was said of it.
        put(application, unit_line("T-2", 3, "three"), OF_OTHERS)
        eventually(lambda: "T-2" in units(application), LIMIT)
    assert units(application)["T-2"].shards == (OTHERS,)
    _no_checkpoint_is_far(application, open_folder)


def _no_checkpoint_is_far(application: Mapping[str, str], folder: Path) -> None:
    answers = [json.loads(line) for line in (folder / "answers").read_text().splitlines()]
    assert len(answers) >= 2
    assert {answer["error"] for answer in answers} == {"IllegalArgumentException"}
    dynamodb = boto3.client("dynamodb", endpoint_url=application["dynamoDBEndpoint"], region_name="us-east-1")
    leases = LeaseTable(dynamodb, application["applicationName"]).scan()
    assert {lease.key for lease in leases} == {MINE, OTHERS}
    assert FAR not in repr(leases)
