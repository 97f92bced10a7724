from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kainite.settings import Settings, examine
from kainite.worker.settings_in_force import SettingsInForce
from support.waiting import until

FILE = f"applicationName=app\nstreamName=orders\nexecutableName={sys.executable} -c pass\n"


class Daemon:
    """A daemon's settings, and a settings file to change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reload = asyncio.Event()
        self.changed: list[Settings] = []
        self.asked = 0
        path.write_text(FILE)
        self.in_force = SettingsInForce(examine(path).settings_or_raise())
        self.following = asyncio.create_task(self.in_force.follow(self.reload, self.changed.append, self.ask))

    def ask(self) -> None:
        self.asked += 1

    def write(self, more: str) -> None:
        self.path.write_text(FILE + more)
        self.reload.set()


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    daemon = Daemon(tmp_path / "app.properties")
    yield daemon
    daemon.following.cancel()
    await asyncio.wait({daemon.following})


async def test_a_changed_file_is_in_force_after_a_reload(daemon: Daemon, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    daemon.write("maxLeasesForWorker=3\ntableName=other\n")
    await until(lambda: bool(daemon.changed))
    assert daemon.changed == [daemon.in_force.current]
    assert daemon.in_force.current.leases.max_leases == 3
    assert daemon.in_force.current.leases.table == "app"  # waits for a restart
    assert not daemon.reload.is_set()
    levels = {record.kainite_fields.get("key"): record.levelno for record in caplog.records}  # type: ignore[attr-defined]
    assert (levels["maxLeasesForWorker"], levels["tableName"]) == (logging.INFO, logging.WARNING)


@pytest.mark.parametrize("mistake", ["failoverTimeMillis=soon\n", "executableName=/no/such/program\n"])
async def test_a_file_with_a_mistake_leaves_the_settings_as_they_are(
    daemon: Daemon, mistake: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = daemon.in_force.current
    daemon.write("maxLeasesForWorker=3\n" + mistake)
    await until(lambda: any(record.levelno == logging.ERROR for record in caplog.records))
    assert daemon.asked == 1  # what is not in the settings file itself is read again all the same
    assert daemon.in_force.current is before
    daemon.write("maxLeasesForWorker=4\n")
    await until(lambda: bool(daemon.changed))
    assert daemon.in_force.current.leases.max_leases == 4


async def test_a_file_that_is_gone_leaves_the_settings_as_they_are(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    daemon.path.unlink()
    daemon.reload.set()
    await until(lambda: any(record.levelno == logging.ERROR for record in caplog.records))
    assert daemon.asked == 1  # what is not in the settings file itself is read again all the same
    assert not daemon.changed
