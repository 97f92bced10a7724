"""Changes become numbered units: held until their end, or given as they come where they are many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from kainite.capture.mysql.units import GivenTransaction, HeldUnits


def record(unit: Mapping[str, Any], ordinal: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return {**unit, "ordinal": ordinal}, {"new": {"text": "x" * 50}}


def units(held: int = 10_000) -> HeldUnits:
    made = HeldUnits(6, lambda: 0, held)
    made.begin("0-7-3")
    return made


def ended(made: HeldUnits, *, rolled_back: bool = False) -> list[Any]:
    found = list(made.end(5, rolled_back=rolled_back))
    return [orjson.loads(one) if isinstance(one, bytes) else one for one in found]


def test_a_transaction_is_held_until_its_end() -> None:
    made = units()
    assert [*made.change(record), *made.change(None), *made.change(record)] == []
    first, second, end, given = ended(made)
    assert (first["ordinal"], second["ordinal"], end["count"], end["number"]) == (0, 2, 2, 7)
    assert end["uow"] == "my-0-7-3-7"
    assert given == GivenTransaction("my-0-7-3-7", 5, 2)


def test_what_is_rolled_back_keeps_its_number_and_has_no_deltas() -> None:
    made = units()
    assert list(made.change(record)) == []
    assert [one["count"] for one in ended(made, rolled_back=True)[:-1]] == [0]
    assert made.number == 7


def test_a_savepoint_takes_back_what_was_behind_it() -> None:
    made = units()
    list(made.change(record))
    made.savepoint("a")
    list(made.change(record))
    assert list(made.roll_back_to("a")) == []
    list(made.change(record))
    *records, end, _ = ended(made)
    assert [one["ordinal"] for one in records] == [0, 2]
    assert end["count"] == 2


def test_a_large_transaction_is_given_as_it_comes_and_cannot_be_taken_back() -> None:
    for undone in (True, False):
        made = units(held=200)
        found = [len(list(made.change(record))) for _ in range(4)]
        assert sum(found) == 4
        assert made.begun
        if undone:
            refused = [orjson.loads(one) for one in made.roll_back_to("a")]
            assert [*refused, *ended(made)][0]["refused"].startswith("a large transaction rolled back")
        else:
            assert ended(made, rolled_back=True)[0]["refused"] == (
                "a large transaction was rolled back: its changes were given"
            )


def test_a_transaction_without_changes_has_no_number() -> None:
    made = units()
    assert ended(made) == []
    assert made.number == 6


def test_a_prepared_transaction_gets_its_number_later() -> None:
    made = units()
    list(made.change(record))
    made.drop()
    assert made.number == 6


def test_a_transaction_that_is_passed_over_fails_its_unit() -> None:
    made = HeldUnits(0, lambda: 0)
    made.begin("0-7-3", passed_over=True)
    assert [*made.change(record), *made.refuse("why")] == []
    refused, end, _ = ended(made)
    assert "--skip-transaction" in refused["refused"]
    assert end["count"] == 0
