"""docs/aws/kainite.yaml: cfn-lint finds nothing in it, and what it makes is what the code makes and the roles name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import cfnlint.api
from cfnlint.decode import cfn_yaml

from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.leases.table.lease_table import LeaseTable
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique

TEMPLATE = Path(__file__).parents[2] / "docs/aws/kainite.yaml"
REGION = "us-east-1"
EVERYTHING = ("UnitsOfWork", "FanOut", "Kcl3Tables", "Duties", "Extract")
BUCKET = "orders-audit"
LARGEST_TEMPLATE = 51_200
"""Bytes that CreateStack takes without a bucket."""


class Stack:
    """The template, carried out by moto's CloudFormation."""

    def __init__(self, endpoint: str, **parameters: str) -> None:
        self._endpoint = endpoint
        self.application = unique("app")
        self._given = {"ApplicationName": self.application, "StreamName": self.application, **parameters}
        self.cloudformation = self.client("cloudformation")
        self.cloudformation.create_stack(
            StackName=self.application,
            TemplateBody=TEMPLATE.read_text(encoding="utf-8"),
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in self._given.items()],
            Capabilities=["CAPABILITY_IAM"],
        )

    def client(self, service: Any) -> Any:
        return boto3.client(service, endpoint_url=self._endpoint, region_name=REGION)

    def resources(self, kind: str) -> dict[str, str]:
        """Resources of one type: name in the template, and what it is called."""
        pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=self.application)
        found = [each for page in pages for each in page["StackResourceSummaries"] if each["ResourceType"] == kind]
        return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found}

    def table(self, name: str) -> Any:
        return self.client("dynamodb").describe_table(TableName=name)["Table"]

    def attached(self, role: str) -> set[str]:
        """Returns the template's names of a role's policies."""
        name = self.resources("AWS::IAM::Role")[role]
        answer = self.client("iam").list_attached_role_policies(RoleName=name)
        arns = {each["PolicyArn"] for each in answer["AttachedPolicies"]}
        return {policy for policy, arn in self.resources("AWS::IAM::ManagedPolicy").items() if arn in arns}


def everything(endpoint: str) -> Stack:
    return Stack(endpoint, AuditBucket=BUCKET, **dict.fromkeys(EVERYTHING, "true"))


def shape(table: Any) -> Any:
    """Returns what must agree: keys, their types, indices, billing."""
    attributes = sorted(table["AttributeDefinitions"], key=lambda each: str(each["AttributeName"]))
    indices = table.get("GlobalSecondaryIndexes") or []
    return table["KeySchema"], attributes, indices, table["BillingModeSummary"]["BillingMode"]


def single_key(client: Any, name: str, key: str) -> None:
    """Creates a table as KCL 3.0 to 3.4 does (items: tests/kainite/leases/kcl3/test_coordinator_items.py)."""
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )


def test_cfn_lint_has_nothing_to_say_and_it_fits_into_a_call() -> None:
    assert cfnlint.api.lint_file(TEMPLATE) == []
    assert TEMPLATE.stat().st_size < LARGEST_TEMPLATE


def test_tables_are_those_that_the_code_makes(moto_endpoint: str, dynamodb: Any) -> None:
    stack = everything(moto_endpoint)
    name = stack.application
    makers: dict[str, Callable[[str], object]] = {
        name: lambda made: LeaseTable(dynamodb, made).create(),
        f"{name}-log": lambda made: DynamoDBStore(dynamodb, made).create(),
        f"{name}-Fleet": lambda made: DynamoDBFleetStore(dynamodb, made).create(),
        f"{name}-CoordinatorState": lambda made: single_key(dynamodb, made, "key"),
        f"{name}-WorkerMetricStats": lambda made: single_key(dynamodb, made, "wid"),
    }
    assert set(stack.resources("AWS::DynamoDB::Table").values()) == set(makers)
    for of_template, make in makers.items():
        of_code = unique("made-by-code")
        make(of_code)
        assert shape(stack.table(of_template)) == shape(dynamodb.describe_table(TableName=of_code)["Table"])


def test_tables_that_cannot_be_made_again_are_protected_and_recoverable(moto_endpoint: str) -> None:
    stack = everything(moto_endpoint)
    template = cfn_yaml.load(str(TEMPLATE))["Resources"]
    for resource, name in stack.resources("AWS::DynamoDB::Table").items():
        kept = resource != "WorkerMetricsTable"
        recovery = template[resource]["Properties"].get("PointInTimeRecoverySpecification")  # moto makes none of it
        assert template[resource]["DeletionPolicy"] == ("Retain" if kept else "Delete")
        assert bool(stack.table(name).get("DeletionProtectionEnabled")) is kept
        assert recovery == ({"PointInTimeRecoveryEnabled": True} if kept else None)


def test_a_provisioned_stream_has_its_shards_and_retention(moto_endpoint: str) -> None:
    stack = Stack(moto_endpoint, RetentionHours="48", ShardCount="3")
    answer = stack.client("kinesis").describe_stream_summary(StreamName=stack.application)["StreamDescriptionSummary"]
    assert (answer["OpenShardCount"], answer["RetentionPeriodHours"]) == (3, 48)
    assert answer["StreamModeDetails"]["StreamMode"] == "PROVISIONED"


def test_a_plain_worker_gets_its_table_and_policy_and_nothing_else(moto_endpoint: str) -> None:
    stack = Stack(moto_endpoint, UnitsOfWork="false", CreateStream="false", TrustedService="ecs-tasks.amazonaws.com")
    assert set(stack.resources("AWS::DynamoDB::Table").values()) == {stack.application}
    assert stack.resources("AWS::IAM::Role").keys() == {"WorkerRole"}
    assert stack.attached("WorkerRole") == {"WorkerPolicy"}
    assert stack.resources("AWS::Kinesis::Stream") == stack.resources("AWS::IAM::InstanceProfile") == {}


def test_other_streams_have_a_policy_whatever_their_accounts(moto_endpoint: str) -> None:
    others = [f"arn:aws:kinesis:{REGION}:{account}:stream/more" for account in ("123456789012", "999999999999")]
    stack = Stack(moto_endpoint, UnitsOfWork="false", MoreStreams=",".join(others))
    assert stack.attached("WorkerRole") == {"WorkerPolicy", "StreamsPolicy"}
    arn, iam = stack.resources("AWS::IAM::ManagedPolicy")["StreamsPolicy"], stack.client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    assert document["Statement"][0]["Resource"] == others


def test_each_role_has_its_policies(moto_endpoint: str) -> None:
    stack = everything(moto_endpoint)
    beside = {"LogPolicy", "AuditPolicy", "DutiesPolicy", "FanOutPolicy", "FleetPolicy"}
    assert stack.attached("WorkerRole") == {"WorkerPolicy"} | beside
    assert stack.attached("ApplyRole") == {"ApplyPolicy"}
    assert stack.attached("ExtractRole") == {"ExtractPolicy"}
