"""The contract of a target that takes part in transactions over several targets, and the names of its parts of them.

Such a transaction is *prepared* in each of its targets, each under its target's fence: then its target takes it
whatever happens, but nobody sees it yet. Then it is finished in each. :mod:`kainite_spark.targets.atomic` says who
decides, and what a crash leaves.

A prepared transaction holds the row of the fence that it was prepared under, as an open transaction does: the fence
cannot advance before it is finished. So a target has no prepared transaction of an earlier fence than its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Protocol

from kainite_spark.targets.contract import Target, TargetSession, Unit
from kainite_spark.targets.fence import Fence

_GID: Final = re.compile(r"kainite:([0-9a-f]{16}):([A-Za-z0-9_-]{1,32}):([0-9]+)\.([0-9]+)\.([0-9a-z]+)")


class TransactionName(NamedTuple):
    """The name of a transaction in several targets; no two have one name.

    Attributes:
        generation, micro_batch: the fence under which it is prepared.
        nonce: a random text, which no other attempt has.
    """

    generation: int
    micro_batch: int
    nonce: str

    def __str__(self) -> str:
        return f"{self.generation}.{self.micro_batch}.{self.nonce}"

    @property
    def fence(self) -> tuple[int, int]:
        """Returns generation and micro-batch."""
        return self.generation, self.micro_batch


class PreparedPart(NamedTuple):
    """A transaction that is prepared in a target.

    Attributes:
        name: the transaction.
        gid: the identifier under which the target has it.
        age: seconds since it was prepared, by the target's clock.
    """

    name: TransactionName
    gid: str
    age: float


def gid_of(log_partition: str, target: str, name: TransactionName) -> str:
    """Returns the identifier of a transaction in one target; a server has one list for all its databases.

    Args:
        log_partition: the log's name in the target; its hash stands in the identifier, which has 200 bytes at most.
        target: the target's name.
        name: the transaction.
    """
    return f"{gid_prefix(log_partition, target)}{name}"


def gid_prefix(log_partition: str, target: str) -> str:
    """Returns how the identifiers of a log's transactions begin in one target."""
    return f"{log_prefix(log_partition)}{target}:"


def log_prefix(log_partition: str) -> str:
    """Returns how the identifiers of a log's transactions begin in whatever target."""
    return f"kainite:{hashlib.blake2b(log_partition.encode(), digest_size=8).hexdigest()}:"


def target_in(gid: str) -> str | None:
    """Returns the target's name in an identifier; None for one that Kainite did not make."""
    found = _GID.fullmatch(gid)
    return found[2] if found else None


def name_in(gid: str) -> TransactionName | None:
    """Returns the name in an identifier; None for one that Kainite did not make."""
    found = _GID.fullmatch(gid)
    return TransactionName(int(found[3]), int(found[4]), found[5]) if found else None


def name_from(text: str) -> TransactionName:
    """Returns the name that ``str`` wrote."""
    generation, micro_batch, nonce = text.split(".")
    return TransactionName(int(generation), int(micro_batch), nonce)


class HasPrepared(Protocol):
    """Whoever can look at the prepared transactions of a target, and finish them."""

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        """Returns the transactions that are prepared there under identifiers which begin so.

        Raises:
            TargetUnavailableError: the target does not answer.
        """

    def finish(self, gid: str, *, committed: bool) -> bool:
        """Commits a prepared transaction, or rolls it back; returns False where there is none of that identifier.

        Raises:
            TargetUnavailableError: the target does not answer, or may not be told; nobody knows what it has done.
        """


class PreparingSession(TargetSession, HasPrepared, Protocol):
    """A connection to a target that can prepare."""

    def prepare(self, fence: Fence, units: Collection[Unit], gid: str, *, folded: bool = False) -> None:
        """Does as :meth:`~kainite_spark.targets.contract.TargetSession.apply`, and prepares in place of the commit."""

    def prepare_in_source_order(self, fence: Fence, unit: Unit, gid: str) -> None:
        """Does as :meth:`~kainite_spark.targets.contract.TargetSession.apply_in_source_order`, and prepares."""


class PreparingTarget(Target, HasPrepared, Protocol):
    """A target that can prepare, as the driver has it."""

    def connect(self) -> PreparingSession: ...

    def require_preparing(self) -> None:
        """Checks that the target can prepare transactions.

        Raises:
            TargetError: it is not set up for that; the message says how.
            TargetUnavailableError: the target does not answer.
        """

    def ledger_place(self) -> str:
        """Returns where Kainite's own tables are, which :meth:`Target.prepare` has made; other ones are elsewhere.

        Raises:
            TargetUnavailableError: the target does not answer.
        """
