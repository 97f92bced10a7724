"""What the IAM policies of docs/aws must deny: each attempt is made by a real client whose every call is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import KainiteError
from kainite.fleet.model.records import Duty, Subject, Work
from kainite.fleet.model.records import HistoryLine as DutyEvent
from kainite.fleet.store.contract import FleetCommit, PutRecord
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.put import StreamRecord, StreamWriter
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.contract import LogHead
from kainite.store.dynamodb import DynamoDBStore
from kainite.store.log_table import LogTable
from kainite.waltz.partition import application_partition
from support.aws_calls import REGION
from support.guarded_aws import GuardedAws, guarded
from support.iam_templates import documents
from support.log_builders import batch
from support.names import unique

SHARD = "shardId-000000000000"


@dataclass
class Attempts:
    """One application, and what somebody with some policies attempts on it."""

    door: GuardedAws
    application: str

    def client(self, service: Any, key: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.door.endpoint,
            region_name=REGION,
            aws_access_key_id=key,
            aws_secret_access_key="secret",
        )

    def log(self, key: str, *, token: bool = True) -> DynamoDBStore:
        return DynamoDBStore(self.client("dynamodb", key), f"{self.application}-log", token=token)

    def log_table(self, key: str) -> LogTable:
        return LogTable(self.client("dynamodb", key), f"{self.application}-log")

    def leases(self, key: str) -> LeaseTable:
        return LeaseTable(self.client("dynamodb", key), self.application)

    def fleet(self, key: str) -> DynamoDBFleetStore:
        return DynamoDBFleetStore(self.client("dynamodb", key), f"{self.application}-Fleet")

    def stream(self, key: str) -> StreamClient:
        return StreamClient(self.client("kinesis", key), self.application)

    def put_record(self, key: str) -> None:
        StreamWriter(self.client("kinesis", key), self.application).put([StreamRecord(b"{}", "k", "0")])


@pytest.fixture(scope="module")
def attempts(moto_endpoint: str) -> Iterator[Attempts]:
    name = unique("app")
    with guarded(name) as door:
        attempts = Attempts(door, name)
        attempts.client("kinesis", "testing").create_stream(StreamName=name, ShardCount=1)
        attempts.leases("testing").create()
        attempts.leases("testing").put_new(Lease(SHARD, checkpoint=Checkpoint("7")))
        attempts.fleet("testing").create()
        log = attempts.log("testing")
        log.create()
        for partition in ("0", application_partition("0", 0)):
            assert log.swap_head(partition, LogHead(1, "w", "v", 1000, token="the-token"), None)
            assert log.put_batch(partition, batch(0), "n") is None
        yield attempts


Attempt = Callable[[Attempts, str], object]

HEAD = LogHead(2, "attacker", "mine", 1000)
READS: dict[str, Attempt] = {
    "the token": lambda at, key: at.log(key).read_head("0"),
    "rows": lambda at, key: list(at.log(key).read_batches("0", 0)),
    "rows of applications": lambda at, key: list(at.log(key).read_batches(application_partition("0", 0), 0)),
    "all items": lambda at, key: at.client("dynamodb", key).scan(TableName=f"{at.application}-log"),
    "all items by PartiQL": lambda at, key: at.client("dynamodb", key).execute_statement(
        Statement=f'SELECT * FROM "{at.application}-log"'
    ),
    "names of units": lambda at, key: list(at.log(key).read_names("0")),
    "requests": lambda at, key: at.log(key).read_requests("0"),
    "decisions": lambda at, key: list(at.log(key).read_decisions("0")),
    "leases": lambda at, key: at.leases(key).scan(),
    "the fleet": lambda at, key: at.fleet(key).read(),
    "records": lambda at, key: at.client("kinesis", key).get_shard_iterator(
        StreamName=at.application, ShardId=SHARD, ShardIteratorType="TRIM_HORIZON"
    ),
}
WRITES: dict[str, Attempt] = {
    "a head": lambda at, key: at.log(key).swap_head("0", HEAD, None),
    "an entry": lambda at, key: at.log(key).put_batch("0", batch(1), "mine"),
    "an application's entry": lambda at, key: at.log(key).put_batch(application_partition("0", 0), batch(1), "mine"),
    "a fence": lambda at, key: at.log(key).put_fence("0", 1, 9, "mine"),
    "a deletion": lambda at, key: LogTable(at.client("dynamodb", key), f"{at.application}-log").delete(
        "0#L", ["0" * 20]
    ),
    "names": lambda at, key: at.log(key).put_names("0", "mine", b""),
    "outcomes": lambda at, key: at.log(key).put_batch("0:outcomes", batch(0), "mine"),
    "a decision": lambda at, key: at.log(key).decide("0", "1.1.a", committed=True),
    "a request": lambda at, key: at.log(key).put_request("0", {"action": "discard", "uow": "T-1"}),
    "an answer": lambda at, key: at.log(key).answer_request("0", "1", {"result": "ok"}),
    "a lease": lambda at, key: at.leases(key).put_new(Lease("mine")),
    "a checkpoint": lambda at, key: at.leases(key).take(Lease(SHARD), "attacker"),
    "a lease's end": lambda at, key: at.leases(key).delete(SHARD),
    "a duty": lambda at, key: at.fleet(key).commit(FleetCommit((PutRecord(Duty("evil", Work(command=("true",)))),))),
    "the leader's history": lambda at, key: at.fleet(key).commit(
        FleetCommit((), events=(DutyEvent(Subject.LEADER, "leader", "new", "w", "forged"),))
    ),
    "a record": lambda at, key: at.put_record(key),
    "a table's end": lambda at, key: at.client("dynamodb", key).delete_table(TableName=f"{at.application}-log"),
}
MAY: dict[str, str] = {
    "Program": "",
    "Extract": "a record",
    "Audit": "",
    "Reader": "rows|rows of applications|requests|leases|the fleet|records",
    "Reader Operator": "rows|rows of applications|requests|leases|the fleet|records|a request|a duty",
    "Reader Reset": "rows|rows of applications|requests|leases|the fleet|records|a request|a lease|a checkpoint|"
    "a lease's end",
    "Apply": "the token|rows|rows of applications|outcomes|decisions|a decision",
    "Worker": "leases|records|a lease|a checkpoint|a lease's end",
    "Streams": "",
    "Worker Streams": "leases|records|a lease|a checkpoint|a lease's end",
    "Worker Log": "the token|rows|rows of applications|names of units|requests|decisions|leases|records|a head|"
    "an entry|an application's entry|a fence|a deletion|names|outcomes|an answer|a lease|a checkpoint|a lease's end",
    "Worker Duties": "leases|records|a lease|a checkpoint|a lease's end|the fleet|a duty|the leader's history",
}
"""What each role may of the attempts; it is denied the others. Roles are names of policies."""


@pytest.mark.parametrize("attempt", READS | WRITES)
@pytest.mark.parametrize("role", MAY)
def test_a_role_is_denied_what_it_has_no_need_of(attempts: Attempts, role: str, attempt: str) -> None:
    key = f"{role} {attempt}".replace(" ", "-").replace("'", "")
    policies = documents(application=attempts.application)
    attempts.door.policies[key] = [policies[name] for name in role.split()]
    may = attempt in MAY[role].split("|")
    try:
        (READS | WRITES)[attempt](attempts, key)
    except (KainiteError, ClientError):
        assert not may
    assert bool(attempts.door.refused[key]) != may


def test_a_reader_sees_the_head_without_the_token(attempts: Attempts) -> None:
    attempts.door.policies["reader"] = [documents(application=attempts.application)["Reader"]]
    head = attempts.log("reader", token=False).read_head("0")
    assert head is not None
    assert (head.owner, head.token) == ("w", "")


def test_a_program_sees_the_head_of_its_partitions(attempts: Attempts) -> None:
    attempts.door.policies["program"] = [documents(application=attempts.application)["Program"]]
    head = attempts.log("program").read_head(application_partition("0", 0))
    assert head is not None
    assert head.token == "the-token"


@pytest.mark.parametrize("role", ["Worker", "Apply"])
def test_metrics_go_to_the_applications_namespace_alone(attempts: Attempts, role: str) -> None:
    attempts.door.policies[f"metrics-{role}"] = [documents(application=attempts.application)[role]]
    cloudwatch = attempts.client("cloudwatch", f"metrics-{role}")
    datum = [{"MetricName": "m", "Value": 1.0}]
    cloudwatch.put_metric_data(Namespace=attempts.application, MetricData=datum)
    with pytest.raises(ClientError):
        cloudwatch.put_metric_data(Namespace="AWS/Billing", MetricData=datum)
