from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.uow import exact_json

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_values)
def test_reads_what_python_writes(value: object) -> None:
    assert exact_json.loads(json.dumps(value).encode()) == value


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value_whatever_its_length(number: Decimal) -> None:
    digits = f"{number:.3f}"
    (read,) = exact_json.loads(f"[{digits}]".encode())
    assert Decimal(read if isinstance(read, str) else repr(read)) == Decimal(digits)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a": 12345678901234567.89}', {"a": "12345678901234567.89"}),
        (b'{"a":-123456789012345678901234567890}', {"a": "-123456789012345678901234567890"}),
        (b"[1,18446744073709551615]", [1, 18446744073709551615]),
        (b"[18446744073709551616]", ["18446744073709551616"]),
        (b"[0.1000000000000000]", [0.1]),
        (b"12345678901234567.89", "12345678901234567.89"),
        (b" -18446744073709551616", "-18446744073709551616"),
        (b'{"a":", 12345678901234567.89"}', {"a": ", 12345678901234567.89"}),
    ],
)
def test_numbers_beyond_a_double_come_as_their_digits(line: bytes, value: object) -> None:
    assert exact_json.loads(line) == value


@pytest.mark.parametrize("number", [b"1e-400", b"-0", b"1E5", b"0.1", b"123e-330", b"-1.5e-999"])
def test_a_number_reads_the_same_whatever_stands_beside_it(number: bytes) -> None:
    alone, _ = exact_json.loads(b"[" + number + b",1]")
    beside, _ = exact_json.loads(b"[" + number + b",12345678901234567.89]")
    assert repr(alone) == repr(beside)


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[NaN, 1234567890123456]", b'["\\ud800", 1234567890123456]', b"[1234567890123456, \xff]", b"[1e400]"],
)
def test_what_is_not_json_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        exact_json.loads(line)


def test_deep_nesting_is_a_value_error_on_either_way() -> None:
    for number in (b"1", b"1234567890123456.5"):
        with pytest.raises(ValueError, match=r".+"):
            exact_json.loads(b"[" * 100_000 + number + b"]" * 100_000)


@pytest.mark.parametrize("digits", [b"1E-99999999999999999999", b"-0.1e-99999999999999999999"])
def test_an_exponent_that_no_decimal_has_stays_as_its_digits(digits: bytes) -> None:
    assert exact_json.loads(b"[%s, 12345678901234567.89]" % digits) == [digits.decode(), "12345678901234567.89"]


@given(st.text("0123456789.eE-+,:[ ", max_size=40))
def test_no_long_number_is_overlooked(text: str) -> None:
    line = b"[" + text.encode()
    if exact_json.LONG_NUMBER.search(line):
        assert exact_json.may_have_long_number(line)


@pytest.mark.parametrize("number", [b"1234567890123456", b"123456789.123456", b"-1e-100", b"2.5E-308"])
def test_long_numbers_are_looked_at(number: bytes) -> None:
    assert exact_json.may_have_long_number(b"[" + number + b"]")
