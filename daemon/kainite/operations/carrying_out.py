"""Previews operations, carries them out, and has each of them recorded (:mod:`kainite.operations`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import assert_never

from kainite.aws import clients as aws
from kainite.base.errors import FleetError, FleetUnavailableError, KainiteError
from kainite.fleet.declared import declared_duties
from kainite.fleet.operator import Operator
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.kinesis.named_streams import clients_of, ids_of, plain_ids_of
from kainite.leases.administration.reset import CheckpointChange
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import OperationKind, OperationResult
from kainite.log.state.operations import shortened
from kainite.operations.checkpoints import consequences, effects, in_words, planned, reset
from kainite.operations.duties import change_fleet, kind_and_subject, preview_fleet
from kainite.operations.forgetting import delete_leases, preview_forgetting
from kainite.operations.history import OperationRecord, read_history
from kainite.operations.inbox import Asker
from kainite.operations.leases import change_lease, kind_and_lease, patience, preview_lease
from kainite.operations.operation import (
    AddDuty,
    AnyOperation,
    ChangeDuty,
    CorrectUnit,
    DiscardUnits,
    FleetOperation,
    ForgetStream,
    HandOverLog,
    MoveDuty,
    MoveLease,
    OperationOutcome,
    PauseApply,
    Preview,
    Rebalance,
    RemoveDuty,
    RepairRows,
    ResetCheckpoints,
    RestartChild,
    ResumeApply,
    RetryUnits,
    SetDormancy,
    ShutDownWorker,
    SkipNumbers,
)
from kainite.operations.owners import ask_owner, await_no_more, preview_owners
from kainite.operations.units import Tell, preview_units, resolve_units
from kainite.owner.answering import RECORD
from kainite.settings import Settings
from kainite.settings.several import is_collected
from kainite.store.dynamodb import DynamoDBStore

TIMEOUT_S = 10.0
"""Seconds to wait for an answer of the log's owner."""


