"""The operations of AWS that the code names, and the calls that it makes: against what the IAM policies allow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.client import BaseClient
from botocore.session import get_session

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "daemon/kainite", ROOT / "spark_apply/kainite_spark")
SERVICES = ("kinesis", "dynamodb", "cloudwatch", "s3")
CLIENTS = re.compile(r"(^|\.|_)(client|dynamodb|kinesis)$")
"""The names under which the code holds clients of boto3."""

REGION, ACCOUNT = "us-east-1", "123456789012"
Call = tuple[str, str]
"""An action such as ``dynamodb:GetItem``, and the ARN it is about, ``*`` for those without; an ARN may be a pattern."""


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
        self.calls: set[Call] = set()
        self._aside: list[Any] = []

    def aside(self, client: Any) -> Any:
        """Returns the same client, whose calls are somebody else's."""
        self._aside.append(client)
        return client

    def note(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> None:
        if not any(client is each for each in self._aside):
            service = client.meta.service_model.service_name
            if operation == "TransactWriteItems":
                for part in parameters["TransactItems"]:
                    [(kind, request)] = part.items()
                    self.note(client, f"{kind}Item", request)
                return
            self.calls |= {(f"{service}:{operation}", about) for about in _about(service, operation, parameters)}


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


def permissions(document: Mapping[str, Any]) -> set[Call]:
    """Returns what a policy document allows, action by action."""
    return {
        (action, resource)
        for statement in document["Statement"]
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def denied(calls: set[Call], allowed: set[Call]) -> set[Call]:
    """Calls that nothing allows."""
    return {call for call in calls if not any(_covers(each, call) for each in allowed)}


def unused(calls: set[Call], allowed: set[Call]) -> set[Call]:
    """Permissions that no call needs."""
    return {each for each in allowed if not any(_covers(each, call) for call in calls)}


def _covers(permission: Call, call: Call) -> bool:
    return permission[0] == call[0] and fnmatchcase(call[1], permission[1])
