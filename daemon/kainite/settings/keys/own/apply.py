"""Kainite's own keys of the target and the apply job."""

from __future__ import annotations

from kainite.base.markers import Batching
from kainite.settings.keys.key import Key
from kainite.settings.kinds.markers import marker
from kainite.settings.kinds.values import choice, flag, millis, names, target, text, whole
from kainite.settings.sections.apply import AwsFrom, Consistency, OnFailure

APPLY_KEYS: tuple[Key, ...] = (
    Key(
        "target",
        "apply",
        "target",
        target(),
        "The database that units are applied to, or the program that loads them (docs/targets.md).",
        default="none",
    ),
    Key(
        "targetSchemas",
        "apply",
        "schemas",
        names(),
        "The target's schemas; the first one is the default.",
        default="the connection's own",
    ),
    Key("onUowFailure", "apply", "on_failure", choice(OnFailure), "What a failed unit does to later ones."),
    Key(
        "targetConsistency",
        "apply",
        "consistency",
        choice(Consistency),
        "`prefix`: units are committed in log order, so that a reader of the target sees the source as it once was; "
        "`conflict`: only units that conflict are, and others in parallel.",
    ),
    Key("applyInstances", "apply", "instances", whole(0, 10_000), "Job instances; 0 for Spark's parallelism."),
    Key("applyMaxUnits", "apply", "max_units", whole(1, 1_000_000), "Most units in one micro-batch."),
    Key("applyGroupUnits", "apply", "group_units", whole(1, 100_000), "Most units in one target transaction."),
    Key(
        "applyGroupBytes",
        "apply",
        "group_bytes",
        whole(1_024, 2**29),
        "Most bytes of deltas in one target transaction; a larger unit goes alone.",
    ),
    Key(
        "applyFold",
        "apply",
        "fold",
        flag(),
        "Whether changes of one row in a target transaction are made as one; `false` for a target whose changes are "
        "read one by one, out of its own log.",
    ),
    Key(
        "applyIdleMillis",
        "apply",
        "idle",
        millis(10, 60_000),
        "How often an idle apply job looks for units.",
    ),
    Key(
        "applyPaceMillis",
        "apply",
        "pace",
        millis(0, 60_000),
        "From the beginning of a micro-batch to that of the next one while few units come, so that these are gathered; "
        "the shorter the more come, and none from 40 units a second on.",
    ),
    Key(
        "loaderBatching",
        "apply",
        "loader_batching",
        choice(Batching),
        "`target=exec:…`: one unit at a time, or batches that the loader or the apply job ends.",
    ),
    Key("loaderBatchSize", "apply", "loader_batch_size", whole(1, 100_000), "Most units in a loader's batch."),
    Key("loaderMarkerEom", "apply", "loader_eom", marker(), "Ends a unit.", default="that of `markerEom`"),
    Key("loaderMarkerEop", "apply", "loader_eop", marker(), "Ends a loader's answer.", default="that of `markerEop`"),
    Key("loaderMarkerEob", "apply", "loader_eob", marker(), "Ends a batch of units.", default="that of `markerEob`"),
    Key(
        "loaderMarkerBnc",
        "apply",
        "loader_bnc",
        marker(),
        "The loader asks for one more unit of a batch.",
        default="that of `markerBnc`",
    ),
    Key(
        "loaderTimeoutMillis",
        "apply",
        "loader_timeout",
        millis(100, 86_400_000),
        "A loader that was asked and is silent for so long is killed.",
    ),
    Key("applyMaster", "apply", "master", text("a Spark master"), "The Spark master."),
    Key(
        "applyPython",
        "apply",
        "python",
        text("a path"),
        "Python on the executors' machines, with `kainite[spark]` installed.",
        default="`PYSPARK_PYTHON`, `spark.pyspark.python`; with a local master the driver's own",
    ),
    Key(
        "applyAwsFrom",
        "apply",
        "aws_from",
        choice(AwsFrom),
        "`executor`: executors find AWS credentials where they run; `driver`: they get the driver's with each "
        "micro-batch.",
    ),
    Key(
        "applyStallMillis",
        "apply",
        "stall",
        millis(1_000, 86_400_000),
        "A Spark job of which no task runs for so long ends the apply job; the first one has four times as long.",
    ),
    Key(
        "applyJobLimitMillis",
        "apply",
        "job_limit",
        millis(1_000, 86_400_000),
        "A Spark job that takes longer is cancelled, and its micro-batch tried again.",
    ),
    Key(
        "applyLeaseMillis",
        "apply",
        "lease",
        millis(200, 3_600_000),
        "An apply job that was silent for so long may be replaced.",
    ),
    Key(
        "applyMetricsPort",
        "apply",
        "metrics_port",
        whole(0, 65_535),
        "Port of the apply job for Prometheus (`/metrics`) and for health checks, on `metricsHost`; 0 takes any free "
        "one.",
        default="none is opened",
    ),
    Key(
        "applyFeed",
        "apply",
        "feed",
        flag(),
        "Whether the log's owner sends the apply job what becomes durable (docs/operations.md, *The feed*); "
        "`false`: it is read from DynamoDB alone.",
    ),
    Key(
        "applyFeedBytes",
        "apply",
        "feed_bytes",
        whole(0, 2**26),
        "Most bytes of deltas that come with the feed, of a log batch and to the tasks of a micro-batch; "
        "larger ones are read by the tasks.",
    ),
)