class Operations:
    """The operations on one application.

    Args:
        settings: the application's.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def log(self) -> tuple[DynamoDBStore, str]:
        """Returns the log's store, and the name of its log partition."""
        settings = self._settings
        return DynamoDBStore(aws.client("dynamodb", settings.aws), settings.log.table, token=False), (
            settings.log.partition
        )

    @cached_property
    def leases(self) -> LeaseTable:
        """Returns the lease table."""
        return LeaseTable(aws.client("dynamodb", self._settings.aws), self._settings.leases.table)

    @cached_property
    def fleet(self) -> DynamoDBFleetStore:
        """Returns the fleet's table."""
        fleet = self._settings.fleet
        return DynamoDBFleetStore(aws.client("dynamodb", self._settings.aws), fleet.table, fleet.history_days)

    def preview(self, operation: AnyOperation) -> Preview:
        """Returns what an operation would do now; changes nothing.

        A correction is judged by the log's owner, and a reset observes the leases: both take some seconds.

        Raises:
            LogUnavailableError: the log's owner does not answer.
            KainiteError: what the operation is about cannot be read, or it cannot be planned.
        """
        match operation:
            case RetryUnits() | DiscardUnits():
                return preview_units(*self.log, operation)
            case ResetCheckpoints():
                changes = self.plan_reset(operation)
                collected = partial(is_collected, self._settings)
                follows = consequences([change for change in changes if collected(change.shard.id)])
                does = f"set the checkpoints of shards: {in_words(changes) or 'nothing to change'}"
                return Preview(does, details=(*effects(changes, collected=collected), *follows))
            case CorrectUnit() | RepairRows() | SkipNumbers() | PauseApply() | ResumeApply() | HandOverLog():
                return preview_owners(*self.log, operation, TIMEOUT_S)
            case AddDuty() | RemoveDuty() | ChangeDuty() | MoveDuty() | SetDormancy() | ShutDownWorker() | Rebalance():
                return preview_fleet(operation)
            case RestartChild() | MoveLease():
                return preview_lease(self.leases, operation)
            case ForgetStream():
                return preview_forgetting(self.leases, operation, ids_of(self._settings), plain_ids_of(self._settings))
            case _:
                assert_never(operation)

    def carry_out(
        self,
        operation: AnyOperation,
        who: str,
        why: str = "",
        *,
        timeout: float = TIMEOUT_S,
        tell: Tell = lambda _sentence, _bad: None,
    ) -> OperationOutcome:
        """Carries an operation out, and has it recorded.

        Args:
            operation: what is done.
            who: the person who asks, as the record will have it.
            why: the reason, for the record.
            timeout: seconds to wait for an answer of the log's owner.
            tell: is told meanwhile what has become of each unit that was named, and whether that is bad news.

        Returns:
            What has become of it; a refusal is an outcome.

        Raises:
            LogUnavailableError: the log's owner has not answered in time; the request stays until it expires.
            KainiteError: a table cannot be read or written; the record says that the operation failed, if that could
                still be written.
        """
        asker = Asker(who, why)
        match operation:
            case RetryUnits() | DiscardUnits():
                return resolve_units(*self.log, operation, asker, timeout, tell)
            case ResetCheckpoints():
                return self.reset(operation, self.plan_reset(operation), asker, tell)
            case CorrectUnit() | RepairRows() | SkipNumbers() | PauseApply() | ResumeApply() | HandOverLog():
                return ask_owner(*self.log, operation, asker, timeout)
            case AddDuty() | RemoveDuty() | ChangeDuty() | MoveDuty() | SetDormancy() | ShutDownWorker() | Rebalance():
                operator = Operator(self.fleet, who, why)
                return self.recorded(
                    *kind_and_subject(operation), asker, lambda: _done(operator, operation, self._declared)
                )
            case RestartChild() | MoveLease():
                settings = self._settings
                limits = patience(operation, settings.leases.failover, settings.child.shutdown_grace)
                return self.recorded(
                    *kind_and_lease(operation), asker, lambda: change_lease(self.leases, operation, who, limits)
                )
            case ForgetStream():
                return self.recorded(
                    OperationKind.FORGET_STREAM, operation.stream, asker,
                    lambda: self._forget(operation, asker, timeout),
                )  # fmt: skip
            case _:
                assert_never(operation)

    def _forget(self, operation: ForgetStream, asker: Asker, timeout: float) -> OperationOutcome:
        settings = self._settings
        stream, outcome = delete_leases(
            self.leases, operation, ids_of(settings), settings.leases.failover, plain_ids_of(settings)
        )
        if outcome.result is OperationResult.DONE and settings.log.enabled:
            told = await_no_more(*self.log, stream, asker, timeout)
            return replace(outcome, sentence=f"{outcome.sentence}; {told}")
        return outcome

    def plan_reset(self, operation: ResetCheckpoints) -> tuple[CheckpointChange, ...]:
        """Returns what a reset would change; errors as :func:`~kainite.operations.checkpoints.planned`."""
        settings = self._settings
        return planned(self.leases, clients_of(settings), settings.leases.failover, operation)

    def reset(
        self, operation: ResetCheckpoints, changes: Sequence[CheckpointChange], asker: Asker, tell: Tell
    ) -> OperationOutcome:
        """Resets checkpoints as planned, and has it recorded; arguments and errors as :meth:`carry_out`."""
        return self.recorded(
            OperationKind.RESET, in_words(changes), asker,
            lambda: reset(self.leases, changes, tell, force=operation.force),
        )  # fmt: skip

    def history(self, since_ms: int = 0) -> list[OperationRecord]:
        """Returns what people did since a time, oldest first; arguments and errors as :func:`read_history`."""
        return read_history(*self.log, since_ms)

    def recorded(
        self, what: OperationKind, about: str, asker: Asker, carry_out: Callable[[], OperationOutcome]
    ) -> OperationOutcome:
        """Carries out what the log does not carry: recorded as asked before, and with its outcome afterwards.

        Args:
            what, about: the kind of operation, and what it is about.
            asker: who asks, and why.
            carry_out: does it, and returns the outcome.

        Raises:
            KainiteError: it was not done, or nobody knows; the record says that it failed, if that could be written.
        """
        if not self._settings.log.enabled:
            return carry_out()
        store, partition = self.log
        request = {"action": RECORD, "what": what.value, "about": shortened(about)}
        of = store.put_request(partition, asker.signed(request))
        try:
            outcome = carry_out()
        except BaseException as error:
            ended = {"result": OperationResult.FAILED.value, "outcome": shortened(str(error) or type(error).__name__)}
            with contextlib.suppress(KainiteError):
                store.put_request(partition, asker.signed(request | {"of": of} | ended))
            raise
        ended = {"result": outcome.result.value, "outcome": shortened(outcome.sentence)}
        store.put_request(partition, asker.signed(request | {"of": of} | ended))
        return outcome

    def _declared(self) -> set[str]:
        return {duty.name for duty in declared_duties(self._settings.fleet)}


def _done(operator: Operator, operation: FleetOperation, declared: Callable[[], Container[str]]) -> OperationOutcome:
    try:
        return OperationOutcome(OperationResult.DONE, change_fleet(operator, operation, declared))
    except FleetUnavailableError:
        raise
    except FleetError as error:
        return OperationOutcome(OperationResult.REFUSED, str(error))
