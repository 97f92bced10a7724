"""A child process in any language as a target: it loads units, and stores acknowledgements with its data.

The requests are in :mod:`kainite_spark.targets.exec.messages` and docs/targets.md. This side holds nothing that
must survive. A session remembers which units its loader has confirmed under the current fence, so a group that
was interrupted is continued behind them, even with a loader that stores no acknowledgements; a
session forgets them with its Python process. What a crash leaves:

=====================================  ====================================================================
crash                                  what the next try does
=====================================  ====================================================================
loader, before it committed            the task asks what is applied; the unit is not, and is loaded
loader, between its commit and EOP     the task asks what is applied; the unit is, and is not loaded again. A
                                       loader that acknowledges nothing loads the unit twice
task or executor                       as for its loader; a loader that runs on is stopped by its own fence
driver                                 the next driver takes over with a higher generation
=====================================  ====================================================================

A batch is loaded as a whole or not at all. A group of units may be several batches: batches that were confirmed
before another is refused stay loaded, and are left out when the group comes again in halves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kainite.base.errors import (
    ChildError,
    MessageRefusedError,
    TargetFencedError,
    TargetInterruptedError,
    TargetRejectedError,
)
from kainite.base.markers import Batching
from kainite.base.redaction import learn, secrets_in_words
from kainite.child.markers.exchange import Answer
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.exec import messages as say
from kainite_spark.targets.exec.delta_order import DeltaOrder
from kainite_spark.targets.exec.loader import LoaderProcess, LoaderSettings
from kainite_spark.targets.fence import Fence, fence_lost, outranked
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.unit_values import values_refused


class ExecSession:
    """A loader as a session; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, settings: LoaderSettings, order: DeltaOrder) -> None:
        self._markers = settings.markers.markers
        self._batch = 1 if settings.markers.batching is Batching.SINGLE else settings.markers.batch_size
        self._order = order
        self._loader = LoaderProcess(settings)
        self._confirmed = _ConfirmedUnits()

    def open(self) -> None:
        """Starts the loader, unless it runs; raises TargetUnavailableError."""
        with _translated():
            self._loader.start()

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        return set(tids) & self.ask(say.applied(log_partition, tids)).applied

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        """Loads every unit as it is: a loader is told of each change."""
        self._load(fence, units, self._order.by_precedence)

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._load(fence, (unit,), self._order.by_source)

    def close(self) -> None:
        self._loader.close()

    def ask(self, request: bytes, fenced: TargetFencedError | None = None) -> say.LoaderReply:
        """Sends one request that is not a unit; returns the reply.

        Raises:
            TargetFencedError: ``fenced``, if the loader answers that a newer job or micro-batch may write.
            TargetError: as :func:`~kainite_spark.targets.exec.messages.read_answer`.
        """
        replies: list[say.LoaderReply] = []
        with _translated(fenced):
            message = self._markers.message(request)
            self._loader.ask([message], lambda answer: replies.append(say.read_answer(answer.messages)))
        return replies[0]

    def _load(self, fence: Fence, units: Sequence[Unit], order: Callable[[Unit], Sequence[Delta]]) -> None:
        self._confirmed.under(fence)
        todo = [unit for unit in units if unit.tid not in self._confirmed.tids]
        for first in range(0, len(todo), self._batch):
            self._load_batch(fence, todo[first : first + self._batch], order)

    def _load_batch(self, fence: Fence, units: Sequence[Unit], order: Callable[[Unit], Sequence[Delta]]) -> None:
        def take(answer: Answer) -> None:
            say.read_answer(answer.messages)
            self._confirmed.add(units[answer.first : answer.first + answer.count])

        with _translated(fence_lost(fence)):
            with values_refused():
                loads = [self._markers.message(say.load(fence, unit, order(unit))) for unit in units]
            self._loader.ask(loads, take)


class ExecTarget:
    """A loader's command as a target; implements :class:`kainite_spark.targets.contract.Target`, without marks.

    The calls of the apply job's driver go to one loader, which the first call starts; tasks have loaders
    of their own.

    Args:
        settings: how loaders are started.
        order: what is known of the tables.
    """

    def __init__(self, settings: LoaderSettings, order: DeltaOrder) -> None:
        self._settings = settings
        self._order = order
        self._own = ExecSession(settings, order)

    def __reduce__(self) -> tuple[type[ExecTarget], tuple[LoaderSettings, DeltaOrder]]:
        return ExecTarget, (self._settings, self._order)

    def connect(self) -> ExecSession:
        # A task gets its target from the driver, not from settings, and logs what the loader writes.
        learn(secrets_in_words(self._settings.command))
        session = ExecSession(self._settings, self._order)
        session.open()
        return session

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        Schema.of(catalogue)
        self._own.ask(say.prepare())

    def take_tables(self, taking: LogTables) -> None:
        """Does nothing: what a loader writes to, and who else does, it alone knows."""

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        """Does nothing, as :meth:`take_tables`."""

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        self._own.ask(say.take_over(log_partition, generation), outranked(log_partition, generation))

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        self._own.ask(say.begin_micro_batch(fence), fence_lost(fence))

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        self.begin_micro_batch(fence)
        return self._own.applied(fence.log_partition, tids)

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        return self._own.ask(say.trim(fence, below), fence_lost(fence)).trimmed

    def prepare_common_mark(self) -> None:
        """Does nothing: a loader is asked to prepare once, and makes what it needs then."""

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        self._own.ask(say.common_mark(fence, everywhere_below), fence_lost(fence))

    def close(self) -> None:
        self._own.close()


@dataclass(slots=True)
class _ConfirmedUnits:
    """The units that a loader confirmed under one fence."""

    fence: Fence | None = None
    tids: set[int] = field(default_factory=set)

    def under(self, fence: Fence) -> None:
        if fence != self.fence:
            self.fence, self.tids = fence, set()

    def add(self, units: Sequence[Unit]) -> None:
        self.tids.update(unit.tid for unit in units)


@contextmanager
def _translated(fenced: TargetFencedError | None = None) -> Iterator[None]:
    try:
        yield
    except TargetFencedError as error:
        if fenced is None:
            raise
        raise fenced from error
    except ChildError as error:
        raise TargetInterruptedError(str(error)) from error
    except MessageRefusedError as error:
        raise TargetRejectedError(str(error)) from error
