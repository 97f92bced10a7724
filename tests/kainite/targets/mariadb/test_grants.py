from __future__ import annotations

import pytest

from kainite.targets.mariadb.grants import grants_of, lacking

GRANTS = (
    "GRANT USAGE ON *.* TO `kainite`@`%` IDENTIFIED BY PASSWORD '*1'",
    "GRANT SELECT, INSERT ON `sh\\_op`.* TO `kainite`@`%`",
    "GRANT ALL PRIVILEGES ON `sales%`.* TO `kainite`@`%` WITH GRANT OPTION",
    "GRANT UPDATE (`a`, `b`), DELETE ON `sh_op`.`odd``name` TO `kainite`@`%`",
    "GRANT `role` TO `kainite`@`%`",
)


@pytest.mark.parametrize(
    ("schema", "table", "missing"),
    [
        ("sh_op", "t", ["DELETE", "UPDATE"]),
        ("shxop", "t", ["SELECT", "DELETE", "UPDATE"]),
        ("sales2", "t", []),
        ("sh_op", "odd`name", ["UPDATE"]),
    ],
)
def test_a_right_is_lacking_that_no_grant_gives(schema: str, table: str, missing: list[str]) -> None:
    assert lacking(grants_of(GRANTS), ("SELECT", "DELETE", "UPDATE"), schema, table) == missing


def test_rights_on_everything_are_rights_on_a_table() -> None:
    granted = grants_of(["GRANT TRIGGER, SELECT ON *.* TO `a`@`b`"])
    assert lacking(granted, ("TRIGGER", "INSERT"), "any", "table") == ["INSERT"]
