"""The section for the target and the apply job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kainite.base.markers import Batching
from kainite.settings.key import Reload, own
from kainite.settings.kinds.values import choice, flag, millis, names, seconds, text, whole
from kainite.settings.kinds.values import target as target_address


class OnFailure(StrEnum):
    """The effect of a failed unit of work on later units with the same signatures."""

    BLOCK = "block"
    SKIP = "skip"
    STOP = "stop"


class Consistency(StrEnum):
    """The states that a reader of the target may see while units are applied."""

    PREFIX = "prefix"
    CONFLICT = "conflict"


class TargetCommit(StrEnum):
    """How a unit of several targets is committed."""

    EACH = "each"
    TOGETHER = "together"
    ATOMIC = "atomic"


class TargetTriggers(StrEnum):
    """What becomes of triggers and rules of the target that fire when units are applied."""

    REFUSE = "refuse"
    FIRE = "fire"
    OFF = "off"


class AwsFrom(StrEnum):
    """The AWS credentials of Spark's executors."""

    EXECUTOR = "executor"
    DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """The target and the apply job."""

    target: str | None = own(
        "target",
        target_address(),
        Reload.RESTART,
        "The database that units are applied to, or the program that loads them (docs/targets.md).",
        default=None,
        otherwise="none",
        secret=True,
    )
    schemas: tuple[str, ...] = own(
        "targetSchemas",
        names(),
        Reload.RESTART,
        "The target's schemas; the first one is the default.",
        default=(),
        otherwise="the connection's own",
    )
    tables: tuple[str, ...] = own(
        "targetTables",
        names(),
        Reload.RESTART,
        "The tables of the target that this log writes, where others belong to another log or to nobody; `crm.*` is "
        "each table whose name begins so. A unit of any other table fails (docs/scale.md). Of several targets: "
        "`target.NAME.tables`.",
        default=(),
        otherwise="all tables",
    )
    on_failure: OnFailure = own(
        "onUowFailure",
        choice(OnFailure),
        Reload.NEXT_JOB,
        "What a failed unit does to later ones.",
        default=OnFailure.BLOCK,
    )
    consistency: Consistency = own(
        "targetConsistency",
        choice(Consistency),
        Reload.NEXT_JOB,
        "`prefix`: units are committed in log order, so that a reader of the target sees the source as it once was; "
        "`conflict`: only units that conflict are, and others in parallel.",
        default=Consistency.PREFIX,
    )
    commit: TargetCommit = own(
        "targetCommit",
        choice(TargetCommit),
        Reload.RESTART,
        "Several targets: `each`: each target commits its part of a unit by itself; `together`: a unit that one of "
        "them refuses is in none, but for a crash between two commits; PostgreSQL, MariaDB and SQLite; `atomic`: all "
        "of them commit or none does, by prepared transactions; PostgreSQL and MariaDB (docs/targets.md).",
        default=TargetCommit.EACH,
    )
    triggers: TargetTriggers = own(
        "targetTriggers",
        choice(TargetTriggers),
        Reload.NEXT_JOB,
        "Triggers and rules of the target that fire when units are applied. `refuse`: the apply job ends with a list "
        "of them; `fire`: they fire; `off`: the apply job switches them off in the target, until "
        "`kainite apply --triggers-on` (docs/operations.md).",
        default=TargetTriggers.REFUSE,
    )
    trigger_tables: tuple[str, ...] = own(
        "targetTriggerTables",
        names(),
        Reload.NEXT_JOB,
        "Tables whose triggers and rules are meant: they fire, whatever `targetTriggers` says.",
        default=(),
        otherwise="none",
    )
    shared_tables: tuple[str, ...] = own(
        "targetSharedTables",
        names(),
        Reload.NEXT_JOB,
        "Tables of the target that other logs write too, each its own rows: nothing orders units of two logs "
        "(docs/scale.md). Every other table has one log.",
        default=(),
        otherwise="none",
    )
    held_bytes: int = own(
        "targetHeldBytes",
        whole(2**20, 2**50, "bytes"),
        Reload.NEXT_JOB,
        "A replica's table whose own load failed or was left is given up when more bytes of its changes are held: they "
        "are dropped, and only `kainite replicate reload` mends it (docs/replicate.md).",
        default=4 * 2**30,
    )
    verify_every: float = own(
        "verifyEverySeconds",
        seconds(60, 31_536_000),
        Reload.RESTART,
        "How often the duty `verify` (`kainite verify --every`) compares a replica with its source.",
        default=86_400.0,
    )
    instances: int = own(
        "applyInstances", whole(0, 10_000), Reload.NEXT_JOB, "Job instances; 0 for Spark's parallelism.", default=0
    )
    # The most units in one micro-batch: small ones take a second or so. More would delay their outcomes, and the end of
    # a job that is to stop.
    max_units: int = 4_000
    # The most units in one target transaction: so many share the costs of a transaction (the commit, the ledger, the
    # fence) that these hardly count.
    group_units: int = 500
    # The most bytes of deltas in one target transaction; a larger unit goes alone. PostgreSQL takes no message of a
    # gigabyte, and needs up to ten times these bytes for each job instance while it reads them.
    group_bytes: int = 16 * 2**20
    unit_bytes: int = own(
        "applyUnitBytes",
        whole(2**20, 2**30, "bytes"),
        Reload.NEXT_JOB,
        "A unit whose deltas take more bytes as JSON fails: a task holds a unit in memory, at about five times its "
        "bytes, and a PostgreSQL target needs up to ten times. `kainite uow retry` applies it under a larger value.",
        default=256 * 2**20,
    )
    fold: bool = own(
        "applyFold",
        flag(),
        Reload.NEXT_JOB,
        "Whether changes of one row in a target transaction are made as one; `false` for a target whose changes are "
        "read one by one, out of its own log.",
        default=True,
    )
    # How often an idle job looks for units; while none come it looks less often. A job that follows the owner's feed
    # hears of them anyway.
    idle: float = 0.2
    # From the beginning of a small micro-batch to that of the next one, since a micro-batch costs some hundredths of a
    # second of processor time however few units it has. The more units come the shorter it is
    # (kainite_spark.driver.pace).
    pace: float = 0.5
    loader_batching: Batching = own(
        "loaderBatching",
        choice(Batching),
        Reload.NEXT_JOB,
        "`target=exec:…`: one unit at a time, or batches that the loader or the apply job ends.",
        default=Batching.SINGLE,
    )
    loader_batch_size: int = own(
        "loaderBatchSize", whole(1, 100_000), Reload.NEXT_JOB, "Most units in a loader's batch.", default=100
    )
    loader_timeout: float = own(
        "loaderTimeoutMillis",
        millis(100, 86_400_000),
        Reload.NEXT_JOB,
        "A loader that was asked and is silent for so long is killed.",
        default=300.0,
    )
    master: str = own("applyMaster", text("a Spark master"), Reload.NEXT_JOB, "The Spark master.", default="local[*]")
    python: str | None = own(
        "applyPython",
        text("a path"),
        Reload.NEXT_JOB,
        "Python on the executors' machines, with `kainite[spark]` installed.",
        default=None,
        otherwise="`PYSPARK_PYTHON`, `spark.pyspark.python`; with a local master the driver's own",
    )
    aws_from: AwsFrom = own(
        "applyAwsFrom",
        choice(AwsFrom),
        Reload.NEXT_JOB,
        "`executor`: executors find AWS credentials where they run; `driver`: they get the driver's with each "
        "micro-batch.",
        default=AwsFrom.EXECUTOR,
    )
    stall: float = own(
        "applyStallMillis",
        millis(1_000, 86_400_000),
        Reload.NEXT_JOB,
        "A Spark job of which no task runs for so long ends the apply job; the first one has four times as long.",
        default=60.0,
    )
    job_limit: float = own(
        "applyJobLimitMillis",
        millis(1_000, 86_400_000),
        Reload.NEXT_JOB,
        "A Spark job that takes longer is cancelled, and its micro-batch tried again.",
        default=3_600.0,
    )
    lease: float = own(
        "applyLeaseMillis",
        millis(200, 3_600_000),
        Reload.NEXT_JOB,
        "An apply job that was silent for so long may be replaced.",
        default=10.0,
    )
    metrics_port: int | None = own(
        "applyMetricsPort",
        whole(0, 65_535),
        Reload.NEXT_JOB,
        "Port of the apply job for Prometheus (`/metrics`) and for health checks, on `metricsHost`; 0 takes any free "
        "one.",
        default=None,
        otherwise="none is opened",
    )
    # The most bytes of deltas that come with the feed, of a log batch and to the tasks of a micro-batch. Larger ones
    # are read by the tasks, side by side, while what comes with the feed passes through the one driver.
    feed_bytes: int = 4 * 2**20
