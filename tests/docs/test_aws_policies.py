"""The IAM policies of docs/aws allow what the code calls, and nothing that it does not call.

Each policy's part of the code is run on doubles while its calls are recorded; together the parts make every call that
the sources name, so a call that is new in the code fails here until a part makes it and a policy allows it.
"""

from __future__ import annotations

import asyncio
import json
import random
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import boto3
import pytest
from click.testing import CliRunner

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.errors import LogUnavailableError
from kainite.cli.main import main
from kainite.fleet.model.records import Duty, Lead, Subject, Work, Worker
from kainite.fleet.model.records import HistoryLine as DutyEvent
from kainite.fleet.store.contract import DeleteRecord, FleetCommit, PutRecord
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.consumer_registration import registered_consumer
from kainite.kinesis.read.subscription import Subscriber
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt
from kainite.kinesis.write.put import StreamRecord, StreamWriter
from kainite.leases.administration.reset import CheckpointChange
from kainite.leases.administration.reset import apply as reset
from kainite.leases.kcl3.coordinator_items import CoordinatorLayout
from kainite.leases.kcl3.coordinator_table import CoordinatorTable
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.contract import LogHead
from kainite.log.format.entry import Batch, OperationResult
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.views.unit_table import LogRow
from kainite.observe.cloudwatch import CloudWatch
from kainite.observe.metric import RECORDS_PROCESSED
from kainite.operations.forgetting import delete_leases
from kainite.operations.history import read_history
from kainite.operations.leases import AnswerPatience, change_lease
from kainite.operations.operation import ForgetStream, RestartChild
from kainite.owner.audit.s3 import S3Audit
from kainite.owner.mount import mount
from kainite.owner.requests import OK
from kainite.settings import LeaseSettings, MetricsLevel, MetricsSettings, S3Folder, StreamSettings, load
from kainite.store.batch_items import CHUNK_BYTES
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.signature import Signatures
from kainite.waltz.connecting import finder
from kainite.waltz.partition import application_partition
from kainite.worker.supervisor import supervise
from support.apply_world import World as ApplyWorld
from support.apply_world import insert
from support.aws_calls import REGION, Recorder, actions, denied, operations_in_the_code, recorded, unused
from support.daemon_world import scripted
from support.fanout_double import FanOutDouble, initial_response
from support.iam_templates import documents, tool
from support.kinesis_double import KinesisDouble
from support.log_builders import batch
from support.main_log import MainLog
from support.names import unique
from support.tables import SHOP
from support.waiting import until

SHARD = "shardId-000000000000"
BUCKET = unique("audit")
OTHER_STREAM = f"arn:aws:kinesis:{REGION}:999999999999:stream/orders"


@dataclass
class Aws:
    """Doubles with an application's stream and tables, and the recorder of what is called."""

    endpoint: str
    application: str
    stream: str
    folder: Path
    recorder: Recorder

    def client(self, service: Any) -> Any:
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION)

    def unrecorded(self, service: Any) -> Any:
        return self.recorder.aside(self.client(service))

    @property
    def log(self) -> str:
        return f"{self.application}-log"

    def settings(self, more: Mapping[str, str] = MappingProxyType({})) -> Path:
        values = {
            "executableName": "true",
            "streamName": self.stream,
            "applicationName": self.application,
            "regionName": REGION,
            "kinesisEndpoint": self.endpoint,
            "dynamoDBEndpoint": self.endpoint,
            "initialPositionInStream": "TRIM_HORIZON",
            "unitsOfWork": "true",
            "failoverTimeMillis": "100",
            **more,
        }
        path = self.folder / "app.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
        return path

    def kainite(self, *arguments: str) -> None:
        command = [*arguments[:2], "-p", str(self.settings()), *arguments[2:]]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output


@pytest.fixture
def aws(moto_endpoint: str, tmp_path: Path) -> Iterator[Aws]:
    name = unique("app")
    with recorded(name) as recorder:
        aws = Aws(moto_endpoint, name, name, tmp_path, recorder)
        aws.unrecorded("kinesis").create_stream(StreamName=aws.stream, ShardCount=1)
        yield aws


