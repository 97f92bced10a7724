"""The section for the target and the apply job."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kainite.base.markers import Batching


class OnFailure(StrEnum):
    """The effect of a failed unit of work on later units with the same signatures."""

    BLOCK = "block"
    SKIP = "skip"
    STOP = "stop"


class Consistency(StrEnum):
    """The states that a reader of the target may see while units are applied."""

    PREFIX = "prefix"
    CONFLICT = "conflict"


class AwsFrom(StrEnum):
    """The AWS credentials of Spark's executors."""

    EXECUTOR = "executor"
    DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """The target and the apply job.

    Attributes:
        target: a database's address or a loader's command; it may hold a password, so ``repr`` leaves it out.
        schemas: the target's schemas; the first one is the default.
        on_failure: what a failed unit does to later ones.
        consistency: whether commits are in log order (``PREFIX``), or only those of units that conflict.
        instances: job instances; 0: Spark's parallelism.
        max_units: most units in one micro-batch.
        group_units: most units in one target transaction.
        group_bytes: most bytes of deltas in one target transaction; a larger unit goes alone.
        fold: whether changes of one row in a target transaction are made as one.
        idle: how often an idle apply job looks for units, seconds.
        pace: from the beginning of a small micro-batch to that of the next one, seconds; 0: at once.
        loader_batching: who ends a loader's batch.
        loader_batch_size: most units in a loader's batch.
        loader_eom, loader_eop, loader_eob, loader_bnc: a loader's markers; None: those of the children.
        loader_timeout: a loader that was asked and is silent for so long is killed, seconds.
        master: the Spark master.
        python: the executors' Python; None: Spark's choice.
        aws_from: whose AWS credentials the executors use.
        stall: a Spark job of which no task runs for so long ends the apply job, seconds.
        job_limit: a Spark job that takes longer is cancelled, seconds.
        lease: an apply job that was silent for so long may be replaced, seconds.
        metrics_port: the apply job's port for Prometheus and health checks; 0: any free one; None: none is opened.
        feed: whether the log's owner sends what becomes durable; else it is read from DynamoDB.
        feed_bytes: most bytes of deltas that come with the feed and are given to the tasks of one micro-batch.
    """

    target: str | None = field(default=None, repr=False)
    schemas: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.BLOCK
    consistency: Consistency = Consistency.PREFIX
    instances: int = 0
    max_units: int = 2_000
    group_units: int = 500
    group_bytes: int = 16 * 2**20
    fold: bool = True
    idle: float = 0.2
    pace: float = 0.5
    loader_batching: Batching = Batching.SINGLE
    loader_batch_size: int = 100
    loader_eom: bytes | None = None
    loader_eop: bytes | None = None
    loader_eob: bytes | None = None
    loader_bnc: bytes | None = None
    loader_timeout: float = 300.0
    master: str = "local[*]"
    python: str | None = None
    aws_from: AwsFrom = AwsFrom.EXECUTOR
    stall: float = 60.0
    job_limit: float = 3_600.0
    lease: float = 10.0
    metrics_port: int | None = None
    feed: bool = True
    feed_bytes: int = 4 * 2**20
