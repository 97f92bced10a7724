"""Texts that both sides write for equal values become one, and texts of other values do not."""

from __future__ import annotations

import orjson
import pytest

from kainite.replicate.canonical_texts import CANONICAL, TextKind, text_kind


@pytest.mark.parametrize(
    ("data_type", "target", "kind"),
    [
        ("int", "bigint", TextKind.NUMBER), ("decimal", "numeric(12,2)", TextKind.NUMBER),
        ("float", "real", TextKind.SINGLE), ("float", "double precision", TextKind.DOUBLE),
        ("double", "double precision", TextKind.DOUBLE), ("double", "real", TextKind.NUMBER),
        ("decimal", "double precision", TextKind.NUMBER), ("tinyint", "boolean", TextKind.BOOLEAN),
        ("varchar", "text", TextKind.AS_IT_IS), ("decimal", "character varying(20)", TextKind.AS_IT_IS),
        ("char", "character(7)", TextKind.PADDED), ("datetime", "timestamp(6) without time zone", TextKind.MOMENT),
        ("timestamp", "timestamp(6) with time zone", TextKind.ZONED), ("datetime", "date", TextKind.DAY),
        ("date", "timestamp without time zone", TextKind.DAY), ("time", "interval", TextKind.MOMENT),
        ("inet6", "inet", TextKind.ADDRESS), ("longtext", "jsonb", TextKind.DOCUMENT),
        ("longtext", "json", TextKind.AS_IT_IS), ("varbinary", "bytea", TextKind.AS_IT_IS),
        ("int", "positive", TextKind.NUMBER), ("char", "uuid", TextKind.UUID), ("enum", "boolean", TextKind.BOOLEAN),
    ],
)  # fmt: skip
def test_both_types_decide(data_type: str, target: str, kind: TextKind) -> None:
    assert text_kind(data_type, target) is kind


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        (TextKind.NUMBER, "1.5000", "1.5"), (TextKind.NUMBER, "-0.00", "0"), (TextKind.NUMBER, "100", "1e+02"),
        (TextKind.NUMBER, "1e300", "1" + "0" * 300), (TextKind.NUMBER, "1E-7", "0.00000010"),
        (TextKind.SINGLE, "1.4013e-45", "1e-45"), (TextKind.SINGLE, "16777200", "1.67772e+07"),
        (TextKind.DOUBLE, "1e+16", "10000000000000000"), (TextKind.MOMENT, "2024-01-02 03:04:05.120000+00",
         "2024-01-02 03:04:05.12"), (TextKind.ZONED, "2024-01-02 03:04:05.000", "2024-01-02 03:04:05+00"),
        (TextKind.DAY, "2024-01-02", "2024-01-02 00:00:00"), (TextKind.MOMENT, "-838:59:59.00", "-838:59:59"),
        (TextKind.BOOLEAN, "1", "t"), (TextKind.ADDRESS, "::FFFF:1.2.3.4", "::ffff:102:304"),
        (TextKind.PADDED, "a", "a   "), (TextKind.BOOLEAN, "Y", "t"), (TextKind.BOOLEAN, "off", "f"),
        (TextKind.UUID, "112233445566178899AABBCCDDEEFF00", "11223344-5566-1788-99aa-bbccddeeff00"),
        (TextKind.DOCUMENT, '{"b":1.50, "a":[1e2,"\\u00e4",null]}', '{"a": [100, "ä", null], "b": 1.5}'),
        (TextKind.DOCUMENT, '{"a":1,"a":2}', '{"a": 2}'), (TextKind.SINGLE, "-0", "0"), (TextKind.DOUBLE, "-0.0", "0"),
        (TextKind.BYTES, "ä", "\\xc3a4"), (TextKind.PADDED_BYTES, "\\x6100", "\\x61000000"),
        (TextKind.BITS, "0101", "00101"),
        (TextKind.BITS, "0", "000"), (TextKind.BYTES, "\\x6100", "\\x6100"),
    ],
)  # fmt: skip
def test_texts_of_equal_values_become_one(kind: TextKind, source: str, target: str) -> None:
    assert CANONICAL[kind](source) == CANONICAL[kind](target)


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        (TextKind.NUMBER, "0.1234567890123", "0.12345679"), (TextKind.NUMBER, "12345678901234567890.12",
         "1.2345678901234567e+19"), (TextKind.NUMBER, "1.5", "NaN"), (TextKind.NUMBER, "10", "1"),
        (TextKind.SINGLE, "0.1", "0.10000001"), (TextKind.DOUBLE, "0.1", "0.10000000000000002"),
        (TextKind.MOMENT, "2024-01-02 00:00:00", "2024-01-02 00:00:00.000001"), (TextKind.BOOLEAN, "1", "f"),
        (TextKind.DAY, "2024-01-02 00:00:01", "2024-01-02"), (TextKind.ADDRESS, "1.2.3.4", "1.2.3.0/24"),
        (TextKind.BYTES, "\\x61", "\\x6100"), (TextKind.PADDED_BYTES, "\\x6100", "\\x60"),
        (TextKind.BITS, "10", "01"),
        (TextKind.PADDED_BYTES, "\\x0a", "\\x0a00a0"),
        (TextKind.DOCUMENT, '{"a":"1.5"}', '{"a":1.5}'), (TextKind.DOCUMENT, "[1,2]", "[2,1]"),
        (TextKind.DOCUMENT, "[1]", "[NaN]"), (TextKind.DOCUMENT, '"\\ud800"', '"?"'),
        (TextKind.UUID, "none", "11223344-5566-1788-99aa-bbccddeeff00"), (TextKind.AS_IT_IS, "a", "a "),
    ],
)  # fmt: skip
def test_texts_of_other_values_do_not(kind: TextKind, source: str, target: str) -> None:
    assert CANONICAL[kind](source) != CANONICAL[kind](target)


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udc00": "\\ud83d\\ude00 ä"}'])
def test_half_a_surrogate_pair_can_be_hashed(text: str) -> None:
    assert orjson.dumps(CANONICAL[TextKind.DOCUMENT](text)).isascii()


@pytest.mark.parametrize("text", ["1e999999999", "-1E+131073", "1e-999999999"])
def test_a_number_with_more_digits_than_the_target_has_takes_no_memory(text: str) -> None:
    assert CANONICAL[TextKind.NUMBER](text) == text
    assert len(CANONICAL[TextKind.DOCUMENT](f"[{text}]")) < 100


@pytest.mark.parametrize("kind", [TextKind.SINGLE, TextKind.DOUBLE, TextKind.NUMBER, TextKind.DOCUMENT])
def test_a_text_that_is_none_of_its_type_stays(kind: TextKind) -> None:
    assert CANONICAL[kind]("electric") == "electric"


def test_a_number_that_no_float_of_four_bytes_holds_stays() -> None:
    assert CANONICAL[TextKind.SINGLE]("1e300") == "1e300"