def tables(aws: Aws) -> None:
    """Creates the application's tables as the template makes them."""
    dynamodb = aws.unrecorded("dynamodb")
    LeaseTable(dynamodb, aws.application).create()
    DynamoDBStore(dynamodb, aws.log).create()
    DynamoDBFleetStore(dynamodb, f"{aws.application}-Fleet").create()
    for table, key in (("CoordinatorState", "key"), ("WorkerMetricStats", "wid")):
        dynamodb.create_table(
            TableName=f"{aws.application}-{table}",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )


def read_a_shard(aws: Aws) -> None:
    stream = StreamClient(aws.client("kinesis"), aws.stream)
    [shard] = stream.list_shards()
    stream.get_records(stream.iterator(shard.id, StartAt("TRIM_HORIZON"))[0], 10)


def keep_leases(aws: Aws) -> None:
    table = LeaseTable(aws.client("dynamodb"), aws.application)
    table.create()
    table.put_new(Lease.for_shard(Shard(SHARD), TRIM_HORIZON))
    [lease] = table.scan()
    taken = table.take(lease, "w")
    assert taken is not None
    assert table.checkpoint(taken, Checkpoint("7")) is not None
    assert table.get(SHARD) is not None
    table.delete(SHARD)


def coordinator(aws: Aws, client: Any) -> CoordinatorTable:
    return CoordinatorTable(client, LeaseSettings(aws.application, aws.application, "w"))


def publish(aws: Aws) -> None:
    level, settings = MetricsLevel.SUMMARY, MetricsSettings()
    cloudwatch = CloudWatch(lambda: aws.client("cloudwatch"), aws.application, "w", level, settings)
    cloudwatch.observe(RECORDS_PROCESSED, 1, SHARD)
    cloudwatch.flush()


def be_a_worker(aws: Aws) -> None:
    tables(aws)
    read_a_shard(aws)
    keep_leases(aws)
    looking = coordinator(aws, aws.client("dynamodb"))
    assert looking.read() is None
    assert not looking.has_owner_index()
    publish(aws)


def be_one_in_a_kcl_3_fleet(aws: Aws) -> None:
    tables(aws)
    items = [
        {"key": {"S": "Migration3.0"}, "cv": {"S": "CLIENT_VERSION_3X"}},
        {"key": {"S": "Leader"}, "ownerName": {"S": "w"}, "recordVersionNumber": {"S": "v"}},
    ]
    for item in items:
        aws.unrecorded("dynamodb").put_item(TableName=f"{aws.application}-CoordinatorState", Item=item)
    member = coordinator(aws, aws.client("dynamodb"))
    member.report(CoordinatorLayout.SPLIT, 1.0)
    assert member.read() is not None
    member.withdraw(CoordinatorLayout.SPLIT)


def subscribe(aws: Aws) -> None:
    kinesis = aws.client("kinesis")
    consumer = registered_consumer(kinesis, StreamSettings(aws.stream), aws.application, lambda _: None)
    with closing(KinesisDouble()) as rest, closing(FanOutDouble(rest)) as double:
        double.answer(initial_response())
        client = boto3.client("kinesis", endpoint_url=double.endpoint, region_name=REGION)
        Subscriber(client, consumer).subscribe(SHARD, StartAt("LATEST")).close()


def read_several(aws: Aws) -> None:
    """Opens the first stream, and opens and reads one of another account, as ``streamNames`` has them."""
    StreamClient(aws.client("kinesis"), aws.stream).identity()
    with closing(KinesisDouble()) as double:
        client = boto3.client("kinesis", endpoint_url=double.endpoint, region_name=REGION)
        stream = StreamClient(client, "orders", OTHER_STREAM)
        stream.identity()
        shard = stream.list_shards()[0]
        stream.get_records(stream.iterator(shard.id, StartAt("TRIM_HORIZON"))[0], 10)


def share_duties(aws: Aws) -> None:
    tables(aws)
    store = DynamoDBFleetStore(aws.client("dynamodb"), f"{aws.application}-Fleet")
    store.create()
    assert store.commit(FleetCommit((PutRecord(Lead("w", "1", 1)),)))
    lead = store.read().lead
    assert store.commit(
        FleetCommit((PutRecord(Duty("d", Work())),), lead, (DutyEvent(Subject.DUTY, "d", "new", "w", "a test"),))
    )
    duty = store.read().duties["d"]
    assert store.commit(FleetCommit((DeleteRecord(duty),)))
    assert not store.commit(FleetCommit((PutRecord(duty),)))
    assert len(store.history(Subject.DUTY, "d", 9)) == 1


