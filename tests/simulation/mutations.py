"""Safeguards that are switched off, and within how many seeds the simulation must notice.

A mutation names the safeguard's place and what stands there instead. The place is looked up when the mutation is
entered, so a safeguard that has moved is an error and not a mutation that does nothing.

Safeguards that are no mutations, because no schedule can show them:

=============================================  =====================================================================
safeguard                                      why
=============================================  =====================================================================
an append that is recognised waits for the     a consumer asks for the shard's position first, which waits for it
one that it repeats
the snapshot before the last is kept           a reader that finds it gone reads the head again
a misfit's unsigned tables hold others back    units on a table that their own scheme has not are parted; a key of
                                               another type, where nothing else helps, is not simulated
an older connection of a program is cut, and   its appends are refused as those of one that has not mounted, too; a
the newest one counts                          mount of it that comes late costs a mount
limits of a batch's size                       a history of some dozens of units reaches none
breathers                                      what is computed between two of them takes too little virtual time
HEAD is looked at while a feed is followed     an owner that reaches followers and not the store finds out that it was
                                               overtaken when the faults end
a fork over the owner's own fence alone, and   a model is searched through: tests/kainite/store/test_striping.py
places by first ids
=============================================  =====================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from simulation.mutation import Instead, Mutation, answering, value
from simulation.mutations_atomic import OF_ATOMIC_COMMITS
from simulation.mutations_extract import OF_EXTRACTIONS
from simulation.mutations_items import ON_ITEMS
from simulation.mutations_leases import OF_LEASES
from simulation.mutations_loads import OF_LOADS
from simulation.mutations_odd import AGAINST_ODD_UNITS
from simulation.mutations_repairs import OF_REPAIRS
from simulation.mutations_stream import OF_THE_STREAM, RARELY_SEEN
from simulation.mutations_target import OF_THE_TARGET
from simulation.mutations_time import OF_LONG_WORK


def _without_one_shard(watermark: Any) -> float:
    """Returns the watermark of all shards but the one that is read least far."""
    told = sorted(watermark._of(shard) for shard in watermark._shards)  # noqa: SLF001
    return float(told[1]) if len(told) > 1 else float("-inf")


def _always_on_time(original: Any) -> Any:
    from kainite.log.collecting.watermark import Ended

    return lambda unit, time, state, rules: Ended(time)


def _at_latest(original: Any) -> Any:
    async def log_begun(self: Any, timestamp: float | None) -> None:
        return None

    return log_begun


def _no_fence(original: Any) -> Any:
    def steps(store: Any, partition: str, generation: int, stripes: int) -> Generator[str, None, int]:
        yield "find tail"
        tail = store.read_tail(partition)
        return tail.next_id if tail else 0

    return steps


def _tail_of_one(original: Any) -> Any:
    """Looks for the tail in the first stripe alone."""
    return lambda last: original(lambda stripe: None if stripe else last(stripe))


def _unsigned(**none: Any) -> Instead:
    """Gives a table the signatures that it had if it had no such keys; steps within a unit keep all."""
    from kainite.uow.touched.key import HASHED

    def instead(original: Any) -> Any:
        def plan(self: Any, table: str) -> Any:
            found = original(self, table)
            return replace(found, **none) if self.spelling is HASHED else found

        return plan

    return instead


def _write_at_once(original: Any) -> Any:
    """Writes a checkpoint without the append that must be durable before it; the append comes with the call's end."""
    from kainite.worker.call_rules import AppendCall

    def requested(self: Any, *arguments: Any) -> Any:
        decided = original(self, *arguments)
        return (
            tuple(step for step in decided if not isinstance(step, AppendCall))
            if isinstance(decided, tuple)
            else decided
        )

    return requested


def _no_policy(original: Any) -> Any:
    from kainite.settings import OnFailure

    def init(self: Any, units: Any, policy: Any) -> None:
        original(self, units, OnFailure.SKIP)

    return init


def _other_nonce(original: Any) -> Any:
    """Gives each attempt a nonce of its own."""
    attempts = itertools.count()
    return lambda self, partition, batch, nonce: original(self, partition, batch, f"{nonce} {next(attempts)}")


async def _folded_position(self: Any, shard_id: str) -> Any:
    return self._state.positions.get(shard_id)


def _all_new(original: Any) -> Any:
    from kainite.log.collecting.standing import News

    return lambda unit, fragment: News(fragment)


def _counted_always(original: Any) -> Any:
    def advance(self: Any) -> None:
        now = self._clock()
        self._counted += now - self._at
        self._at = now

    return advance


