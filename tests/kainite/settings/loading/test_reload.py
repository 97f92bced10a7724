"""The effects of a settings file that was changed under a running daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.settings import InitialPosition, examine
from kainite.settings.key import Reload
from kainite.settings.keys.table import KEYS
from kainite.settings.loading.reload import changes, in_force, reread

FILE = "applicationName=app\nstreamName=orders\nexecutableName=python child.py\n"


def test_each_change_is_named_with_when_it_takes_effect(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(FILE)
    running = examine(path, environment={}).settings_or_raise()
    path.write_text(
        FILE + "maxLeasesForWorker=3\ntimeoutInSeconds=5\ntableName=other\nkinesisClient.fipsEnabled=true\n"
    )

    assert {change.key: change.reload for change in changes(running, reread(running, {}))} == {
        "maxLeasesForWorker": Reload.NOW,
        "timeoutInSeconds": Reload.NEXT_CHILD,
        "tableName": Reload.RESTART,
        "kinesisClient.fipsEnabled": Reload.RESTART,
    }


def test_what_waits_for_a_restart_is_not_in_force_before_it_and_is_named_again(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(FILE + "initialPositionInStreamExtended=1700000000\n")
    running = examine(path, environment={}).settings_or_raise()
    path.write_text(FILE + "maxRecords=7\nshutdownGraceMillis=1\nfailoverTimeMillis=5000\nmarkerEom=;\n")
    fresh = reread(running, {})
    now = in_force(running, fresh)

    assert (now.stream.initial_position, now.stream.initial_timestamp) == (InitialPosition.AT_TIMESTAMP, 1700000000)
    assert (now.stream.max_records, now.child.shutdown_grace, now.leases.failover) == (7, 0.001, 5.0)
    assert now.child.markers == fresh.child.markers != running.child.markers
    pending = {change.key for change in changes(now, reread(now, {}))}
    # maxRecords, a polling key, makes DEFAULT mean polling: from the next start on.
    assert pending == {"initialPositionInStream", "initialPositionInStreamExtended", "retrievalMode"}


def test_what_follows_from_a_followed_key_is_followed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(FILE)
    running = examine(path, environment={}).settings_or_raise()
    path.write_text(FILE + "taskBackoffTimeMillis=60000\n")
    now = in_force(running, reread(running, {}))

    assert (now.child.restart_backoff, now.child.restart_backoff_max) == (60.0, 60.0)


def test_a_name_that_was_made_up_stays_and_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(FILE)
    running = examine(path, environment={}).settings_or_raise()
    fresh = reread(running, {})

    assert changes(running, fresh) == ()
    assert fresh.leases.worker_id == fresh.log.owner == running.leases.worker_id


def test_the_command_line_still_wins_when_the_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(FILE)
    running = examine(path, options=["--max-records", "5"], environment={}).settings_or_raise()
    path.write_text(FILE + "maxRecords=7\n")

    assert reread(running, {}).stream.max_records == 5


def test_a_file_that_is_wrong_now_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(FILE)
    running = examine(path, environment={}).settings_or_raise()
    path.write_text(FILE + "maxRecords=many\n")

    with pytest.raises(SettingsError, match="maxRecords"):
        reread(running, {})


def test_what_names_tables_streams_and_addresses_waits_for_a_restart() -> None:
    waiting = {key.name for key in KEYS if key.reload is Reload.RESTART}

    assert {"applicationName", "tableName", "streamName", "workerId", "kinesisEndpoint", "metricsPort"} <= waiting
