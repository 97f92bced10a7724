"""The whole daemon: ``kainite run`` as a process, and ``supervise`` inside this one, on moto's server."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from kainite.base.errors import KainiteError, LogHeldError, SettingsError, StreamError
from kainite.log.contract import LogHead
from kainite.log.format.entry import EntryKind, UnitMeta
from kainite.owner.mount import Mount, mount
from kainite.peers.address import of_listener
from kainite.settings import Settings, load
from kainite.store.dynamodb import DynamoDBStore
from kainite.worker.supervisor import supervise
from support.daemon_world import CHILDREN, LIMIT, World, delta, scripted, transcript_actions
from support.names import unique
from support.waiting import until

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream(shards=2)
    return world


def properties(world: World, endpoint: str, command: str, **more: str) -> Path:
    """Writes a settings file. A child's command with braces and quotes goes through a script of its own."""
    values = {
        "applicationName": world.name,
        "streamName": world.name,
        "executableName": command,
        "regionName": "us-east-1",
        "kinesisEndpoint": endpoint,
        "dynamoDBEndpoint": endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        "idleTimeBetweenReadsInMillis": "50",
        "failoverTimeMillis": "5000",
        "shutdownGraceMillis": "3000",
        "childKillMillis": "500",
        "taskBackoffTimeMillis": "20",
        **more,
    }
    path = world.tmp / "app.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
    return path


def shell(world: World, script: dict[str, Any]) -> str:
    """Returns a command whose child writes one transcript a shard, named by ``KCL_SHARD_ID``."""
    python, program, text = scripted(script)
    (world.tmp / "script.json").write_text(text)
    path = world.tmp / "child.sh"
    path.write_text(f'exec {python} {program} "$(cat {world.tmp}/script.json)" {world.tmp}/$KCL_SHARD_ID\n')
    return f"/bin/sh {path}"


