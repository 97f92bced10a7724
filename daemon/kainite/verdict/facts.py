"""What a verdict is judged from. Pure data; :mod:`kainite.verdict.reading` fills it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kainite.fleet.model.records import Picture
from kainite.leases.administration.report import LeaseRow
from kainite.log.state.summary import LogSummary

LATE_INTERVALS: Final = 1.5
"""After so many intervals without a comparison that passed, one is overdue."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What HEAD tells of the log.

    Attributes:
        partition: the log partition.
        owner: the owner's worker id, or the last owner's; None where the log was never owned.
        process: the owner's process, for people; empty where HEAD names none.
        released: whether the last owner has given the log back.
        alive: whether the owner sends heartbeats; None where nobody owns the log, or where it was not observed.
        waited: for how many seconds a heartbeat was awaited.
        summary: the log's figures at the last heartbeat; None where HEAD has none.
        error: why HEAD could not be read; empty where it was read.
    """

    partition: str
    owner: str | None = None
    process: str = ""
    released: bool = False
    alive: bool | None = None
    waited: float = 0.0
    summary: LogSummary | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """The lease table's rows; ``error`` says why there are none."""

    rows: tuple[LeaseRow, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """The fleet's table; ``error`` says why it was not read."""

    picture: Picture | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """What a daemon's ``/health`` answered.

    Attributes:
        address: where it was asked, as ``HOST:PORT``.
        answer: the answer; None where there was none.
        error: why there was none.
    """

    address: str
    answer: Mapping[str, Any] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What an extractor tells of its source. A field is None where nothing tells it.

    Attributes:
        seconds: how far the stream is behind the source's last commit, seconds.
        units: how many of the source's commits are not on the stream yet.
        newest: the age of the newest commit that the extractor gave, seconds. Where the source commits all the time, or
            the extractor writes a heartbeat there, that is how far the stream is behind; else it is the most that it
            can be.
        heard: seconds since the extractor last answered.
        problems: why a person should look at the extractor; empty where there is no reason.
    """

    seconds: float | None = None
    units: int | None = None
    newest: float | None = None
    heard: float | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaTableFacts:
    """A table of a replica.

    Attributes:
        name: its name, with its schema.
        state: its state, in a word or two.
        is_live: whether it is as of the same point as all other live tables.
        cause: why a step of its load was refused; empty where none was.
        ranges, ranges_done: how many ranges of rows its load has, and how many of them are copied.
        rows: how many rows were copied.
        held: of how many units deltas are held until it is live.
    """

    name: str
    state: str
    is_live: bool
    cause: str = ""
    ranges: int = 0
    ranges_done: int = 0
    rows: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """What the target tells of a replica: its load, and the latest comparison with its source.

    Attributes:
        error: why the target was not asked; empty where it was.
        load: the state of the load of all tables; empty where there is none.
        ranges_left: how many ranges of rows are left to copy.
        loading: tables that are not live, without those that failed or were given up.
        failed: tables that failed, with the cause.
        given_up: tables that must be loaded anew, with the cause.
        marks: of a live replica, by name, each table that is not live, with its state and its point.
        verdict: of the latest comparison; empty where there was none.
        summary: the latest comparison in one line.
        passed: whether it found each row equal, or known to differ.
        different: how many rows differ, and no unit explains it.
        age: seconds since it ended; None where there was none.
        good_age: seconds since the latest one ended that passed; None where there was none.
        every: how often it is made, seconds; None where it is not repeated.
        trouble: why the latest try came to no result; empty where it did.
        tables: all tables that were loaded, or are to be; those first that are not live.
    """

    error: str = ""
    load: str = ""
    ranges_left: int = 0
    loading: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    verdict: str = ""
    summary: str = ""
    passed: bool = True
    different: int = 0
    age: float | None = None
    good_age: float | None = None
    every: float | None = None
    trouble: str = ""
    given_up: tuple[tuple[str, str], ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[ReplicaTableFacts, ...] = ()

    @property
    def is_late(self) -> bool:
        """Tells whether a comparison that passed is overdue: half an interval more is allowed for its own time."""
        if self.every is None:
            return False
        return self.good_age is None or self.good_age > LATE_INTERVALS * self.every


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a verdict is judged from.

    Attributes:
        application: its name.
        file: the settings file, for the commands in remedies.
        now_ms: milliseconds since the epoch, by the clock of this host.
        log, leases, fleet: None where the settings use none.
        daemons: the daemons that were asked.
        source: what the extractor tells.
        replica: what the target of a replica tells; None where it is none, or was not asked.
        unit_timeout: seconds after which a unit that is not complete has waited long.
        streams: the streams that the settings name, as they spell them, where there are several.
        plain: those of them that carry no units of work, while others do.
        assigned: the digest of the targets in the settings; empty where there is one target.
        collects_into: the name of the log in the settings; empty where they have no units of work.
    """

    application: str
    file: str
    now_ms: int
    log: LogFacts | None = None
    leases: LeaseFacts | None = None
    fleet: FleetFacts | None = None
    daemons: tuple[DaemonFacts, ...] = ()
    source: SourceFacts = SourceFacts()
    replica: ReplicaFacts | None = None
    unit_timeout: float = 600.0
    streams: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    assigned: str = ""
    collects_into: str = ""
