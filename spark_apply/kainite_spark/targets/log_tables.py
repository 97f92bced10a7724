"""Which log writes a table of the target: one table has one log, or is named as shared. Pure.

Nothing orders units of two logs, so two logs that write one table would leave what neither source ever had. Before an
apply job or a load begins, its log *takes* its tables: a row of ``kainite_log_table`` for each.

A table of the target is *free* or *taken* by a log:

* free → taken: the log takes it, in one transaction with all its other tables. The primary key decides between two
  logs that begin at the same time; the second one is refused. An apply job takes tables before it has fenced those
  that run, and when tables come; a load takes them, too. So nobody gives a table up by that;
* taken → free: an apply job that has fenced the target takes its tables again, by the catalogue of now, and gives up
  what the log's settings file names no more, under its fence. Until then an older job of the log may write to it. Or a
  person deletes the rows of a log that is over.

An apply job may wait for its turn for days. Meanwhile the one that applies may take tables that come, and one with
another settings file may give a table up, which another log then takes: so the job takes its tables again.

A job without ``targetTables`` goes on where another log has taken a table that comes
(:mod:`kainite_spark.configured_target`): it has never written that table, and leaves it out.

A crash leaves either all that the log takes, or what it had before; or what it gives up, until its next apply job
begins. The rows outlive the apply job: a log has its tables while its job is stopped. A person who deletes them while
that job runs gives up the protection.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from kainite.base.errors import CatalogueError, OtherLogError
from kainite.settings.assignment import TableAssignment
from kainite.uow.catalogue.tables import Catalogue, Table


@dataclass(frozen=True, slots=True)
class LogTables:
    """What a log takes in a target.

    Attributes:
        log: the log's name; it has this one name in all its targets.
        log_partition: the log's name in this target, which gives up what it takes no more.
        tables: the tables' full names, by those under which the catalogue has them.
    """

    log: str
    log_partition: str
    tables: Mapping[str, str]

    @property
    def full_names(self) -> list[str]:
        """Returns the full names, sorted, so that two logs take their tables in one order."""
        return sorted(self.tables.values())

    def of(self, assignment: TableAssignment, target: str) -> Self:
        """Returns the tables of one of several targets."""
        return replace(self, tables={n: full for n, full in self.tables.items() if assignment.target_of(n) == target})

    def given_up(self, has: Iterable[str]) -> list[tuple[str, str]]:
        """Returns those of the tables that the log has, which it takes no more; each with the log's name here."""
        return [(name, self.log_partition) for name in sorted({*has} - {*self.tables.values()})]

    def check(self, others: Mapping[str, str]) -> None:
        """Checks that no other log has one of the tables.

        Args:
            others: the names of other logs, by the full names of tables that they have.

        Raises:
            OtherLogError: another log has one.
        """
        if others:
            raise OtherLogError(_refusal(self.log, others), others)


def log_tables(log: str, log_partition: str, catalogue: Catalogue, shared: Collection[str]) -> LogTables:
    """Returns what a log takes: all tables of its catalogue but those that it shares.

    Args:
        log: the log's name.
        log_partition: its name in the target.
        catalogue: the tables that belong to the log in this target.
        shared: names of tables that other logs write too, as ``targetSharedTables`` has them.

    Raises:
        CatalogueError: there is no table of a shared name.
    """
    left_out = {_shared(catalogue, name).name for name in shared}
    own = {name: table.full_name for name, table in catalogue.tables.items() if name not in left_out}
    return LogTables(log, log_partition, own)


def _shared(catalogue: Catalogue, name: str) -> Table:
    table = catalogue.find(name)
    if table is None:
        raise CatalogueError(f"targetSharedTables: the target has no table {name}")
    return table


def _refusal(log: str, others: Mapping[str, str]) -> str:
    table, other = min(others.items())
    more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
    return (
        f"table {table}{more} of the target is written by the log {other}, and {log} would write it too: nothing orders"
        " the units of two logs. Name the tables of each log in its own file (targetTables; of several targets"
        " target.NAME.tables), or in targetSharedTables of both if they write different rows of it."
        f" Where {other} is over for good: DELETE FROM kainite_log_table WHERE log = '{other}'"
    )