@contextmanager
def daemon(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs ``kainite run`` with its standard error in a file beside the settings."""
    with (path.parent / "stderr").open("ab") as errors:
        process = subprocess.Popen([sys.executable, "-m", "kainite", "run", "-p", str(path)], stderr=errors)
    try:
        yield process
    finally:
        for child in children_of(process) if process.poll() is None else ():
            child.kill()
        process.kill()
        process.wait()


async def end_of(process: subprocess.Popen[bytes], world: World) -> tuple[int, str]:
    """Returns the exit status and the standard error."""
    status = await asyncio.wait_for(asyncio.to_thread(process.wait), LIMIT)
    return status, (world.tmp / "stderr").read_text()


def actions(world: World, shard: str) -> list[str]:
    return transcript_actions(world.tmp / shard)


def units(store: DynamoDBStore) -> list[str]:
    if store.read_head("0") is None:
        return []
    entries = [entry for batch in store.read_batches("0", 0, strong=True) for entry in batch.entries]
    return [e.meta.uow for e in entries if e.kind is EntryKind.UNIT and isinstance(e.meta, UnitMeta)]


def children_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


async def test_sigterm_lets_children_finish_and_gives_everything_back(world: World, moto_endpoint: str) -> None:
    world.put("a", shard=0, shards=2)
    world.put("b", shard=1, shards=2)
    path = properties(world, moto_endpoint, shell(world, {"processRecords": ["checkpoint last", "status"]}))
    with daemon(path) as process:
        await until(lambda: "checkpoint" in actions(world, FIRST))
        await until(lambda: "checkpoint" in actions(world, SECOND))
        await until(lambda: "daemon ready" in (world.tmp / "stderr").read_text())
        process.send_signal(signal.SIGTERM)
        status, errors = await end_of(process, world)
    assert status == 0, errors
    whole_life = ["initialize", "processRecords", "checkpoint", "shutdownRequested", "leaseLost"]
    assert actions(world, FIRST) == actions(world, SECOND) == whole_life
    items = world.dynamodb.scan(TableName=world.name)["Items"]
    assert all("leaseOwner" not in item for item in items)
    assert "daemon stopped" in errors


async def test_a_child_that_dies_again_and_again_disturbs_no_other_shard(world: World, moto_endpoint: str) -> None:
    world.put("poison", shard=0, shards=2)
    command = shell(world, {"processRecords": ["status"]})
    dying = f'case $KCL_SHARD_ID in {FIRST}) read line; echo "started" >> {world.tmp}/deaths; exit 3;; esac\n'
    script = world.tmp / "child.sh"
    script.write_text(dying + script.read_text())
    path = properties(world, moto_endpoint, command)
    with daemon(path):
        for count in range(1, 4):
            world.put(f"r{count}", shard=1, shards=2)
            await until(partial(_happened, world, count))
    assert actions(world, SECOND).count("initialize") == 1


def _happened(world: World, count: int) -> bool:
    deaths = world.tmp / "deaths"
    died = len(deaths.read_text().splitlines()) if deaths.exists() else 0
    return died >= count and actions(world, SECOND).count("processRecords") >= count


async def test_a_killed_daemon_leaves_no_child_behind_and_its_successor_counts_nothing_twice(
    world: World, moto_endpoint: str
) -> None:
    calls = world.tmp / "calls"
    command = f"{sys.executable} {CHILDREN / 'kclpy_echo.py'} {calls}"
    path = properties(world, moto_endpoint, command, unitsOfWork="true", workerId="w", logLeaseMillis="1000")
    store = DynamoDBStore(world.dynamodb, f"{world.name}-log")
    store.create()
    names = [f"T-{number}" for number in range(9)]
    for round_number in range(3):
        for name in names[3 * round_number : 3 * round_number + 3]:
            world.put(name, shard=round_number % 2, shards=2)
        with daemon(path) as process:
            await until(partial(_has_units, store, 3 * round_number + 3))
            children = children_of(process)
            assert children
            process.send_signal(signal.SIGKILL)
            await end_of(process, world)
            for child in children:
                await asyncio.to_thread(child.wait, LIMIT)
    assert sorted(units(store)) == names


async def test_what_comes_while_a_killed_daemon_that_began_at_latest_is_away_is_read(
    world: World, moto_endpoint: str
) -> None:
    calls = world.tmp / "calls"
    command = f"{sys.executable} {CHILDREN / 'kclpy_echo.py'} {calls}"
    path = properties(
        world, moto_endpoint, command, unitsOfWork="true", workerId="w", logLeaseMillis="1000",
        initialPositionInStream="LATEST",
    )  # fmt: skip
    store = DynamoDBStore(world.dynamodb, f"{world.name}-log")
    store.create()
    with daemon(path) as process:
        await until(lambda: calls.exists() and calls.read_text().count('"initialize"') == 2)
        process.send_signal(signal.SIGKILL)
        await end_of(process, world)
    for shard in (0, 1):
        world.put(f"T-{shard}", shard=shard, shards=2)
    with daemon(path):
        await until(partial(_has_units, store, 2))
    assert sorted(units(store)) == ["T-0", "T-1"]


def _has_units(store: DynamoDBStore, count: int) -> bool:
    return len(units(store)) >= count


def usurped(store: DynamoDBStore) -> LogHead:
    """Takes the log from its living owner, whose heartbeat may come between; returns the head that was written."""
    while True:
        head = store.read_head("0")
        assert head is not None
        usurper = replace(head, generation=head.generation + 1, owner="usurper", version="theirs", process="")
        if store.swap_head("0", usurper, head):
            return usurper


async def test_a_fenced_daemon_goes_on_with_the_same_children(world: World, moto_endpoint: str) -> None:
    command = shell(world, {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]})
    path = properties(world, moto_endpoint, command, unitsOfWork="true", logLeaseMillis="1000")
    store = DynamoDBStore(world.dynamodb, f"{world.name}-log")
    with daemon(path) as process:
        await until(lambda: actions(world, FIRST) == ["initialize"])
        children = children_of(process)
        # The usurper takes the log, and is never heard of again: its lease runs out.
        usurper = usurped(store)
        tail = store.read_tail("0")
        assert store.put_fence("0", tail.next_id if tail else 0, usurper.generation, "theirs") is None
        world.put("a", shard=0, shards=2)
        await until(lambda: units(store) == ["T-1"] and "checkpoint" in actions(world, FIRST))
        assert all(child.is_running() for child in children)
        process.send_signal(signal.SIGTERM)
        status, errors = await end_of(process, world)
    assert status == 0
    assert "log is owned elsewhere now" in errors
    assert "Traceback" not in errors


def mounted_between_heartbeats(store: DynamoDBStore, gone: int, address: str) -> Mount:
    """Mounts the log of a living owner; a heartbeat of its own may come between and makes the claim fail."""
    while True:
        try:
            return mount(store, "0", "elsewhere", 1.0, gone=gone, address=address)
        except LogHeldError as error:
            if "just now" not in str(error):
                raise


async def test_a_daemon_that_is_cut_off_from_the_logs_owner_gives_its_shards_back(
    world: World, moto_endpoint: str
) -> None:
    command = shell(world, {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]})
    path = properties(
        world, moto_endpoint, command, unitsOfWork="true", logLeaseMillis="1000",
        leaseAssignmentIntervalMillis="500", shutdownGraceMillis="500",
    )  # fmt: skip
    store = DynamoDBStore(world.dynamodb, f"{world.name}-log")

    def owners() -> list[str]:
        items = world.dynamodb.scan(TableName=world.name, ConsistentRead=True)["Items"]
        return [item["leaseOwner"]["S"] for item in items if "leaseOwner" in item]

    with daemon(path), socket.create_server(("127.0.0.1", 0)) as silent:
        await until(lambda: actions(world, FIRST) == ["initialize"] and len(owners()) == 2)
        head = store.read_head("0")
        assert head is not None
        # The next owner lives, takes connections, and never says a word.
        address = of_listener("127.0.0.1", silent.getsockname()[1]).as_text()
        held = mounted_between_heartbeats(store, head.generation, address)

        def given_back() -> bool:
            held.renew()
            return owners() == []

        world.put("a", shard=0, shards=2)
        await until(given_back)
        held.release()
        await until(lambda: units(store) == ["T-1"] and len(owners()) == 2)


async def test_a_daemon_that_waits_for_anothers_log_takes_no_shard_and_can_be_stopped(
    world: World, moto_endpoint: str
) -> None:
    path = properties(world, moto_endpoint, shell(world, {}), unitsOfWork="true")
    store = DynamoDBStore(world.dynamodb, f"{world.name}-log")
    store.create()
    mount(store, "0", "somebody else", 1000.0)
    with daemon(path) as process:
        await until(lambda: "waiting for the log" in (world.tmp / "stderr").read_text())
        process.send_signal(signal.SIGTERM)
        status, errors = await end_of(process, world)
    assert status == 0, errors
    assert "Traceback" not in errors
    assert "lease taken" not in errors
    assert actions(world, FIRST) == []


async def test_a_daemon_whose_calls_are_not_answered_ends_when_it_is_told(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(LIMIT)
        path = properties(world, f"http://127.0.0.1:{silent.getsockname()[1]}", "cat")
        with daemon(path) as process:
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                process.send_signal(signal.SIGTERM)
                status, errors = await end_of(process, world)
    assert status == 0, errors
    assert "calls to AWS not waited for" in errors


async def test_a_second_signal_kills_hanging_children_at_once(world: World, moto_endpoint: str) -> None:
    command = shell(world, {"shutdownRequested": [["ignore", signal.SIGTERM], "hang"]})
    path = properties(world, moto_endpoint, command, shutdownGraceMillis="60000", childKillMillis="60000")
    with daemon(path) as process:
        await until(lambda: actions(world, FIRST) == ["initialize"])
        children = children_of(process)
        process.send_signal(signal.SIGINT)
        await until(lambda: "shutdownRequested" in actions(world, FIRST))
        await until(lambda: _killed(process, world))
        status, errors = await end_of(process, world)
    assert status == 1, errors
    assert not any(child.is_running() for child in children)


def _killed(process: subprocess.Popen[bytes], world: World) -> bool:
    if "killing" in (world.tmp / "stderr").read_text():
        return True
    process.send_signal(signal.SIGINT)
    return False


async def test_a_signal_that_comes_twice_at_once_is_one_wish_to_stop(world: World, moto_endpoint: str) -> None:
    path = properties(world, moto_endpoint, shell(world, {}))
    with daemon(path) as process:
        await until(lambda: actions(world, FIRST) == ["initialize"])
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        status, errors = await end_of(process, world)
    assert status == 0, errors
    assert "killing" not in errors
    assert actions(world, FIRST) == ["initialize", "shutdownRequested", "leaseLost"]


async def test_a_changed_settings_file_is_read_again_on_sighup(world: World, moto_endpoint: str) -> None:
    path = properties(world, moto_endpoint, shell(world, {}), maxLeasesForWorker="1")
    with daemon(path) as process:
        await until(lambda: bool(actions(world, FIRST) or actions(world, SECOND)))
        good = path.read_text()
        path.write_text(good.replace("5000", "many"))
        process.send_signal(signal.SIGHUP)
        await until(lambda: "settings not read again" in (world.tmp / "stderr").read_text())
        path.write_text(good.replace("maxLeasesForWorker = 1", "maxLeasesForWorker = 2\nstreamName = other"))
        process.send_signal(signal.SIGHUP)
        await until(lambda: actions(world, FIRST) == actions(world, SECOND) == ["initialize"])
        process.send_signal(signal.SIGTERM)
        status, errors = await end_of(process, world)
    assert status == 0, errors
    assert 'key=streamName takes_effect="when the daemon is started again"' in errors


async def test_certificates_and_secrets_are_read_again_on_sighup(world: World, moto_endpoint: str) -> None:
    users = world.tmp / "users"
    users.touch(0o600)
    users.write_text("daemons:daemon:secret of daemons\n")
    log = {"unitsOfWork": "true", "logSecretFile": str(users)}
    path = properties(world, moto_endpoint, shell(world, {}), **log)
    with daemon(path) as process:
        await until(lambda: actions(world, FIRST) == ["initialize"])
        assert "certificates and secrets read again" not in (world.tmp / "stderr").read_text()
        process.send_signal(signal.SIGHUP)
        await until(lambda: "certificates and secrets read again" in (world.tmp / "stderr").read_text())
        process.send_signal(signal.SIGTERM)
        status, errors = await end_of(process, world)
    assert status == 0, errors
    assert "secret of daemons" not in errors


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT) as answer:
        text: str = answer.read().decode()
    return text


async def test_its_endpoint_tells_what_was_processed_and_how_each_shard_is(world: World, moto_endpoint: str) -> None:
    world.put("a", "bc", shard=0, shards=2)
    script = {"processRecords": ["checkpoint last", "status"]}
    path = properties(world, moto_endpoint, shell(world, script), metricsPort="0")
    with daemon(path):
        await until(lambda: "checkpoint" in actions(world, FIRST))
        await until(lambda: actions(world, SECOND) == ["initialize"])
        port = port_of_the_endpoint(world)
        counted = f'kainite_records_processed_total{{shard="{FIRST}"}} 2.0'
        await until(lambda: counted in page(port, "/metrics"))
        health = json.loads(page(port, "/health"))
    assert {FIRST, SECOND} == {shard["shard"] for shard in health["shards"]}


async def test_a_stream_that_does_not_exist_is_a_check_and_the_other_is_read(world: World, moto_endpoint: str) -> None:
    streams = {"streamName": "", "streamNames": f"{world.name}, misspelled", "metricsPort": "0"}
    with daemon(properties(world, moto_endpoint, shell(world, {}), **streams)):
        await until(lambda: "daemon ready" in (world.tmp / "stderr").read_text())
        port = port_of_the_endpoint(world)
        await until(lambda: len(health_in_trouble(port)["shards"]) == 2)
        await until(lambda: "kainite_streams_not_open 1.0" in page(port, "/metrics"))
        health = health_in_trouble(port)
    (check,) = health["checks"]
    assert (check["name"], check["level"]) == ("stream misspelled", "broken")
    assert check["cause"] in health["problems"]


def health_in_trouble(port: int) -> dict[str, Any]:
    """Returns what ``/health`` says with the status 503."""
    with pytest.raises(urllib.error.HTTPError) as raised:
        page(port, "/health")
    with raised.value as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def port_of_the_endpoint(world: World) -> int:
    said = (world.tmp / "stderr").read_text()
    return int(said.partition("endpoint ready")[2].partition("port=")[2].split()[0])


async def test_a_missing_program_fails_the_start(world: World, moto_endpoint: str) -> None:
    settings = settings_for(world, moto_endpoint, executableName="/no/such/program")
    with pytest.raises(SettingsError, match="no program"):
        await asyncio.wait_for(supervise(settings, asyncio.Event()), LIMIT)


async def test_a_hanging_child_is_ended_when_the_grace_is_over(world: World, moto_endpoint: str) -> None:
    command = shell(world, {"shutdownRequested": [["ignore", signal.SIGTERM], "hang"]})
    path = properties(world, moto_endpoint, command, shutdownGraceMillis="300", childKillMillis="200")
    stop = asyncio.Event()
    running = asyncio.create_task(supervise(load(path), stop))
    await until(lambda: actions(world, SECOND) == ["initialize"])
    stop.set()
    await asyncio.wait_for(running, LIMIT)


async def test_a_lease_that_another_worker_takes_is_given_up(world: World, moto_endpoint: str) -> None:
    path = properties(world, moto_endpoint, shell(world, {}), failoverTimeMillis="1000")
    stop = asyncio.Event()
    running = asyncio.create_task(supervise(load(path), stop))
    await until(lambda: actions(world, FIRST) == ["initialize"])
    world.dynamodb.update_item(
        TableName=world.name,
        Key={"leaseKey": {"S": FIRST}},
        UpdateExpression="SET leaseOwner = :other ADD leaseCounter :one",
        ExpressionAttributeValues={":other": {"S": "other"}, ":one": {"N": "1"}},
    )
    await until(lambda: "leaseLost" in actions(world, FIRST))
    await until(lambda: actions(world, FIRST)[-1] == "initialize")
    assert actions(world, SECOND) == ["initialize"]
    stop.set()
    await asyncio.wait_for(running, LIMIT)


async def test_a_child_is_gone_soon_after_another_worker_has_its_lease_whatever_the_grace(
    world: World, moto_endpoint: str
) -> None:
    command = shell(world, {"processRecords": [["ignore", signal.SIGTERM], "hang"]})
    path = properties(world, moto_endpoint, command, shutdownGraceMillis="600000", failoverTimeMillis="2000")
    world.put("one", shards=2)
    with daemon(path) as process:
        await until(lambda: "processRecords" in actions(world, FIRST))
        hanging = {child.pid for child in children_of(process)}
        world.dynamodb.update_item(
            TableName=world.name,
            Key={"leaseKey": {"S": FIRST}},
            UpdateExpression="SET leaseOwner = :other ADD leaseCounter :one",
            ExpressionAttributeValues={":other": {"S": "other"}, ":one": {"N": "1"}},
        )
        await until(lambda: not hanging <= {child.pid for child in children_of(process)})


def settings_for(world: World, endpoint: str, **more: str) -> Settings:
    return load(properties(world, endpoint, "true", **more))


async def test_a_stream_that_is_not_there_fails_the_start(world: World, moto_endpoint: str) -> None:
    settings = settings_for(world, moto_endpoint, streamName="no-such-stream")
    with pytest.raises(StreamError, match="no-such-stream"):
        await asyncio.wait_for(supervise(settings, asyncio.Event()), LIMIT)


async def test_a_broken_catalogue_fails_the_start(world: World, moto_endpoint: str) -> None:
    catalogue = world.tmp / "catalogue.json"
    catalogue.write_text(json.dumps({"nonsense": True}))
    settings = settings_for(world, moto_endpoint, unitsOfWork="true", catalogueFile=str(catalogue))
    with pytest.raises(KainiteError, match=r"catalogue\.json"):
        await asyncio.wait_for(supervise(settings, asyncio.Event()), LIMIT)


async def test_the_command_exits_with_one_line_when_it_cannot_start(world: World, moto_endpoint: str) -> None:
    path = properties(world, moto_endpoint, "true", streamName="no-such-stream")
    with daemon(path) as process:
        status, errors = await end_of(process, world)
    assert status == 1
    assert "no-such-stream" in errors.splitlines()[-1]
    assert "Traceback" not in errors


async def test_a_stop_at_any_moment_of_the_start_ends_the_daemon(world: World, moto_endpoint: str) -> None:
    settings = load(properties(world, moto_endpoint, shell(world, {})))
    before = psutil.Process().children(recursive=True)  # servers of other tests
    for pause in (0.0, 0.02, 0.05, 0.1, 0.2):
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(pause, stop.set)
        await asyncio.wait_for(supervise(settings, stop), LIMIT)
    assert psutil.Process().children(recursive=True) == before
