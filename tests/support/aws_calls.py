"""The operations of AWS that the code names, and the calls that it makes: against what the IAM policies allow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.client import BaseClient
from botocore.session import get_session

from support.policy_simulator import AwsRequest, allows, grains, listed, request

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "daemon/kainite", ROOT / "spark_apply/kainite_spark")
SERVICES = ("kinesis", "dynamodb", "cloudwatch", "s3")
CLIENTS = re.compile(r"(^|\.|_)(client|dynamodb|kinesis)$")
"""The names under which the code holds clients of boto3."""

REGION, ACCOUNT = "us-east-1", "123456789012"
HASH_KEYS = ("p", "leaseKey", "key", "wid")
"""The hash keys of all tables."""

EVERY_ATTRIBUTE = "(all)"
"""What a read without a projection asks for: an attribute that no policy lists."""


def operations_in_the_code() -> frozenset[str]:
    """Returns each action that a boto3 client is told to do anywhere in the packages that run on AWS."""
    known = _method_names()
    trees = (ast.parse(path.read_text(encoding="utf-8")) for source in SOURCES for path in source.rglob("*.py"))
    return frozenset(
        action for tree in trees for node in ast.walk(tree) if (action := _action(node, known)) is not None
    )


def _method_names() -> dict[str, str]:
    session = get_session()
    return {
        xform_name(operation): f"{service}:{operation}"
        for service in SERVICES
        for operation in session.get_service_model(service).operation_names
    }


def _action(node: ast.AST, known: Mapping[str, str]) -> str | None:
    if not isinstance(node, ast.Attribute) or not CLIENTS.search(ast.unparse(node.value)):
        return None
    called = known.get(node.attr)
    # A transaction needs the permissions of its parts; of those only this one is never called by itself.
    return "dynamodb:ConditionCheckItem" if called == "dynamodb:TransactWriteItems" else called


class Recorder:
    """The calls that are made while :func:`recorded` lasts."""

    def __init__(self) -> None:
        self.calls: set[AwsRequest] = set()
        self._aside: list[Any] = []

    def aside(self, client: Any) -> Any:
        """Returns the same client, whose calls are somebody else's."""
        self._aside.append(client)
        return client

    def note(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> None:
        if not any(client is each for each in self._aside):
            service = client.meta.service_model.service_name
            self.calls |= set(requests(service, operation, parameters))


@contextmanager
def recorded(stream: str) -> Iterator[Recorder]:
    """Notes all calls of boto3 in this process; calls that name no stream are about ``stream``."""
    recorder = Recorder()
    call: Any = getattr(BaseClient, "_make_api_call")  # noqa: B009 - private, and the one place that every call passes

    def note_and_call(self: Any, operation: str, parameters: Any) -> Any:
        named = {"StreamName": stream, **parameters} if operation in _WITHOUT_STREAM else parameters
        recorder.note(self, operation, named)
        return call(self, operation, parameters)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BaseClient, "_make_api_call", note_and_call)
        yield recorder


_WITHOUT_STREAM = frozenset({"GetRecords", "ListShards"})


def requests(service: str, operation: str, parameters: Mapping[str, Any]) -> Iterator[AwsRequest]:
    """Yields what IAM is asked for a call, with the condition keys that the documentation gives for it."""
    if operation == "TransactWriteItems":
        for part in parameters["TransactItems"]:
            [(kind, its)] = part.items()
            yield from requests(service, "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item", its)
        return
    if operation == "ExecuteStatement":
        verb, table = re.findall(r"^(\w+)|\"(.+?)\"", parameters["Statement"])
        yield request(f"{service}:PartiQL{verb[0].title()}", *_about(service, operation, {"TableName": table[1]}))
        return
    for about in _about(service, operation, parameters):
        yield request(f"{service}:{operation}", about, **_context(service, operation, parameters))


def _context(service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, list[str]]:
    if service == "cloudwatch":
        return {"cloudwatch_namespace": [parameters["Namespace"]]}
    if service != "dynamodb":
        return {}
    context = {"dynamodb_LeadingKeys": keys} if (keys := _leading_keys(parameters)) else {}
    if operation in ("GetItem", "Query", "Scan"):
        projection = parameters.get("ProjectionExpression")
        names: Mapping[str, str] = parameters.get("ExpressionAttributeNames", {})
        asked = [names.get(each.strip(), each.strip()) for each in projection.split(",")] if projection else []
        context["dynamodb_Attributes"] = asked or [EVERY_ATTRIBUTE]
    return context


def _leading_keys(parameters: Mapping[str, Any]) -> list[str]:
    """Returns the values of the hash key that a call of DynamoDB names."""
    if (condition := parameters.get("KeyConditionExpression")) is not None:
        value = re.match(r"\w+ = (:\w+)", condition)
        assert value is not None, condition
        return [parameters["ExpressionAttributeValues"][value[1]]["S"]]
    written = [
        one.get("Item") or one["Key"]
        for table in parameters.get("RequestItems", {}).values()
        for each in table
        for one in each.values()
    ]
    items = written or [item for item in (parameters.get("Key"), parameters.get("Item")) if item]
    return [next(item[key]["S"] for key in HASH_KEYS if key in item) for item in items]


def _about(service: str, operation: str, parameters: Mapping[str, Any]) -> list[str]:
    """Returns the ARNs of what a call is about."""
    if service == "cloudwatch":
        return ["*"]
    if service == "s3":
        return [f"arn:aws:s3:::{parameters['Bucket']}/{parameters['Key']}"]
    prefix = f"arn:aws:{service}:{REGION}:{ACCOUNT}"
    if service == "dynamodb":
        return [f"{prefix}:table/{name}" for name in parameters.get("RequestItems") or [parameters["TableName"]]]
    stream = parameters.get("StreamARN") or f"{prefix}:stream/{parameters.get('StreamName')}"
    if operation == "DescribeStreamConsumer":
        return [f"{stream}/consumer/{parameters['ConsumerName']}:1"]
    return [parameters.get("ConsumerARN") or stream]


def actions(document: Mapping[str, Any]) -> set[str]:
    """Returns the actions that a policy allows."""
    return {action for statement in document["Statement"] for action in listed(statement["Action"])}


def denied(calls: set[AwsRequest], documents: Iterable[Mapping[str, Any]]) -> set[AwsRequest]:
    """Returns the calls that the policies together do not allow."""
    policies = list(documents)
    return {call for call in calls if not allows(policies, call)}


def unused(calls: set[AwsRequest], document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the single permissions of a policy that no call needs."""
    return [grain for grain in grains(document) if not any(allows([grain], call) for call in calls)]
