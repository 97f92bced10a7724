"""Plans a load from MariaDB: which tables go where, and which ranges of rows are copied in which order. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kainite.base.errors import CatalogueError
from kainite.capture.mysql.snapshot_tables import SnapshotTable
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.plan import stages_of
from kainite.replicate.tables import TableName
from kainite.uow.catalogue.tables import Catalogue, Table


class NamedColumn(Protocol):
    """A column of a source."""

    @property
    def name(self) -> str:
        """Returns its name."""


class CopiedTable(Protocol):
    """A table of a source, of whatever kind."""

    @property
    def copied(self) -> Sequence[NamedColumn]:
        """Returns the columns whose values are copied."""


S = TypeVar("S", bound=CopiedTable)


@dataclass(frozen=True)  # Python 3.11 makes no object of a generic class by its alias where that is frozen with slots
class TablePair(Generic[S]):
    """A table of the source and that of the target into which its changes go.

    Attributes:
        source: the source's.
        target: the target's.
        place: the target's schema and name.
    """

    source: S
    target: Table
    place: TableName

    @property
    def problems(self) -> Iterator[str]:
        """Yields why its rows cannot be copied."""
        for column in self.source.copied:
            found = self.target.columns.get(column.name)
            if found is None:
                yield f"the target's table {'.'.join(self.place)} has no column {column.name}"
            elif found.generated:
                yield f"the target computes {'.'.join(self.place)}.{column.name}, and the source has values for it"


PairedTable = TablePair[SnapshotTable]


def pairs_by_name(named: Iterable[tuple[str, S]], target: Catalogue) -> tuple[list[TablePair[S]], list[str]]:
    """Returns tables with those of the target, and the names of tables that the target lacks.

    Args:
        named: tables with the names by which changes name them.
        target: the target's tables.
    """
    pairs, missing = [], []
    for name, table in named:
        found = target.find(name)
        if found is None:
            missing.append(name)
        else:
            pairs.append(TablePair(table, found, (found.schema or target.default_schema or "", found.bare_name)))
    return pairs, missing


def check_copyable(pairs: Sequence[TablePair[S]], missing: Sequence[str], advice: str) -> None:
    """Raises CatalogueError, with what to do, where rows cannot be copied."""
    causes = [f"the target has no table {name}" for name in missing]
    causes += [problem for pair in pairs for problem in pair.problems]
    if causes:
        raise CatalogueError(f"{'; '.join(causes)}. {advice}")


def paired_tables(tables: Iterable[SnapshotTable], target: Catalogue) -> tuple[list[PairedTable], list[str]]:
    """Returns tables with those of the target, and the names of tables that the target lacks.

    A change names its table without a schema (:mod:`kainite.capture.mysql.records`), and the target's catalogue is
    asked for that name.
    """
    return pairs_by_name(((table.name, table) for table in tables), target)


def check_pairs(pairs: Sequence[PairedTable], missing: Sequence[str]) -> None:
    """Raises CatalogueError where rows cannot be copied."""
    check_copyable(pairs, missing, "Make them with types that fit (docs/replicate.md, *From MariaDB*)")


def copy_steps(
    pairs: Sequence[PairedTable], target: Catalogue, ranges: Callable[[SnapshotTable], Iterable[str]]
) -> tuple[LoadStep, ...]:
    """Returns the steps that copy tables.

    Args:
        pairs: the tables.
        target: the target's tables, with the foreign keys that are there now.
        ranges: returns conditions that together have each row of a table once.

    Raises:
        CatalogueError: foreign keys of the target form a cycle.
    """
    stages = stages_of(target)
    numbers = itertools.count(1)
    return tuple(
        LoadStep(next(numbers), stages.level(pair.place), *pair.place, work)
        for pair in sorted(pairs, key=lambda pair: -pair.source.bytes)
        for work in _copies(pair, ranges, whole=stages.refers_to_itself(pair.place))
    )


def _copies(pair: PairedTable, ranges: Callable[[SnapshotTable], Iterable[str]], *, whole: bool) -> Iterator[CopyStep]:
    """Yields what copies a table, range by range, or as a whole."""
    copied = pair.source.copied
    columns = ", ".join(_quoted(column.name) for column in copied)
    into = f"COPY {'.'.join(map(_quoted, pair.place))} ({columns}) FROM STDIN"
    spellings = tuple(column.form.spelling for column in copied)
    queries = [pair.source.query(condition) for condition in ranges(pair.source)]
    for some in [queries] if whole else [[query] for query in queries]:
        yield CopyStep(tuple(some), into, spellings)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
