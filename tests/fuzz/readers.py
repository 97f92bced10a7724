"""Every place that reads bytes from outside: samples of what it reads, and the errors that it may raise.

A reader takes any bytes. It either returns, or raises one of its documented errors; anything else is a defect. A reader
that is given to further code (a fold of log entries) goes so far as the process that reads such bytes would go.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import (
    CatalogueError,
    ChildProtocolError,
    KainiteError,
    LogCorruptError,
    LogProtocolError,
    SettingsError,
    SourceError,
    StreamUnavailableError,
    TargetError,
)
from kainite.base.markers import Batching, Markers
from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.capture.mysql.binary_json import json_text
from kainite.capture.mysql.events import Query
from kainite.capture.mysql.offset import BinlogOffset, start_in
from kainite.capture.mysql.rows import changed_rows
from kainite.capture.mysql.source_tables import ColumnNow, TableNow, source_table
from kainite.capture.mysql.statements import statement_of
from kainite.capture.mysql.table_map import decode_table_map
from kainite.capture.mysql.transactions import Rows
from kainite.capture.mysql.values import UncarriedError
from kainite.capture.postgresql.offset import places_in
from kainite.capture.serving import BadRequestError
from kainite.child.events import ProtocolViolation
from kainite.child.json_lines.dialect import JsonLines
from kainite.child.json_lines.messages import KCL, V0, Spelling, parse
from kainite.child.line_buffer import LineBuffer
from kainite.child.markers.dialect import MarkersDialect
from kainite.child.markers.exchange import Exchange, Violation
from kainite.child.markers.extraction import Extraction
from kainite.child.turns import Turn
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import offset_in
from kainite.kinesis.aggregation import expand, portions
from kainite.kinesis.client import parse_reply
from kainite.kinesis.read.subscription import parse_event
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange
from kainite.kinesis.write.spread import Spread, unit_of
from kainite.log.format.batch_codec import MAGIC, MAX_DECOMPRESSED, decode, encode
from kainite.log.format.deltas import deltas_of, read_deltas
from kainite.log.format.entry import (
    Batch,
    Entry,
    EntryKind,
    FragmentMeta,
    Outcome,
    PositionMeta,
    ReqId,
    StatusMeta,
    TargetMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.snapshot import dump, load
from kainite.log.views.unit_table import UnitTable
from kainite.owner.audit.trail import frame
from kainite.peers import messages as peers
from kainite.peers.connection.core import Accepting, Connection, Limits
from kainite.peers.connection.frames import HEADER_SIZE, PEERS_HELLO, WALTZ_HELLO
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.fragments import decode_fragments, encode_fragments
from kainite.settings import ExtractOffsets, ExtractSpread, MarkersSettings, examine
from kainite.uow.admission import Admission
from kainite.uow.catalogue.file import dumps, loads
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily, UniqueKey
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import pack
from kainite.uow.precedence.levels import read_graph
from kainite.uow.signing import Signing
from kainite.uow.touches import Touched
from kainite.waltz.wire.messages import (
    AppendRequest,
    ServerPartitionsHealthStatResponse,
    TransactionDataResponse,
)
from kainite.waltz.wire.versions import VERSIONS, WALTZ
from kainite_spark.targets.exec.messages import read_answer
from support import kpl
from support.application_world import waltz_frame
from support.binlog import BINLOG, changed, steps, text
from support.doors import EVERYBODY
from support.mysql_json import Opaque, document


@dataclass(frozen=True, slots=True)
class Reader:
    """A place that reads bytes."""

    read: Callable[[bytes], object]
    samples: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = ()


CATALOGUE: Final = Catalogue(
    {
        "orders": Table(
            "orders", None,
            {
                "id": Column("id", "integer", TypeFamily.INTEGER, nullable=False),
                "no": Column("no", "text", TypeFamily.TEXT),
                "parent": Column("parent", "integer", TypeFamily.INTEGER),
            },
            ("id",), (UniqueKey("u", ("no",)),), (ForeignKey("f", ("parent",), "orders", ("id",), False),),
        )
    }
)  # fmt: skip

PLUGINS: Final = TableNow("InnoDB", True, False, True, {"id": ColumnNow("int"), "bi": ColumnNow("inet4")})

_DELTA: Final = {"uow": "T1", "table": "orders", "key": {"id": 1}}
_EMIT: Final = orjson.dumps(
    {
        "action": "emit",
        "deltas": [
            {**_DELTA, "ordinal": 0, "op": "insert", "row": {"no": "a", "parent": None}},
            {**_DELTA, "ordinal": 1, "op": "update", "row": {"no": "b"}, "before": {"no": "a"}},
            {**_DELTA, "ordinal": 2, "op": "delete", "key": {"id": 12345678901234567}},
            {"uow": "T1", "end": True, "count": 3, "number": 7, "kind": "correction"},
        ],
    }
)
_CHILD: Final = (
    b'{"action":"status","responseFor":"initialize"}\n{"action":"status","responseFor":"processRecords"}\n',
    b'{"action":"checkpoint","sequenceNumber":"495","subSequenceNumber":3}\n{"action":"status"}\n',
    _EMIT + b'\n{"action":"status","responseFor":"processRecords"}\n',
    b"some junk\r\nmore\n",
)


def _json_lines(spelling: Spelling) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        for line in data.splitlines():
            parse(line, spelling)
        dialect = JsonLines(spelling, max_line=4_000, max_emitted=8_000)
        dialect.initialize("shardId-0", "TRIM_HORIZON", 0)
        for begin in range(0, len(data), 997):
            dialect.receive(data[begin : begin + 997])
            for _ in range(len(data) + 10):
                event = dialect.next_event()
                if event is None or isinstance(event, ProtocolViolation):
                    break
                if dialect.turn is Turn.OURS and dialect.action is not None:
                    with suppress(ValueError):
                        dialect.process_records((b"{}\n",))
            else:
                raise AssertionError("events without end")
        dialect.receive_eof()
        dialect.next_event()

    return read


def _emitted(data: bytes) -> None:
    for catalogue in (None, CATALOGUE):
        admission = Admission(Signing(catalogue))
        for line in data.splitlines():
            admission.feed(line)
        for fragment in admission.take("anonymous"):
            assert len(read_deltas(fragment.piece.read() if fragment.piece else b"")) == fragment.count


_JSON_OF_MYSQL: Final = document({"a": [1, 70_000, 2.5, None, True], "b": {"c": "x" * 200}, "d": Opaque(252, b"12")})


def _binlog(data: bytes) -> None:
    for step in steps(data):
        if isinstance(step, Rows):
            changed(step)
            mapped = decode_table_map(step.table)
            read = source_table(mapped, PLUGINS, text, with_plugins=True)
            if not read.problem:
                list(changed_rows(step.event, read.readers))


def _source_offset(data: bytes) -> None:
    for request in (data, b'{"start":' + data + b"}"):
        with suppress(BadRequestError):
            offset = start_in(request)
            offset.read_since(("item",))
            assert BinlogOffset.from_json(offset.as_json()) == offset
        with suppress(SourceError):
            places_in(request)


def _lines(data: bytes) -> None:
    buffer = LineBuffer(100)
    found = [line for begin in range(0, len(data), 7) for line in buffer.feed(data[begin : begin + 7])] + buffer.end()
    assert all(len(line.text) <= 100 or line.cut for line in found) or all(len(line.text) <= 107 for line in found)


def _exchange(data: bytes) -> None:
    for batching in Batching:
        exchange = Exchange(Markers(), batching, batch_size=3)
        exchange.send([b"one\n", b"two\n", b"three\n", b"four\n"])
        exchange.receive(data)
        exchange.receive_eof()
        for _ in range(2 * len(data) + 20):
            event = exchange.next_event()
            if event is None or isinstance(event, Violation):
                break
        else:
            raise AssertionError("events without end")


def _dialect(data: bytes) -> None:
    dialect = MarkersDialect(MarkersSettings(), clock=lambda: 0.0, max_emitted=8_000)
    dialect.initialize("shardId-0", None, None)
    dialect.next_event()
    dialect.process_records((b"1 0 YWE=\n2 0 YmI=\n",))
    dialect.receive(data)
    dialect.receive_eof()
    for _ in range(2 * len(data) + 20):
        event = dialect.next_event()
        if event is None or isinstance(event, ProtocolViolation):
            return
        if dialect.turn is Turn.OWED:
            with suppress(ValueError):
                dialect.reply(event)  # type: ignore[arg-type]
    raise AssertionError("events without end")


def _extraction(data: bytes) -> None:
    for cyclic in (False, True):
        extraction = Extraction(Markers(), cyclic=cyclic, max_message=1_000)
        if cyclic:
            extraction.request(b"{}")
        extraction.receive(data)
        extraction.receive_eof()
        for _ in range(2 * len(data) + 20):
            if extraction.next_event() is None:
                break
        else:
            raise AssertionError("events without end")


def _wire(data: bytes) -> None:
    """Reads the bytes as a connection's, from its beginning and behind a Hello, and as a message's body."""
    for version in (None, *VERSIONS):
        hello = b"" if version is None else encode_hello(WALTZ_HELLO, Hello((version,), None))
        _connection(WALTZ, hello + data)
        if version is not None:
            with suppress(LogProtocolError):
                WALTZ.decode(version, data[HEADER_SIZE:])
    with suppress(LogProtocolError):
        decode_hello(data[HEADER_SIZE:])


def _peers_wire(data: bytes) -> None:
    """Reads the bytes likewise, as the peers' protocol."""
    for hello in (b"", encode_hello(PEERS_HELLO, Hello((1,), None))):
        _connection(peers.PEERS, hello + data)
    for body in (data, data[HEADER_SIZE:]):
        with suppress(LogProtocolError):
            message = peers.PEERS.decode(1, body)
            assert peers.PEERS.decode(1, peers.PEERS.encode(1, message)) == message


