"""Safeguards that are switched off, and within how many seeds the simulation must notice.

A mutation names the safeguard's place and what stands there instead. The place is looked up when the mutation is
entered, so a safeguard that has moved is an error and not a mutation that does nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from simulation.scenario import scenario

Instead = Callable[[Any], Any]
"""Makes what stands in a safeguard's place, of what stands there now."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A safeguard that can be switched off.

    Attributes:
        name: of the safeguard.
        place: module and name, ``kainite.log.owner.mount:Mount.valid``.
        instead: makes what stands there instead.
        within: seeds within which a run must fail, of those in which the faults in ``needs`` can happen.
        needs: faults without which the safeguard has nothing to do.
    """

    name: str
    place: str
    instead: Instead
    within: int
    needs: tuple[str, ...] = ()

    def seeds(self) -> Iterator[int]:
        """Yields the seeds to try."""
        fitting = (seed for seed in itertools.count() if all(scenario(seed).rates.get(kind) for kind in self.needs))
        return itertools.islice(fitting, self.within)

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Switches the safeguard off while the context is entered."""
        module, _, path = self.place.partition(":")
        owner: Any = importlib.import_module(module)
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        with mock.patch.object(owner, name, self.instead(getattr(owner, name))):
            yield


def _answer(value: Any) -> Instead:
    """Returns a function that always gives the same answer."""
    return lambda _: lambda *args, **more: value


def _value(value: Any) -> Instead:
    return lambda _: value


def _no_fence(original: Any) -> Any:
    def steps(store: Any, partition: str, generation: int) -> Generator[str, None, int]:
        yield "find tail"
        tail = store.read_tail(partition)
        return tail.next_id if tail else 0

    return steps


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
    from kainite.worker.call_rules import WriteCheckpoint

    return lambda self, checkpoint: (WriteCheckpoint(checkpoint),)


def _no_policy(original: Any) -> Any:
    from kainite.settings import OnFailure

    def init(self: Any, policy: Any = None) -> None:
        original(self, OnFailure.SKIP)

    return init


def _other_nonce(original: Any) -> Any:
    """Gives each attempt a nonce of its own."""
    attempts = itertools.count()
    return lambda self, partition, batch, nonce: original(self, partition, batch, f"{nonce} {next(attempts)}")


async def _folded_position(self: Any, shard_id: str) -> Any:
    return self.state.positions.get(shard_id)


def _any_lease(original: Any) -> Any:
    """Writes to a lease whoever holds it."""

    def update(self: Any, key: str, update: str, condition: str, values: Any, names: Any = None) -> Any:
        return original(self, key, update, "attribute_exists(leaseKey)", values, names)

    return update


def _as_they_come(news: Any) -> Any:
    return lambda deltas: deltas


ANY_FENCE = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = %s AND generation >= 0 * %s AND micro_batch >= 0 * %s - 1"""

ANY_GENERATION = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = %s AND generation >= 0 * %s AND micro_batch = %s"""

ANY_MICRO_BATCH = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = %s AND generation = %s AND micro_batch >= 0 * %s - 1"""

SIGNED = "kainite.uow.touched.schema:TouchedSchema.plan"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation("fence of a mount", "kainite.log.owner.mount:_fence_steps", _no_fence, 3_000),
    Mutation("nonce of a batch", "kainite.log.store.memory:MemoryStore.put_batch", _other_nonce, 500),
    Mutation("unit recognised by name", "kainite.log.state.recent_units:RecentUnits.__contains__", _answer(False), 500),
    Mutation("turn of a numbered unit", "kainite.log.owner.collect:_may_go", _answer(True), 500),
    Mutation("entries that are needed", "kainite.log.state.folded:FoldedLog.oldest_needed",
             lambda _: lambda self: self.next_id, 2_000),
    Mutation("append before checkpoint", "kainite.worker.call_rules:CallRules._granted", _write_at_once, 500),
    Mutation("parents before children", "kainite.leases.taking.taker:may_start", _answer(True), 2_000),
    Mutation("signature of rows", SIGNED, _unsigned(rows=()), 500),
    Mutation("signature of unique keys", SIGNED, _unsigned(unique=()), 500),
    Mutation("signature of parents", SIGNED, _unsigned(named=(), parents=()), 2_000),
    Mutation("cascades", "kainite.uow.touched.cascade:Cascades._reach", _answer(None), 2_000),
    Mutation("conflicting units on one instance", "kainite_spark.plan.schedule:components",
             lambda _: lambda units: [[unit] for unit in units], 500),
    Mutation("layers", "kainite_spark.targets.statements.planner:conflict_layers",
             lambda _: lambda units: [units], 500),
    Mutation("steps", "kainite_spark.targets.statements.steps:Stepper.steps",
             lambda _: lambda self, deltas: [list(deltas)], 500),
    Mutation("source's order", "kainite_spark.executor.assemble:in_source_order", _as_they_come, 500),
    Mutation("blocked behind failed", "kainite_spark.plan.backlog:Backlog.__init__", _no_policy, 500),
    Mutation("fence of the target", "kainite_spark.targets.sql.ledger:READ_FENCE", _value(ANY_FENCE), 2_000,
             ("late", "job_lost")),
    Mutation("acknowledgement", "kainite_spark.targets.sqlite.target:SqliteSession._acknowledge",
             _answer(None), 500, ("job_lost", "unanswered")),
    Mutation("acknowledgements are asked for", "kainite_spark.targets.sqlite.target:SqliteSession.applied",
             _answer(frozenset()), 500, ("unanswered",)),
    Mutation("outcomes are durable", "kainite_spark.driver.outcomes:Outcomes.append", _answer(None), 500,
             ("kill_after",)),
    Mutation("outcomes read back", "kainite_spark.driver.outcomes:Outcomes.read_from", _answer(()), 2_000),
)  # fmt: skip

RARE: tuple[Mutation, ...] = (
    Mutation("lease valid after the reply", "kainite.log.owner.mount:Mount.valid", _answer(True), 20_000),
    Mutation("durable position", "kainite.log.owner.owner:LogOwner.position", _value(_folded_position), 20_000),
    Mutation("lease's counter", "kainite.leases.table.calls:TableCalls.update", _any_lease, 5_000),
    Mutation("generation in the fence", "kainite_spark.targets.sql.ledger:READ_FENCE", _value(ANY_GENERATION), 5_000),
    Mutation("micro-batch in the fence", "kainite_spark.targets.sql.ledger:READ_FENCE", _value(ANY_MICRO_BATCH), 5_000),
    Mutation("fence closed before trimming", "kainite_spark.targets.sql.ledger:CLOSE_MICRO_BATCH",
             _value("UPDATE kainite_fence SET generation = generation"
                    " WHERE %s IS NOT NULL AND log_partition = %s AND generation >= 0 * %s AND 0 * %s = 0"), 5_000),
    Mutation("acknowledgements below the oldest unit", "kainite_spark.targets.sql.ledger:TRIM",
             _value("DELETE FROM kainite_applied WHERE log_partition = %s AND transaction_id < %s + 1000000"), 2_000),
)  # fmt: skip
"""Safeguards whose absence has not been noticed yet: several others stand before them, or the schedule is rare.

``--mutations NAME`` tries one of them; a search that finds one moves it into :data:`MUTATIONS`.
"""
