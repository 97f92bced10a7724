"""The target of a settings file: opened with its catalogue, prepared, and its tables taken for the log."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kainite.base.errors import CatalogueError, KainiteError, OtherLogError
from kainite.base.logs import event
from kainite.log.contract import LogStore
from kainite.replicate.findings import some_names
from kainite.settings import Settings
from kainite.settings.targets import has_one_job, is_atomic
from kainite.uow.catalogue.several import catalogue_of, is_own, own_tables, without
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.load import load_levels
from kainite_spark.driver.current_target import CurrentTarget
from kainite_spark.driver.patience import at_the_start, unless_stopped
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.opening import open_atomic
from kainite_spark.targets.contract import Target
from kainite_spark.targets.hooks_report import target_url
from kainite_spark.targets.log_tables import LogTables, log_tables
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.together.opening import open_together

if TYPE_CHECKING:  # whose module needs PostgreSQL's driver
    from kainite.replicate.tables import TableName

_LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def prepared_target(
    configured: Settings, store: LogStore, stop: threading.Event
) -> Iterator[tuple[Target, CurrentTarget, Callable[[], LogTables]]]:
    """Gives the target, prepared, what opens it anew, and what tells the log's tables of now; closes all at the end."""
    load = partial(catalogue_of, configured)
    catalogue = at_the_start(load, stop, "the target, for its tables")
    with contextlib.ExitStack() as opened:

        def opening(catalogue: Catalogue | None) -> Target:
            return opened.enter_context(contextlib.closing(target_of(configured, store, catalogue)))

        target = opening(catalogue)
        unless_stopped(lambda: target.prepare(ledger_of(configured), catalogue or Catalogue({})), stop, "the target")
        own = tables_taken(configured, catalogue)
        unless_stopped(lambda: target.take_tables(own), stop, "the target")
        taking = _Taking(configured, opening, {*own.full_names})
        yield target, CurrentTarget(load, taking.opened, catalogue), lambda: tables_taken(configured, load())


@dataclass(frozen=True, slots=True)
class _Taking:
    """Opens the target with a catalogue that has changed, whose tables it takes for the log.

    A table that has come, and that another log has taken, is left out: this log has never written it. So the log goes
    on with what has changed in its own tables; a unit of that table fails, as of one that is not there.

    Attributes:
        configured: the settings.
        opening: opens the target with a catalogue.
        had: the full names of the tables that the job has taken.
    """

    configured: Settings
    opening: Callable[[Catalogue | None], Target]
    had: set[str]

    def opened(self, catalogue: Catalogue | None) -> Target:
        """Returns the target.

        Raises:
            OtherLogError: another log has a table that the job has, or one that has to do with another table.
        """
        try:
            return self._taken(catalogue)
        except OtherLogError as error:
            rest = None if catalogue is None or error.others.keys() & self.had else without(catalogue, error.others)
            if rest is None:
                raise
            others = error.others
        target = self._taken(rest)
        for table, log in sorted(others.items()):
            event(_LOG, logging.WARNING, "table of another log left out", table=table, log=log)
        return target

    def _taken(self, catalogue: Catalogue | None) -> Target:
        own = tables_taken(self.configured, catalogue)
        target = self.opening(catalogue)
        try:
            target.take_tables(own)
        except KainiteError:
            target.close()
            raise
        self.had.update(own.full_names)
        return target


def target_of(configured: Settings, store: LogStore, catalogue: Catalogue | None) -> Target:
    """Returns the target, or all targets as one; opens no connection."""
    levels = load_levels(catalogue, configured.uow.precedence_file)
    if not has_one_job(configured):
        return open_target(target_url(configured), catalogue, levels, configured.apply, configured.child.markers)
    if not is_atomic(configured):
        return open_together(configured, catalogue or Catalogue({}), levels)
    decisions = Decisions(store, configured.log.partition)
    return open_atomic(configured, catalogue or Catalogue({}), levels, decisions)


def ledger_of(configured: Settings) -> str:
    """Returns the log's name in the target; two of several targets may be schemas of one database."""
    return "/".join(filter(None, [configured.log.table, configured.log.partition, configured.target_name]))


def tables_taken(configured: Settings, catalogue: Catalogue | None) -> LogTables:
    """Returns which tables of the target the log takes.

    Raises:
        CatalogueError: a shared one is not there; of several targets, another one may have it.
    """
    own = own_tables(configured, catalogue or Catalogue({}))
    names = configured.apply.shared_tables
    shared = [name for name in names if own.find(name)] if configured.target_name else names
    return log_tables(configured.log.name, ledger_of(configured), own, shared)


def check_emptied(configured: Settings, catalogue: Catalogue, tables: Iterable[TableName]) -> None:
    """Checks that other logs write none of the tables that a load empties.

    Args:
        configured: the settings.
        catalogue: the target's tables.
        tables: schemas and names of those that are loaded.

    Raises:
        CatalogueError: ``targetSharedTables`` names one, or ``targetTables`` does not.
    """
    places = {f"{schema}.{name}": (schema, name) for schema, name in tables}
    default = f"{catalogue.default_schema}."
    if strange := [full for full in places if not is_own(configured, full, full.removeprefix(default))]:
        raise CatalogueError(
            f"{some_names(strange)} is not among the tables of targetTables, and may belong to another log: name it"
            " there, or take it out of what the extractor reads"
        )
    own = tables_taken(configured, catalogue).tables
    shared = {(table.schema, table.bare_name) for name, table in catalogue.tables.items() if name not in own}
    if both := [full for full, place in places.items() if place in shared]:
        raise CatalogueError(
            f"{some_names(both)} is named in targetSharedTables, and a load empties its tables: rows that other logs"
            " have written would be lost. Copy its rows by hand, and load without it"
        )
