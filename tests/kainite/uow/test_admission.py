from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.deltas import read_deltas
from kainite.uow.admission import MAX_REJECTS, Admission
from kainite.uow.catalogue.tables import Catalogue, Column, TypeFamily
from kainite.uow.delta import Delta, Operation, UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import identity_of
from kainite.uow.signature import Signatures
from kainite.uow.signing import Signing
from kainite.uow.touches import Touched
from support.tables import SHOP

DELETE: dict[str, Any] = {"op": "delete", "key": {"id": 1}}
LINE_4: dict[str, Any] = {"table": "order_line", "op": "insert", "row": {"order_id": 4, "line": 1, "qty": 2}}


def emit(*deltas: Any) -> bytes:
    return json.dumps({"action": "emit", "deltas": deltas}).encode()


def admitted(*lines: bytes, tables: Catalogue | None = SHOP) -> dict[str, Fragment]:
    admission = Admission(Signing(tables))
    for line in lines:
        admission.feed(line)
    return {fragment.uow: read(fragment) for fragment in admission.take("invalid:s:1")}


def read(fragment: Fragment) -> Fragment:
    """Returns a fragment with the deltas that its piece holds."""
    return replace(fragment, deltas=tuple(read_deltas(fragment.piece.read()) if fragment.piece else ()))


def test_deltas_and_their_end_become_a_fragment() -> None:
    (fragment,) = admitted(
        emit({"uow": "A", **LINE_4}), emit({"uow": "A", "end": True, "count": 1, "number": 9, "kind": "correction"})
    ).values()
    delta = Delta("order_line", Operation.INSERT, {"order_id": 4, "line": 1}, LINE_4["row"], {})
    written, read = Signatures(SHOP).of([delta])
    emitted = identity_of(msgspec.structs.replace(delta, key={}))
    end = UnitEnd(1, 9, UnitKind.CORRECTION)
    scheme = Signing(SHOP).scheme
    tables = ("order_line",)
    assert fragment == Fragment(
        "A",
        (delta,),
        Touched(written, read, tables=tables, scheme=scheme.id),
        (end,),
        identities=(emitted,),
        scheme=scheme,
    )
    assert written
    assert read


def test_the_latest_commit_time_of_a_units_deltas_is_its_own() -> None:
    times: list[dict[str, Any]] = [{"time": 7}, {}, {"time": "9"}, {"time": 8}]
    deltas = [{"uow": "A", **LINE_4, "ordinal": ordinal, **time} for ordinal, time in enumerate(times)]
    found = admitted(emit(*deltas, {"uow": "B", **LINE_4}))
    assert {name: fragment.time for name, fragment in found.items()} == {"A": 9, "B": None}
    assert found["A"].piece is not None
    assert b"time" not in found["A"].piece.read()


def test_an_end_may_tell_the_commit_time() -> None:
    end = {"uow": "A", "end": True, "count": 1, "time": 9}
    assert admitted(emit({"uow": "A", **LINE_4, "time": 7}, end))["A"].time == 9


def test_a_delta_with_a_faulty_commit_time_fails_its_unit() -> None:
    fragment = admitted(emit({"uow": "A", **LINE_4, "time": "yesterday"}))["A"]
    assert [reject.cause for reject in fragment.rejects] == [
        "'time' must be a whole number of nanoseconds since the epoch, not 'yesterday'"
    ]
    assert not fragment.deltas


def test_a_delta_is_the_same_delta_under_another_catalogue() -> None:
    fragments = [admitted(emit({"uow": "A", **LINE_4}), tables=tables)["A"] for tables in (SHOP, None)]
    assert fragments[0].deltas != fragments[1].deltas
    assert fragments[0].identities == fragments[1].identities


def test_fragments_come_in_order_of_first_appearance_and_deltas_in_order() -> None:
    orders = [{"uow": uow, "table": "orders", "op": "delete", "key": {"id": id}} for id, uow in enumerate("BABCA")]
    found = admitted(emit(*orders[:3]), emit(*orders[3:]))
    assert list(found) == ["B", "A", "C"]
    assert [delta.key["id"] for delta in found["A"].deltas] == [1, 4]


