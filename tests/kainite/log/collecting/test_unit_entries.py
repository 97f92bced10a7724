"""The entries of a unit: what a fragment's entry says, and why a unit fails when it is dispatched."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kainite.log.collecting.standing import news_of, stand
from kainite.log.collecting.unit_entries import digests_of, dispatch, keep, note_scheme, offending_of, ordinals_of
from kainite.log.collecting.watermark import Ended
from kainite.log.format.batch_codec import decode, encode
from kainite.log.format.entry import Batch, Fault, SchemeMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.open_unit import OpenUnit
from kainite.settings import Isolation, UowSettings
from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import NOTHING, Touched, TouchedSoFar

TOUCHED = Touched(frozenset({1}), tables=("t",))


def dispatched(unit: OpenUnit, isolation: Isolation = Isolation.SERIALIZE, **how: Any) -> tuple[UnitMeta, Touched]:
    journal = Journal(FoldedLog(), 0)
    dispatch(journal, UowSettings(isolation=isolation), unit, **how)
    [entry] = journal.entries
    assert isinstance(entry.meta, UnitMeta)
    return entry.meta, entry.touched


@pytest.mark.parametrize(
    ("unit", "how", "fault", "cause"),
    [
        (OpenUnit("T", 0, end=UnitEnd(0)), {}, None, None),
        (OpenUnit("T", 0, causes=["bad"]), {}, Fault.MALFORMED, "bad"),
        (OpenUnit("T", 0, causes=["number"]), {"late": True}, Fault.LATE_NUMBER, "number"),
        (OpenUnit("T", 0, misfits=["no column"]), {}, Fault.MISFIT, "no column"),
        (OpenUnit("T", 0, given_up="slow"), {}, Fault.INCOMPLETE, "slow"),
        (OpenUnit("T", 0, given_up="slow", end=UnitEnd(0)), {}, None, None),
        (OpenUnit("T", 0, causes=["bad"], given_up="slow", misfits=["odd"]), {}, Fault.MALFORMED, "bad; slow; odd"),
        (OpenUnit("T", 0), {"ended": Ended(late="late")}, Fault.LATE, "late"),
        (OpenUnit("T", 0), {"ended": Ended(5)}, None, None),
    ],
)
def test_why_a_unit_fails(unit: OpenUnit, how: dict[str, Any], fault: Fault | None, cause: str | None) -> None:
    meta, _ = dispatched(unit, **how)
    assert (meta.fault, meta.cause) == (fault, cause)


def test_what_a_unit_touches_is_told_unless_nobody_compares() -> None:
    unit = OpenUnit("T", 0, touched=TouchedSoFar.of(TOUCHED))
    assert dispatched(unit)[1] == TOUCHED
    assert dispatched(unit, touched=Touched(frozenset({2})))[1].written == {2}
    assert dispatched(unit, Isolation.RELAXED)[1] == NOTHING


def test_signatures_as_they_came_are_taken_only_for_what_came_with_them() -> None:
    last = Fragment("T", touched=Touched(frozenset({2})), identities=(2,), signed=struct.pack(">2Q", 2, 2))
    unit = OpenUnit("T", 0, [0], count=2, end=UnitEnd(2))
    for touched in (Touched(frozenset({1, 2})), last.touched):
        journal = Journal(FoldedLog(), 0)
        dispatch(journal, UowSettings(), unit, touched, last)
        index, _ = encode(Batch(0, 1, 0, tuple(journal.entries)))
        assert decode(index, None).entries[0].touched == touched


def test_a_scheme_is_noted_once() -> None:
    journal, scheme = Journal(FoldedLog(), 0), Scheme({"t": TableScheme("d", ("p",))})
    for _ in range(2):
        note_scheme(journal, scheme)
    note_scheme(journal, None)
    assert [entry.meta for entry in journal.entries] == [SchemeMeta(scheme.id, {"t": ("d", ("p",))})]


def test_identities_and_offending_lines_of_a_fragment() -> None:
    fragment = Fragment("T", identities=(3, b"d" * 16), misfits=(Reject("odd", "line"),))
    assert (ordinals_of(fragment), digests_of(fragment), offending_of(fragment)) == ((3,), (b"d" * 16,), "line")
    assert offending_of(Fragment("T")) is None


def told(caplog: pytest.LogCaptureFixture) -> tuple[str, dict[str, Any]]:
    (record,) = caplog.records
    return record.getMessage(), {
        key: value for key, value in record.__dict__["kainite_fields"].items() if key != "line"
    }


def test_a_unit_that_fails_is_told_with_its_id_its_tables_its_cause_and_what_helps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal = Journal(FoldedLog(), 0)
    note_scheme(journal, Scheme({"t": TableScheme("d", ())}))
    unit = OpenUnit("T-17", 0, touched=TouchedSoFar.of(TOUCHED), causes=["bad"])
    dispatch(journal, UowSettings(isolation=Isolation.RELAXED), unit)
    about = {"uow": "T-17", "id": 1, "tables": "t", "help": "kainite uow show -p FILE T-17"}
    assert told(caplog) == ("unit failed", {**about, "cause": "bad"})
    assert len(journal.entries) == 2
    assert journal.state.units[1].uow == "T-17"


def test_a_delta_that_is_refused_is_told_with_its_unit_and_shard(caplog: pytest.LogCaptureFixture) -> None:
    fragment = Fragment("T-17", touched=TOUCHED, rejects=(Reject("no key", "{}"),))
    opened = OpenUnit("T-17", 0)
    news = news_of(opened, fragment)
    keep(Journal(FoldedLog(), 0), UowSettings(), "s-3", news, stand(opened, news))
    about = {"uow": "T-17", "tables": "t", "help": "kainite uow show -p FILE T-17"}
    assert told(caplog) == ("delta refused", {**about, "shard": "s-3", "cause": "no key"})
