"""The sections of the settings, with their defaults.

Each part of Kainite takes only its own section. Times are seconds here and milliseconds in the file,
as KCL has them. The defaults below are the only ones; ``kainite run --check`` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kainite.base.markers import Batching, Markers
from kainite.settings.credentials import Provider


class InitialPosition(StrEnum):
    """Where a shard without a checkpoint is read from."""

    LATEST = "LATEST"
    TRIM_HORIZON = "TRIM_HORIZON"
    AT_TIMESTAMP = "AT_TIMESTAMP"


class UowOrder(StrEnum):
    """When a complete unit is released: at once, or after the unit numbered one less."""

    ARRIVAL = "arrival"
    DENSE = "dense"


class Isolation(StrEnum):
    """Whether units that conflict are applied in log order."""

    SERIALIZE = "serialize"
    RELAXED = "relaxed"


class OnFailure(StrEnum):
    """What a failed unit does to later ones with the same signatures."""

    BLOCK = "block"
    SKIP = "skip"
    STOP = "stop"


class Retrieval(StrEnum):
    """How records are fetched. DEFAULT is polling here, and fan-out in Java (``--check`` says so)."""

    DEFAULT = "DEFAULT"
    POLLING = "POLLING"
    FANOUT = "FANOUT"


class ChildProtocol(StrEnum):
    """How children speak: KCL's protocol of today, its first form (seed 001), or in markers (seed 000)."""

    JSON_LINES = "json-lines"
    JSON_LINES_V0 = "json-lines-v0"
    MARKERS = "markers"


class CheckpointAt(StrEnum):
    """When a checkpoint is taken for a child that cannot ask for one."""

    CALL = "call"
    ANSWER = "answer"
    INTERVAL = "interval"


class OnDeath(StrEnum):
    """What is done with the message, or the batch, on which a worker died.

    RETRY never leaves it out, SKIP does after the first death, ONCE after the second, TRIES after ``poisonBatchTries``.
    """

    RETRY = "retry"
    TRIES = "tries"
    ONCE = "once"
    SKIP = "skip"


class OnBadMessage(StrEnum):
    """What is done with a message that cannot be sent, or that the worker calls bad."""

    REPORT = "report"
    FAIL = "fail"


class MetricsLevel(StrEnum):
    """What is published to CloudWatch."""

    NONE = "NONE"
    SUMMARY = "SUMMARY"
    DETAILED = "DETAILED"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What one service's client has for itself. Without ``credentials`` it uses those of Kinesis."""

    region: str | None = None
    dualstack: bool = False
    fips: bool = False
    credentials: tuple[Provider, ...] = ()


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Which region, which endpoints where they are not AWS's own, time limits, and what each client has for itself."""

    region: str | None = None
    kinesis_endpoint: str | None = None
    dynamodb_endpoint: str | None = None
    cloudwatch_endpoint: str | None = None
    s3_endpoint: str | None = None
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    tries: int = 3
    kinesis: ClientSettings = field(default_factory=ClientSettings)
    dynamodb: ClientSettings = field(default_factory=ClientSettings)
    cloudwatch: ClientSettings = field(default_factory=ClientSettings)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What is read from the stream, and how often."""

    name: str
    arn: str | None = None
    initial_position: InitialPosition = InitialPosition.LATEST
    initial_timestamp: float | None = None
    max_records: int = 10_000
    idle_between_reads: float = 1.5
    call_with_empty_batches: bool = False
    parent_poll: float = 10.0
    shard_sync: float = 60.0
    prefetch_batches: int = 1
    prefetch_bytes: int = 8 * 1024 * 1024
    prefetch_records: int = 30_000
    reduced_tps_behind: float = 0.0
    ignore_unexpected_children: bool = False
    list_shards_backoff: float = 1.5
    list_shards_tries: int = 50
    skip_sync_if_leases: bool = False
    retrieval: Retrieval = Retrieval.DEFAULT
    consumer_arn: str | None = None
    consumer_name: str | None = None
    describe_stream_tries: int = 10
    describe_consumer_tries: int = 10
    register_consumer_tries: int = 10
    consumer_backoff: float = 1.0


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The lease table and this worker's part in it."""

    application: str
    table: str
    worker_id: str
    failover: float = 10.0
    max_leases: int | None = None
    cleanup_completed: bool = True
    assignment_interval: float | None = None
    steal_at_once: int = 1
    priority: bool = True
    handoff: bool = True
    handoff_timeout: float = 30.0
    init_backoff: float = 1.0
    deletion_protection: bool = False
    point_in_time_recovery: bool = False
    coordinator_table: str | None = None
    worker_metrics_table: str | None = None
    report_worker_metrics: bool = True
    report_interval: float = 30.0


