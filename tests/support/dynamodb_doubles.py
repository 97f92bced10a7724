"""The doubles of DynamoDB; one contract suite runs on each.

``make test`` runs them on moto, on moto made harsh and on DynamoDB Local, ``make test-localstack`` on LocalStack. How
they differ from DynamoDB: tests/doubles/.
"""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from typing import Any

import boto3
import pytest

from support.dynamodb_local import dynamodb_local
from support.harsh_dynamodb import lose_first_answers, make_harsh
from support.localstack import localstack


class Double(StrEnum):
    MOTO = "moto"
    HARSH = "moto-harsh"
    LOSSY = "moto-lossy"
    DYNAMODB_LOCAL = "dynamodb-local"
    LOCALSTACK = "localstack"


DOUBLES = (
    Double.MOTO,
    Double.HARSH,
    Double.DYNAMODB_LOCAL,
    pytest.param(Double.LOCALSTACK, marks=pytest.mark.localstack),
)

on_each_double = pytest.mark.parametrize("dynamodb", DOUBLES, indirect=True)
"""For a test, or a module of tests, that takes the fixture ``dynamodb`` or one made of it."""

on_each_fleet_store = pytest.mark.parametrize("store", ["memory", *DOUBLES, Double.LOSSY], indirect=True)
"""The same for a store that may also be in memory, and does not mind when answers to writes are lost."""

STRIPED = " striped"
"""Behind a store's name: its log partition 0 is forked at the beginning."""

on_each_store = pytest.mark.parametrize(
    "store",
    [
        *("memory", *DOUBLES, Double.LOSSY),
        *(name + STRIPED for name in ("memory", Double.MOTO, Double.HARSH, Double.DYNAMODB_LOCAL, Double.LOSSY)),
        pytest.param(Double.LOCALSTACK + STRIPED, marks=pytest.mark.localstack),
    ],
    indirect=True,
)
"""The same for the log's ``store``, which may also be striped."""


class Doubles:
    """Clients of them all; a double starts when it is first asked for.

    Args:
        moto: the address of moto's server.
        stack: ends what was started.
    """

    def __init__(self, moto: str, stack: ExitStack) -> None:
        self._moto = moto
        self._stack = stack
        self._clients: dict[Double, Any] = {}

    def client(self, double: Double) -> Any:
        if double not in self._clients:
            self._clients[double] = self._make(double)
        return self._clients[double]

    def _make(self, double: Double) -> Any:
        client = boto3.client("dynamodb", endpoint_url=self._address(double), region_name="us-east-1")
        self._stack.callback(client.close)
        match double:
            case Double.HARSH:
                return make_harsh(client)
            case Double.LOSSY:
                return lose_first_answers(client)
            case _:
                return client

    def _address(self, double: Double) -> str:
        match double:
            case Double.MOTO | Double.HARSH | Double.LOSSY:
                return self._moto
            case Double.DYNAMODB_LOCAL:
                return self._stack.enter_context(dynamodb_local())
            case Double.LOCALSTACK:
                return self._stack.enter_context(localstack())
