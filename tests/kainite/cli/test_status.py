"""``kainite status``, as a person and as a script call it: on a log at work, on a real daemon, on nothing."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.summary import from_text
from support.daemon_world import World, scripted
from support.log_cli import LogWorld
from support.names import unique
from support.ports import free_port
from support.waiting import until


def told_in_head(world: LogWorld) -> int | None:
    """Returns how many delayed units the summary in HEAD tells of."""
    head = world.store.read_head("0")
    summary = from_text(head.summary) if head is not None else None
    return None if summary is None else summary.delayed


def status(properties: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", "-p", str(properties), *arguments])


def told(properties: Path, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(status(properties, "--json", *arguments).stdout)
    return answer


def check(answer: dict[str, Any], name: str) -> tuple[str, str]:
    found = next(check for check in answer["checks"] if check["name"] == name)
    return found["level"], found["cause"]


async def test_a_failed_unit_a_chain_of_blocked_ones_and_a_locked_one_are_told(log_world: LogWorld) -> None:
    await log_world.apply(Outcome(3, UnitStatus.IN_PROGRESS, 2, "the row is locked"))
    await until(lambda: told_in_head(log_world) == 1)

    answer = await asyncio.to_thread(told, log_world.properties)

    assert (answer["verdict"], answer["exit_status"]) == ("degraded", 1)
    assert answer["units"] == {
        "collecting": 1, "in_progress": 0, "delayed": 1, "blocked": 1, "failed": 1, "discarding": 0,
    }  # fmt: skip
    assert check(answer, "failed units") == (
        "degraded", '1 unit failed; the first is bad (id 1): violates check "positive" [23514]',
    )  # fmt: skip
    assert check(answer, "blocked units")[1] == "1 unit blocked: the first waits for bad, which failed"
    assert check(answer, "delayed units")[1].endswith("fresh (id 3): the row is locked")
    assert answer["next"].endswith(f"kainite uow discard -p {log_world.properties} bad")
    assert answer["oldest"]["uow"] in ("bad", "half")
    shown = await asyncio.to_thread(status, log_world.properties)
    assert shown.exit_code == 1
    assert shown.stdout.startswith("app: degraded: failed units: 1 unit failed")


def test_nothing_at_all_is_broken_and_says_what_to_do(moto_endpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(
        f"applicationName = {unique('app')}\nstreamName = s\nregionName = us-east-1\nunitsOfWork = true\n"
        f"dynamoDBEndpoint = {moto_endpoint}\n"
    )
    shown = status(path)
    assert shown.exit_code == 2
    assert "nothing has run for this file yet" in shown.stdout
    assert f"kainite run -p {path}" in shown.stdout


def test_an_error_of_the_command_itself_is_neither_healthy_nor_broken(tmp_path: Path) -> None:
    missing = status(tmp_path / "no.properties")
    assert missing.exit_code == 3
    assert missing.stderr.startswith("kainite: ")
    assert status(tmp_path / "no.properties", "--at", "host").exit_code == 2, "wrong usage"


def test_a_shard_that_nobody_holds_breaks_the_application(moto_endpoint: str, dynamodb: Any, tmp_path: Path) -> None:
    name, path = unique("app"), tmp_path / "app.properties"
    path.write_text(
        f"applicationName = {name}\nstreamName = s\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
    )
    table = LeaseTable(dynamodb, name)
    table.create()
    table.put_new(Lease("shardId-000000000000"))
    shown = status(path)
    assert shown.exit_code == 2
    assert "shards: shardId-000000000000: nobody holds it" in shown.stdout


@pytest.mark.parametrize(
    ("script", "level", "state", "words"),
    [
        ({"processRecords": ["hang"]}, "broken", "hung", "has not answered processRecords"),
        ({"processRecords": [["stderr", "ImportError: no module named x\n"], "die"]}, "broken", "failing", "in a row"),
        ({"processRecords": [["stderr", "well\n"], "status"]}, "ok", "being read", ""),
    ],
    ids=["hung", "failing", "well"],
)
async def test_the_true_state_of_a_child_is_told_with_its_last_words(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path,
    script: dict[str, Any], level: str, state: str, words: str,
) -> None:  # fmt: skip
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream()
    world.put("a")
    python, program, text = scripted(script)
    (tmp_path / "script.json").write_text(text)
    (tmp_path / "child.sh").write_text(f'exec {python} {program} "$(cat {tmp_path}/script.json)"\n')
    path = tmp_path / "app.properties"
    path.write_text(
        f"applicationName = {world.name}\nstreamName = {world.name}\nexecutableName = /bin/sh {tmp_path}/child.sh\n"
        f"regionName = us-east-1\nkinesisEndpoint = {moto_endpoint}\ndynamoDBEndpoint = {moto_endpoint}\n"
        f"initialPositionInStream = TRIM_HORIZON\nidleTimeBetweenReadsInMillis = 50\nmetricsPort = {free_port()}\n"
        "hungAfterMillis = 500\ntaskBackoffTimeMillis = 20\n"
    )
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kainite", "run", "-p", str(path), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        answer: dict[str, Any] = {}

        def seen() -> bool:
            answer.update(told(path, "--wait", "0"))
            return [(shard["state"], shard["level"]) for shard in answer["shards"]] == [(state, level)]

        async with asyncio.timeout(60):
            while not await asyncio.to_thread(seen):  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.1)
        (shard,) = answer["shards"]
        assert words in shard["why"]
        assert answer["exit_status"] == (2 if level == "broken" else 0), answer["checks"]
        assert shard["stderr"] == ("ImportError: no module named x" if state == "failing" else "")
    finally:
        daemon.terminate()
        try:
            await asyncio.wait_for(daemon.wait(), 30)
        except TimeoutError:
            daemon.kill()
            await daemon.wait()


def test_watch_repeats_until_it_is_interrupted(
    moto_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.properties"
    path.write_text(f"applicationName = {unique('app')}\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("kainite.cli.status.time.sleep", sleep)
    shown = status(path, "--json", "--watch", "3")
    assert (shown.exit_code, slept) == (130, [3.0, 3.0])
    assert [json.loads(line)["verdict"] for line in shown.stdout.splitlines()] == ["healthy", "healthy"]
