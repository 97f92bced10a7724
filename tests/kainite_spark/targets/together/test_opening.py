"""Opening all targets of a settings file as one that refuses units in all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError
from kainite.settings import Settings, load
from kainite.uow.precedence.load import load_levels
from kainite_spark.targets.together.opening import open_together
from support.tables import INTEGER, catalogue, columns, foreign_key, table

LINES = (
    "applicationName = app", "executableName = a", "streamName = s", "targetCommit = together",
    "target.shop = postgresql://u@h/shop", "target.crm = mariadb://u@h/crm", "target.crm.tables = contact",
)  # fmt: skip
ITEM = table("item", columns(id=INTEGER), ("id",))
CONTACT = table("contact", columns(id=INTEGER), ("id",))
OF_AN_ITEM = table("contact", columns(id=INTEGER), ("id",), foreign_key(("id",), "item", ("id",)))


def read(folder: Path) -> Settings:
    path = folder / "app.properties"
    path.write_text("\n".join(LINES))
    return load(path)


def test_targets_commit_in_the_order_of_the_file_each_with_its_own_tables(tmp_path: Path) -> None:
    found = catalogue(ITEM, CONTACT)
    with closing(open_together(read(tmp_path), found, load_levels(found, None))) as opened:
        assert list(opened.targets) == ["shop", "crm"]
        assert [opened.assignment.target_of(name) for name in ("item", "contact")] == ["shop", "crm"]


def test_a_foreign_key_that_leaves_its_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="a foreign key cannot leave the tables of its log, or of its target"):
        open_together(read(tmp_path), catalogue(ITEM, OF_AN_ITEM), {})
