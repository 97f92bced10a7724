"""Values as Debezium's JSON converter writes them, by the schemas of their columns."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kainite_processors.debezium_values import row_of

UNAVAILABLE = "__debezium_unavailable_value"
CONNECT, TIME, DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."


def logical(type_: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": type_, "name": name, "version": 1, "parameters": parameters}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "int64"}, 9223372036854775807, 9223372036854775807),
        ({"type": "string"}, "x", "x"),
        ({"type": "bytes"}, "AP8=", "\\x00ff"),
        ({"type": "array", "items": {"type": "bytes"}}, ["AP8=", None], ["\\x00ff", None]),
        (logical("bytes", CONNECT + "Decimal", scale="2"), "BMk=", "12.25"),
        (logical("bytes", CONNECT + "Decimal", scale="2"), 12.25, 12.25),
        (logical("struct", DATA + "VariableScaleDecimal"), {"scale": 3, "value": "+34="}, "-1.154"),
        (logical("int32", TIME + "Date"), 19279, "2022-10-14"),
        (logical("int32", CONNECT + "Date"), -1, "1969-12-31"),
        (logical("string", TIME + "IsoDate"), "2022-10-14Z", "2022-10-14"),
        (logical("int64", TIME + "MicroTimestamp"), 1665791731989360, "2022-10-14 23:55:31.989360"),
        (logical("int64", TIME + "NanoTimestamp"), 1665791731989360001, "2022-10-14 23:55:31.989360001"),
        (logical("int64", TIME + "Timestamp"), -1, "1969-12-31 23:59:59.999"),
        (logical("int64", CONNECT + "Timestamp"), 1665791731989, "2022-10-14 23:55:31.989"),
        (logical("int64", TIME + "MicroTime"), 86131989360, "23:55:31.989360"),
        (logical("int32", TIME + "Time"), 86400000, "24:00:00.000"),
        (logical("int64", TIME + "MicroTime"), -3020399000000, "-838:59:59.000000"),
        (logical("string", TIME + "ZonedTimestamp"), "2016-06-20T13:37:03.12Z", "2016-06-20T13:37:03.12Z"),
        (logical("string", DATA + "Json"), '{ "a": [1], "a": 2 }', '{ "a": [1], "a": 2 }'),
        (logical("string", DATA + "Json"), "null", "null"),
        (
            logical("string", DATA + "Uuid"),
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        ),
    ],
)
def test_a_schema_tells_what_a_value_is(schema: dict[str, Any], value: Any, expected: Any) -> None:
    row = row_of({"id": 1, "v": value, "n": None}, {"id": {"type": "int32"}, "v": schema, "n": schema})
    assert row == {"id": 1, "v": expected, "n": None}


@pytest.mark.parametrize(
    ("schema", "value", "cause"),
    [
        (logical("int64", TIME + "MicroDuration"), 2813645678000, "set interval.handling.mode=string"),
        (logical("bytes", DATA + "Bits"), "VQE=", "a bit string without its length"),
    ],
)
def test_a_value_of_which_debezium_left_something_out_is_refused(
    schema: dict[str, Any], value: Any, cause: str
) -> None:
    with pytest.raises(ValueError, match=cause):
        row_of({"v": value}, {"v": schema})
    assert row_of({"v": None}, {"v": schema}) == {"v": None}


@pytest.mark.parametrize("value", [UNAVAILABLE, [UNAVAILABLE], base64.b64encode(UNAVAILABLE.encode()).decode()])
def test_a_value_that_an_update_left_alone_is_none_of_the_row(value: Any) -> None:
    assert row_of({"id": 1, "v": value}, {}) == {"id": 1}
    assert row_of(None, {}) == {}
