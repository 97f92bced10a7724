"""Several streams in one application: which there are, and the settings of each.

``streamNames`` lists them. ``stream.NAME.KEY = …`` sets one of :data:`OF_A_STREAM` for the streams with that name
alone; what is not set so, holds for all of them. The environment and the command line spell such a key as the file does
(:mod:`kainite.settings.loading.overrides`).

With ``unitsOfWork = true`` and ``stream.NAME.unitsOfWork = false`` some streams carry units of work, and NAME is
*plain*: its children's checkpoints are KCL's, what they emit goes nowhere, and no unit waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from kainite.base.shard_key import ShardKey, StreamId
from kainite.settings.key import Reload
from kainite.settings.keys.table import KEYS, Values
from kainite.settings.kinds.values import ValueKind, whole
from kainite.settings.sections.stream import InitialPosition
from kainite.settings.settings import Settings

PREFIX: Final = "stream."
_UNITS: Final = ("log", "enabled")


class StreamKey(NamedTuple):
    """A key that one stream may have of its own.

    Attributes:
        kind: says what may be written.
        section, field: the place in the settings that the key fills.
        reload: when a changed value takes effect.
    """

    kind: ValueKind
    section: str
    field: str
    reload: Reload


_SHARED_KEYS: Final = frozenset({
    "initialPositionInStream", "initialPositionInStreamExtended", "executableName", "retrievalMode", "maxRecords",
    "idleTimeBetweenReadsInMillis", "callProcessRecordsEvenForEmptyRecordList", "prefetchBytes",
    "millisBehindLatestThresholdForReducedTps", "fanoutConfig.consumerArn", "fanoutConfig.consumerName", "unitsOfWork",
})  # fmt: skip

OF_A_STREAM: Final[Mapping[str, StreamKey]] = {
    "creationEpoch": StreamKey(whole(1), "stream", "created", Reload.RESTART),
    **{key.name: StreamKey(key.kind, key.section, key.field, key.reload) for key in KEYS if key.name in _SHARED_KEYS},
}
"""The keys that a stream may have of its own, by name. ``creationEpoch`` has no spelling for all streams: it is the
last part of the stream's ``streamIdentifier``, which Kinesis' own time of its creation fills where it is not set."""


def stream_key(spelling: str) -> tuple[str, str] | None:
    """Returns a stream's name and the key, of ``stream.NAME.KEY``; None where ``spelling`` is no such key.

    Both parts may have dots in them.
    """
    if not spelling.startswith(PREFIX):
        return None
    rest = spelling.removeprefix(PREFIX)
    names = ((rest.removesuffix(f".{key}"), key) for key in OF_A_STREAM if rest.endswith(f".{key}"))
    return next(((name, key) for name, key in names if name), None)


def parsed_of_streams(texts: Mapping[str, str], folder: Path) -> tuple[dict[str, Values], list[str]]:
    """Returns what a file sets for single streams, by the stream's name, and what is wrong with it.

    Args:
        texts: the file's keys and texts; what is no key of a stream is passed over.
        folder: the file's folder.
    """
    found: dict[str, Values] = {}
    wrong: list[str] = []
    for spelling, text in texts.items():
        named = stream_key(spelling)
        if named is None:
            continue
        name, key = named
        entry = OF_A_STREAM[key]
        try:
            found.setdefault(name, {})[entry.section, entry.field] = entry.kind.parse(text, folder)
        except ValueError as error:
            wrong.append(f"{spelling}: {error}")
    return {name: _positioned(values) for name, values in found.items()}, wrong


def _positioned(values: Values) -> Values:
    """Adds what follows: a time is a position, and a position takes the place of a time that all streams have."""
    if ("stream", "initial_timestamp") in values:
        return {**values, ("stream", "initial_position"): InitialPosition.AT_TIMESTAMP}
    if ("stream", "initial_position") in values:
        return {**values, ("stream", "initial_timestamp"): None}
    return values


def problems(names: tuple[str, ...], of_streams: Mapping[str, Values], values: Values) -> Iterator[str]:
    """Yields what contradicts itself.

    Args:
        names: ``streamNames``.
        of_streams: what is set for single streams.
        values: what is set for all.
    """
    known = {name_of(stream) for stream in names}
    for name in of_streams:
        if name not in known:
            yield f"stream.{name}.…: {name} is not in streamNames"
    if not names:
        return
    for field, key in (("name", "streamName"), ("arn", "streamArn")):
        if ("stream", field) in values:
            yield f"{key} and streamNames: set one of them"
    if ("stream", "consumer_arn") in values:
        yield "fanoutConfig.consumerArn is a consumer of one stream: set stream.NAME.fanoutConfig.consumerArn"
    yield from _problems_of_units(names, of_streams, values.get(_UNITS, False))
    regions = sorted({stream.split(":")[3] for stream in names if is_arn(stream)})
    if len(regions) > 1:
        yield f"streamNames: the ARNs are of the regions {', '.join(regions)}; all streams must be in one"


def _problems_of_units(names: tuple[str, ...], of_streams: Mapping[str, Values], enabled: bool) -> Iterator[str]:
    own = {name_of(stream): of_streams.get(name_of(stream), {}).get(_UNITS) for stream in names}
    for name in sorted(name for name, units in own.items() if units and not enabled):
        yield f"stream.{name}.unitsOfWork needs unitsOfWork=true; set stream.NAME.unitsOfWork=false for other streams"
    if enabled and all(units is False for units in own.values()):
        yield "unitsOfWork is true, and false for each stream of streamNames: set it to false for all"


def is_arn(stream: str) -> bool:
    """Tells whether an item of ``streamNames`` is an ARN."""
    return stream.startswith("arn:")


def name_of(stream: str) -> str:
    """Returns the name of an item of ``streamNames``."""
    return stream.rpartition("/")[2] if is_arn(stream) else stream


def each_stream(settings: Settings) -> tuple[Settings, ...]:
    """Returns the settings of each stream that is read: the settings themselves where they name one stream."""
    return tuple(_of_stream(settings, stream) for stream in settings.stream.names) or (settings,)


def _of_stream(settings: Settings, stream: str) -> Settings:
    name = name_of(stream)
    own = settings.of_streams.get(name, {})
    fields: dict[str, dict[str, Any]] = {"stream": {}, "child": {}, "log": {}}
    for (section, field), value in own.items():
        fields[section][field] = value
    fields["stream"] |= {"name": name, "arn": stream if is_arn(stream) else None}
    return replace(
        settings,
        stream=replace(settings.stream, **fields["stream"]),
        child=replace(settings.child, **fields["child"]),
        log=replace(settings.log, **fields["log"]),
    )


def is_shard_of(shard: str, stream: str) -> bool:
    """Tells whether a shard, given by its key, is of an item of ``streamNames``."""
    id = StreamId.parsed(ShardKey.of(shard).stream)
    return id is not None and id.name == name_of(stream) and (not is_arn(stream) or id.account == stream.split(":")[4])


def is_collected(settings: Settings, shard: str) -> bool:
    """Tells whether a shard, given by its key, carries units of work; one of a stream that the settings lack may."""
    return settings.log.enabled and not any(is_shard_of(shard, stream) for stream in plain_streams(settings))


def plain_streams(settings: Settings) -> tuple[str, ...]:
    """Returns the items of ``streamNames`` that carry no units of work, while others do."""
    if not settings.log.enabled:
        return ()
    each = zip(settings.stream.names, each_stream(settings), strict=False)  # one stream alone has no names
    return tuple(stream for stream, own in each if not own.log.enabled)


def identity_of_several(region: str) -> str:
    """Returns the identity that a log of several streams of a region notes in place of one stream's.

    The keys of the shards tell the streams apart, and one stream from another of the same name; not the region.
    """
    return f"several streams in {region}"


def changes_mode(old: Settings, new: Settings) -> bool:
    """Tells whether one of the two reads one stream and the other one several: a running daemon cannot change that."""
    return bool(old.stream.names) != bool(new.stream.names)


def changes_of_streams(old: Settings, new: Settings) -> Iterator[tuple[str, Reload]]:
    """Yields the keys of single streams whose values differ, as the file spells them, and when each takes effect."""
    for name in sorted(old.of_streams.keys() | new.of_streams.keys()):
        before, now = old.of_streams.get(name, {}), new.of_streams.get(name, {})
        for spelling, key in OF_A_STREAM.items():
            place = key.section, key.field
            if (place in before, before.get(place)) != (place in now, now.get(place)):
                yield f"{PREFIX}{name}.{spelling}", key.reload


def reloaded(running: Settings, fresh: Settings) -> dict[str, dict[tuple[str, str], Any]]:
    """Returns what is set for single streams after the file was read again.

    A stream that is read already keeps what needs another start of the daemon; a new one has all that is written.
    """
    if changes_mode(running, fresh):
        fresh = running
    followed = {(key.section, key.field) for key in OF_A_STREAM.values() if key.reload.is_followed}
    reading = {name_of(stream) for stream in running.stream.names}

    def merged(name: str) -> dict[tuple[str, str], Any]:
        now = fresh.of_streams.get(name, {})
        if name not in reading:
            return dict(now)
        kept = {place: value for place, value in running.of_streams.get(name, {}).items() if place not in followed}
        return {**kept, **{place: value for place, value in now.items() if place in followed}}

    return {name_of(stream): merged(name_of(stream)) for stream in fresh.stream.names}
