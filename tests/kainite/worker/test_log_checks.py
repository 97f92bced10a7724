"""``/health`` of the process that owns the log, and of one that does not."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from kainite.leases.other_log import OtherLog
from kainite.log.format.entry import Batch, Entry, EntryKind, UnitMeta
from kainite.observe.check import Level
from kainite.owner.mount import mount
from kainite.settings import LogSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.worker.log_checks import checks_of, checks_of_other
from support.names import unique
from support.ports import free_port


def test_a_process_without_the_log_tells_of_no_unit() -> None:
    assert checks_of(None, 600.0) == ()


def test_a_worker_with_another_log_makes_health_bad() -> None:
    own = LogSettings("orders-log", "w", enabled=True, partition="1")
    assert checks_of_other(None, own) == ()
    (check,) = checks_of_other(OtherLog("first", "orders-log/0"), own)
    assert check.level is Level.BROKEN
    assert check.cause.startswith("worker first collects this application's shards into log orders-log/0")
    assert "orders-log/1" in check.cause


async def test_a_failed_unit_makes_the_owners_health_bad(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> None:
    name, port, path = unique("app"), free_port(), tmp_path / "app.properties"
    path.write_text(
        f"applicationName = {name}\nstreamName = s\nregionName = us-east-1\nunitsOfWork = true\n"
        f"dynamoDBEndpoint = {moto_endpoint}\nlogListen = 127.0.0.1:0\nlogMetricsPort = {port}\n"
    )
    store = DynamoDBStore(dynamodb, f"{name}-log")
    store.create()
    before = mount(store, "0", "before", 10.0)
    failed = Entry(EntryKind.UNIT, UnitMeta("T-1", 1, cause="no such table"))
    assert store.put_batch("0", Batch(0, before.generation, 0, (failed,)), "n") is None
    before.release()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kainite", "log", "serve", "-p", str(path), stderr=asyncio.subprocess.DEVNULL
    )

    def asked() -> tuple[int, dict[str, Any]] | None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())
        except OSError:
            return None
        return None

    try:
        async with asyncio.timeout(60):
            while (found := await asyncio.to_thread(asked)) is None or not found[1]["checks"]:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        status, answer = found
        assert status == 503
        assert (answer["ready"], answer["verdict"]) == (True, "degraded")
        assert answer["problems"] == ["1 unit failed; the first is T-1 (id 0): no such table"]
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 30)
