from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.uow.canonical import canonical_of
from kainite.uow.catalogue.tables import Column, TypeFamily


def spell(family: TypeFamily, value: Any, spelling: str = "?") -> str:
    return canonical_of([Column("c", spelling, family)])(value)


@pytest.mark.parametrize(
    ("family", "alike"),
    [
        (TypeFamily.INTEGER, [5, "5", "05", " +5 ", 5.0]),
        (TypeFamily.INTEGER, [0, "-0", "000"]),
        (TypeFamily.NUMERIC, [5, "5", "5.00", 5.0, "0.5e1", "+5"]),
        (TypeFamily.NUMERIC, [0, "-0", "0.000", "0E+7", -0.0]),
        (TypeFamily.NUMERIC, [1.1, "1.1", "1.10"]),
        (TypeFamily.TEXT, ["abc", "abc  "]),
        (TypeFamily.TEXT, [17, "17"]),
        (TypeFamily.BOOLEAN, [True, 1, "t", "TRUE", " yes ", "on", "1"]),
        (TypeFamily.BOOLEAN, [False, 0, "f", "False", "off", "n"]),
        (
            TypeFamily.UUID,
            ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}"],
        ),
        (TypeFamily.DATE, ["2026-01-31", "20260131", "2026-01-31T12:00:00Z", "2026-01-31 00:00:00"]),
        (TypeFamily.DATE, ["0044-03-15 BC", "00044-03-15 BC", "0044-03-15 12:00:00 BC"]),
        (TypeFamily.DATE, ["12026-01-02", "012026-01-02", "12026-01-02 10:00:00+00"]),
        (TypeFamily.DATE, ["2026-01-31", "02026-01-31"]),
        (TypeFamily.INTEGER, [2**70, 2**70 + 1, str(2**63)]),
        (TypeFamily.DOCUMENT, ["{}", {"a": 1}, "null"]),
        (TypeFamily.OPAQUE, [1, "x", [1, 2], 0.1]),
    ],
)
def test_one_value_has_one_spelling(family: TypeFamily, alike: list[Any]) -> None:
    assert len({spell(family, value) for value in alike}) == 1


@pytest.mark.parametrize(
    ("family", "different"),
    [
        (TypeFamily.INTEGER, [5, -5, 50, 2**62, 2**62 + 1, 2**70]),
        (TypeFamily.NUMERIC, [5, "5.01", 50, "NaN", "Infinity", "-Infinity"]),
        (TypeFamily.TEXT, ["", "a", "A", " a", "a\tb", "5", "05"]),
        (TypeFamily.BOOLEAN, [True, False]),
        (TypeFamily.DATE, ["2026-01-31", "2026-02-01", "infinity", "-infinity"]),
    ],
)
def test_different_values_have_different_spellings(family: TypeFamily, different: list[Any]) -> None:
    assert len({spell(family, value) for value in different}) == len(different)


@pytest.mark.parametrize(
    ("family", "value"),
    [
        (TypeFamily.INTEGER, "five"),
        (TypeFamily.INTEGER, 5.5),
        (TypeFamily.INTEGER, True),
        (TypeFamily.INTEGER, [5]),
        (TypeFamily.INTEGER, 1e300),
        (TypeFamily.INTEGER, "9" * 5_000),
        (TypeFamily.NUMERIC, "1,5"),
        (TypeFamily.NUMERIC, "sNaN"),
        (TypeFamily.NUMERIC, False),
        (TypeFamily.NUMERIC, "1e999999999"),
        (TypeFamily.TEXT, True),
        (TypeFamily.TEXT, {"a": 1}),
        (TypeFamily.BOOLEAN, 2),
        (TypeFamily.BOOLEAN, "maybe"),
        (TypeFamily.UUID, "a0eebc99"),
        (TypeFamily.UUID, "z0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (TypeFamily.DATE, "31.1.2026"),
        (TypeFamily.DATE, "2026-02-30"),
        (TypeFamily.DATE, 20260131),
    ],
)
def test_a_value_that_does_not_fit_is_refused(family: TypeFamily, value: Any) -> None:
    with pytest.raises(DeltaError) as refused:
        spell(family, value)
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize(
    ("spelling", "alike"),
    [
        ("numeric(12,2)", ["1.00", "1.001", "0.995", 1]),
        ("numeric(5)", ["1.4", 1]),
        ("DECIMAL(5, -2)", [100, 149]),
    ],
)
def test_numbers_are_rounded_as_the_target_rounds_them(spelling: str, alike: list[Any]) -> None:
    assert len({spell(TypeFamily.NUMERIC, value, spelling) for value in alike}) == 1


def test_columns_that_name_each_other_compare_across_number_types() -> None:
    integer, numeric = Column("a", "bigint", TypeFamily.INTEGER), Column("b", "numeric(9,3)", TypeFamily.NUMERIC)
    spelled = canonical_of([integer, numeric])
    assert spelled(7) == spelled("7.000") == spelled("7")


def test_a_number_of_hundreds_of_digits_fits_a_column_with_a_scale() -> None:
    spelled = canonical_of([Column("n", "numeric(400,2)", TypeFamily.NUMERIC)])
    assert spelled("9" * 300 + ".001") == spelled("9" * 300) != spelled("8" * 300)


def test_numbers_that_differ_in_a_digit_beyond_what_is_compared_have_no_spelling_of_their_own() -> None:
    spelled = canonical_of([Column("n", "numeric", TypeFamily.NUMERIC)])
    assert spelled(f"1{'0' * 1001}1") == spelled(f"1{'0' * 1001}2") == spelled("NaN") == ""
    assert spelled("0." + "9" * 1000) not in ("1", "")


def test_columns_of_types_that_do_not_compare_are_opaque() -> None:
    spelled = canonical_of([Column("a", "bigint", TypeFamily.INTEGER), Column("b", "text", TypeFamily.TEXT)])
    assert spelled(7) == spelled("eight")


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**20), max_value=10**20),
    st.integers(0, 5),
)
def test_trailing_zeros_never_tell_numbers_apart(number: Decimal, zeros: int) -> None:
    assert spell(TypeFamily.NUMERIC, f"{number:f}" + "0" * zeros) == spell(TypeFamily.NUMERIC, f"{number:f}")


@given(st.integers(), st.integers())
def test_integers_are_told_apart(one: int, other: int) -> None:
    assert (spell(TypeFamily.INTEGER, one) == spell(TypeFamily.INTEGER, str(other))) == (one == other)
