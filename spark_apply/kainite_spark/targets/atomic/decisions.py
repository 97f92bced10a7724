"""The decisions on transactions of several targets, as they stand in the log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kainite.base.errors import LogError
from kainite.log.contract import LogStore, TransactionDecision
from kainite_spark.targets.preparing import TransactionName, name_from


class Decisions:
    """The register of one log partition. Sent to another process, it has no store, and must be replaced.

    Args:
        store: the log's store.
        partition: the log partition.
    """

    def __init__(self, store: LogStore | None = None, partition: str = "") -> None:
        self._given = store
        self._partition = partition

    def __reduce__(self) -> tuple[type[Decisions], tuple[()]]:
        return Decisions, ()

    @property
    def _store(self) -> LogStore:
        if self._given is None:
            raise LogError("a target with targetCommit=atomic was opened without the log that has its decisions")
        return self._given

    def commit(self, name: TransactionName, targets: Sequence[str] = ()) -> bool:
        """Decides that a transaction is committed, if nothing is decided; returns whether it is to be committed.

        Called by the task alone that has prepared it in all targets.

        Args:
            name: the transaction.
            targets: the targets.

        Raises:
            LogUnavailableError: the log's store did not answer; nobody knows whether the decision stands.
        """
        return self._store.decide(self._partition, str(name), committed=True, targets=targets)

    def settle(self, name: TransactionName) -> bool:
        """Decides that a transaction is rolled back, if nothing is decided; returns whether it is to be committed.

        Raises:
            LogUnavailableError: as :meth:`commit`.
        """
        return self._store.decide(self._partition, str(name), committed=False)

    def all(self) -> dict[TransactionName, bool]:
        """Returns the decisions by transaction: whether it is to be committed."""
        return {name: decision.committed for name, decision in self._read()}

    def elsewhere(self, targets: Collection[str]) -> dict[str, list[TransactionName]]:
        """Returns the transactions that are decided as committed, by such a target of theirs as is not among these."""
        found: dict[str, list[TransactionName]] = {}
        for name, decision in self._read():
            for target in decision.targets:
                if decision.committed and target not in targets:
                    found.setdefault(target, []).append(name)
        return found

    def forget(self, before: tuple[int, int], targets: Collection[str]) -> None:
        """Deletes the decisions on transactions of earlier fences, except on those with a part in other targets.

        Args:
            before: generation and micro-batch which the fences of all targets have reached.
            targets: the targets.
        """
        kept = {name for names in self.elsewhere(targets).values() for name in names}
        passed = [str(name) for name in self.all() if name.fence < before and name not in kept]
        self._store.delete_decisions(self._partition, passed)

    def _read(self) -> Iterator[tuple[TransactionName, TransactionDecision]]:
        return ((name_from(text), decision) for text, decision in self._store.read_decisions(self._partition))
