"""Opens the shards' sources in the retrieval mode of the settings: polling, or enhanced fan-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kainite.child.json_lines.records import render_process_records, render_process_records_v0
from kainite.child.markers.records import render_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.record_batch import Render
from kainite.kinesis.read.shard_source import OpenSource, polling
from kainite.observe.meter import Meter
from kainite.settings import ChildProtocol, Retrieval, Settings

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

Sources: TypeAlias = Callable[[ChildProtocol], OpenSource]
"""Returns the function that opens a shard's source; the source renders batches for the protocol."""

RENDER: Final[Mapping[ChildProtocol, Render]] = {
    ChildProtocol.JSON_LINES: render_process_records,
    ChildProtocol.JSON_LINES_V0: render_process_records_v0,
    ChildProtocol.MARKERS: render_records,
}
"""The renderer of batches, by the children's protocol."""


def open_retrieval(kinesis: KinesisClient, stream: StreamClient, settings: Settings, meter: Meter) -> Sources:
    """Prepares reading; registers the consumer for fan-out. Blocks.

    Args:
        kinesis: the client that ``stream`` uses.
        stream: the stream.
        settings: how to read it; ``DEFAULT`` is polling.
        meter: takes the metrics of reading.

    Raises:
        StreamError: the consumer cannot be registered.
    """

    def poll(protocol: ChildProtocol) -> OpenSource:
        return polling(stream, render=RENDER[protocol], meter=meter)

    if settings.stream.retrieval is not Retrieval.FANOUT:
        return poll
    from kainite.kinesis.read.consumer_registration import registered_consumer
    from kainite.kinesis.read.fan_out import fan_out
    from kainite.kinesis.read.subscription import Subscriber

    subscriber = Subscriber(kinesis, registered_consumer(kinesis, settings.stream, settings.leases.application))
    return lambda protocol: fan_out(stream, subscriber, poll(protocol), render=RENDER[protocol], meter=meter)