@dataclass(frozen=True, slots=True)
class MarkersSettings:
    """How the ``markers`` dialect is spoken, and what a worker is told of it.

    Attributes:
        environment: names of variables, and templates of their values.
        arguments: templates of words that are added to the command.
    """

    eom: bytes = b"\n"
    eop: bytes = b"\0"
    eob: bytes = b"\x17"
    bnc: bytes = b"\x06"
    batching: Batching = Batching.SINGLE
    batch_size: int = 100
    environment: tuple[tuple[str, str], ...] = (
        ("KAINITE_EOM", "{eom}"),
        ("KAINITE_EOP", "{eop}"),
        ("KAINITE_EOB", "{eob}"),
        ("KAINITE_BNC", "{bnc}"),
        ("KAINITE_BATCHING", "{batching}"),
        ("KAINITE_BATCH_SIZE", "{batch_size}"),
    )
    arguments: tuple[str, ...] = ()
    checkpoint: CheckpointAt = CheckpointAt.CALL
    checkpoint_interval: float = 60.0
    on_death: OnDeath = OnDeath.RETRY
    on_bad_message: OnBadMessage = OnBadMessage.REPORT

    @property
    def markers(self) -> Markers:
        """The four of them."""
        return Markers(self.eom, self.eop, self.eob, self.bnc)


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """How a child process is started, waited for and ended."""

    command: tuple[str, ...]
    reply_timeout: float | None = None
    shutdown_grace: float = 10.0
    kill_after: float = 5.0
    restart_backoff: float = 0.5
    restart_backoff_max: float = 30.0
    poison_tries: int = 5
    protocol: ChildProtocol = ChildProtocol.JSON_LINES
    warn_after: float | None = None
    markers: MarkersSettings = field(default_factory=MarkersSettings)


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where the worker's figures go. ``level`` None: SUMMARY, or NONE where a double of Kinesis is read."""

    level: MetricsLevel | None = None
    buffer_time: float = 10.0
    queue_size: int = 10_000
    dimensions: tuple[str, ...] = ("ALL",)
    port: int | None = None
    host: str = "127.0.0.1"
    hung_after: float = 300.0


@dataclass(frozen=True, slots=True)
class S3Folder:
    """A place on S3: keys begin with ``prefix`` and a slash, or with nothing where it is empty."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The serialization log's table and its owner's habits. Without ``enabled`` this is a plain KCL worker."""

    table: str
    owner: str
    enabled: bool = False
    partition: str = "0"
    lease: float = 10.0
    heartbeat: float = 3.0
    put_interval: float = 0.02
    batch_bytes: int = 256 * 1024
    queue_bytes: int = 64 * 1024 * 1024
    poll: float = 0.25
    snapshot_entries: int = 20_000
    audit_trail: Path | S3Folder | None = None


@dataclass(frozen=True, slots=True)
class UowSettings:
    """How units of work are collected and ordered."""

    order: UowOrder = UowOrder.ARRIVAL
    isolation: Isolation = Isolation.SERIALIZE
    first_number: int = 1
    timeout: float = 600.0
    dedup_window: int = 100_000
    catalogue_file: Path | None = None
    precedence_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """The target and the apply job. ``target`` may hold a password: it is left out of ``repr``."""

    target: str | None = field(default=None, repr=False)
    schemas: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.BLOCK
    instances: int = 0
    max_units: int = 2_000
    group_units: int = 500
    idle: float = 0.2
    loader_batching: Batching = Batching.SINGLE
    loader_batch_size: int = 100
    loader_timeout: float = 300.0
    master: str = "local[*]"
    lease: float = 10.0


class ExtractMode(StrEnum):
    """How an extractor works: it writes and exits, or it is asked again and again."""

    PLAIN = "plain"
    CYCLIC = "cyclic"


class ExtractOffsets(StrEnum):
    """Where the offset of a cyclic extractor is kept: by the extractor, or in Kainite's offset file.

    KAINITE stores the offset that the extractor gives; TIME stores ranges of time that Kainite chooses.
    """

    EXTRACTOR = "extractor"
    KAINITE = "kainite"
    TIME = "time"


OLD_EXTRACT_OFFSETS: Mapping[str, ExtractOffsets] = {
    "worker": ExtractOffsets.EXTRACTOR,
    "child": ExtractOffsets.KAINITE,
}
"""Older spellings of the values of ``extractorOffsets``, which a settings file may still hold."""


class ExtractSpread(StrEnum):
    """Whether a unit of work goes to one shard, or its records over all of them."""

    UNIT = "unit"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """The extractor of ``kainite extract``. ``interval`` None: one run in plain mode, one second in cyclic mode."""

    command: tuple[str, ...] = ()
    mode: ExtractMode = ExtractMode.PLAIN
    offsets: ExtractOffsets = ExtractOffsets.EXTRACTOR
    offset_file: Path | None = None
    interval: float | None = None
    reply_timeout: float = 60.0
    tries: int = 10
    hold_bytes: int = 64 * 1024 * 1024
    spread: ExtractSpread = ExtractSpread.UNIT


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that neither KCL nor Kainite knows. Java ignores such keys, so they are no error."""

    key: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a file, the environment and the command line say, validated.

    Attributes:
        path: the file; None where all came from elsewhere.
        ignored: KCL's keys that are set and have no effect here.
        unknown: keys that nobody knows, with the nearest one that somebody does.
        warnings: what is allowed and may surprise, a line each.
        options: the command line's settings, for reading the file again.
    """

    path: Path | None
    aws: AwsSettings
    stream: StreamSettings
    leases: LeaseSettings
    child: ChildSettings
    log: LogSettings
    uow: UowSettings
    apply: ApplySettings
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    ignored: tuple[str, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()
    warnings: tuple[str, ...] = ()
    options: tuple[str, ...] = field(default=(), repr=False)
