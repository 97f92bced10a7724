"""A correction that a person makes from a failed unit: judged first, and in the log as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.format.batch_codec import decode, encode
from kainite.log.format.deltas import deltas_of
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.correcting import check, correct
from kainite.settings import UowOrder, UowSettings
from kainite.uow.delta import Delta, Operation, UnitEnd, UnitKind
from kainite.uow.fragment import Fragment
from kainite.uow.signing import Signing
from support.tables import SHOP

RULES, SIGNING = UowSettings(), Signing(SHOP)
FAILED = UnitStatus.FAILED


def order(key: int, total: object = 1) -> dict[str, Any]:
    return {"table": "orders", "op": "upsert", "key": {"id": key}, "row": {"id": key, "total": total}}


def log(*, status: UnitStatus = FAILED) -> FoldedLog:
    """Returns a log with the unit T, which writes order 7."""
    state = FoldedLog()
    signed = SIGNING.judge_all([Delta("orders", Operation.UPSERT, {"id": 7}, {"total": -1}, {})])
    touched = signed.touched(SIGNING.scheme.id)
    unit = Fragment("T", tuple(signed.deltas), touched, (UnitEnd(1),), scheme=SIGNING.scheme)
    collect(state, RULES, "s", Position(1), [unit], 0)
    status_entry = Entry(EntryKind.STATUS, StatusMeta((Outcome(tid(state, "T"), status, 0, "bad"),)))
    state.apply(state.next_id, status_entry, 0)
    return state


def tid(state: FoldedLog, name: str) -> int:
    unit = state.find(name)
    assert unit is not None
    return unit.tid


def ask(
    state: FoldedLog,
    deltas: object,
    name: str = "T-fixed",
    rules: UowSettings = RULES,
    signing: Signing | None = SIGNING,
) -> tuple[Mapping[str, str], list[Entry]]:
    text = deltas if isinstance(deltas, str) else json.dumps(deltas)
    journal = Journal(state, 0)
    request = {"action": "correct", "uow": "T", "name": name, "deltas": text, "by": "ann", "why": "typo"}
    return correct(journal, "r", request, rules, signing), journal.entries


def test_a_correction_is_a_unit_of_its_own_with_its_record() -> None:
    state = log()
    answer, entries = ask(state, [order(7, 3), order(8)])
    assert answer["message"] == "correction T-fixed is in the log; when it is applied, unit T is discarded"
    (batch,) = [decode(*encode(Batch(0, 1, 0, tuple(entries))))]
    (unit,) = [entry for entry in batch.entries if isinstance(entry.meta, UnitMeta)]
    assert isinstance(unit.meta, UnitMeta)
    assert (unit.meta.uow, unit.meta.kind, unit.meta.count) == ("T-fixed", UnitKind.CORRECTION, 2)
    assert next((delta.key, delta.row) for delta in deltas_of(unit)) == ({"id": 7}, {"id": 7, "total": 3})
    assert state.units[tid(state, "T-fixed")].status is UnitStatus.IN_PROGRESS
    (noted,) = state.operations.all()
    assert (noted.who, noted.why, noted.about, noted.result) == ("ann", "typo", "unit T by T-fixed", "done")
    again = snapshot.load(snapshot.dump(state))
    assert ask(again, [order(7)])[0]["message"] == "done before"


@pytest.mark.parametrize(
    ("deltas", "says"),
    [
        ("{", "the deltas are no JSON"),
        ([], "one at least"),
        ([7], "a JSON array of objects"),
        ({"deltas": []}, "a JSON array of objects"),
        ([{**order(7), "op": "dance"}], "'op' must be"),
        ([{**order(7), "row": {"id": 7, "colour": "red"}}], "colour"),
        ([order(7), order(7)], "a delta comes twice"),
        ([{"end": True, "count": 1}], "a delta comes twice, or is none"),
        ([order(8)], "it does not certainly write a row of unit T"),
    ],
)
def test_what_is_no_sound_correction_of_the_unit_is_refused(deltas: object, says: str) -> None:
    state = log()
    answer, entries = ask(state, deltas)
    assert answer["result"] == "refused"
    assert says in answer["message"]
    assert [entry.kind for entry in entries] == [EntryKind.OPERATION]


@pytest.mark.parametrize("name", ["", "T", "missing:7", "number:7", "x" * 5_000], ids=range(5))
def test_a_name_that_is_used_or_kept_is_refused(name: str) -> None:
    assert ask(log(), [order(7)], name)[0]["result"] == "refused"


def test_it_is_refused_where_it_has_no_place_in_the_order_or_nothing_judges_it() -> None:
    assert "another order" in ask(log(), [order(7)], rules=UowSettings(order=UowOrder.DENSE))[0]["message"]
    assert "not known here" in ask(log(), [order(7)], signing=None)[0]["message"]


def test_only_a_failed_unit_without_another_correction_is_corrected() -> None:
    assert "no unit 'T' is failed" in ask(log(status=UnitStatus.BLOCKED), [order(7)])[0]["message"]
    state = log()
    ask(state, [order(7, 3)], "first")
    state.answered.clear()
    assert "has a correction, first, which is in progress" in ask(state, [order(7, 4)], "second")[0]["message"]


def test_a_check_answers_as_the_correction_would_and_writes_nothing() -> None:
    state = log()
    before = snapshot.dump(state)
    request = {"action": "check-correction", "uow": "T", "name": "T-fixed"}
    sound = check(state, {**request, "deltas": json.dumps([order(7, 3)])}, RULES, SIGNING)
    assert sound == {"result": "ok", "message": "the delta fits the target's catalogue"}
    for deltas, says in (([order(8)], "does not certainly write a row"), ([], "a JSON array of objects")):
        told = check(state, {**request, "deltas": json.dumps(deltas)}, RULES, SIGNING)
        assert (told["result"] != "ok", says in told["message"]) == (True, True)
    assert snapshot.dump(state) == before