def own_the_log(aws: Aws) -> None:
    tables(aws)
    store = DynamoDBStore(aws.client("dynamodb"), aws.log)
    store.create()
    assert store.swap_head("0", LogHead(1, "w", "v", 1000), store.read_head("0"))
    for first_id in range(2):
        assert store.put_batch("0", batch(first_id), f"n{first_id}") is None
    assert store.read_tail("0") is not None
    assert store.truncate("0", 1) == 1
    assert store.put_batch("0", large_batch(2), "n2") is None
    store.put_names("0", "key", b"names")
    store.delete_names("0", [key for key, _ in store.read_names("0")])
    assert aws.stream in str(StreamClient(aws.client("kinesis"), aws.stream).identity())
    LeaseTable(aws.unrecorded("dynamodb"), aws.application).create()
    assert LeaseTable(aws.client("dynamodb"), aws.application).holder("s0") is None
    request = DynamoDBStore(aws.unrecorded("dynamodb"), aws.log).put_request("0", {"action": "retry"})
    store.answer_request("0", request, {"result": "ok"})
    spread_the_log(aws)


def spread_the_log(aws: Aws) -> None:
    """Mounts a partition of several keys, appends behind its fork, reads and truncates, as an owner does."""
    store = DynamoDBStore(aws.client("dynamodb"), aws.log)
    mounted = mount(store, "striped", "w", 10.0, stripes=2)
    for first_id in range(2):
        assert store.put_batch("striped", batch(first_id, mounted.generation), f"n{first_id}") is None
    assert store.put_batch("striped", large_batch(2, mounted.generation), "n2") is None
    assert len(list(store.read_batches("striped", 0, strong=True))) == 3
    assert store.truncate("striped", 2) == 2
    mounted.release()


def use_the_log(aws: Aws) -> None:
    """Finds the owner of a partition of applications, as a program does."""
    tables(aws)
    head = LogHead(1, "w", "v", 1000, address="127.0.0.1:1@")
    name = application_partition("0", 0)
    assert DynamoDBStore(aws.unrecorded("dynamodb"), aws.log).swap_head(name, head, None)
    find = finder(DynamoDBStore(aws.client("dynamodb"), aws.log), name)

    async def found() -> None:
        with suppress(LogUnavailableError):
            await find()

    asyncio.run(found())


def write_the_audit_trail(aws: Aws) -> None:
    aws.unrecorded("s3").create_bucket(Bucket=BUCKET)
    S3Audit(aws.client("s3"), S3Folder(BUCKET, aws.application), "0").write([LogRow("T-1", id=0)], 0, 1)


def apply_units(aws: Aws) -> None:
    tables(aws)
    world = ApplyWorld(DynamoDBStore(aws.unrecorded("dynamodb"), aws.log), f"sqlite:///{aws.folder / 'target.db'}")
    world.store = DynamoDBStore(aws.client("dynamodb"), aws.log)
    world.store.create()
    for key in range(3):
        world.log.unit(f"T-{key}", insert(key))
        world.apply()
    assert len(world.items()) == 3
    assert world.store.decide("0", "1.1.a", committed=True)
    world.store.delete_decisions("0", [name for name, _ in world.store.read_decisions("0")])
    use_large_batches(aws)
    publish(aws)


def use_large_batches(aws: Aws) -> None:
    """Reads a batch in chunks, of one key and in stripes; writes outcomes in chunks, and truncates them."""
    read_large_batches(aws)
    outcomes = DynamoDBStore(aws.client("dynamodb"), aws.log)
    mounted = mount(outcomes, outcomes_partition("large"), "apply", 10.0)
    for first_id in range(2):
        written = outcomes.put_batch(mounted.partition, large_batch(first_id, mounted.generation), f"n{first_id}")
        assert written is None
    assert outcomes.truncate(mounted.partition, 1) == 1
    mounted.release()


def extract(aws: Aws) -> None:
    kinesis = aws.client("kinesis")
    assert len(StreamClient(kinesis, aws.stream).list_shards()) == 1
    StreamWriter(kinesis, aws.stream).put([StreamRecord(b"{}", "k", "0")])


