"""Another user of the host looks at running processes of Kainite's, at their files and at their ports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psutil
import psycopg
import pytest

from kainite.leases.table.lease_table import LeaseTable
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.folder import FolderAudit
from kainite.store.dynamodb import DynamoDBStore
from support.another_user import require_root, seen_by_nobody
from support.names import unique
from support.waiting import eventually

CHILD = Path(__file__).parents[1] / "children" / "kclpy_verbatim.py"
LIMIT = 60.0
START = 180.0
AWS_SECRET = "the-secret-of-aws"
OPEN = "for-all-to-read"
ROW = "the-content-of-a-row"

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def _as_root() -> None:
    require_root()


@contextmanager
def running(command: str, settings: Mapping[str, str], folder: Path) -> Iterator[psutil.Process]:
    """Runs a command with a settings file of its own, a temp folder that all may enter, and the widest umask."""
    properties, temporary = folder / "app.properties", folder / "temporary"
    properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    properties.chmod(0o600)
    temporary.mkdir()
    temporary.chmod(0o1777)
    places = {"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)}
    environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": AWS_SECRET, **places}
    line = [sys.executable, "-m", "kainite", command, "-p", str(properties)]
    with (
        (folder / f"{command}.log").open("wb") as log,
        subprocess.Popen(line, stderr=log, env=environment, umask=0) as process,
    ):
        (folder / f"{command}.log").chmod(0o600)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT)


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


@pytest.fixture
def settings(moto_endpoint: str, open_folder: Path) -> dict[str, str]:
    """Gives the settings of an application with a record on its stream, whose target has one table."""
    name = unique("app")
    with contextlib.closing(sqlite3.connect(open_folder / "target.db")) as target:
        target.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    (open_folder / "target.db").chmod(0o600)
    boto3.client("kinesis", endpoint_url=moto_endpoint, region_name="us-east-1").create_stream(
        StreamName=name, ShardCount=1
    )
    return {
        "applicationName": name,
        "streamName": name,
        "regionName": "us-east-1",
        "kinesisEndpoint": moto_endpoint,
        "dynamoDBEndpoint": moto_endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        "idleTimeBetweenReadsInMillis": "50",
        "executableName": f"{sys.executable} {CHILD}",
        "unitsOfWork": "true",
        "metricsPort": "0",
        "auditTrail": str(open_folder / "audit"),
        "target": f"sqlite:///{open_folder}/target.db",
    }


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Gives a folder that every user may enter: what is protected in it protects itself. One file in it is not."""
    with tempfile.TemporaryDirectory(prefix="kainite-open-") as path:
        folder = Path(path)
        folder.chmod(0o755)
        (folder / OPEN).touch(mode=0o644)
        yield folder


def log_rows(settings: Mapping[str, str]) -> DynamoDBStore:
    client = boto3.client("dynamodb", endpoint_url=settings["dynamoDBEndpoint"], region_name="us-east-1")
    return DynamoDBStore(client, f"{settings['applicationName']}-log")


@pytest.mark.timeout(240)
def test_nobody_sees_secrets_or_rows_of_a_daemon_and_its_children(settings: dict[str, str], open_folder: Path) -> None:
    change = {"uow": "T-1", "table": "t", "op": "insert", "key": {"id": 1}, "row": {"id": 1, "v": ROW}}
    data = json.dumps({"action": "emit", "deltas": [change, {"uow": "T-1", "end": True, "count": 1}]}).encode()
    kinesis: Any = boto3.client("kinesis", endpoint_url=settings["kinesisEndpoint"], region_name="us-east-1")
    kinesis.put_record(StreamName=settings["streamName"], Data=data, PartitionKey="k")
    with running("run", settings, open_folder) as daemon:
        eventually(lambda: daemon.children() and _token(settings), LIMIT)
        token = _token(settings)
        seen = seen_by_nobody(family(daemon), [open_folder])
    assert seen.environments == []
    assert seen.descriptors == []
    assert seen.mentions(AWS_SECRET, ROW, token) == []
    assert seen.files == [str(open_folder / OPEN)]
    assert len(seen.answers) >= 2, "the log's port and that of the metrics were looked at"


def _serves(process: psutil.Process) -> bool:
    """Returns whether a process is Spark's JVM with its block server open."""
    with contextlib.suppress(psutil.NoSuchProcess):
        listening = [each for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
        return process.name() == "java" and len(listening) > 1
    return False


def _token(settings: Mapping[str, str]) -> str:
    client = boto3.client("dynamodb", endpoint_url=settings["dynamoDBEndpoint"], region_name="us-east-1")
    if f"{settings['applicationName']}-log" not in client.list_tables()["TableNames"]:
        return ""
    head = log_rows(settings).read_head("0")
    return head.token if head else ""


def test_nobody_reads_the_audit_trail(open_folder: Path) -> None:
    before = os.umask(0)
    try:
        FolderAudit(open_folder / "audit").write([LogRow(ROW, id=0)], 0, 1)
        (open_folder / "entered").mkdir(mode=0o777)
        FolderAudit(open_folder / "entered").write([LogRow(ROW, id=0)], 0, 1)
    finally:
        os.umask(before)
    assert list((open_folder / "entered").iterdir())
    assert seen_by_nobody([], [open_folder]).files == [str(open_folder / OPEN)]


@pytest.mark.timeout(300)
def test_nobody_sees_the_targets_address_or_sparks_secrets_in_an_apply_job(
    settings: dict[str, str], open_folder: Path, postgres: str
) -> None:
    password = "the-password-of-the-target"
    separator = "&" if "?" in postgres else "?"
    settings |= {"target": f"{postgres}{separator}password={password}", "applyMetricsPort": "0"}
    with psycopg.connect(postgres, autocommit=True) as target:
        target.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    dynamodb = boto3.client("dynamodb", endpoint_url=settings["dynamoDBEndpoint"], region_name="us-east-1")
    LeaseTable(dynamodb, settings["applicationName"]).create()
    log_rows(settings).create()
    with running("apply", settings, open_folder) as job:
        eventually(lambda: any(_serves(each) for each in job.children(recursive=True)), START)
        eventually(lambda: list((open_folder / "temporary").iterdir()), LIMIT)
        seen = seen_by_nobody(family(job), [open_folder])
        assert [each for each in seen.command_lines if "java" in each], "Spark's JVM runs"
    assert seen.environments == []
    assert seen.descriptors == []
    assert seen.mentions(password, AWS_SECRET) == []
    assert seen.files == [str(open_folder / OPEN)]
    assert [port for port, said in seen.answers.items() if "<html" in said.lower()] == [], "no Spark UI"
