"""A history of units for two targets that one apply job serves, and how it ends, whatever dies when."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final, TypeAlias

from kainite.settings import Consistency
from kainite.uow.delta import UnitKind
from support.atomic_world import AtomicWorld
from support.chaos import Fate
from support.several_world import changed, contact, item, noting
from support.stores import Database

End: TypeAlias = tuple[dict[int, int], list[str], dict[int, int], list[str], dict[str, str]]


def file_databases(folder: Path) -> dict[str, Database]:
    """Returns an empty SQLite database for each target, in a new folder of its own."""
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    for name in ("shop", "crm"):
        sqlite3.connect(place / f"{name}.db").close()
    return {name: Database(f"sqlite:///{place / name}.db") for name in ("shop", "crm")}


def history(world: AtomicWorld, consistency: Consistency, *fates: Fate) -> End:
    """Applies units of one target and of both, conflicts, one that each target refuses in turn, and a correction."""
    log = world.log
    settings = {"consistency": consistency, "max_units": 3, "group_units": 2}
    log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    log.unit("shop alone", *noting("shop alone", changed("item", 1, 2)))
    log.unit("again both", *noting("again both", changed("item", 1, 3), changed("contact", 1, 3)))
    log.unit("refused here", *noting("refused here", item(2, -1), contact(2, 1)))
    log.unit("refused there", *noting("refused there", item(3, 1), contact(3, -1)))
    log.unit("behind", *noting("behind", changed("contact", 3, 5)))
    world.apply(*fates[:1], **settings)
    world.databases["crm"].run("INSERT INTO contact (id, v) VALUES (9, 0);")
    log.unit("fix", *noting("fix", item(3, 7), contact(3, 7)), kind=UnitKind.CORRECTION)
    log.ask("discard", "refused here")
    log.unit("crm alone", *noting("crm alone", changed("contact", 1, 4)))
    world.apply(*fates[1:], **settings)
    world.apply(**settings)
    return world.rows("shop"), world.noted("shop"), world.rows("crm"), world.noted("crm"), world.statuses()


EXPECTED: Final[End] = (
    {1: 3, 3: 7},
    ["again both", "both", "fix", "shop alone"],
    {1: 4, 3: 5, 9: 0},
    ["again both", "behind", "both", "crm alone", "fix"],
    {},
)
