"""Each message's fields as bytes::

    body    message type u8 | request id 4 × i32 | fields

A :class:`MessageLayout` has the type and how the fields are written and read. What differs between versions has a
layout for each: :mod:`kainite.waltz.wire.versions` says which one a version has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.fields import FieldReader, FieldWriter
from kainite.waltz.wire import messages as m


class WaltzMessage(Protocol):
    """Says what all messages have in common."""

    @property
    def req_id(self) -> ReqId: ...


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """A message's bytes.

    Attributes:
        code: the message type, 0 to 255.
        kind: the message's class.
        write: writes the fields behind the request id.
        read: reads them; raises LogProtocolError.
    """

    code: int
    kind: type[Any]
    write: Callable[[FieldWriter, Any], None]
    read: Callable[[FieldReader, ReqId], WaltzMessage]


def plain(code: int, kind: type[Any]) -> MessageLayout:
    """Returns the layout of a message without further fields."""
    return MessageLayout(code, kind, lambda writer, message: None, lambda reader, req_id: _made(kind, req_id))


def numbered(code: int, kind: type[Any], name: str) -> MessageLayout:
    """Returns the layout of a message whose one further field, ``name``, is a transaction id."""
    return MessageLayout(
        code,
        kind,
        lambda writer, message: writer.int64(getattr(message, name)),
        lambda reader, req_id: _made(kind, req_id, reader.int64()),
    )


def _made(kind: type[Any], *fields: object) -> WaltzMessage:
    message: WaltzMessage = kind(*fields)
    return message


def _write_mount_request(writer: FieldWriter, message: m.MountRequest) -> None:
    writer.int64(message.mark)
    writer.int64(message.connection)


def _read_mount_request(reader: FieldReader, req_id: ReqId) -> m.MountRequest:
    return m.MountRequest(req_id, reader.int64(), reader.int64())


def _write_mount_ready(writer: FieldWriter, message: m.MountResponse) -> None:
    writer.boolean(message.state is m.MountState.READY)


def _read_mount_ready(reader: FieldReader, req_id: ReqId) -> m.MountResponse:
    return m.MountResponse(req_id, m.MountState.READY if reader.boolean() else m.MountState.NOT_READY)


def _write_mount_state(writer: FieldWriter, message: m.MountResponse) -> None:
    writer.int32(message.state)


def _read_mount_state(reader: FieldReader, req_id: ReqId) -> m.MountResponse:
    try:
        return m.MountResponse(req_id, m.MountState(reader.int32()))
    except ValueError as error:
        raise LogProtocolError(f"a mount is answered with a state that there is not: {error}") from error


_LOCK_KINDS: Final = ("write", "read", "append")
"""In the order in which an append names them."""


def _write_append(lock_kinds: int) -> Callable[[FieldWriter, m.AppendRequest], None]:
    def write(writer: FieldWriter, message: m.AppendRequest) -> None:
        locks = (message.write_locks, message.read_locks, message.append_locks)
        missing = [name for name, hashes in zip(_LOCK_KINDS[lock_kinds:], locks[lock_kinds:], strict=True) if hashes]
        if missing:
            raise LogRequestError(f"the log's owner speaks a version without {missing[0]} locks: upgrade it")
        writer.int64(message.mark)
        for hashes in locks[:lock_kinds]:
            writer.int32_array(hashes)
        writer.int32(message.header)
        writer.checked_data(message.data)

    return write


def _read_append(lock_kinds: int) -> Callable[[FieldReader, ReqId], m.AppendRequest]:
    def reading(reader: FieldReader, req_id: ReqId) -> m.AppendRequest:
        mark = reader.int64()
        write, read, append = (reader.int32_array() if kind < lock_kinds else () for kind in range(3))
        return m.AppendRequest(req_id, mark, write, read, append, reader.int32(), reader.checked_data())

    return reading


def append_request(lock_kinds: int) -> MessageLayout:
    """Returns the layout of an append with write locks; with 2 kinds also read locks, with 3 also append locks."""
    return MessageLayout(2, m.AppendRequest, _write_append(lock_kinds), _read_append(lock_kinds))


def _write_feed_data(writer: FieldWriter, message: m.FeedData) -> None:
    writer.int64(message.transaction_id)
    writer.int32(message.header)


def _read_feed_data(reader: FieldReader, req_id: ReqId) -> m.FeedData:
    return m.FeedData(req_id, reader.int64(), reader.int32())


def _write_data_response(writer: FieldWriter, message: m.TransactionDataResponse) -> None:
    writer.int64(message.transaction_id)
    writer.boolean(message.data is not None)
    if message.data is not None:
        writer.checked_data(message.data)
    else:
        writer.text(message.error)


def _read_data_response(reader: FieldReader, req_id: ReqId) -> m.TransactionDataResponse:
    transaction_id = reader.int64()
    if reader.boolean():
        return m.TransactionDataResponse(req_id, transaction_id, reader.checked_data())
    return m.TransactionDataResponse(req_id, transaction_id, None, reader.text())


def _write_reached(writer: FieldWriter, message: m.CheckStorageConnectivityResponse) -> None:
    writer.int32(len(message.reached))
    for place, reached in message.reached:
        writer.text(place)
        writer.boolean(reached)


def _read_reached(reader: FieldReader, req_id: ReqId) -> m.CheckStorageConnectivityResponse:
    reached = tuple((reader.text(), reader.boolean()) for _ in range(reader.count(5)))
    return m.CheckStorageConnectivityResponse(req_id, reached)


def _write_health(writer: FieldWriter, message: m.ServerPartitionsHealthStatResponse) -> None:
    writer.int32(len(message.healthy))
    for partition, healthy in message.healthy:
        writer.int32(partition)
        writer.boolean(healthy)


def _read_health(reader: FieldReader, req_id: ReqId) -> m.ServerPartitionsHealthStatResponse:
    healthy = tuple((reader.int32(), reader.boolean()) for _ in range(reader.count(5)))
    return m.ServerPartitionsHealthStatResponse(req_id, healthy)


def _partitions(code: int, kind: type[Any]) -> MessageLayout:
    """Returns the layout of a message whose one further field is a list of partitions."""
    return MessageLayout(
        code,
        kind,
        lambda writer, message: writer.int32_array(message.partitions),
        lambda reader, req_id: _made(kind, req_id, reader.int32_array()),
    )


def _done(code: int, kind: type[Any]) -> MessageLayout:
    """Returns the layout of a message whose one further field says whether the request was carried out."""
    return MessageLayout(
        code,
        kind,
        lambda writer, message: writer.boolean(message.done),
        lambda reader, req_id: _made(kind, req_id, reader.boolean()),
    )


MOUNT_REQUEST: Final = MessageLayout(0, m.MountRequest, _write_mount_request, _read_mount_request)
MOUNT_READY: Final = MessageLayout(1, m.MountResponse, _write_mount_ready, _read_mount_ready)
MOUNT_STATE: Final = MessageLayout(1, m.MountResponse, _write_mount_state, _read_mount_state)
FEED_REQUEST: Final = numbered(3, m.FeedRequest, "mark")
FEED_DATA: Final = MessageLayout(4, m.FeedData, _write_feed_data, _read_feed_data)
FEED_SUSPENDED: Final = plain(5, m.FeedSuspended)
DATA_REQUEST: Final = numbered(6, m.TransactionDataRequest, "transaction_id")
DATA_RESPONSE: Final = MessageLayout(7, m.TransactionDataResponse, _write_data_response, _read_data_response)
FLUSH_REQUEST: Final = plain(8, m.FlushRequest)
FLUSH_RESPONSE: Final = numbered(9, m.FlushResponse, "transaction_id")
LOCK_FAILURE: Final = numbered(10, m.LockFailure, "transaction_id")
MARK_REQUEST: Final = plain(11, m.HighWaterMarkRequest)
MARK_RESPONSE: Final = numbered(12, m.HighWaterMarkResponse, "transaction_id")
STORAGE_REQUEST: Final = plain(13, m.CheckStorageConnectivityRequest)
STORAGE_RESPONSE: Final = MessageLayout(14, m.CheckStorageConnectivityResponse, _write_reached, _read_reached)
ASSIGNMENT_REQUEST: Final = plain(15, m.ServerPartitionsAssignmentRequest)
ASSIGNMENT_RESPONSE: Final = _partitions(16, m.ServerPartitionsAssignmentResponse)
PREFER_REQUEST: Final = _partitions(17, m.AddPreferredPartitionRequest)
PREFER_RESPONSE: Final = _done(18, m.AddPreferredPartitionResponse)
UNPREFER_REQUEST: Final = _partitions(19, m.RemovePreferredPartitionRequest)
UNPREFER_RESPONSE: Final = _done(20, m.RemovePreferredPartitionResponse)
HEALTH_REQUEST: Final = plain(21, m.ServerPartitionsHealthStatRequest)
HEALTH_RESPONSE: Final = MessageLayout(22, m.ServerPartitionsHealthStatResponse, _write_health, _read_health)
