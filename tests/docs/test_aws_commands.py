"""Each command of ``kainite`` works with the policies that docs/aws.md names for it.

Its calls are judged where they arrive (``support/guarded_aws.py``). A command that makes a new call is denied it here,
and a command that is new has to be added to one of the lists.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import boto3
import click
import pytest
from click.testing import CliRunner

from kainite.cli.main import main
from kainite.fleet.model.records import Duty, Lead, Work, Worker
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.store.contract import FleetCommit, PutRecord
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.views.unit_table import read_present_rows
from kainite.store.dynamodb import DynamoDBStore
from support.aws_calls import REGION
from support.guarded_aws import GuardedAws, guarded
from support.iam_templates import documents
from support.names import unique
from support.policy_simulator import AwsRequest
from support.waiting import eventually

CHILD = Path(__file__).parents[1] / "children" / "kclpy_verbatim.py"
SHARD = "shardId-000000000000"
LIMIT = 90.0
DAEMON = "Worker-Log-Duties"
NO_CALLS = {"conform", "new-processor", "precedence", "demo"}
"""Commands that call nothing of AWS, and the demo, which has its own."""

SHOWN = {
    "leases show": ["--lag", "--wait", "0"],
    "log show": [],
    "log status": [],
    "log mark": [],
    "uow show": ["T-2"],
    "fleet workers": [],
    "fleet duties": [],
    "fleet history": ["leader"],
}
ASKED = {
    "fleet add": ["d", "--command", "true"],
    "fleet disable": ["d", "--yes"],
    "fleet enable": ["d"],
    "fleet stop": ["d", "--yes"],
    "fleet start": ["d"],
    "fleet remove": ["d", "--yes"],
    "fleet clear-error": ["failed"],
    "fleet move": ["held", "b", "--yes"],
    "fleet rebalance": ["--yes"],
    "fleet shut-down": ["b", "--yes"],
}
"""In this order: each finds what the one before it has left."""

ANSWERED = {"uow retry": ["T-2"], "uow discard": ["T-2", "--yes"]}
OTHERS = {
    "run",
    "apply",
    "console",
    "doctor",
    "extract",
    "fleet watch",
    "leases forget",
    "leases move",
    "leases reset",
    "leases restart-child",
    "leases stderr",
    "log adopt-stream",
    "log serve",
    "log hand-over",
    "log history",
    "log pause",
    "log resume",
    "log skip",
    "log who",
    "replicate add",
    "replicate cutover",
    "replicate init",
    "replicate load",
    "replicate reload",
    "replicate status",
    "status",
    "uow correct",
    "uow locks",
    "verify",
}
"""Those that have a test of their own, below or elsewhere: what speaks to databases, daemons and the log's head."""


class Ended(NamedTuple):
    """How a command has ended, what it says on standard error, and which of its calls were denied."""

    status: int
    errors: str = ""
    refused: frozenset[AwsRequest] | set[AwsRequest] = frozenset()


WELL = Ended(0)


