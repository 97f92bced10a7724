"""Aurora DSQL's change records through the real processor.

The records are those of DSQL's documentation, and what the articles about it show; where the documentation gives a
placeholder (the name of a row in pieces) it is replaced.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.log.format.deltas import read_deltas
from kainite.processors.crc32c import crc32c
from kainite.processors.frame import Record
from kainite.processors.pieces import Ahead, Found, PieceSearch, SplitImage
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily
from kainite.uow.delta import Delta, UnitEnd, parse_delta
from kainite.uow.fragment import Fragment
from kainite.uow.signing import Signing
from kainite_processors.aurora_dsql import expected
from support.admitted_deltas import admitted
from support.names import unique
from support.processor_child import Child, command_of

TX = "ffthunp5stx6ffs2vyfqoatmfu"
COMMITTED = 1705318200000000000
ITEM = {"order_id": 1001, "item_id": 42, "quantity": 5, "price": "29.99"}


def record(op: str, before: Any = None, after: Any = None, *, tx: str = TX, **more: Any) -> dict[str, Any]:
    """Returns a record; ``more`` replaces fields of it, and of its source by ``table``."""
    source = {
        "version": "1.0", "ts_ms": COMMITTED // 10**6, "ts_ns": COMMITTED, "txId": tx, "schema": "public",
        "table": more.pop("table", "order_items"), "db": "postgres", "cluster": "kmabugltfmjdaj2siqr2qbxgju",
    }  # fmt: skip
    times = {"ts_ms": 1705318200125, "ts_ns": 1705318200125483291}
    return {"type": "full", "op": op, "before": before, "after": after, "source": source, **times, **more}


def column(name: str, column_type: str, family: TypeFamily = TypeFamily.OPAQUE, **more: Any) -> Column:
    return Column(name, column_type, family, **more)


COLUMNS = [
    column("id", "uuid", TypeFamily.UUID, nullable=False),
    column("at", "timestamp with time zone"),
    column("day", "date", TypeFamily.DATE),
    column("body", "bytea"),
    column("doc", "jsonb"),
    column("lasts", "interval"),
    column("price", "numeric(18,6)", TypeFamily.NUMERIC),
    column("mood", "real"),
    column("loaded", "integer", TypeFamily.INTEGER, generated=True),
]
CATALOGUE = Catalogue(
    {
        "event": Table("event", "public", {one.name: one for one in COLUMNS}, ("id",)),
        "log": Table("log", "public", {"what": column("what", "text", TypeFamily.TEXT)}),
    },
    "public",
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dsql") / "tables.json"
    path.write_text('{"public.order_items": {"table": "order_items", "key": ["order_id", "item_id"]}}')
    return path


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dsql") / "catalogue.json"
    write_catalogue(CATALOGUE, path)
    return path


@pytest.fixture(scope="module")
def child(tables: Path) -> Iterator[Child]:
    child = Child("aurora_dsql", "--tables", str(tables))
    child.initialize()
    yield child
    child.close()


@pytest.fixture(scope="module")
def typed(catalogue: Path) -> Iterator[Child]:
    child = Child("aurora_dsql", "--catalogue", str(catalogue))
    child.initialize()
    yield child
    child.close()


def started(*arguments: str) -> Child:
    child = Child("aurora_dsql", *arguments)
    child.initialize()
    return child


def test_the_documented_records_become_deltas_of_their_transactions(child: Child) -> None:
    emitted = child.records(
        record("c", after=ITEM),
        record("u", after={**ITEM, "quantity": 10}, tx="qvtiesgmd55cvlfukm3dfuotji"),
        record("d", before={"order_id": 1001, "item_id": 42}, tx="xyzabc123def456ghi789jklmno"),
    )
    key = {"order_id": 1001, "item_id": 42}
    common = {"table": "order_items", "time": COMMITTED, "key": key}
    assert emitted == [
        {"uow": TX, "op": "insert", "row": ITEM, **common},
        {"uow": "qvtiesgmd55cvlfukm3dfuotji", "op": "update", "row": {"quantity": 10, "price": "29.99"}, **common},
        {"uow": "xyzabc123def456ghi789jklmno", "op": "delete", **common},
    ]


def test_an_unknown_operation_is_an_upsert_and_unknown_fields_do_not_matter(child: Child) -> None:
    (delta,) = child.records(record("m", after=ITEM, before={"order_id": 7}, hint={"x": 1}))
    assert (delta["op"], delta["key"], delta["row"]) == ("upsert", {"order_id": 1001, "item_id": 42}, ITEM)


def test_a_record_without_a_type_is_a_full_one(child: Child) -> None:
    whole = record("c", after=ITEM)
    del whole["type"]
    assert child.records(whole) == child.records(record("c", after=ITEM))


def test_a_record_that_comes_again_is_the_same_delta_though_it_was_made_at_another_time(child: Child) -> None:
    again = record("c", after=ITEM, ts_ms=1705318207777, ts_ns=1705318207777000000)
    assert child.records(record("c", after=ITEM)) == child.records(again)


def test_an_update_of_a_row_that_is_all_key_writes_the_key(child: Child) -> None:
    (delta,) = child.records(record("u", after={"order_id": 1, "item_id": 2}))
    assert delta["row"] == delta["key"] == {"order_id": 1, "item_id": 2}


OF_AN_ITEM = (record("c", after=ITEM), record("u", after=ITEM), record("d", before=ITEM))


@pytest.mark.parametrize("until", ["2024-01-15T11:30:00Z", "2024-01-15 12:30:00+01:00"])
def test_what_a_copy_may_have_already_is_written_whatever_the_target_has(tables: Path, until: str) -> None:
    child = started("--tables", str(tables), "--copied-until", until, "--prefix", "eu-")
    emitted = child.records(*OF_AN_ITEM)
    assert [(delta["uow"], delta["op"], delta.get("mayMiss")) for delta in emitted] == [
        (f"eu-{TX}", "upsert", None), (f"eu-{TX}", "upsert", None), (f"eu-{TX}", "delete", True),
    ]  # fmt: skip
    child.close()


def test_what_committed_after_the_copy_is_a_change_of_what_is_there(tables: Path) -> None:
    child = started("--tables", str(tables), "--copied-until", "2024-01-15T11:29:59.999999Z")
    assert [(delta["op"], delta.get("mayMiss")) for delta in child.records(*OF_AN_ITEM)] == [
        ("insert", None), ("update", None), ("delete", None),
    ]  # fmt: skip
    child.close()


@pytest.mark.parametrize(
    ("until", "why"), [("yesterday", "Invalid isoformat"), ("2024-01-15T10:30:00", "has no time zone")]
)
def test_a_time_of_the_copy_that_is_none_is_named(until: str, why: str) -> None:
    ran = subprocess.run([*command_of("aurora_dsql"), "--copied-until", until], capture_output=True, check=False)
    assert ran.returncode == 2
    assert why in ran.stderr.decode()


def test_tables_that_are_left_out_have_no_deltas(tables: Path) -> None:
    child = started("--tables", str(tables), "--leave-out", "public.audit", "--leave-out", "public.tmp")
    emitted = child.records(record("c", after={"x": 1}, table="audit"), record("c", after=ITEM))
    assert [delta["table"] for delta in emitted] == ["order_items"]
    child.close()


ROW = {
    "id": "550e8400-e29b-41d4-a716-446655440000", "at": 1710510600123456, "day": 19797, "body": "SGVsbG8=",
    "doc": '{"a": [1, 2.5]}', "lasts": 2802603000000, "price": "123456789012345678.123456", "mood": "NaN",
}  # fmt: skip


def test_values_go_by_the_types_of_the_targets_columns(typed: Child) -> None:
    (delta,) = typed.records(record("c", after=ROW, table="event"))
    assert delta["row"] == {
        "id": ROW["id"], "at": "2024-03-15 13:50:00.123456+00", "day": "2024-03-15", "body": "\\x48656c6c6f",
        "doc": ROW["doc"], "lasts": "2802603.000000 seconds", "price": ROW["price"], "mood": "NaN",
    }  # fmt: skip
    assert (delta["table"], delta["key"]) == ("public.event", {"id": ROW["id"]})


@pytest.mark.parametrize("text", ["null", '"123"', '{ "a": 1.2345678901234567890, "a": 2 }'])
def test_a_documents_text_stays_as_it_is(typed: Child, text: str) -> None:
    (delta,) = typed.records(record("c", after={**ROW, "doc": text}, table="event"))
    assert delta["row"]["doc"] == text


def test_a_column_that_was_left_out_is_null_in_an_insert_and_in_an_update(typed: Child) -> None:
    emitted = typed.records(*(record(op, after={"id": ROW["id"], "day": None}, table="event") for op in "cu"))
    nulls = dict.fromkeys(("at", "day", "body", "doc", "lasts", "price", "mood"))
    assert [delta["row"] for delta in emitted] == [{"id": ROW["id"], **nulls}, nulls]


def test_a_column_that_was_left_out_can_keep_its_value(catalogue: Path) -> None:
    child = started("--catalogue", str(catalogue), "--absent", "keep")
    (delta,) = child.records(record("u", after={"id": ROW["id"], "day": None}, table="event"))
    assert delta["row"] == {"day": None}
    child.close()


def test_a_table_without_a_key_takes_inserts(typed: Child) -> None:
    (delta,) = typed.records(record("c", after={"what": "x"}, table="log"))
    assert delta == {"uow": TX, "time": COMMITTED, "table": "public.log", "op": "insert", "row": {"what": "x"}}


def test_a_column_that_comes_later_is_converted_when_the_catalogue_has_it(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    write_catalogue(CATALOGUE, path)
    child = started("--catalogue", str(path))
    event = CATALOGUE.tables["event"]
    wider = Table("event", "public", {**event.columns, "until": column("until", "date")}, ("id",))
    write_catalogue(Catalogue({"event": wider}, "public"), path)
    (delta,) = child.records(record("c", after={**ROW, "until": 0}, table="event"))
    assert delta["row"]["until"] == "1970-01-01"
    child.close()


def test_numbers_keep_their_digits(child: Child) -> None:
    body = json.dumps(record("c", after=ITEM)).replace('"quantity": 5', '"quantity": 12345678901234567.891')
    assert child.records(body.encode())[0]["row"]["quantity"] == "12345678901234567.891"


EVENTS = [
    record("c", after={**ROW, "day": 0, "body": "SGVsbG8="}, table="event"),
    record("u", after={**ROW, "day": 1}, table="event"),
    record("m", after={**ROW, "at": 0}, table="event"),
    record("d", before={**ROW, "day": 1}, table="event"),
]


@pytest.mark.parametrize("lacks", ["table", "column"])
@pytest.mark.parametrize("options", [(), ("--absent", "keep"), ("--copied-until", "2100-01-01T00:00Z")])
def test_changes_of_what_no_file_knows_are_applied_as_if_it_had_been_known(
    tmp_path: Path, catalogue: Path, lacks: str, options: tuple[str, ...]
) -> None:
    # The target gets the table, or the column, later; until then the units are misfits, and the shard goes on.
    event = CATALOGUE.tables["event"]
    narrow = Table("event", "public", {name: one for name, one in event.columns.items() if name != "day"}, ("id",))
    lacking = Catalogue({"event": narrow} if lacks == "column" else {}, "public")
    write_catalogue(lacking, tmp_path / "lacking.json")
    knowing, ignorant = (started("--catalogue", str(path), *options) for path in (catalogue, tmp_path / "lacking.json"))
    expected = Signing(CATALOGUE).judge_all(map(parse_delta, knowing.records(*EVENTS)))
    misfits = Signing(lacking).judge_all(map(parse_delta, ignorant.records(*EVENTS)))
    assert misfits.misfits
    released = Signing(CATALOGUE).judge_all(map(parse_delta, map(orjson.loads, misfits.items)))
    assert released.misfits == expected.misfits == []
    assert list(map(_without_before, released.items)) == list(map(_without_before, expected.items))
    assert released.written == expected.written
    for child in (knowing, ignorant):
        child.close()


def _without_before(item: bytes) -> dict[str, Any]:
    return {name: value for name, value in orjson.loads(item).items() if name != "before"}


def deltas_of(fragment: Fragment) -> list[Delta]:
    return read_deltas(fragment.piece.read()) if fragment.piece else []


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (record("d", table="log"), "operation 'd' without 'before'"),
        (record("d", before={}, table="log"), "has no primary key, so the delete"),
        (record("u", after={"what": "x"}, table="log"), "has no primary key, so the update"),
        (record("x", table="event"), "operation 'x' without 'after'"),
        (record("c", after={"day": 1}, table="event"), "'id' is missing"),
        (record("c", after={**ROW, "body": "?"}, table="event"), "column 'body'"),
        (record("c", after=ROW, table="event", type="delta"), "records of type 'delta' are not known"),
    ],
)
def test_a_change_that_cannot_be_carried_fails_its_transaction(typed: Child, body: Any, cause: str) -> None:
    (fragment,) = admitted(typed.records(body))
    assert (fragment.uow, fragment.ends) == (TX, ())
    assert cause in fragment.rejects[0].line


@pytest.mark.parametrize("body", [b"no json", b"", b"7", {"uow": "x"}, {"type": "full", "source": {"txId": 1}}])
def test_what_is_no_record_of_dsql_becomes_a_failed_unit_of_its_own(child: Child, body: Any) -> None:
    (fragment,) = admitted(child.records(body))
    assert (fragment.uow, fragment.ends) == ("shardId-0:0.0", (UnitEnd(0),))
    assert "no change record of Aurora DSQL" in fragment.rejects[0].line


def in_pieces(
    op: str, which: str, image: Any, count: int, chunk_id: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the main record and the fragments of a row, cut as DSQL does: between two characters."""
    text = json.dumps(image, ensure_ascii=False)
    size = -(-len(text) // count)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    split = {"chunk_id": chunk_id, "total_fragments": len(parts), "crc32c": str(crc32c(text.encode()))}
    main = record(op, type="chunked", chunked={which: split}, ts_ns=COMMITTED)
    pieces = [
        {"type": "fragment", "chunk_id": chunk_id, "index": place, "data": part} for place, part in enumerate(parts)
    ]
    return main, pieces


@pytest.mark.parametrize(("op", "which"), [("c", "after"), ("d", "before")])
def test_a_row_in_pieces_is_put_together_from_all_shards(
    kinesis: Any, moto_endpoint: str, tables: Path, monkeypatch: pytest.MonkeyPatch, op: str, which: str
) -> None:
    name = unique("dsql")
    kinesis.create_stream(StreamName=name, ShardCount=2)
    main, pieces = in_pieces(op, which, {**ITEM, "note": "Käse" * 100}, 5, "4kxq")
    for place, piece in enumerate(reversed(pieces)):
        hashed = str(2**127 * (place % 2))
        kinesis.put_record(StreamName=name, Data=json.dumps(piece).encode(), PartitionKey="k", ExplicitHashKey=hashed)
    arguments = ("--tables", str(tables), "--stream", name, "--region", "us-east-1", "--endpoint", moto_endpoint)
    child = started(*arguments)
    (delta,) = child.records(pieces[0], main, *pieces)
    assert delta["key"] == {"order_id": 1001, "item_id": 42}
    assert delta.get("row", {}).get("note") == ("Käse" * 100 if op == "c" else None)
    child.close()


def test_pieces_that_are_missing_fail_the_transaction(
    kinesis: Any, moto_endpoint: str, tables: Path, child: Child
) -> None:
    name = unique("dsql")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    main, pieces = in_pieces("c", "after", ITEM, 2, "5kxq")
    kinesis.put_record(StreamName=name, Data=json.dumps(pieces[1]).encode(), PartitionKey="k")
    arguments = ("--tables", str(tables), "--stream", name, "--region", "us-east-1", "--endpoint", moto_endpoint)
    reading = started(*arguments)
    (fragment,) = admitted(reading.records(main))
    assert fragment.uow == TX
    assert "1 of 2 pieces of 5kxq came within 300 s after its main record" in fragment.rejects[0].line
    reading.close()
    (fragment,) = admitted(child.records(main))
    assert "name the stream with --stream" in fragment.rejects[0].line


def test_pieces_of_tables_that_are_left_out_are_not_looked_for() -> None:
    asked: list[str] = []

    class Search(PieceSearch):
        def __init__(self) -> None:
            pass

        def find(self, *images: SplitImage) -> dict[str, Found]:
            asked.extend(image.chunk_id for image in images)
            return {image.chunk_id: "{}" for image in images}

    mains = [in_pieces("c", "after", ITEM, 2, name)[0] for name in ("1", "2", "3")]
    mains[1]["source"]["table"] = "audit"
    ahead = Ahead(Search)
    records = [Record(json.dumps(main).encode(), "k", "s:1.0") for main in mains]
    expected(records, ahead, {"public.audit"})
    ahead.find(SplitImage("1", 2, 0, 0.0, 0.0))
    assert asked == ["1", "3"]


def test_a_stream_that_cannot_be_read_ends_the_processor(moto_endpoint: str, tables: Path) -> None:
    child = started("--tables", str(tables), "--stream", "none", "--region", "us-east-1", "--endpoint", moto_endpoint)
    with pytest.raises(EOFError, match="stream 'none' does not exist"):
        child.records(in_pieces("c", "after", ITEM, 2, "6kxq")[0])


CHANGES = st.dictionaries(
    st.tuples(st.sampled_from(["t1", "t2", "t3"]), st.integers(0, 5)), st.sampled_from("cud"), min_size=1, max_size=12
)


@settings(max_examples=40)
@given(changes=CHANGES, data=st.data())
def test_a_transaction_has_each_row_once_however_its_records_come(
    child: Child, changes: dict[tuple[str, int], str], data: st.DataObject
) -> None:
    records = [
        record(op, *(({**ITEM, "item_id": item}, None) if op == "d" else (None, {**ITEM, "item_id": item})), tx=tx)
        for (tx, item), op in changes.items()
    ]
    came = data.draw(st.permutations(records + data.draw(st.lists(st.sampled_from(records), max_size=6))))
    fragments = {part.uow: part for part in admitted(child.records(*came))}
    for tx in {tx for tx, _ in changes}:
        items = {item for name, item in changes if name == tx}
        assert len(set(fragments[tx].identities)) == len(items)
        assert {delta.key["item_id"] for delta in deltas_of(fragments[tx])} == items