def _no_horizon(original: Any) -> Any:
    from math import inf

    return property(lambda self: inf)


def _done_when_taken(original: Any) -> Any:
    async def take(self: Any) -> Any:
        found = await original(self)
        self._done = self._taken
        return found

    return take


def _shallow_capture(original: Any) -> Any:
    """Leaves what the captured state refers to as it is: it goes on changing."""

    def capture(state: Any) -> Any:
        return replace(original(state), open=list(state.open.values()), units=list(state.units.values()))

    return capture


def _from_its_own_place(original: Any) -> Any:
    """Begins behind a snapshot's last entry, not where its state ends."""

    def start(store: Any, partition: str, head: Any) -> Any:
        state = original(store, partition, head)
        state.next_id = head.snapshot
        return state

    return start


def _each_in_any_lane(original: Any) -> Any:
    def plan(fence: Any, chosen: Any, instances: int, readers: int, max_direct: int = 4) -> Any:
        return original(fence, replace(chosen, serial=False, in_order=False), instances, readers, max_direct)

    return plan


def _acknowledgements_go_first(_: Any) -> Any:
    def tidy(self: Any) -> None:
        if self._untidy and self._follower.pause is None:
            self._outcomes.truncate(self._follower.through + 1)
            self._micro_batches.trim(min(self._follower.backlog.unresolved(), default=self._follower.next_id))
            self._untidy = 0

    return tidy


def _families_apart(original: Any) -> Any:
    def families(catalogue: Any) -> Any:
        apart = {name: replace(table, part_of=None) for name, table in catalogue.tables.items()}
        return original(replace(catalogue, tables=apart))

    return families


def _all_free(original: Any) -> Any:
    return lambda touched, overlaps: [True] * len(touched)


def _never_busy_in_front(original: Any) -> Any:
    return lambda self, tid, now: False


def _delayed_holds_nothing(original: Any) -> Any:
    def delay(self: Any, tid: int, now: float) -> None:
        original(self, tid, now)
        self._holders = type(self._holders)(self.schemes)

    return delay


def _not_read_again(original: Any) -> Any:
    async def settle(self: Any) -> None:
        return None

    return settle


def _any_lease(original: Any) -> Any:
    """Writes to a lease whoever holds it."""

    def update(self: Any, key: str, update: str, condition: str, values: Any, names: Any = None) -> Any:
        return original(self, key, update, "attribute_exists(leaseKey)", values, names)

    return update


def _told_before_it_is_durable(original: Any) -> Any:
    """Sends a batch to followers before it is put, and again when it is durable."""
    from kainite.log.format.entry import Batch

    async def put(self: Any, packed: Any) -> None:
        entries = tuple(entry for pending in packed for entry in pending.entries)
        generation = self._writer._mount.generation  # noqa: SLF001
        self._tell_followers(Batch(self.next_id, generation, 0, entries))
        await original(self, packed)

    return put


def _gaps_unnoticed(original: Any) -> Any:
    """Takes whatever came for what comes next."""
    from kainite.peers.feed.buffer import FeedStep

    def take(self: Any, next_id: int) -> Any:
        if not self.is_following:
            return original(self, next_id)
        found, self._batches = tuple(self._batches), type(self._batches)()
        self.freed += sum(fed.size for fed in found)
        return FeedStep(tuple(fed for fed in found if fed.batch.last_id >= next_id), None)

    return take


def _what_is_said_unheard(original: Any) -> Any:
    """Hears of the first word of an owner that it follows, not up to where everything was sent."""

    def said(self: Any, next_id: int) -> None:
        original(self, 0)

    return said


def _next_payload(original: Any) -> Any:
    """Gives tasks the deltas of the entry beside the one that they want."""

    def parts(units: Any, given: Any) -> Any:
        found = list(original(units, given))
        return [part._replace(data=other.data) for part, other in zip(found, found[1:] + found[:1], strict=True)]

    return parts


def _as_they_come(news: Any) -> Any:
    return lambda deltas: deltas


def _never_looks(original: Any) -> Any:
    """Stays with an owner to which there is a connection, whatever HEAD says."""
    from kainite.peers.sharing.membership import Look, MemberState

    def seen(self: Any, head: Any) -> Any:
        if self.state in (MemberState.CONNECTING, MemberState.FOLLOWING):
            return (Look(1.0),)
        return original(self, head)

    return seen