def large_batch(first_id: int, generation: int = 1) -> Batch:
    """Returns a batch that does not fit into one item; noise, which no compression makes smaller."""
    return batch(first_id, generation, data=random.Random(first_id).randbytes(CHUNK_BYTES + 1))


def look_at_it(aws: Aws) -> None:
    tables(aws)
    LeaseTable(aws.unrecorded("dynamodb"), aws.application).put_new(Lease(SHARD, checkpoint=Checkpoint("7")))
    aws.kainite("leases", "show", "--lag", "--wait", "0")
    MainLog(DynamoDBStore(aws.unrecorded("dynamodb"), aws.log), Signatures(SHOP)).unit("T-1")
    aws.kainite("log", "show")
    aws.kainite("uow", "show", "T-1")
    DynamoDBStore(aws.unrecorded("dynamodb"), aws.log).put_request("0", {"action": "pause", "by": "somebody"})
    assert len(read_history(DynamoDBStore(aws.client("dynamodb"), aws.log, token=False), "0")) == 1
    read_large_batches(aws)
    for listing in (["workers"], ["duties"], ["history", "leader"]):
        aws.kainite("fleet", *listing)


def read_large_batches(aws: Aws) -> None:
    """Reads batches in chunks, of a log of one key and of one in stripes, as commands do."""
    writing = DynamoDBStore(aws.unrecorded("dynamodb"), aws.log)
    reading = DynamoDBStore(aws.client("dynamodb"), aws.log, token=False)
    for partition, stripes in (("whole", 1), ("striped", 2)):
        mounted = mount(writing, partition, "w", 10.0, stripes=stripes)
        assert writing.put_batch(partition, large_batch(0, mounted.generation), "n") is None
        assert len(list(reading.read_batches(partition, 0))) == 1
        mounted.release()


def operate(aws: Aws) -> None:
    tables(aws)
    MainLog(DynamoDBStore(aws.unrecorded("dynamodb"), aws.log), Signatures(SHOP)).unit("T-1")
    with answering(aws):
        aws.kainite("uow", "retry", "T-1")
    worker = Worker("w", "1")
    fleet = DynamoDBFleetStore(aws.unrecorded("dynamodb"), f"{aws.application}-Fleet")
    for record in (worker, Duty("held", Work(command=("true",))).given_to(worker)):
        assert fleet.commit(FleetCommit((PutRecord(record),)))
    aws.kainite("fleet", "add", "d", "--command", "true")
    aws.kainite("fleet", "remove", "d", "--yes")
    aws.kainite("fleet", "stop", "held", "--kill", "--yes")


def reset_leases(aws: Aws) -> None:
    tables(aws)
    worker = LeaseTable(aws.unrecorded("dynamodb"), aws.application)
    worker.put_new(Lease(SHARD, checkpoint=Checkpoint("7")))
    aws.kainite("leases", "reset", "--to", "TRIM_HORIZON", "--yes")
    worker.put_new(Lease("shardId-gone"))
    worker.delete(SHARD)
    aws.unrecorded("kinesis").put_record(StreamName=aws.stream, Data=b"{}", PartitionKey="k")
    aws.kainite("leases", "reset", "--at", "0", "--yes")
    reset_a_lease_that_moves(aws, worker)
    ask_for_a_restart(aws, worker)
    forget_a_stream(aws, worker)


def forget_a_stream(aws: Aws, worker: LeaseTable) -> None:
    """Deletes the leases of a stream that is read no more, as ``kainite leases forget`` does."""
    worker.put_new(Lease(f"1:former:1:{SHARD}"))
    table = LeaseTable(aws.client("dynamodb"), aws.application)
    _, outcome = delete_leases(table, ForgetStream("former"), ("1:orders:1",), 0.1)
    assert outcome.result is OperationResult.DONE


def ask_for_a_restart(aws: Aws, worker: LeaseTable) -> None:
    """Asks for a restart that nobody carries out, as ``kainite leases restart-child`` does."""
    lease = worker.get(SHARD)
    assert lease is not None
    assert worker.take(lease, "w") is not None
    table = LeaseTable(aws.client("dynamodb"), aws.application)
    outcome = change_lease(table, RestartChild(SHARD), "ada", AnswerPatience(0.1, 0.1))
    assert outcome.result is OperationResult.REFUSED


