"""The keys of ``kainite extract``."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import choice, command, flag, millis, path, whole
from kainite.settings.sections.extract import ExtractMode, ExtractOffsets, ExtractSpread

EXTRACT_KEYS = (
    Key("extractorName", "extract", "command", command(), "The extractor's command line.", default="none"),
    Key(
        "extractorMode",
        "extract",
        "mode",
        choice(ExtractMode),
        "Whether the extractor writes its messages and exits, or is asked for them in cycles.",
    ),
    Key(
        "extractorOffsets",
        "extract",
        "offsets",
        choice(ExtractOffsets),
        "Cyclic mode: whether the extractor keeps the offset, or Kainite in its offset file, or there as times.",
    ),
    Key(
        "extractorOffsetFile",
        "extract",
        "offset_file",
        path(),
        "The file in which Kainite keeps the offset, with `extractorOffsets=kainite` or `time`.",
        default="none",
    ),
    Key(
        "extractorIntervalMillis",
        "extract",
        "interval",
        millis(0, 604_800_000),
        "Pause after a cycle that brought nothing, and after each range of time; in plain mode, between two runs.",
        default="1000; in plain mode there is one run only",
    ),
    Key(
        "extractorTimeoutMillis",
        "extract",
        "reply_timeout",
        millis(100, 86_400_000),
        "Longest silence of a cyclic extractor that was asked; a plain one may be silent.",
    ),
    Key(
        "extractorTries",
        "extract",
        "tries",
        whole(1, 1_000_000),
        "Failures in a row after which `kainite extract` gives up.",
    ),
    Key(
        "extractorHoldBytes",
        "extract",
        "hold_bytes",
        whole(0, unit="bytes"),
        "Most bytes of a cycle that are held until its end; what exceeds them is put before the cycle is whole.",
    ),
    Key(
        "extractorAheadBytes",
        "extract",
        "ahead_bytes",
        whole(0, unit="bytes"),
        "Answers on their way to the stream from which on no further one is asked for; 0: one answer at a time.",
    ),
    Key(
        "extractSpread",
        "extract",
        "spread",
        choice(ExtractSpread),
        "Whether a unit of work goes to one shard, or its records to all in turn.",
    ),
    Key(
        "extractAggregation",
        "extract",
        "aggregation",
        flag(),
        "Whether messages share records, as the KPL's aggregates do, which KCL and Kainite take apart.",
    ),
    Key(
        "extractAggregationBytes",
        "extract",
        "aggregation_bytes",
        whole(1024, 1024 * 1024, unit="bytes"),
        "Most bytes of an aggregate; a larger message has a record of its own. Kinesis charges by 25 KB of a record.",
    ),
    Key(
        "extractAggregationMillis",
        "extract",
        "aggregation_time",
        millis(0, 60_000),
        "Longest wait of a message for others to share a record with; not while an extractor waits to be asked.",
    ),
)
