"""Clients of the streams that settings name: of each, or of all together for those who look at shards by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from kainite.aws import clients as aws
from kainite.base.errors import StreamError
from kainite.base.shard_key import ShardKey, StreamId
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt
from kainite.settings import Settings
from kainite.settings.several import each_stream, plain_streams

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient


class ReadableShards(Protocol):
    """The shards of one stream, or of several, by their keys; calls and errors are those of :class:`StreamClient`."""

    @property
    def name(self) -> str: ...
    def list_shards(self) -> tuple[Shard, ...]: ...
    def iterator(self, shard_id: str, start: StartAt) -> tuple[str, float]: ...
    def get_records(self, iterator: str, limit: int) -> bytes: ...


def client_of(kinesis: KinesisClient, settings: Settings) -> StreamClient:
    """Returns a client of one stream; asks Kinesis for the stream's id where there are several. Blocks.

    Args:
        kinesis: the client to use.
        settings: as :func:`~kainite.settings.several.each_stream` returns them.

    Raises:
        StreamError: there is no such stream, or it may not be described.
    """
    stream = settings.stream
    client = StreamClient(kinesis, stream.name, stream.arn)
    if not stream.names:
        return client
    arn, created = stream.arn, stream.created
    if arn is None or created is None:
        identity = client.identity()
        arn, created = identity.arn, created or identity.created_ms // 1000
    return StreamClient(kinesis, stream.name, stream.arn, str(StreamId.of(arn, created)))


def ids_of(settings: Settings) -> frozenset[str]:
    """Returns the ids of all streams that the settings name; errors as those of :func:`client_of`. Blocks."""
    kinesis = aws.client("kinesis", settings.aws)
    return frozenset(client_of(kinesis, each).id for each in each_stream(settings))


def plain_ids_of(settings: Settings) -> frozenset[str]:
    """Returns the ids of the streams that carry no units of work, while others do; errors as :func:`ids_of`. Blocks."""
    if not plain_streams(settings):
        return frozenset()
    kinesis = aws.client("kinesis", settings.aws)
    return frozenset(client_of(kinesis, each).id for each in each_stream(settings) if not each.log.enabled)


def clients_of(settings: Settings) -> ReadableShards:
    """Returns the shards of all streams that the settings name; errors as those of :func:`client_of`. Blocks."""
    kinesis = aws.client("kinesis", settings.aws)
    clients = {client.id: client for client in (client_of(kinesis, each) for each in each_stream(settings))}
    return clients[""] if "" in clients else _Together(clients)


class _Together:
    """Several streams; an iterator of theirs has the stream's id in front."""

    def __init__(self, clients: Mapping[str, StreamClient]) -> None:
        self._clients = clients

    @property
    def name(self) -> str:
        return ", ".join(client.name for client in self._clients.values())

    def list_shards(self) -> tuple[Shard, ...]:
        return tuple(shard for client in self._clients.values() for shard in client.list_shards())

    def iterator(self, shard_id: str, start: StartAt) -> tuple[str, float]:
        stream = ShardKey.of(shard_id).stream
        if (client := self._clients.get(stream)) is None:
            raise StreamError(f"shard {shard_id} is of a stream that streamNames does not have")
        iterator, made = client.iterator(shard_id, start)
        return f"{stream} {iterator}", made

    def get_records(self, iterator: str, limit: int) -> bytes:
        stream, _, inner = iterator.partition(" ")
        return self._clients[stream].get_records(inner, limit)