def reset_a_lease_that_moves(aws: Aws, worker: LeaseTable) -> None:
    """Resets a lease that a worker renews between the reset's look at the lease and its take."""
    lease = worker.get(SHARD)
    assert lease is not None
    worker.renew(lease)
    table = LeaseTable(aws.client("dynamodb"), aws.application)
    assert [done for _, done in reset(table, [CheckpointChange(Shard(SHARD), lease, Checkpoint("8"))], force=True)] == [
        True
    ]


@contextmanager
def answering(aws: Aws) -> Iterator[None]:
    """Stands in for a daemon that carries every request out."""
    store, ended = DynamoDBStore(aws.unrecorded("dynamodb"), aws.log), threading.Event()

    def answer() -> None:
        while not ended.wait(0.02):
            for request_id, _ in store.read_requests("0"):
                store.answer_request("0", request_id, {"result": OK, "message": "done"})

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def make_tables(aws: Aws) -> None:
    dynamodb = aws.client("dynamodb")
    LeaseTable(dynamodb, aws.application).create(point_in_time_recovery=True)
    DynamoDBStore(dynamodb, aws.log).create()
    DynamoDBFleetStore(dynamodb, f"{aws.application}-Fleet").create()


PARTS: dict[str, Callable[[Aws], None]] = {
    "Worker": be_a_worker,
    "Fleet": be_one_in_a_kcl_3_fleet,
    "Duties": share_duties,
    "Streams": read_several,
    "FanOut": subscribe,
    "Log": own_the_log,
    "Audit": write_the_audit_trail,
    "Apply": apply_units,
    "Extract": extract,
    "Program": use_the_log,
    "Reader": look_at_it,
    "Operator": operate,
    "Reset": reset_leases,
    "CreateTables": make_tables,
}
BESIDE = {"Fleet": "Worker", "CreateTables": "Worker Log Duties", "Operator": "Reader", "Reset": "Reader"}
"""Policies that come on top of others, whose permissions their parts use too."""


@pytest.mark.parametrize("policy", PARTS)
def test_a_policy_allows_what_its_part_calls_and_no_more(aws: Aws, policy: str) -> None:
    PARTS[policy](aws)
    policies = documents(aws.application, bucket=BUCKET, other=OTHER_STREAM)
    assert denied(aws.recorder.calls, [policies[each] for each in (policy, *BESIDE.get(policy, "").split())]) == set()
    assert unused(aws.recorder.calls, policies[policy]) == []


async def test_a_daemon_that_runs_calls_nothing_that_its_role_does_not_allow(aws: Aws) -> None:
    tables(aws)
    child = scripted({"processRecords": ["checkpoint last", "status"]})
    path = aws.settings(
        {"unitsOfWork": "false", "executableName": f"sh {aws.folder}/child.sh", "cloudWatchEndpoint": aws.endpoint}
    )
    (aws.folder / "child.sh").write_text(shlex.join(child))
    aws.unrecorded("kinesis").put_record(StreamName=aws.stream, Data=b"{}", PartitionKey="k")
    stop = asyncio.Event()
    running = asyncio.create_task(supervise(load(path), stop))
    await until(lambda: any(call.action == "dynamodb:UpdateItem" for call in aws.recorder.calls))
    stop.set()
    await running
    assert denied(aws.recorder.calls, [documents(aws.application)["Worker"]]) == set()


def test_the_resource_policy_of_the_page_allows_what_several_streams_need() -> None:
    """Compares the statement for another account's stream with the policy for the role that reads it."""
    page = (tool().DOCS.parent / "aws.md").read_text(encoding="utf-8")
    policy = json.loads(page.partition("<!-- resource policy -->\n```json\n")[2].partition("```")[0])

    assert set(actions(policy)) == set(actions(documents("app")["Streams"]))
    assert [statement["Principal"].keys() for statement in policy["Statement"]] == [{"AWS"}]


def test_every_call_in_the_code_is_in_a_policy_and_each_policy_has_its_part() -> None:
    policies = tool().policies()
    assert policies.keys() == PARTS.keys()
    assert {action for document in policies.values() for action in actions(document)} == operations_in_the_code()


def test_the_json_files_are_the_templates_policies() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in tool().FOLDER.glob("*.json")}
    assert files == tool().rendered(), "run `make docs`"