def _always_trusts(original: Any) -> Any:
    def refused(self: Any) -> Any:
        self._trusts = True
        return original(self)

    return refused


async def _nothing_given_back(self: Any) -> None:
    return None


def _no_time_under_way(original: Any) -> Any:
    from kainite.log.client import ReadingReport

    def report(self: Any, answer: Any) -> None:
        if self._asked.pop(answer.number, None) is not None and answer.shards:
            self._owner.report(ReadingReport(answer.shards, dict(answer.read)))

    return report


def _last_report(self: Any, awaited: bool = False) -> Any:
    return self._report and self._report[0]


def _nobody_overdrawn(original: Any) -> Any:
    def admit(self: Any, share: Any, size: int) -> bool:
        return self.held + size <= self._limit and bool(original(self, share, size))

    return admit


async def _entry_alone(self: Any, owner: Any, move: Any) -> None:
    from kainite.owner.upkeep import _control

    await _control(owner, move.meta, b"")


def _told_while_it_is_put(original: Any) -> Any:
    """Takes a batch for durable before it is put."""
    from kainite.owner.append import take_steps_async

    async def write(self: Any) -> None:
        while True:
            await self._queued.wait()
            batch = self._pack()
            self._settle(batch)
            await take_steps_async(self._writer.append_steps(batch))

    return write


def _no_locks_at_first(original: Any) -> Any:
    from kainite.waltz.locks import Locks

    return lambda store, mounted, count: Locks(-1)


async def _flushed_at_once(self: Any) -> int:
    mark: int = self.mark
    return mark


async def _refused_at_once(self: Any, peer: Any, partition: Any, failure: Any) -> None:
    await peer.send(failure)


async def _not_waited_for(work: Any) -> None:
    await work


ANY_FENCE = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = ? AND generation >= 0 * ? AND micro_batch >= 0 * ? - 1"""

ANY_GENERATION = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = ? AND generation >= 0 * ? AND micro_batch = ?"""