def _connection(codec: Any, data: bytes) -> None:
    connection = Connection(codec, Accepting("owner", EVERYBODY), 0.0, Limits(body=1_000))
    with suppress(LogProtocolError):
        for begin in range(0, len(data), 997):
            connection.receive(data[begin : begin + 997], 0.0)
            while connection.next_message(0.0) is not None:
                pass
            assert connection.buffered <= 1_000 + HEADER_SIZE or len(data) < 5_000


_SPREAD = Spread(ExtractSpread.UNIT, [HashRange(0, MAX_HASH_KEY)])


def _message(data: bytes) -> None:
    offset_in(data)
    name = unit_of(data)
    assert name is None or name
    _SPREAD.record(data)


def _aggregate(data: bytes) -> None:
    # The digest is set right as often as not, or hardly any change would reach the parser.
    for payload in (data, kpl.sealed(data)):
        record = RawRecord("1", "k", b64encode(payload).decode(), 0.0)
        for records in portions([record]):
            for user in expand(records):
                assert isinstance(user.data, str)
                assert len(user.key) <= 256


_ENTRIES: Final = (
    Entry(EntryKind.FRAGMENT, FragmentMeta('T1', 's-0', 1, (0,)), Touched(frozenset({5}), frozenset({6})), b'[]'),
    Entry(EntryKind.UNIT, UnitMeta('T1', 1, ('s-0',), (0,), 3), Touched(frozenset({5}), frozenset()), b'[]'),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(1, UnitStatus.COMMITTED, 2),), 4, ("r",))),
    Entry(EntryKind.POSITION, PositionMeta.of('s-0', Position(4963, 1))),
    Entry(EntryKind.TARGET, TargetMeta("crm", (Outcome(1, UnitStatus.COMMITTED, 2),), None)),
)  # fmt: skip
_PIECE: Final = pack([[Delta("t", Operation.DELETE, {"id": 1}, {}, {}, 0)]])[0]
_BATCH: Final = Batch(0, 1, 1_700_000_000_000, (*_ENTRIES, Entry(EntryKind.UNIT, UnitMeta("T2", 1), piece=_PIECE)))


