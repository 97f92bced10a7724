"""The list of the kinds of targets: what each line promises is there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import kainite.targets
import kainite_spark.targets
from kainite.base.errors import SettingsError
from kainite.settings.kinds.target_kinds import (
    TARGET_KINDS,
    TargetAddress,
    TargetKind,
    address_of,
    driver_packages,
    expected,
    extra_with,
    find_kind,
    kind_of,
)
from kainite_spark.targets.opener import TargetOpener

PROJECT = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())
KINDS = pytest.mark.parametrize("kind", TARGET_KINDS, ids=lambda kind: kind.name)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("postgresql://u@h/d", "postgresql"),
        ("postgres://h/d", "postgresql"),
        ("postgresql+psycopg://h/d", "postgresql"),
        ("sqlite:///shop.db", "sqlite"),
        ("exec:load --fast", "exec"),
    ],
)
def test_what_an_address_begins_with_tells_its_kind(target: str, name: str) -> None:
    assert kind_of(target).name == name
    assert find_kind(target) is kind_of(target)


@pytest.mark.parametrize("target", ["", "shop", "sqlite://", "sqlite:shop.db", "oracle://u:geheimnis@h/d", "EXEC:x"])
def test_another_text_is_of_no_kind_and_is_not_repeated(target: str) -> None:
    assert find_kind(target) is None
    assert address_of(target) is None
    with pytest.raises(SettingsError) as refused:
        kind_of(target)
    assert str(refused.value) == f"target must be {expected()}"


def test_the_kinds_are_listed_in_words() -> None:
    listed = ("postgresql://user@host/database", "sqlite:///file", "mariadb://user@host/database or exec:COMMAND")
    assert expected() == ", ".join(listed)


@KINDS
def test_each_part_is_what_its_line_says(kind: TargetKind) -> None:
    assert isinstance(kind.part(kind.address), TargetAddress)
    assert isinstance(kind.part(kind.opener), TargetOpener)
    assert kind.catalogue is None or callable(kind.part(kind.catalogue))
    assert find_kind(kind.example) is kind


@KINDS
@pytest.mark.parametrize("package", [kainite.targets, kainite_spark.targets], ids=lambda package: package.__name__)
def test_each_kind_has_its_folder_in_both_packages(kind: TargetKind, package: ModuleType) -> None:
    assert (Path(package.__path__[0]) / kind.name / "__init__.py").is_file()


def test_there_is_no_folder_without_a_line() -> None:
    folders = {path.parent.name for path in Path(kainite.targets.__path__[0]).glob("*/__init__.py")}
    assert folders == {kind.name for kind in TARGET_KINDS}


@KINDS
def test_a_driver_has_an_extra_and_no_shard_host_may_load_it(kind: TargetKind) -> None:
    assert bool(kind.packages) == (kind.extra is not None)
    assert kind.extra is None or kind.extra in PROJECT["project"]["optional-dependencies"]
    [contract] = [
        contract for contract in PROJECT["tool"]["importlinter"]["contracts"] if "shard host" in contract["name"]
    ]
    assert set(kind.packages) <= set(contract["forbidden_modules"])


def test_packages_and_extras_are_found() -> None:
    assert driver_packages() == ("psycopg", "pymysql")
    assert extra_with("psycopg") == "postgresql"
    assert extra_with("requests") is None
