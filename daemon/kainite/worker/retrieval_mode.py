"""Opens the shards' sources in the retrieval mode of the settings: polling, or enhanced fan-out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kainite.base.logs import event
from kainite.child.json_lines.records import render_process_records, render_process_records_v0
from kainite.child.markers.records import render_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.record_batch import Render
from kainite.kinesis.read.retrieval import ChosenWay, Way, chosen_way
from kainite.kinesis.read.shard_source import OpenSource, polling
from kainite.observe.meter import Meter
from kainite.settings import ChildProtocol, Retrieval, Settings

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

logger = logging.getLogger(__name__)

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
        settings: how to read it.
        meter: takes the metrics of reading.

    Raises:
        StreamError: the consumer cannot be registered.
    """

    def poll(protocol: ChildProtocol) -> OpenSource:
        return polling(stream, render=RENDER[protocol], meter=meter)

    chosen = chosen_way(settings.stream.retrieval, kinesis.meta.endpoint_url)
    _tell(chosen, settings.stream.retrieval)
    if not chosen.is_fan_out:
        return poll
    from kainite.kinesis.read.consumer_registration import registered_consumer
    from kainite.kinesis.read.fan_out import fan_out
    from kainite.kinesis.read.subscription import Subscriber

    if chosen.way is Way.HTTP2:
        from kainite.kinesis.read.http2_transport import use_http2  # only here: the extra fanout may be missing

        use_http2(kinesis)
    subscriber = Subscriber(kinesis, registered_consumer(kinesis, settings.stream, settings.leases.application))
    return lambda protocol: fan_out(stream, subscriber, poll(protocol), render=RENDER[protocol], meter=meter)


def _tell(chosen: ChosenWay, mode: Retrieval) -> None:
    """Logs how the stream is read, where the settings leave that open or HTTP/2 cannot be spoken."""
    match chosen.way:
        case Way.HTTP2:
            event(logger, logging.INFO, "fan-out over HTTP/2", mode=mode)
        case Way.HTTP1:
            event(logger, logging.WARNING, "fan-out over HTTP/1.1, which AWS does not document", why=chosen.why)
        case Way.POLLING if chosen.why:
            event(logger, logging.INFO, "polling: fan-out needs HTTP/2", mode=mode, why=chosen.why)
