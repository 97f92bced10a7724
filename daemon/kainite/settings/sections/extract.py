"""The section for the extractor of ``kainite extract``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class ExtractMode(StrEnum):
    """The mode of an extractor: it writes and exits, or it is asked again and again."""

    PLAIN = "plain"
    CYCLIC = "cyclic"


class ExtractOffsets(StrEnum):
    """The place of a cyclic extractor's offset: with the extractor, or in Kainite's offset file.

    KAINITE stores the offset that the extractor gives; TIME stores ranges of time that Kainite chooses.
    """

    EXTRACTOR = "extractor"
    KAINITE = "kainite"
    TIME = "time"


class ExtractSpread(StrEnum):
    """The spread of a unit of work: all to one shard, or its records over all shards."""

    UNIT = "unit"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """The extractor of ``kainite extract``.

    Attributes:
        command: the words of the extractor's command line; ``repr`` leaves them out, since they may hold secrets.
        mode: whether it writes and exits, or is asked in cycles.
        offsets: where the offset of a cyclic extractor is kept.
        offset_file: the file that Kainite keeps the offset in.
        interval: pause between two runs or idle cycles, seconds; None: one run in plain mode, 1 s in cyclic mode.
        reply_timeout: longest silence of a cyclic extractor that was asked, seconds.
        tries: failures in a row after which the extraction is given up.
        hold_bytes: most bytes of one answer that are held until it is whole.
        ahead_bytes: bytes of answers on their way to the stream from which on no further one is asked for; 0: none is
            asked for before the one before it is on the stream.
        spread: whether a unit of work goes to one shard.
        aggregation: whether messages share records, as KPL aggregates.
        aggregation_bytes: most bytes of an aggregate.
        aggregation_time: longest wait of a message for others to share a record with, seconds.
    """

    command: tuple[str, ...] = field(default=(), repr=False)
    mode: ExtractMode = ExtractMode.PLAIN
    offsets: ExtractOffsets = ExtractOffsets.EXTRACTOR
    offset_file: Path | None = None
    interval: float | None = None
    reply_timeout: float = 60.0
    tries: int = 10
    hold_bytes: int = 64 * 1024 * 1024
    ahead_bytes: int = 8 * 1024 * 1024
    spread: ExtractSpread = ExtractSpread.UNIT
    aggregation: bool = False
    aggregation_bytes: int = 25 * 1024
    aggregation_time: float = 0.1