def test_take_starts_anew() -> None:
    admission = Admission(Signing(SHOP))
    admission.feed(emit({"uow": "A", **LINE_4}))
    assert len(admission.take("x")) == 1
    assert admission.take("x") == ()


def test_both_ends_are_kept() -> None:
    found = admitted(emit({"uow": "A", "end": True, "count": 1}, {"uow": "A", "end": True, "count": 2}))
    assert found["A"].ends == (UnitEnd(1), UnitEnd(2))


def test_without_a_catalogue_any_table_is_taken() -> None:
    found = admitted(emit({"uow": "A", "table": "x", "op": "delete", "key": {"k": 1}}), tables=None)
    assert len(found["A"].touched.written) == 1
    assert not found["A"].rejects


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown operation": ({"table": "orders", "op": "replace", "key": {"id": 1}}, "'op' must be one of insert"),
    "operation of another type": ({"table": "orders", "op": ["insert"], "row": {"id": 1}}, "not array"),
    "unknown field": ({"table": "orders", "op": "delete", "key": {"id": 1}, "keys": 1}, "unknown field 'keys'"),
    "no table": ({"op": "delete", "key": {"id": 1}}, "'table' must be"),
    "delete with a row": ({"table": "orders", "op": "delete", "key": {"id": 1}, "row": {"id": 1}}, "no 'row'"),
    "row of another type": ({"table": "orders", "op": "insert", "row": [1]}, "'row' must be an object, not array"),
    "negative ordinal": ({"table": "orders", "op": "delete", "key": {"id": 1}, "ordinal": -1}, "'ordinal' must be"),
    "end without count": ({"end": True}, "'count' is missing"),
    "end that is false": ({"end": False, "count": 1}, "'end' must be true"),
    "count that is none": ({"end": True, "count": "2"}, "'count' must be a whole number"),
    "unknown kind": ({"end": True, "count": 1, "kind": "fix"}, "'kind' must be one of normal"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_no_delta_fails_its_unit_and_no_other(case: str) -> None:
    item, cause = MALFORMED[case]
    found = admitted(emit({"uow": "A", **LINE_4}, {"uow": "B", **item}, {"uow": "C", **LINE_4}))
    (reject,) = found["B"].rejects
    assert cause in reject.cause
    assert orjson.loads(reject.line) == {"uow": "B", **item}
    assert not found["A"].rejects
    assert not found["C"].rejects


ORDER = {"table": "orders", "op": "upsert", "key": {"id": 4}}
MISFITS: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "unknown table": (
        {"table": "public.ordres", "op": "delete", "key": {"id": 1}}, "table 'public.ordres' is not in", ("ordres",)
    ),
    "unknown column": ({**ORDER, "row": {"colour": "red"}}, "table 'orders' has no column 'colour'", ()),
    "unknown column before": (
        {**ORDER, "row": {"total": 1}, "before": {"colour": "red"}}, "no column 'colour', which 'before'", ()
    ),
    "missing key column": (
        {"table": "order_line", "op": "delete", "key": {"line": 1}}, "key column 'order_id'", ("order_line",)
    ),
    "wrong type": ({"table": "orders", "op": "delete", "key": {"id": "one"}}, "'one' is no whole", ("orders",)),
    "wrong type beside the key": ({**ORDER, "row": {"customer": "one"}}, "'one' is no whole number", ("orders",)),
    "no key": ({"table": "history", "op": "delete", "key": {"customer": 1}}, "takes inserts only", ("history",)),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_the_catalogue_is_kept_as_it_was_emitted(case: str) -> None:
    item, cause, unsigned = MISFITS[case]
    found = admitted(emit({"uow": "A", **LINE_4}, {"uow": "B", **LINE_4}, {"uow": "B", **item}))
    (misfit,) = found["B"].misfits
    assert cause in misfit.cause
    assert not found["B"].rejects
    assert found["B"].deltas[1].to_json() == item
    assert found["B"].touched.unsigned == unsigned
    assert not found["A"].misfits


def test_a_misfit_is_signed_by_what_is_known_of_its_row() -> None:
    known = {**ORDER, "row": {"customer": 7}}
    (fragment,) = admitted(emit({"uow": "A", **known, "row": {"customer": 7, "colour": "red"}})).values()
    (sound,) = admitted(emit({"uow": "A", **known})).values()
    assert fragment.touched == sound.touched


def test_what_does_not_fit_one_catalogue_is_judged_anew_under_another() -> None:
    orders = SHOP.tables["orders"]
    wider = replace(orders, columns={**orders.columns, "colour": Column("colour", "text", TypeFamily.TEXT)})
    later = Signing(Catalogue({**SHOP.tables, "orders": wider}, "public"))
    admission = Admission(Signing(SHOP))
    admission.feed(emit({"uow": "A", **LINE_4}, {"uow": "A", **ORDER, "row": {"colour": "red"}}))
    assert admission.misfits
    admission.adopt(admission.judged_anew(later))
    assert not admission.misfits
    admission.feed(emit({"uow": "A", **ORDER, "row": {"colour": "blue"}}))
    fragment = read(*admission.take("x"))
    assert not fragment.misfits
    assert [delta.row.get("colour") for delta in fragment.deltas] == [None, "red", "blue"]
    assert len(fragment.identities) == len(fragment.deltas)
    assert fragment.scheme == Signing(SHOP).scheme, "a new nullable column leaves the scheme as it is"


def test_sound_deltas_of_a_rejected_unit_are_kept() -> None:
    (fragment,) = admitted(emit({"uow": "A", **LINE_4}, {"uow": "A", "table": "orders", "op": "?"})).values()
    assert (len(fragment.deltas), len(fragment.rejects)) == (1, 1)


@pytest.mark.parametrize(
    ("item", "cause"),
    [
        (LINE_4, "'uow' must be a string"),
        ({"uow": "", **LINE_4}, "'uow' must be a string"),
        ({"uow": "x" * 257, **LINE_4}, "of 1 to 256 characters"),
        ({"uow": 17, "end": True, "count": 1}, "'uow' must be a string"),
        ("delta", "a delta is a JSON object, not string"),
        (None, "a delta is a JSON object, not null"),
    ],
)
def test_what_names_no_unit_fails_a_unit_of_its_own(item: Any, cause: str) -> None:
    found = admitted(emit(item, {"uow": "A", **LINE_4}))
    lost = found["invalid:s:1"]
    assert lost.ends == (UnitEnd(0),)
    assert [cause in reject.cause for reject in lost.rejects] == [True]
    assert len(found["A"].deltas) == 1


BROKEN = {
    "cut off": emit({"uow": "A", **LINE_4}, {"uow": "B", **LINE_4})[:-5],
    "invalid UTF-8": emit({"uow": "A", **LINE_4}, {"uow": "B", **LINE_4}).replace(b"qty", b"q\xff\xfe"),
    "a stray comma": b'{"action":"emit","deltas":[{"uow" : "A"},{"uow":"A"},,{"uow":"B"}]}',
    "a number without end": b'{"action":"emit","deltas":[{"uow":"A","ordinal":1e999},{"uow":"B"}]}',
    "deltas is no array": b'{"action":"emit","deltas":{"uow":"A","x":{"uow":"B"}}}',
    "nested too deeply": emit({"uow": "A", "row": json.loads("[" * 240 + "]" * 240)}, {"uow": "B"}),
    "no object": b'["emit",{"uow":"A"},{"uow":"B"}]',
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_line_fails_every_unit_that_it_names(case: str) -> None:
    found = admitted(BROKEN[case], emit({"uow": "C", **LINE_4}))
    assert list(found) == ["A", "B", "C"]
    for uow in "AB":
        (reject,) = found[uow].rejects
        assert reject.cause
        assert reject.line == BROKEN[case].decode(errors="replace")[: Reject.MAX_LINE]
    assert not found["C"].rejects


@pytest.mark.parametrize("line", [b"", b"{]", b'{"action":"emit"}', b'{"uow":"\xff"', b'{"uow":""', b"7"])
def test_a_broken_line_that_names_no_unit_fails_a_unit_of_its_own(line: bytes) -> None:
    found = admitted(line)
    assert list(found) == ["invalid:s:1"]
    assert found["invalid:s:1"].ends == (UnitEnd(0),)
    assert len(found["invalid:s:1"].rejects) == 1


def test_a_units_name_is_unescaped_when_it_is_salvaged() -> None:
    assert list(admitted(b'{"uow":"a\\"b\\u00e9\\\\"')) == ['a"bé\\']


def test_a_name_inside_a_value_is_not_taken_for_a_unit() -> None:
    assert list(admitted(b'{"uow":"A","row":{"note":"{\\"uow\\":\\"B\\"}"}')) == ["A"]


def test_the_offending_text_is_cut() -> None:
    found = admitted(
        emit({"uow": "A", "table": "t", "op": "?" * 10_000}, {"uow": "A", "table": "t" * 10_000, **DELETE})
    )
    assert len(found["A"].rejects[0].line) == len(found["A"].misfits[0].line) == Reject.MAX_LINE


def test_numbers_are_not_rounded_on_their_way() -> None:
    line = b'{"deltas":[{"uow":"A","table":"orders","op":"insert","row":{"id":1,"total":12345678901234567.89}}]}'
    assert admitted(line)["A"].deltas[0].row["total"] == "12345678901234567.89"


def test_a_number_of_many_digits_within_a_document_fails_its_unit_and_no_other_one() -> None:
    broken = b'{"uow":"A","table":"orders","op":"insert","row":{"id":1,"total":{"a":12345678901234567.89}}}'
    line = b'{"deltas":[' + broken + b"," + json.dumps({"uow": "B", **LINE_4}).encode() + b"]}"
    fragments = admitted(line)
    assert "column 'total' has a number of too many digits" in fragments["A"].rejects[0].cause
    assert (fragments["B"].rejects, len(fragments["B"].deltas)) == ((), 1)


_FIELDS = st.sampled_from(["uow", "table", "op", "key", "row", "before", "end", "count", "id"])
_WORDS = st.sampled_from(["A", "orders", "insert", "delete"])
_NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_json = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(max_size=5) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS, inner),
    max_leaves=12,
)


