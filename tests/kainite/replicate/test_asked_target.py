"""Which target can be asked for a replica, and what it answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from kainite import settings
from kainite.replicate.asked_target import asking, giving_up
from kainite.replicate.verify_ledger import VerifyLedger, VerifyOutcome
from kainite.settings import Settings

OUTCOME = VerifyOutcome("2026-11-23T11:59:00+00:00", "0/1", "different", 2, 10, 3, 1, 0, 0, 1.5)
SHOP = "postgresql://nobody@127.0.0.1:1/shop"


def configured(folder: Path, **given: str) -> Settings:
    return settings.load(written(folder, **given), needs=())


def written(folder: Path, **given: str) -> Path:
    values = {"applicationName": "shop", "unitsOfWork": "true", "logTableName": "log", "logPartition": "7"} | given
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def note(url: str, log_partition: str) -> None:
    """Leaves the result of a comparison in a target."""
    with psycopg.connect(url, autocommit=True) as connection:
        ledger = VerifyLedger(connection, log_partition)
        ledger.begin()
        ledger.ask()
        ledger.note(OUTCOME)


@pytest.mark.parametrize("log_partition", ["log/7", "log/8"])
def test_a_postgresql_target_is_asked_for_the_replica_of_its_log(
    postgres: str, tmp_path: Path, log_partition: str
) -> None:
    note(postgres, log_partition)
    ask = asking(configured(tmp_path, target=postgres))
    assert ask is not None
    found = ask()
    assert found.error == ""
    assert (found.verdict, found.different) == (("different", 3) if log_partition == "log/7" else ("", 0))


def test_the_address_may_be_spelled_as_sqlalchemy_has_it(postgres: str, tmp_path: Path) -> None:
    note(postgres, "log/7")
    ask = asking(configured(tmp_path, target=postgres.replace("postgresql://", "postgresql+psycopg://")))
    assert ask is not None
    assert ask().verdict == "different"


def test_a_target_that_is_away_is_told_when_it_is_asked(tmp_path: Path) -> None:
    ask = asking(configured(tmp_path, target=SHOP))
    assert ask is not None
    assert "refused" in ask().error


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"target": SHOP, "unitsOfWork": "false"},
        {"target": "sqlite:///shop.db"},
        {"target": "exec:loader"},
    ],
)
def test_other_settings_have_no_replica_to_ask_for(tmp_path: Path, given: dict[str, str]) -> None:
    assert asking(configured(tmp_path, **given)) is None
    giving_up(configured(tmp_path, **given))()


@pytest.mark.parametrize(("driver", "target"), [("psycopg", SHOP), ("pymysql", SHOP.replace("postgresql", "mariadb"))])
def test_a_host_without_the_driver_asks_nobody(tmp_path: Path, driver: str, target: str) -> None:
    script = (
        f"import sys; sys.modules['{driver}'] = None\n"
        "from pathlib import Path; from kainite import settings; from kainite.replicate.asked_target import asking\n"
        "print(asking(settings.load(Path(sys.argv[1]), needs=())))\n"
    )
    words = [sys.executable, "-c", script, str(written(tmp_path, target=target))]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "None\n"
