"""Tables of the wrong shape or missing; rights that are missing, judged by the policies of docs/aws."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kainite.doctor.finding import FindingState
from support.doctored import DoctoredFile
from support.guarded_aws import guarded
from support.iam_templates import documents


def test_a_table_of_another_application_is_named_with_its_key(doctored: DoctoredFile) -> None:
    doctored.write(tableName=f"{doctored.name}-log")
    [finding] = doctored.bad(["run"])
    assert finding.area == "lease table"
    assert finding.what.endswith("has the key p (HASH, S), s (RANGE, S), and leaseKey (HASH, S) is needed")


def test_a_key_of_another_type(doctored: DoctoredFile, dynamodb: Any) -> None:
    name = f"{doctored.name}-numbers"
    dynamodb.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "leaseKey", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "leaseKey", "KeyType": "HASH"}],
    )  # fmt: skip
    doctored.write(tableName=name)
    [finding] = doctored.bad(["run"])
    assert "leaseKey (HASH, N)" in finding.what


def test_a_table_that_is_missing_is_made_at_the_start(doctored: DoctoredFile, dynamodb: Any) -> None:
    dynamodb.delete_table(TableName=f"{doctored.name}-log")
    found = doctored.bad()
    assert [(finding.area, finding.state) for finding in found] == [("log", FindingState.WARNING)]
    assert "create-tables.json" in found[0].remedy


def test_a_history_that_never_expires(doctored: DoctoredFile, dynamodb: Any) -> None:
    dynamodb.update_time_to_live(
        TableName=f"{doctored.name}-Fleet", TimeToLiveSpecification={"Enabled": False, "AttributeName": "x"}
    )
    [finding] = doctored.bad()
    assert "update-time-to-live" in finding.remedy


@pytest.mark.parametrize(
    ("role", "policies", "denied"),
    [
        ("run", ["worker", "log", "duties"], []),
        ("apply", ["apply"], []),
        ("run", ["worker", "log"], ["dynamodb:DescribeTable is denied", "dynamodb:DescribeTimeToLive is denied"]),
        (
            "run",
            ["reader", "duties"],
            [
                "kinesis:ListShards is denied",
                "kinesis:DescribeStreamSummary is denied",
                "dynamodb:DescribeTable is denied",
            ],
        ),
        ("apply", ["reader"], ["dynamodb:DescribeTable is denied"]),
    ],
)
def test_the_policies_of_each_command_suffice_and_fewer_do_not(
    doctored: DoctoredFile, monkeypatch: pytest.MonkeyPatch, role: str, policies: list[str], denied: list[str]
) -> None:
    with guarded(doctored.name) as door:
        door.policies["ROLE"] = [_policy(doctored.name, name) for name in policies]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ROLE")
        doctored.write(kinesisEndpoint=door.endpoint, dynamoDBEndpoint=door.endpoint)
        found = doctored.bad([role])
    assert list(dict.fromkeys(finding.what for finding in found)) == denied
    assert all(".json" in finding.remedy for finding in found)


def test_a_right_to_write_that_is_missing(doctored: DoctoredFile, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = _policy(doctored.name, "worker")
    for statement in worker["Statement"]:
        if "dynamodb:UpdateItem" in statement["Action"]:
            statement["Action"] = [action for action in statement["Action"] if action != "dynamodb:UpdateItem"]
    with guarded(doctored.name) as door:
        door.policies["ROLE"] = [worker, _policy(doctored.name, "log"), _policy(doctored.name, "duties")]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ROLE")
        doctored.write(kinesisEndpoint=door.endpoint, dynamoDBEndpoint=door.endpoint)
        [finding] = doctored.bad(["run"])
    assert (finding.area, finding.what) == ("lease table", "dynamodb:UpdateItem is denied")


def _policy(application: str, name: str) -> Any:
    return copy.deepcopy({key.lower(): value for key, value in documents(application).items()}[name])
