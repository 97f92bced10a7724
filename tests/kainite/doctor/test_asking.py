"""Which checks a file needs; a file of which all is there, and one for which nothing is."""

from __future__ import annotations

from kainite.doctor.asking import checks_for, roles_of
from kainite.settings import examine
from support.doctored import DoctoredFile


def asks(doctored: DoctoredFile, *roles: str) -> set[str]:
    return {check.area for check in checks_for(examine(doctored.path, needs=()), roles)}


def test_all_is_well_and_nothing_was_written(doctored: DoctoredFile) -> None:
    assert doctored.bad() == []
    for table in ("", "-log", "-Fleet"):
        assert doctored.dynamodb.scan(TableName=f"{doctored.name}{table}")["Items"] == []


def test_only_what_the_file_uses_is_asked(doctored: DoctoredFile) -> None:
    assert roles_of(doctored.settings()) == ("run", "apply")
    assert {"fleet", "log", "target", "spark", "lease table"} <= asks(doctored)
    assert "source" not in asks(doctored)
    assert asks(doctored, "run") & {"spark", "source"} == set()
    assert asks(doctored, "apply") & {"lease table", "fleet", "stream", "host"} == set()
    doctored.write(target="", unitsOfWork="false", fleet="false", extractorName="echo one")
    assert roles_of(doctored.settings()) == ("run", "extract")
    assert asks(doctored) & {"target", "log", "fleet", "spark"} == set()


def test_a_file_with_a_mistake_is_not_asked_about(doctored: DoctoredFile) -> None:
    doctored.write(failoverTimeMillis="soon")
    assert asks(doctored) == {"settings"}
    assert [finding.state for finding in doctored.bad()] == ["wrong"]


def test_a_target_without_tables_is_told_once(doctored: DoctoredFile) -> None:
    doctored.write(target=f"sqlite:///{doctored.folder}/none.db")
    [finding] = doctored.bad()
    assert finding.what.startswith("the target's tables, the target: ")
    assert finding.what.endswith("does not exist: SQLite would make an empty one")