@given(st.lists(_json, max_size=4))
def test_nothing_that_a_child_writes_raises_or_vanishes(items: list[Any]) -> None:
    found = admitted(emit(*items))
    anonymous_end = "invalid:s:1" in found
    kept = sum(len(one.deltas) + len(one.ends) + len(one.rejects) for one in found.values())
    assert kept - anonymous_end == len(items)
    for fragment in found.values():
        orjson.dumps([delta.to_json() for delta in fragment.deltas])


@given(st.binary(max_size=200))
def test_no_bytes_raise(line: bytes) -> None:
    (fragment,) = admitted(line).values() or (None,)
    assert fragment is None or fragment.rejects or json.loads(line)["deltas"] == []


def test_rejects_beyond_the_first_ones_are_counted() -> None:
    admission = Admission(Signing(None))
    for number in range(MAX_REJECTS + 7):
        admission.feed(b'{"uow":"A",%d' % number)
    [fragment] = admission.take("nobody")
    assert len(fragment.rejects) == MAX_REJECTS + 1
    assert fragment.rejects[-1].cause == "and 7 more"


def test_a_record_that_was_not_processed_is_a_unit_of_its_own() -> None:
    admission = Admission(Signing(None))
    admission.feed(b"no JSON")
    admission.reject("invalid:s:2", "record 2: no good", "payload")
    assert [(one.uow, one.rejects[0].line) for one in admission.take("invalid:s:1")] == [
        ("invalid:s:2", "payload"),
        ("invalid:s:1", "no JSON"),
    ]
    assert admission.take("invalid:s:1") == ()
