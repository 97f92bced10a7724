"""The rows that are left after a loader's requests, folded as a store would."""

from __future__ import annotations

import json
from typing import Any

from kainite.conform.cases.read_back import LoadedRow, loaded_rows, question


def load(*deltas: dict[str, Any]) -> bytes:
    return json.dumps({"action": "load", "deltas": deltas}).encode()


def delta(op: str, number: int, **row: Any) -> dict[str, Any]:
    return {"table": "t", "op": op, "key": {"id": number}, "row": row}


def test_a_row_is_what_all_its_changes_leave() -> None:
    requests = [
        load(delta("insert", 1, a=1, b=2), delta("insert", 2, a=1)),
        load(delta("update", 1, b=3), delta("delete", 2)),
    ]

    assert list(loaded_rows(requests)) == [LoadedRow("t", {"id": 1}, {"id": 1, "a": 1, "b": 3})]


def test_a_row_that_was_there_before_is_not_known_whole() -> None:
    assert list(loaded_rows([load(delta("update", 1, a=1))])) == []


def test_what_is_no_load_is_left_out() -> None:
    odd = [b"{", b"[]", b'{"action":"prepare"}', b'{"action":"load","deltas":7}', load({"table": 1}, {"table": "t"})]

    assert list(loaded_rows(odd)) == []


def test_the_question_names_the_keys_in_their_order() -> None:
    rows = list(loaded_rows([load(delta("upsert", 2, a=1), delta("upsert", 1, a=1))]))

    assert json.loads(question("t", rows)) == {"action": "rows", "table": "t", "keys": [{"id": 2}, {"id": 1}]}
