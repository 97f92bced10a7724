"""The streams that a daemon reads: one (``streamName``), or several (``streamNames``).

Among several streams each has an id, which is a part of the keys of its shards (:mod:`kainite.base.shard_key`). Kinesis
tells it (DescribeStreamSummary), unless the settings give the stream's ARN and its ``creationEpoch``.

States of a stream: *named* (in the settings) → *open* (its id is known; leases of it are taken) → *dropped* (in the
settings no longer). They change at the start, and where SIGHUP makes the daemon read its file again. At the start the
daemon waits while Kinesis is away; it ends where Kinesis refuses every stream. A stream that Kinesis refuses (it is
misspelled or deleted, or may not be described), and one that is added to a running daemon, is opened beside the work,
and tried again until it is open or named no more; the others are read meanwhile. Until then ``/health`` has a check
with its name (:mod:`.stream_checks`). A dropped one stays known until the daemon ends: its children may still finish
their calls.

============================================  ========================================================================
a crash                                       leaves
============================================  ========================================================================
before the stream is open                     nothing; the next start opens it. Until then this daemon does not say how
                                              far it has read, so units wait (:mod:`.reading_reports`)
when it is open, before it has leases         nothing; whoever leads creates them
when a stream is dropped, before its leases   leases that expire; nobody with the new file takes them. A host with the
are released                                  old file does, and reads on
============================================  ========================================================================
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NoReturn, TypeAlias

from kainite.aws import clients as aws
from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.base.logs import event
from kainite.base.outage import wait_out
from kainite.base.shard_key import ShardKey
from kainite.base.waiting import wait_until_set
from kainite.kinesis.client import StreamClient
from kainite.kinesis.named_streams import client_of
from kainite.leases.streams import ReadStream, StreamsById
from kainite.observe.meter import Meter
from kainite.observe.metric import STREAMS_NOT_OPEN
from kainite.settings import Settings
from kainite.settings.several import each_stream, identity_of_several
from kainite.worker.retrieval_mode import Sources, open_retrieval

logger = logging.getLogger(__name__)

BeginOfStream: TypeAlias = Callable[[StreamClient, Checkpoint, float | None], Awaitable[float]]
"""As :data:`~kainite.leases.streams.Begin`, of a given stream."""

AGAIN_S: Final = 10.0
"""Seconds until the next attempt to open a stream that a running daemon lacks."""


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream whose shards can be read.

    Attributes:
        client: the stream; its ``id`` is the stream's part of its shards' keys.
        sources: opens its shards' sources.
        settings: the daemon's settings, with the stream's own in the place of those that all streams share.
    """

    client: StreamClient
    sources: Sources
    settings: Settings


def open_stream(settings: Settings, meter: Meter) -> OpenStream:
    """Opens a stream; blocks.

    Args:
        settings: as :func:`~kainite.settings.several.each_stream` returns them.
        meter: takes the metrics of reading.

    Raises:
        StreamError: there is no such stream, or it may not be read.
    """
    kinesis = aws.client("kinesis", settings.aws)
    client = client_of(kinesis, settings)
    return OpenStream(client, open_retrieval(kinesis, client, settings, meter), settings)


