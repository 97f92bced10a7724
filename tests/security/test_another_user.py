"""Another user of the host looks at running processes of Kainite's, at their files and at their ports."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import boto3
import psutil
import psycopg
import pytest

from kainite.leases.table.lease_table import LeaseTable
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.folder import FolderAudit
from support.another_user import require_root, seen_by_nobody
from support.shared_host import AWS_SECRET, LIMIT, OPEN, family, has_log, log_rows, put, running, unit_line
from support.waiting import eventually

START = 180.0
ROW = "the-content-of-a-row"

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def _as_root() -> None:
    require_root()


@pytest.mark.timeout(240)
def test_nobody_sees_secrets_or_rows_of_a_daemon_and_its_children(
    application: dict[str, str], open_folder: Path
) -> None:
    put(application, unit_line("T-1", 1, ROW))
    with running("run", application, open_folder) as daemon:
        eventually(lambda: daemon.children() and _token(application), LIMIT)
        token = _token(application)
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


def _token(application: Mapping[str, str]) -> str:
    head = log_rows(application).read_head("0") if has_log(application) else None
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
    application: dict[str, str], open_folder: Path, postgres: str
) -> None:
    password = "the-password-of-the-target"
    separator = "&" if "?" in postgres else "?"
    application |= {"target": f"{postgres}{separator}password={password}", "applyMetricsPort": "0"}
    with psycopg.connect(postgres, autocommit=True) as target:
        target.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    dynamodb = boto3.client("dynamodb", endpoint_url=application["dynamoDBEndpoint"], region_name="us-east-1")
    LeaseTable(dynamodb, application["applicationName"]).create()
    log_rows(application).create()
    with running("apply", application, open_folder) as job:
        eventually(lambda: any(_serves(each) for each in job.children(recursive=True)), START)
        eventually(lambda: list((open_folder / "temporary").iterdir()), LIMIT)
        seen = seen_by_nobody(family(job), [open_folder])
        assert [each for each in seen.command_lines if "java" in each], "Spark's JVM runs"
    assert seen.environments == []
    assert seen.descriptors == []
    assert seen.mentions(password, AWS_SECRET) == []
    assert seen.files == [str(open_folder / OPEN)]
    assert [port for port, said in seen.answers.items() if "<html" in said.lower()] == [], "no Spark UI"
