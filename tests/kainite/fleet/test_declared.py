"""Duties that the settings declare, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.fleet.declared import declared_duties
from kainite.fleet.model.records import Restart
from kainite.settings import FleetSettings


def settings(folder: Path, toml: str, *kinds: str) -> FleetSettings:
    path = folder / "duties.toml"
    path.write_text(toml)
    return FleetSettings("t", duties=kinds, duties_file=path)


def test_kinds_and_a_file_declare_duties(tmp_path: Path) -> None:
    toml = """
        [orders]
        kind = "extract"
        properties = "orders.properties"
        affinity = ["source-host"]

        [report]
        command = ["python", "report.py"]
        restart = "on-failure"
        startTimeout = 5
        tries = 2
    """
    found = {duty.name: duty for duty in declared_duties(settings(tmp_path, toml, "log", "apply"))}
    assert set(found) == {"log", "apply", "orders", "report"}
    assert all(duty.declared for duty in found.values())
    assert found["log"].work.ready == "log service ready"
    assert found["apply"].work.start_timeout == 300
    assert (found["orders"].work.properties, found["orders"].work.affinity) == ("orders.properties", ("source-host",))
    report = found["report"].work
    assert (report.command, report.restart, report.start_timeout) == (("python", "report.py"), Restart.ON_FAILURE, 5.0)
    assert report.tries == 2


def test_the_file_says_more_about_a_kind(tmp_path: Path) -> None:
    [duty] = declared_duties(settings(tmp_path, '[log]\nkind = "log"\nweight = 3', "log"))
    assert duty.work.weight == 3


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ("[a]\ncomand = []", "duty 'a': there is no 'comand'"),
        ("[a]\nweight = 1", "duty 'a': command is missing"),
        ('[a]\nkind = "log"\ncommand = ["sh"]', "duty 'a': a command is for programs; the kind log has its own"),
        ('[a]\nproperties = "x"\ncommand = ["sh"]', "duty 'a': properties are for Kainite's own kinds"),
        ('[a]\ncommand = "sh"', "command must be a list of texts"),
        ('[a]\ncommand = ["sh"]\nweight = 0', "weight must be a number above 0"),
        ('[a]\ncommand = ["sh"]\nstartTimeout = inf', "startTimeout must be a number above 0, at most 1000000000"),
        ('[a]\ncommand = ["sh"]\nweight = nan', "weight must be a number above 0"),
        (f'[a]\ncommand = ["sh"]\ntries = {10**30}', "tries must be a whole number above 0"),
        ('[a]\ncommand = ["sh", "a\\u0000"]', "command must be text without null characters"),
        (f'[a]\ncommand = ["sh", "{"x" * 20_000}"]', "command must have at most 16000 bytes"),
        ('[a]\ncommand = ["sh"]\ntries = 1.5', "tries must be a whole number above 0"),
        ('[a]\ncommand = ["sh"]\nrestart = "maybe"', "restart must be one of always, on-failure, never"),
        ('[a]\nkind = "dance"', "kind must be one of log, extract, apply, console, verify, program"),
        ('["a b"]\nkind = "log"', "a name has up to 100 letters"),
        ('[a]\ncommand = ["sh"]\nreadyAfter = 60', "readyAfter, 60 s, must be less than startTimeout, 60 s"),
        ("a = 1", "'a' stands outside of a duty's table"),
        ("[a", "duties.toml"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, toml: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        declared_duties(settings(tmp_path, toml))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        declared_duties(FleetSettings("t", duties_file=tmp_path / "none.toml"))