def _folded() -> FoldedLog:
    state = FoldedLog()
    for tid, entry in enumerate(_ENTRIES):
        state.apply(tid, entry, 1_700_000_000_000)
    return state


_APPEND: Final = encode_fragments([Fragment("T2", identities=(0,), ends=(UnitEnd(1),), piece=_PIECE)], ())


_PLACE: Final = peers.SentPosition("4963", 1)
_PEERS_MESSAGES: Final = (
    peers.Join(1, 0, "t/0", "s", "w", "process", "identity"),
    peers.BeginRequest(1, 2, 17),
    peers.BeginStream(1, 2, 17, "123456789012:orders:1700000000"),
    peers.BeginAnswer(1, 2, 17),
    peers.ShardAppend(1, 2, "s-0", None, _PLACE, _PLACE, memoryview(_APPEND[0]), memoryview(_APPEND[1])),
    peers.PositionAnswer(1, 3, _PLACE),
    peers.ReadingAnswer(1, 4, frozenset({"s-0"}), {"s-0": 1.5}, {"s-0": 0.5}, {"s-0": 17}),
    peers.Follow(1, 0, "t/0", "f", 7, 1 << 20, 1 << 16, True),
    peers.FeedBatch(1, 0, b"index", None),
    peers.FeedTaken(1, 0, 8, 100),
    peers.RowRequest(0, 0, "t/0", "orders", {"id": "1"}),
    peers.RowAnswer(1, 0, (peers.Holder(1, "T1", "failed", None, 0, "x"),), 1),
)


