"""Several targets in a settings file: which there are, what each has of its own, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.base.redaction import redacted
from kainite.settings import Settings, load
from kainite.settings.assignment import NO_TARGETS, TableAssignment
from kainite.settings.targets import each_target, has_one_job, is_atomic, of_target, require_one_target

TWO = ("target.shop = sqlite:///shop.db", "target.crm = sqlite:///crm.db", "target.crm.tables = crm.*, visit")


def read(folder: Path, *lines: str) -> Settings:
    path = folder / "app.properties"
    path.write_text("\n".join(["applicationName = app", "executableName = a", "streamName = s", *lines]))
    return load(path)


def test_each_target_has_its_own_keys_and_else_those_of_all(tmp_path: Path) -> None:
    settings = read(
        tmp_path, *TWO, "targetSchemas = a", "target.crm.schemas = b, c", "target.crm.catalogueFile = c.json"
    )
    assert settings.log.targets == TableAssignment((("shop", ()), ("crm", ("crm.*", "visit"))))
    shop, crm = each_target(settings)
    assert (shop.target_name, crm.target_name) == ("shop", "crm")
    assert (shop.apply.target, crm.apply.target) == (f"sqlite:///{tmp_path}/shop.db", f"sqlite:///{tmp_path}/crm.db")
    assert (shop.apply.schemas, crm.apply.schemas) == (("a",), ("b", "c"))
    assert (shop.uow.catalogue_file, crm.uow.catalogue_file) == (None, tmp_path / "c.json")
    assert settings.unknown == ()


def test_one_target_is_as_ever(tmp_path: Path) -> None:
    settings = read(tmp_path, "target = sqlite:///one.db")
    assert settings.log.targets == NO_TARGETS
    assert each_target(settings) == (settings,)
    assert of_target(settings, None) is settings
    require_one_target(settings)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("target = sqlite:///one.db", "target and target.NAME: of several targets each has its own"),
        ("catalogueFile = c.json", "catalogueFile and target.NAME: of several targets each has its own"),
        (
            "targetTables = visit",
            "targetTables and target.NAME: of several targets each has its own",
        ),
        ("uowIsolation = relaxed", "target.NAME needs uowIsolation=serialize"),
        ("target.erp.tables = a", "target.erp is not set"),
        ("target.erp = sqlite:///erp.db", "target.shop has no tables either"),
        ("target.shop.tables = visit", "visit is of target.shop, too"),
        ("target.shop.tables = a*b", "'a\\*b' is neither a table's name nor the beginning"),
        ("target.erp = exec:load", "target.erp cannot be asked for its tables: set target.erp.catalogueFile"),
        ("target.erp = ftp://erp", "target.erp: must be postgresql://"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, *TWO, line)


def test_tables_of_one_target_are_named_by_patterns(tmp_path: Path) -> None:
    assert read(tmp_path, "target = sqlite:///a.db", "targetTables = a, b.*").apply.tables == ("a", "b.*")
    with pytest.raises(SettingsError, match=r"targetTables: 'a\*b' is neither a table's name nor the beginning"):
        read(tmp_path, "target = sqlite:///a.db", "targetTables = a*b")


def test_a_target_is_named_where_there_are_several(tmp_path: Path) -> None:
    settings = read(tmp_path, *TWO)
    with pytest.raises(SettingsError, match=r"say which one by --target \(shop, crm\)"):
        of_target(settings, None)
    with pytest.raises(SettingsError, match=r"there is no target\.erp in the settings file, but shop, crm"):
        of_target(settings, "erp")
    with pytest.raises(SettingsError, match="kainite replicate serves one target"):
        require_one_target(settings)


def test_a_key_that_no_target_has_is_told(tmp_path: Path) -> None:
    settings = read(tmp_path, *TWO, "target.crm.tabels = x")
    assert [entry.key for entry in settings.unknown] == ["target.crm.tabels"]


def test_a_targets_password_is_in_no_message(tmp_path: Path) -> None:
    settings = read(tmp_path, *TWO[1:], "target.shop = postgresql://u:verysecret7@h/d")
    assert "verysecret7" not in redacted("it is verysecret7")
    assert "verysecret7" not in repr(settings)


BOTH = (
    "target.shop = postgresql://u@h/shop", "target.crm = postgresql://u@h/crm", "target.crm.tables = visit",
    "targetCommit = atomic",
)  # fmt: skip


def test_targets_that_commit_together_are_one_to_the_log(tmp_path: Path) -> None:
    """Shows the log's units have no parts then, and that each target is still named."""
    settings = read(tmp_path, *BOTH)
    assert is_atomic(settings)
    assert settings.log.targets == NO_TARGETS
    assert [each.target_name for each in each_target(settings)] == ["shop", "crm"]
    assert not is_atomic(read(tmp_path, *BOTH[:-1]))
    assert not is_atomic(read(tmp_path, "target = sqlite:///one.db"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("target.erp = exec:load", "target.erp is of the kind exec, in which Kainite prepares no transaction"),
        ("target.erp = sqlite:///erp.db", "needs targets of the kind postgresql, mariadb;"),
    ],
)
def test_a_kind_that_does_not_prepare_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, *BOTH, line, "target.erp.tables = bill", "target.erp.catalogueFile = c.json")


