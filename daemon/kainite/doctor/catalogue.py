"""Reads the target's tables as the log's owner and the apply job do, and looks at their keys and their order."""

from __future__ import annotations

from collections.abc import Iterator

from kainite.doctor.finding import DoctorFinding, warned, well
from kainite.settings import Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.uow.catalogue.several import catalogue_of
from kainite.uow.precedence.levels import precedence_map

_AREA = "target"
_MOST_NAMES = 8


def some(names: list[str]) -> str:
    """Returns the first names of a list, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def look_at_catalogue(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields what is found of the target's tables.

    Raises:
        KainiteError: they cannot be read, or their foreign keys leave no order.
    """
    uow, apply = settings.uow, settings.apply
    catalogue = catalogue_of(settings)
    if catalogue is None:
        return
    whose = (
        f"catalogueFile {uow.catalogue_file}"
        if uow.catalogue_file
        else f"the targets {', '.join(settings.of_targets)}"
        if settings.of_targets
        else f"the {kind_of(apply.target or '').name} target"
    )
    if not catalogue.tables:
        yield warned(_AREA, f"{whose} has no tables", "look at targetSchemas, and at the database's name")
        return
    yield well(_AREA, f"{whose} can be read, tables: {len(catalogue.tables)}")
    if keyless := sorted(name for name, table in catalogue.tables.items() if not table.primary_key):
        yield warned(_AREA, f"without a primary key, these take inserts alone: {some(keyless)}",
                     f"ALTER TABLE {keyless[0]} ADD PRIMARY KEY (…)")  # fmt: skip
    precedence_map(catalogue)
    yield well(_AREA, "its foreign keys leave an order")
