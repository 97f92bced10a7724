"""The values of a delta, from texts that a real PostgreSQL has written."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kainite.processors.postgresql_texts import as_json, conversions

INT4 = 23


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("true", True),
        ("false", False),
        ("(-32768)::int2", -32_768),
        ("2147483647::int4", 2_147_483_647),
        ("(-9223372036854775808)::int8", -(2**63)),
        ("4294967295::oid", 4_294_967_295),
        ("12345678901234567890.10::numeric", "12345678901234567890.10"),
        ("0.1::float8", "0.1"),
        ("'NaN'::float4", "NaN"),
        ("'1'::text", "1"),
        ("'t'::char", "t"),
        ("ARRAY[1, NULL]", "{1,NULL}"),
        ("ARRAY[true]", "{t}"),
        ("'{\"a\": 1}'::jsonb", '{"a": 1}'),
        ("'\\x00ff'::bytea", "\\x00ff"),
        ("NULL::int4", None),
        ("NULL::bool", None),
        ("''::text", ""),
    ],
)
def test_whole_numbers_and_truth_values_are_jsons_and_all_else_is_text(
    postgres_server: str, written: str, expected: Any
) -> None:
    text, kind = answer(postgres_server, written)

    (value,) = as_json({"v": text}, conversions({"v": kind})).values()

    assert (value, type(value)) == (expected, type(expected))


def test_each_column_has_its_own_type_in_the_order_of_the_values() -> None:
    values = {"b": "7", "a": "7", "c": None}
    found = as_json(values, conversions({"a": INT4, "b": 25, "c": INT4}))
    assert list(found.items()) == [("b", "7"), ("a", 7), ("c", None)]


@pytest.mark.parametrize("text", ["x", "", "1.5"])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        as_json({"v": text}, conversions({"v": INT4}))


def answer(url: str, expression: str) -> tuple[str | None, int]:
    """Returns a value's text and the OID of its type, as the server sends them."""
    with psycopg.connect(url) as connection:
        result = connection.execute(f"SELECT {expression}".encode()).pgresult
        assert result is not None
        value = result.get_value(0, 0)
        return None if value is None else value.decode(), result.ftype(0)
