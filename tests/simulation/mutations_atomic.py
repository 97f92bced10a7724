"""Safeguards of transactions over two targets, and how soon the schedules notice."""

from __future__ import annotations

from typing import Any

from simulation.mutation import Mutation

ATOMIC = "atomic commit"
TARGETS = "kainite_spark.targets.atomic"


def _last_wins(original: Any) -> Any:
    """Puts a decision whatever stands there."""

    def decide(self: Any, partition: str, name: str, **decision: Any) -> bool:
        self.delete_decisions(partition, [name])
        answer: bool = original(self, partition, name, **decision)
        return answer

    return decide


def _only_read(_: Any) -> Any:
    """Rolls back what is not decided, and does not put that down."""
    return lambda self, name: bool(self.all().get(name))


def _always(answer: bool) -> Any:
    """Takes a transaction that is found as decided so, whatever the log says."""
    return lambda _: lambda self, name: answer


def _not_at_all(_: Any) -> Any:
    """Leaves what is prepared, and goes on to the fences."""
    return lambda self, log_partition, before=None: {}


def _by_the_micro_batch_alone(original: Any) -> Any:
    """Takes a transaction for an earlier one by its micro-batch's number, of whatever driver it is."""

    def resolve(self: Any, log_partition: str, before: tuple[int, int] | None = None) -> Any:
        def earlier(name: str) -> list[Any]:
            parts = self.prepared_in(name, log_partition)
            return [part for part in parts if before is None or part.name.micro_batch < before[1]]

        if any(map(earlier, self.targets)):
            return original(self, log_partition)
        return {}

    return resolve


def _one_by_one(_: Any) -> Any:
    """Commits in each target by itself."""

    def together(self: Any, fence: Any, parts: Any, prepare: Any) -> None:
        for target, own in parts.items():
            self._sessions[target].apply(fence, own)

    return together


def _before_all_are_prepared(original: Any) -> Any:
    """Decides before the last target has prepared."""

    def prepare(self: Any, log_partition: str, name: Any, parts: Any, how: Any) -> None:
        self._decisions.commit(name)
        original(self, log_partition, name, parts, how)

    return prepare


OF_ATOMIC_COMMITS: tuple[Mutation, ...] = (
    Mutation("targets that commit together prepare", f"{TARGETS}.session:AtomicSession._together", _one_by_one, 60,
             aim=ATOMIC),
    Mutation("the first decision stands", "kainite.store.memory:MemoryStore.decide", _last_wins, 200, aim=ATOMIC),
    Mutation("an abort is put down", f"{TARGETS}.decisions:Decisions.settle", _only_read, 200, aim=ATOMIC),
    Mutation("what is decided is committed", f"{TARGETS}.decisions:Decisions.settle", _always(False), 60, aim=ATOMIC),
    Mutation("without a decision it is rolled back", f"{TARGETS}.decisions:Decisions.settle", _always(True), 60,
             aim=ATOMIC),
    Mutation("resolved before the fence", f"{TARGETS}.target:AtomicTarget.resolve", _not_at_all, 60, aim=ATOMIC),
    Mutation("generation in a transaction's name", f"{TARGETS}.target:AtomicTarget.resolve",
             _by_the_micro_batch_alone, 60, aim=ATOMIC),
    Mutation("decided when all have prepared", f"{TARGETS}.session:AtomicSession._prepare", _before_all_are_prepared,
             60, aim=ATOMIC),
)  # fmt: skip
