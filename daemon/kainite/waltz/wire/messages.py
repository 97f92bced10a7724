"""The messages of versions 0 to 4.

Each carries the id of the request that it makes or answers. ``FeedData`` carries that of the append which wrote the
transaction: by it a client recognises its own. *Mark* is a high-water mark: the id of the last transaction that
somebody has, −1 for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kainite.log.format.entry import ReqId


class MountState(IntEnum):
    """The answers to a mount. Versions 0 to 2 know only whether it is READY."""

    READY = 0
    NOT_READY = 1
    CLIENT_AHEAD = 2


@dataclass(frozen=True, slots=True)
class MountRequest:
    """Asks for the feed behind ``mark`` up to the owner's mark, then for an answer.

    Attributes:
        mark: the client's mark.
        connection: number of the client's connection; of two connections the one with the higher number is in use.
    """

    req_id: ReqId
    mark: int
    connection: int


@dataclass(frozen=True, slots=True)
class MountResponse:
    req_id: ReqId
    state: MountState


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """Asks to append a transaction, unless one behind ``mark`` has written what it locks.

    Attributes:
        mark: the client's mark.
        write_locks: hashes that must not have been written behind the mark, and are written now.
        read_locks: hashes that must not have been written behind the mark. Version 1.
        append_locks: hashes that are written now, whatever was written. Version 2.
        header: a number of the application's, fed without the data.
        data: the transaction.
    """

    req_id: ReqId
    mark: int
    write_locks: tuple[int, ...]
    read_locks: tuple[int, ...]
    append_locks: tuple[int, ...]
    header: int
    data: bytes


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Asks for a portion of the feed behind ``mark``."""

    req_id: ReqId
    mark: int


@dataclass(frozen=True, slots=True)
class FeedData:
    """A transaction without its data; ``req_id`` is that of its append."""

    req_id: ReqId
    transaction_id: int
    header: int


@dataclass(frozen=True, slots=True)
class FeedSuspended:
    """Says that the portion is fed: a FeedRequest asks for the next one."""

    req_id: ReqId


@dataclass(frozen=True, slots=True)
class TransactionDataRequest:
    req_id: ReqId
    transaction_id: int


@dataclass(frozen=True, slots=True)
class TransactionDataResponse:
    """A transaction's data, or why there is none.

    Attributes:
        data: None when the request failed.
        error: why the request failed.
    """

    req_id: ReqId
    transaction_id: int
    data: bytes | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """Asks for an answer when every append that came before is decided."""

    req_id: ReqId


@dataclass(frozen=True, slots=True)
class FlushResponse:
    """Answers a flush with the owner's mark."""

    req_id: ReqId
    transaction_id: int


@dataclass(frozen=True, slots=True)
class LockFailure:
    """Refuses an append. A client that has applied ``transaction_id`` does not fail for the same reason again."""

    req_id: ReqId
    transaction_id: int


@dataclass(frozen=True, slots=True)
class HighWaterMarkRequest:
    req_id: ReqId


@dataclass(frozen=True, slots=True)
class HighWaterMarkResponse:
    req_id: ReqId
    transaction_id: int


@dataclass(frozen=True, slots=True)
class CheckStorageConnectivityRequest:
    req_id: ReqId


@dataclass(frozen=True, slots=True)
class CheckStorageConnectivityResponse:
    """Says for each place of the store whether the owner reaches it."""

    req_id: ReqId
    reached: tuple[tuple[str | None, bool], ...]


@dataclass(frozen=True, slots=True)
class ServerPartitionsAssignmentRequest:
    req_id: ReqId


@dataclass(frozen=True, slots=True)
class ServerPartitionsAssignmentResponse:
    req_id: ReqId
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddPreferredPartitionRequest:
    req_id: ReqId
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddPreferredPartitionResponse:
    req_id: ReqId
    done: bool


@dataclass(frozen=True, slots=True)
class RemovePreferredPartitionRequest:
    req_id: ReqId
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemovePreferredPartitionResponse:
    req_id: ReqId
    done: bool


@dataclass(frozen=True, slots=True)
class ServerPartitionsHealthStatRequest:
    req_id: ReqId


@dataclass(frozen=True, slots=True)
class ServerPartitionsHealthStatResponse:
    """Says for each partition whether it is well."""

    req_id: ReqId
    healthy: tuple[tuple[int, bool], ...]
