"""The plan of a run: the history, the settings of all parts, and the faults with their times. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from simulation.extras import Extra
from simulation.odd import Odd, OddUnits
from simulation.schema import Change
from simulation.source import Style

OWNER: Final = -1
"""In the place of a part's number: the process that owns the log then."""

LINK_KINDS: Final = ("link_slow", "link_cut", "link_answer", "connect_lost")
"""Faults of links between processes: :mod:`simulation.network`."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happens to a part at a moment: ``what`` is kill, freeze, stop, skew, split, merge,
    restart child, move lease."""

    at: float
    what: str
    whom: int
    amount: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a seed decides, but for the fate of single effects.

    Attributes:
        until: faults end after so many seconds.
        transactions: of the source's history.
        style: how the source tells of them.
        spread: records go to any shard (``uowOrder = dense``); otherwise all have one partition key.
        shards, daemons, drivers: how many at the start.
        hosts: over how many hosts daemons and drivers are spread.
        one_worker: both daemons have one worker id.
        rates: of the faults at effects.
        outages: begin, end and service.
        incidents: what befalls parts.
        uow_timeout: seconds.
        refused: transactions that the target refuses at first, by number.
        healed: seconds after which it takes them, and an operator asks for another try.
        snapshot_entries, max_units, group_units, instances: settings.
        more: what came later; see :class:`More`.
    """

    seed: int
    until: float
    transactions: int
    style: Style
    spread: bool
    shards: int
    daemons: int
    drivers: int
    hosts: int
    one_worker: bool
    rates: dict[str, float]
    outages: tuple[tuple[float, float, str], ...]
    incidents: tuple[Incident, ...]
    uow_timeout: float
    refused: tuple[int, ...]
    healed: float
    snapshot_entries: int
    max_units: int
    group_units: int
    instances: int
    more: More = field(default_factory=lambda: More())

    @property
    def may_fail(self) -> bool:
        """Returns whether units may fail at times, though nothing is wrong with Kainite.

        A source that does not tell all that it changes is a reason, too: what comes too early is refused.
        """
        more = self.more
        told = self.style.befores and self.style.deletes_told and self.style.cascades_told
        disturbed = bool(self.rates or self.outages)
        changes = any(change.what == "key" or change.at > 0.0 or disturbed for change in more.changes)
        hopeless = more.poison or OddUnits(more.odd).hopeless()
        return bool(self.refused or hopeless or more.pauses or more.trims) or changes or not told


@dataclass(frozen=True, slots=True)
class More:
    """Settings and events that seeds have beside the first ones.

    Attributes:
        prefix: ``targetConsistency = prefix``.
        fold: ``applyFold``.
        stop: ``onUowFailure = stop``.
        locks: begin, end and number of a transaction of which somebody has locked a row.
        most_units: the target's limit of units in one transaction; 0 for none.
        changes: of the tables.
        poison: transactions that the target refuses for good, with the number of the correction, or None.
        pauses: of the source in the middle of its history: after which part of it, and seconds.
        far_copies: how often, in a batch of messages, the source begins from the very beginning again.
        part_bytes: size of a snapshot's parts.
        backlog_units: the bound of the backlog; 0 for the default.
        tidy_every: micro-batches after which the apply job trims.
        pids: how many process ids a host has before it gives one again.
        grace: ``uowGraceMillis``, seconds, with ``uowEnd = watermark`` and ``uowOrder = time``; 0 for markers.
        streams: how many streams there are, each with ``shards`` shards of the same ids.
        plain: how many streams there are beside these that carry no units of work.
        changed: when each daemon's settings file is changed to name all streams; before, it names the first one alone.
            Empty where all files name all streams.
        start: where the shards are read from at first: LATEST, or AT_TIMESTAMP; empty for TRIM_HORIZON.
        loopback: daemons listen on their own host's loopback interface, and are not reached from other hosts.
        feed_credit: bytes that the log's owner may send ahead of the apply job; 0: the job follows no feed.
        feed_bytes: ``feed_bytes`` of the apply job's settings.
        feed_queue: bytes that wait for a follower at most.
        emit_bytes: most bytes that children may have emitted in calls.
        window: so many names of dispatched units are remembered.
        extras: what a source without ends says late.
        odd: what is no unit of work, or contradicts others.
        aggregated: the share of records that the source puts as KPL aggregates.
        iterator_life: seconds for which a shard iterator may be used.
        arrival_skew: how far the clocks of shards may be apart, seconds.
        entry_cost: processor time to fold an entry of the log, and to judge a line that a child emits, seconds.
        trims: when what records vanish from the stream that nobody may have read: time, and their age, seconds.
        chunk_bytes: the log's store is that of DynamoDB, with items of so many bytes; 0: a store in memory.
        stripes: over how many keys the log is spread by daemons that start after ``striped_from`` seconds.
        set_back: when the target goes back to an earlier state of its own; None for never.
        programs: programs on the log, in place of all else; None for daemons and apply jobs.
        two_targets: transactions write to a second target too, which has apply jobs of its own.
        stale: when somebody's request to pause is met that has waited for too long: time, and its age, seconds.
        atomic: the two targets commit together: one apply job serves both.
        loads: commands that load a target, in place of all else: ``load``, ``anew``, ``reload TABLE``, ``add TABLE``.
        repairs: when rows of the target are repaired, seconds.
        extraction: a source that is extracted, in place of all else; None for none.
        two_logs: two logs write into the target: until when the second one's settings file names the first one's tables
            too, seconds; None for one log.
    """

    prefix: bool = False
    fold: bool = True
    stop: bool = False
    locks: tuple[tuple[float, float, int], ...] = ()
    most_units: int = 0
    changes: tuple[Change, ...] = ()
    poison: tuple[tuple[int, int | None], ...] = ()
    pauses: tuple[tuple[float, float], ...] = ()
    far_copies: float = 0.0
    part_bytes: int = 1 << 20
    backlog_units: int = 0
    tidy_every: int = 50
    pids: int = 1_000_000
    streams: int = 1
    plain: int = 0
    changed: tuple[float, ...] = ()
    start: str = ""
    loopback: bool = False
    feed_credit: int = 0
    feed_bytes: int = 0
    feed_queue: int = 1 << 22
    grace: float = 0.0
    emit_bytes: int = 256 * 2**20
    window: int = 64
    extras: tuple[Extra, ...] = ()
    odd: tuple[Odd, ...] = ()
    aggregated: float = 0.0
    iterator_life: float = 300.0
    arrival_skew: float = 0.0
    trims: tuple[tuple[float, float], ...] = ()
    entry_cost: float = 0.0
    chunk_bytes: int = 0
    stripes: int = 1
    striped_from: float = 0.0
    set_back: SetBack | None = None
    programs: Programs | None = None
    two_targets: bool = False
    stale: tuple[tuple[float, float], ...] = ()
    atomic: bool = False
    loads: tuple[str, ...] = ()
    repairs: tuple[float, ...] = ()
    extraction: Extraction | None = None
    two_logs: float | None = None


@dataclass(frozen=True, slots=True)
class SetBack:
    """The target goes back, ``at`` seconds, to its state ``age`` seconds before; ``adopted``: a person takes it so."""

    at: float
    age: float
    adopted: bool


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs that append transactions to an applications' partition.

    Attributes:
        count: of the programs.
        intents: transactions that each means to append.
        workers: how many it submits at a time.
        validate: all transactions take one lock; otherwise each takes some of ``locks``.
        loose: share of the transactions without any lock.
        shared: all programs have one state.
        batch_bytes: most bytes of a batch.
    """

    count: int
    intents: int
    workers: int
    validate: bool
    locks: int
    loose: float
    shared: bool
    batch_bytes: int


@dataclass(frozen=True, slots=True)
class Extraction:
    """A source whose commits ``kainite extract`` puts on the stream.

    Attributes:
        most_rows: changes of the largest transactions.
        heartbeat: seconds between two heartbeats; None for none.
        sender_timeout: seconds of a reader's silence after which the source cuts it.
        pipe_bytes: what the pipe of the extractor's answers holds.
        hold_bytes, ahead_bytes, tries, by_record: settings.
        aggregate: most bytes of an aggregate; 0 for none.
        rival: a second extraction that somebody starts again and again, with ``the same`` offset file or ``a copy``;
            empty for none.
    """

    most_rows: int
    heartbeat: float | None
    sender_timeout: float
    pipe_bytes: int
    hold_bytes: int
    ahead_bytes: int
    tries: int
    by_record: bool
    aggregate: int
    rival: str
