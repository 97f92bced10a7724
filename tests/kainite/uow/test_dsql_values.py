from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.uow.dsql_values import conversion

EPOCH = datetime(1970, 1, 1)
STAMP = "timestamp(6) without time zone"


@pytest.mark.parametrize(
    ("column_type", "value", "text"),
    [
        # The examples of DSQL's documentation.
        ("smallint", 42, 42),
        ("bigint", 9223372036854775807, 9223372036854775807),
        ("real", 3.14159, 3.14159),
        ("double precision", "-Infinity", "-Infinity"),
        ("numeric(18,6)", "123.45", "123.45"),
        ("boolean", True, True),
        ("character varying(20)", "Hello, world!", "Hello, world!"),
        ("bytea", "SGVsbG8gV29ybGQh", "\\x48656c6c6f20576f726c6421"),
        ("date", 19797, "2024-03-15"),
        ("time without time zone", 52200123456, "14:30:00.123456"),
        ("time with time zone", 52200123456, "14:30:00.123456+00"),
        (STAMP, 1710510600123456, "2024-03-15 13:50:00.123456"),
        ("timestamp with time zone", 1710510600123456, "2024-03-15 13:50:00.123456+00"),
        ("interval", 2802603000000, "2802603.000000 seconds"),
        ("interval", -1, "-0.000001 seconds"),
        ("uuid", "550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("json", '{"key": "value"}', '{"key": "value"}'),
        ("jsonb", '{"price": 0.12345678901234567891}', '{"price": 0.12345678901234567891}'),
        ("jsonb", "null", "null"),
        # SQLite's spelling of types.
        ("DATE", 0, "1970-01-01"),
        ("TIMESTAMP", 0, "1970-01-01 00:00:00.000000"),
        ("DATETIME", 0, "1970-01-01 00:00:00.000000"),
        ("TIME", 0, "00:00:00.000000"),
        ("BLOB", "", "\\x"),
        # The sentinels.
        (STAMP, 9223372036825200000, "infinity"),
        ("timestamptz", -9223372036832400000, "-infinity"),
        ("date", 2145042906, "infinity"),
        ("date", -2147472691, "-infinity"),
        # Before our era, and after the year 9999.
        ("date", -719163, "0001-12-31 BC"),
        ("date", -719529, "0002-12-31 BC"),
        (STAMP, -62167219200000001, "0002-12-31 23:59:59.999999 BC"),
        ("date", 2145042905, "5874897-12-31"),
        ("time", 86400000000, "24:00:00.000000"),
        # A column of the target that has another type: the value stays.
        ("date", "2024-03-15", "2024-03-15"),
        ("text", 19797, 19797),
        ("jsonb", 7, 7),
    ],
)
def test_values_are_spelled_as_the_target_takes_them(column_type: str, value: Any, text: Any) -> None:
    assert conversion(column_type)(value) == text


@pytest.mark.parametrize(
    ("column_type", "value"),
    [
        ("time", 86400000001),
        ("time", -1),
        (STAMP, -(2**62)),
        ("bytea", "no base64!"),
    ],
)
def test_a_value_that_would_become_another_one_is_refused(column_type: str, value: Any) -> None:
    with pytest.raises(ValueError):
        conversion(column_type)(value)


@given(st.dates())
def test_every_day_of_our_calendar(day: date) -> None:
    assert conversion("date")((day - date(1970, 1, 1)).days) == day.isoformat()


@given(st.datetimes())
def test_every_time_stamp(moment: datetime) -> None:
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    assert conversion(STAMP)(micros) == moment.isoformat(" ", "microseconds")
    zoned = conversion("timestamp with time zone")(micros)
    assert datetime.fromisoformat(zoned) == moment.replace(tzinfo=UTC)


@given(st.times())
def test_every_time_of_the_day(moment: time) -> None:
    micros = (datetime.combine(date(1970, 1, 1), moment) - EPOCH) // timedelta(microseconds=1)
    assert conversion("time")(micros) == moment.isoformat("microseconds")


@given(st.binary())
def test_every_binary_value(data: bytes) -> None:
    assert conversion("bytea")(base64.b64encode(data).decode()) == "\\x" + data.hex()


TYPES = {
    "d": "date", "t": "time", "tz": "timetz", "ts": "timestamp", "tsz": "timestamptz", "i": "interval", "b": "bytea",
}  # fmt: skip
VALUES = [
    {
        "d": -2440588,
        "t": 0,
        "tz": 86399999999,
        "ts": -210866803200000000,
        "tsz": 9223371331199999999,
        "i": 2802603000000,
    },
    {
        "d": 2147494604,
        "t": 86400000000,
        "ts": 9223372036825200000,
        "tsz": -9223372036832400000,
        "i": -9223372036854775807,
    },
    {"d": -719529, "ts": -62167219200000001, "tsz": 253402300800000000, "b": "AP8="},
]


@pytest.mark.parametrize("values", VALUES)
def test_postgresql_reads_the_texts_as_the_same_values(postgres: str, values: dict[str, Any]) -> None:
    """Asks PostgreSQL for the numbers of the values that it reads: they are DSQL's."""
    row = {name: conversion(TYPES[name])(value) for name, value in values.items()}
    columns = ", ".join(f"{name} {TYPES[name]}" for name in values)
    with psycopg.connect(postgres) as connection:
        for name, value in values.items():
            sql = f"SELECT {NUMBER_OF.get(name, '{0}')} FROM json_to_recordset(%s::json) AS r({columns})"
            found = connection.execute(sql.format(name).encode(), [json.dumps([row])]).fetchone()
            assert found is not None
            assert found[0] == EXPECTED.get((name, value), value), (name, row[name])


_MICROS = "(CASE WHEN isfinite({0}) THEN (extract(epoch FROM {0}) * 1000000)::numeric(30)::text ELSE {0}::text END)"
NUMBER_OF = {
    "d": "CASE WHEN isfinite({0}) THEN ({0} - date '1970-01-01')::text ELSE {0}::text END",
    "t": "(extract(epoch FROM {0}) * 1000000)::bigint",
    "tz": "(extract(epoch FROM {0}::time) * 1000000)::bigint",
    "ts": _MICROS,
    "tsz": _MICROS,
    "i": "(extract(epoch FROM {0}) * 1000000)::numeric(30)::text",
    "b": "encode({0}, 'base64')",
    "j": "{0}::text",
}
EXPECTED: dict[tuple[str, Any], Any] = {
    ("d", -2440588): "-2440588",
    ("d", -719529): "-719529",
    ("d", 2147494604): "infinity",
    ("ts", 9223372036825200000): "infinity",
    ("tsz", -9223372036832400000): "-infinity",
    ("ts", -210866803200000000): "-210866803200000000",
    ("ts", -62167219200000001): "-62167219200000001",
    ("tsz", 9223371331199999999): "9223371331199999999",
    ("tsz", 253402300800000000): "253402300800000000",
    ("i", 2802603000000): "2802603000000",
    ("i", -9223372036854775807): "-9223372036854775807",
}
