"""The generator's records are those of DSQL's documentation."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kainite.processors.pieces import SplitImage, joined
from kainite_demo.dsql_changes import NetChange
from kainite_demo.dsql_records import Committed, Recorder, name_of

ROW = {"id": 1, "note": None, "who": "Ann"}
COMMITTED = Committed(
    "ffthunp5stx6ffs2vyfqoatmfu",
    1705318200000000000,
    (
        NetChange("public", "item", "u", None, ROW),
        NetChange("public", "item", "d", {"id": 2}, None),
    ),
)


def test_a_record_has_the_documented_fields() -> None:
    updated, deleted = map(json.loads, Recorder(random.Random(1)).records_of(COMMITTED, 1705318200125483291))
    source = {
        "version": "1.0", "ts_ms": 1705318200000, "ts_ns": 1705318200000000000, "txId": "ffthunp5stx6ffs2vyfqoatmfu",
        "schema": "public", "table": "item", "db": "postgres", "cluster": "kmabugltfmjdaj2siqr2qbxgju",
    }  # fmt: skip
    times = {"ts_ms": 1705318200125, "ts_ns": 1705318200125483291}
    assert deleted == {"type": "full", "op": "d", "before": {"id": 2}, "after": None, "source": source, **times}
    assert updated | {"after": ROW} == {
        "type": "full", "op": "u", "before": None, "after": ROW, "source": source, **times
    }  # fmt: skip


def test_a_null_is_there_in_some_records_and_left_out_in_others() -> None:
    recorder = Recorder(random.Random(1))
    rows = [json.loads(recorder.records_of(COMMITTED, 0)[0])["after"] for _ in range(50)]
    assert {json.dumps(row) for row in rows} == {json.dumps(ROW), json.dumps({"id": 1, "who": "Ann"})}


@given(seed=st.integers(), text=st.text(max_size=40), op=st.sampled_from("cd"))
def test_a_row_in_pieces_can_be_joined(seed: int, text: str, op: str) -> None:
    row = {"id": 7, "note": text}
    change = NetChange("public", "item", op, row if op == "d" else None, None if op == "d" else row)
    recorder = Recorder(random.Random(seed), split=1.0)
    main, *pieces = map(json.loads, recorder.records_of(Committed("tx", 1, (change,)), 2))
    which = "before" if op == "d" else "after"
    assert (main["type"], main["before"], main["after"], main["op"]) == ("chunked", None, None, op)
    split = main["chunked"][which]
    assert [piece["index"] for piece in pieces] == list(range(split["total_fragments"]))
    assert all(piece.keys() == {"type", "chunk_id", "index", "data"} and piece["data"] for piece in pieces)
    image = SplitImage(split["chunk_id"], split["total_fragments"], int(split["crc32c"]), 0, 0)
    found: dict[int, Any] = {piece["index"]: piece["data"] for piece in pieces}
    assert json.loads(joined(image, found)) == row


def test_names_look_like_dsqls() -> None:
    assert len(name_of("pg-754-0/17184C0")) == len(COMMITTED.tx)
    assert name_of("a") == name_of("a") != name_of("b")
