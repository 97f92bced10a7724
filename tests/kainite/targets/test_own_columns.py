"""What is told of tables that an earlier version has made; on servers in the folders of the kinds of targets."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.targets.own_columns import check_columns

CREATE = """
    CREATE TABLE IF NOT EXISTS kainite_fence (
        log_partition varchar(255) NOT NULL PRIMARY KEY,
        tables bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (log_partition)
    ) ENGINE = InnoDB CHARACTER SET utf8mb4"""


@pytest.mark.parametrize("statement", [CREATE, CREATE.partition(" ENGINE")[0]])
def test_columns_that_are_missing_are_told_as_statements(statement: str) -> None:
    mend = "ALTER TABLE kainite_fence ADD COLUMN tables bigint NOT NULL DEFAULT 0"
    with pytest.raises(CatalogueError, match=f"stopped: {mend}$"):
        check_columns([statement], lambda _: ["log_partition"])
    check_columns([statement], lambda _: ["log_partition", "tables", "more"])


def test_a_table_that_is_not_there_lacks_nothing() -> None:
    check_columns([CREATE], lambda _: [])