def _packed(data: bytes) -> bytes:
    return compressed(data)


def _unpacked(index: bytes) -> bytes:
    return decompressed(index.removeprefix(MAGIC), MAX_DECOMPRESSED)


def _batch(data: bytes) -> None:
    """Reads the bytes as the item holds them, and as what is compressed in it."""
    payload = encode(_BATCH)[1]
    with suppress(LogCorruptError):
        decode(data, None)
    for body in (None, payload):
        with suppress(LogCorruptError):
            _read(decode(MAGIC + _packed(data), body))
    with suppress(LogCorruptError):
        _read(decode(encode(_BATCH)[0], data))
    with suppress(LogCorruptError):
        decode(encode(_BATCH)[0], _packed(data))


def _read(batch: Batch) -> None:
    """Reads the deltas of all entries."""
    for entry in batch.entries:
        with suppress(LogCorruptError):
            deltas_of(entry)


def _fragments(data: bytes) -> None:
    """Reads the bytes as the metadata of an append, and as its payload."""
    with suppress(LogProtocolError):
        decode_fragments(data, _APPEND[1], {})
    with suppress(LogProtocolError):
        decode_fragments(_APPEND[0], data, {})


def _folded_batch(data: bytes) -> None:
    batch = decode(MAGIC + _packed(data), None)
    state, table = FoldedLog(), UnitTable()
    state.next_id = batch.first_id
    for tid, entry in enumerate(batch.entries[:50], batch.first_id):
        state.apply(tid, entry, batch.time_ms)
        table.apply(tid, entry, batch.time_ms)
    dump(state)
    frame(table.rows())