@dataclass
class Application:
    """An application behind the door, whose tables are made as the template makes them."""

    door: GuardedAws
    name: str
    folder: Path

    def __post_init__(self) -> None:
        self.door.stream = self.name
        self.client("kinesis").create_stream(StreamName=self.name, ShardCount=1)
        LeaseTable(self.client("dynamodb"), self.name).create()
        self.log.create()
        self.fleet.create()
        with closing(sqlite3.connect(self.folder / "target.db")) as target:
            target.execute("CREATE TABLE items (id integer PRIMARY KEY, v text NOT NULL)")
        settings = {
            "applicationName": self.name,
            "streamName": self.name,
            "regionName": REGION,
            "executableName": f"{sys.executable} {CHILD}",
            "kinesisEndpoint": self.door.endpoint,
            "dynamoDBEndpoint": self.door.endpoint,
            "cloudWatchEndpoint": self.door.endpoint,
            "initialPositionInStream": "TRIM_HORIZON",
            "idleTimeBetweenReadsInMillis": "50",
            "failoverTimeMillis": "2000",
            "metricsBufferTimeMillis": "500",
            "workerId": "w",
            "unitsOfWork": "true",
            "fleet": "true",
            "target": f"sqlite:///{self.folder}/target.db",
            "extractorName": "echo one",
        }
        self.properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))

    @property
    def properties(self) -> Path:
        return self.folder / "app.properties"

    @property
    def log(self) -> DynamoDBStore:
        return DynamoDBStore(self.client("dynamodb"), f"{self.name}-log")

    @property
    def fleet(self) -> DynamoDBFleetStore:
        return DynamoDBFleetStore(self.client("dynamodb"), f"{self.name}-Fleet")

    def client(self, service: Any) -> Any:
        """Returns a client of the test's own, which may do all."""
        return boto3.client(service, endpoint_url=self.door.endpoint, region_name=REGION)

    def unit(self, key: int, value: str | None) -> None:
        change = {"uow": f"T-{key}", "table": "items", "op": "insert", "key": {"id": key}}
        deltas = [{**change, "row": {"id": key, "v": value}}, {"uow": f"T-{key}", "end": True, "count": 1}]
        data = json.dumps({"action": "emit", "deltas": deltas}).encode()
        self.client("kinesis").put_record(StreamName=self.name, Data=data, PartitionKey="k")

    @contextmanager
    def running(self, role: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a command as a process with a role's rights, and ends it as systemd does."""
        self.judge(role)
        line = [sys.executable, "-m", "kainite", *command[0].split(), "-p", str(self.properties), *command[1:]]
        environment = {**os.environ, "AWS_ACCESS_KEY_ID": role, "PYSPARK_PYTHON": sys.executable}
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=LIMIT)

    def kainite(self, role: str, command: str, *arguments: str) -> Ended:
        """Runs a command to its end, in this process, which starts no other for it."""
        self.judge(role)
        line = [*command.split(), "-p", str(self.properties), *arguments]
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("AWS_ACCESS_KEY_ID", role)
            result = CliRunner().invoke(main, line)
        assert self.door.calls[role], "the command has called nothing"
        return Ended(result.exit_code, result.stderr, self.door.refused[role])

    def judge(self, role: str) -> None:
        """Gives an access key, named as the role, the role's policies; forgets what was called with it before."""
        self.door.policies[role] = [documents(self.name)[each] for each in role.split("-")]
        self.door.calls[role], self.door.refused[role] = set(), set()

    def called(self, role: str, action: str) -> bool:
        return any(call.action == action for call in self.door.calls.get(role, ()))


@pytest.fixture
def application(moto_endpoint: str, tmp_path: Path) -> Iterator[Application]:
    name = unique("app")
    with guarded(name) as door:
        yield Application(door, name, tmp_path)


