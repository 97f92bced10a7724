"""The command lines of duties."""

from __future__ import annotations

import sys
from pathlib import Path

from kainite.fleet.model.records import Duty, Work
from kainite.fleet.programs.commands import command_of


def test_a_kind_runs_kainite_on_the_workers_settings_or_on_its_own() -> None:
    own = Path("/etc/kainite/app.properties")
    kainite = (sys.executable, "-m", "kainite")
    assert command_of(Duty("a", Work(kind="apply")), own) == (*kainite, "apply", "-p", str(own))
    assert command_of(Duty("l", Work(kind="log")), own) == (*kainite, "log", "serve", "-p", str(own))
    other = Work(kind="extract", properties="orders.properties")
    assert command_of(Duty("e", other), own) == (*kainite, "extract", "-p", "/etc/kainite/orders.properties")
    absolute = Work(kind="extract", properties="/srv/orders.properties")
    assert command_of(Duty("e", absolute), own)[-1] == "/srv/orders.properties"


def test_a_program_runs_as_it_is_written() -> None:
    assert command_of(Duty("p", Work(command=("sh", "-c", "true"))), None) == ("sh", "-c", "true")