def _in_file(read: Callable[[Path], object]) -> Callable[[bytes], None]:
    path = Path(tempfile.mkdtemp(prefix="kainite-fuzz-")) / "file"

    def reading(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return reading


def _offset_file(path: Path) -> None:
    OffsetFile(path, "orders", ExtractOffsets.KAINITE).load()


def _settings(path: Path) -> None:
    examine(path, environment={})


READERS: Final[Mapping[str, Reader]] = {
    "child json-lines": Reader(_json_lines(KCL), _CHILD),
    "child json-lines-v0": Reader(_json_lines(V0), _CHILD),
    "child lines": Reader(_lines, _CHILD),
    "emit lines": Reader(_emitted, (_EMIT, _EMIT[:-20])),
    "markers exchange": Reader(_exchange, (b"a\n\0b\n\0", b"\x17\0", b"x\n" * 9 + b"\0" * 4)),
    "markers dialect": Reader(_dialect, (b"\0\0", _EMIT + b"\n\0\0", b'{"bad":"x"}\n\0')),
    "MySQL's JSON": Reader(json_text, (_JSON_OF_MYSQL, document([]), document("x")), (SourceError,)),
    "binlog": Reader(_binlog, (BINLOG,), (SourceError, UncarriedError)),
    "binlog's statements": Reader(
        lambda data: statement_of(Query("shop", data.decode(errors="replace"))),
        (
            b"/* x */ SET STATEMENT wait_timeout=1 FOR ALTER TABLE a.b RENAME c, EXCHANGE PARTITION p WITH TABLE d",
            b'DROP TABLE IF EXISTS `a`,`b``c`,other."d" /* generated by server */',
            b"RENAME TABLE a TO b, c TO d",
            b"ALTER TABLE t IMPORT PARTITION p TABLESPACE",
            b"TRUNCATE TABLE `a`.`b`",
            b"XA START X'78',X'',1",
            b"CREATE OR REPLACE TABLE t SELECT 1",
            b"ROLLBACK TO SAVEPOINT `a`",
        ),
    ),
    "offsets of sources": Reader(
        _source_offset,
        (
            b'{"file":"b.01","position":4,"number":7,"gtid":"0-1-42","prepared":{"x":["b.01",4]},'
            b'"options":{"tables":{"":0,"item":3},"truncate":"fail"}}',
            b'{"gtid":"0-1-42","number":0}',
            b'{"lsn":"0/1718490","number":0}',
            b'{"start":{"lsn":"0/20","number":2,"source":{"system":"739","timeline":1,"database":"shop"}},"end":null}',
        ),
    ),
    "extractor": Reader(_extraction, (b'{"uow":"a"}\n{"offset":3}\n\0', b"plain\nlines\n")),
    "extractor messages": Reader(
        _message,
        (b'{"uow":"T1","x":[1,2]}', b'{"offset":{"lsn":"0/1","n":12345678901234567.89}}'),
        (ChildProtocolError,),
    ),
    "KPL aggregates": Reader(
        _aggregate,
        (
            kpl.message([kpl.User(b"a"), kpl.User(b"bb", 1, 0)], ("k", "l"), ("17",)),
            kpl.aggregate([kpl.User(b"a"), kpl.User(b"bb", 1, 0)], ("k", "l"), ("17",)),
        ),
    ),
    "Kinesis replies": Reader(
        parse_reply,
        (
            b'{"Records":[{"Data":"YQ==","PartitionKey":"k","SequenceNumber":"1"}],"MillisBehindLatest":0,"NextShardIterator":"x",'
            b'"ChildShards":[{"ShardId":"s","ParentShards":["p"],"HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"9"}}]}',
        ),
        (StreamUnavailableError,),
    ),
    "fan-out events": Reader(
        parse_event,
        (b'{"Records":[],"MillisBehindLatest":0,"ContinuationSequenceNumber":"1"}',),
        (StreamUnavailableError,),
    ),
    "log batches": Reader(_batch, (encode(_BATCH)[0], _unpacked(encode(_BATCH)[0]), *encode(_BATCH)[1:])),
    "appends of shards": Reader(_fragments, _APPEND[:2]),
    "log batches, folded": Reader(_folded_batch, (_unpacked(encode(_BATCH)[0]),), (LogCorruptError,)),
    "log's protocol": Reader(
        _wire,
        (
            encode_hello(WALTZ_HELLO, Hello((0, 1, 2, 3, 4), "Waltz: Client")),
            *(
                waltz_frame(version, AppendRequest(ReqId(7, 3, 2, 41), 12, (5,), (), (), 9, b"hello"))
                for version in VERSIONS
            ),
            waltz_frame(4, TransactionDataResponse(ReqId(1, 2, 3, 4), 5, None, "gone")),
            waltz_frame(4, ServerPartitionsHealthStatResponse(ReqId(1, 2, 3, 4), ((1, True), (2, False)))),
        ),
    ),
    "peers' protocol": Reader(
        _peers_wire,
        (
            encode_hello(PEERS_HELLO, Hello((1,), "w1")),
            *(bytes(HEADER_SIZE) + peers.PEERS.encode(1, message) for message in _PEERS_MESSAGES),
        ),
    ),
    "log snapshots": Reader(load, (dump(_folded()), dump(FoldedLog())), (LogCorruptError,)),
    "properties": Reader(
        _in_file(_settings),
        (
            b"applicationName=app\nstreamName=orders\nexecutableName=cat -u\nmaxRecords=5\ntarget=postgresql://u:p@h:1/d?x=y\n"
            b"markerEom=\\\\x06\nAwsCredentialsProvider=StaticCredentialsProvider|a|b\nkinesisEndpoint=http://u:p@h:1\n"
            b"auditTrail=s3://bucket/prefix\nstreamArn=arn:aws:kinesis:eu-central-1:123456789012:stream/orders\n"
            b"initialPositionInStreamExtended=1636609142\nmarkersEnvironment=A={eom}\n"
            b"target=exec:load --password x u:p@h\n",
            Path("properties/aws.properties").read_bytes(),
        ),
        (SettingsError,),
    ),
    "catalogue file": Reader(lambda data: dumps(loads(data)), (dumps(CATALOGUE),), (CatalogueError,)),
    "precedence file": Reader(
        _in_file(read_graph), (b"orders order_line\n# a\na b\n",), (CatalogueError, SettingsError)
    ),
    "offset file": Reader(
        _in_file(_offset_file), (b'{"stream":"orders","offsets":"child","start":{"a":1},"end":null}',), (SourceError,)
    ),
    "loader answers": Reader(
        lambda data: read_answer(data.split(b"\n")),
        (b'{"applied":[1,2]}\n{"trimmed":3}', b'{"bad":"x"}', json.dumps({"fenced": "y"}).encode()),
        (TargetError, ChildProtocolError, KainiteError),
    ),
}