class DaemonStreams:
    """The streams of one daemon; for its event loop, where nothing else is said.

    Args:
        settings: the daemon's settings at the start.
        meter: takes the metrics of reading.
        open_one: opens a stream.
    """

    def __init__(
        self, settings: Settings, meter: Meter, open_one: Callable[[Settings, Meter], OpenStream] = open_stream
    ) -> None:
        self._settings = settings
        self._open_one = lambda settings: open_one(settings, meter)
        self._open: dict[str, OpenStream] = {}  # by the name or ARN in the settings
        self._known: dict[str, OpenStream] = {}  # by id, dropped ones included
        self._refused: dict[str, str] = {}  # why the latest attempt to open a stream failed, as the settings spell it
        self._meter = meter
        self._changed = asyncio.Event()

    async def open(self, stop: asyncio.Event) -> None:
        """Opens the streams of the settings; waits while Kinesis is away. :meth:`follow` tries those that it refuses.

        Raises:
            StoppedError: ``stop`` was set before.
            StreamError: Kinesis refuses every stream: none exists, or none may be read.
        """
        refused: StreamError | None = None
        for settings in each_stream(self._settings):
            try:
                opened = await wait_out(partial(self._open_one, settings), stop, f"stream {settings.stream.name}")
            except StreamError as error:
                refused = refused or error
                self._refuse(settings, error)
            else:
                self._add(settings, opened)
        if refused is not None and not self._open:
            raise refused

    @property
    def name(self) -> str:
        """Returns the names of the open streams, for messages."""
        return ", ".join(stream.client.name for stream in self._open.values())

    def read(self, begin: BeginOfStream | None) -> StreamsById:
        """Returns the open streams for the leases.

        Args:
            begin: with units of work, notes the log's beginning of a stream; None without them.
        """
        return {
            stream.client.id: ReadStream(
                stream.client,
                stream.settings.stream,
                partial(begin, stream.client) if begin and stream.settings.log.enabled else None,
                collected=stream.settings.log.enabled,
            )
            for stream in self._open.values()
        }

    @property
    def refused(self) -> Mapping[str, str]:
        """Returns why streams of the settings are not open, by the name or ARN in the settings."""
        named = map(_spelled, each_stream(self._settings))
        return {each: self._refused[each] for each in named if each in self._refused and each not in self._open}

    def spelling(self, id: str) -> str:
        """Returns the name or ARN in the settings of an open stream; its id where it is open no more."""
        return next((spelled for spelled, stream in self._open.items() if stream.client.id == id), id)

    def all_open(self) -> bool:
        """Tells whether each stream that the settings name is open."""
        return all(_spelled(each) in self._open for each in each_stream(self._settings))

    @property
    def collected(self) -> frozenset[str]:
        """Returns the streams of the settings that carry units of work, by the name or ARN in the settings."""
        return frozenset(_spelled(each) for each in each_stream(self._settings) if each.log.enabled)

    def collected_are_open(self) -> bool:
        """Tells whether each stream that carries units of work is open."""
        return self.collected <= self._open.keys()

    def of(self, shard: str) -> OpenStream:
        """Returns the stream of a shard that this daemon has read, by the shard's key."""
        return self._known[ShardKey.of(shard).stream]

    def apply(self, settings: Settings) -> None:
        """Takes other settings over: drops streams that they do not name; :meth:`follow` opens those that are new."""
        self._settings = settings
        named = {_spelled(each): each for each in each_stream(settings)}
        for spelled in self._open.keys() - named.keys():
            event(logger, logging.INFO, "stream dropped", stream=self._open.pop(spelled).client.name)
        for spelled, stream in list(self._open.items()):
            self._add(named[spelled], replace(stream, settings=named[spelled]))
        self._changed.set()

    async def follow(self, opened: Callable[[], None]) -> NoReturn:
        """Opens the streams that the settings name and that are not open, until cancelled.

        Args:
            opened: called after each.
        """
        while True:
            self._changed.clear()
            missing = [each for each in each_stream(self._settings) if _spelled(each) not in self._open]
            for settings in missing:
                try:
                    stream = await asyncio.to_thread(self._open_one, settings)
                except StreamError as error:
                    self._refuse(settings, error)
                    continue
                # Its settings may have changed, and it may have been dropped, since.
                now = {_spelled(each): each for each in each_stream(self._settings)}.get(_spelled(settings))
                if now is not None:
                    self._add(now, replace(stream, settings=now))
                    event(logger, logging.INFO, "stream opened", stream=stream.client.name, id=stream.client.id)
                    opened()
            self._meter.observe(STREAMS_NOT_OPEN, len(self.refused))
            await wait_until_set(self._changed, math.inf if self.all_open() else AGAIN_S)

    def _add(self, settings: Settings, stream: OpenStream) -> None:
        self._open[_spelled(settings)] = self._known[stream.client.id] = stream
        self._refused.pop(_spelled(settings), None)

    def _refuse(self, settings: Settings, error: StreamError) -> None:
        self._refused[_spelled(settings)] = str(error)
        event(logger, logging.ERROR, "stream not opened", stream=settings.stream.name, error=error)

    # The log sees all streams as one (kainite.worker.units_of_work). These methods block, in any thread.

    def identity(self) -> str:
        """Returns whose positions the log has: of the one stream, or of several, whose keys tell them apart.

        Raises:
            StreamError: there is no such stream, or the role may not ask.
        """
        client = next(iter(self._open.values())).client
        return identity_of_several(client.region) if client.id else str(client.identity())

    def retention(self) -> float:
        """Returns the seconds for which every stream keeps its records.

        Raises:
            StreamUnavailableError: no stream is open at the moment.
            StreamError: as :meth:`identity`.
        """
        streams = tuple(self._open.values())
        if not streams:
            raise StreamUnavailableError("no stream is open")
        return min(stream.client.retention() for stream in streams)


def _spelled(settings: Settings) -> str:
    """Returns a stream as the settings spell it."""
    return settings.stream.arn or settings.stream.name
