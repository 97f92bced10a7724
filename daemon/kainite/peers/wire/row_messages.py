"""The messages of version 6 by which anybody asks the log's owner who holds a row of the target.

A peer begins with :class:`RowRequest` in the place of a member's Join, is answered once, and the connection ends.

======  ======================  ===========  =====================================================================
code    message                 sent by      says
======  ======================  ===========  =====================================================================
47      :class:`RowRequest`     anybody      which log; a table, and the primary key of a row, values as text
48      :class:`RowAnswer`      owner        the units that touch the row, in log order; and how many there are
======  ======================  ===========  =====================================================================

It is answered by :class:`~kainite.peers.wire.shard_messages.Elsewhere` where the log's owner is not here, and by
:class:`~kainite.peers.wire.shard_messages.ShardRefused` where the table or the key is not the catalogue's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kainite.base.errors import LogProtocolError
from kainite.log.format.entry import ReqId
from kainite.peers.wire.fields import FieldReader, FieldWriter
from kainite.peers.wire.layouts import Layout

MAX_KEY: Final = 1 << 20
"""The longest row's key, bytes of JSON."""


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; table, key: the row's."""

    req_id: ReqId
    log: str
    table: str
    key: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """Attributes: units: JSON objects, with the fields of :class:`~kainite.log.views.row_holders.Toucher`; count: how
    many units touch the row, of which ``units`` has the first ones."""

    req_id: ReqId
    units: tuple[Mapping[str, Any], ...]
    count: int


def _write_request(writer: FieldWriter, message: RowRequest) -> None:
    writer.text(message.log)
    writer.text(message.table)
    writer.optional_bytes(orjson.dumps(dict(message.key)))


def _read_request(reader: FieldReader, req_id: ReqId) -> RowRequest:
    log, table, key = reader.text() or "", reader.text() or "", reader.byte_array()
    if len(key) > MAX_KEY:
        raise LogProtocolError(f"a row's key has {len(key)} bytes, of at most {MAX_KEY}")
    return RowRequest(req_id, log, table, _texts(_json(key)))


def _texts(said: Any) -> Mapping[str, str]:
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise LogProtocolError("a row's key is no JSON object of texts")
    return said


def _write_answer(writer: FieldWriter, message: RowAnswer) -> None:
    writer.optional_bytes(orjson.dumps(message.units))
    writer.int64(message.count)


def _read_answer(reader: FieldReader, req_id: ReqId) -> RowAnswer:
    units, count = _json(reader.byte_array()), reader.int64()
    if not isinstance(units, list) or not all(isinstance(unit, dict) for unit in units):
        raise LogProtocolError("the units that touch a row are no JSON array of objects")
    return RowAnswer(req_id, tuple(units), count)


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError as error:
        raise LogProtocolError(f"a message about a row is no JSON: {error}") from error


LAYOUTS: Final = (
    Layout(47, RowRequest, _write_request, _read_request),
    Layout(48, RowAnswer, _write_answer, _read_answer),
)
"""For the table of version 6 (:mod:`kainite.peers.wire.versions`)."""
