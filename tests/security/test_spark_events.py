"""The user's Spark configuration turns event logs and the UI on: neither holds the target's password nor an AWS key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.another_user import require_root, seen_by_nobody
from support.shared_host import AWS_SECRET, family, has_log, log_rows, put, running, unit_line
from support.waiting import eventually

PASSWORD = "the-password-of-the-target"
ROW = "the-content-of-a-row"
START = 180.0
DEFAULTS = """
spark.eventLog.enabled true
spark.eventLog.dir {events}
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
spark.eventLog.logBlockUpdates.enabled true
spark.ui.enabled true
spark.ui.port 0
"""

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def _as_root() -> None:
    require_root()


@pytest.fixture
def spark_variables(open_folder: Path) -> dict[str, str]:
    """Gives the environment that names a Spark configuration with event logs, in a private folder."""
    events, conf = open_folder / "events", open_folder / "conf"
    for folder in (events, conf):
        folder.mkdir(mode=0o700)
    (conf / "spark-defaults.conf").write_text(DEFAULTS.format(events=events.as_uri()))
    return {"SPARK_CONF_DIR": str(conf)}


def applied(target: str) -> list[Any]:
    with psycopg.connect(target) as connection:
        return connection.execute("SELECT v FROM t").fetchall()


def events_in(folder: Path) -> list[Mapping[str, Any]]:
    lines = [line for path in folder.iterdir() if path.name[0] != "." for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


@pytest.mark.timeout(300)
def test_event_logs_hold_no_secret_and_there_is_no_ui(
    application: dict[str, str], open_folder: Path, postgres: str, spark_variables: dict[str, str]
) -> None:
    separator = "&" if "?" in postgres else "?"
    application |= {"target": f"{postgres}{separator}password={PASSWORD}", "applyMetricsPort": "0"}
    with psycopg.connect(postgres, autocommit=True) as target:
        target.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    put(application, unit_line("T-1", 1, ROW))
    with running("run", application, open_folder):
        eventually(lambda: has_log(application) and log_rows(application).read_head("0"))
        with running("apply", application, open_folder, spark_variables) as job:
            eventually(lambda: applied(postgres) == [(ROW,)], START)
            seen = seen_by_nobody(family(job), [open_folder / "events"])
    events = events_in(open_folder / "events")
    kinds = {event["Event"] for event in events}
    assert {"SparkListenerEnvironmentUpdate", "SparkListenerJobStart", "SparkListenerTaskEnd"} <= kinds
    written = b"".join(path.read_bytes() for path in (open_folder / "events").iterdir())
    for secret in (PASSWORD, AWS_SECRET, ROW):
        assert secret.encode() not in written
    assert seen.files == []
    assert seen.mentions(PASSWORD, AWS_SECRET, ROW) == []
    assert seen.answers, "ports of Spark's were looked at"
    assert [port for port, said in seen.answers.items() if "<html" in said.lower()] == [], "no Spark UI"