def test_targets_that_refuse_together_have_one_job_too(tmp_path: Path) -> None:
    settings = read(tmp_path, *BOTH[:2], "target.crm.tables = visit", "targetCommit = together")
    assert has_one_job(settings)
    assert not is_atomic(settings)
    assert settings.log.targets == NO_TARGETS
    assert has_one_job(read(tmp_path, *BOTH))
    assert not has_one_job(read(tmp_path, *BOTH[:-1]))


def test_a_kind_that_cannot_wait_is_refused(tmp_path: Path) -> None:
    """Shows a loader does not take part, and SQLite does."""
    of_erp = "target.erp.tables = bill", "target.erp.catalogueFile = c.json", "targetCommit = together"
    with pytest.raises(
        SettingsError, match=r"target\.erp is of the kind exec, which commits when it answers, and cannot"
    ):
        read(tmp_path, *BOTH[:3], "target.erp = exec:load", *of_erp)
    assert has_one_job(read(tmp_path, *BOTH[:3], "target.erp = sqlite:///erp.db", *of_erp))


def test_one_database_is_one_target_of_those_that_refuse_together(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"target\.shop and target\.erp are one database: name it as one target"):
        read(tmp_path, *BOTH[:3], "target.erp = postgresql://u@h/shop", "target.erp.tables = bill",
             "targetCommit = together")  # fmt: skip


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("other", ["{}/shop.db", "./shop.db", "up/../shop.db", "link/shop.db", "linked.db", "same.db"])
def test_one_file_of_sqlite_is_one_target_however_its_name_is_spelled(
    tmp_path: Path, other: str, is_there: bool
) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "linked.db").symlink_to("shop.db")
    if is_there:
        (tmp_path / "shop.db").touch()
        (tmp_path / "same.db").hardlink_to(tmp_path / "shop.db")
    lines = (
        "target.shop = sqlite:///shop.db", "target.shop.tables = item",
        f"target.erp = sqlite:///{other.format(tmp_path)}", "target.erp.tables = bill", "targetCommit = together",
    )  # fmt: skip
    if other == "same.db" and not is_there:
        assert has_one_job(read(tmp_path, *lines))
        return
    with pytest.raises(SettingsError, match=r"target\.shop and target\.erp are one database: name it as one target"):
        read(tmp_path, *lines)


@pytest.mark.parametrize("commit", ["atomic", "together"])
def test_one_target_does_not_commit_together(tmp_path: Path, commit: str) -> None:
    with pytest.raises(SettingsError, match=f"targetCommit={commit} is about several targets"):
        read(tmp_path, "target = postgresql://u@h/db", f"targetCommit = {commit}")
