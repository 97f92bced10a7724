"""A value class is a frozen dataclass to type checkers, and all but frozen at run time."""

from __future__ import annotations

import pickle
from dataclasses import field, fields, replace

import orjson

from kainite.base.value_class import value_class


@value_class(frozen=True, slots=True, order=True)
class Place:
    name: str
    number: int = 0
    note: str = field(default="", compare=False)


def test_it_is_compared_hashed_and_ordered_by_its_fields() -> None:
    assert Place("a", 1, "x") == Place("a", 1, "y")
    assert hash(Place("a", 1, "x")) == hash(Place("a", 1, "y"))
    assert Place("a", 1) < Place("a", 2)
    assert {Place("a"), Place("a"), Place("b")} == {Place("b"), Place("a")}


def test_it_is_a_dataclass() -> None:
    assert [one.name for one in fields(Place)] == ["name", "number", "note"]
    assert replace(Place("a"), number=5) == Place("a", 5)
    assert orjson.loads(orjson.dumps(Place("a"))) == {"name": "a", "number": 0, "note": ""}
    assert pickle.loads(pickle.dumps(Place("a", 7, "n"))).note == "n"
    match Place("a", 3):
        case Place(name, number):
            assert (name, number) == ("a", 3)


def test_it_has_no_further_attributes() -> None:
    assert not hasattr(Place("a"), "__dict__")