@pytest.fixture(scope="module")
def at_work(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Gives an application whose daemon runs, with a unit that was applied and one that has failed."""
    name = unique("app")
    with guarded(name) as door:
        application = Application(door, name, tmp_path_factory.mktemp("at_work"))
        application.unit(1, "one")
        application.unit(2, None)
        with application.running(DAEMON, "run"):
            eventually(lambda: _dispatched(application) == {"T-1", "T-2"})
            with application.running("Apply", "apply", "--once") as applying:
                applying.communicate(timeout=LIMIT)
            assert application.door.refused["Apply"] == set()
            eventually(lambda: application.called(DAEMON, "cloudwatch:PutMetricData"))
            yield application
        assert application.door.refused[DAEMON] == set()


def _dispatched(application: Application) -> set[str]:
    if application.log.read_head("0") is None:
        return set()
    return {row.uow for row in read_present_rows(application.log, "0") if row.id is not None}


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    """Yields the names of all commands."""
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                assert found is not None
                yield from leaves(found, f"{name} {each}".strip())
    else:
        yield name


def test_every_command_is_tried_here() -> None:
    assert set(leaves(main)) == NO_CALLS | OTHERS | SHOWN.keys() | ASKED.keys() | ANSWERED.keys()


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
def test_the_apply_job_and_the_daemon_apply_units(at_work: Application) -> None:
    statuses = {row.uow: str(row.status) for row in read_present_rows(at_work.log, "0")}
    assert statuses["T-2"] == "failed"
    with closing(sqlite3.connect(at_work.folder / "target.db")) as target:
        assert target.execute("SELECT * FROM items").fetchall() == [(1, "one")]


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("command", SHOWN)
def test_a_reader_may_call_what_shows(at_work: Application, command: str) -> None:
    assert at_work.kainite("Reader", command, *SHOWN[command]) == WELL


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
def test_who_may_not_see_the_token_reads_the_log_in_the_place_of_asking_its_owner(at_work: Application) -> None:
    ended = at_work.kainite("Reader", "log who", "items", "id=2")
    assert (ended.status, ended.errors) == (0, "")
    assert [(call.action, dict(call.context)["dynamodb:leadingkeys"]) for call in ended.refused] == [
        ("dynamodb:GetItem", ("0#H",))
    ]


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("command", ANSWERED)
def test_an_operator_may_ask_the_logs_owner(at_work: Application, command: str) -> None:
    assert at_work.kainite("Reader-Operator", command, *ANSWERED[command]) == WELL


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
def test_an_operator_is_answered_when_nothing_is_to_be_skipped(at_work: Application) -> None:
    ended = at_work.kainite("Reader-Operator", "log skip", "1", "--yes")
    assert (ended.status, ended.refused) == (1, set())
    assert "uowOrder" in ended.errors


def test_an_operator_may_steer_the_fleet(application: Application) -> None:
    a, b = Worker("a", "1"), Worker("b", "2")
    failed = Duty("failed", Work(command=("true",)), status=DutyStatus.ERROR)
    for record in (a, b, Lead("a", "1", 1), Duty("held", Work(command=("true",))).given_to(a), failed):
        assert application.fleet.commit(FleetCommit((PutRecord(record),)))
    for command, arguments in ASKED.items():
        assert application.kainite("Reader-Operator", command, *arguments) == WELL, command


def test_a_reader_may_watch_the_fleet(application: Application) -> None:
    with application.running("Reader", "fleet watch", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == []
    assert application.door.refused["Reader"] == set()


def test_checkpoints_are_set_with_the_policy_for_that(application: Application) -> None:
    LeaseTable(application.client("dynamodb"), application.name).put_new(Lease("shardId-000000000000"))
    assert application.kainite("Reader-Reset", "leases reset", "--to", "LATEST", "--yes") == WELL
    assert application.called("Reader-Reset", "dynamodb:UpdateItem")


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("spark")
def test_leases_are_asked_for_with_the_policy_for_that(at_work: Application) -> None:
    assert at_work.kainite("Reader-Reset", "leases restart-child", SHARD, "--yes") == WELL
    ended = at_work.kainite("Reader-Reset", "leases move", SHARD, "w", "--yes")
    assert (ended.status, ended.refused) == (1, set())


def test_a_reader_may_look_at_the_console(at_work: Application) -> None:
    with at_work.running("Reader", "console", "--listen", "127.0.0.1:0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[-1]
        for page in ("", "units", "shards", "apply", "log"):  # the history reads the inbox, as an operator may
            with urlopen(f"{url}{at_work.name}/{page}", timeout=LIMIT) as answer:
                assert b"could not be read" not in answer.read(), page
    assert at_work.door.refused["Reader"] == set()


def test_the_log_is_served_with_its_policy_alone(application: Application) -> None:
    with application.running("Log", "log serve"):
        eventually(lambda: (head := application.log.read_head("0")) is not None and head.token)
    assert application.door.refused["Log"] == set()


def test_another_stream_is_adopted_with_the_policies_of_a_daemon(application: Application) -> None:
    ended = application.kainite(DAEMON, "log adopt-stream", "--yes")
    assert (ended.status, ended.refused) == (0, set())


def test_an_extractor_writes_to_the_stream(application: Application) -> None:
    ended = application.kainite("Extract", "extract", "--once")
    assert (ended.status, ended.refused) == (0, set())
    assert application.called("Extract", "kinesis:PutRecords")


@pytest.mark.parametrize(("role", "command"), [(DAEMON, "run"), ("Apply", "apply"), ("Extract", "extract")])
def test_the_doctor_asks_with_the_rights_of_each_command(application: Application, role: str, command: str) -> None:
    ended = application.kainite(role, "doctor", "--for", command, "--limit", str(LIMIT))
    assert ended == WELL
