"""Deltas under one catalogue: their normal form and signatures, and what is done with those that do not fit."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import DeltaError
from kainite.uow.delta import Operation, parse_delta
from kainite.uow.scheme import MIXED
from kainite.uow.signing import SignedDeltas, Signing
from support.tables import SHOP

LINE = {"table": "order_line", "op": "insert", "row": {"order_id": 4, "line": 1, "qty": 2}}


def judged(*items: dict[str, Any], signing: Signing | None = None) -> SignedDeltas:
    found = SignedDeltas()
    signing = signing or Signing(SHOP)
    for item in items:
        signing.judge(item, found)
    return found


def test_a_delta_comes_to_its_normal_form_with_its_signatures() -> None:
    found = judged({**LINE, "table": "public.order_line"})

    (item,) = map(orjson.loads, found.items)
    assert (item["table"], item["key"]) == ("order_line", {"order_id": 4, "line": 1})
    assert (found.tables, found.unsigned, found.misfits) == ({"order_line"}, set(), [])
    assert found.written
    assert found.read
    assert found.deltas == [parse_delta(item)]


def test_one_after_another_and_all_at_once_come_to_the_same() -> None:
    items = [LINE, {**LINE, "row": {"order_id": 4, "line": 2, "qty": 1}}, {**LINE, "table": "nowhere"}]

    assert judged(*items) == Signing(SHOP).judge_all(map(parse_delta, items))


VALUES = st.sampled_from([1, "1", 1.0, True, None, 2, "x", [1]])
COLUMNS = st.dictionaries(st.sampled_from(["id", "order_id", "line", "qty", "total", "note", "colour"]), VALUES)
DELTAS = st.fixed_dictionaries(
    {"table": st.sampled_from(["orders", "order_line", "history", "nowhere"]), "op": st.sampled_from(list(Operation))},
    optional={"key": COLUMNS, "row": COLUMNS, "before": COLUMNS},
)


@given(st.lists(DELTAS, max_size=4))
def test_what_was_refused_stays_refused_when_it_is_judged_anew_by_the_same_catalogue(items: list[Any]) -> None:
    signing, first = Signing(SHOP), SignedDeltas()
    for item in items:
        with suppress(DeltaError):  # no delta at all: it is not kept
            signing.judge(item, first)

    anew = signing.judge_all(first.deltas)

    assert anew == first


@pytest.mark.parametrize(
    ("change", "signed_as", "unsigned"),
    [
        # An unknown column beside a known key: the row is known.
        ({"row": {"order_id": 4, "line": 1, "colour": "red"}}, LINE, set()),
        # The key is not whole: any row of the table may be meant.
        ({"row": {"order_id": 4, "qty": 1}}, None, {"order_line"}),
        # An unknown table, by the name that the catalogue would give it.
        ({"table": "public.parcel"}, None, {"parcel"}),
    ],
)
def test_a_misfit_stays_as_it_was_emitted_and_is_signed_as_far_as_it_is_known(
    change: dict[str, Any], signed_as: dict[str, Any] | None, unsigned: set[str]
) -> None:
    found = judged({**LINE, **change})

    ((misfit, why),) = found.misfits
    assert why
    assert found.deltas == [misfit]
    assert found.unsigned == unsigned
    assert found.tables == (unsigned or {"order_line"})
    expected = judged(signed_as) if signed_as else SignedDeltas()
    assert (found.written, found.read) == (expected.written, expected.read)


@pytest.mark.parametrize("item", [{}, {**LINE, "op": "move"}, {**LINE, "row": []}])
def test_what_is_no_delta_adds_nothing(item: dict[str, Any]) -> None:
    for signing in (Signing(SHOP), Signing(None)):
        found = SignedDeltas()
        with pytest.raises(DeltaError):
            signing.judge(item, found)
        assert found == SignedDeltas()


@pytest.mark.parametrize("more", [{"op": "update"}, {"op": "upsert"}, {"op": "insert", "values": "dsql"}])
def test_without_a_catalogue_nothing_completes_a_delta(more: dict[str, Any]) -> None:
    with pytest.raises(DeltaError, match="only a target's catalogue completes it"):
        judged({"table": "any.where", "row": {"id": 1}, **more}, signing=Signing(None))


def test_deltas_that_are_completed_alike_are_completed_one_by_one() -> None:
    items = [{"table": "orders", "op": "update", "row": {"id": number, "total": 5}} for number in (1, 2)]
    found, whole = judged(*items), judged(*({"key": {"id": n}, **item, "row": {"total": 5}} for n, item in
                                            enumerate(items, 1)))  # fmt: skip
    assert (found.items, found.written, found.misfits) == (whole.items, whole.written, [])


def test_without_a_catalogue_a_delta_is_signed_by_its_key_and_kept_as_it_is() -> None:
    item = {"table": "any.where", "op": "delete", "key": {"id": 1}}

    one, other = judged(item, signing=Signing(None)), judged({**item, "key": {"id": 2}}, signing=Signing(None))

    assert one.tables == {"any.where"}
    assert one.written.isdisjoint(other.written)
    assert one.misfits == []


def test_a_known_shape_is_signed_as_the_general_way_does() -> None:
    signing, quick, general = Signing(SHOP), SignedDeltas(), SignedDeltas()
    signing.judge(LINE, general)
    signing.judge(LINE, quick)
    assert quick.touched("s") == general.touched("s")
    assert quick.items == general.items


def test_a_truncate_is_of_its_whole_table() -> None:
    found = judged(LINE, {"table": "public.order_line", "op": "truncate", "ordinal": 1})

    assert found.deltas[1].table == "order_line"
    touched = found.touched("one")
    assert (touched.unsigned, touched.scheme) == (("order_line",), MIXED)
    assert not found.misfits
    assert Signing(SHOP).judge_all(found.deltas).touched("one") == touched
    nowhere = judged({"table": "nowhere", "op": "truncate"})
    assert [cause for _, cause in nowhere.misfits] == ["table 'nowhere' is not in the target's catalogue"]
    assert judged({"table": "nowhere", "op": "truncate"}, signing=Signing(None)).touched("keys").scheme == MIXED