ANY_MICRO_BATCH = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = ? AND generation = ? AND micro_batch >= 0 * ? - 1"""

APPLICATIONS = "kainite.waltz"
SIGNED = "kainite.uow.touched.schema:TouchedSchema.plan"

MUTATIONS: tuple[Mutation, ...] = (
    # The log's owner.
    Mutation("fence of a mount", "kainite.owner.mount:_fence_steps", _no_fence, 500,
             aim="owner frozen before a put"),
    Mutation("lease valid after the reply", "kainite.owner.mount:Mount.valid", answering(True), 40,
             aim="owner's put on its way"),
    Mutation("no mount while an owner is alive", "kainite.owner.mount:_is_free", answering(True), 200,
             aim="one worker id twice"),
    Mutation("proof that a process is gone", "kainite.base.process_identity:ProcessIdentity.is_gone",
             answering(True), 200,
             aim="one worker id twice"),
    Mutation("every shard counts for the watermark", "kainite.log.collecting.watermark:Watermark.until_ms",
             value(_without_one_shard), 50, aim="watermark"),
    Mutation("grace", "kainite.log.collecting.watermark:_due_ms", answering(0.0), 20, aim="watermark"),
    Mutation("what comes late is a unit", "kainite.log.collecting.collect:straggler", answering(None), 20,
             aim="late records"),
    Mutation("what is out of the order of times fails", "kainite.log.collecting.watermark:_ended_at", _always_on_time,
             40, aim="late records"),
    Mutation("tail of all stripes", "simulation.log_store:tail_of", _tail_of_one, 200, aim="log in stripes"),
    Mutation("nonce of a batch", "kainite.store.memory:MemoryStore.put_batch", _other_nonce, 500),
    Mutation("durable position", "kainite.owner.shard_appends:ShardAppends.position", value(_folded_position), 500,
             aim="lease lapses during a put"),
    Mutation("bound of the backlog", "kainite.owner.room:is_full", answering(False), 200, aim="target away"),
    Mutation("a request that waited for too long", "kainite.owner.answering:has_expired", answering(False), 20,
             aim="stale requests"),
    Mutation("append before checkpoint", "kainite.worker.call_rules:CallRules.requested", _write_at_once, 500),
    Mutation("parents before children", "kainite.leases.taking.taker:may_start", answering(True), 2_000),
    Mutation("lease's counter", "kainite.leases.table.calls:TableCalls.update", _any_lease, 40,
             aim="owner frozen before a put"),
    # The feed of the log.
    Mutation("fed when it is durable", "kainite.owner.durable_writing:DurableWriting._put",
             _told_before_it_is_durable, 500, aim="lease lapses during a put"),
    Mutation("gaps in the feed", "kainite.peers.feed.buffer:FeedBuffer.take", _gaps_unnoticed, 500),
    Mutation("what was sent is said", "kainite.peers.feed.buffer:FeedBuffer.said_up_to", _what_is_said_unheard,
             500),
    Mutation("deltas of the entry", "kainite_spark.executor.tasks:unpacked", _next_payload, 500),
    # What the log holds.
    Mutation("unit recognised by name", "kainite.log.state.recent_units:RecentUnits.__contains__",
             answering(False), 500),
    Mutation("delta recognised", "kainite.log.collecting.collect:news_of", _all_new, 500, aim="copies"),
    Mutation("turn of a numbered unit", "kainite.log.collecting.collect:may_go", answering(True), 500),
    Mutation("turn of a unit that comes whole", "kainite.log.collecting.whole_units:_has_its_turn", answering(True),
             500),
    Mutation("late parts of a failed unit", "kainite.log.collecting.collect:_collect_late", answering(None), 500,
             aim="source pauses"),
    Mutation("time counts near the tips alone", "kainite.log.collecting.waiting:Waiting._advance", _counted_always, 500,
             aim="shard unread"),
    Mutation("records are in the log", "kainite.log.collecting.waiting:Waiting._horizon", _no_horizon, 500,
             aim="shard unread"),
    Mutation("batch in the child's hands", "kainite.kinesis.read.prefetch:Prefetch.take", _done_when_taken, 500,
             aim="shard unread"),
    Mutation("obstacle to a retry", "kainite.log.state.unit_state:UnitState.obstacle",
             value(property(lambda self: None)), 500,
             aim="source pauses"),
    Mutation("kept unit judged anew", "kainite.owner.answering:is_kept", answering(False), 500, aim="source pauses"),
    Mutation("entries that are needed", "kainite.log.state.snapshot:needed_by",
             lambda _: lambda document: document["next_id"], 500, aim="target away"),
    Mutation("entries among a snapshot's parts", "kainite.log.state.loading:_start", _from_its_own_place, 500,
             aim="snapshots in parts"),
    Mutation("number of a unit whose name has left", "kainite.log.state.recent_units:RecentUnits.had",
             answering(False), 100, aim="short memory"),
    Mutation("a copy of a numbered unit is taken out", "kainite.log.collecting.collect:_drop_copy", answering(None),
             100, aim="short memory"),
    Mutation("names are in their item first", "kainite.owner.upkeep:LogUpkeep._move", value(_entry_alone), 100,
             aim="short memory"),
    # Several daemons.
    Mutation("HEAD is looked at behind an owner", "kainite.peers.sharing.membership:Member._seen",
             _never_looks, 100, aim="no database"),
    Mutation("a refusal is believed once", "kainite.peers.sharing.membership:Member._refused",
             _always_trusts, 100, aim="refused for good"),
    Mutation("shards are given back", "kainite.worker.consumers:Consumers.give_back", value(_nothing_given_back), 100,
             aim="cut off for good"),
    Mutation("who is cut off takes no shard", "kainite.peers.sharing.shared_log:SharedLog.is_cut_off",
             value(property(lambda self: False)), 100, aim="cut off for good"),
    Mutation("one shard is overdrawn", "kainite.worker.emit_budget:EmitBudget._admit", _nobody_overdrawn, 100,
             aim="small budget"),
    # Programs on the log.
    Mutation("the log's beginning is noted", "kainite.owner.shard_appends:begin", answering([]), 20,
             aim="begins at latest"),
    Mutation("the log's beginning in LATEST's place", "kainite.worker.shard_call:ShardCalls.log_begun", _at_latest, 20,
             aim="begins at latest"),
    Mutation("locks of an append", f"{APPLICATIONS}.locks:Locks.latest", answering(-1), 20, aim="programs"),
    Mutation("read locks and append locks", f"{APPLICATIONS}.partition:_unsigned",
             lambda original: lambda *locks: original(locks[0]), 100, aim="programs"),
    Mutation("locks as of the tail", f"{APPLICATIONS}.partition:_read_locks", _no_locks_at_first, 200, aim="programs"),
    Mutation("a program's own append is recognised", f"{APPLICATIONS}.monitor:Monitor.fed", answering(None), 20,
             aim="programs"),
    Mutation("an append is durable before it is told", f"{APPLICATIONS}.partition:ApplicationPartition._write",
             _told_while_it_is_put, 100, aim="programs"),
    Mutation("a lock failure names what is durable", f"{APPLICATIONS}.service:Applications._refuse",
             value(_refused_at_once), 200, aim="programs"),
    Mutation("a mount waits for what is under way", f"{APPLICATIONS}.partition:ApplicationPartition.flush",
             value(_flushed_at_once), 200, aim="programs"),
    Mutation("fence against a former owner of a partition", "kainite.owner.mount:_fence_steps", _no_fence, 500,
             aim="programs"),
    Mutation("an application's step is waited for", f"{APPLICATIONS}.client:_whole", value(_not_waited_for), 200,
             aim="programs"),
    Mutation("a mount shows appends that the state has", f"{APPLICATIONS}.client:ApplicationLog._fed_behind",
             lambda original: lambda self, mark: mark, 500, aim="programs"),
    # Conflicts.
    Mutation("signature of rows", SIGNED, _unsigned(rows=()), 500, aim="one micro-batch"),
    Mutation("signature of unique keys", SIGNED, _unsigned(unique=()), 500),
    Mutation("signature of parents", SIGNED, _unsigned(named=(), parents=()), 500, aim="one micro-batch"),
    Mutation("cascades", "kainite.uow.touched.schema:Cascades", lambda original: lambda _: original(()), 500,
             aim="child leaves its parent"),
    Mutation("cascade read", "kainite.uow.touched.plan:Cascade.read_old", answering(None), 500,
             aim="child leaves its parent"),
    Mutation("cascade written", "kainite.uow.touched.plan:Cascade.write_old", answering(None), 100,
             aim="child leaves its parent"),
    Mutation("partitions of one table", "kainite.uow.touched.schema:families", _families_apart, 500,
             aim="one micro-batch"),
    Mutation("conflicting units on one instance", "kainite_spark.plan.schedule:components",
             lambda _: lambda units: [[unit] for unit in units], 500, aim="one micro-batch"),
    Mutation("layers", "kainite_spark.targets.statements.planner:conflict_layers",
             lambda _: lambda units, most=None: [units], 500, aim="one micro-batch"),
    Mutation("a fold keeps the first change's columns", "kainite_spark.targets.statements.net_effect:_merged",
             lambda _: lambda columns, later: dict(later), 500, aim="one micro-batch"),
    Mutation("what ends a fold", "kainite_spark.targets.statements.net_effect:_Fold._close", answering(None), 500,
             aim="one micro-batch"),
    Mutation("steps", "kainite_spark.targets.statements.steps:Stepper.steps",
             lambda _: lambda self, deltas: [list(deltas)], 500, aim="one micro-batch"),
    Mutation("order of a unit's deltas", "kainite_spark.targets.statements.steps:_Order.step", answering(0), 500,
             aim="one micro-batch"),
    Mutation("deletes that stay", "kainite_spark.targets.statements.steps:_free", _all_free, 500,
             aim="one micro-batch"),
    Mutation("source's order", "kainite_spark.executor.assemble:in_source_order", _as_they_come, 500),
    # Catalogues.
    Mutation("one scheme in a micro-batch", "kainite_spark.plan.waiting_units:_comparable", answering(True), 1_000,
             aim="new key"),
    Mutation("catalogue read by the daemon", "kainite.worker.units_of_work:UnitsOfWork.settle", _not_read_again, 500,
             aim="new table"),
    Mutation("catalogue read by the apply job", "kainite_spark.driver.micro_batches:MicroBatches.read_catalogue",
             answering(None), 500,
             aim="new table"),
    # The apply job.
    Mutation("blocked behind failed", "kainite_spark.plan.stuck_units:StuckUnits.__init__", _no_policy, 500),
    Mutation("late parts hold back", "kainite_spark.plan.backlog:Backlog.widen", answering(None), 500,
             aim="source pauses"),
    Mutation("delayed holds back", "kainite_spark.plan.stuck_units:StuckUnits.delay", _delayed_holds_nothing, 500,
             aim="locked rows"),
    Mutation("examination", "kainite_spark.plan.backlog:Backlog._may_run", answering(True), 500, aim="locked rows"),
    Mutation("delay's end releases", "kainite_spark.plan.stuck_units:StuckUnits.end_delay", answering(None), 500,
             aim="locked rows"),
    Mutation("busy unit in front", "kainite_spark.plan.backlog:Backlog._all_wait_for", _never_busy_in_front, 500,
             aim="locked rows, prefix"),
    Mutation("one lane for prefix", "kainite_spark.driver.micro_batches:plan", _each_in_any_lane, 500),
    Mutation("nothing behind a busy unit", "kainite_spark.executor.group_commit:_GroupCommit._waits",
             answering(False), 500,
             aim="locked rows"),
    Mutation("stop behind a busy unit", "kainite_spark.executor.apply_options:ApplyOptions.suited",
             lambda original: lambda self, alone, in_order: original(self, alone=alone, in_order=False), 500,
             aim="locked rows, prefix"),
    Mutation("fence of the target", "kainite_spark.targets.sqlite.ledger:READ_FENCE", value(ANY_FENCE), 500,
             aim="frozen task"),
    Mutation("generation in the fence", "kainite_spark.targets.sqlite.ledger:READ_FENCE", value(ANY_GENERATION), 200,
             aim="frozen task"),
    Mutation("micro-batch in the fence", "kainite_spark.targets.sqlite.ledger:READ_FENCE", value(ANY_MICRO_BATCH), 500,
             aim="frozen task"),
    Mutation("fence closed before trimming", "kainite_spark.targets.sqlite.ledger:CLOSE_MICRO_BATCH",
             value("UPDATE kainite_fence SET generation = generation"
                    " WHERE ? IS NOT NULL AND log_partition = ? AND generation >= 0 * ? AND 0 * ? = 0"), 500,
             aim="frozen task"),
    Mutation("acknowledgements below the oldest unit", "kainite_spark.targets.sqlite.ledger:TRIM",
             value("DELETE FROM kainite_applied WHERE log_partition = ? AND transaction_id < ? + 1000000"), 2_000),
    Mutation("a discard asks the target", "kainite_spark.driver.micro_batches:MicroBatches.close",
             answering(frozenset()), 2_000),
    Mutation("what is discarded stays so", "kainite_spark.plan.backlog:Backlog.withdraw", answering(None), 2_000),
    Mutation("acknowledgement", "kainite_spark.targets.sqlite.target:SqliteSession._acknowledge",
             answering(None), 500, ("job_lost", "unanswered")),
    Mutation("acknowledgements are asked for", "kainite_spark.targets.sqlite.target:SqliteSession.applied",
             answering(frozenset()), 500, ("unanswered",)),
    Mutation("outcomes are durable", "kainite_spark.driver.outcomes:Outcomes.append", answering(None), 500,
             ("kill_after",)),
    Mutation("outcomes before their acknowledgements go", "kainite_spark.driver.outcome_writer:OutcomeWriter.tidy",
             _acknowledgements_go_first, 2_000),
    Mutation("outcomes read back", "kainite_spark.driver.outcomes:Outcomes.read_from", answering(()), 2_000),
    Mutation("units of two schemes apart", "kainite.uow.scheme:Comparisons.parted", answering(False), 200,
             aim="new key"),
    *ON_ITEMS,
    *AGAINST_ODD_UNITS,
    *OF_THE_STREAM,
    *OF_LEASES,
    *OF_THE_TARGET,
    *OF_LOADS,
    *OF_REPAIRS,
    *OF_ATOMIC_COMMITS,
    *OF_EXTRACTIONS,
)  # fmt: skip

RARE: tuple[Mutation, ...] = (
    *OF_LONG_WORK,
    *RARELY_SEEN,
    Mutation("a tip is told by a reply without records alone", "kainite.kinesis.read.prefetch:Prefetch.mark",
             lambda original: lambda self, until, at_tip=False: original(self, until, at_tip=True), 500,
             aim="watermark"),
    Mutation("time of a report under way", "kainite.peers.sharing.member_session:MemberSession._report",
             _no_time_under_way, 100, aim="slow reports"),
    Mutation("age of a report", "kainite.peers.sharing.latest_reading:LatestReading.now", value(_last_report), 100,
             aim="slow reports"),
    Mutation("snapshot's copy of the state", "kainite.log.state.snapshot:capture", _shallow_capture, 500,
             aim="snapshots in parts"),
    Mutation("untimely outcomes", "kainite_spark.executor.group_commit:_GroupCommit._forget_untimely",
             answering(None), 500,
             aim="locked rows"),
)  # fmt: skip
"""Safeguards whose absence some dozens of seeds with their aims have not shown yet.

``--mutations NAME`` tries one of them; a search that finds one moves it into :data:`MUTATIONS`. For those that several
daemons have, a named test stands in ``tests/simulation/tested.py``.
"""
