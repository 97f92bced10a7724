"""The section for the extractor of ``kainite extract``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kainite.settings.key import Reload, own
from kainite.settings.kinds.values import choice, command_line, flag, millis, path, whole


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
    """The extractor of ``kainite extract``."""

    command: tuple[str, ...] = own(
        "extractorName",
        command_line(),
        Reload.NEXT_EXTRACT,
        "The extractor's command line.",
        default=(),
        otherwise="none",
        secret=True,
    )
    mode: ExtractMode = own(
        "extractorMode",
        choice(ExtractMode),
        Reload.NEXT_EXTRACT,
        "Whether the extractor writes its messages and exits, or is asked for them in cycles.",
        default=ExtractMode.PLAIN,
    )
    offsets: ExtractOffsets = own(
        "extractorOffsets",
        choice(ExtractOffsets),
        Reload.NEXT_EXTRACT,
        "Cyclic mode: whether the extractor keeps the offset, or Kainite in its offset file, or there as times.",
        default=ExtractOffsets.EXTRACTOR,
    )
    offset_file: Path | None = own(
        "extractorOffsetFile",
        path(),
        Reload.NEXT_EXTRACT,
        "The file in which Kainite keeps the offset, with `extractorOffsets=kainite` or `time`.",
        default=None,
        otherwise="none",
    )
    interval: float | None = own(
        "extractorIntervalMillis",
        millis(0, 604_800_000),
        Reload.NEXT_EXTRACT,
        "Pause after a cycle that brought nothing, and after each range of time; in plain mode, between two runs.",
        default=None,
        otherwise="1000; in plain mode there is one run only",
    )
    reply_timeout: float = own(
        "extractorTimeoutMillis",
        millis(100, 86_400_000),
        Reload.NEXT_EXTRACT,
        "Longest silence of a cyclic extractor that was asked; a plain one may be silent.",
        default=60.0,
    )
    metrics_port: int | None = own(
        "extractMetricsPort",
        whole(0, 65_535),
        Reload.NEXT_EXTRACT,
        "Port of `kainite extract` for Prometheus (`/metrics`) and for health checks, on `metricsHost`; 0 takes any "
        "free one.",
        default=None,
        otherwise="none is opened",
    )
    tries: int = own(
        "extractorTries",
        whole(1, 1_000_000),
        Reload.NEXT_EXTRACT,
        "Failures in a row after which `kainite extract` gives up; a source that is away "
        "(exit status 75) counts as none.",
        default=10,
    )
    # The most bytes of an answer that are held until it is whole; a larger one, a bulk load's, is put before that.
    hold_bytes: int = 64 * 1024 * 1024
    # From so many bytes of answers on their way to the stream on, no further one is asked for; 0: one answer at a time.
    # Eight shards take so much in a second, so a put does not wait for the extractor.
    ahead_bytes: int = 8 * 1024 * 1024
    spread: ExtractSpread = own(
        "extractSpread",
        choice(ExtractSpread),
        # The children's output has it as well (``output``), in the daemon itself.
        Reload.RESTART,
        "Whether a unit of work goes to one shard, or its records to all in turn.",
        default=ExtractSpread.UNIT,
    )
    aggregation: bool = own(
        "extractAggregation",
        flag(),
        Reload.NEXT_EXTRACT,
        "Whether messages share records, as the KPL's aggregates do, which KCL and Kainite take apart.",
        default=False,
    )
    # The most bytes of an aggregate: Kinesis charges for each begun 25 KB of a record.
    aggregation_bytes: int = 25 * 1024
    aggregation_time: float = own(
        "extractAggregationMillis",
        millis(0, 60_000),
        Reload.NEXT_EXTRACT,
        "Longest wait of a message for others to share a record with; not while an extractor waits to be asked.",
        default=0.1,
    )
